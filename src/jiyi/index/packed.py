"""The packed index of a large user in the database: the columns of a `UserIndex` as they were at one position of the
change feed. Reading them takes a fraction of the time that reading every memory takes; what changed since comes from
the change feed. Vectors and keywords are read from their own tables, so that no text is kept twice."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import __version__
from ..errors import JiyiError
from ..languages.terms import WORDS_VERSION
from ..store.store import Store
from .legs import COLUMNS
from .user_index import UserIndex

LEAST = 300  # memories of a user whose index is packed; reading fewer takes no longer
# Another version reads memories in another way.
FORMAT = sha256(repr((1, __version__, WORDS_VERSION, COLUMNS)).encode()).hexdigest()[:16]
ABOUT = "about"  # name of the part that describes the others

logger = logging.getLogger(__name__)


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
    """Replace a user's packed index. Without it everything works, so a failure is only logged."""
    try:
        await store.index_rows.pack(user_id, seen, parts)
    except JiyiError as error:
        logger.info("the index of a user is not packed: %s", error)


async def load(store: Store, user_id: str, model: str, dimension: int, *, external: bool) -> UserIndex | None:
    """Return the packed index with vectors and vocabulary as they are now; None if there is none that fits."""
    packed = await store.index_rows.packed(user_id)
    if packed is None or ABOUT not in packed.parts:
        return None
    about = json.loads(packed.parts[ABOUT])
    if (about["format"], about["model"], about["external"]) != (FORMAT, model, external):
        return None
    if dimension and about["dimension"] not in (0, dimension):
        return None
    index = UserIndex(model, dimension or about["dimension"], seen=packed.seen, external=external)
    try:
        arrays: dict[str, NDArray[Any]] = {
            name: np.frombuffer(packed.parts[name], dtype) for name, dtype in about["arrays"].items()
        }
        index.unpack(arrays, about["values"])
    except (KeyError, ValueError) as error:
        logger.warning("the packed index of a user is damaged and is made anew: %r", error)
        return None
    if not external:
        await store.index_rows.vectors(user_id, model, index.ids, index.set_vectors)
    index.words.learn(await store.index_rows.vocabulary(user_id))
    index.set_recalls(await store.index_rows.recalls(user_id))
    return index
