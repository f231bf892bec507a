"""Groups of old memories that are compressed together."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from ..roles import subject_text
from ..store.upkeep.aged_rows import Held

MIN_SIMILARITY = 0.45  # cosine; very old memories are grouped with the nearest ones whatever their similarity
MAX_SPAN = timedelta(days=92)  # between the members of a group, unless they are very old
MAX_MEMBERS = 24
MESSAGE = "message"
MaxLength = Callable[[int], int]  # of a text, by its compression level
Size = Callable[[Held], int]  # length of a memory's condensation
Teller = tuple[str | None, str | None]  # role and name


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    members: tuple[Held, ...]
    subject: str | None


def subject_of(memory: Held) -> str | None:
    """Person that a memory is about; the speaker of a message."""
    named = subject_text(memory.data) or memory.data.get("speaker") or memory.data.get("role")
    return named if isinstance(named, str) else None


def _teller(memory: Held) -> Teller:
    """Return whose words a memory has: those of two people never become one memory, which would be nobody's."""
    return memory.data.get("role"), memory.data.get("speaker")


def groups(
    memories: Sequence[Held], *, smallest: int, max_length: MaxLength, very_old: datetime, size: Size
) -> Iterator[Group]:
    """Yield groups of one type, teller and subject. Memories without informative sentences form one group. Very old
    memories that match no others are grouped across subjects, except messages."""
    kinds: dict[tuple[str, Teller, str | None, str | None, str | None], list[Held]] = defaultdict(list)
    for memory in sorted(memories, key=lambda one: (one.occurred_at, one.id)):
        place = memory.agent_id, memory.group_id
        kinds[memory.memory_type, _teller(memory), subject_of(memory), *place].append(memory)
    ungrouped: dict[tuple[str, Teller, str | None, str | None], list[Held]] = defaultdict(list)
    sizes = {memory.id: size(memory) for memory in memories}
    for (memory_type, teller, subject, agent_id, group_id), some in kinds.items():
        empty = [memory for memory in some if not sizes[memory.id]]
        if len(empty) >= smallest:
            yield Group(members=tuple(empty), subject=subject)
        informative = [memory for memory in some if sizes[memory.id]]
        grouped: set[str] = set()
        for part in _similar(informative, smallest, max_length, very_old, sizes):
            grouped.update(memory.id for memory in part)
            yield Group(members=tuple(part), subject=subject)
        if memory_type != MESSAGE:
            left = [memory for memory in informative if memory.id not in grouped and memory.occurred_at <= very_old]
            ungrouped[memory_type, teller, agent_id, group_id] += left
    for some in ungrouped.values():
        some.sort(key=lambda one: (one.occurred_at, one.id))
        for part in _similar(some, smallest, max_length, very_old, sizes):
            yield Group(members=tuple(part), subject=None)


def _similar(
    left: Sequence[Held], smallest: int, max_length: MaxLength, very_old: datetime, sizes: Mapping[str, int]
) -> Iterator[list[Held]]:
    """Yield the oldest memory with its nearest ones that fit into one text, then the next oldest. A memory of a higher
    compression level does not join a lower one: it would be rewritten again and again."""
    vectors = _matrix(left)
    free = np.ones(len(left), np.bool_)
    for at, first in enumerate(left):
        if not free[at]:
            continue
        old = first.occurred_at <= very_old
        near = vectors @ vectors[at] if vectors.size else np.ones(len(left), np.float32)
        part, places, length, limit = [first], [at], sizes[first.id], max_length(first.level)
        for place in np.argsort(-near, kind="stable").tolist():
            if place == at or not free[place]:
                continue
            other = left[place]
            if (near[place] < MIN_SIMILARITY and not old) or len(part) >= MAX_MEMBERS:
                break
            if other.level > first.level or (not old and abs(other.occurred_at - first.occurred_at) > MAX_SPAN):
                continue
            if length + sizes[other.id] <= limit:
                length += sizes[other.id]
                part.append(other)
                places.append(place)
        if len(part) >= smallest:
            free[places] = False
            yield sorted(part, key=lambda one: (one.occurred_at, one.id))


def _matrix(memories: Sequence[Held]) -> NDArray[np.float32]:
    """Stack the vectors; empty if any is missing or has another length, so that memories are grouped by time alone."""
    vectors = [memory.vector for memory in memories if memory.vector is not None]
    if len(vectors) < len(memories) or len({len(vector) for vector in vectors}) != 1:
        return np.empty(0, np.float32)
    return np.vstack(vectors)
