"""A filter as SQL conditions. `index/` has the same in numpy; a test compares the two."""

from __future__ import annotations

from sqlalchemy import ColumnElement, exists, or_

from ..scope import Filter
from .tables import KeywordRow, MemoryRow


def conditions(where: Filter) -> list[ColumnElement[bool]]:
    memory = MemoryRow
    found: list[ColumnElement[bool]] = [
        memory.user_id == where.user_id,
        memory.status == where.status,
    ]
    if where.status == "active" or where.as_of is not None:
        found.append(or_(memory.valid_to.is_(None), memory.valid_to > (where.as_of or where.now)))
    if where.status == "active":  # whatever was archived, for its age or not, is among the archived
        found.append(or_(memory.expires_at.is_(None), memory.expires_at > where.now))
        found += [
            or_(memory.memory_type != name, memory.expires_at.is_not(None), memory.created_at > where.now - lifetime)
            for name, lifetime in where.lifetimes
        ]
    if where.as_of is not None:
        found.append(memory.valid_from <= where.as_of)
    if where.min_trust:
        found.append(memory.trust >= where.min_trust)
    if where.session_id is not None:
        found.append(memory.session_id == where.session_id)
    if where.agent_id is not None:
        found.append(memory.agent_id == where.agent_id)
    if where.group_id is not None:
        found.append(memory.group_id == where.group_id)
    if where.memory_types is not None:
        found.append(memory.memory_type.in_(where.memory_types))
    if where.layers is not None:
        found.append(memory.layer.in_(where.layers))
    if where.occurred_from is not None:
        found.append(memory.occurred_at >= where.occurred_from)
    if where.occurred_to is not None:
        found.append(memory.occurred_at < where.occurred_to)
    if where.tags is not None:
        found.append(
            exists().where(
                KeywordRow.user_id == memory.user_id,
                KeywordRow.memory_id == memory.id,
                KeywordRow.source == "user_tag",
                KeywordRow.keyword.in_(where.tags),
            )
        )
    return found
