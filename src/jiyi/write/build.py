"""New memories from statements, messages (verbatim) and drafts of extractors."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Self

from pydantic import JsonValue, TypeAdapter

from .. import validation
from ..ids import identity, new_id, trust_parts
from ..languages.terms import exact_hash
from ..languages.words import normalise
from ..memory_types import layer_of
from ..models import CandidateMemory, MemoryItem, Message
from ..models.shown_dates import kept_times, shown_dates
from ..roles import BY_USER, USER_SUBJECTS, is_instruction, is_person, is_the_user, role_kind, told_by
from ..scope import Scope
from ..store.write_set import (
    EXTRACTED,
    PAST,
    REQUEST_VERSION,
    SAID,
    STATED,
    NewMemory,
    NewMessage,
    Source,
    StoredMemory,
)
from ..text.fence import without_context
from ..text.passages import summarise
from .behavior import BEHAVIOR, with_time
from .drafts import Draft, Evidence
from .extract import times_in
from .when import when_data

EVENT = "event"
MAX_INSTRUCTIONS = 4_000  # characters
UNTRUSTED = 0.5  # trust in the output of tools and in messages of unknown roles
LONGEST_DATED = 1000  # characters; the times of longer messages are not looked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Arguments of an `add` that apply to everything in it, unless a candidate has its own."""

    user_id: str
    session_id: str | None
    agent_id: str | None
    group_id: str | None
    memory_type: str | None
    importance: float | None
    tags: tuple[str, ...]
    metadata: dict[str, JsonValue]
    occurred_at: datetime | None
    expires_at: datetime | None
    trust: float = 1.0
    user_names: tuple[str, ...] = ()  # names of the user in messages, besides the user_id
    own_only: bool = False  # nothing that other people told of others
    instructions: str | None = None  # for a language model: what to remember, and what never
    categories: tuple[str, ...] = ()  # tags that a language model may give: "diet" or "diet: food and allergies"
    # Erasure epoch of the user when this began; None: not read yet. The hash of a request is made without it.
    epoch: str | None = field(default=None, repr=False)

    @classmethod
    def parse(
        cls,
        *,
        user_id: str,
        session_id: str | None,
        agent_id: str | None,
        group_id: str | None,
        memory_type: str | None = None,
        importance: float | None = None,
        tags: Sequence[str] | None = None,
        metadata: dict[str, JsonValue] | None = None,
        occurred_at: datetime | None = None,
        expires_at: datetime | None = None,
        trust: float = 1.0,
        user_names: Sequence[str] = (),
        epoch: str | None = None,
        own_only: bool = False,
        instructions: str | None = None,
        categories: Sequence[str] = (),
    ) -> Self:
        return cls(
            user_id=validation.name("user_id", user_id),
            session_id=validation.optional_name("session_id", session_id),
            agent_id=validation.optional_name("agent_id", agent_id),
            group_id=validation.optional_name("group_id", group_id),
            memory_type=None if memory_type is None else validation.memory_type("memory_type", memory_type),
            importance=None if importance is None else validation.share("importance", importance),
            tags=() if tags is None else validation.tags("tags", tags),
            metadata={} if metadata is None else validation.json_object("metadata", metadata),
            occurred_at=validation.optional_time("occurred_at", occurred_at),
            expires_at=validation.optional_time("expires_at", expires_at),
            trust=validation.share("trust", trust),
            user_names=validation.names("user_names", user_names),
            epoch=epoch and validation.name("epoch", epoch),
            own_only=own_only,
            instructions=None
            if instructions is None
            else validation.text("instructions", instructions, longest=MAX_INSTRUCTIONS),
            categories=validation.names("categories", categories),
        )

    def with_names(self, names: Sequence[str]) -> Self:
        """Add names of the user from the settings."""
        return replace(self, user_names=(*names, *self.user_names))

    @property
    def place(self) -> Scope:
        return Scope(user_id=self.user_id, session_id=self.session_id, agent_id=self.agent_id, group_id=self.group_id)


CONTEXT = TypeAdapter(Context)  # as it is stored in a job


