"""Which old memories belong together: of one type and subject, and near to each other in meaning."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from ..store.aged import Held

ALIKE = 0.45  # cosine; what is nearer belongs together. What has found no company for long goes with what is nearest
SPAN = timedelta(days=92)  # between the members of a group, as long as they are not very old
MOST_MEMBERS = 24

MESSAGE = "message"

Longest = Callable[[int], int]  # how much may be told in one text, by how often it was compressed
Size = Callable[[Held], int]  # how much of it would be told; 0: nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    members: tuple[Held, ...]
    subject: str | None


def subject_of(memory: Held) -> str | None:
    """Whom it is about; of a message, who said it."""
    named = memory.data.get("subject") or memory.data.get("speaker") or memory.data.get("role")
    return named if isinstance(named, str) else None


def groups(
    memories: Sequence[Held], *, smallest: int, longest: Longest, very_old: datetime, size: Size
) -> Iterator[Group]:
    """Those that tell nothing go together, whatever they are about; and what is left of the very old, whomever it is
    about, but for messages: those go by who said them."""
    kinds: dict[tuple[str, str | None, str | None, str | None], list[Held]] = defaultdict(list)
    for memory in sorted(memories, key=lambda one: (one.occurred_at, one.id)):
        kinds[memory.memory_type, subject_of(memory), memory.agent_id, memory.group_id].append(memory)
    lonely: dict[tuple[str, str | None, str | None], list[Held]] = defaultdict(list)
    sizes = {memory.id: size(memory) for memory in memories}
    for (memory_type, subject, agent_id, group_id), some in kinds.items():
        silent = [memory for memory in some if not sizes[memory.id]]
        if len(silent) >= smallest:
            yield Group(members=tuple(silent), subject=subject)
        telling = [memory for memory in some if sizes[memory.id]]
        grouped: set[str] = set()
        for part in _alike(telling, smallest, longest, very_old, sizes):
            grouped.update(memory.id for memory in part)
            yield Group(members=tuple(part), subject=subject)
        if memory_type != MESSAGE:
            left = [memory for memory in telling if memory.id not in grouped and memory.occurred_at <= very_old]
            lonely[memory_type, agent_id, group_id] += left
    for some in lonely.values():
        some.sort(key=lambda one: (one.occurred_at, one.id))
        for part in _alike(some, smallest, longest, very_old, sizes):
            yield Group(members=tuple(part), subject=None)


def _alike(
    left: Sequence[Held], smallest: int, longest: Longest, very_old: datetime, sizes: Mapping[str, int]
) -> Iterator[list[Held]]:
    """The oldest with those nearest to it in meaning, as long as they fit into one text; then the next. What was
    compressed more often is no company for what was less often: it would be written anew again and again."""
    vectors = _matrix(left)
    free = np.ones(len(left), np.bool_)
    for at, first in enumerate(left):
        if not free[at]:
            continue
        old = first.occurred_at <= very_old
        near = vectors @ vectors[at] if vectors.size else np.ones(len(left), np.float32)
        part, places, whole, room = [first], [at], sizes[first.id], longest(first.level)
        for place in np.argsort(-near, kind="stable").tolist():
            if place == at or not free[place]:
                continue
            other = left[place]
            if (near[place] < ALIKE and not old) or len(part) >= MOST_MEMBERS:
                break
            if other.level > first.level or (not old and abs(other.occurred_at - first.occurred_at) > SPAN):
                continue
            if whole + sizes[other.id] <= room:
                whole += sizes[other.id]
                part.append(other)
                places.append(place)
        if len(part) >= smallest:
            free[places] = False
            yield sorted(part, key=lambda one: (one.occurred_at, one.id))


def _matrix(memories: Sequence[Held]) -> NDArray[np.float32]:
    """Their vectors, as rows; empty if one of them has none of this length, so that they go by time alone."""
    vectors = [memory.vector for memory in memories if memory.vector is not None]
    if len(vectors) < len(memories) or len({len(vector) for vector in vectors}) != 1:
        return np.empty(0, np.float32)
    return np.vstack(vectors)
