"""What was worked out of messages speaks for them: it says in other words, often plainer ones, what they are about, and
whether it is so still."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .query import Floats

Slots = NDArray[np.integer[Any]]
Which = NDArray[np.bool_]

NOBODY = -1
ABOUT = 0.3  # of what a message fits a query, what is over must fit: else the query wants something else that it says
LONGEST = 100  # changes of one thing that are followed


@dataclass(frozen=True, slots=True)
class Succession:
    """Messages that say what is no longer so, about just that which a query is about, and who speaks in their place."""

    over: Floats  # 1 for such a message
    old: Slots  # pairs: such a message,
    new: Slots  # and what says the same of now: what was worked out, and the messages that it came from

    @property
    def succeeds(self) -> Floats:
        """1 for what speaks in the place of another."""
        found = np.zeros_like(self.over)
        found[self.new] = 1
        return found

    def inherit(self, values: Floats) -> Floats:
        """What speaks in an old one's place is found by the old one's words too: 我搬到成都了 answers 我住在哪里."""
        if not len(self.old):
            return values
        inherited = values.copy()
        np.maximum.at(inherited, self.new, values[self.old])
        return inherited


class Gists:
    """Slots in threes: a memory that was worked out, the message it came from, and the memory that has taken its place.
    A slot dies when its memory changes; then they are added anew, and the old ones count for nothing."""

    def __init__(self) -> None:
        self._gist: Slots = np.empty(0, np.int32)
        self._message: Slots = np.empty(0, np.int32)
        self._successor: Slots = np.empty(0, np.int32)

    def __len__(self) -> int:
        return len(self._gist)

    def add(self, threes: list[tuple[int, int, int]]) -> None:
        if threes:
            gist, message, successor = np.array(threes, np.int32).T
            self._gist, self._message = np.append(self._gist, gist), np.append(self._message, message)
            self._successor = np.append(self._successor, successor)

    def of(self, messages: Which) -> Slots:
        """What was worked out of these."""
        return self._gist[messages[self._message]]

    def statements(self, size: int, alive: Which) -> NDArray[np.intp]:
        """Return a number for each slot that a message shares with the memories derived from it: the message's slot. A
        memory derived from several messages belongs to the last of them."""
        number = np.arange(size)
        there = alive[self._gist] & alive[self._message]
        np.maximum.at(belongs := np.full(size, -1), self._gist[there], self._message[there])
        return np.where(belongs >= 0, belongs, number)

    def lent(self, values: Floats, in_scope: Which) -> Floats:
        """For each message the best value of what came from it, as far as both are in scope; 0 if there is none."""
        return self._best(values, in_scope[self._gist] & in_scope[self._message])

    def succession(self, fit: Floats, alive: Which, ended: Which) -> Succession | None:
        """Which messages a query finds for the sake of what is over; None: nothing is."""
        there = alive[self._gist] & alive[self._message]
        gone = there & ended[self._gist]
        if not gone.any():
            return None
        past, present = self._best(fit, gone), self._best(fit, there & ~ended[self._gist])
        over = (past > 0) & (past >= present) & (past >= ABOUT * fit)
        meant = gone & over[self._message] & (fit[self._gist] >= past[self._message])
        latest = self._latest(self._gist[meant], len(fit), ended)
        known = latest != NOBODY
        old, latest = self._message[meant][known], latest[known]
        of_latest = there & np.isin(self._gist, latest)
        first, second = _joined(latest, old, self._gist[of_latest], self._message[of_latest])
        first, second = np.append(first, old), np.append(second, latest)
        apart = ~over[second]
        return Succession(over.astype(np.float32), first[apart], second[apart])

    def _best(self, values: Floats, which: Which) -> Floats:
        best = np.zeros_like(values)
        np.maximum.at(best, self._message[which], values[self._gist[which]])
        return best

    def _latest(self, gists: Slots, size: int, ended: Which) -> Slots:
        """What holds in their place now, after however many changes; NOBODY if that is not known."""
        following = np.full(size + 1, NOBODY, np.int32)  # the last place stands for nobody
        following[self._gist] = self._successor
        gone = np.append(ended, False)
        for _ in range(LONGEST):
            old = gone[gists]
            if not old.any():
                break
            gists = np.where(old, following[gists], gists)
        return np.where(gone[gists], NOBODY, gists)


def _joined(left: Slots, old: Slots, right: Slots, new: Slots) -> tuple[Slots, Slots]:
    """All pairs of an old and a new one whose keys, left and right, are the same."""
    order = np.argsort(left, kind="stable")
    left, old = left[order], old[order]
    start, end = np.searchsorted(left, right, "left"), np.searchsorted(left, right, "right")
    times = end - start
    within = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
    return old[np.repeat(start, times) + within], np.repeat(new, times)
