"""Queries: parsing their text, and turning them into what the index searches for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from math import log2
from typing import TYPE_CHECKING

from .. import validation
from ..embed import Vectors
from ..errors import LlmError
from ..index.query import IndexQuery
from ..languages import cue
from ..languages.dates import TimeSpan, dates
from ..languages.terms import builtin_synonyms, non_overlapping, query_keywords, tokens
from ..languages.words import normalise
from ..models import SearchMode
from ..scope import Filter
from ..store.write_set import SearchSnapshot
from ..synonyms import Cooccurrence
from .presets import Ranking

if TYPE_CHECKING:
    from ..llm.keywords import Expander

LEGS: dict[SearchMode, tuple[str, ...]] = {
    "hybrid": ("keyword", "text", "semantic"),
    "keyword": ("keyword", "text"),
    "semantic": ("semantic",),
}
MOST_TURNS = 20  # of a dialogue, the last ones
LONGEST_TIME_QUESTION = 200  # characters
LONGEST_GREETING = 60
MOST_KEYWORDS = 6  # words
MARKS = " ?？!！.。,，、;；"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A parsed query with its filter and options."""

    asked: str  # as the caller gave it
    text: str  # with the caller's keywords
    mode: SearchMode
    filter: Filter
    turns: tuple[str, ...]  # of a dialogue
    phrases: tuple[str, ...]  # in quotation marks
    keywords: tuple[str, ...]
    extra_keywords: tuple[str, ...]  # given by the caller; hits have one of them
    min_score: float
    radius: float | None  # least similarity of candidates that only their meaning finds
    limit: int
    explain: bool
    with_synonyms: bool
    also_read: tuple[str, ...] = ()  # sorted ids of memories that are judged whether or not evidence finds them
    reading_s: float | None = None  # longest time of reading
    llm_synonyms: tuple[tuple[str, tuple[str, ...]], ...] = ()  # by keyword

    @property
    def expandable(self) -> tuple[str, ...]:
        """Keywords to look up synonyms for."""
        return self.keywords if self.with_synonyms and "keyword" in LEGS[self.mode] else ()


def interpret(
    text: str,
    where: Filter,
    *,
    mode: SearchMode,
    keywords: Sequence[str] | None,
    min_score: float,
    radius: float | None = None,
    limit: int,
    explain: bool,
    with_synonyms: bool,
    also_read: Iterable[str] = (),
    reading_s: float | None = None,
) -> Query:
    """Check the arguments of a search and parse its text, which has been checked."""
    validation.choice("search_mode", mode, tuple(LEGS))
    wanted = () if keywords is None else validation.names("keywords", keywords)
    given = tuple(map(normalise, wanted))
    asked, text = text, _with_words(text, wanted)
    return Query(
        asked=asked,
        text=text,
        mode=mode,
        filter=where,
        turns=tuple(turns(text)),
        phrases=tuple(quoted(text)),
        keywords=given or tuple(query_keywords(text)),
        extra_keywords=given,
        min_score=validation.share("min_relevance_score", min_score),
        radius=None if radius is None else validation.share("radius", radius),
        limit=validation.whole("limit", limit),
        explain=explain,
        with_synonyms=with_synonyms,
        also_read=tuple(sorted(also_read)),
        reading_s=reading_s,
    )


def _with_words(text: str, words: Sequence[str]) -> str:
    """Return the text with the words that it lacks: they are part of the question."""
    known = normalise(text)
    return " ".join([text, *(word for word in words if normalise(word) not in known)])


async def with_llm_synonyms(query: Query, expander: Expander | None) -> tuple[Query, str | None]:
    """Add the synonyms that a language model suggests. If it fails, return the query unchanged and the problem."""
    if expander is None or not query.with_synonyms:
        return query, None
    try:
        found = await expander.expand(query.text, user_id=query.filter.user_id)
    except LlmError as error:
        return query, f"searched without the language model's synonyms: {error}"
    return replace(query, llm_synonyms=tuple(found.synonyms.items())), None


# -- for the index ----------------------------------------------------------------------------------------------------


def query_texts(query: Query, people: frozenset[str]) -> list[str]:
    """Return the texts to embed: the whole query, then each turn of a dialogue, without the names of speakers."""
    named = people_named(query.text, people)
    said = [without_names(turn, named) for turn in query.turns[-MOST_TURNS:]]
    return [" ".join(said) if said else without_names(query.text, named), *said]


