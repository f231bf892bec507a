"""Times in what a model wrote. Models are bad at calendars: what Jiyi can work out itself, it does."""

from __future__ import annotations

import re
from datetime import datetime

from ...llm.prompts import PromptLanguage
from ...text.times import TimeSpan
from ..extractors.moments import absolute, times_in

_BRACKET = re.compile(r"\s*[(（]([^()（）]{1,60})[)）]")


def with_true_dates(text: str, said_at: datetime, tongue: PromptLanguage, *, ahead: bool) -> str:
    """Relative times with the date that they mean, whatever the model put behind them.

    >>> from datetime import UTC
    >>> monday = datetime(2023, 5, 8, tzinfo=UTC)
    >>> with_true_dates("Mei moved last month (May 8, 2023).", monday, "en", ahead=False)
    'Mei moved last month (April 2023).'
    """
    spans = times_in(text, said_at, ahead=ahead)
    for span in sorted(spans, key=lambda span: -span.at[0]):
        bracket = _BRACKET.match(text, span.at[1])
        if span.relative and bracket and _is_wrong(span, spans, bracket):
            text = text[: bracket.start()] + text[bracket.end() :]
    open_spans = [span for span in times_in(text, said_at, ahead=ahead) if not _explained(span, text)]
    return absolute(text, open_spans, said_at, tongue)


def _is_wrong(span: TimeSpan, spans: tuple[TimeSpan, ...], bracket: re.Match[str]) -> bool:
    inside = [other for other in spans if bracket.start() <= other.at[0] and other.at[1] <= bracket.end()]
    return bool(inside) and not any(other.start < span.end and span.start < other.end for other in inside)


def _explained(span: TimeSpan, text: str) -> bool:
    """Whether a date stands behind it, or it is one itself that stands in brackets."""
    return bool(_BRACKET.match(text, span.at[1])) or text[: span.at[0]].rstrip()[-1:] in ("(", "（")


def day_meant(proposed: datetime | None, text: str, said_at: datetime, *, ahead: bool) -> datetime | None:
    """The day that a memory is about: the proposed one if it agrees with the text, or the one that the text names."""
    spans = [span for span in times_in(text, said_at, ahead=ahead) if (span.end - span.start).days <= 400]
    if not spans:
        return proposed
    if proposed is not None and any(span.start <= proposed < span.end for span in spans):
        return proposed
    return spans[0].start
