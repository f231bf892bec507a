# ruff: noqa: E501 - the names are whole statements
"""Surviving mutants that do no harm, with the reason."""

from __future__ import annotations

SPARED: dict[str, str] = {
    "store/maintenance.py: select(MemoryRow, EmbeddingRow.vector).outerjoin(EmbeddingRow, and_(vector_of_memory(), EmbeddingRow.model == model)).where(MemoryRow.user_id == user_id, Memory… → select(MemoryRow, EmbeddingRow.vector).outerjoin(EmbeddingRow, and_(vector_of_memory(), EmbeddingRow.model == model)).where(MemoryRow.id.in_(some), MemoryRow.st…": "the ids are those of one user already",
    "write/reindex.py: done + len(found) → done - len(found)": "only the progress shown differs, and only where memories are added meanwhile",
    "store/sqlite.py: await connection.exec_driver_sql(PATIENCE.format(SHORT_WAIT_S * 1000)) → None": "a deletion waits longer for a reader of another process",
    "store/dependencies.py: sa.and_(MemorySourceRow.user_id == MemoryRow.user_id, MemorySourceRow.memory_id == MemoryRow.id) → sa.and_(MemorySourceRow.memory_id == MemoryRow.id)": "ids are unique, whoever they belong to",
}
