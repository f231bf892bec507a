"""Compare the memories that an extractor, or `add`, makes with annotated conversations."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Literal

from jiyi import Memory
from jiyi.languages.words import normalise
from jiyi.models import MemoryItem
from jiyi.write.drafts import Draft, Said, Unit

from .console import Report
from .extraction_corpus import Conversation, Days, Expected, Groups, Moment, dates_in

# Messages and episodes repeat what was said; these types claim to have understood it.
COUNTED = ("preference", "fact", "event", "task", "pattern", "skill", "profile")
# Matched by "!" in a group of words: a negation or an ending.
NEGATION = re.compile(
    r"n't\b|\b(?:not|cannot|no|never|neither|nor|without|stop(?:s|ped|ping)?|quit(?:s|ting)?|g[ai]ve[ns]? up|giving up"
    r"|cancel\w*|avoid\w*|dislike\w*|hate[ds]?|end(?:s|ed)|instead of|rather than|used to|left)\b"
    r"|[不没无别勿戒停]|讨厌|放弃|取消|再也"
)
PAST_OR_PLANNED = ("event", "task")
NEW_SESSION = timedelta(hours=6)

Extractor = Callable[[Unit], Sequence[Draft]]
Verdict = Literal["expected", "also fine", "forbidden", "wrong"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An extracted memory."""

    memory_type: str
    content: str
    messages: tuple[int, ...]  # indexes of its source messages
    subject: str | None
    days: tuple[Days, ...]  # dates it mentions and dates in its fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    conversation: str
    language: str
    found: Found
    verdict: Verdict
    matches: tuple[int, ...]  # indexes of the expected memories


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    conversation: str
    language: str
    expected: Expected
    text: str  # of the source messages


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentError:
    """At this time a memory is missing, or an ended one is still returned."""

    conversation: str
    at: datetime
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Result for one conversation."""

    conversation: Conversation
    judged: tuple[Judged, ...]
    missed: tuple[Missed, ...]
    forbidden: tuple[int, ...]  # indexes of `never` entries that became memories
    moment_errors: tuple[MomentError, ...] | None  # None: not checked


def judge(
    conversation: Conversation, found: Iterable[Found], moment_errors: tuple[MomentError, ...] | None = None
) -> Outcome:
    """Give every memory a verdict; one that is neither expected nor also fine is wrong."""
    judged = [_judged(conversation, one) for one in found if one.memory_type in COUNTED]
    met = {at for one in judged for at in one.matches}
    missed = [
        Missed(
            conversation=conversation.id,
            language=conversation.language,
            expected=entry,
            text=" … ".join(conversation.messages[message].text for message in entry.messages),
        )
        for at, entry in enumerate(conversation.expected)
        if at not in met
    ]
    forbidden = [
        at
        for at in range(len(conversation.never))
        if any(one.verdict == "forbidden" and _is_forbidden(conversation, at, one.found) for one in judged)
    ]
    return Outcome(
        conversation=conversation,
        judged=tuple(judged),
        missed=tuple(missed),
        forbidden=tuple(forbidden),
        moment_errors=moment_errors,
    )


def _judged(conversation: Conversation, found: Found) -> Judged:
    fitting = [(at, entry) for at, entry in enumerate(conversation.expected) if _fits(entry, found)]
    matches = tuple(at for at, entry in fitting if not entry.days or _agrees(entry.days, found.days))
    verdict: Verdict
    if matches:
        verdict = "expected"
    elif (fitting and not any(dates_in(found.content))) or _is_fine(conversation, found):
        verdict = "also fine"  # a missing date is no error, a wrong one is
    elif any(_is_forbidden(conversation, at, found) for at in range(len(conversation.never))):
        verdict = "forbidden"
    else:
        verdict = "wrong"
    return Judged(
        conversation=conversation.id,
        language=conversation.language,
        found=found,
        verdict=verdict,
        matches=matches,
    )


def _fits(entry: Expected, found: Found) -> bool:
    """Return True if everything but the date matches. A profile line may repeat a memory of any type."""
    return (
        found.memory_type in (*entry.type, "profile")
        and bool(set(entry.messages) & set(found.messages))
        and holds(found.content, entry.must_contain)
        and (entry.subject is None or _names(entry.subject, found))
    )


def _is_fine(conversation: Conversation, found: Found) -> bool:
    return any(
        set(entry.messages) & set(found.messages) and holds(found.content, entry.must_contain)
        for entry in conversation.also_fine
    )


def _is_forbidden(conversation: Conversation, at: int, found: Found) -> bool:
    entry = conversation.never[at]
    return entry.message in found.messages and holds(found.content, entry.words)


def _names(subject: str, found: Found) -> bool:
    return holds(f"{found.subject or ''} {found.content}", ((subject,),))


def _agrees(wanted: Sequence[Days], said: Sequence[Days]) -> bool:
    """Return True if a date of the memory lies within an expected one."""
    return any(first <= start and end <= last for first, last in wanted for start, end in said)


def holds(text: str, groups: Groups) -> bool:
    """Return True if every group matches. A word matches at its start: "move" matches "moved"."""
    normal = normalise(text)
    return all(any(_word(alternative).search(normal) for alternative in group) for group in groups)


@lru_cache(maxsize=4096)
def _word(written: str) -> re.Pattern[str]:
    if written == "!":
        return NEGATION
    normal = normalise(written)
    before = r"(?<![a-z0-9])" if normal[0].isascii() and normal[0].isalnum() else ""
    after = r"(?!\d)" if normal[-1].isdigit() else ""
    return re.compile(f"{before}{re.escape(normal)}{after}")


# -- an extractor alone -----------------------------------------------------------------------------------------


def measure_extractor(corpus: Iterable[Conversation], extractor: Extractor) -> list[Outcome]:
    """Run an extractor on each session, with the earlier messages as history."""
    outcomes = []
    for conversation in corpus:
        found = [_of_draft(draft) for unit in units(conversation) for draft in extractor(unit)]
        outcomes.append(judge(conversation, found))
    return outcomes


def units(conversation: Conversation) -> Iterator[Unit]:
    said = [
        Said(id=str(at), role=line.role, speaker=line.speaker, text=line.text, sent_at=line.sent_at)
        for at, line in enumerate(conversation.messages)
    ]
    for session in _sessions(conversation):
        yield Unit(
            id=f"{conversation.id}/{session.start}",
            messages=tuple(said[session.start : session.stop]),
            history=tuple(said[: session.start]),
            user_id=conversation.user_id,
            session_id=conversation.id,
            group_id=conversation.group_id,
        )


def _sessions(conversation: Conversation) -> list[slice]:
    """Slices of messages without a long pause between them."""
    lines = conversation.messages
    starts = [at for at in range(len(lines)) if at == 0 or lines[at].sent_at - lines[at - 1].sent_at > NEW_SESSION]
    return [slice(start, end) for start, end in zip(starts, [*starts[1:], len(lines)], strict=True)]


def _of_draft(draft: Draft) -> Found:
    filed = (draft.occurred_at, draft.valid_from, draft.valid_to, draft.expires_at)
    return Found(
        memory_type=draft.memory_type,
        content=draft.content,
        messages=tuple(int(evidence.message_id) for evidence in draft.evidence),
        subject=draft.subject,
        days=_days(draft.content, draft.data, filed),
    )


def _days(content: str, data: object, filed: Iterable[datetime | None]) -> tuple[Days, ...]:
    days = [at.date() for at in filed if at is not None]
    return (*dates_in(content), *dates_in(str(data)), *((day, day) for day in days))


# -- the whole `add` --------------------------------------------------------------------------------------------------


async def measure_memory(corpus: Sequence[Conversation], memory: Memory, report: Report) -> list[Outcome]:
    """Add each conversation, and check what `list` returns at each time that the corpus asks about."""
    outcomes = []
    for done, conversation in enumerate(corpus):
        report("conversations", done, len(corpus))
        found = [_of_item(item) for item in await _add(memory, conversation)]
        errors = [error async for error in _moment_errors(memory, conversation)]
        outcomes.append(judge(conversation, found, tuple(errors)))
    report("conversations", len(corpus), len(corpus))
    return outcomes


async def _add(memory: Memory, conversation: Conversation) -> list[MemoryItem]:
    made: dict[str, MemoryItem] = {}
    for session in _sessions(conversation):
        given = [
            {"id": str(at), **line.model_dump(exclude_none=True)}
            for at, line in list(enumerate(conversation.messages))[session]
        ]
        receipt = await memory.add(
            given, user_id=conversation.user_id, session_id=conversation.id, group_id=conversation.group_id
        )
        made |= {item.id: item for item in receipt.memories}
    return list(made.values())


def _of_item(item: MemoryItem) -> Found:
    subject = item.data.get("subject")
    filed = (item.occurred_at, item.valid_from, item.valid_to, item.expires_at)
    return Found(
        memory_type=item.memory_type,
        content=item.content,
        messages=tuple(int(message) for message in item.source_ids),
        subject=subject if isinstance(subject, str) else None,
        days=_days(item.content, item.data, filed),
    )


async def _moment_errors(memory: Memory, conversation: Conversation) -> AsyncIterator[MomentError]:
    for moment in conversation.as_of:
        page = await memory.list(user_id=conversation.user_id, memory_types=COUNTED, as_of=moment.at, limit=1000)
        for problem in problems_at(moment, page.items):
            yield MomentError(conversation=conversation.id, at=moment.at, problem=problem)


def problems_at(moment: Moment, items: Sequence[MemoryItem]) -> Iterator[str]:
    """Yield missing and outdated memories; events and tasks never become outdated."""
    for words in moment.expect:
        if not any(holds(item.content, words.must_contain) for item in items):
            yield f"nothing says {_shown(words.must_contain)}"
    for absent in moment.absent:
        for item in items:
            excused = any(holds(item.content, ((word,),)) for word in absent.unless)
            if item.memory_type not in PAST_OR_PLANNED and holds(item.content, absent.must_contain) and not excused:
                yield f"still says {item.content!r} ({item.memory_type})"


def _shown(groups: Groups) -> str:
    return " + ".join("/".join(group[:4]) for group in groups)
