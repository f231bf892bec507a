"""Words that a model names: keywords of a memory, and other words for those of a query."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from ..languages.normalise import normalise
from ..languages.script import language
from ..languages.tokens import tokens
from .reading import read_object

if TYPE_CHECKING:
    from .client import Llm

LONGEST_WORD = 64
EXPAND_TIMEOUT_S = 3.0  # a search waits no longer
MOST_CORE = 8
MOST_SYNONYMS = 4  # of one word
MOST_RELATED = 5

_WORDS: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
_WEIGHTED = {
    "type": "object",
    "properties": {"word": {"type": "string"}, "weight": {"type": "number"}},
    "required": ["word", "weight"],
    "additionalProperties": False,
}
KEYWORDS: dict[str, Any] = {
    "type": "object",
    "properties": {"keywords": {"type": "array", "items": _WEIGHTED}},
    "required": ["keywords"],
    "additionalProperties": False,
}
EXPANSION: dict[str, Any] = {
    "type": "object",
    "properties": {
        "core_keywords": _WORDS,
        "synonyms": {"type": "array", "items": _WORDS},
        "related_concepts": _WORDS,
    },
    "required": ["core_keywords", "synonyms", "related_concepts"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class OtherWords:
    """A query's words (D1): those it has, other words for them, and words that belong with them."""

    original: tuple[str, ...]
    synonyms: dict[str, tuple[str, ...]]  # by word of the query
    related: tuple[str, ...]


class Expander:
    """Asks for other words, briefly, and remembers the answers: a query is often asked again."""

    def __init__(self, llm: Llm, *, timeout_s: float = EXPAND_TIMEOUT_S, remembered: int = 1024) -> None:
        self._llm = llm
        self._timeout_s = timeout_s
        self._remembered = remembered
        self._known: OrderedDict[tuple[str, str], OtherWords] = OrderedDict()

    async def expand(self, query: str, *, user_id: str) -> OtherWords:
        """Raises an `LlmError` when there is no answer in time. One user's queries are never shown to another."""
        key = (user_id, normalise(query))
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key]
        prompt = self._llm.prompts.get("expand", "en" if language(query) == "en" else "zh")
        question = prompt.question(EXPANSION, query=" ".join(query.split()))
        reply = await self._llm.ask(question, user_id=user_id, hurry_s=self._timeout_s)
        found = read_expansion(read_object(reply.text, "synonyms").value, query)
        self._known[key] = found
        if len(self._known) > self._remembered:
            self._known.popitem(last=False)
        return found


def read_expansion(reply: dict[str, Any], query: str) -> OtherWords:
    """What can be used of an answer: synonyms count only for words that stand in the query."""
    there = WordsOf(query)
    original = [word for word in usable_words(reply.get("core_keywords")) if there.have(word)][:MOST_CORE]
    synonyms: dict[str, tuple[str, ...]] = {}
    groups = reply.get("synonyms")
    for group in groups[:MOST_CORE] if isinstance(groups, list) else []:
        first, *others = [*usable_words(group), ""]
        named = [word for word in dict.fromkeys(others) if word and word != first and not there.have(word)]
        if named and there.have(first):
            synonyms[first] = tuple(named[:MOST_SYNONYMS])
    taken = {*original, *synonyms, *(word for named in synonyms.values() for word in named)}
    related = [word for word in dict.fromkeys(usable_words(reply.get("related_concepts"))) if word not in taken]
    return OtherWords(tuple(dict.fromkeys((*original, *synonyms))), synonyms, tuple(related[:MOST_RELATED]))


# -- what may be anything ---------------------------------------------------------------------------------------------


class WordsOf:
    """Whether a word stands in a text, itself or in another form: allergies in "any allergy"."""

    def __init__(self, text: str) -> None:
        self._text = normalise(text)
        self._terms = set(tokens(text))

    def have(self, word: str) -> bool:
        if not word.isascii():
            return word in self._text
        if re.search(rf"(?<![a-z0-9]){re.escape(word)}(?![a-z0-9])", self._text):
            return True
        terms = tokens(word)
        return bool(terms) and self._terms.issuperset(terms)


def usable_words(value: object) -> Iterator[str]:
    """The words in a list that can be keywords, normalised; nothing of anything else."""
    for entry in value if isinstance(value, list) else []:
        word = normalise(entry) if isinstance(entry, str) and len(entry) <= LONGEST_WORD else ""
        if word and len(word) <= LONGEST_WORD and any(map(str.isalnum, word)) and word.isprintable():
            yield word


def weighted_words(value: object) -> Iterator[tuple[str, float]]:
    """The words in a list of objects with `word` and `weight`, with weights above 0 and up to 1."""
    for entry in value if isinstance(value, list) else []:
        weight = entry.get("weight") if isinstance(entry, dict) else None
        if isinstance(weight, bool) or not isinstance(weight, (int, float)):
            continue
        if isfinite(weight) and 0 < weight <= 1:
            for word in usable_words([entry.get("word")]):
                yield word, float(weight)


def standing_in(words: Iterable[object], text: str) -> Iterator[str]:
    there = WordsOf(text)
    return (word for word in dict.fromkeys(usable_words(list(words))) if there.have(word))
