"""An OpenAI client that remembers: it adds recalled memories to each request and stores each turn.

    client = remember(AsyncOpenAI(), memory, user_id="mei")
    reply = await client.chat.completions.create(model="…", messages=[{"role": "user", "content": "晚饭吃什么？"}])

Everything else is the client's own. A failing memory is logged and never breaks a call.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar, cast

from pydantic import ValidationError

from .. import sync, validation
from ..areas.recalls import MAX_TOKENS
from ..errors import InvalidInput
from ..memory import Memory
from ..models import Message
from ..read.context import Style
from .chat import part, text_of_reply, with_text
from .recall import Conversation, engine_of

logger = logging.getLogger(__name__)

C = TypeVar("C")

_METHODS = ("create", "parse")
_STREAM = "stream"  # returns a context manager with events
_CALLED = (("chat", "completions"), ("responses",))
_RAW = "with_raw_response"  # langchain-openai calls it
_COPIES = ("with_options", "copy")


def remember(
    client: C,
    memory: Memory | sync.Memory,
    *,
    user_id: str,
    session_id: str | None = None,
    agent_id: str | None = None,
    group_id: str | None = None,
    max_tokens: int = MAX_TOKENS,
    style: Style = "sections",
    observe: bool = True,
    user_names: Sequence[str] = (),
) -> C:
    """Wrap a client: `OpenAI` with a `jiyi.sync.Memory`, `AsyncOpenAI` with a `jiyi.Memory`. `create`, `parse` and
    `stream` of `chat.completions` and `responses` recall and store. With `observe=False` they only recall.
    `user_names`: names of the user in the messages."""
    is_async = any(kind.__name__.startswith("Async") for kind in type(client).__mro__)
    if is_async == isinstance(memory, sync.Memory):
        wanted = "jiyi.Memory" if is_async else "jiyi.sync.Memory"
        raise InvalidInput("memory", f"must be a {wanted} for {type(client).__name__}")
    conversation = Conversation(
        memory=engine_of(memory),
        user_id=user_id,
        agent_id=agent_id,
        session_id=session_id,
        group_id=group_id,
        user_names=tuple(user_names),
    )
    validation.whole("max_tokens", max_tokens, highest=1_000_000)
    return cast(C, RememberingClient(client, memory, Turns(conversation, max_tokens, style, observe)))


class RememberingClient:
    """A client, or a part of one, whose chat calls go through a memory."""

    def __init__(self, target: Any, memory: Memory | sync.Memory, turns: Turns, path: tuple[str, ...] = ()) -> None:
        self._target = target
        self._memory = memory
        self._turns = turns
        self._path = path

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        path = (*self._path, name)
        if path in (("chat",), *_CALLED) or (self._path in _CALLED and name == _RAW):
            return RememberingClient(found, self._memory, self._turns, path)
        if self._path in _CALLED and name == "with_streaming_response":
            logger.warning("calls of with_streaming_response neither recall nor store: use create")
        if (self._path in _CALLED or self._path[-1:] == (_RAW,)) and name in (*_METHODS, _STREAM):
            if name == _STREAM:
                return self._streamed(found)
            return self._sync_call(found) if isinstance(self._memory, sync.Memory) else self._async_call(found)
        if not self._path and name in _COPIES:
            return lambda *args, **kwargs: RememberingClient(found(*args, **kwargs), self._memory, self._turns)
        return found

    def _async_call(self, method: Callable[..., Any]) -> Callable[..., Any]:
        turns, is_chat = self._turns, self._path[0] == "chat"

        async def call(**request: Any) -> Any:
            turn = turn_of(request, is_chat)
            reply = await method(**with_block(request, await turns.block(turn), is_chat))
            if request.get("stream") and not hasattr(reply, "parse"):
                return AsyncStream(reply, lambda text: turns.store(turn, text))
            await turns.store(turn, "" if request.get("stream") else _text(reply))
            return reply

        return call

    def _sync_call(self, method: Callable[..., Any]) -> Callable[..., Any]:
        turns, is_chat = self._turns, self._path[0] == "chat"
        run = cast(sync.Memory, self._memory)._run

        def call(**request: Any) -> Any:
            turn = turn_of(request, is_chat)
            reply = method(**with_block(request, run(turns.block(turn)), is_chat))
            if request.get("stream") and not hasattr(reply, "parse"):
                return Stream(reply, lambda text: run(turns.store(turn, text)))
            run(turns.store(turn, "" if request.get("stream") else _text(reply)))
            return reply

        return call

    def _streamed(self, method: Callable[..., Any]) -> Callable[..., Any]:
        turns, is_chat, memory = self._turns, self._path[0] == "chat", self._memory

        def call(**request: Any) -> Any:
            if "response_id" in request:  # an earlier response is streamed again
                return method(**request)
            turn = turn_of(request, is_chat)
            kind = StreamManager if isinstance(memory, sync.Memory) else AsyncStreamManager
            return kind(memory, turns, turn, lambda block: method(**with_block(request, block, is_chat)))

        return call

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


@dataclass(frozen=True, slots=True)
class Turn:
    """The user's last message; `new` unless an earlier request had it and this one brings results of tools."""

    said: str
    new: bool


