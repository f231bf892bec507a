"""Between rows and values: ORM rows do not leave the store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..languages.version import WORDS_VERSION
from ..models import Job, MemoryItem, Receipt, ReceiptState, Revision
from ..text.hashes import term_hash
from .contract import Addition, IndexEntry, NewMemory
from .tables import JobRow, MemoryRow, RevisionRow

# What a revision remembers: every field that a caller can change.
REVISED = (
    "content",
    "summary",
    "memory_type",
    "layer",
    "data",
    "metadata",
    "importance",
    "confidence",
    "tags",
    "status",
    "occurred_at",
    "valid_from",
    "valid_to",
    "superseded_by",
    "expires_at",
)
NO_ATTRIBUTE = {"metadata": "meta"}  # fields whose attribute on the row has another name


def memory_values(addition: Addition, new: NewMemory) -> dict[str, Any]:
    """A new memory as the values of its row."""
    return {
        "user_id": addition.user_id,
        "id": new.id,
        "memory_key": new.memory_key,
        "agent_id": addition.agent_id,
        "group_id": addition.group_id,
        "session_id": addition.session_id,
        "memory_type": new.memory_type,
        "layer": new.layer,
        "content": new.content,
        "summary": new.summary,
        "data": new.data,
        "metadata": new.metadata,
        "importance": new.importance,
        "confidence": new.confidence,
        "tags": list(new.tags),
        "dedupe_hash": new.dedupe_hash,
        "near_hash": new.index.near_hash,
        "status": new.status,
        "version": 1,
        "occurred_at": new.occurred_at,
        "valid_from": new.valid_from,
        "valid_to": new.valid_to,
        "superseded_by": new.superseded_by,
        "expires_at": new.expires_at,
        "access_count": 0,
        "last_accessed_at": None,
        "source": new.source,
        "trust": new.trust,
        "created_at": new.created_at or addition.at,
        "updated_at": addition.at,
        "slot": new.slot,
    }


def index_values(user_id: str, memory_id: str, index: IndexEntry) -> dict[str, list[dict[str, Any]]]:
    """What a memory is found by, as values of rows, by table."""
    key = {"user_id": user_id, "memory_id": memory_id}
    vectors = () if index.vector is None else (index.vector, *index.of_passages)
    return {
        "embeddings": [{**key, **one} for one in vector_values(index.model, vectors)],
        "terms": [
            {
                **key,
                "length": index.length,
                "asks": index.asks,
                "kind": index.kind,
                "salience": index.salience,
                "hashes": index.hashes,
                "counts": index.counts,
                "keyword_hashes": np.array([term_hash(keyword) for keyword, _, _ in index.keywords], np.int64),
                "keyword_weights": np.array([weight for _, weight, _ in index.keywords], np.float32),
                "words_version": WORDS_VERSION,
            }
        ],
        "keywords": [
            {**key, "keyword": keyword, "weight": weight, "source": source}
            for keyword, weight, source in index.keywords
        ],
    }


def vector_values(model: str | None, vectors: Iterable[NDArray[np.float32]]) -> list[dict[str, Any]]:
    """The vector of a memory, and those of its passages, as values of rows."""
    return [
        {"part": part, "model": model, "dimension": len(vector), "vector": vector}
        for part, vector in enumerate(vectors)
    ]


def item(values: Mapping[str, Any], keywords: Sequence[str], source_ids: Sequence[str]) -> MemoryItem:
    """A memory from the values of its row, by column name."""
    fields = {name: value for name, value in values.items() if name not in ("dedupe_hash", "near_hash", "slot")}
    return MemoryItem.model_validate({**fields, "keywords": tuple(keywords), "source_ids": tuple(source_ids)})


def snapshot(row: MemoryRow) -> dict[str, Any]:
    """The changeable fields of a memory, ready for JSON."""
    values = {name: getattr(row, NO_ATTRIBUTE.get(name, name)) for name in REVISED}
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in values.items()}


def revisions(rows: Sequence[RevisionRow], row: MemoryRow) -> list[Revision]:
    """The history of a memory, oldest first. What a change led to is where the next one started."""
    befores = [revision.before for revision in rows[1:]]
    return [
        Revision.model_validate(
            {
                "memory_id": revision.memory_id,
                "version": revision.version,
                "action": revision.action,
                "actor": revision.actor,
                "reason": revision.reason,
                "changed_at": revision.changed_at,
                "before": revision.before,
                "after": after,
            }
        )
        for revision, after in zip(rows, [*befores, snapshot(row)], strict=True)
    ]


def receipt(job: JobRow, memories: Sequence[MemoryItem]) -> Receipt:
    return Receipt(
        id=job.id,
        user_id=job.user_id,
        state=ReceiptState(job.state),
        memories=tuple(memories),
        created=job.created,
        problems=tuple(job.problems),
    )


def job(row: JobRow) -> Job:
    return Job(
        id=row.id,
        user_id=row.user_id,
        session_id=row.session_id,
        kind=row.kind,
        state=ReceiptState(row.state),
        attempts=row.attempts,
        problems=tuple(row.problems),
        next_attempt_at=row.not_before,
        leased_until=row.leased_until,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
