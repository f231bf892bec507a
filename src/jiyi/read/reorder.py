"""The order of hits after their memories were read: one hit per statement, other languages, people of the query."""

from collections.abc import Iterable, Mapping, Sequence

from ..index.query import IndexQuery
from ..languages.words import language
from ..models import RELEVANT, MemoryItem
from .hits import BEGINNING
from .names import unnamed
from .presets import Ranking
from .query import Query, people_named
from .rank import RankedHit
from .rerank import worded

READ_FASTER = 20  # times: than words are found in a text, its language is


def looked_at(memories: Iterable[MemoryItem]) -> int:
    """Return the number of characters in which words of a query are looked for."""
    return sum(min(len(memory.content), BEGINNING) for memory in memories)


def one_per_statement(hits: Sequence[RankedHit]) -> list[RankedHit]:
    """Return the hits, best first, without further ones of the same statement."""
    seen: set[str] = set()
    best = []
    for one in hits:
        members = {one.id, *one.members}
        if seen.isdisjoint(members):
            best.append(one)
        seen |= members
    return best


def without_weak_repetitions(hits: Sequence[RankedHit], found: Mapping[str, MemoryItem]) -> list[RankedHit]:
    """Return the hits without weak ones that repeat a better one word for word. Relevant ones stay: what was said on
    two days may have happened twice."""
    seen: set[tuple[object, str]] = set()
    best = []
    for one in hits:
        memory = found.get(one.id)
        said = None if memory is None else (memory.data.get("speaker"), memory.content)
        if one.score >= RELEVANT or said not in seen:
            best.append(one)
        if said is not None:
            seen.add(said)
    return best


def reordered(
    query: Query,
    index_query: IndexQuery,
    ranked: Sequence[RankedHit],
    found: Mapping[str, MemoryItem],
    ranking: Ranking,
) -> list[RankedHit]:
    """Return the hits in the order that their texts and the people of the query give."""
    return _about(index_query.named, _across_languages(query, ranked, found, ranking), found)


def _across_languages(
    query: Query, ranked: Sequence[RankedHit], found: Mapping[str, MemoryItem], ranking: Ranking
) -> list[RankedHit]:
    """Score Chinese memories for English queries, and the reverse, without expecting common words."""
    own = language(query.text)
    if ranking.preset != "measured" or own not in ("zh", "en") or query.mode == "keyword":
        return list(ranked)

    def written_in(one: RankedHit, which: str) -> bool:
        return one.id in found and language(found[one.id].content) == which

    if any(one.score >= RELEVANT and written_in(one, own) for one in ranked):
        return list(ranked)
    other = "en" if own == "zh" else "zh"
    foreign = {one.id for one in ranked if written_in(one, other)}
    if not foreign:
        return list(ranked)
    foreign -= unnamed(query.text, found)
    hits = [one.in_other_language() if one.id in foreign else one for one in ranked]
    return sorted(hits, key=lambda one: -one.score)


def _about(people: frozenset[str], ranked: Sequence[RankedHit], found: Mapping[str, MemoryItem]) -> list[RankedHit]:
    """Lower statements that, as a language model understood them, are about others than the people of the query."""
    if not people:
        return list(ranked)
    hits = [one.about_others() if _is_about_others(one, people, found) else one for one in ranked]
    return sorted(hits, key=lambda one: -one.score)


def _is_about_others(one: RankedHit, people: frozenset[str], found: Mapping[str, MemoryItem]) -> bool:
    facts = [fact for fact in worded(one, found) if fact.data.get("subject")]
    return bool(facts) and not any(
        people_named(f"{fact.data['subject']} {fact.content[:BEGINNING]}", people) for fact in facts
    )
