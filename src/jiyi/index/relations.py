"""Relations between memories of one user: episodes of a conversation, derived memories, and their successors."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .query import Floats, Mask, Scope, Slots

SILENCE = 4 * 3_600_000_000  # microseconds; a longer pause begins a new episode
NEIGHBOUR = 0.5  # weight of a neighbouring message against the message itself
NONE = -1  # slot that stands for no memory
ABOUT = 0.3  # share of a message's match that its ended part must reach: else the query is about another part of it
LONGEST = 100  # changes of one fact that are followed


@dataclass(frozen=True)
class Episodes:
    """Messages of one session without a long pause: pairs of neighbours, and the number of each message's episode."""

    first: Slots
    second: Slots
    number: Slots  # by slot; -1 for an episode of one message, unless that message is compressed
    count: int
    lengths: Floats  # of the episodes, in terms

    def smoothed(self, values: Floats, in_scope: Mask | None) -> Floats:
        """Return the weighted mean of each message's value and its neighbours' in scope; None means all are."""
        first, second = self.first, self.second
        if in_scope is not None:
            both = in_scope[first] & in_scope[second]
            first, second = first[both], second[both]
        if not len(first):
            return values
        weight = self._weight
        if in_scope is not None:
            weight = np.ones(len(values), np.float32)
            weight[second] += NEIGHBOUR
            weight[first] += NEIGHBOUR
        total = values.copy()
        total[second] += NEIGHBOUR * values[first]
        total[first] += NEIGHBOUR * values[second]
        total /= weight
        return total

    @cached_property
    def previous(self) -> Slots:
        """Slot of the message before each slot; -1 where there is none."""
        previous = np.full(len(self.number), NONE, np.int32)
        previous[self.second] = self.first
        return previous

    @cached_property
    def _weight(self) -> Floats:
        weight = np.ones(len(self.number), np.float32)
        weight[self.second] += NEIGHBOUR
        weight[self.first] += NEIGHBOUR
        return weight

    def from_before(self, values: Floats) -> Floats:
        """Return the value of the message before."""
        before = np.zeros_like(values)
        before[self.second] = values[self.first]
        return before


def find_episodes(
    messages: Slots, session: Slots, occurred: Slots, lengths: Slots, alone: Mask | None = None
) -> Episodes:
    """Group the slots `messages`; the other arrays cover all slots. `alone` marks messages that are an episode by
    themselves."""
    number = np.full(len(session), -1, np.int32)
    order = messages[np.lexsort((occurred[messages], session[messages]))]
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


@dataclass(frozen=True, slots=True)
class Succession:
    """Messages that match a query with a statement that has ended, and the slots that supersede it."""

    outdated: Floats  # 1 for such a message
    partly: Mask  # messages of which something has ended, whether it matches or not
    old: Slots  # pairs: such a message,
    new: Slots  # and a derived memory that holds now, or a message that it came from

    @property
    def succeeds(self) -> Floats:
        """1 for slots that supersede another."""
        found = np.zeros_like(self.outdated)
        found[self.new] = 1
        return found

    def inherit(self, values: Floats) -> Floats:
        """Give successors the value of what they superseded: 我搬到成都了 answers 我住在哪里 too."""
        if not len(self.old):
            return values
        inherited = values.copy()
        np.maximum.at(inherited, self.new, values[self.old])
        return inherited


