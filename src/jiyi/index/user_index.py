"""The searchable copy of one user's memories: columns for filters, a word leg and a vector leg, scanned exactly. The
database is the source of truth. A memory has a slot, its position in every array; a changed memory gets a new slot and
the old one is dead."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..models import from_micros, to_micros
from ..scope import Filter, Lifetimes
from .legs import CODED, COLUMNS, TIMES, IndexRow, VectorLeg, WordLeg
from .query import (
    KIND_GROUPS,
    NEVER,
    STATED,
    Candidates,
    Evidence,
    Floats,
    IndexQuery,
    Mask,
    Scope,
    Slots,
    in_scope,
    with_lifetime,
)
from .relations import NONE, Derivations, Episodes, Succession, find_episodes, positions, similar_statements
from .vectors import LoadedVectors, RamVectors
from .words import RamWords, rarity, weighted

LONG_AGO = np.iinfo(np.int64).min
DAY = 86_400_000_000  # microseconds
K1, B = 1.2, 0.75
SYNONYM = 0.7  # weight of a synonym against the keyword itself


class UserIndex:
    def __init__(self, model: str, dimension: int = 0, *, seen: int, external: bool = False) -> None:
        """`external`: vectors stay in another engine and are loaded for each query."""
        self.model = model  # of the vectors
        self.seen = seen  # the change feed is applied up to this number
        self._size = 0
        self._slots: dict[str, int] = {}
        self.words: WordLeg = RamWords()
        self._tagged: defaultdict[str, list[int]] = defaultdict(list)
        self._codes: dict[str, dict[str | None, int]] = {name: {} for name in CODED}
        self._columns: dict[str, NDArray[Any]] = {name: np.empty(0, dtype) for name, dtype in COLUMNS.items()}
        self._vectors: VectorLeg = LoadedVectors(dimension) if external else RamVectors(dimension)
        self._derived = 0  # number of derived memories
        self._total_length = 0  # of the other memories
        self._found_episodes: Episodes | None = None  # None until the next query
        self._derivations = Derivations()

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def dimension(self) -> int:
        """Dimension of the vectors; 0 until there is one."""
        return self._vectors.dimension

    @property
    def external(self) -> bool:
        return isinstance(self._vectors, LoadedVectors)

    @property
    def nbytes(self) -> int:
        columns = sum(column.nbytes for column in self._columns.values())
        return columns + self._vectors.nbytes + self.words.nbytes + 200 * len(self._slots)

    @property
    def mostly_dead(self) -> bool:
        return self._size > 1000 and len(self._slots) < self._size // 2

    @property
    def people(self) -> frozenset[str]:
        """Names of the speakers."""
        return frozenset(name for name in self._codes["speaker"] if name is not None)

    def reserve(self, capacity: int) -> None:
        """Reserve room for so many memories."""
        for name, column in self._columns.items():
            self._columns[name] = np.resize(column, capacity) if len(column) else np.zeros(capacity, column.dtype)
        self._vectors.grow(self._size, capacity)

    def put(self, rows: Sequence[IndexRow]) -> None:
        """Add new or changed memories."""
        if not rows:
            return
        self.drop(row.id for row in rows)
        self._found_episodes = None
        first, end = self._size, self._size + len(rows)
        capacity = len(self._columns["alive"])
        if end > capacity:
            self.reserve(max(end, capacity * 3 // 2))  # keeps the cost of copying linear
        for name, column in self._columns.items():
            if name in CODED:
                codes = self._codes[name]
                column[first:end] = [codes.setdefault(getattr(row, name), len(codes)) for row in rows]
            elif name in TIMES:
                empty = LONG_AGO if name == "last_accessed_at" else NEVER
                column[first:end] = [empty if (at := getattr(row, name)) is None else at for row in rows]
        self._columns["id"][first:end] = [row.id for row in rows]
        self._columns["access_count"][first:end] = [row.access_count for row in rows]
        self._columns["importance"][first:end] = [row.importance for row in rows]
        for name in ("trust", "length", "of_passage", "asks", "salience", "assistant", "derived", "alone"):
            self._columns[name][first:end] = [getattr(row, name) for row in rows]
        self._columns["alive"][first:end] = True
        self._columns["embedded"][first:end] = self._vectors.put(first, rows)
        self.words.put(first, rows)
        for slot, row in enumerate(rows, first):
            self._slots[row.id] = slot
            self._count(slot, 1)
            for tag in row.tags:
                self._tagged[tag].append(slot)
        self._size = end

    def link(self, threes: Iterable[tuple[str, str, str | None]]) -> None:
        """Add the ids of derived memories, of the messages they came from, and of their successors."""
        slots = self._slots
        self._derivations.add(
            [
                (slots[derived], slots[message], slots.get(successor or "", NONE))
                for derived, message, successor in threes
                if derived in slots and message in slots
            ]
        )

    def drop(self, ids: Iterable[str]) -> None:
        self._found_episodes = None
        for memory_id in ids:
            slot = self._slots.pop(memory_id, None)
            if slot is not None:
                self._columns["alive"][slot] = False
                self._count(slot, -1)

    def next_end(self, now: datetime, lifetimes: Lifetimes = ()) -> datetime | None:
        """Return the next time at which a memory expires or ends."""
        at, columns = to_micros(now), self._used()
        ends = NEVER
        for name in ("expires_at", "valid_to"):
            times = columns[name][columns["alive"]]
            ends = int(times[times > at].min(initial=ends))
        for mortal, lifetime in with_lifetime(columns, self._codes, lifetimes):
            coming = columns["created_at"][mortal] + lifetime
            ends = int(coming[coming > at].min(initial=ends))
        return None if ends == NEVER else from_micros(ends)

    def touch(self, accessed: Mapping[str, datetime]) -> None:
        """Note when memories were last accessed."""
        for memory_id, at in accessed.items():
            slot = self._slots.get(memory_id)
            if slot is not None:
                self._columns["last_accessed_at"][slot] = max(self._columns["last_accessed_at"][slot], to_micros(at))

    def in_scope(self, where: Filter) -> int:
        """Count the memories in scope."""
        return int(np.count_nonzero(self._in_scope(where)))

    def by_words(self, query: IndexQuery, most: int) -> list[str]:
        """Return the ids that match by words, the best ones if there are many."""
        alive = self._columns["alive"][: self._size]
        found = self._bm25(query.terms) + self._keyword_match(query)
        slots = np.flatnonzero((found > 0) & alive & self._in_scope(query.filter))
        if len(slots) > most:
            slots = slots[np.argpartition(-found[slots], most)[:most]]
        return list(self._columns["id"][slots])

    def load_vectors(self, ids: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Set the vectors that the next query needs, where they stay in another engine."""
        if not isinstance(self._vectors, LoadedVectors):
            return
        known = [at for at, memory_id in enumerate(ids) if memory_id in self._slots]
        slots = np.array([self._slots[ids[at]] for at in known], np.int64)
        self._vectors.load(slots, vectors[known])

    def derived_from(self, ids: Iterable[str]) -> list[str]:
        """Return the ids of memories derived from these messages."""
        messages = np.zeros(self._size, np.bool_)
        messages[[self._slots[memory_id] for memory_id in ids if memory_id in self._slots]] = True
        return list(self._columns["id"][self._derivations.of(messages)])

    def gather(self, query: IndexQuery) -> Candidates:
        """Return the scores of every memory in scope."""
        in_scope = self._in_scope(query.filter)
        # Mostly everything is in scope, and a slice avoids copying every array.
        everything = bool(in_scope.all())
        slots: Scope = slice(0, self._size) if everything else np.flatnonzero(in_scope)
        limited = None if everything else in_scope
        columns = self._columns
        embedded = columns["embedded"][slots]
        episodes = self._episodes()
        text, semantic = self._bm25(query.terms), self._meaning(query)
        succession = self._succession(query, semantic, text)
        if limited is not None:
            text *= limited

        def leg(values: Floats) -> Floats:
            return (values if succession is None else succession.inherit(values))[slots]

        weak = [self._codes["kind"].get(kind, -1) for kind in query.weak_kinds]
        now = to_micros(query.filter.now)
        recalled = columns["last_accessed_at"][slots]
        recalled = np.where(recalled <= now, recalled, LONG_AGO)  # recalls after the time of the query do not count
        last_seen = np.maximum(columns["occurred_at"][slots], recalled)
        ageing = self._by_type(query.ageing, 1.0)[slots] if query.ageing else 1.0
        return Candidates(
            ids=columns["id"][slots],
            keyword=leg(self._keyword_match(query)),
            text=leg(text),
            semantic=leg(semantic),
            near=leg(episodes.smoothed(semantic, limited)),
            coverage=leg(self._coverage_of(query.words, query.named, self._size)[0]),
            last_text=None if query.last_terms is None else leg(self._bm25(query.last_terms)),
            last_semantic=leg(self._cosine(query.turns[-1])) if query.turns else None,
            whole_semantic=leg(self._cosine(query.vector)) if query.turns else None,
            episode=leg(self._episode_bm25(query.terms, limited)) if episodes.count and query.terms else None,
            before=leg(self._before(text)) if episodes.count else None,
            gist=leg(self._derivations.best(semantic, in_scope)) if len(self._derivations) else None,
            over=None if succession is None else succession.outdated[slots],
            succeeds=None if succession is None else succession.succeeds[slots],
            partly_over=None if succession is None else succession.partly[slots],
            phrase=leg(self._holds_phrase(query.phrases)) if query.phrases else None,
            speaker=self._said_by(query.named)[slots] if query.named else None,
            time=self._happened_in(query.spans)[slots] if query.spans else None,
            assistant=columns["assistant"][slots].astype(np.float32),
            asks=columns["asks"][slots],
            weak_kind=np.isin(columns["kind"][slots], weak),
            successions=positions(succession, slots, self._size),
            statement=self._derivations.statements(self._size, alive=columns["alive"])[slots],
            derived=columns["derived"][slots] if self._derived else None,
            priority=self._by_type(query.priorities, 0.0)[slots] if query.priorities else None,
            age_days=np.maximum(now - last_seen, 0) / DAY * ageing,
            idle_days=np.where(recalled == LONG_AGO, np.inf, np.maximum(now - recalled, 0) / DAY),
            uses=columns["access_count"][slots],
            importance=columns["importance"][slots],
            evidence=partial(self._evidence, query, semantic, np.arange(self._size)[slots]),
            unembedded=len(embedded) - int(np.count_nonzero(embedded)),
        )

    def _evidence(self, query: IndexQuery, cosine: Floats, slots: Slots, places: NDArray[np.intp]) -> Evidence:
        """Describe some candidates by themselves, their words and the messages around them."""
        chosen, columns, size = slots[places], self._columns, len(cosine)
        previous, following = self._episodes().neighbours(chosen, size)
        coverage, rarest = self._coverage_of(query.words, query.named, size)

        def at(values: Floats, where: Slots) -> Floats:
            return np.where(where >= 0, values[where], 0).astype(np.float32)

        age = (to_micros(query.filter.now) - columns["occurred_at"][chosen]) / DAY
        vectors = self._vectors.rows(chosen)
        statement = self._derivations.statements(size, alive=columns["alive"][:size])[chosen]
        stated = ~columns["assistant"][chosen] & (columns["salience"][chosen] > STATED)
        kinds = {
            name: np.isin(columns["kind"][chosen], [self._codes["kind"].get(kind, -1) for kind in some])
            for name, some in KIND_GROUPS.items()
        }
        similar, changed = similar_statements(
            vectors, statement, stated, kinds["change"], columns["occurred_at"][chosen]
        )
        return Evidence(
            columns={
                "cosine": cosine[chosen],
                "previous_cosine": at(cosine, previous),
                "next_cosine": at(cosine, following),
                "episode_cosine": self._episodes().mean(cosine, chosen),
                "coverage": coverage[chosen],
                "previous_coverage": at(coverage, previous),
                "rarest_word": rarest[chosen],
                "proper_words": self._coverage_of(query.proper, frozenset(), size)[0][chosen],
                "bm25": self._bm25(query.terms)[chosen],
                "speaker": self._said_by(query.named)[chosen],
                "assistant": columns["assistant"][chosen].astype(np.float32),
                "previous_assistant": at(columns["assistant"].astype(np.float32), previous),
                "asks": columns["asks"][chosen],
                "previous_asks": at(columns["asks"], previous),
                "length": np.log1p(columns["length"][chosen]) / 5,
                "age": np.log1p(np.maximum(age, 0)) / 6,
                "salience": columns["salience"][chosen],
                **{name: values.astype(np.float32) for name, values in kinds.items()},
                **similar,
                "changed_cosine": at(cosine[chosen], changed),
                "changed_coverage": at(coverage[chosen], changed),
            },
            vectors=vectors,
            previous_vectors=self._vectors.rows(previous),
        )

    def _used(self) -> dict[str, NDArray[Any]]:
        """Return the columns without reserved room."""
        return {name: column[: self._size] for name, column in self._columns.items()}

    def _in_scope(self, where: Filter) -> Mask:
        return in_scope(self._used(), self._codes, self._tagged, where)

    def _episodes(self) -> Episodes:
        if self._found_episodes is None:
            columns = self._used()
            is_message = columns["memory_type"] == self._codes["memory_type"].get("message", -1)
            has_session = columns["session_id"] != self._codes["session_id"].get(None, -1)
            said = np.flatnonzero(columns["alive"] & is_message & has_session)
            self._found_episodes = find_episodes(
                said, columns["session_id"], columns["occurred_at"], columns["length"], columns["alone"]
            )
        return self._found_episodes

    def _before(self, text: Floats) -> Floats:
        """Return the score of the message before; an assistant's counts 0, because it repeats the question's words."""
        return self._episodes().from_before(np.where(self._columns["assistant"][: self._size], 0, text))

    def _said_by(self, people: frozenset[str]) -> Floats:
        codes = [self._codes["speaker"][name] for name in people if name in self._codes["speaker"]]
        said = np.isin(self._columns["speaker"][: self._size], codes) if codes else np.zeros(self._size, np.bool_)
        return said.astype(np.float32)

    def _keyword_match(self, query: IndexQuery) -> Floats:
        """Return the share of the query's keywords that each memory has, by their weight and rarity."""
        scores = np.zeros(self._size, np.float32)
        whole = 0.0
        for keyword in dict.fromkeys(query.keywords):
            best = np.zeros(self._size, np.float32)
            alike = self.words.alike(keyword) + [(word, SYNONYM) for word in query.synonyms.get(keyword, ())]
            for word, quality in alike:
                slots, weights = self.words.find_keyword(word)
                best[slots] = np.maximum(best[slots], quality * weights)
            best *= self._columns["alive"][: self._size]
            worth = self._rarity(np.flatnonzero(best))
            scores += np.float32(worth) * best
            whole += worth
        return scores / whole if whole else scores

    def _count(self, slot: int, by: int) -> None:
        """Count a memory. Derived ones repeat their message, so they change neither rarity nor average length."""
        if self._columns["derived"][slot]:
            self._derived += by
        else:
            self._total_length += by * int(self._columns["of_passage"][slot])

    def _rarity(self, holders: Slots) -> float:
        holding = len(holders)
        if self._derived:
            holding -= int(np.count_nonzero(self._columns["derived"][holders]))
        return rarity(len(self._slots) - self._derived, holding)

    def _holders(self, term: str) -> tuple[Slots, Floats]:
        """Return the live slots that contain a term, and its counts."""
        slots, counts = self.words.find(term)
        if len(self._slots) < self._size:
            living = self._columns["alive"][slots]
            slots, counts = slots[living], counts[living]
        return slots, counts.astype(np.float32)

    def _bm25(self, terms: Sequence[str]) -> Floats:
        """Return BM25 scores; 1.0 means every term of the query once in a memory of average length."""
        scores = np.zeros(self._size, np.float32)
        lengths = self._columns["of_passage"]
        average = max(self._total_length / max(len(self._slots) - self._derived, 1), 1.0)
        best_possible = 0.0
        for term, weight in weighted(terms):
            slots, counts = self._holders(term)
            worth = weight * self._rarity(slots)
            best_possible += worth
            saturation = counts + K1 * (1 - B + B * lengths[slots] / average)
            scores[slots] += (worth * (K1 + 1)) * counts / saturation
        return scores / np.float32(best_possible) if best_possible else scores

    def _episode_bm25(self, terms: Sequence[str], limited: Mask | None) -> Floats:
        """Return the BM25 score of each message's episode, as if it were one long message."""
        found = self._episodes()
        scores = np.zeros(found.count, np.float32)
        norm = K1 * (1 - B + B * found.lengths / max(float(found.lengths.mean()), 1.0))
        best_possible = 0.0
        for term, weight in weighted(terms):
            slots, counts = self._holders(term)
            number = found.number[slots]
            inside = number >= 0 if limited is None else (number >= 0) & limited[slots]
            times = np.bincount(number[inside], counts[inside], minlength=found.count)
            worth = weight * rarity(found.count, int(np.count_nonzero(times)))
            best_possible += worth
            scores += (worth * (K1 + 1)) * times / (times + norm)
        scores /= best_possible or 1.0
        return np.where(found.number >= 0, scores[found.number], 0)

    def _coverage_of(self, words: Sequence[str], named: frozenset[str], size: int) -> tuple[Floats, Floats]:
        """Return the share of the words that each memory holds, weighted by rarity, and its rarest word's share of the
        rarest one. A person who is named counts as a word, held by the messages they sent."""
        held, rarest = np.zeros(size, np.float32), np.zeros(size, np.float32)
        whole, rarest_of_all = 0.0, 0.0
        for word in dict.fromkeys(words):
            slots, _ = self._holders(word)
            slots = slots[slots < size]
            worth = self._rarity(slots)
            held[slots] += worth
            rarest[slots] = np.maximum(rarest[slots], worth)
            whole, rarest_of_all = whole + worth, max(rarest_of_all, worth)
        if named:
            known = self._rarity(np.empty(0, np.int32)) / 2
            held += known * self._said_by(named)[:size]
            whole += known
        return held / np.float32(whole or 1.0), rarest / np.float32(rarest_of_all or 1.0)

    def _holds_phrase(self, phrases: Sequence[Sequence[str]]) -> Floats:
        """Return 1 for memories that contain all words of a phrase."""
        any_of_them = np.zeros(self._size, np.bool_)
        for phrase in phrases:
            held = np.zeros(self._size, np.int32)
            for term in set(phrase):
                held[self._holders(term)[0]] += 1
            any_of_them |= held == len(set(phrase))
        return any_of_them.astype(np.float32)

    def _by_type(self, values: Mapping[str, float], others: float) -> Floats:
        by_code = np.zeros(len(self._codes["memory_type"]), np.float32)
        for memory_type, code in self._codes["memory_type"].items():
            by_code[code] = values.get(memory_type or "", others)
        found: Floats = by_code[self._columns["memory_type"][: self._size]]
        return found

    def _meaning(self, query: IndexQuery) -> Floats:
        """Return the similarity to the query; for a dialogue, to the nearest turn."""
        return reduce(np.maximum, map(self._cosine, query.turns or (query.vector,)))

    def _cosine(self, vector: NDArray[np.float32] | None) -> Floats:
        return self._vectors.cosine(vector, self._size, slice(0, self._size))

    def _succession(self, query: IndexQuery, semantic: Floats, text: Floats) -> Succession | None:
        if not query.current or not len(self._derivations):
            return None
        alive = self._columns["alive"][: self._size]
        ended = self._columns["valid_to"][: self._size] <= to_micros(query.filter.as_of or query.filter.now)
        return self._derivations.succession(semantic.clip(0, None) + text, alive, ended)

    def _happened_in(self, spans: Sequence[tuple[datetime, datetime]]) -> Floats:
        happened = np.zeros(self._size, np.bool_)
        occurred = self._columns["occurred_at"][: self._size]
        for start, end in spans:
            happened |= (occurred >= to_micros(start)) & (occurred < to_micros(end))
        return happened.astype(np.float32)