@dataclass(frozen=True, slots=True)
class Turns:
    """Recalls for turns and stores them."""

    conversation: Conversation
    max_tokens: int
    style: Style
    observe: bool
    kept: dict[str, str] = field(default_factory=dict)  # the block of the last turn, by the user's words

    async def block(self, turn: Turn) -> str:
        """Recall for a turn; requests with results of tools keep the block of their turn."""
        if turn.new or turn.said not in self.kept:
            found = await self.conversation.recall(turn.said, max_tokens=self.max_tokens, style=self.style)
            self.kept.clear()
            self.kept[turn.said] = found.block
        return self.kept[turn.said]

    async def store(self, turn: Turn, answer: str) -> None:
        said = [("user", turn.said)] if turn.new else []
        messages = (Message(role=role, text=text) for role, text in (*said, ("assistant", answer)) if text.strip())
        if self.observe:
            await self.conversation.observe(messages)


def turn_of(request: Mapping[str, Any], is_chat: bool) -> Turn:
    """Return the turn of a request of Chat Completions or Responses."""
    given = request.get("messages" if is_chat else "input")
    if isinstance(given, str) and not is_chat:
        return Turn(given, new=True)
    messages = list(given) if isinstance(given, (list, tuple)) else []
    last = next((one for one in reversed(messages) if part(one, "role") == "user"), None)
    try:
        said = Message.model_validate({"content": part(last, "content"), "role": "user"}).text
    except ValidationError:
        return Turn("", new=False)
    return Turn(said, new=last is messages[-1])


def with_block(request: dict[str, Any], block: str, is_chat: bool) -> dict[str, Any]:
    """Add recalled memories to the user's last message; all before it stays as it is."""
    name, kind = ("messages", "text") if is_chat else ("input", "input_text")
    given = request.get(name)
    if isinstance(given, str) and block:
        return {**request, name: with_text(given, block)}
    messages = list(given) if isinstance(given, (list, tuple)) else []
    at = next((at for at in reversed(range(len(messages))) if part(messages[at], "role") == "user"), None)
    if at is None or not block:
        return request
    last = messages[at]
    fields = dict(last) if isinstance(last, Mapping) else {"role": "user"}
    messages[at] = {**fields, "content": with_text(part(last, "content"), block, kind)}
    return {**request, name: messages}


def _text(reply: Any) -> str:
    parse = getattr(reply, "parse", None)
    try:
        return text_of_reply(parse() if callable(parse) else reply)  # a raw response is parsed
    except InvalidInput:  # a reply without text
        return ""


def text_of_event(event: Any) -> str:
    """Return the text that an event of a stream adds to the answer."""
    if part(event, "type") in ("response.output_text.delta", "content.delta"):
        piece = part(event, "delta")
    else:
        choices = part(event, "choices")
        piece = part(part(choices[0], "delta"), "content") if choices else None
    return piece if isinstance(piece, str) else ""


class Collector:
    """Collects the text of a stream and hands it to `store` once, when the stream ends or is closed."""

    def __init__(self, stream: Any, store: Callable[[str], Any]) -> None:
        self._stream = stream
        self._store: Callable[[str], Any] | None = store
        self._parts: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _collect(self, event: Any) -> Any:
        self._parts.append(text_of_event(event))
        return event

    def _finish(self) -> Any:
        store, self._store = self._store, None
        return store("".join(self._parts)) if store else None


class Stream(Collector):
    def __iter__(self) -> Iterator[Any]:
        try:
            for event in self._stream:
                yield self._collect(event)
        finally:
            self._finish()

    def __next__(self) -> Any:
        try:
            return self._collect(next(self._stream))
        except StopIteration:
            self._finish()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._stream.close()
        self._finish()


class AsyncStream(Collector):
    async def __aiter__(self) -> AsyncIterator[Any]:
        try:
            async for event in self._stream:
                yield self._collect(event)
        finally:
            await self._finish_async()

    async def __anext__(self) -> Any:
        try:
            return self._collect(await self._stream.__anext__())
        except StopAsyncIteration:
            await self._finish_async()
            raise

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._stream.close()
        await self._finish_async()

    async def _finish_async(self) -> None:
        storing = self._finish()
        if inspect.isawaitable(storing):
            await storing


class StreamManager:
    """The context manager of `stream()`: it recalls when it is entered, and stores the turn when it is left."""

    def __init__(self, memory: Any, turns: Turns, turn: Turn, begin: Callable[[str], Any]) -> None:
        self._memory = memory
        self._turns = turns
        self._turn = turn
        self._begin = begin
        self._stream: Any = None

    def __enter__(self) -> Any:
        run = self._memory._run
        self._manager = self._begin(run(self._turns.block(self._turn)))
        self._stream = EventStream(self._manager.__enter__(), lambda text: run(self._turns.store(self._turn, text)))
        return self._stream

    def __exit__(self, *error: Any) -> None:
        self._stream._finish()
        self._manager.__exit__(*error)


class AsyncStreamManager(StreamManager):
    async def __aenter__(self) -> Any:
        self._manager = self._begin(await self._turns.block(self._turn))
        stream = await self._manager.__aenter__()
        self._stream = AsyncEventStream(stream, lambda text: self._turns.store(self._turn, text))
        return self._stream

    async def __aexit__(self, *error: Any) -> None:
        await self._stream._finish_async()
        await self._manager.__aexit__(*error)


class EventStream(Stream):
    """A stream with the methods of `stream()`, which read it to its end."""

    def until_done(self) -> Self:
        for _ in self:
            pass
        return self

    def get_final_completion(self) -> Any:
        return self.until_done()._stream.get_final_completion()

    def get_final_response(self) -> Any:
        return self.until_done()._stream.get_final_response()


class AsyncEventStream(AsyncStream):
    async def until_done(self) -> Self:
        async for _ in self:
            pass
        return self

    async def get_final_completion(self) -> Any:
        return await (await self.until_done())._stream.get_final_completion()

    async def get_final_response(self) -> Any:
        return await (await self.until_done())._stream.get_final_response()
