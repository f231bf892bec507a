"""Keywords of a memory and synonyms for a query, from a language model."""

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any

from ..languages.terms import tokens
from ..languages.words import normalise, prompt_language
from .client import LLMClient
from .json_reply import read_object

MAX_WORD = 64
EXPAND_TIMEOUT_S = 3.0  # a search waits no longer
MAX_CORE = 8
MAX_SYNONYMS = 4  # of one word
MAX_RELATED = 5

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
class QueryWords:
    """The core words of a query, synonyms for them, and related words."""

    original: tuple[str, ...]
    synonyms: dict[str, tuple[str, ...]]  # by word of the query
    related: tuple[str, ...]


class Expander:
    """Asks a model for synonyms within a short time, and caches the replies."""

    def __init__(self, llm: LLMClient, *, timeout_s: float = EXPAND_TIMEOUT_S, cache_size: int = 1024) -> None:
        self._llm = llm
        self._timeout_s = timeout_s
        self._cache_size = cache_size
        self._cache: OrderedDict[tuple[str, str], QueryWords] = OrderedDict()

    async def expand(self, query: str, *, user_id: str) -> QueryWords:
        """Return the words for a query; raise `LlmError` without a reply in time. The cache is per user."""
        key = (user_id, normalise(query))
        if key in self._cache:
            self._cache.move_to_end(key)
            return self._cache[key]
        prompt = self._llm.prompts.get("expand", prompt_language(query))
        request = prompt.request(EXPANSION, query=" ".join(query.split()))
        reply = await self._llm.ask(request, user_id=user_id, timeout_s=self._timeout_s)
        found = read_expansion(read_object(reply.text, "synonyms").value, query)
        self._cache[key] = found
        if len(self._cache) > self._cache_size:
            self._cache.popitem(last=False)
        return found


def read_expansion(reply: dict[str, Any], query: str) -> QueryWords:
    """Validate a reply; synonyms count only for words of the query."""
    words = WordsOf(query)
    original = [word for word in usable_words(reply.get("core_keywords")) if words.contain(word)][:MAX_CORE]
    synonyms: dict[str, tuple[str, ...]] = {}
    groups = reply.get("synonyms")
    for group in groups[:MAX_CORE] if isinstance(groups, list) else []:
        first, *others = [*usable_words(group), ""]
        named = [word for word in dict.fromkeys(others) if word and word != first and not words.contain(word)]
        if named and words.contain(first):
            synonyms[first] = tuple(named[:MAX_SYNONYMS])
    taken = {*original, *synonyms, *(word for named in synonyms.values() for word in named)}
    related = [word for word in dict.fromkeys(usable_words(reply.get("related_concepts"))) if word not in taken]
    return QueryWords(tuple(dict.fromkeys((*original, *synonyms))), synonyms, tuple(related[:MAX_RELATED]))


class WordsOf:
    """Finds words in a text, also in another form: allergies in "any allergy"."""

    def __init__(self, text: str) -> None:
        self._text = normalise(text)
        self._terms = set(tokens(text))

    def contain(self, word: str) -> bool:
        if not word.isascii():
            return word in self._text
        if re.search(rf"(?<![a-z0-9]){re.escape(word)}(?![a-z0-9])", self._text):
            return True
        terms = tokens(word)
        return bool(terms) and self._terms.issuperset(terms)


def usable_words(value: object) -> Iterator[str]:
    """Yield the words of a list that can be keywords, normalised; anything else is ignored."""
    for entry in value if isinstance(value, list) else []:
        word = normalise(entry) if isinstance(entry, str) and len(entry) <= MAX_WORD else ""
        if word and len(word) <= MAX_WORD and any(map(str.isalnum, word)) and word.isprintable():
            yield word


def weighted_words(value: object) -> Iterator[tuple[str, float]]:
    """Yield words and weights from a list of objects with `word` and `weight` (above 0, up to 1)."""
    for entry in value if isinstance(value, list) else []:
        weight = entry.get("weight") if isinstance(entry, dict) else None
        if isinstance(weight, bool) or not isinstance(weight, (int, float)):
            continue
        if isfinite(weight) and 0 < weight <= 1:
            for word in usable_words([entry.get("word")]):
                yield word, float(weight)


def words_in_text(words: Iterable[object], text: str) -> Iterator[str]:
    """Yield the usable words that the text contains."""
    known = WordsOf(text)
    return (word for word in dict.fromkeys(usable_words(list(words))) if known.contain(word))