def request_hash(given: Sequence[Message | CandidateMemory], context: Context) -> str:
    """Hash what a caller gave to `add`, as JSON in canonical order and without defaults, so that neither the order of
    keys nor a field of a later version makes another request of it."""
    arguments = CONTEXT.dump_python(context, mode="json", exclude={"epoch"}, exclude_defaults=True)
    request = {
        "given": [[type(one).__name__, one.model_dump(mode="json", exclude_defaults=True)] for one in given],
        "arguments": {name: value for name, value in arguments.items() if value not in (None, [], {})},
    }
    text = json.dumps(request, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return REQUEST_VERSION + identity("request", text)[len(REQUEST_VERSION) :]


def part_row(
    old: MemoryItem | StoredMemory | NewMemory,
    content: str,
    data: Mapping[str, JsonValue],
    dedupe_hash: str,
    *,
    source: str,
    reason: str,
    sources: tuple[Source, ...] = (),
    created_at: datetime | None = None,
) -> NewMemory:
    """Return the memory of a part of another one: when it was, how sure it is and what it is about stay."""
    memory_id = new_id()
    return NewMemory(
        id=memory_id,
        memory_key=memory_id,
        memory_type=old.memory_type,
        layer=old.layer,
        content=content,
        summary=summarise(content),
        data=kept_times(content, data),
        metadata=dict(old.metadata),
        importance=old.importance,
        confidence=old.confidence,
        tags=tuple(old.tags),
        dedupe_hash=dedupe_hash,
        occurred_at=old.occurred_at,
        valid_from=old.valid_from,
        expires_at=old.expires_at,
        source=source,
        trust=old.trust,
        sources=sources,
        reason=reason,
        created_at=created_at,
    )


def statement_hash(
    text: str,
    memory_type: str,
    agent_id: str | None,
    group_id: str | None,
    memory_key: str | None = None,
    trust: float = 1.0,
    by: str | None = None,
) -> str:
    """Hash a statement; equal for statements that say the same. Those of another agent or group, or with a key that the
    caller chose, stay separate, because they must be found there; and so do those `by` somebody else, who means himself
    by "I"."""
    of = (*trust_parts(trust), *(() if by is None else ("by", by)))
    said = identity("statement", memory_type, agent_id, group_id, exact_hash(text), *of)
    return said if memory_key is None else identity(said, memory_key)


def of_its_day(said: str, memory_type: str, occurred_at: datetime) -> str:
    """Return the hash of a statement, for an event with its day: what happens again is another event."""
    return identity(said, occurred_at.date().isoformat()) if memory_type == EVENT else said


def of_its_dates(said: str, data: Mapping[str, JsonValue]) -> str:
    """Return the hash of a statement with the dates that it means: the same words in another week mean other days."""
    dates = [date for _, date in shown_dates(data)]
    return identity(said, *dates) if dates else said


def verbatim(message: NewMessage, context: Context) -> NewMemory | None:
    """Return a memory with the text of a message; None for instructions to the agent and for recalled text."""
    said = without_context(message.text)
    if is_instruction(message.role) or not said.strip():
        return None
    memory_id = new_id()
    data: dict[str, JsonValue] = {"speaker": None, **teller_data(message.role, message.speaker, context)}
    data["role"] = message.role
    if len(said) <= LONGEST_DATED:
        data |= when_data(times_in(said, message.sent_at))
    return NewMemory(
        id=memory_id,
        memory_key=memory_id,
        memory_type="message",
        layer="episodic",
        content=said,
        summary=summarise(said),
        data=data,
        metadata=context.metadata,
        importance=0.5 if context.importance is None else context.importance,
        tags=context.tags,
        dedupe_hash=SAID
        + identity(context.agent_id, context.group_id, message.dedupe_hash or message.id, *trust_parts(context.trust)),
        occurred_at=message.sent_at,
        valid_from=message.sent_at,
        expires_at=context.expires_at,
        source="message",
        trust=_trust_in(message.role, context.trust),
        sources=(Source(message_id=message.id),),
    )


def _trust_in(role: object, trust: float) -> float:
    return min(trust, UNTRUSTED) if role_kind(role) in ("tool", "unknown") else trust


def teller_data(role: str, speaker: str | None, context: Context) -> dict[str, JsonValue]:
    """Return the data that says who told a memory: a name, if it is the user's, and a role other than a person's."""
    if is_person(role):
        if speaker is None:
            return {}
        own = speaker != context.user_id and is_the_user(role, speaker, context.user_id, context.user_names)
        return {"speaker": speaker, BY_USER: True} if own else {"speaker": speaker}
    # A tool or an agent is not shown by a name that reads like the user's.
    names = {normalise(name) for name in (context.user_id, *context.user_names)} | USER_SUBJECTS
    named: dict[str, JsonValue] = {} if speaker is None or normalise(speaker) in names else {"speaker": speaker}
    return {**named, "role": role}


def stated(candidate: CandidateMemory, context: Context, at: datetime) -> NewMemory:
    """Return the memory of a statement."""
    memory_id = new_id()
    memory_type = candidate.memory_type or context.memory_type or "fact"
    occurred_at = candidate.occurred_at or context.occurred_at or at
    data = {name: value for name, value in (candidate.data or {}).items() if name != BY_USER}
    trust = context.trust if candidate.trust is None else candidate.trust
    if data.get("role") is not None:
        trust = _trust_in(data["role"], trust)
    if data.get("speaker") in context.user_names:
        data[BY_USER] = True
    by, key = told_by(data, context.user_id), candidate.memory_key
    said = statement_hash(candidate.content, memory_type, context.agent_id, context.group_id, key, trust, by)
    said = of_its_dates(of_its_day(said, memory_type, occurred_at), data)
    if candidate.valid_to is not None:
        said = PAST + identity(said, candidate.valid_to.isoformat())
    importance = context.importance if candidate.importance is None else candidate.importance
    return NewMemory(
        id=memory_id,
        memory_key=candidate.memory_key or memory_id,
        session_id=candidate.source_session_id,
        memory_type=memory_type,
        layer=layer_of(memory_type),
        content=candidate.content,
        summary=candidate.summary or summarise(candidate.content),
        data=with_time(data, occurred_at) if memory_type == BEHAVIOR else data,
        metadata={**context.metadata, **_origin(candidate), **(candidate.metadata or {})},
        importance=0.5 if importance is None else importance,
        confidence=1.0 if candidate.confidence is None else candidate.confidence,
        status=candidate.status,
        tags=tuple(dict.fromkeys((*context.tags, *candidate.tags))),
        dedupe_hash=said,
        occurred_at=occurred_at,
        valid_from=candidate.valid_from or occurred_at,
        valid_to=candidate.valid_to,
        expires_at=candidate.expires_at or context.expires_at,
        source=STATED,
        trust=trust,
    )


def _origin(candidate: CandidateMemory) -> dict[str, JsonValue]:
    named = candidate.source_session_id
    return {} if named is None else {"source_session_id": named}


def derived(draft: Draft, context: Context, teller: Mapping[str, JsonValue]) -> NewMemory:
    """Return the memory of an extractor's draft. `teller`: data that says who told it, as `teller_data` returns it."""
    memory_id = new_id()
    own = {name: value for name, value in draft.data.items() if name not in ("speaker", BY_USER)}
    data = {**own, **teller, **_about(draft)}
    by, trust = told_by(data, context.user_id), _trust_in(data.get("role", "user"), context.trust) * draft.trust
    said = statement_hash(draft.content, draft.memory_type, context.agent_id, context.group_id, trust=trust, by=by)
    return NewMemory(
        id=memory_id,
        memory_key=memory_id,
        memory_type=draft.memory_type,
        layer=layer_of(draft.memory_type),
        content=draft.content,
        summary=draft.summary or summarise(draft.content),
        data=with_time(data, draft.occurred_at) if draft.memory_type == BEHAVIOR else data,
        metadata=context.metadata,
        importance=draft.importance,
        confidence=draft.confidence,
        tags=tuple(dict.fromkeys((*context.tags, *draft.tags))),
        dedupe_hash=of_its_dates(of_its_day(said, draft.memory_type, draft.occurred_at), data),
        occurred_at=draft.occurred_at,
        valid_from=draft.valid_from or draft.occurred_at,
        valid_to=draft.valid_to,
        expires_at=draft.expires_at or context.expires_at,
        source=EXTRACTED,
        trust=trust,
        sources=_sources(draft.evidence),
    )


def is_own(draft: Draft, role: str, speaker: str | None, context: Context) -> bool:
    """Return True if the user told a draft, or it is about the user or an episode of the user's. `role` and `speaker`
    are those of the message that it is from."""
    names = {normalise(name) for name in (context.user_id, *context.user_names)} | USER_SUBJECTS
    if draft.subject is not None and normalise(draft.subject) in names - {""}:
        return True
    by_user = is_the_user(role, speaker, context.user_id, context.user_names)
    return draft.memory_type != "episode" and (by_user or not is_person(role))


def _about(draft: Draft) -> dict[str, JsonValue]:
    """Return subject, attribute and value as comparable data."""
    told: dict[str, JsonValue] = {
        "subject": draft.subject,
        "owner": draft.owner,
        "attribute": draft.attribute,
        "value": draft.value,
        "replaces": draft.replaces,
    }
    flags: dict[str, JsonValue] = {"single": draft.single, "ended": draft.ended}
    return {name: value for name, value in (told | flags).items() if value}


def _sources(evidence: Sequence[Evidence]) -> tuple[Source, ...]:
    """Return each message once, with the span that contains all of its evidence."""
    found: dict[str, Source] = {}
    for one in evidence:
        before = found.get(one.message_id)
        spans = [span for span in (before, one) if span is not None and span.start is not None and span.end is not None]
        whole = len(spans) < (1 if before is None else 2)
        found[one.message_id] = Source(
            message_id=one.message_id,
            start=None if whole else min(span.start for span in spans if span.start is not None),
            end=None if whole else max(span.end for span in spans if span.end is not None),
        )
    return tuple(found.values())
