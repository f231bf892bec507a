"""Relations between memories."""

from collections.abc import Sequence

from sqlalchemy import delete, insert, or_, select

from ..errors import InvalidInput
from ..models import Relation, RelationType, utc_now
from .database import Repository, from_row
from .deletions import COMPRESSED
from .memories import memory_row
from .session import Session
from .tables import RelationRow


class Relations(Repository):
    """Relations of one user's memories. Memories are named by id or memory_key."""

    async def of(self, user_id: str, memory_id: str) -> Sequence[Relation]:
        """Return the relations of a memory in both directions, oldest first."""
        async with self._database.reading(user_id) as session:
            memory_id = (await memory_row(session, user_id, memory_id)).id
            touching = or_(RelationRow.memory_id == memory_id, RelationRow.target_id == memory_id)
            rows = await session.rows(
                select(RelationRow)
                .where(RelationRow.user_id == user_id, touching)
                .order_by(RelationRow.created_at, RelationRow.memory_id, RelationRow.target_id)
            )
            return [from_row(Relation, row) for row in rows]

    async def add(
        self, user_id: str, memory_id: str, target_id: str, relation_type: RelationType, strength: float
    ) -> Relation:
        """Add a relation, or change the strength of an existing one."""

        async def work(session: Session) -> Relation:
            one, other = [await memory_row(session, user_id, name) for name in (memory_id, target_id)]
            if one.id == other.id:
                raise InvalidInput("target_id", "is the memory itself")
            if one.source == COMPRESSED and relation_type == "refines":
                raise InvalidInput("relation_type", "of a compressed memory names its originals: use supports")
            same = (
                RelationRow.user_id == user_id,
                RelationRow.memory_id == one.id,
                RelationRow.target_id == other.id,
                RelationRow.relation_type == relation_type,
            )
            found = Relation(
                memory_id=one.id,
                relation_type=relation_type,
                target_id=other.id,
                strength=strength,
                created_at=await session.scalar(select(RelationRow.created_at).where(*same)) or utc_now(),
            )
            await session.execute(delete(RelationRow).where(*same))
            await session.execute(insert(RelationRow), [{"user_id": user_id, **dict(found)}])
            return found

        return await self._database.write([user_id], work)

    async def remove(self, user_id: str, memory_id: str, target_id: str) -> int:
        """Remove the relations from one memory to another; return their number."""

        async def work(session: Session) -> int:
            one, other = [await memory_row(session, user_id, name) for name in (memory_id, target_id)]
            if one.source == COMPRESSED:
                raise InvalidInput("memory_id", "is a compressed memory, whose originals are found by its relations")
            between = (RelationRow.memory_id == one.id, RelationRow.target_id == other.id)
            return await session.execute(delete(RelationRow).where(RelationRow.user_id == user_id, *between))

        return await self._database.write([user_id], work)
