"""Relations between memories."""

from collections.abc import Sequence

from sqlalchemy import delete, insert, or_, select
from sqlalchemy.orm import Session

from ..errors import InvalidInput
from ..models import Relation, RelationType, utc_now
from .database import Repository, count_changed, from_row, reads, writes
from .deletions import COMPRESSED
from .memories import memory_row
from .tables import RelationRow


class Relations(Repository):
    """Relations of one user's memories. Memories are named by id or memory_key."""

    @reads
    def of(self, session: Session, user_id: str, memory_id: str) -> Sequence[Relation]:
        """Return the relations of a memory in both directions, oldest first."""
        memory_id = (memory_row(session, user_id, memory_id)).id
        touching = or_(RelationRow.memory_id == memory_id, RelationRow.target_id == memory_id)
        rows = session.execute(
            select(RelationRow.__table__)
            .where(RelationRow.user_id == user_id, touching)
            .order_by(RelationRow.created_at, RelationRow.memory_id, RelationRow.target_id)
        ).all()
        return [from_row(Relation, row) for row in rows]

    @writes
    def add(
        self,
        session: Session,
        user_id: str,
        memory_id: str,
        target_id: str,
        relation_type: RelationType,
        strength: float,
    ) -> Relation:
        """Add a relation, or change the strength of an existing one."""
        one, other = [memory_row(session, user_id, name) for name in (memory_id, target_id)]
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
            created_at=session.scalar(select(RelationRow.created_at).where(*same)) or utc_now(),
        )
        session.execute(delete(RelationRow).where(*same))
        session.execute(insert(RelationRow), [{"user_id": user_id, **dict(found)}])
        return found

    @writes
    def remove(self, session: Session, user_id: str, memory_id: str, target_id: str) -> int:
        """Remove the relations from one memory to another; return their number."""
        one, other = [memory_row(session, user_id, name) for name in (memory_id, target_id)]
        if one.source == COMPRESSED:
            raise InvalidInput("memory_id", "is a compressed memory, whose originals are found by its relations")
        between = (RelationRow.memory_id == one.id, RelationRow.target_id == other.id)
        return count_changed(session, delete(RelationRow).where(RelationRow.user_id == user_id, *between))
