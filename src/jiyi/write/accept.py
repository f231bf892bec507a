"""The first stage of `add`: validate what the caller passes in, and recognise messages that were stored before.

A message is recognised by the caller's id or its time, with session, role, speaker and text. Without id and time, the
order decides: agents pass in the conversation so far again and again, or repeat a call that seemed lost. Such messages
are known if the list begins with the end of the session, or if all of it occurs in the session in one run. Somebody who
says "ok" twice in a conversation has said it twice.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice
from typing import Any, TypeVar

from pydantic import ValidationError

from .. import threads, validation
from ..errors import InvalidInput
from ..ids import identity, new_id
from ..models import CANDIDATE_ALIASES, SENT_AT_ALIASES, CandidateMemory, Message, Value, invalid_input
from ..roles import is_instruction
from ..scope import Scope
from ..store.repositories.additions import Start
from ..store.write_set import Follows, NewMessage, StoredMessage

MESSAGE_KEYS = frozenset({"role", "speaker", "name", "sent_at", *SENT_AT_ALIASES})  # which no candidate has
# Fields by which an object is a candidate, unless it has a role or a speaker.
CANDIDATE_KEYS = frozenset({"summary", "tags", "memory_key", "memory_type", "source_session_id"}).union(
    *CANDIDATE_ALIASES.items()
)

LOOK_BACK = 200  # messages of a session that are searched for one without id and time; at least twice the list
RUN = 24  # letters that a list needs to be recognised in the middle of a session; a Chinese character counts as two

V = TypeVar("V", bound=Value)

Statement = str | CandidateMemory | Mapping[str, Any]
Said = Message | Mapping[str, Any]
What = Statement | Said | Sequence[Statement] | Sequence[Said]
Likeness = tuple[str, str | None, str]


@dataclass(frozen=True, slots=True)
class Accepted:
    """Validated input of `add`: either messages or candidates."""

    messages: tuple[Message, ...]
    candidates: tuple[CandidateMemory, ...]
    problems: tuple[str, ...]

    def values(self) -> tuple[Message | CandidateMemory, ...]:
        return self.messages or self.candidates

    def texts(self) -> list[str]:
        return [*(one.text for one in self.messages), *(one.content for one in self.candidates)]


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
        if _only_calls_tools(entry) or _has_only_attachments(argument, entry):
            problems.append(f"{argument} has no text and was left out")
            continue
        value = _value(argument, entry)
        if isinstance(value, Message):
            if is_instruction(value.role):
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
    """Return True for an assistant message in OpenAI's format that consists of tool calls."""
    return (
        isinstance(entry, Mapping)
        and not entry.get("content")
        and bool(entry.get("tool_calls"))
        and "text" not in entry
    )


def _has_only_attachments(argument: str, entry: Any) -> bool:
    """Return True for a message whose parts have no text, such as an image without a description."""
    parts = entry.get("content") if isinstance(entry, Mapping) else None
    return isinstance(parts, list) and bool(parts) and not _validated(argument, Message, entry).text.strip()


def _value(argument: str, entry: Any) -> Message | CandidateMemory:
    if isinstance(entry, str):
        return CandidateMemory(content=validation.text(argument, entry))
    if isinstance(entry, Mapping):
        entry = _validated(argument, Message if _is_message(entry) else CandidateMemory, entry)
    if not isinstance(entry, (Message, CandidateMemory)):
        raise InvalidInput(argument, f"must be text, a message or a candidate, not {type(entry).__name__}")
    if isinstance(entry, Message):
        validation.text(f"{argument}.text", entry.text)
    else:
        validation.text(f"{argument}.content", entry.content)
    for field in ("role", "speaker", "id", "memory_type", "memory_key"):
        if getattr(entry, field, None) is not None:
            validation.name(f"{argument}.{field}", getattr(entry, field))
    if isinstance(entry, CandidateMemory):
        if entry.summary is not None:
            validation.text(f"{argument}.summary", entry.summary)
        validation.tags(f"{argument}.tags", entry.tags)
        if entry.data is not None:
            validation.memory_data(f"{argument}.data", entry.data)
        if entry.metadata is not None:
            validation.json_object(f"{argument}.metadata", entry.metadata)
        if entry.valid_from and entry.valid_to and entry.valid_to <= entry.valid_from:
            raise InvalidInput(f"{argument}.valid_to", "is not after valid_from")
    return entry


