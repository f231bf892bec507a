"""The block of memories for a prompt: current, grouped, dated, within a budget, and fenced as data."""

import logging
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from itertools import islice
from typing import Literal, Required, Self, TypedDict, Unpack, get_args
from unicodedata import combining, east_asian_width

from .. import threads
from ..languages import cue
from ..languages.terms import content_hash, exact_hash, hamming, near_hash, non_overlapping, tokens
from ..languages.words import normalise
from ..models import Hit, MemoryItem, utc_now
from ..models.shown_dates import shown_dates, with_dates
from ..roles import USER_SUBJECTS, role_kind, teller_of
from ..text.budget import token_bound
from ..text.fence import NOTICES, Fence, is_context, one_line, quoted, strip_context
from .hits import BEGINNING, as_they_were

__all__ = ["ContextLanguage", "Style", "is_context", "log_degraded", "render_context", "strip_context"]

logger = logging.getLogger(__name__)

Count = Callable[[str], int]
Style = Literal["sections", "bullets"]
ContextLanguage = Literal["zh", "en"]
# In the order of the block.
Section = Literal["standing", "preferences", "facts", "patterns", "skills", "tasks", "happened", "other", "weak"]

_SECTION_OF: dict[str, Section] = {
    "preference": "preferences", "fact": "facts", "profile": "facts", "pattern": "patterns",
    "skill": "skills", "lesson": "skills", "task": "tasks",
    "message": "happened", "episode": "happened", "event": "happened", "command_output": "happened", "file": "happened",
    "quote": "happened",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Frame:
    notice: str
    title: str
    bullets: str
    headings: dict[Section, str]
    roles: dict[str, str]
    other: str  # before a name that reads like a role
    quoted: str


def _headings(names: str) -> dict[Section, str]:
    return dict(zip(get_args(Section), (f"## {name}" for name in names.split("/")), strict=True))


_FRAMES: dict[ContextLanguage, _Frame] = {
    "en": _Frame(
        NOTICES["en"],
        title="# USER MEMORY",
        bullets="[Memory]",
        headings=_headings(
            "Wishes and Limits of the User (apply where they fit)/User Preferences/Known Facts/User Patterns"
            "/Proven Skills/Tasks/What Happened/Other/Possibly Related"
        ),
        roles={"person": "user", "assistant": "assistant"},
        other="another person,",
        quoted="passed on by the user",
    ),
    "zh": _Frame(
        NOTICES["zh"],
        title="# 用户记忆",
        bullets="[记忆要点]",
        headings=_headings(
            "用户的要求与限制（适用时遵守）/用户偏好/已知事实/行为模式/有效技能/任务/发生过的事/其他/可能相关"
        ),
        roles={"person": "用户", "assistant": "助手"},
        other="另一个人，",
        quoted="用户转述",
    ),
}

_OF_USER = ("preferences", "patterns")  # sections for what the user tells of himself

MAX_BULLETS = 6
_SHARES = 8  # long memories that get room before one of them may take more
_LEAST_SHARE = 48  # tokens; a date and a speaker can take half of that
_LEAST_CUT = 8  # characters; less of a memory is useless
_LONGEST_TOKEN = 8  # characters per token, at most, on average
_LONGEST_WORD = 24  # a longer one may be cut inside
_LONGEST_SPEAKER = 40
_COMPARED = 10_000  # characters compared for similarity
_NEAR = 3  # bits
_FEWEST_WORDS = 3
_REPEATED = 0.9  # share of a text's words in another one, from which on it is a repetition
_DAY = timedelta(days=1)


class BlockOptions(TypedDict, total=False):
    """Arguments of `render_context`."""

    fence: Required[Fence]
    style: Required[Style]
    language: Required[ContextLanguage]
    count: Count
    as_of: datetime | None
    weak: Collection[str]
    standing: Collection[str]


def sharing_words(query: str, hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits that have a word of the query: all that a greeting or a bare keyword can be about."""
    words = {*tokens(query)}
    return [hit for hit in hits if not words.isdisjoint(tokens(hit.content[:BEGINNING]))]


async def context_block(memories: Sequence[MemoryItem], *, max_tokens: int, **options: Unpack[BlockOptions]) -> str:
    """Render memories like `render_context`, in a thread if they are long."""
    size = sum(min(len(memory.content), max_tokens * _LONGEST_TOKEN) for memory in memories)
    return await threads.run(size, render_context, memories, max_tokens=max_tokens, **options)


def render_context(
    memories: Sequence[MemoryItem],
    *,
    fence: Fence,
    max_tokens: int,
    style: Style,
    language: ContextLanguage,
    count: Count = token_bound,
    as_of: datetime | None = None,
    weak: Collection[str] = (),
    standing: Collection[str] = (),
) -> str:
    """Render memories, best first, as a block for a prompt that is never longer than `max_tokens` by `count`. The ids
    in `weak` are rendered as possibly related, those in `standing` as wishes and limits of the user. Without a memory,
    or without room for one, return ""."""
    frame = _FRAMES[language]
    longest = max_tokens * _LONGEST_TOKEN
    distinct = _distinct(_newest(_valid(memories, as_of)), longest)
    found = (line for memory in distinct if (line := _line(memory, frame, longest, weak, standing)).text)
    lines = list(islice(found, MAX_BULLETS + len(standing) if style == "bullets" else None))
    budget, count = max_tokens, cache(count)
    empty = count(fence.block(_layout((), frame, style)))
    while shown := _fill(lines, frame, style, budget - empty, count):
        block = fence.block(_layout(shown, frame, style))
        over = count(block) - max_tokens
        if over <= 0:
            return block
        budget -= over  # a block costs a little more than its lines
    return ""


# -- selection --------------------------------------------------------------------------------------------------------


def log_degraded(problems: Iterable[str]) -> None:
    """Log the problems of a search, because a prompt has no place for them."""
    for problem in problems:
        logger.warning("a part of the search for a context could not run: %s", problem)


def _valid(memories: Iterable[MemoryItem], as_of: datetime | None) -> list[MemoryItem]:
    """Return the memories that hold now, or at `as_of`."""
    at = as_of or utc_now()
    return [
        memory
        for memory in as_they_were(memories, as_of)
        if (memory.valid_to is None or memory.valid_to > at) and (as_of is None or memory.valid_from <= as_of)
    ]


def _newest(memories: Sequence[MemoryItem]) -> list[MemoryItem]:
    """Return each fact once, in its newest version, at the place of the first."""
    by_id, by_key = {memory.id: memory for memory in memories}, dict[tuple[str, str], MemoryItem]()
    for memory in memories:
        followed = {memory.id}
        while (successor := by_id.get(memory.superseded_by or "")) and successor.id not in followed:
            followed.add(successor.id)
            memory = successor  # noqa: PLW2901
        key = memory.user_id, memory.memory_key
        known = by_key.get(key)
        by_key[key] = memory if known is None or _age(memory) > _age(known) else known
    return list(by_key.values())


def _age(memory: MemoryItem) -> tuple[datetime, int, datetime]:
    return memory.valid_from, memory.version, memory.updated_at


@dataclass(frozen=True, slots=True)
class _Compared:
    """A memory with features to find repetitions."""

    memory: MemoryItem
    speaker: str | None
    text: str
    exact: str
    near: int
    numbers: tuple[str, ...]
    words: frozenset[str]
    negations: int

    @classmethod
    def of(cls, memory: MemoryItem) -> Self:
        threads.check()
        beginning = memory.content[:_COMPARED]
        # Numbers weigh little in a SimHash and much in a fact.
        numbers = tuple(re.findall(r"(?<![A-Za-z])[A-Za-z]*\d+[A-Za-z¹²³]*", with_dates(memory.content, memory.data)))
        is_long = len(memory.content) > _COMPARED
        return cls(
            memory=memory,
            speaker=_speaker(memory),
            text=normalise(beginning).strip(".,;:!。、 "),
            exact=exact_hash(memory.content) if is_long else content_hash(memory.content),
            near=near_hash(beginning),
            numbers=numbers,
            words=frozenset(non_overlapping(tokens(beginning))),
            negations=len(cue("negation").findall(beginning)),
        )

    def covers(self, other: Self) -> bool:
        """Return True if the other one adds nothing to this one."""
        if self.speaker and other.speaker and self.speaker != other.speaker:
            return False
        if self.numbers == other.numbers and (self.exact == other.exact or hamming(self.near, other.near) <= _NEAR):
            return _age(self.memory) >= _age(other.memory)
        alike = self.numbers == other.numbers and self.negations == other.negations
        shared = len(other.words & self.words)
        if alike and len(other.words) >= _FEWEST_WORDS and shared >= _REPEATED * len(other.words):
            return len(self.words) > len(other.words) or _age(self.memory) >= _age(other.memory)
        if not other.text or other.text not in self.text or not set(other.numbers) <= set(self.numbers):
            return False
        # Only as a separate clause: "no longer likes tea" does not cover "likes tea".
        end = r"(?![\w+#])" if other.text[-1].isascii() else ""
        return bool(re.search(rf"(?:^|[.,;:!?。、]\s*){re.escape(other.text)}{end}", self.text))

    def retells(self, other: Self) -> bool:
        """Return True if this is an episode that repeats what the other one says, of the same session."""
        if self.memory.memory_type != "episode" or self.memory.session_id != other.memory.session_id:
            return False
        said = set(other.numbers) <= set(self.numbers) and len(other.words) >= _FEWEST_WORDS
        return said and len(other.words & self.words) >= _REPEATED * len(other.words)


def _distinct(memories: Iterable[MemoryItem], enough: int) -> list[MemoryItem]:
    """Drop repetitions, and stop after about `enough` characters. A longer version replaces the shorter one, but an
    episode never replaces what it retells."""
    kept: list[_Compared] = []
    most = enough // (2 * _SHARES)  # a longer one will be cut
    for said in map(_Compared.of, memories):
        if any(other.covers(said) or other.retells(said) or said.retells(other) for other in kept):
            continue
        covered = [place for place, other in enumerate(kept) if said.covers(other)]
        if covered:
            kept[covered[0]] = said
            for place in reversed(covered[1:]):
                del kept[place]
        else:
            kept.append(said)
            enough -= min(len(said.text) + 1, most)
            if enough <= 0:
                break
    return [said.memory for said in kept]


# -- lines ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Line:
    section: Section
    at: datetime
    label: str
    text: str
    whole: bool

    def __str__(self) -> str:
        return f"- {self.label}{quoted(self.text if self.whole else self.text + '…')}"


def _line(memory: MemoryItem, frame: _Frame, longest: int, weak: Collection[str], standing: Collection[str]) -> _Line:
    section: Section = "weak" if memory.id in weak else _SECTION_OF.get(memory.memory_type, "other")
    if section in _OF_USER and _is_told_by_other(memory):
        section = "happened"
    section = "standing" if memory.id in standing else section
    day = memory.occurred_at.date().isoformat()
    dates = shown_dates(memory.data)
    # One date is enough where the text names the day of the memory and no other one.
    dated = memory.layer == "episodic" or abs(memory.occurred_at - memory.created_at) > _DAY
    dated = dated and not (len(dates) == 1 and (dates[0][1].startswith(day) or day.startswith(dates[0][1])))
    label = f"({day}) " if dated else ""
    if section in ("happened", "weak") or _is_quoted(memory):
        label += _speaker_label(memory, frame)
    content = with_dates(memory.content, memory.data, named=dated)
    return _Line(section, memory.occurred_at, label, one_line(content[:longest]), whole=len(content) <= longest)


def _speaker_label(memory: MemoryItem, frame: _Frame) -> str:
    """Return who says a line. Somebody must not pass as a role by choosing a name."""
    if memory.memory_type == "quote":
        return f"{frame.quoted}: "
    speaker = _speaker(memory)
    if speaker is None:
        return ""
    known = frame.roles.get(role_kind(speaker)) if memory.data.get("speaker") is None else None
    if known is not None:
        return f"{known}: "
    name = f"{quoted(speaker[:_LONGEST_SPEAKER])}:"
    forged = _is_told_by_other(memory) and normalise(speaker) in USER_SUBJECTS.union(frame.roles.values())
    return f"{frame.other} {name} " if forged else f"{name} "


def _is_told_by_other(memory: MemoryItem) -> bool:
    return teller_of(memory.data, memory.user_id) is not None


def _is_quoted(memory: MemoryItem) -> bool:
    """Return True for a fact in the words of somebody else, who means himself by "I"; a model words facts so that they
    stand alone."""
    return memory.data.get("extractor") != "llm" and _is_told_by_other(memory)


def line_texts(memory: MemoryItem) -> set[str]:
    """Return the text of a memory as a block may show it, in quotes, or the beginning of a long one."""
    shown = (with_dates(memory.content, memory.data, named=named) for named in (False, True))
    return {quoted(text[:BEGINNING]) for text in shown}


def _speaker(memory: MemoryItem) -> str | None:
    names = (memory.data.get("speaker"), memory.data.get("role"))
    return next((name.strip() for name in names if isinstance(name, str) and name.strip()), None)


def _layout(lines: Sequence[_Line], frame: _Frame, style: Style) -> list[str]:
    if style == "bullets":
        mark = f" ({frame.headings['weak'].removeprefix('## ').lower()})"
        return [frame.notice, frame.bullets, *(f"{line}{mark if line.section == 'weak' else ''}" for line in lines)]
    parts = [frame.notice, frame.title]
    for section, heading in frame.headings.items():
        inside = [line for line in lines if line.section == section]
        if section == "happened":
            inside.sort(key=lambda line: line.at)
        if inside:
            parts += ["", heading, *map(str, inside)]
    return parts


# -- budget -----------------------------------------------------------------------------------------------------------


def _fill(lines: Sequence[_Line], frame: _Frame, style: Style, left: int, count: Count) -> list[_Line]:
    """Return as many lines as fit, best first: cut to a share each, then extended into the room that is left."""

    def cost(text: object) -> int:
        return count(f"{frame.title}\n{text}") - alone

    alone = count(frame.title)
    share = max(left // max(1, min(len(lines), _SHARES)), _LEAST_SHARE)
    shown: list[tuple[_Line, _Line]] = []
    opened: set[Section] = set()
    for line in lines:
        opens = style == "sections" and line.section not in opened
        room = left - (cost(f"\n{frame.headings[line.section]}") if opens else 0)
        # Do not cut the last one to a scrap: a shorter one that fits may follow.
        part = _cut(line, min(share, room), cost, whole=bool(shown) and room < share / 2)
        part = part or (None if shown else _cut(line, room, cost))
        if part:
            left = room - cost(part)
            opened.add(line.section)
            shown.append((line, part))
    fitted = []
    for line, part in shown:
        longer = part if part is line else _cut(line, cost(part) + left, cost) or part
        left -= cost(longer) - cost(part)
        fitted.append(longer)
    return fitted


def _cut(line: _Line, most: int, cost: Callable[[object], int], *, whole: bool = False) -> _Line | None:
    """Return the line, or its beginning, for at most so many tokens; None if too little would be left."""
    longest = min(len(line.text), max(0, most) * _LONGEST_TOKEN)
    if longest == len(line.text) and cost(line) <= most:
        return line
    low, high = 0, 0 if whole else longest
    while low < high:
        middle = (low + high + 1) // 2
        if cost(replace(line, text=line.text[:middle], whole=False)) <= most:
            low = middle
        else:
            high = middle - 1
    text = line.text[: _boundary(line.text, low)].rstrip()
    return replace(line, text=text, whole=False) if len(text) >= _LEAST_CUT else None


def _boundary(text: str, size: int) -> int:
    """Return the last position up to `size` outside of words and composed characters."""
    if size >= len(text):
        return size
    for end in range(size, max(0, size - _LONGEST_WORD), -1):
        if not _joined(text[end - 1], text[end]):
            return end
    return size if size > _LONGEST_WORD else 0


def _joined(before: str, after: str) -> bool:
    if combining(after) or "\u200d" in (before, after) or after == "\ufe0f" or "\U0001f3fb" <= after <= "\U0001f3ff":
        return True
    return before.isalnum() and after.isalnum() and "W" not in (east_asian_width(before), east_asian_width(after))
