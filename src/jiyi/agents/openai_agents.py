"""Adapter for the OpenAI Agents SDK: a session, recall before each model call, and the memory tools.

from jiyi.agents.openai_agents import JiyiSession, function_tools, recall

session = JiyiSession("monday", memory, user_id="mei")
result = await Runner.run(agent, "我对花生过敏", session=session)
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from typing import Any

from .. import sync, validation
from ..areas.recalls import MAX_TOKENS
from ..areas.sessions import LAST_PAUSE_S, RETRY_PAUSES_S
from ..engine import runtime
from ..errors import ConnectionLost, JiyiError, MissingExtra, StoreError, StoreUnavailable
from ..ids import new_id
from ..memory import Memory
from ..models import CandidateMemory, MemoryItem
from ..read.context import Style
from ..text.fence import strip_context
from .chat import with_text
from .recall import Conversation, await_in, engine_of
from .tools import MemoryTools

try:
    from agents import FunctionTool
    from agents.items import TResponseInputItem
    from agents.memory import SessionSettings
    from agents.run_config import CallModelData, ModelInputData
    from agents.tool_context import ToolContext
except ImportError as error:
    raise MissingExtra("openai-agents", "openai-agents") from error

ITEM = "session_item"  # memory type of a session item
METADATA = "openai_agents"  # metadata key that holds the item
ACTOR = "openai-agents"
ROLES = ("user", "assistant")
PAGE = 200
KeyedItems = list[tuple[str, TResponseInputItem]]

logger = logging.getLogger(__name__)


class JiyiSession:
    """A session of the Agents SDK. Its items are stored verbatim as archived memories: no search finds them, and
    `delete_all` removes them. Messages in them become ordinary memories of the user as well, which other sessions
    find."""

    def __init__(
        self,
        session_id: str,
        memory: Memory | sync.Memory,
        *,
        user_id: str,
        agent_id: str | None = None,
        group_id: str | None = None,
        remember: Sequence[str] = ROLES,
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.session_id = validation.name("session_id", session_id)
        self.session_settings = session_settings
        self._memory = memory
        self._engine = engine_of(memory)
        self._user_id = validation.name("user_id", user_id)
        self._conversation = Conversation(memory=self._engine, user_id=user_id)
        self._known: list[TResponseInputItem] = []  # used while a server is away
        self._unsaved: list[KeyedItems] = []  # on the way to a server
        self._saving: asyncio.Task[None] | None = None
        self._scope: dict[str, Any] = {
            "user_id": user_id,
            "session_id": session_id,
            "agent_id": validation.optional_name("agent_id", agent_id),
            "group_id": validation.optional_name("group_id", group_id),
        }
        self._remember = tuple(validation.choice("remember", role, ROLES) for role in remember)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the items in order of time; with a limit, the latest ones. While a server is away, these are the items
        that this object has seen."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        return deepcopy(await await_in(self._memory, self._items(limit)))

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Store the items, all or none, then remember their messages. What a server does not take in time is sent again
        in the background."""
        if items:
            await await_in(self._memory, self._add(items))

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove and return the latest item, with the memories derived from it alone."""
        return await await_in(self._memory, self._pop())

    async def clear_session(self) -> None:
        """Remove all items; the memories derived from them stay."""
        await await_in(self._memory, self._clear())

    async def _items(self, limit: int | None) -> list[TResponseInputItem]:
        if not runtime(self._engine).is_remote:
            return [_item(memory) for memory in reversed(await self._latest(limit))]
        try:
            found = await self._conversation.in_time(lambda: self._latest(limit))
        except StoreError as error:
            logger.warning("the items of a session could not be read, those of this process are used: %s", error)
            items = self._known
        else:
            stored = {_key(memory) for memory in found}
            on_the_way = [item for batch in self._unsaved for key, item in batch if key not in stored]
            items = [*(_item(memory) for memory in reversed(found)), *on_the_way]
            if limit is None:
                self._known = list(items)
        return items if limit is None else items[max(0, len(items) - limit) :]

    async def _latest(self, limit: int | None) -> list[MemoryItem]:
        """Return stored items, newest first."""
        found: list[MemoryItem] = []
        cursor = None
        while limit is None or len(found) < limit:
            page = await self._engine.list(
                **self._scope,
                memory_types=[ITEM],
                status="archived",
                limit=PAGE if limit is None else min(PAGE, limit - len(found)),
                cursor=cursor,
            )
            found.extend(page.items)
            cursor = page.next_cursor
            if cursor is None:
                break
        return found

    async def _add(self, items: Sequence[TResponseInputItem]) -> None:
        batch = [(new_id(), deepcopy(item)) for item in items]
        if not runtime(self._engine).is_remote:
            await self._save(batch)
            return
        _candidates(batch)  # raises what is wrong with them
        self._known += [item for _, item in batch]
        self._unsaved.append(batch)
        if self._saving is None or self._saving.done():
            self._saving = asyncio.create_task(self._save_all())
        saving = self._saving
        with suppress(StoreError):
            await self._conversation.in_time(lambda: _until(saving))

    async def _save_all(self) -> None:
        """Send what is on the way, until the server takes it."""
        pauses = iter(RETRY_PAUSES_S)
        while self._unsaved:
            try:
                await self._save(self._unsaved[0])
            except (StoreUnavailable, ConnectionLost) as error:
                pause = next(pauses, LAST_PAUSE_S)
                logger.warning("items of a session are sent again in %s s: %s", pause, error)
                await asyncio.sleep(pause)
                continue
            except JiyiError as error:
                logger.warning("items of a session were not stored: %s", error)
            self._unsaved.pop(0)

    async def _save(self, batch: KeyedItems) -> None:
        await self._engine.add(_candidates(batch), **self._scope, actor=ACTOR, idempotency_key=batch[0][0])
        said = [
            {"role": role, "content": text, "id": key}
            for key, item in batch
            for role, text in [_message(item)]
            if role in self._remember and text
        ]
        if said:
            await self._engine.sessions.observe(said, **self._scope)

    async def _pop(self) -> TResponseInputItem | None:
        latest = await self._latest(1)
        if not latest:
            return None
        await self._engine.sessions.flush(user_id=self._user_id)
        key = _key(latest[0])
        await self._engine.delete(latest[0].id, user_id=self._user_id)
        cursor = None
        while True:  # newest first, so the first page usually has its message
            page = await self._engine.list(
                user_id=self._user_id,
                session_id=self.session_id,
                memory_types=["message"],
                limit=PAGE,
                cursor=cursor,
            )
            for memory in page.items:
                if memory.source_ids == (key,):
                    await self._engine.delete(memory.id, user_id=self._user_id, with_sources=True)
            cursor = page.next_cursor
            if cursor is None or (page.items and page.items[-1].created_at < latest[0].created_at):
                return _item(latest[0])

    async def _clear(self) -> None:
        for memory in await self._latest(None):
            await self._engine.delete(memory.id, user_id=self._user_id)


def _candidate(item: TResponseInputItem, key: str) -> CandidateMemory:
    value = validation.json_object("items", item)
    label = value.get("type") or value.get("role") or "item"
    return CandidateMemory(
        content=f"session item: {label}",
        memory_type=ITEM,
        memory_key=f"{ITEM}:{key}",
        status="archived",
        metadata={METADATA: {"key": key, "item": value}},
    )


def _candidates(batch: KeyedItems) -> list[CandidateMemory]:
    return [_candidate(item, key) for key, item in batch]


async def _until(task: asyncio.Task[None]) -> None:
    await asyncio.wait({task})


def _key(memory: MemoryItem) -> str:
    return str(memory.metadata[METADATA]["key"])  # type: ignore[index, call-overload]


def _item(memory: MemoryItem) -> TResponseInputItem:
    return memory.metadata[METADATA]["item"]  # type: ignore[index, call-overload, return-value]


def _message(item: TResponseInputItem) -> tuple[str | None, str]:
    """Return role and text of a message item, without recalled blocks; other items have no text."""
    parts: Mapping[str, Any] = item
    content = parts.get("content")
    if parts.get("type", "message") != "message" or not content or not isinstance(content, (str, list)):
        return None, ""
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, Mapping)]
        content = "\n".join(text for text in texts if isinstance(text, str))
    return parts.get("role"), strip_context(content).strip()[: validation.MAX_TEXT]


def recall(
    memory: Memory | sync.Memory,
    *,
    user_id: str,
    session_id: str | None = None,
    max_tokens: int = MAX_TOKENS,
    style: Style = "sections",
) -> Callable[[CallModelData[Any]], Awaitable[ModelInputData]]:
    """Make a filter for `RunConfig(call_model_input_filter=…)` that recalls before each model call. The memories for
    the user's last message are appended to it in that call only, so they never pile up. Messages of
    `session_id` are left out: its history is in the input already."""
    conversation = Conversation(memory=engine_of(memory), user_id=user_id, session_id=session_id)

    async def with_memories(data: CallModelData[Any]) -> ModelInputData:
        said = [text for role, text in map(_message, data.model_data.input) if role == "user" and text]
        if not said:
            return data.model_data
        recalled = await await_in(memory, conversation.recall(said[-1], max_tokens=max_tokens, style=style))
        if not recalled.block:
            return data.model_data
        items: list[Any] = list(data.model_data.input)
        at = max(at for at, item in enumerate(items) if _message(item)[0] == "user")
        items[at] = {**items[at], "content": with_text(items[at]["content"], recalled.block, "input_text")}
        return replace(data.model_data, input=items)

    return with_memories


def function_tools(tools: MemoryTools) -> list[FunctionTool]:
    """Return the memory tools for `Agent(tools=…)`; a model cannot choose the user."""
    return [_function_tool(tools, shape) for shape in tools.openai_responses(strict=True)]


def _function_tool(tools: MemoryTools, shape: Mapping[str, Any]) -> FunctionTool:
    async def invoke(_: ToolContext[Any], arguments: str) -> str:
        return (await tools.call(shape["name"], arguments)).text

    return FunctionTool(
        name=shape["name"],
        description=shape["description"],
        params_json_schema=shape["parameters"],
        on_invoke_tool=invoke,
        strict_json_schema=True,
    )
