"""Recognise messages that were stored before.

A message is recognised by the caller's id or its time, with session, role, speaker and text. Without id and time, the
order tells: agents hand in the conversation so far again and again, or repeat a call that seemed lost. Such messages
are known if the list begins with what the session ends with, or if all of it stands in the session in one run. Somebody
who says "ok" twice in a conversation has said it twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from ..ids import new_id
from ..models import Message
from ..scope import Scope
from ..store.contract import Follows, NewMessage, StoredMessage
from .hashes import identity

if TYPE_CHECKING:
    from ..store.store import Store

LOOK_BACK = 200  # messages of a session among which one without id and time is looked for, or twice the list
RUN = 24  # letters that a list must have in all to be recognised in the middle of a session; a Chinese one counts twice

Likeness = tuple[str, str | None, str]


async def identify(
    given: Sequence[Message], place: Scope, sent_at: datetime, store: Store
) -> tuple[list[NewMessage], Follows | None]:
    """The messages; those taken in before are `StoredMessage`s. And what that hangs on, if it is the order."""
    hashes = _hashes(given, place)
    known = {
        message.dedupe_hash: message
        for message in await store.messages.by_hash(place.user_id, list(filter(None, hashes)))
    }
    follows = None
    by_order: dict[int, StoredMessage] = {}
    if None in hashes:
        held = await store.messages.tail(place, max(LOOK_BACK, 2 * len(given)))
        follows = Follows(held[-1].id if held else None)
        start = _where([_like(message) for message in given], [_like(message) for message in held])
        by_order = dict(enumerate(held[start:])) if start is not None else {}
    found: list[NewMessage] = []
    for at, (message, dedupe_hash) in enumerate(zip(given, hashes, strict=True)):
        stored = by_order.get(at) if dedupe_hash is None else known.get(dedupe_hash)
        found.append(stored or _new(message, dedupe_hash, sent_at))
    return found, follows


def _hashes(given: Sequence[Message], place: Scope) -> list[str | None]:
    """An identity for each message that carries one; the same thing said twice at one moment counts up."""
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
    """From which of the messages held on the list is a repetition; None: it is new from its beginning."""
    for length in range(min(len(given), len(held)), 0, -1):
        if held[-length:] == given[:length]:
            return len(held) - length
    if len(given) > 1 and _letters(given) >= RUN:
        for start in range(len(held) - len(given), -1, -1):
            if held[start : start + len(given)] == given:
                return start
    return None


def _letters(given: Sequence[Likeness]) -> int:
    return sum(2 if letter > "\u2e80" else 1 for _, _, text in given for letter in text)


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
