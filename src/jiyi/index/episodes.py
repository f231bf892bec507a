"""Which messages belong together: an episode is what was said in one session without a long silence in between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .query import Floats

Slots = NDArray[np.integer[Any]]

SILENCE = 4 * 3_600_000_000  # microseconds; what follows a longer one has little to do with what went before
NEIGHBOUR = 0.5  # what a neighbour lends, against what a message has itself


@dataclass(frozen=True, slots=True)
class Episodes:
    """Neighbours as pairs of slots (the earlier one, the later one), and the number of each message's episode."""

    first: Slots
    second: Slots
    number: Slots  # of each slot's episode; episodes of one message count as none, unless it stands for many: -1
    count: int
    lengths: Floats  # of the episodes, in terms

    def lent(self, values: Floats, in_scope: NDArray[np.bool_] | None) -> Floats:
        """The mean of a message's own value and, at half weight, of those before and after it. One that is out of
        scope lends nothing. (None: all are in scope.)"""
        first, second = self.first, self.second
        if in_scope is not None:
            both = in_scope[first] & in_scope[second]
            first, second = first[both], second[both]
        if not len(first):
            return values
        whole = np.ones(len(values), np.float32)
        whole[second] += NEIGHBOUR
        whole[first] += NEIGHBOUR
        lent = values.copy()
        lent[second] += NEIGHBOUR * values[first]
        lent[first] += NEIGHBOUR * values[second]
        lent /= whole
        return lent

    def neighbours(self, slots: Slots, size: int) -> tuple[Slots, Slots]:
        """Return the slots of the messages before and after; -1 where there is none."""
        previous, following = np.full(size, -1, np.int32), np.full(size, -1, np.int32)
        previous[self.second], following[self.first] = self.first, self.second
        return previous[slots], following[slots]

    def mean(self, values: Floats, slots: Slots) -> Floats:
        """Return the mean value over each message's episode; its own value outside of episodes."""
        inside = self.number[: len(values)] >= 0
        number = self.number[: len(values)][inside]
        sums = np.bincount(number, values[inside], minlength=max(self.count, 1))
        counts = np.bincount(number, minlength=max(self.count, 1))
        means = (sums / np.maximum(counts, 1)).astype(np.float32)
        own = self.number[slots]
        return np.where(own >= 0, means[own], values[slots])

    def from_before(self, values: Floats) -> Floats:
        """The value of the message before."""
        before = np.zeros_like(values)
        before[self.second] = values[self.first]
        return before


def episodes(
    said: Slots, session: Slots, occurred: Slots, lengths: Slots, alone: NDArray[np.bool_] | None = None
) -> Episodes:
    """Of the slots `said`; the other arrays are over all slots. `alone`: one that is an episode by itself."""
    number = np.full(len(session), -1, np.int32)
    order = said[np.lexsort((occurred[said], session[said]))]
    first, second = order[:-1], order[1:]
    joined = (session[first] == session[second]) & (occurred[second] - occurred[first] <= SILENCE)
    first, second = first[joined], second[joined]
    starts = np.concatenate(([True], ~joined)) if len(order) else np.zeros(0, np.bool_)
    run = np.cumsum(starts) - 1
    several = np.bincount(run) > 1 if len(run) else np.zeros(0, np.bool_)
    if alone is not None and len(run):
        several[run[alone[order]]] = True
    renumbered = np.where(several, np.cumsum(several) - 1, -1)
    number[order] = renumbered[run]
    count = int(several.sum())
    inside = number >= 0
    total = np.bincount(number[inside], lengths[inside], minlength=count).astype(np.float32)
    return Episodes(first, second, number, count, total)
