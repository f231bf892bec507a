"""The search index: a copy of each user's memories in RAM, scanned exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..settings import Settings
    from ..store.database import Database
    from ..store.store import Store
    from .legs import ExternalVectors
    from .search_index import SearchIndex


def open_index(store: Store, settings: Settings) -> SearchIndex:
    """Return the index of a store's memories."""
    from .search_index import SearchIndex

    external = _external(store.database, settings) if store.database.has_pgvector else None
    return SearchIndex(store, budget=settings.cache_mb << 20, external=external)


def _external(database: Database, settings: Settings) -> ExternalVectors | None:
    from ..store.postgres import PostgresDatabase
    from .pgvector import PgVectors

    if not isinstance(database, PostgresDatabase):
        return None
    return PgVectors(database, settings.postgres.vector_index_above)
