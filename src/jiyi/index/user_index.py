"""The searchable copy of one user's memories: columns for filters, a word leg and a vector leg, scanned exactly. The
database is the source of truth. A memory has a slot, its position in every array; a changed memory gets a new slot and
the old one is dead."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..models import from_micros, to_micros
from ..scope import Lifetimes
from ..store.repositories.index_rows import IndexRow
from .legs import CODED, COLUMNS, TIMES, VectorLeg, WordLeg
from .query import (
    NEVER,
    Candidates,
    Floats,
    IndexQuery,
    Mask,
    NamedColumn,
    Scope,
    ScopedColumn,
    in_scope,
    with_lifetime,
)
from .relations import NONE, Derivations, Episodes, Succession, find_episodes, positions
from .vectors import LoadedVectors, RamVectors
from .words import RamWords, WordScores

LONG_AGO = np.iinfo(np.int64).min
NOTHING = np.empty(0, np.float32)
DAY = 86_400_000_000  # microseconds
# Columns that are taken over from a row as they are.
VALUES = ("trust", "length", "of_passage", "asks", "assistant", "derived", "alone")


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
        self._found_episodes: Episodes | None = None  # None until the next query, like the next
        self._found_statements: NDArray[np.intp] | None = None
        self._found_columns: dict[str, NDArray[Any]] | None = None  # without reserved room
        self._found_ends: NDArray[np.int64] | None = None  # times at which memories expire or end
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
        self._found_columns = None
        for name, column in self._columns.items():
            self._columns[name] = np.resize(column, capacity) if len(column) else np.zeros(capacity, column.dtype)
        self._vectors.grow(self._size, capacity)

    def put(self, rows: Sequence[IndexRow]) -> None:
        """Add new or changed memories."""
        if not rows:
            return
        self.drop(row.id for row in rows)
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
        for name in VALUES:
            self._columns[name][first:end] = [getattr(row, name) for row in rows]
        self._columns["alive"][first:end] = True
        self._columns["embedded"][first:end] = self._vectors.put(first, rows)
        self.words.put(first, rows)
        for slot, row in enumerate(rows, first):
            self._slots[row.id] = slot
            self._count(slot, 1)
            for tag in row.tags:
                self._tagged[tag].append(slot)
        self._size, self._found_columns = end, None

    def packed(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return all but vectors and vocabulary of an index that was just loaded. Equal values of a column are one."""
        columns = {name: column[:1] if (column == column[0]).all() else column for name, column in self._used().items()}
        arrays = columns | {"id": np.frombuffer("\n".join(self._slots).encode(), np.uint8)}
        arrays |= self.words.packed() | self._derivations.packed() | self._vectors.passages.packed()
        return arrays, {"codes": {name: [*codes] for name, codes in self._codes.items()}, "tagged": self._tagged}

    def unpack(self, arrays: Mapping[str, NDArray[Any]], values: Mapping[str, Any]) -> None:
        """Take over what `packed` returned."""
        self._found_columns = None
        ids = arrays["id"].tobytes().decode().splitlines()
        self._size, self._slots = len(ids), {memory_id: slot for slot, memory_id in enumerate(ids)}
        for name in self._columns.keys() - {"id"}:
            self._columns[name] = np.empty(self._size, COLUMNS[name])
            self._columns[name][:] = arrays[name]
        self._columns["id"] = np.array(ids, object)
        self._codes = {name: {value: code for code, value in enumerate(some)} for name, some in values["codes"].items()}
        self._tagged.update(values["tagged"])
        self.words.unpack(arrays)
        self._derivations.unpack(arrays)
        self._vectors.grow(0, self._size)
        self._vectors.passages.unpack(arrays)
        self._derived = int(np.count_nonzero(self._columns["derived"]))
        self._total_length = int(self._columns["of_passage"][~self._columns["derived"]].sum())

    @property
    def ids(self) -> list[str]:
        """The ids of memories that were unpacked, by slot."""
        return list(self._slots)

    def set_vectors(self, first: int, rows: Sequence[Sequence[Any]]) -> None:
        """Set the vectors of memories that were unpacked, given by id, mostly of all from slot `first` on."""
        if not rows:
            return
        ids, vectors = zip(*rows, strict=True)
        slots: Sequence[int] = range(first, first + len(ids))
        if ids != tuple(self._columns["id"][first : first + len(ids)]):
            known = [at for at, memory_id in enumerate(ids) if memory_id in self._slots]
            slots, vectors = [self._slots[ids[at]] for at in known], tuple(vectors[at] for at in known)
        self._vectors.set(slots, vectors)

    def set_recalls(self, rows: Sequence[Sequence[Any]]) -> None:
        """Set how often and when memories were recalled."""
        for memory_id, count, at in rows:
            if (slot := self._slots.get(memory_id)) is not None:
                self._columns["access_count"][slot], self._columns["last_accessed_at"][slot] = count, at

    def link(self, threes: Iterable[tuple[str, str, str | None]]) -> None:
        """Add the ids of derived memories, of the messages they came from, and of their successors."""
        self._found_statements = None
        slots = self._slots
        self._derivations.add(
            [
                (slots[derived], slots[message], slots.get(successor or "", NONE))
                for derived, message, successor in threes
                if derived in slots and message in slots
            ]
        )

    def drop(self, ids: Iterable[str]) -> None:
        self._found_episodes = self._found_statements = self._found_ends = None
        for memory_id in ids:
            slot = self._slots.pop(memory_id, None)
            if slot is not None:
                self._columns["alive"][slot] = False
                self._count(slot, -1)

    def next_end(self, now: datetime, lifetimes: Lifetimes = ()) -> datetime | None:
        """Return the next time at which a memory expires or ends."""
        at, columns = to_micros(now), self._used()
        if self._found_ends is None:
            times = np.concatenate([columns[name][columns["alive"]] for name in ("expires_at", "valid_to")])
            self._found_ends = times[times != NEVER]
        ends = int(self._found_ends[self._found_ends > at].min(initial=NEVER))
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

    def in_scope(self, query: IndexQuery) -> int:
        """Count the memories in scope."""
        return int(np.count_nonzero(self._in_scope(query)))

    def by_words(self, query: IndexQuery, most: int) -> list[str]:
        """Return the ids that match by words, the best ones if there are many."""
        alive = self._columns["alive"][: self._size]
        scores = self._word_scores()
        found = scores.bm25(query.terms) + scores.keyword_match(query)
        slots = np.flatnonzero((found > 0) & alive & self._in_scope(query))
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
        in_scope = self._in_scope(query)
        # Mostly everything is in scope, and a slice avoids copying every array.
        everything = bool(in_scope.all())
        slots: Scope = slice(0, self._size) if everything else np.flatnonzero(in_scope)
        limited = None if everything else in_scope
        columns = self._columns
        embedded = columns["embedded"][slots]
        episodes = self._episodes()
        scores = self._word_scores()
        said = self._said_by(query.named) if query.named else None
        scores.find((*query.terms, *query.words))
        text, semantic = scores.bm25(query.terms), self._meaning(query)
        succession = self._succession(query, semantic, text)
        if limited is not None:
            text = text * limited

        def leg(values: Floats) -> Floats:
            return (values if succession is None else succession.inherit(values))[slots]

        now = to_micros(query.filter.now)
        age_days = self._ages(now)
        if query.ageing:
            age_days = age_days * self._by_type(query.ageing, 1.0)
        return Candidates(
            ids=ScopedColumn(columns["id"][: self._size], slots),
            keyword=leg(scores.keyword_match(query)),
            text=leg(text),
            semantic=leg(semantic),
            near=leg(episodes.smoothed(semantic, limited)),
            coverage=leg(scores.coverage(query.words, said)),
            last_text=None if query.last_terms is None else leg(scores.bm25(query.last_terms)),
            last_semantic=leg(self._cosine(query.turns[-1])) if query.turns else None,
            whole_semantic=leg(self._cosine(query.vector)) if query.turns else None,
            episode=leg(scores.episode_bm25(query.terms, episodes, limited))
            if episodes.count and query.terms
            else None,
            before=leg(self._before(text)) if episodes.count else None,
            gist=leg(self._derivations.best(semantic, in_scope)) if len(self._derivations) else None,
            over=None if succession is None else succession.outdated[slots],
            succeeds=None if succession is None else succession.succeeds[slots],
            partly_over=None if succession is None else ScopedColumn(succession.partly, slots),
            phrase=leg(scores.holds_phrase(query.phrases)) if query.phrases else None,
            speaker=None if said is None else said[slots],
            time=self._happened_in(query.spans)[slots] if query.spans else None,
            assistant=columns["assistant"][slots].astype(np.float32),
            asks=columns["asks"][slots],
            kind=NamedColumn(columns["kind"], slots, list(self._codes["kind"])),
            message_before=NamedColumn(episodes.previous, slots, columns["id"]) if len(episodes.first) else None,
            successions=positions(succession, slots, self._size),
            statement=ScopedColumn(self._statements(), slots),
            derived=columns["derived"][slots] if self._derived else None,
            priority=self._by_type(query.priorities, 0.0)[slots] if query.priorities else None,
            age_days=age_days[slots],
            idle_days=self._idle(now)[slots] if query.recalls else NOTHING,
            uses=columns["access_count"][slots] if query.recalls else NOTHING,
            importance=columns["importance"][slots],
            unembedded=len(embedded) - int(np.count_nonzero(embedded)),
        )

    def _used(self) -> dict[str, NDArray[Any]]:
        """Return the columns without reserved room."""
        if self._found_columns is None:
            self._found_columns = {name: column[: self._size] for name, column in self._columns.items()}
        return self._found_columns

    def _in_scope(self, query: IndexQuery) -> Mask:
        scope = in_scope(self._used(), self._codes, self._tagged, query.filter)
        if query.ids is not None:
            selected = np.zeros(self._size, np.bool_)
            selected[[self._slots[memory_id] for memory_id in query.ids if memory_id in self._slots]] = True
            scope &= selected
        return scope if query.required is None else scope & self._with_keyword(query, query.required)

    def _with_keyword(self, query: IndexQuery, required: Sequence[Sequence[str]]) -> Mask:
        """Return the memories that match one of the query's keywords, or contain all terms of one."""
        found = self._word_scores().keyword_match(query) > 0
        for terms in required:
            holders = [slots for slots, _ in self.words.find(terms)]
            if holders:
                found[reduce(np.intersect1d, holders)] = True
        return found

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

    def _statements(self) -> NDArray[np.intp]:
        if self._found_statements is None:
            self._found_statements = self._derivations.statements(self._size, alive=self._columns["alive"])
        return self._found_statements

    def _word_scores(self) -> WordScores:
        return WordScores(
            self.words, self._used(), living=len(self._slots), derived=self._derived, total_length=self._total_length
        )

    def _ages(self, now: int) -> Floats:
        """Return the days since each memory happened or was last recalled."""
        return _days(now - np.maximum(self._columns["occurred_at"][: self._size], self._recalled(now)))

    def _idle(self, now: int) -> Floats:
        """Return the days since each memory was last recalled; infinite if it never was."""
        recalled = self._recalled(now)
        return np.where(recalled == LONG_AGO, np.float32(np.inf), _days(now - np.maximum(recalled, 0)))

    def _recalled(self, now: int) -> NDArray[np.int64]:
        """Return when each memory was last recalled; recalls after `now` do not count."""
        recalled: NDArray[np.int64] = self._columns["last_accessed_at"][: self._size]
        return np.where(recalled <= now, recalled, LONG_AGO) if recalled.max(initial=LONG_AGO) > now else recalled

    def _before(self, text: Floats) -> Floats:
        """Return the score of the message before; an assistant's counts 0, because it repeats the question's words."""
        return self._episodes().from_before(np.where(self._columns["assistant"][: self._size], 0, text))

    def _said_by(self, people: frozenset[str]) -> Floats:
        codes = [self._codes["speaker"][name] for name in people if name in self._codes["speaker"]]
        said = np.isin(self._columns["speaker"][: self._size], codes) if codes else np.zeros(self._size, np.bool_)
        return said.astype(np.float32)

    def _count(self, slot: int, by: int) -> None:
        """Count a memory. Derived ones repeat their message, so they change neither rarity nor average length."""
        if self._columns["derived"][slot]:
            self._derived += by
        else:
            self._total_length += by * int(self._columns["of_passage"][slot])

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


def _days(micros: NDArray[np.int64]) -> Floats:
    """Return a time in days; 0 for one in the future."""
    return np.maximum(micros.astype(np.float32), 0) / np.float32(DAY)
