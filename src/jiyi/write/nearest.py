"""The earlier statement that a new one is about: the one that shares most of its rare words."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import Self

from .. import threads
from ..languages.terms import tokens
from ..models import MemoryItem
from ..store.write_set import NewMemory
from .slots import COMPARED

Told = MemoryItem | NewMemory

ENOUGH = 0.17  # weight of the shared words, relative to both statements
ENOUGH_FOR_CHANGE = 0.25  # the same for changes, which are harder to tell from news
COMMON = 20  # smooths the rarity of words while there are few statements


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The words of some texts, by id, and how rare each word is among them."""

    words: Mapping[str, frozenset[str]]
    rarity: Mapping[str, float]
    weights: Mapping[str, float]  # of all words of a text

    @classmethod
    def of(cls, texts: Sequence[Told]) -> Self:
        words: dict[str, frozenset[str]] = {}
        for one in texts:
            threads.check()
            words[one.id] = frozenset(tokens(one.content[:COMPARED]))
        common = Counter(word for own in words.values() for word in own)
        rarity = {word: log((len(words) + COMMON) / count) for word, count in common.items()}
        return cls(words, rarity, {one: sum(rarity[word] for word in own) for one, own in words.items()})

    def likeness(self, one: Told, other: Told) -> float:
        """Return the weight of the words that two texts share, relative to both."""
        shared = sum(self.rarity[word] for word in self.words[one.id] & self.words[other.id])
        return shared / sqrt(self.weights[one.id] * self.weights[other.id] or 1.0)


def nearest(new: NewMemory, there: Sequence[tuple[Told, bool]], vocabulary: Vocabulary) -> Told | None:
    """Return the statement that shares most words with a new one; one that it names comes before all others."""
    threads.check()
    best, most = None, ENOUGH_FOR_CHANGE if new.data.get("kind") == "change" else ENOUGH
    for old, named in there:
        alike = vocabulary.likeness(new, old) + named
        if alike > most:
            best, most = old, alike
    return best
