"""A query's words and what else they may be called: original, synonyms, related."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log2

from ..languages.normalise import normalise
from ..languages.synonyms import builtin_synonyms
from ..synonyms import Cooccurrence

MOST_SYNONYMS = 4  # of one word
MOST_RELATED = 5
LEAST_SUPPORT = 2  # memories in which two words stand together; one may be chance
LEAST_LIFT = 1.5  # times as often together as by chance


@dataclass(frozen=True, slots=True)
class Expansion:
    original: tuple[str, ...]
    synonyms: tuple[str, ...]
    related: tuple[str, ...]
    by_word: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # which synonym is whose


def expand(
    words: Iterable[str],
    own: Mapping[str, Sequence[tuple[str, float]]],
    related: Sequence[str] = (),
    *,
    use_builtin: bool = True,
) -> Expansion:
    """The words with their synonyms: those that users brought come first, then those that Jiyi knows.

    >>> expand(["过敏"], {}).synonyms
    ('allergy', 'allergic', 'allergies')
    """
    original = tuple(word for word in dict.fromkeys(map(normalise, words)) if word)
    by_word: dict[str, tuple[str, ...]] = {}
    for word in original:
        brought = sorted(own.get(word, ()), key=lambda entry: -entry[1])
        known = builtin_synonyms(word) if use_builtin else ()
        found = dict.fromkeys([normalise(synonym) for synonym, _ in brought] + list(known))
        best = [synonym for synonym in found if synonym not in original][:MOST_SYNONYMS]
        if best:
            by_word[word] = tuple(best)
    synonyms = tuple(dict.fromkeys(synonym for found in by_word.values() for synonym in found))
    known_words = {*original, *synonyms}
    others = dict.fromkeys(word for word in map(normalise, related) if word and word not in known_words)
    return Expansion(original, synonyms, tuple(others)[:MOST_RELATED], by_word)


def related_words(company: Cooccurrence) -> list[str]:
    """The words that stand with those asked for clearly more often than by chance, best first.

    The measure is pointwise mutual information, with more trust in what was seen more often.
    """
    scored: list[tuple[float, str]] = []
    for word, together in company.together.items():
        if together < LEAST_SUPPORT or not any(map(str.isalpha, word)):
            continue
        here = together / company.asked
        everywhere = max(company.holders.get(word, 0), together) / max(company.population, company.asked)
        lift = here / everywhere
        if lift >= LEAST_LIFT:
            scored.append((log2(lift) * log2(1 + together), word))
    return [word for _, word in sorted(scored, key=lambda entry: (-entry[0], entry[1]))[:MOST_RELATED]]
