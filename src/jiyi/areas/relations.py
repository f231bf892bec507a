"""Relations between memories: one supports, contradicts or refines another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast, get_args

from .. import validation
from ..engine import Engine
from ..models import Relation, RelationType


class Relations:
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
