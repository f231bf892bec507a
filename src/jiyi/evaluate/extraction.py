"""How well memories are made: what an extractor, or the whole `add`, makes of written conversations."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Literal

from ..languages.normalise import normalise
from ..memory import Memory
from ..models import MemoryItem
from ..write.drafts import Draft, Said, Unit
from .corpus import Conversation, Days, Expected, Groups, Moment
from .days_written import days_written
from .run import Progress

# Verbatim messages and episodes hold everything that was said; these claim to have understood it.
COUNTED = ("preference", "fact", "event", "task", "pattern", "skill", "profile")
# What "!" stands for in a group of words: something is not so, or no longer.
NEGATION = re.compile(
    r"n't\b|\b(?:not|cannot|no|never|neither|nor|without|stop(?:s|ped|ping)?|quit(?:s|ting)?|g[ai]ve[ns]? up|giving up"
    r"|cancel\w*|avoid\w*|dislike\w*|hate[ds]?|end(?:s|ed)|instead of|rather than|used to|left)\b"
    r"|[不没无别勿戒停]|讨厌|放弃|取消|再也"
)
PAST_OR_PLANNED = ("event", "task")
NEW_SITTING = timedelta(hours=6)

Extractor = Callable[[Unit], Sequence[Draft]]
Verdict = Literal["expected", "also fine", "forbidden", "wrong"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A memory that was made, however it was made."""

    memory_type: str
    content: str
    messages: tuple[int, ...]  # the places of those it came from
    subject: str | None
    days: tuple[Days, ...]  # those it speaks of, and those it is filed under


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    conversation: str
    language: str
    found: Found
    verdict: Verdict
    matches: tuple[int, ...]  # which of the expected ones


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    conversation: str
    language: str
    expected: Expected
    text: str  # what was said


@dataclass(frozen=True, slots=True, kw_only=True)
class Slip:
    """At this moment a memory is missing, or one is there that was over."""

    conversation: str
    at: datetime
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one conversation."""

    conversation: Conversation
    judged: tuple[Judged, ...]
    missed: tuple[Missed, ...]
    forbidden: tuple[int, ...]  # which of the `never` entries became memories
    slips: tuple[Slip, ...] | None  # None: moments were not looked at


def judge(conversation: Conversation, found: Iterable[Found], slips: tuple[Slip, ...] | None = None) -> Outcome:
    """Every memory gets a verdict. What is neither expected nor also fine is wrong."""
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
        slips=slips,
    )


def _judged(conversation: Conversation, found: Found) -> Judged:
    fitting = [(at, entry) for at, entry in enumerate(conversation.expected) if _fits(entry, found)]
    matches = tuple(at for at, entry in fitting if not entry.days or _agrees(entry.days, found.days))
    verdict: Verdict
    if matches:
        verdict = "expected"
    elif (fitting and not any(days_written(found.content))) or _is_fine(conversation, found):
        verdict = "also fine"  # to leave a day out is less than was wanted, but to name a wrong one is an error
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
    """In all but the date. A profile gathers what other memories say, so it may hold what is expected as any type."""
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
    """What was meant is a day, a month or more; the memory must name it, or a part of it."""
    return any(first <= start and end <= last for first, last in wanted for start, end in said)


def holds(text: str, groups: Groups) -> bool:
    """Whether all groups are hit. A word may go on ("move" is in "moved"), but begins where a word begins."""
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


# -- an extractor by itself -----------------------------------------------------------------------------------------


def measure_extractor(corpus: Iterable[Conversation], extractor: Extractor) -> list[Outcome]:
    """What an extractor makes of each sitting; what was said before it is handed over as history."""
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
    for sitting in _sittings(conversation):
        yield Unit(
            id=f"{conversation.id}/{sitting.start}",
            messages=tuple(said[sitting.start : sitting.stop]),
            history=tuple(said[: sitting.start]),
            user_id=conversation.user_id,
            session_id=conversation.id,
            group_id=conversation.group_id,
        )


def _sittings(conversation: Conversation) -> list[slice]:
    """The stretches between long silences."""
    lines = conversation.messages
    starts = [at for at in range(len(lines)) if at == 0 or lines[at].sent_at - lines[at - 1].sent_at > NEW_SITTING]
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
    return (*days_written(content), *days_written(str(data)), *((day, day) for day in days))


# -- the whole way --------------------------------------------------------------------------------------------------


async def measure_memory(corpus: Sequence[Conversation], memory: Memory, progress: Progress) -> list[Outcome]:
    """What `add` makes of each conversation, and what `list` says at each moment that the corpus asks about."""
    outcomes = []
    for done, conversation in enumerate(corpus):
        progress("conversations", done, len(corpus))
        found = [_of_item(item) for item in await _remember(memory, conversation)]
        slips = [slip async for slip in _slips(memory, conversation)]
        outcomes.append(judge(conversation, found, tuple(slips)))
    progress("conversations", len(corpus), len(corpus))
    return outcomes


async def _remember(memory: Memory, conversation: Conversation) -> list[MemoryItem]:
    made: dict[str, MemoryItem] = {}
    for sitting in _sittings(conversation):
        given = [
            {"id": str(at), **line.model_dump(exclude_none=True)}
            for at, line in list(enumerate(conversation.messages))[sitting]
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


async def _slips(memory: Memory, conversation: Conversation) -> AsyncIterator[Slip]:
    for moment in conversation.as_of:
        page = await memory.list(user_id=conversation.user_id, memory_types=COUNTED, as_of=moment.at, limit=1000)
        for problem in problems_at(moment, page.items):
            yield Slip(conversation=conversation.id, at=moment.at, problem=problem)


def problems_at(moment: Moment, items: Sequence[MemoryItem]) -> Iterator[str]:
    """What was done or intended stays so; what is said to *be* so ends."""
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