def build_index_query(
    query: Query,
    people: frozenset[str],
    texts: Sequence[str],
    vectors: Sequence[Vectors],
    snapshot: SearchSnapshot,
    model: str,
    ranking: Ranking,
) -> IndexQuery:
    """Turn a query into words and their synonyms, vectors, people and times. `texts` are the `query_texts`, and
    `vectors` theirs; without any, only words are searched."""
    whole, *said = texts
    last = said[-1] if said else whole
    by_words = "text" in LEGS[query.mode]
    terms = tokens(whole) if by_words else []
    last_terms = tokens(last) if by_words and said else terms
    spans = tuple((span.start, span.end) for span in dates(last, query.filter.now))
    return IndexQuery(
        filter=query.filter,
        terms=tuple(terms),
        last_terms=tuple(last_terms) if said else None,
        words=tuple(non_overlapping(last_terms)),
        phrases=tuple(tuple(tokens(phrase)) for phrase in query.phrases) if by_words else (),
        keywords=query.keywords,
        required=tuple(tuple(tokens(word)) for word in query.extra_keywords) or None,
        synonyms=synonyms_of(query, snapshot),
        vector=vectors[0] if vectors else None,
        turns=tuple(vectors[1:]),
        named=people_named(query.text, people),
        spans=spans,
        current=ranking.preset == "measured" and not asks_for_the_past(last, spans, query.filter.now),
        priorities=ranking.priorities if ranking.weights.priority else {},
        ageing={name: ranking.weights.half_life_days / days for name, days in ranking.half_lives.items()},
        model=model,
        recalls=ranking.preset != "measured" or bool(ranking.weights.uses),
        seen=0 if snapshot.position is None else snapshot.position.seq,
    )


# -- the text ---------------------------------------------------------------------------------------------------------

_SPEAKER = re.compile(r"^\s*(?:<[^<>\n]{1,40}>|[^\s:：<>]{1,24})\s*[:：]\s*")
_QUOTED = re.compile(r"\"([^\"\n]{2,200})\"|“([^“”\n]{2,200})”|「([^「」\n]{2,200})」|《([^《》\n]{2,200})》")
# A capital inside a sentence, letters inside Chinese text, digits.
_PROPER = re.compile(r"(?<=[\w,;:\u4e00-\u9fff] )[A-Z][\w'-]*|(?<=[\u4e00-\u9fff])[A-Za-z][\w'-]*|\d+")
ROLES = frozenset({"user", "the user", "用户", "assistant", "system", "tool", "developer"})
SHORTEST_NAME = 2


def turns(text: str) -> list[str]:
    """Return the turns of a dialogue, one per line, without their speakers; [] for a plain question."""
    lines = [_SPEAKER.sub("", line).strip() for line in text.splitlines()]
    said = [line for line in lines if any(map(str.isalnum, line))]
    return said if len(said) > 1 else []


def quoted(text: str) -> list[str]:
    """Return the phrases in quotation marks.

    >>> quoted('who said "blue bowls"? 谁说过“蓝色的碗”？')
    ['blue bowls', '蓝色的碗']
    """
    found = (next(filter(None, match.groups())) for match in _QUOTED.finditer(text))
    return [phrase for phrase in found if any(map(str.isalnum, phrase))]


def proper_words(text: str) -> tuple[str, ...]:
    """Return the terms of names, codes and numbers in a query.

    >>> proper_words("Where did Tom park the Golf?")
    ('tom', 'golf')
    """
    return tuple(dict.fromkeys(term for found in _PROPER.findall(text) for term in non_overlapping(tokens(found))))


def people_named(text: str, people: frozenset[str]) -> frozenset[str]:
    """Return those of the people whose name occurs in the text."""
    text = normalise(text)
    names = (name for name in people if name not in ROLES and len(name) >= SHORTEST_NAME and not name.isdigit())
    return frozenset(name for name in names if name in text and _name_pattern(name).search(text))


def without_names(text: str, names: frozenset[str]) -> str:
    """Return the text without these names, or unchanged if nothing else is left. An embedder takes a name for the
    subject and finds what is said about somebody, while a query that names a speaker mostly wants what was said by
    them. So names are matched against speakers instead of being embedded."""
    rest = text
    for name in sorted(names, key=len, reverse=True):
        rest = _name_pattern(name).sub("", rest)
    rest = " ".join(rest.split())
    return rest if any(map(str.isalnum, rest)) else text


def _name_pattern(name: str) -> re.Pattern[str]:
    """Match a name as a separate word, with its 's; Chinese has no spaces around names."""
    edge = r"\b" if name[0].isascii() and name[-1].isascii() else ""
    return re.compile(rf"{edge}{re.escape(name)}{edge}(?:['’]s)?", re.IGNORECASE)


