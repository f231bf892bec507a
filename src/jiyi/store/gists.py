"""What was worked out of messages speaks for them: it says in other words, often plainer ones, what they are about."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .asking import Floats

Slots = NDArray[np.integer[Any]]


class Gists:
    """Pairs of slots: a memory that was worked out, and the message it came from. A slot dies when its memory changes;
    its pairs are then added anew, and the old ones lend nothing."""

    def __init__(self) -> None:
        self._gist: Slots = np.empty(0, np.int32)
        self._message: Slots = np.empty(0, np.int32)

    def __len__(self) -> int:
        return len(self._gist)

    def add(self, pairs: list[tuple[int, int]]) -> None:
        if pairs:
            gist, message = np.array(pairs, np.int32).T
            self._gist, self._message = np.append(self._gist, gist), np.append(self._message, message)

    def lent(self, values: Floats, in_scope: NDArray[np.bool_]) -> Floats:
        """For each message the best value of what came from it, as far as both are in scope; 0 if there is none."""
        both = in_scope[self._gist] & in_scope[self._message]
        best = np.zeros_like(values)
        np.maximum.at(best, self._message[both], values[self._gist[both]])
        return best
