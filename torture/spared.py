# ruff: noqa: E501 - the names are whole statements
"""Surviving mutants that do no harm, with the reason."""

from __future__ import annotations

SPARED: dict[str, str] = {
    "write/reindex.py: done + len(found) → done - len(found)": "only the progress shown differs, and only where memories are added meanwhile",
    "store/sqlite.py: await connection.exec_driver_sql(PATIENCE.format(SHORT_WAIT_S * 1000)) → None": "a deletion waits longer for a reader of another process",
}
