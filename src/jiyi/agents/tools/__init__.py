"""Memory tools for agents, defined once and rendered for every framework.

tools = MemoryTools(memory, user_id="mei", agent_id="planner")
reply = client.chat.completions.create(model=…, messages=messages, tools=tools.openai())
messages += await tools.answer_openai(reply.choices[0].message)
"""

import json
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import Any

from pydantic import JsonValue, ValidationError

from ... import validation
from ...engine import runtime
from ...errors import InvalidInput, JiyiError, NotFound, VersionConflict
from ...languages.words import language as language_of
from ...languages.words import normalise
from ...memory import Memory
from ...models import Value
from ...sync import Memory as SyncMemory
from ...text.fence import harmless, named
from ..chat import part
from ..recall import Conversation, await_in, engine_of
from .definitions import LANGMEM_TOOLS, TOOLS, Refused, SearchMemoryInput, Tool
from .inputs import SearchMemoriesInput, ToolInput, ToolLanguage
from .outputs import (
    MEMORY_TOOLS_SYSTEM_PROMPT,
    MEMORY_TOOLS_SYSTEM_PROMPTS,
    PHRASES,
    GetMemoryDetailOutput,
    Phrases,
    SearchMemoriesOutput,
    ToolOutput,
    WrittenMemory,
    guide,
    key_of,
    notes,
)
from .usage import ToolUsage, activity_of

