"""Index entries: what a memory is found by."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from time import perf_counter
from typing import Protocol

from pydantic import JsonValue

from .. import threads
from ..embed import Embedder, Vectors, embed_documents
from ..errors import EmbeddingError
from ..languages.sentences import question_share
from ..languages.terms import (
    TYPE_WEIGHT,
    keywords,
    near_hash,
    search_terms,
    simhash,
    term_counts,
    tokens,
    type_words,
)
from ..languages.words import normalise
from ..llm.keywords import words_in_text
from ..store.write_set import IndexEntry
from ..text.passages import passages
from .classify import classify

AT_ONCE = 64  # texts
MOST_AT_ONCE = 64_000  # characters of them
FIRST_BY_MODEL = 0.9  # weight of the first word that a language model names; each further one has 0.1 less


@dataclass(frozen=True, slots=True)
class KeywordRules:
    most: int
    lightest: float


Text = tuple[str, str, Sequence[str], Mapping[str, JsonValue], str]  # content, summary, tags, data, memory type


def index_entry(
    content: str,
    summary: str,
    tags: Sequence[str],
    data: Mapping[str, JsonValue],
    memory_type: str,
    rules: KeywordRules,
) -> IndexEntry:
    """Return the index entry of a memory without its vector. The speaker is a search term, but is not embedded."""
    [entry] = _entries([(content, summary, tags, data, memory_type)], rules)
    return entry


class Searchable(Protocol):
    """A memory, or what has the same texts."""

    @property
    def content(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def tags(self) -> Sequence[str]: ...
    @property
    def data(self) -> Mapping[str, JsonValue]: ...
    @property
    def memory_type(self) -> str: ...


def entry_of(memory: Searchable, rules: KeywordRules) -> IndexEntry:
    """Return the index entry of a memory as it is, without its vector."""
    return index_entry(memory.content, memory.summary, memory.tags, memory.data, memory.memory_type, rules)


def index_entries(texts: Sequence[Text], rules: KeywordRules) -> tuple[list[IndexEntry], list[float]]:
    """Return an entry for each text, and the seconds that each took."""
    entries: list[IndexEntry] = []
    times: list[float] = []
    for some in threads.batches(texts, lambda text: len(text[0]), most=AT_ONCE, most_size=MOST_AT_ONCE):
        threads.check()
        began = perf_counter()
        entries += _entries(some, rules)
        times += [(perf_counter() - began) / len(some)] * len(some)
    return entries, times


def _entries(texts: Sequence[Text], rules: KeywordRules) -> list[IndexEntry]:
    """Run each step for all texts before the next one: that takes a third less time, by the processor's caches."""
    of_content = [tokens(content) for content, *_ in texts]
    terms = [search_terms(own, *text[:4]) for own, text in zip(of_content, texts, strict=True)]
    counted = [term_counts(some) for some in terms]
    classified = [classify(content, _role(data)) for content, _, _, data, _ in texts]
    words = [_keywords(content, tags, data, of_type, rules) for content, _, tags, data, of_type in texts]
    near = [simhash(own) if own else near_hash(text[0]) for own, text in zip(of_content, texts, strict=True)]
    return [
        IndexEntry(
            length=len(some),
            asks=question_share(content),
            hashes=hashes,
            counts=counts,
            keywords=keys,
            near_hash=like,
            vector=None,
            model=None,
            passages=passages(content, data),
            kind=found.kind,
            salience=round(found.salience, 3),
        )
        for (content, _, _, data, _), some, (hashes, counts), found, keys, like in zip(
            texts, terms, counted, classified, words, near, strict=True
        )
    ]


def _role(data: Mapping[str, JsonValue]) -> str:
    """Return the role of a message; everything else was stated by a person or derived from what one said."""
    role = data.get("role")
    return role if isinstance(role, str) else "user"


def _keywords(
    content: str, tags: Sequence[str], data: Mapping[str, JsonValue], memory_type: str, rules: KeywordRules
) -> tuple[tuple[str, float, str], ...]:
    """Return the user's tags at full weight, then words that a language model named, then the heaviest by rule, and the
    words of the memory type."""
    found = {normalise(tag): (1.0, "user_tag") for tag in tags}
    by_model = data.get("keywords") if data.get("extractor") == "llm" else None
    for at, word in enumerate(words_in_text(by_model, content) if isinstance(by_model, list) else ()):
        if at < rules.most:
            found.setdefault(word, (max(FIRST_BY_MODEL - at / 10, rules.lightest), "llm"))
    room = rules.most - sum(source == "llm" for _, source in found.values())
    for at, (keyword, weight) in enumerate(keywords(content, limit=rules.most)[: max(room, 0)]):
        if keyword not in found and (at == 0 or weight >= rules.lightest):
            found[keyword] = (weight, "rule")
    for word in type_words(memory_type, content):
        found.setdefault(word, (TYPE_WEIGHT, "type"))
    return tuple(
        (keyword, weight, source)
        for keyword, (weight, source) in sorted(found.items(), key=lambda entry: (-entry[1][0], entry[0]))
    )


async def embed_entries(
    entries: Sequence[IndexEntry], texts: Sequence[str], embedder: Embedder
) -> tuple[list[IndexEntry], str | None]:
    """Return the entries with their vectors, and the problem if the embedder failed: memories are stored without."""
    if not texts:
        return [], None
    try:
        given = zip(texts, entries, strict=True)
        vectors = await embed_each(embedder, [(text, *entry.passages) for text, entry in given])
    except EmbeddingError as error:
        return list(entries), f"not found by meaning yet: {error} — `jiyi reindex --embeddings` makes up for it"
    pairs = zip(entries, vectors, strict=True)
    return [replace(entry, vector=own[0], of_passages=tuple(own[1:]), model=embedder.id) for entry, own in pairs], None


async def embed_each(embedder: Embedder, texts: Sequence[Sequence[str]]) -> list[Vectors]:
    """Embed the texts of several memories at once; return the vectors of each memory."""
    vectors = await embed_documents(embedder, [text for some in texts for text in some])
    ends = accumulate(len(some) for some in texts)
    return [vectors[end - len(some) : end] for some, end in zip(texts, ends, strict=True)]
