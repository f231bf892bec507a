"""The earlier statement that a new one is about: the one that shares most of its rare words."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import log, sqrt

from ..languages.terms import tokens
from ..models import MemoryItem
from ..store.contract import NewMemory

Told = MemoryItem | NewMemory

ENOUGH = 0.17  # weight of the shared words, relative to both statements
ENOUGH_FOR_CHANGE = 0.25  # the same for changes, which are harder to tell from news
COMMON = 20  # smooths the rarity of words while there are few statements


def rarity_of(texts: Sequence[Told]) -> tuple[dict[str, frozenset[str]], dict[str, float]]:
    """Return the words of each text, and how rare each word is among them."""
    words = {one.id: frozenset(tokens(one.content)) for one in texts}
    common = Counter(word for own in words.values() for word in own)
    return words, {word: log((len(words) + COMMON) / count) for word, count in common.items()}


def nearest(
    new: NewMemory, there: Sequence[tuple[Told, bool]], words: Mapping[str, frozenset[str]], rarity: Mapping[str, float]
) -> Told | None:
    """Return the statement that shares most words with a new one; one that it names comes before all others."""
    if not there:
        return None
    own = sum(rarity[word] for word in words[new.id])
    best, most = None, ENOUGH_FOR_CHANGE if new.data.get("kind") == "change" else ENOUGH
    for old, named in there:
        shared = sum(rarity[word] for word in words[old.id] & words[new.id])
        alike = shared / sqrt(own * sum(rarity[word] for word in words[old.id]) or 1.0)
        if named:
            alike += 1
        if alike > most:
            best, most = old, alike
    return best
