"""From outcomes to figures: of each language and each type, how many memories are right and how many were found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .extraction import COUNTED, Judged, Missed, Outcome, Slip

ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    language: str
    memory_type: str
    made: int
    right: int
    expected: int
    found: int

    @property
    def precision(self) -> float | None:
        return self.right / self.made if self.made else None

    @property
    def recall(self) -> float | None:
        return self.found / self.expected if self.expected else None

    @property
    def f1(self) -> float | None:
        if self.precision is None or self.recall is None:
            return None
        return 2 * self.precision * self.recall / (self.precision + self.recall) if self.right and self.found else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Never:
    """Things that must not become memories, and how many did."""

    language: str
    things: int
    remembered: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionResult:
    conversations: int
    rows: tuple[Row, ...]
    never: tuple[Never, ...]
    checks: int | None  # of what holds at a moment; None: they were not made
    slips: tuple[Slip, ...]
    missed: tuple[Missed, ...]
    false: tuple[Judged, ...]


def summarise_extraction(outcomes: Sequence[Outcome]) -> ExtractionResult:
    looked = [one for one in outcomes if one.slips is not None]
    return ExtractionResult(
        conversations=len(outcomes),
        rows=tuple(_rows(outcomes)),
        never=tuple(_never(outcomes)),
        checks=sum(len(at.expect) + len(at.absent) for one in looked for at in one.conversation.as_of)
        if looked
        else None,
        slips=tuple(slip for one in looked for slip in one.slips or ()),
        missed=tuple(entry for one in outcomes for entry in one.missed),
        false=tuple(entry for one in outcomes for entry in one.judged if entry.verdict in ("forbidden", "wrong")),
    )


def _languages(outcomes: Sequence[Outcome]) -> list[str]:
    return [*sorted({one.conversation.language for one in outcomes}), ALL]


def _rows(outcomes: Sequence[Outcome]) -> Iterator[Row]:
    """A memory counts for its own type, an expected one for the first of those it may have."""
    for language in _languages(outcomes):
        here = [one for one in outcomes if language in (ALL, one.conversation.language)]
        for memory_type in (*COUNTED, ALL):
            made = [entry for one in here for entry in one.judged if memory_type in (ALL, entry.found.memory_type)]
            expected = [
                entry for one in here for entry in one.conversation.expected if memory_type in (ALL, entry.type[0])
            ]
            missed = [entry for one in here for entry in one.missed if memory_type in (ALL, entry.expected.type[0])]
            if made or expected:
                yield Row(
                    language=language,
                    memory_type=memory_type,
                    made=len(made),
                    right=sum(entry.verdict in ("expected", "also fine") for entry in made),
                    expected=len(expected),
                    found=len(expected) - len(missed),
                )


def _never(outcomes: Sequence[Outcome]) -> Iterator[Never]:
    for language in _languages(outcomes):
        here = [one for one in outcomes if language in (ALL, one.conversation.language)]
        yield Never(
            language=language,
            things=sum(len(one.conversation.never) for one in here),
            remembered=sum(len(one.forbidden) for one in here),
        )