class Derivations:
    """Slots in threes: a derived memory, the message it came from, and the memory that supersedes it. A changed memory
    gets a new slot and is added again; entries with a dead slot are ignored."""

    def __init__(self) -> None:
        self._derived: Slots = np.empty(0, np.int32)
        self._message: Slots = np.empty(0, np.int32)
        self._successor: Slots = np.empty(0, np.int32)

    def __len__(self) -> int:
        return len(self._derived)

    def add(self, threes: list[tuple[int, int, int]]) -> None:
        if threes:
            derived, message, successor = np.array(threes, np.int32).T
            self._derived, self._message = np.append(self._derived, derived), np.append(self._message, message)
            self._successor = np.append(self._successor, successor)

    def packed(self) -> dict[str, Slots]:
        return {"derived slots": self._derived, "message slots": self._message, "successor slots": self._successor}

    def unpack(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._derived, self._message = arrays["derived slots"], arrays["message slots"]
        self._successor = arrays["successor slots"]

    def of(self, messages: Mask) -> Slots:
        """Return the memories derived from these messages."""
        return self._derived[messages[self._message]]

    def statements(self, size: int, alive: Mask) -> NDArray[np.intp]:
        """Return a number for each slot that a message shares with the memories derived from it: the message's slot. A
        memory derived from several messages belongs to the last of them."""
        there = alive[self._derived] & alive[self._message]
        np.maximum.at(belongs := np.full(size, -1), self._derived[there], self._message[there])
        return np.where(belongs >= 0, belongs, np.arange(size))

    def best(self, values: Floats, in_scope: Mask) -> Floats:
        """Return for each message the best value of its derived memories, where both are in scope; else 0."""
        return self._best(values, in_scope[self._derived] & in_scope[self._message])

    def succession(self, match: Floats, alive: Mask, ended: Mask) -> Succession | None:
        """Return the messages that match by a derived memory that has ended; None if none has."""
        there = alive[self._derived] & alive[self._message]
        gone = there & ended[self._derived]
        if not gone.any():
            return None
        past, present = self._best(match, gone), self._best(match, there & ~ended[self._derived])
        outdated = (past > 0) & (past >= present) & (past >= ABOUT * match)
        meant = gone & outdated[self._message] & (match[self._derived] >= past[self._message])
        latest = self._latest(self._derived[meant], len(match), ended)
        known = latest != NONE
        old, latest = self._message[meant][known], latest[known]
        of_latest = there & np.isin(self._derived, latest)
        first, second = _joined(latest, old, self._derived[of_latest], self._message[of_latest])
        first, second = np.append(first, old), np.append(second, latest)
        current = ~outdated[second]
        partly = np.zeros(len(match), np.bool_)
        partly[self._message[gone]] = True
        return Succession(outdated.astype(np.float32), partly, first[current], second[current])

    def _best(self, values: Floats, chosen: Mask) -> Floats:
        best = np.zeros_like(values)
        np.maximum.at(best, self._message[chosen], values[self._derived[chosen]])
        return best

    def _latest(self, derived: Slots, size: int, ended: Mask) -> Slots:
        """Return the successors that hold now, after any number of changes; NONE if unknown."""
        following = np.full(size + 1, NONE, np.int32)  # the last place stands for NONE
        following[self._derived] = self._successor
        gone = np.append(ended, False)
        for _ in range(LONGEST):
            old = gone[derived]
            if not old.any():
                break
            derived = np.where(old, following[derived], derived)
        return np.where(gone[derived], NONE, derived)


def _joined(left: Slots, old: Slots, right: Slots, new: Slots) -> tuple[Slots, Slots]:
    """Return all pairs of an old and a new slot with equal keys, left and right."""
    order = np.argsort(left, kind="stable")
    left, old = left[order], old[order]
    start, end = np.searchsorted(left, right, "left"), np.searchsorted(left, right, "right")
    times = end - start
    within = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
    return old[np.repeat(start, times) + within], np.repeat(new, times)


def positions(succession: Succession | None, slots: Scope, size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return a succession's pairs as positions among the slots in scope."""
    if succession is None:
        return np.empty(0, np.intp), np.empty(0, np.intp)
    position = np.full(size, -1, np.intp)
    chosen = np.arange(size)[slots]
    position[chosen] = np.arange(len(chosen))
    old, new = position[succession.old], position[succession.new]
    both = (old >= 0) & (new >= 0)
    return old[both], new[both]
