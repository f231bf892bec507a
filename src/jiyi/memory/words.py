"""The verbs about words that mean the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .. import validation
from ..read.expand import Expansion, expand, related_words
from ..read.interpret import scope
from ..synonyms import GivenPair, Synonym, checked
from .parts import Parts


class Words(Parts):
    async def add_synonyms(self, pairs: Iterable[GivenPair], *, user_id: str | None = None) -> int:
        """Teach it words that mean the same, for one user or, without `user_id`, for all. → how many are new or changed

        await memory.add_synonyms([("k8s", "kubernetes"), ("老王", "王总", 0.9)], user_id="mei")
        """
        return await self._store.add_synonyms(validation.optional_name("user_id", user_id), checked(pairs))

    async def synonyms(self, *, user_id: str | None = None) -> Sequence[Synonym]:
        """The pairs that were added: a user's own and the shared ones, or, without `user_id`, the shared ones."""
        return await self._store.synonyms(validation.optional_name("user_id", user_id))

    async def remove_synonym(self, keyword: str, synonym: str | None = None, *, user_id: str | None = None) -> int:
        """Remove one pair, or all pairs of a word: a user's own or, without `user_id`, shared ones. → how many"""
        return await self._store.remove_synonym(
            validation.optional_name("user_id", user_id),
            validation.name("keyword", keyword),
            validation.optional_name("synonym", synonym),
        )

    async def expand_keywords(self, keywords: Sequence[str], *, user_id: str) -> Expansion:
        """Other words for these: synonyms, and words that go together with them in this user's memories."""
        words = validation.names("keywords", keywords)
        where = scope(user_id=user_id)
        own = await self._store.synonyms_of(where.user_id, words)
        return expand(words, own, related_words(await self._store.company(where, words)))