def is_keywords(query: Query) -> bool:
    """Return True for a few bare words, with which nothing is asked."""
    words = non_overlapping(tokens(query.text))
    return 0 < len(words) <= MOST_KEYWORDS and not query.turns and cue("question").search(query.text) is None


def asks_nothing(query: Query) -> bool:
    """Return True for greetings, thanks and the like, and for marks alone. Where only words are searched they count."""
    if query.turns or query.mode == "keyword" or len(query.text) > LONGEST_GREETING:
        return False
    return not any(map(str.isalnum, cue("phatic").sub(" ", query.text)))


def asks_assistant(text: str) -> bool:
    """Return True if the query is about what the assistant said."""
    return cue("assistant_question").search(text) is not None


def time_asked_about(text: str, now: datetime) -> TimeSpan | None:
    """Return the time in a question that asks for nothing but what was said or happened then."""
    if len(text) > LONGEST_TIME_QUESTION:
        return None
    spans = dates(text, now)
    if len(spans) != 1:
        return None
    start, end = spans[0].at
    rest = f"{text[:start].strip(MARKS)} {text[end:].strip(MARKS)}".strip(MARKS)
    return spans[0] if cue("told_then").fullmatch(rest) else None


def asks_for_the_past(text: str, spans: Sequence[tuple[datetime, datetime]], now: datetime) -> bool:
    """Return True if the query is about the past, by its words or because all its dates are past."""
    return cue("past_question").search(text) is not None or (bool(spans) and all(end <= now for _, end in spans))


# -- synonyms ---------------------------------------------------------------------------------------------------------

MOST_SYNONYMS = 4  # of one word
MOST_RELATED = 5
LEAST_SUPPORT = 2  # memories that hold two words together; one may be chance
LEAST_LIFT = 1.5  # times as often together as by chance


@dataclass(frozen=True, slots=True)
class Expansion:
    """Words with their synonyms and related words."""

    original: tuple[str, ...]
    synonyms: tuple[str, ...]
    related: tuple[str, ...]
    by_word: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # synonyms of each word


def expand(
    words: Iterable[str],
    own: Mapping[str, Sequence[tuple[str, float]]],
    related: Sequence[str] = (),
    *,
    use_builtin: bool = True,
) -> Expansion:
    """Add synonyms to words: those in `own`, with similarities, come before the built-in ones.

    >>> expand(["过敏"], {}).synonyms
    ('allergy', 'allergic', 'allergies')
    """
    original = tuple(word for word in dict.fromkeys(map(normalise, words)) if word)
    by_word: dict[str, tuple[str, ...]] = {}
    for word in original:
        added = sorted(own.get(word, ()), key=lambda entry: -entry[1])
        builtin = builtin_synonyms(word) if use_builtin else ()
        if not added and not builtin:
            continue
        found = dict.fromkeys([normalise(synonym) for synonym, _ in added] + list(builtin))
        best = [synonym for synonym in found if synonym not in original][:MOST_SYNONYMS]
        if best:
            by_word[word] = tuple(best)
    synonyms = tuple(dict.fromkeys(chain(*by_word.values())))
    known = {*original, *synonyms}
    others = dict.fromkeys(word for word in map(normalise, related) if word and word not in known)
    return Expansion(original, synonyms, tuple(others)[:MOST_RELATED], by_word)


def synonyms_of(query: Query, snapshot: SearchSnapshot) -> Mapping[str, tuple[str, ...]]:
    """Return the synonyms of each keyword to search for."""
    if not query.expandable:
        return {}
    known = expand(query.keywords, snapshot.synonyms).by_word
    suggested = {word: others for word, others in query.llm_synonyms if word in query.keywords}
    return {
        word: tuple(dict.fromkeys((*known.get(word, ()), *suggested.get(word, ())))) for word in {**known, **suggested}
    }


def expanded_keywords(query: Query, synonyms: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*query.keywords, *chain(*synonyms.values()))))


def related_words(counts: Cooccurrence) -> list[str]:
    """Return the words that occur with the query's words clearly more often than by chance, best first. The measure is
    pointwise mutual information, weighted by the number of occurrences."""
    scored: list[tuple[float, str]] = []
    for word, together in counts.together.items():
        if together < LEAST_SUPPORT or not any(map(str.isalpha, word)):
            continue
        here = together / counts.asked
        everywhere = max(counts.holders.get(word, 0), together) / max(counts.population, counts.asked)
        lift = here / everywhere
        if lift >= LEAST_LIFT:
            scored.append((log2(lift) * log2(1 + together), word))
    return [word for _, word in sorted(scored, key=lambda entry: (-entry[0], entry[1]))[:MOST_RELATED]]