def _is_message(entry: Mapping[str, Any]) -> bool:
    if entry.keys() & {"role", "speaker", "name"}:
        return True
    return bool(entry.keys() & MESSAGE_KEYS) and not entry.keys() & CANDIDATE_KEYS


def _validated(argument: str, kind: type[V], entry: Mapping[str, Any]) -> V:
    try:
        return kind.model_validate(dict(entry))
    except ValidationError as error:
        raise invalid_input(argument, error) from None


async def identify(
    given: Sequence[Message], hashes: Sequence[str | None], sent_at: datetime, start: Start
) -> tuple[list[NewMessage], Follows | None]:
    """Return the messages, stored ones as `StoredMessage`, and the message they must follow, if the order decided."""
    known = {message.dedupe_hash: message for message in start.delivered}
    follows, tail = None, start.tail
    by_order: dict[int, StoredMessage] = {}
    if tail is not None:
        follows = Follows(tail[-1].id if tail else None)
        likes = [_like(message) for message in given], [_like(message) for message in tail]
        position = await threads.run(len(given) + len(tail), _where, *likes)
        by_order = dict(enumerate(tail[position:])) if position is not None else {}
    messages: list[NewMessage] = []
    for at, (message, dedupe_hash) in enumerate(zip(given, hashes, strict=True)):
        stored = by_order.get(at) if dedupe_hash is None else known.get(dedupe_hash)
        messages.append(stored or _new(message, dedupe_hash, sent_at))
    return messages, follows


def looked_back(hashes: Sequence[str | None]) -> int:
    """Return the number of earlier messages that are needed to recognise those with an id or a time, and others."""
    return max(LOOK_BACK, 2 * len(hashes)) if None in hashes else 0


def message_hashes(given: Sequence[Message], place: Scope) -> list[str | None]:
    """Return the identity of each message with an id or a time; equal messages are numbered."""
    seen: Counter[str] = Counter()
    hashes: list[str | None] = []
    for message in given:
        if message.id is None and message.sent_at is None:
            hashes.append(None)
            continue
        sent = message.sent_at.isoformat() if message.sent_at is not None else ""
        said = identity("message", place.session_id, message.id, message.role, message.speaker, message.text, sent)
        seen[said] += 1
        hashes.append(identity(said, str(seen[said])))
    return hashes


def _where(given: Sequence[Likeness], held: Sequence[Likeness]) -> int | None:
    """Return the position in the stored messages from which the list repeats them; None if it is new."""
    enough = sum(2 if letter > "\u2e80" else 1 for letter in islice(chain(*(text for _, _, text in given)), RUN)) >= RUN
    numbers: dict[str, int] = {}  # in place of the texts, so that long ones are compared once
    new, old = (
        [(role, speaker, numbers.setdefault(text, len(numbers))) for role, speaker, text in some]
        for some in (given, held)
    )
    for length in range(min(len(new), len(old)), 0, -1):
        if old[-length:] == new[:length]:
            return len(old) - length
    if len(new) > 1 and enough:
        for start in range(len(old) - len(new), -1, -1):
            if old[start : start + len(new)] == new:
                return start
    return None


def _like(message: Message | NewMessage) -> Likeness:
    return message.role, message.speaker, message.text


def _new(message: Message, dedupe_hash: str | None, sent_at: datetime) -> NewMessage:
    return NewMessage(
        id=new_id(),
        external_id=message.id,
        role=message.role,
        speaker=message.speaker,
        text=message.text,
        sent_at=message.sent_at or sent_at,
        dedupe_hash=dedupe_hash,
    )
