"""The search index: a copy of each user's memories in RAM, scanned exactly."""

from ..settings import Settings
from ..store.store import Store
from .legs import Engines
from .search_index import SearchIndex


def open_index(store: Store, settings: Settings, engines: Engines | None = None) -> SearchIndex:
    """Return the index of a store's memories; `engines` search those of users that are searched there."""
    external = None
    if store.database.has_pgvector:
        from ..store.postgres.hnsw_index import PgVectors
        from ..store.postgres.postgres_database import PostgresDatabase

        if isinstance(store.database, PostgresDatabase):
            external = PgVectors(store.database, settings.postgres.vector_index_above)
    return SearchIndex(store, budget=settings.cache_mb << 20, external=external, engines=engines)
