"""Whether a question wants what was, not what is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

_PAST = re.compile(
    r"\b(?:used to|before|prior to|previous(?:ly)?|former(?:ly)?|earlier|original(?:ly)?|initial(?:ly)?|ago|ever"
    r"|back (?:then|when)|in the past|at first|at that time|(?:my|our|your|his|her|their|the|['’]s) old|history"
    r"|chang(?:e|ed|es|ing)|switch(?:ed)?)\b"
    r"|以前|之前|先前|此前|原来|原先|原本|从前|过去|曾经|曾[在是有]|当初|当时|那时|最初|起初|一开始|早先|历史|旧(?!金山)"
    r"|上一[个份任次]|前一[个份任次]|变化|改变|换过|改过",
    re.IGNORECASE,
)


def asks_for_the_past(query: str, spans: Sequence[tuple[datetime, datetime]], now: datetime) -> bool:
    """By its words, or because all the times that it speaks of are over."""
    return _PAST.search(query) is not None or (bool(spans) and all(end <= now for _, end in spans))
