"""Sorted keywords of a user, to find those with a common prefix."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from itertools import islice

EXACT, PREFIX = 1.0, 0.8  # how well a keyword fits a wanted one
MOST_CONTINUATIONS = 1000
MANY = 100  # from so many new ones on, sorting all is quicker than inserting each


class Vocabulary:
    def __init__(self) -> None:
        self._words: list[str] = []

    def learn(self, words: Iterable[str]) -> None:
        new = [word for word in words if not self._knows(word)]
        if len(new) < MANY:
            for word in new:
                insort(self._words, word)
        else:
            self._words = sorted({*self._words, *new})

    def replace(self, words: Iterable[str]) -> None:
        """Keep only these."""
        self._words = sorted(words)

    def alike(self, word: str) -> list[tuple[str, float]]:
        """Return the keyword and those that begin with it. One or two Latin letters match too many."""
        found = [(word, EXACT)]
        if len(word) >= 3 or not word.isascii():
            start = bisect_right(self._words, word)
            for other in islice(self._words, start, start + MOST_CONTINUATIONS):
                if not other.startswith(word):
                    break
                found.append((other, PREFIX))
        return found

    def _knows(self, word: str) -> bool:
        at = bisect_left(self._words, word)
        return at < len(self._words) and self._words[at] == word
