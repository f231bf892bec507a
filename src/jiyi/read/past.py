"""Whether a question wants what was, not what is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ..languages import cue


def asks_for_the_past(query: str, spans: Sequence[tuple[datetime, datetime]], now: datetime) -> bool:
    """By its words, or because all the times that it speaks of are over."""
    return cue("past_question").search(query) is not None or (bool(spans) and all(end <= now for _, end in spans))
