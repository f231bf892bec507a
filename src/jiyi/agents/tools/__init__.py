"""Tools by which an agent uses its memory. They are defined once and rendered for every kind of agent.

tools = MemoryTools(memory, user_id="mei", agent_id="planner")
reply = client.chat.completions.create(model=…, messages=messages, tools=tools.openai())
messages += await tools.answer_openai(reply.choices[0].message)
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import Any

from pydantic import JsonValue, ValidationError

from ... import validation
from ...errors import InvalidInput, JiyiError, NotFound, VersionConflict
from ...languages.normalise import normalise
from ...memory import Memory
from ...models import Value
from ...sync import Memory as SyncMemory
from ...text.fence import harmless
from . import formats
from .activity import ToolUsage, activity_of
from .definitions import TOOLS, Tool
from .functions import Bound, Refused
from .guide import MEMORY_TOOLS_SYSTEM_PROMPT, MEMORY_TOOLS_SYSTEM_PROMPTS
from .inputs import SearchMemoriesInput, ToolInput
from .langmem import LANGMEM_TOOLS, SearchMemoryInput
from .outputs import GetMemoryDetailOutput, SearchMemoriesOutput, WrittenMemory, key_of
from .schema import ToolLanguage
from .telling import PHRASES, notes

__all__ = [
    "LANGMEM_TOOLS",
    "MEMORY_TOOLS_SYSTEM_PROMPT",
    "MEMORY_TOOLS_SYSTEM_PROMPTS",
    "TOOLS",
    "Bound",
    "MemoryTools",
    "Tool",
    "ToolLanguage",
    "ToolResult",
    "ToolUsage",
    "key_of",
    "notes",
]

logger = logging.getLogger(__name__)

_REPEATED_WITHIN_S = 60.0
_REMEMBERED_SEARCHES = 16
_SEARCHES = (SearchMemoriesInput, SearchMemoryInput)
Search = SearchMemoriesInput | SearchMemoryInput


class ToolResult(Value):
    """What a tool call gave: text for a model, the same as data, and whether it is an error."""

    text: str
    data: dict[str, JsonValue]
    is_error: bool = False


class MemoryTools:
    """The tools of one conversation of one agent with one user.

    The user and the scope are bound here and are no arguments of the tools, so a model cannot choose them. `agent_id`,
    `session_id` and `group_id` mark what is saved; with `private`, the tools also see only what the agent and the group
    have. `only` names the tools to offer. A call never raises because of what a model wrote. `memory` may be a
    `jiyi.sync.Memory`; then there is `call_sync` too.
    """

    def __init__(
        self,
        memory: Memory | SyncMemory,
        *,
        user_id: str,
        agent_id: str | None = None,
        session_id: str | None = None,
        group_id: str | None = None,
        private: bool = False,
        language: ToolLanguage = "en",
        only: Sequence[str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if private and agent_id is None and group_id is None:
            raise InvalidInput("private", "needs an agent_id or a group_id whose memories it is limited to")
        engine = memory._memory if isinstance(memory, SyncMemory) else memory
        self._thread = memory if isinstance(memory, SyncMemory) else None
        self.bound = Bound(
            memory=engine,
            user_id=validation.name("user_id", user_id),
            agent_id=validation.optional_name("agent_id", agent_id),
            session_id=validation.optional_name("session_id", session_id),
            group_id=validation.optional_name("group_id", group_id),
            private=private,
        )
        validation.choice("language", language, tuple(PHRASES))
        self.language: ToolLanguage = language
        self._phrases = PHRASES[language]
        self._tools = {tool.name: tool for tool in chosen(only)}
        self._clock = clock
        self._activity = activity_of(engine, user_id, agent_id)
        self._searched: OrderedDict[str, tuple[float, list[str]]] = OrderedDict()

    @property
    def definitions(self) -> tuple[Tool, ...]:
        """The tools that are offered."""
        return tuple(self._tools.values())

    @property
    def system_prompt(self) -> str:
        """The guide that tells a model how to use the tools."""
        return MEMORY_TOOLS_SYSTEM_PROMPTS[self.language]

    def has(self, name: object) -> bool:
        """Whether a call of this name is for these tools."""
        return isinstance(name, str) and name in self._tools

    # -- calling ------------------------------------------------------------------------------------------------------

    async def call(self, name: str, arguments: str | Mapping[str, Any] | None = None) -> ToolResult:
        """Run a tool with the arguments as a model wrote them, JSON text or an object.

        await tools.call("search_memories", '{"query": "咖啡", "limit": "3"}')
        """
        if self._thread is not None:  # the engine lives there
            return await asyncio.wrap_future(self._thread._begin(self._call(name, arguments)))
        return await self._call(name, arguments)

    def call_sync(self, name: str, arguments: str | Mapping[str, Any] | None = None) -> ToolResult:
        """The same for synchronous programs, with a `jiyi.sync.Memory`."""
        if self._thread is None:
            raise InvalidInput("memory", "is an asynchronous one: await call, or open a jiyi.sync.Memory")
        return self._thread._run(self._call(name, arguments))

    async def _call(self, name: str, arguments: str | Mapping[str, Any] | None) -> ToolResult:
        record, meter = self._activity, self.bound.memory.meter
        known = name if name in self._tools else "unknown"
        record.call(known)
        wait_s = record.bucket.take(self._clock())
        if wait_s:
            record.limited += 1
            meter.count("tool_calls_total", known, "limited")
            return self._told("limited", {"seconds": ceil(wait_s)}, retry_after_s=ceil(wait_s))
        try:
            result = await self._run(name, arguments)
        except (Refused, JiyiError) as error:
            record.failed += 1
            meter.count("tool_calls_total", known, "failed")
            return self._refusal(error, name, _key(arguments))
        meter.count("tool_calls_total", known, "repeated" if result.data.get("repeated") else "ok")
        return result

    def _refusal(self, error: Refused | JiyiError, name: str, key: str) -> ToolResult:
        """An error in words that a model can act on."""
        match error:
            case Refused():
                return self._told(error.phrase, error.values)
            case NotFound():
                return self._told("not_found", {"key": key})
            case VersionConflict():
                return self._told("changed_meanwhile", {"key": key})
            case InvalidInput():
                return self._told("bad_arguments", {"name": name, "problems": f"- {harmless(str(error))}"})
            case _:
                # What is wrong with the house, with its paths and addresses, is for the log and not for a model.
                logger.warning("the tool %s failed: %s", name, error)
                return self._told("unavailable", {"problem": type(error).__doc__ or type(error).__name__})

    def _told(self, phrase: str, values: Mapping[str, object], **data: JsonValue) -> ToolResult:
        text: str = getattr(self._phrases, phrase).format(**values)
        return ToolResult(text=text, data={"error": phrase, **data}, is_error=True)

    async def _run(self, name: str, arguments: str | Mapping[str, Any] | None) -> ToolResult:
        tool = self._tools.get(name)
        if tool is None:
            raise Refused("unknown_tool", name=harmless(str(name)), tools=", ".join(self._tools))
        given = self._read(tool, arguments)
        if isinstance(given, _SEARCHES):
            earlier = self._just_searched(given)
            if earlier is not None:
                self._activity.repeated += 1
                keys = ", ".join(earlier) or "0"
                return ToolResult(text=self._phrases.repeated.format(keys=keys), data={"repeated": True})
        output: Value = await tool.run(self.bound, given)
        self._note(given, output)
        return ToolResult(text=tool.tell(output, self._phrases), data=output.model_dump(mode="json"))

    def _read(self, tool: Tool, arguments: str | Mapping[str, Any] | None) -> ToolInput:
        try:
            given = json.loads(arguments or "{}") if isinstance(arguments, (str, type(None))) else arguments
        except (ValueError, RecursionError) as error:
            raise Refused("bad_json", name=tool.name, problem=harmless(str(error))) from None
        if not isinstance(given, Mapping):
            raise Refused("bad_json", name=tool.name, problem=type(given).__name__)
        try:
            return tool.input_model.model_validate(dict(given))
        except ValidationError as error:
            problems = "\n".join(f"- {self._problem(tool, problem)}" for problem in error.errors())
            raise Refused("bad_arguments", name=tool.name, problems=problems) from None

    def _problem(self, tool: Tool, problem: Any) -> str:
        place = harmless(".".join(map(str, problem["loc"]))[:100]) or tool.name
        if problem["type"] == "missing":
            return f"{place}: {self._phrases.missing}"
        if problem["type"] == "extra_forbidden":
            taken = ", ".join(tool.input_model.model_fields)
            return f"{place}: {self._phrases.not_an_argument.format(arguments=taken)}"
        return f"{place}: {harmless(problem['msg'])}"

    # -- searching in a loop ------------------------------------------------------------------------------------------

    def _just_searched(self, given: Search) -> list[str] | None:
        """The keys that the same search gave a moment ago, in this turn."""
        at, keys = self._searched.get(_fingerprint(given), (None, []))
        return keys if at is not None and self._clock() - at <= _REPEATED_WITHIN_S else None

    def _note(self, given: ToolInput, output: Value) -> None:
        record = self._activity
        if isinstance(given, _SEARCHES) and isinstance(output, SearchMemoriesOutput):
            keys = [result.memory_key for result in output.results]
            record.searches += 1
            record.searches_with_hits += bool(keys)
            record.recall(keys, asked=True)
            if not output.degraded:
                self._searched[_fingerprint(given)] = self._clock(), keys
            while len(self._searched) > _REMEMBERED_SEARCHES:
                self._searched.popitem(last=False)
        elif isinstance(output, WrittenMemory):
            self._searched.clear()  # the same search may find something else now
            record.use(output.memory_key)
        elif isinstance(output, GetMemoryDetailOutput):
            record.use(output.memory_key)

    # -- counting -----------------------------------------------------------------------------------------------------

    def turn(self) -> None:
        """A new turn of the conversation begins: searches of the turn before may be repeated."""
        self._searched.clear()
        self._activity.turn()

    def recalled(self, keys: Sequence[str]) -> None:
        """These memories were given to the model without its asking."""
        self._activity.recall(keys, asked=False)

    def answered(self, text: str) -> None:
        """The model's answer: recalled memories whose keys it cites count as used."""
        self._activity.cite(text)

    def usage(self) -> ToolUsage:
        """How this agent has used its tools for this user, since the process began."""
        return self._activity.usage()

    # -- rendering ----------------------------------------------------------------------------------------------------

    def openai(self, *, strict: bool = False) -> list[dict[str, Any]]:
        """For `tools=` of OpenAI's Chat Completions."""
        return [formats.openai_chat(tool, self.language, strict=strict) for tool in self.definitions]

    def openai_responses(self, *, strict: bool = False) -> list[dict[str, Any]]:
        """For `tools=` of OpenAI's Responses."""
        return [formats.openai_responses(tool, self.language, strict=strict) for tool in self.definitions]

    def anthropic(self) -> list[dict[str, Any]]:
        """For `tools=` of Anthropic's Messages."""
        return [formats.anthropic(tool, self.language) for tool in self.definitions]

    async def answer_openai(self, message: Any) -> list[dict[str, Any]]:
        """Run the calls in an assistant message of Chat Completions; append what comes back to the messages."""
        return await formats.answer_openai_chat(self, message)

    async def answer_openai_responses(self, response: Any) -> list[dict[str, Any]]:
        """Run the calls in a response; what comes back is `input` of the next request."""
        return await formats.answer_openai_responses(self, response)

    async def answer_anthropic(self, message: Any) -> list[dict[str, Any]]:
        """Run the calls in a message of Anthropic's; what comes back is the `content` of the next user message."""
        return await formats.answer_anthropic(self, message)


def chosen(only: Sequence[str] | None) -> tuple[Tool, ...]:
    if only is None:
        return TOOLS
    known = {tool.name: tool for tool in (*TOOLS, *LANGMEM_TOOLS)}
    return tuple(known[validation.choice("only", name, tuple(known))] for name in validation.names("only", only))


def _fingerprint(given: Search) -> str:
    return given.model_copy(update={"query": normalise(given.query).strip(" ?!.。")}).model_dump_json()


def _key(arguments: str | Mapping[str, Any] | None) -> str:
    """The key that a call names, to tell a model which one is meant."""
    try:
        given = json.loads(arguments) if isinstance(arguments, str) else arguments or {}
    except (ValueError, RecursionError):
        return "?"
    if not isinstance(given, Mapping):
        return "?"
    names = ("memory_key", "id", "memory_id", "key")
    return next((harmless(str(given[name])[:100]) for name in names if given.get(name)), "?")
