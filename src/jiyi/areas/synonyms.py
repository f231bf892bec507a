"""Synonyms that users added, and query expansion."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .. import validation
from ..engine import Engine
from ..read.query import Expansion, expand, related_words
from ..scope import Filter
from ..synonyms import GivenPair, Synonym, checked


class Synonyms:
    def __init__(self, engine: Engine) -> None:
        self._store = engine.store

    async def add(self, pairs: Iterable[GivenPair], *, user_id: str | None = None) -> int:
        """Add pairs of synonyms for one user or, without `user_id`, for all. Returns how many are new or changed.

        await memory.synonyms.add([("k8s", "kubernetes"), ("老王", "王总", 0.9)], user_id="mei")
        """
        return await self._store.synonyms.add(validation.optional_name("user_id", user_id), checked(pairs))

    async def list(self, *, user_id: str | None = None) -> Sequence[Synonym]:
        """List a user's own and the shared pairs or, without `user_id`, the shared ones."""
        return await self._store.synonyms.list(validation.optional_name("user_id", user_id))

    async def remove(self, keyword: str, synonym: str | None = None, *, user_id: str | None = None) -> int:
        """Remove one pair, or all pairs of a word; without `user_id`, shared ones. Returns how many."""
        return await self._store.synonyms.remove(
            validation.optional_name("user_id", user_id),
            validation.name("keyword", keyword),
            validation.optional_name("synonym", synonym),
        )

    async def expand(self, keywords: Sequence[str], *, user_id: str) -> Expansion:
        """Return synonyms of the keywords, and words that occur together with them in the user's memories."""
        words = validation.names("keywords", keywords)
        where = Filter.parse(user_id=user_id)
        own = await self._store.synonyms.of(where.user_id, words)
        return expand(words, own, related_words(await self._store.synonyms.cooccurrence(where, words)))
