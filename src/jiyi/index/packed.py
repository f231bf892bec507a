"""The packed index of a large user in the database: the columns of a `UserIndex` as they were at one position of the
change feed. Reading them takes a fraction of the time that reading every memory takes; what changed since comes from
the change feed. Vectors and keywords are read from their own tables, so that no text is kept twice."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Coroutine, Mapping
from hashlib import sha256
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import BigInteger, BindParameter, LargeBinary, bindparam, delete, insert, select, type_coerce

from .. import __version__
from ..errors import JiyiError
from ..ids import erased
from ..languages.terms import WORDS_VERSION
from ..store.session import Session
from ..store.store import Store
from ..store.tables import ChangeRow, EmbeddingRow, KeywordRow, MemoryRow, PackedIndexRow
from .legs import COLUMNS
from .user_index import UserIndex

LEAST = 5000  # memories of a user whose index is packed
VECTORS_AT_ONCE = 500  # rows; more would not fit into the processor's cache
# Another version reads memories in another way.
FORMAT = sha256(repr((1, __version__, WORDS_VERSION, COLUMNS)).encode()).hexdigest()[:16]
ABOUT = "about"  # name of the part that describes the others

logger = logging.getLogger(__name__)
T = TypeVar("T")

_USER: BindParameter[str] = bindparam("user_id")
_PARTS = select(PackedIndexRow.name, PackedIndexRow.seen, PackedIndexRow.data).where(PackedIndexRow.user_id == _USER)
_VECTORS = (
    select(EmbeddingRow.memory_id, type_coerce(EmbeddingRow.vector, LargeBinary))
    .where(
        EmbeddingRow.user_id == _USER,
        EmbeddingRow.model == bindparam("model"),
        EmbeddingRow.part == 0,
        EmbeddingRow.memory_id >= bindparam("first"),
        EmbeddingRow.memory_id <= bindparam("last"),
    )
    .order_by(EmbeddingRow.memory_id)
)
_DELETED = (
    select(ChangeRow.seq)
    .where(
        ChangeRow.user_id.in_([_USER, bindparam("erased")]),
        ChangeRow.seq > bindparam("seen"),
        ChangeRow.action.in_(["delete", "erase"]),
    )
    .limit(1)
)
VOCABULARY = select(KeywordRow.keyword).where(KeywordRow.user_id == _USER).distinct()
_AT = type_coerce(MemoryRow.last_accessed_at, BigInteger)
# A comparison, not IS NOT NULL: without two columns to look up, SQLite takes any index that begins with the user.
_RECALLED = select(MemoryRow.id, MemoryRow.access_count, _AT).where(MemoryRow.user_id == _USER, _AT > 0)


def pack(index: UserIndex) -> dict[str, bytes]:
    """Return the parts of an index that was just loaded."""
    arrays, values = index.packed()
    about = {
        "format": FORMAT,
        "model": index.model,
        "dimension": index.dimension,
        "external": index.external,
        "values": values,
        "arrays": {name: array.dtype.str for name, array in arrays.items()},
    }
    return {ABOUT: json.dumps(about).encode(), **{name: array.tobytes() for name, array in arrays.items()}}


async def save(store: Store, user_id: str, seen: int, parts: Mapping[str, bytes]) -> None:
    """Replace a user's packed index, unless something was deleted meanwhile: a deletion drops what is packed. Without
    it everything works, so a failure is only logged."""
    rows = [{"user_id": user_id, "name": name, "seen": seen, "data": data} for name, data in parts.items()]

    async def work(session: Session) -> None:
        [deleted] = await session.select((_DELETED, {"user_id": user_id, "erased": erased(user_id), "seen": seen}))
        if deleted:
            return
        await session.execute(delete(PackedIndexRow).where(PackedIndexRow.user_id == user_id))
        await session.execute(insert(PackedIndexRow), rows)

    try:
        await store.database.write([user_id], work)
    except JiyiError as error:
        logger.info("the index of a user is not packed: %s", error)


async def load(
    store: Store, session: Session, user_id: str, model: str, dimension: int, *, external: bool
) -> UserIndex | None:
    """Return the packed index with vectors and vocabulary as they are now; None if there is none that fits."""

    async def read(work: Callable[[Session], Coroutine[Any, Any, T]]) -> T:
        if store.database.has_pgvector:  # whoever holds a connection of the pool must not wait for another
            return await work(session)
        return await store.database.read(user_id, work)  # in a thread, which is faster

    [rows] = await read(lambda session: session.select((_PARTS, {"user_id": user_id})))
    parts = {name: data for name, _, data in rows}
    if ABOUT not in parts:
        return None
    about = json.loads(parts[ABOUT])
    if (about["format"], about["model"], about["external"]) != (FORMAT, model, external):
        return None
    if dimension and about["dimension"] not in (0, dimension):
        return None
    index = UserIndex(model, dimension or about["dimension"], seen=rows[0][1], external=external)
    try:
        arrays: dict[str, NDArray[Any]] = {
            name: np.frombuffer(parts[name], dtype) for name, dtype in about["arrays"].items()
        }
        index.unpack(arrays, about["values"])
    except (KeyError, ValueError) as error:
        logger.warning("the packed index of a user is damaged and is made anew: %r", error)
        return None
    await read(lambda session: _fill(index, user_id, session))
    return index


async def _fill(index: UserIndex, user_id: str, session: Session) -> None:
    """Read what is not packed: vectors, unless they stay in the database, vocabulary and recalls."""
    ids = [] if index.external else index.ids
    for slot in range(0, len(ids), VECTORS_AT_ONCE):
        span = {"first": ids[slot], "last": ids[min(slot + VECTORS_AT_ONCE, len(ids)) - 1]}
        [rows] = await session.select((_VECTORS, {"user_id": user_id, "model": index.model, **span}))
        index.set_vectors(slot, rows)
    of_user = {"user_id": user_id}
    words, recalled = await session.select((VOCABULARY, of_user), (_RECALLED, of_user))
    index.words.learn([word for (word,) in words])
    index.set_recalls(recalled)
