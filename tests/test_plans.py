"""SQLite gets no statistics of its tables, so its plans are the same for every size of store. No plan may compare all
rows of a user with all others."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from torture.verbs import VERBS, opened, prepare

from jiyi.store.schema.columns import METADATA

TABLE = "|".join(METADATA.tables)
# A loop over a whole table, or over all rows of a user in it, or over the earlier ones. `_1` is the end of an alias.
WHOLE = re.compile(rf"SCAN ({TABLE})(_\d+)?\b(?! .*VIRTUAL)|SEARCH .*\(user_id=\?( AND \w+[<>]\?)*\)|AUTOMATIC")


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The text of every statement that SQLite runs."""
    found: set[str] = set()

    class Noted(sqlite3.Connection):
        def cursor(self, factory: Any = None) -> Any:
            return super().cursor(NotedCursor)

        def execute(self, text: str, *args: Any) -> Any:
            found.add(text)
            return super().execute(text, *args)

    class NotedCursor(sqlite3.Cursor):
        def execute(self, text: str, *args: Any) -> Any:
            found.add(text)
            return super().execute(text, *args)

    def connect(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        return Noted(*args, **kwargs)

    monkeypatch.setattr(sqlite3, "connect", connect)
    monkeypatch.setattr(sqlite3.dbapi2, "connect", connect)
    return found


def repeated_reads(plan: list[tuple[int, int, int, str]]) -> list[str]:
    """Return the steps of a plan that read a whole table, or all rows of a user, once for each row of another loop."""
    details = {step: detail for step, _, _, detail in plan}
    loops: defaultdict[int, list[str]] = defaultdict(list)
    for _, parent, _, detail in plan:
        if detail.startswith(("SCAN", "SEARCH")) and "CONSTANT ROW" not in detail:
            loops[parent].append(detail)
    return [
        detail
        for parent, inside in loops.items()
        for detail in inside[0 if details.get(parent, "").startswith("CORRELATED") else 1 :]
        if WHOLE.search(detail)
    ]


async def test_no_plan_reads_all_of_a_user_again_and_again(tmp_path: Path, statements: set[str]) -> None:
    for number, verb in enumerate(VERBS):
        prepared = tmp_path / f"files {verb.files} jobs {verb.waiting}"
        if not prepared.exists():
            await prepare(prepared, files=verb.files, waiting=verb.waiting)
        place = Path(shutil.copytree(prepared, tmp_path / str(number)))
        async with opened(place, verb) as memory:
            await memory.search("Where is the bicycle?", user_id="mei")
            await memory.context("What did they do at the lake?", user_id="old")
            await memory.timeline(user_id="mei")
            await verb.do(memory, place)
    found: dict[str, list[str]] = {}
    with closing(sqlite3.connect(tmp_path / "0" / "memory.db")) as database:
        for text in sorted(statements):
            if re.match("SELECT|UPDATE|DELETE|INSERT", text):
                names = dict.fromkeys(re.findall(r":(\w+)", text))
                values: Any = names or [None] * text.count("?")
                plan = database.execute(f"EXPLAIN QUERY PLAN {text}", values).fetchall()
                if repeated := repeated_reads(plan):
                    found[text] = repeated
    assert len(statements) > 200
    assert found == {}
