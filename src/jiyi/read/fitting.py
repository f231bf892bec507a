"""Of the two best hits, first the one that fits the time asked about if one changes what the other says.

Writing ends a stored statement only where the reader is sure, since nobody has asked yet. Two statements that answer
one query are about the same thing, so less is enough to choose between them, and nothing ends by it. The more surely
the first one answers, the surer the change has to be: "the guests' wifi is now birch" leaves the office's alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ..models import MemoryItem
from ..reader import Reader, told
from ..roles import is_person, teller_of
from .rank import RankedHit

LEAST_ODDS = -1.5  # logit of the change less the lead of the first hit; chosen on stories that no reader was trained on
LEAST_SCORE = 0.3  # of both


def fitting_first(
    reader: Reader, hits: Sequence[RankedHit], found: Mapping[str, MemoryItem], user_id: str, *, is_current: bool
) -> list[RankedHit]:
    """Return hits, which are sorted by score, with the scores of the first two exchanged if the newer of them changes
    what the older one says and the wrong one is first. `is_current`: the query is about the present."""
    if len(hits) < 2 or hits[1].score < LEAST_SCORE or hits[0].outdated or hits[1].outdated:
        return list(hits)
    first, second, *others = hits
    newer, older = (second, first) if is_current else (first, second)
    change = _change(reader, found[newer.id], found[older.id], user_id)
    if _logit(change) - (first.logit - second.logit) < LEAST_ODDS:
        return list(hits)
    reason = "changes an older hit" if is_current else "holds for the past"
    return [
        second.rescored(reason, 1.0, first.logit),
        first.rescored("another hit fits the time", 1.0, second.logit),
        *others,
    ]


def _change(reader: Reader, newer: MemoryItem, older: MemoryItem, user_id: str) -> float:
    """Return the probability that a statement changes an older one; 0 if its teller cannot."""
    if newer.valid_from <= older.valid_from or not is_person(newer.data.get("role") or "user"):
        return 0.0
    teller = teller_of(newer.data, user_id)
    if teller is not None and teller != teller_of(older.data, user_id):
        return 0.0
    [verdict] = reader.changes(told(newer.content, newer.data, user_id), [told(older.content, older.data, user_id)])
    return 0.0 if verdict is None else verdict.ends


def _logit(share: float) -> float:
    return math.log(share / (1 - share)) if 0 < share < 1 else math.copysign(math.inf, share - 0.5)
