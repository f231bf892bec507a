"""The search index: a copy of each user's memories in RAM, scanned exactly."""

from ..settings import Settings
from ..store.store import Store
from .search_index import SearchIndex


def open_index(store: Store, settings: Settings) -> SearchIndex:
    """Return the index of a store's memories."""
    from .search_index import SearchIndex

    external = None
    if store.database.has_pgvector:
        from ..store.postgres import PostgresDatabase
        from .pgvector import PgVectors

        if isinstance(store.database, PostgresDatabase):
            external = PgVectors(store.database, settings.postgres.vector_index_above)
    return SearchIndex(store, budget=settings.cache_mb << 20, external=external)
