"""An OpenAI client that remembers: it adds what is known to each request and takes in what was said.

    client = remember(AsyncOpenAI(), memory, user_id="mei")
    reply = await client.chat.completions.create(model="…", messages=[{"role": "user", "content": "晚饭吃什么？"}])

It is the same client otherwise. A failure of the memory is logged and never breaks a call.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeVar, cast

from pydantic import JsonValue, ValidationError

from .. import sync, validation
from ..errors import InvalidInput
from ..memory import Memory
from ..models import Message
from ..read.context import Style
from ..text.fence import strip_context
from .chat import part, text_of_reply

logger = logging.getLogger(__name__)
C = TypeVar("C")

_INSTRUCTIONS = ("system", "developer")
_CALLS = ("create", "parse")
_COPIES = ("with_options", "copy")


def remember(
    client: C,
    memory: Memory | sync.Memory,
    *,
    user_id: str,
    session_id: str | None = None,
    agent_id: str | None = None,
    group_id: str | None = None,
    max_tokens: int = 800,
    style: Style = "sections",
    min_relevance_score: float | None = None,
    observe: bool = True,
) -> C:
    """The client, with memory: `OpenAI` with a `jiyi.sync.Memory`, `AsyncOpenAI` with a `jiyi.Memory`.

    `chat.completions.create` and `parse` and `responses.create` and `parse` remember, streaming too; everything else is
    the client's own. `observe=False` only recalls.
    """
    is_async = any(kind.__name__.startswith("Async") for kind in type(client).__mro__)
    if is_async == isinstance(memory, sync.Memory):
        wanted = "jiyi.Memory" if is_async else "jiyi.sync.Memory"
        raise InvalidInput("memory", f"must be a {wanted} for {type(client).__name__}")
    floor = memory.settings.tools.relevance_floor
    keeper = Keeper(
        memory=memory,
        scope={
            "user_id": validation.name("user_id", user_id),
            "session_id": validation.optional_name("session_id", session_id),
            "agent_id": validation.optional_name("agent_id", agent_id),
            "group_id": validation.optional_name("group_id", group_id),
        },
        recall={
            "user_id": user_id,
            "max_tokens": validation.whole("max_tokens", max_tokens, highest=1_000_000),
            "style": style,
            "min_relevance_score": floor if min_relevance_score is None else min_relevance_score,
        },
        observe=observe,
    )
    return cast(C, Remembering(client, keeper, is_async=is_async))


# -- the client's face ------------------------------------------------------------------------------------------------


class Remembering:
    """A client, or a part of one, whose calls remember; what is not about chats is passed on."""

    def __init__(self, target: Any, keeper: Keeper, *, is_async: bool, path: tuple[str, ...] = ()) -> None:
        self._target = target
        self._keeper = keeper
        self._is_async = is_async
        self._path = path

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        path = (*self._path, name)
        if path in (("chat",), ("chat", "completions"), ("responses",)):
            return Remembering(found, self._keeper, is_async=self._is_async, path=path)
        if self._path in (("chat", "completions"), ("responses",)) and name in _CALLS:
            return self._call(found)
        if not self._path and name in _COPIES:
            return lambda *args, **kwargs: Remembering(found(*args, **kwargs), self._keeper, is_async=self._is_async)
        return found

    def _call(self, call: Callable[..., Any]) -> Callable[..., Any]:
        shape: Shape = ChatShape() if self._path[0] == "chat" else ResponsesShape()
        keeper = self._keeper

        async def later(**request: Any) -> Any:
            turn = shape.turn(request)
            block = await _awaited(keeper.recalled(turn))
            reply = await call(**shape.augmented(request, block))
            if request.get("stream"):
                return AsyncListening(reply, Heard(), lambda heard: keeper.take(turn, heard.text))
            await _awaited(keeper.take(turn, _text(reply)))
            return reply

        def now(**request: Any) -> Any:
            turn = shape.turn(request)
            reply = call(**shape.augmented(request, keeper.recalled(turn)))
            if request.get("stream"):
                return Listening(reply, Heard(), lambda heard: keeper.take(turn, heard.text))
            keeper.take(turn, _text(reply))
            return reply

        return later if self._is_async else now

    def __enter__(self) -> Self:
        self._target.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._target.__exit__(*error)

    async def __aenter__(self) -> Self:
        await self._target.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._target.__aexit__(*error)


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def _text(reply: Any) -> str:
    try:
        return text_of_reply(reply)
    except InvalidInput:  # a raw response, or a reply without text
        return ""


# -- what is asked and answered ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Turn:
    """What the user said, and whether this request is the first to say it; later ones bring results of tools."""

    said: str
    new: bool


class ChatShape:
    def turn(self, request: Mapping[str, Any]) -> Turn:
        return _turn(request.get("messages"))

    def augmented(self, request: dict[str, Any], block: str) -> dict[str, Any]:
        messages = request.get("messages")
        if not block or messages is None:
            return request
        rest = list(messages)
        at = next((at for at, one in enumerate(rest) if part(one, "role") not in _INSTRUCTIONS), len(rest))
        return {**request, "messages": [*rest[:at], {"role": "system", "content": block}, *rest[at:]]}


class ResponsesShape:
    def turn(self, request: Mapping[str, Any]) -> Turn:
        given = request.get("input")
        return Turn(given, new=True) if isinstance(given, str) else _turn(given)

    def augmented(self, request: dict[str, Any], block: str) -> dict[str, Any]:
        if not block:
            return request
        told = request.get("instructions")
        return {**request, "instructions": f"{told}\n\n{block}" if isinstance(told, str) and told else block}


Shape = ChatShape | ResponsesShape


def _turn(messages: Any) -> Turn:
    given = list(messages) if isinstance(messages, (list, tuple)) else []
    last = next((one for one in reversed(given) if part(one, "role") == "user"), None)
    if last is None:
        return Turn("", new=False)
    try:
        said = Message.model_validate({"content": part(last, "content"), "role": "user"}).text
    except ValidationError:
        return Turn("", new=False)
    return Turn(said, new=last is given[-1])


# -- streams ----------------------------------------------------------------------------------------------------------


class Heard:
    """The text of a stream so far."""

    def __init__(self) -> None:
        self._parts: list[str] = []

    @property
    def text(self) -> str:
        return "".join(self._parts)

    def hear(self, event: Any) -> None:
        if part(event, "type") == "response.output_text.delta":
            piece = part(event, "delta")
        else:
            choices = part(event, "choices")
            piece = part(part(choices[0], "delta"), "content") if choices else None
        if isinstance(piece, str):
            self._parts.append(piece)


class Listening:
    """A stream that is listened to; when it ends or is closed, what was said is taken in, once."""

    def __init__(self, stream: Any, heard: Heard, take: Callable[[Heard], Any]) -> None:
        self._stream = stream
        self._heard = heard
        self._take: Callable[[Heard], Any] | None = take

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __iter__(self) -> Iterator[Any]:
        try:
            for event in self._stream:
                self._heard.hear(event)
                yield event
        finally:
            self._end()

    def __next__(self) -> Any:
        try:
            event = next(self._stream)
        except StopIteration:
            self._end()
            raise
        self._heard.hear(event)
        return event

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._stream.close()
        self._end()

    def _end(self) -> None:
        take, self._take = self._take, None
        if take is not None:
            take(self._heard)


class AsyncListening:
    """The same for an asynchronous stream."""

    def __init__(self, stream: Any, heard: Heard, take: Callable[[Heard], Any]) -> None:
        self._stream = stream
        self._heard = heard
        self._take: Callable[[Heard], Any] | None = take

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def __aiter__(self) -> AsyncIterator[Any]:
        try:
            async for event in self._stream:
                self._heard.hear(event)
                yield event
        finally:
            await self._end()

    async def __anext__(self) -> Any:
        try:
            event = await self._stream.__anext__()
        except StopAsyncIteration:
            await self._end()
            raise
        self._heard.hear(event)
        return event

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._stream.close()
        await self._end()

    async def _end(self) -> None:
        take, self._take = self._take, None
        if take is not None:
            await _awaited(take(self._heard))


# -- the memory's side ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeper:
    """Recalls and takes in. Nothing that goes wrong here reaches the caller."""

    memory: Memory | sync.Memory
    scope: dict[str, Any]
    recall: dict[str, Any]
    observe: bool

    def recalled(self, turn: Turn) -> Any:
        """The block for the request, now or to be awaited."""
        query = turn.said.strip()[: validation.MAX_QUERY]
        if not query:
            return ""
        return self._safely("an OpenAI call goes without memories", lambda: self.memory.context(query, **self.recall))

    def take(self, turn: Turn, answered: str) -> Any:
        said = [("user", turn.said)] if turn.new else []
        turns: list[dict[str, JsonValue]] = [
            {"role": role, "content": clean}
            for role, text in (*said, ("assistant", answered))
            if (clean := strip_context(text)).strip()
        ]
        if not self.observe or not turns:
            return None
        return self._safely(
            "a turn could not be taken into the memory", lambda: self.memory.add(turns, **self.scope, wait=False)
        )

    def _safely(self, problem: str, work: Callable[[], Any]) -> Any:
        """Whatever goes wrong with the memory is logged; the call to the model goes on without it."""
        try:
            result = work()
        except Exception:
            logger.warning(problem, exc_info=True)
            return ""
        return self._safely_later(problem, result) if inspect.isawaitable(result) else result

    async def _safely_later(self, problem: str, work: Awaitable[Any]) -> Any:
        try:
            return await work
        except Exception:
            logger.warning(problem, exc_info=True)
            return ""
