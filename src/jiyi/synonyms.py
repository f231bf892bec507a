"""Synonyms: values, checks of arguments, and parsing of synonym files."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from . import validation
from .errors import InvalidInput
from .languages.terms import is_comment, words_of_line
from .languages.words import normalise
from .models import Value

GivenPair = tuple[str, str] | tuple[str, str, float]
Pair = tuple[str, str]

SIMILARITY = 0.8  # default


class Synonym(Value):
    """Two words with the same meaning, for one user or for all."""

    keyword: str
    synonym: str
    similarity: float
    shared: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Cooccurrence:
    """Counts of words that occur in the same memories as the query words."""

    population: int = 0  # all memories of the user
    asked: int = 0  # memories with a query word
    together: dict[str, int] = field(default_factory=dict)  # word → number of those memories with it
    holders: dict[str, int] = field(default_factory=dict)  # word → number of all memories with it


def checked(pairs: object) -> dict[Pair, float]:
    """Normalise and deduplicate pairs; the last of equal ones wins."""
    if isinstance(pairs, (str, bytes)) or not isinstance(pairs, Iterable):
        raise InvalidInput("pairs", "must be a list of (keyword, synonym) or (keyword, synonym, similarity)")
    found: dict[Pair, float] = {}
    for at, pair in enumerate(pairs):
        argument = f"pairs[{at}]"
        if not isinstance(pair, (tuple, list)) or len(pair) not in (2, 3):
            raise InvalidInput(argument, f"must be (keyword, synonym) or (keyword, synonym, similarity), not {pair!r}")
        keyword, synonym, similarity = (*pair, SIMILARITY)[:3]
        one, other = (
            validation.name(argument, normalise(validation.name(argument, word))) for word in (keyword, synonym)
        )
        if one == other:
            raise InvalidInput(argument, f"{keyword!r} and {synonym!r} are the same word")
        if not validation.share(argument, similarity):
            raise InvalidInput(argument, "similarity must be above 0")
        found[in_order(one, other)] = float(similarity)
    return found


def in_order(one: str, other: str) -> Pair:
    return (one, other) if one < other else (other, one)


MAX_GROUP = 50
MAX_PAIRS = 200_000
_HEADER = ["keyword", "synonym"]
_NUMBER = re.compile(r"-?\d*\.?\d+")

SynonymPair = tuple[str, str, float]


def parse_synonyms(text: str, *, name: str = "synonyms") -> list[SynonymPair]:
    """Parse a synonym file: one group of words per line, or a CSV or TSV table `keyword,synonym,similarity`.

    >>> parse_synonyms("咖啡 | coffee")
    [('咖啡', 'coffee', 0.8)]
    >>> parse_synonyms("keyword,synonym,similarity\\nk8s,kubernetes,0.95")
    [('k8s', 'kubernetes', 0.95)]
    """
    found: dict[Pair, SynonymPair] = {}
    is_table = False
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        if is_comment(line):
            continue
        where = f"{name}, line {number}"
        cells = line.split("|") if "|" in line else _cells(line, where)
        if not found and not is_table and [cell.lower() for cell in cells[:2]] == _HEADER:
            is_table = True
        elif is_table or ("|" not in line and _is_pair(cells)):
            _put(found, [_pair(cells, where)])
        else:
            _put(found, _pairs_of_group(cells, where))
        if len(found) > MAX_PAIRS:
            raise InvalidInput(where, f"there are more than {MAX_PAIRS:,} pairs: split the file")
    return list(found.values())


def _put(found: dict[Pair, SynonymPair], pairs: Iterable[SynonymPair]) -> None:
    """Add pairs; the last of equal ones wins."""
    for one, other, similarity in pairs:
        found[in_order(one, other)] = one, other, similarity


def _cells(line: str, where: str) -> list[str]:
    try:
        [cells] = csv.reader([line], delimiter="\t" if "\t" in line else ",", strict=True)
    except (csv.Error, ValueError) as error:
        raise InvalidInput(where, f"cannot be read as a table: {error}") from None
    return [cell.strip() for cell in cells]


def _is_pair(cells: Sequence[str]) -> bool:
    """Return True for two words and a number; a group that ends with a number is written with |."""
    return len(cells) == 3 and bool(_NUMBER.fullmatch(cells[2]))


def _pair(cells: Sequence[str], where: str) -> SynonymPair:
    if len(cells) not in (2, 3):
        raise InvalidInput(where, f"must have keyword, synonym and similarity, not {len(cells)} columns")
    keyword, synonym = (_word(cell, where) for cell in cells[:2])
    if keyword == synonym:
        raise InvalidInput(where, f"{cells[0]!r} and {cells[1]!r} are the same word")
    given = cells[2] if len(cells) == 3 and cells[2] else str(SIMILARITY)
    if not _NUMBER.fullmatch(given) or not 0 < float(given) <= 1:
        raise InvalidInput(where, f"similarity must be a number above 0 and at most 1, not {given!r}")
    return keyword, synonym, float(given)


def _pairs_of_group(cells: Sequence[str], where: str) -> Iterator[SynonymPair]:
    words = list(dict.fromkeys(_word(word, where) for cell in cells for word in words_of_line(cell)))
    if len(words) < 2:
        raise InvalidInput(where, "needs at least two different words, such as: 咖啡 | coffee")
    if len(words) > MAX_GROUP:
        raise InvalidInput(where, f"has {len(words)} words; the limit is {MAX_GROUP}")
    return ((one, other, SIMILARITY) for one, other in combinations(words, 2))


def _word(cell: str, where: str) -> str:
    return validation.name(where, normalise(validation.name(where, cell)))
