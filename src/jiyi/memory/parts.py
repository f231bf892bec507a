"""What all verbs share: the store, the embedder, the settings, and when they are opened and closed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ..embed import Embedder
from ..read.score import Weights
from ..write.change import change
from ..write.index import KeywordRules

if TYPE_CHECKING:
    from ..settings import Settings
    from ..store.base import Store


class Parts:
    def __init__(self, store: Store, embedder: Embedder, settings: Settings) -> None:
        self.settings = settings
        self._store = store
        self._embedder = embedder
        self._weights = Weights.of(settings.search)
        self._rules = KeywordRules(settings.extraction.max_keywords_per_memory, settings.extraction.min_keyword_weight)
        self._change = partial(change, store=store, embedder=embedder, rules=self._rules)

    async def _start(self) -> None:
        """Open the database: `async with` and `await` do it."""
        await self._store.start()

    async def close(self) -> None:
        """Let go of the database."""
        await self._store.close()
