"""Annotated conversations: the memories expected of them and those that are forbidden (tests/corpus/README.md)."""

from __future__ import annotations

import json
import re
from calendar import monthrange
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from jiyi.errors import InvalidInput

Days = tuple[date, date]  # first and last
Groups = tuple[tuple[str, ...], ...]


class AnnotatedModel(BaseModel):
    """Unknown fields are an error: an ignored entry would improve the figures."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Line(AnnotatedModel):
    role: str
    speaker: str | None = None
    sent_at: AwareDatetime
    text: str = Field(min_length=1)


class Words(AnnotatedModel):
    """Every group must match, each by any of its words."""

    must_contain: Groups = Field(min_length=1)


class Expected(Words):
    type: tuple[str, ...] = Field(min_length=1)
    messages: tuple[int, ...] = Field(alias="from", min_length=1)
    date: str | None = None
    subject: str | None = None

    @property
    def days(self) -> tuple[Days, ...]:
        return () if self.date is None else tuple(days_of(part) for part in self.date.split("|"))

    @field_validator("date")
    @classmethod
    def _check_date(cls, written: str | None) -> str | None:
        for part in () if written is None else written.split("|"):
            days_of(part)
        return written


class AlsoFine(AnnotatedModel):
    messages: tuple[int, ...] = Field(alias="from", min_length=1)
    must_contain: Groups = ()


class Never(AnnotatedModel):
    """No memory may come from this message or, with `words`, none that contains them."""

    message: int = Field(alias="from")
    words: Groups = ()
    why: str


class Absent(Words):
    """Words that no memory may contain, except with one of `unless`: "moved from Berlin to Lisbon"."""

    unless: tuple[str, ...] = ()


class Moment(AnnotatedModel):
    at: AwareDatetime
    expect: tuple[Words, ...] = ()
    absent: tuple[Absent, ...] = ()


class Conversation(AnnotatedModel):
    id: str
    title: str
    language: Literal["en", "zh"]
    part: Literal["dev", "held_out"]
    kind: tuple[str, ...] = ()
    user_id: str
    group_id: str | None = None
    messages: tuple[Line, ...] = Field(min_length=1)
    expected: tuple[Expected, ...] = ()
    also_fine: tuple[AlsoFine, ...] = ()
    never: tuple[Never, ...] = ()
    as_of: tuple[Moment, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> Conversation:
        named = [at for entry in self.expected for at in entry.messages]
        named += [at for entry in self.also_fine for at in entry.messages]
        named += [entry.message for entry in self.never]
        for at in named:
            if not 0 <= at < len(self.messages):
                raise ValueError(f"there is no message {at}")
        if any(later.sent_at < earlier.sent_at for earlier, later in pairwise(self.messages)):
            raise ValueError("messages are not in the order they were sent")
        return self


def days_of(written: str) -> Days:
    """Parse a day, a month, a year or a range of days.

    >>> days_of("2024-02")
    (datetime.date(2024, 2, 1), datetime.date(2024, 2, 29))
    """
    if "/" in written:
        first, last = (date.fromisoformat(part) for part in written.split("/"))
        return first, last
    if len(written) == 4:
        return date(int(written), 1, 1), date(int(written), 12, 31)
    if len(written) == 7:
        year, month = (int(part) for part in written.split("-"))
        return date(year, month, 1), date(year, month, monthrange(year, month)[1])
    day = date.fromisoformat(written)
    return day, day


def load_corpus(paths: Sequence[Path]) -> tuple[Conversation, ...]:
    """Read the conversations in these JSON files and folders."""
    found: list[Conversation] = []
    for path in paths:
        inside = sorted(path.rglob("*.json")) if path.is_dir() else [path]
        if not inside:
            raise InvalidInput("--data", f"{path} contains no conversation: no .json file")
        found += map(_read, inside)
    for what, names in {"id": [one.id for one in found], "user_id": [one.user_id for one in found]}.items():
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InvalidInput("--data", f"two conversations have the {what} {twice!r}")
    return tuple(found)


def _read(path: Path) -> Conversation:
    try:
        return Conversation.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise InvalidInput("--data", f"{path} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
        raise InvalidInput(f"{path}{place}", first["msg"].removeprefix("Value error, ")) from None
    except (ValueError, RecursionError) as error:
        raise InvalidInput(str(path), f"is not JSON: {error}") from None


# -- dates in memories -------------------------------------------------------------------------------------------------

MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
CHINESE_MONTHS = ("一", "二", "三", "四", "五", "六", "七", "八", "九", "十", "十一", "十二")
_MONTH = r"(?P<month>" + "|".join(f"{name[:3]}(?:{name[3:]})?" if name[3:] else name for name in MONTHS) + r")\.?"
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        r"(?P<year>\d{4})-(?P<number>\d{1,2})(?:-(?P<day>\d{1,2}))?(?!\d)",
        r"(?P<year>\d{4})/(?P<number>\d{1,2})(?:/(?P<day>\d{1,2}))?(?!\d)",
        r"(?P<year>\d{4})\s*年(?:\s*(?P<number>\d{1,2})\s*月(?:\s*(?P<day>\d{1,2})\s*[日号])?)?",
        rf"\b{_MONTH}\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<year>\d{{4}})\b",
        rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH},?\s+(?P<year>\d{{4}})\b",
        rf"\b{_MONTH},?\s+(?:of\s+)?(?P<year>\d{{4}})\b",
        rf"\b{_MONTH}(?:\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?)?\s*\((?P<year>\d{{4}})\)",
        r"(?P<number>\d{1,2})\s*月(?:\s*(?P<day>\d{1,2})\s*[日号])?[^（(，。；]{0,12}[（(](?P<year>\d{4})\s*年?[)）]",
        r"(?P<chinese>十[一二]|[一二三四五六七八九十])月[^（(，。；]{0,12}[（(](?P<year>\d{4})\s*年?[)）]",
        r"(?<![\d.,:/-])(?P<year>(?:19|20)\d\d)(?![\d.,:/年-]\d|\d|年)",
    )
)


def dates_in(text: str) -> Iterator[Days]:
    """Yield the first and last day of each absolute date in a text.

    Independent of the engine's own date parser, which is part of what is measured.

    >>> [str(first) for first, _ in dates_in("last week (May 7, 2023), 上周（2023年5月7日）")]
    ['2023-05-07', '2023-05-07']
    """
    for form in _FORMS:
        for found in form.finditer(text):
            parts = found.groupdict()
            month = int(parts["number"]) if parts.get("number") else _number(parts.get("month") or parts.get("chinese"))
            day = int(parts["day"]) if parts.get("day") else None
            span = _span(int(parts["year"]), month, day)
            if span is not None:
                yield span


def _number(month: str | None) -> int | None:
    if month is None:
        return None
    if month in CHINESE_MONTHS:
        return CHINESE_MONTHS.index(month) + 1
    return next(at for at, name in enumerate(MONTHS, 1) if name.startswith(month.lower()))


def _span(year: int, month: int | None, day: int | None) -> Days | None:
    try:
        if month is None:
            return date(year, 1, 1), date(year, 12, 31)
        if day is None:
            return date(year, month, 1), date(year, month, monthrange(year, month)[1])
        return date(year, month, day), date(year, month, day)
    except ValueError:  # the 31st of June
        return None
