"""The second stage of `add`: from what was handed in to memories.

A statement becomes one memory, a message becomes a memory that holds it verbatim. Extractors that work memories out of
a conversation belong here: they return further memories that name the messages they came from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b

from pydantic import JsonValue

from ..ids import new_id
from ..models import CandidateMemory, Message, layer_of
from ..store.contract import PAST, SAID, NewMemory, NewMessage
from ..text.hashes import content_hash
from .accept import INSTRUCTIONS, Accepted

SUMMARY_LENGTH = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What holds for a whole `add`; candidates may say otherwise for themselves."""

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


def extract(accepted: Accepted, context: Context, at: datetime) -> tuple[tuple[NewMessage, ...], tuple[NewMemory, ...]]:
    """The messages to keep and the memories to make. `at` is when things happened that carry no time of their own."""
    messages = _messages(accepted.messages, context, at)
    verbatim = [_verbatim(message, context) for message in messages if message.role not in INSTRUCTIONS]
    stated = [_stated(candidate, context, at) for candidate in accepted.candidates]
    return messages, (*verbatim, *stated)


def _messages(given: Sequence[Message], context: Context, at: datetime) -> tuple[NewMessage, ...]:
    """Messages with an identity of their own, where they carry one.

    The caller's id or the time tells a repeated delivery from something said twice. Without either nothing can, and
    both are kept: a doubled line does less harm than a lost one. (An idempotency key settles it for such callers.)
    """
    seen: Counter[str] = Counter()
    kept = []
    for message in given:
        told_apart = None
        if message.id is not None or message.sent_at is not None:
            sent = message.sent_at.isoformat() if message.sent_at is not None else ""
            parts = (context.session_id, message.id, message.role, message.speaker, message.text, sent)
            told_apart = identity("message", *parts)
            seen[told_apart] += 1
            told_apart = identity(told_apart, str(seen[told_apart]))
        kept.append(
            NewMessage(
                id=new_id(),
                external_id=message.id,
                role=message.role,
                speaker=message.speaker,
                text=message.text,
                sent_at=message.sent_at or context.occurred_at or at,
                dedupe_hash=told_apart,
            )
        )
    return tuple(kept)


def _verbatim(message: NewMessage, context: Context) -> NewMemory:
    memory_id = new_id()
    return NewMemory(
        id=memory_id,
        memory_key=memory_id,
        memory_type="message",
        layer="episodic",
        content=message.text,
        summary=summarise(message.text),
        data={"role": message.role, "speaker": message.speaker},
        metadata=context.metadata,
        importance=0.5 if context.importance is None else context.importance,
        tags=context.tags,
        dedupe_hash=SAID + identity(context.agent_id, context.group_id, message.dedupe_hash or message.id),
        occurred_at=message.sent_at,
        valid_from=message.sent_at,
        expires_at=context.expires_at,
        source="message",
        message_ids=(message.id,),
    )


def _stated(candidate: CandidateMemory, context: Context, at: datetime) -> NewMemory:
    memory_id = new_id()
    memory_type = candidate.type or context.memory_type or "fact"
    occurred_at = candidate.occurred_at or context.occurred_at or at
    said = statement_hash(candidate.text, memory_type, context.agent_id, context.group_id, candidate.memory_key)
    if candidate.valid_to is not None:
        said = PAST + identity(said, candidate.valid_to.isoformat())
    importance = context.importance if candidate.importance is None else candidate.importance
    return NewMemory(
        id=memory_id,
        memory_key=candidate.memory_key or memory_id,
        memory_type=memory_type,
        layer=layer_of(memory_type),
        content=candidate.text,
        summary=candidate.summary or summarise(candidate.text),
        data=candidate.data or {},
        metadata={**context.metadata, **(candidate.metadata or {})},
        importance=0.5 if importance is None else importance,
        confidence=1.0 if candidate.confidence is None else candidate.confidence,
        status=candidate.status,
        tags=tuple(dict.fromkeys((*context.tags, *candidate.tags))),
        dedupe_hash=said,
        occurred_at=occurred_at,
        valid_from=candidate.valid_from or occurred_at,
        valid_to=candidate.valid_to,
        expires_at=candidate.expires_at or context.expires_at,
        source="statement",
    )


def statement_hash(
    text: str, memory_type: str, agent_id: str | None, group_id: str | None, memory_key: str | None = None
) -> str:
    """Equal for statements that say the same. An agent's and a group's memories are apart: each must find its own.
    So is one with a key that the caller chose: it must be found under that key, whatever others say."""
    said = identity("statement", memory_type, agent_id, group_id, content_hash(text))
    return said if memory_key is None else identity(said, memory_key)


def identity(*parts: str | None) -> str:
    """A hash of a list of values in which None, the empty string and any other division of the text differ."""
    digest = blake2b(digest_size=16)
    for part in parts:
        encoded = b"" if part is None else part.encode()
        digest.update(b"-" if part is None else f"{len(encoded)}:".encode())
        digest.update(encoded)
    return digest.hexdigest()


def summarise(text: str) -> str:
    """The beginning of a text, in one line."""
    line = " ".join(text[: SUMMARY_LENGTH * 4].split())
    return line if len(line) <= SUMMARY_LENGTH else line[: SUMMARY_LENGTH - 1].rstrip() + "…"