__all__ = [
    "LANGMEM_TOOLS",
    "MEMORY_TOOLS_SYSTEM_PROMPT",
    "MEMORY_TOOLS_SYSTEM_PROMPTS",
    "TOOLS",
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
_MAX_SEARCHES = 16
_SEARCHES = (SearchMemoriesInput, SearchMemoryInput)
Search = SearchMemoriesInput | SearchMemoryInput


class ToolResult(Value):
    """The result of a tool call: text for a model, and the same as data."""

    text: str
    data: dict[str, JsonValue]
    is_error: bool = False


class MemoryTools:
    """The tools for one conversation of an agent with a user. The user and the scope are set here, so a model cannot
    choose them. `agent_id`, `session_id` and `group_id` mark saved memories; `private` tools see only the memories of
    their agent and group. `user_names` are names of the user in observed messages. `only` names the tools to offer.
    `language` is that of the guide, the descriptions and the results; by default it follows the words that `listen` was
    given. A call never raises because of what a model wrote. With a `jiyi.sync.Memory` there is also `call_sync`."""

    def __init__(
        self,
        memory: Memory | SyncMemory,
        *,
        user_id: str,
        agent_id: str | None = None,
        session_id: str | None = None,
        group_id: str | None = None,
        private: bool = False,
        user_names: Sequence[str] = (),
        language: ToolLanguage | None = None,
        only: Sequence[str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._memory = memory
        self.conversation = Conversation(
            memory=engine_of(memory),
            user_id=user_id,
            agent_id=agent_id,
            session_id=session_id,
            group_id=group_id,
            private=private,
            user_names=tuple(user_names),
        )
        self.language: ToolLanguage = "en"
        self._follows = language is None
        if language is not None:
            validation.choice("language", language, tuple(PHRASES))
            self.language = language
        self._tools = {tool.name: tool for tool in select_tools(only)}
        self._clock = clock
        self._activity = activity_of(self.conversation.memory, user_id, agent_id)
        self._searched: OrderedDict[str, tuple[float, list[str]]] = OrderedDict()

    @property
    def definitions(self) -> tuple[Tool, ...]:
        """Return the offered tools."""
        return tuple(self._tools.values())

    @property
    def system_prompt(self) -> str:
        """Return the guide for the model: when to search, save, update and forget."""
        return guide(self.language, self._tools)

    def listen(self, said: str) -> None:
        """Go on in the language of the user's words, unless a language was set; guide and tools are English before."""
        if self._follows and said.strip():
            self.language = "zh" if language_of(said) == "zh" else "en"

    @property
    def _phrases(self) -> Phrases:
        phrases = PHRASES[self.language]
        return phrases if self.has("get_memory_detail") else {**phrases, "details": ""}

    def has(self, name: object) -> bool:
        """Return True if a call of this name is for these tools."""
        return isinstance(name, str) and name in self._tools

    async def call(self, name: str, arguments: str | Mapping[str, Any] | None = None) -> ToolResult:
        """Run a tool. `arguments` are JSON text or an object, as the model wrote them.

        await tools.call("search_memories", '{"query": "咖啡", "limit": "3"}')
        """
        return await await_in(self._memory, self._call(name, arguments))

    def call_sync(self, name: str, arguments: str | Mapping[str, Any] | None = None) -> ToolResult:
        """Run a tool in a synchronous program, with a `jiyi.sync.Memory`."""
        if not isinstance(self._memory, SyncMemory):
            raise InvalidInput("memory", "is an asynchronous one: await call, or open a jiyi.sync.Memory")
        return self._memory._run(self._call(name, arguments))

    async def _call(self, name: str, arguments: str | Mapping[str, Any] | None) -> ToolResult:
        record, meter = self._activity, runtime(self.conversation.memory).meter
        known = name if name in self._tools else "unknown"
        record.call(known)
        wait_s = record.bucket.take(self._clock())
        if wait_s:
            record.limited += 1
            meter.count("tool_calls_total", known, "limited")
            return self._error("limited", {"seconds": ceil(wait_s)}, retry_after_s=ceil(wait_s))
        try:
            result = await self._in_time(name, arguments)
        except (Refused, JiyiError) as error:
            record.failed += 1
            meter.count("tool_calls_total", known, "failed")
            return self._refusal(error, name, _key(arguments))
        meter.count("tool_calls_total", known, "repeated" if result.data.get("repeated") else "ok")
        return result

    async def _in_time(self, name: str, arguments: str | Mapping[str, Any] | None) -> ToolResult:
        """Run a tool. One that asks a server waits no longer than a recall."""
        if not runtime(self.conversation.memory).is_remote:
            return await self._run(name, arguments)
        tool = self._tools.get(name)
        changes = tool is not None and not tool.read_only  # a refused change must not be made later
        return await self.conversation.in_time(lambda: self._run(name, arguments), probe=not changes)

    def _refusal(self, error: Refused | JiyiError, name: str, key: str) -> ToolResult:
        """Return the message about an error that a model can act on."""
        match error:
            case Refused():
                return self._error(error.phrase, error.values)
            case NotFound():
                return self._error("not_found", {"key": key})
            case VersionConflict():
                return self._error("changed_meanwhile", {"key": key})
            case InvalidInput():
                return self._error("bad_arguments", {"name": name, "problems": f"- {harmless(str(error))}"})
            case _:
                # Paths and addresses in the message are for the log, not for a model.
                logger.warning("the tool %s failed: %s", name, error)
                return self._error("unavailable", {"problem": type(error).__doc__ or type(error).__name__})

    def _error(self, phrase: str, values: Mapping[str, object], **data: JsonValue) -> ToolResult:
        text = self._phrases[phrase].format(**values)
        return ToolResult(text=text, data={"error": phrase, **data}, is_error=True)

    async def _run(self, name: str, arguments: str | Mapping[str, Any] | None) -> ToolResult:
        tool = self._tools.get(name)
        if tool is None:
            raise Refused("unknown_tool", name=named(str(name)), tools=", ".join(self._tools))
        given = self._read(tool, arguments)
        if isinstance(given, _SEARCHES):
            earlier = self._just_searched(given)
            if earlier is not None:
                self._activity.repeated += 1
                keys = ", ".join(earlier) or "0"
                return ToolResult(text=self._phrases["repeated"].format(keys=keys), data={"repeated": True})
        output: ToolOutput = await tool.run(self.conversation, given)
        self._count(given, output)
        return ToolResult(text=output.text(self._phrases, await self.conversation.fence()), data=output.data())

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
        place = named(".".join(map(str, problem["loc"]))[:100] or tool.name)
        if problem["type"] == "missing":
            return f"{place}: {self._phrases['missing']}"
        if problem["type"] == "extra_forbidden":
            taken = ", ".join(tool.input_model.model_fields)
            return f"{place}: {self._phrases['not_an_argument'].format(arguments=taken)}"
        return f"{place}: {harmless(problem['msg'])}"

    def _just_searched(self, given: Search) -> list[str] | None:
        """Return the keys that the same search found earlier in this turn, or None."""
        at, keys = self._searched.get(_fingerprint(given), (None, []))
        return keys if at is not None and self._clock() - at <= _REPEATED_WITHIN_S else None

    def _count(self, given: ToolInput, output: ToolOutput) -> None:
        record = self._activity
        if isinstance(given, _SEARCHES) and isinstance(output, SearchMemoriesOutput):
            keys = [result.memory_key for result in output.results]
            record.searches += 1
            record.searches_with_hits += any(not result.weak for result in output.results)
            record.recall(keys, asked=True)
            if not output.degraded:
                self._searched[_fingerprint(given)] = self._clock(), keys
            while len(self._searched) > _MAX_SEARCHES:
                self._searched.popitem(last=False)
        elif isinstance(output, WrittenMemory):
            self._searched.clear()  # the same search may now find something else
            record.use(output.memory_key)
        elif isinstance(output, GetMemoryDetailOutput):
            record.use(output.memory_key)

    def turn(self) -> None:
        """Begin a new turn: searches of the previous turn may be repeated."""
        self._searched.clear()
        self._activity.turn()

    def recalled(self, keys: Sequence[str]) -> None:
        """Count memories that were recalled without a tool call."""
        self._activity.recall(keys, asked=False)

    def answered(self, text: str) -> None:
        """Count recalled memories whose keys the answer cites as used."""
        self._activity.cite(text)

    def usage(self) -> ToolUsage:
        """Return the counters of this agent and user since the process started."""
        return self._activity.usage()

    def openai(self, *, strict: bool = False) -> list[dict[str, Any]]:
        """Render for `tools=` of OpenAI's Chat Completions."""
        functions = [self._function(tool, strict) for tool in self.definitions]
        if not strict:  # the default of this API, and not of Responses; each key costs prompt tokens
            functions = [{name: value for name, value in one.items() if name != "strict"} for one in functions]
        return [{"type": "function", "function": one} for one in functions]

    def openai_responses(self, *, strict: bool = False) -> list[dict[str, Any]]:
        """Render for `tools=` of OpenAI's Responses."""
        return [{"type": "function", **self._function(tool, strict)} for tool in self.definitions]

    def _function(self, tool: Tool, strict: bool) -> dict[str, Any]:
        return {
            "name": tool.name,
            "description": tool.description[self.language],
            "parameters": tool.schema(self.language, strict=strict),
            "strict": strict,
        }

    def anthropic(self) -> list[dict[str, Any]]:
        """Render for `tools=` of Anthropic's Messages."""
        return [
            {"name": name, "description": tool.description[self.language], "input_schema": tool.schema(self.language)}
            for name, tool in self._tools.items()
        ]

    async def answer_openai(self, message: Any) -> list[dict[str, Any]]:
        """Run the calls in an assistant message of Chat Completions; return the messages to append."""
        answers = []
        for call in part(message, "tool_calls") or ():
            function = part(call, "function")
            if function is not None and self.has(part(function, "name")):
                result = await self.call(part(function, "name"), part(function, "arguments"))
                answers.append({"role": "tool", "tool_call_id": part(call, "id"), "content": result.text})
        return answers

    async def answer_openai_responses(self, response: Any) -> list[dict[str, Any]]:
        """Run the calls in a response; return the `input` of the next request."""
        answers = []
        for item in response if isinstance(response, list) else part(response, "output") or ():
            if part(item, "type") == "function_call" and self.has(part(item, "name")):
                result = await self.call(part(item, "name"), part(item, "arguments"))
                answers.append(
                    {"type": "function_call_output", "call_id": part(item, "call_id"), "output": result.text}
                )
        return answers

    async def answer_anthropic(self, message: Any) -> list[dict[str, Any]]:
        """Run the calls in a message of Anthropic's; return the `content` of the next user message."""
        answers = []
        for block in message if isinstance(message, list) else part(message, "content") or ():
            if part(block, "type") == "tool_use" and self.has(part(block, "name")):
                result = await self.call(part(block, "name"), part(block, "input"))
                answer = {"type": "tool_result", "tool_use_id": part(block, "id"), "content": result.text}
                answers.append({**answer, "is_error": result.is_error})
        return answers


def select_tools(only: Sequence[str] | None) -> tuple[Tool, ...]:
    if only is None:
        return TOOLS
    known = {tool.name: tool for tool in (*TOOLS, *LANGMEM_TOOLS)}
    return tuple(known[validation.choice("only", name, tuple(known))] for name in validation.names("only", only))


def _fingerprint(given: Search) -> str:
    return given.model_copy(update={"query": normalise(given.query).strip(" ?!.。")}).model_dump_json()


def _key(arguments: str | Mapping[str, Any] | None) -> str:
    """Return the key in the arguments of a call, for error messages."""
    try:
        given = json.loads(arguments) if isinstance(arguments, str) else arguments or {}
    except (ValueError, RecursionError):
        return "?"
    if not isinstance(given, Mapping):
        return "?"
    names = ("memory_key", "id", "memory_id", "key")
    return next((named(str(given[name])[:100]) for name in names if given.get(name)), "?")
