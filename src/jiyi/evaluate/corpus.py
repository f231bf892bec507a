"""Written conversations that say what should be remembered of them and what must not be (tests/corpus/README.md)."""

from __future__ import annotations

import json
from calendar import monthrange
from collections.abc import Sequence
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from ..errors import InvalidInput

Days = tuple[date, date]  # the first and the last
Groups = tuple[tuple[str, ...], ...]


class Written(BaseModel):
    """A slip of the pen is an error: an entry that is overlooked would make figures look better than they are."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class SaidLine(Written):
    role: str
    speaker: str | None = None
    sent_at: AwareDatetime
    text: str = Field(min_length=1)


class Words(Written):
    """All groups must be hit, each by any of its words."""

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
    def _can_be_read(cls, written: str | None) -> str | None:
        for part in () if written is None else written.split("|"):
            days_of(part)
        return written


class AlsoFine(Written):
    messages: tuple[int, ...] = Field(alias="from", min_length=1)
    must_contain: Groups = ()


class Never(Written):
    """Nothing may be remembered of this message or, with `words`, nothing of it that holds them."""

    message: int = Field(alias="from")
    words: Groups = ()
    why: str


class Absent(Words):
    """Words that no memory may hold then, except together with one of `unless`: "moved from Berlin to Lisbon"."""

    unless: tuple[str, ...] = ()


class Moment(Written):
    at: AwareDatetime
    expect: tuple[Words, ...] = ()
    absent: tuple[Absent, ...] = ()


class Conversation(Written):
    id: str
    title: str
    language: Literal["en", "zh"]
    part: Literal["dev", "held_out"]
    kind: tuple[str, ...] = ()
    user_id: str
    group_id: str | None = None
    messages: tuple[SaidLine, ...] = Field(min_length=1)
    expected: tuple[Expected, ...] = ()
    also_fine: tuple[AlsoFine, ...] = ()
    never: tuple[Never, ...] = ()
    as_of: tuple[Moment, ...] = ()

    @model_validator(mode="after")
    def _is_whole(self) -> Conversation:
        named = [at for entry in self.expected for at in entry.messages]
        named += [at for entry in self.also_fine for at in entry.messages]
        named += [entry.message for entry in self.never]
        for at in named:
            if not 0 <= at < len(self.messages):
                raise ValueError(f"there is no message {at}")
        if any(later.sent_at < earlier.sent_at for earlier, later in pairwise(self.messages)):
            raise ValueError("messages are not in the order in which they were sent")
        return self


def days_of(written: str) -> Days:
    """A day, a month, a year, or a stretch of days.

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
    """The conversations in these files and folders, each a JSON file."""
    found: list[Conversation] = []
    for path in paths:
        inside = sorted(path.rglob("*.json")) if path.is_dir() else [path]
        if not inside:
            raise InvalidInput("--data", f"{path} holds no conversation: no .json in it")
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
