"""The search index: a copy of each user's memories in RAM, scanned exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..settings import Settings
from ..store.store import Store
from .search_index import SearchIndex

if TYPE_CHECKING:
    from .candidates import Engines


def open_index(store: Store, settings: Settings, engines: Engines | None = None) -> SearchIndex:
    """Return the index of a store's memories; `engines` find the candidates of users that are searched there."""
    from .search_index import SearchIndex

    external = None
    if store.database.has_pgvector:
        from ..store.hnsw_index import PgVectors
        from ..store.postgres import PostgresDatabase

        if isinstance(store.database, PostgresDatabase):
            external = PgVectors(store.database, settings.postgres.vector_index_above)
    return SearchIndex(store, budget=settings.cache_mb << 20, external=external, engines=engines)
