"""Correct dates in the text of a model: models are bad at calendars."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime

from ...languages.dates import TimeSpan
from ...llm.prompts import PromptLanguage
from .moments import absolute, times_in

# Obligations: "reminded Mei to renew it before June 30".
_OBLIGATION = re.compile(
    r"\b(?:reminds?|reminded|asked|told|plans|planned|promised|decided|intends|hopes) (?:\w+ ){0,3}?to \w+\b"
    r"[^,.;]{0,40}$"
    r"|(?:提醒|要求|计划|打算|答应|决定)[^，。；]{0,12}$"
)
_BRACKET = re.compile(r"\s*[(（]([^()（）]{1,60})[)）]")


def correct_dates(
    text: str, said_at: datetime, language: PromptLanguage, *, ahead: bool, supported: Callable[[TimeSpan], bool]
) -> str:
    """Add absolute dates to relative times, and remove wrong or unsupported dates in brackets.

    >>> from datetime import UTC
    >>> monday = datetime(2023, 5, 8, tzinfo=UTC)
    >>> correct_dates("Mei moved last month (May 8, 2023).", monday, "en", ahead=False, supported=lambda _: True)
    'Mei moved last month (April 2023).'
    """
    for bracket in reversed(list(_BRACKET.finditer(text))):
        spans = _times(text, said_at, ahead=ahead)
        inside = [span for span in spans if bracket.start() <= span.at[0] and span.at[1] <= bracket.end()]
        explained = [span for span in spans if span.relative and span.at[1] == bracket.start()]
        wrong = not all(map(supported, inside)) or any(_is_wrong(span, inside) for span in explained)
        if (
            inside
            and wrong
            and sum(end - start for start, end in (span.at for span in inside)) >= len(bracket[1].strip())
        ):
            text = text[: bracket.start()] + text[bracket.end() :]
    open_spans = [span for span in _times(text, said_at, ahead=ahead) if not _explained(span, text)]
    return absolute(text, open_spans, said_at, language)


def _times(text: str, said_at: datetime, *, ahead: bool) -> Sequence[TimeSpan]:
    """Find times; a deadline lies ahead although the sentence is in the past tense."""
    ahead_spans = {span.at: span for span in times_in(text, said_at, ahead=True)}
    found = times_in(text, said_at, ahead=ahead)
    return [ahead_spans.get(span.at, span) if _OBLIGATION.search(text, 0, span.at[0]) else span for span in found]


def _is_wrong(span: TimeSpan, inside: Sequence[TimeSpan]) -> bool:
    return not any(other.start < span.end and span.start < other.end for other in inside)


def _explained(span: TimeSpan, text: str) -> bool:
    """Return True if a date in brackets follows, or the time itself is in brackets."""
    return bool(_BRACKET.match(text, span.at[1])) or text[: span.at[0]].rstrip()[-1:] in ("(", "（")


def resolve_day(proposed: datetime | None, text: str, quote: str, said_at: datetime, *, ahead: bool) -> datetime | None:
    """Return the day in the text or the quote, or the proposed one if it agrees."""
    for words in (text, quote):
        spans = [span for span in times_in(words, said_at, ahead=ahead) if (span.end - span.start).days <= 400]
        if spans:
            agrees = proposed is not None and any(span.start <= proposed < span.end for span in spans)
            return proposed if agrees else spans[0].start
    return proposed
