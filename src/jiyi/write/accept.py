"""The first stage of `add`: whatever the caller hands in becomes checked messages or candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError

from .. import validation
from ..errors import InvalidInput
from ..models import SENT_AT_ALIASES, CandidateMemory, Message, Value

INSTRUCTIONS = frozenset({"system", "developer"})  # roles of what an agent is told; no memory of a user
MESSAGE_KEYS = frozenset({"role", "content", "speaker", "name", "sent_at", *SENT_AT_ALIASES})

V = TypeVar("V", bound=Value)

Statement = str | CandidateMemory | Mapping[str, Any]
Said = Message | Mapping[str, Any]
What = Statement | Said | Sequence[Statement] | Sequence[Said]


@dataclass(frozen=True, slots=True)
class Accepted:
    """Validated input of `add`: either messages or candidates."""

    messages: tuple[Message, ...]
    candidates: tuple[CandidateMemory, ...]
    problems: tuple[str, ...]


def accept(what: What) -> Accepted:
    """Check everything before anything is stored."""
    entries: Sequence[Any] = (what,) if isinstance(what, (str, Value, Mapping)) else what
    if not isinstance(entries, Sequence):
        raise InvalidInput("what", f"must be text, a message, a candidate or a list of them, not {type(what).__name__}")
    if not entries:
        raise InvalidInput("what", "is an empty list")
    messages: list[Message] = []
    candidates: list[CandidateMemory] = []
    problems: list[str] = []
    for at, entry in enumerate(entries):
        argument = "what" if entries is not what else f"what[{at}]"
        if _only_calls_tools(entry):
            problems.append(f"{argument} has no text and was left out")
            continue
        value = _value(argument, entry)
        if isinstance(value, Message):
            if value.role in INSTRUCTIONS:
                problems.append(f"{argument} is a {value.role} message: it is kept, but is no memory")
            messages.append(value)
        else:
            candidates.append(value)
    if messages and candidates:
        raise InvalidInput("what", "mixes messages with statements; add them one after the other")
    if not messages and not candidates:
        raise InvalidInput("what", "has no text")
    return Accepted(tuple(messages), tuple(candidates), tuple(problems))


def _only_calls_tools(entry: Any) -> bool:
    """OpenAI's assistant message that consists of tool calls: it belongs to a conversation but says nothing."""
    return (
        isinstance(entry, Mapping)
        and not entry.get("content")
        and bool(entry.get("tool_calls"))
        and "text" not in entry
    )


def _value(argument: str, entry: Any) -> Message | CandidateMemory:
    if isinstance(entry, str):
        return CandidateMemory(text=validation.text(argument, entry))
    if isinstance(entry, Mapping):
        kind: type[Message | CandidateMemory] = Message if MESSAGE_KEYS & entry.keys() else CandidateMemory
        entry = _validated(argument, kind, entry)
    if not isinstance(entry, (Message, CandidateMemory)):
        raise InvalidInput(argument, f"must be text, a message or a candidate, not {type(entry).__name__}")
    validation.text(f"{argument}.text", entry.text)
    for field in ("role", "speaker", "id", "type", "memory_key"):
        if getattr(entry, field, None) is not None:
            validation.name(f"{argument}.{field}", getattr(entry, field))
    if isinstance(entry, CandidateMemory):
        if entry.summary is not None:
            validation.text(f"{argument}.summary", entry.summary)
        validation.tags(f"{argument}.tags", entry.tags)
        for field in ("data", "metadata"):
            if getattr(entry, field) is not None:
                validation.json_object(f"{argument}.{field}", getattr(entry, field))
        if entry.valid_from and entry.valid_to and entry.valid_to <= entry.valid_from:
            raise InvalidInput(f"{argument}.valid_to", "is not after valid_from")
    return entry


def _validated(argument: str, kind: type[V], entry: Mapping[str, Any]) -> V:
    try:
        return kind.model_validate(dict(entry))
    except ValidationError as error:
        first = error.errors()[0]
        place = "".join(f".{part}" if isinstance(part, str) else f"[{part}]" for part in first["loc"])
        raise InvalidInput(argument + place, first["msg"]) from None
