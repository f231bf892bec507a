"""docs/internals/engines.md is true: everything is keyed by user first, so that it can be spread by user."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Table, UniqueConstraint

from jiyi.store.schema.columns import METADATA
from support import each_case

PAGE = (Path(__file__).parent.parent / "docs" / "internals" / "engines.md").read_text(encoding="utf-8")
TABLES = METADATA.sorted_tables
NOT_YET = {"changes"}  # the page says what it would need
NOBODYS = {"api_keys", "audit", "engines", "secrets"}


@each_case("table", TABLES)
def test_a_table_can_be_spread_by_user(table: Table) -> None:
    assert f"`{table.name}`" in PAGE
    if table.name in NOBODYS:
        return
    keys = [list(index.columns) for index in table.indexes if index.unique]
    keys += [list(rule.columns) for rule in table.constraints if isinstance(rule, UniqueConstraint)]
    if table.name not in NOT_YET:
        keys.append(list(table.primary_key.columns))
    assert [key for key in keys if key[0].name != "user_id"] == []
    for reference in table.foreign_key_constraints:
        assert next(element.target_fullname.split(".")[1] for element in reference.elements) == "user_id"
        assert next(iter(reference.columns)).name == "user_id"


@each_case("table", TABLES)
def test_every_index_begins_with_the_user_or_serves_all_of_them(table: Table) -> None:
    """A worker looks for jobs of all users, by the time at which they are due, and for users that an engine lacks."""
    if table.name in NOBODYS:
        return
    others = {index.name for index in table.indexes if next(iter(index.columns)).name != "user_id"}
    assert others <= {"ix_jobs_due", "ix_engine_users_engine"}
