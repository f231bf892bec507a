"""Synonyms that users added, with query expansion, and relations between memories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast, get_args

from .. import validation
from ..engine import Engine
from ..models import Relation, RelationType
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


class Relations:
    """One memory supports, contradicts or refines another."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def list(self, memory_id: str, *, user_id: str) -> Sequence[Relation]:
        """List the memories that a memory supports, contradicts or refines, or that do so to it."""
        return await self._engine.store.relations.of(*_names(user_id, memory_id=memory_id))

    async def add(
        self, memory_id: str, target_id: str, relation_type: RelationType, *, user_id: str, strength: float = 1.0
    ) -> Relation:
        """Store that a memory supports, contradicts or refines another one. Adding it again sets its strength, 0 to 1.

        await memory.relations.add(new.id, old.id, "supports", user_id="mei", strength=0.7)
        """
        kind = cast("RelationType", validation.choice("relation_type", relation_type, get_args(RelationType)))
        user_id, memory_id, target_id = _names(user_id, memory_id=memory_id, target_id=target_id)
        strength = validation.share("strength", strength)
        return await self._engine.store.relations.add(user_id, memory_id, target_id, kind, strength)

    async def remove(self, memory_id: str, target_id: str, *, user_id: str) -> int:
        """Remove the relations from one memory to another. Returns how many."""
        return await self._engine.store.relations.remove(*_names(user_id, memory_id=memory_id, target_id=target_id))


def _names(user_id: str, **ids: str) -> list[str]:
    return [validation.name("user_id", user_id), *(validation.name(name, value) for name, value in ids.items())]
