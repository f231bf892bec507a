"""The table of requirements: every row names code and tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/internals/requirements.md"
ROW = re.compile(r"^\| (?P<requirement>.+) \| (?P<code>`[^|]+`) \| (?P<tests>`[^|]+`) \|$", re.MULTILINE)
TABLE_LINE = re.compile(r"^\|.*\|.*\|.*\|$", re.MULTILINE)
HEADS = ("| requirement | code | test |", "|---|---|---|")


def test_every_requirement_names_code_and_tests_that_exist() -> None:
    page = PAGE.read_text(encoding="utf-8")
    rows = list(ROW.finditer(page))
    lines = [line for line in TABLE_LINE.findall(page) if line not in HEADS]
    assert [row[0] for row in rows] == lines
    missing = []
    for row in rows:
        code = re.findall(r"`([^`]+)`", row["code"])
        missing += [name for name in code if not (ROOT / "src/jiyi" / name).exists() and not (ROOT / name).exists()]
        for name in re.findall(r"`([^`]+)`", row["tests"]):
            file, _, test = name.partition("::")
            path = ROOT / "tests" / file
            if not path.exists() or not re.search(rf"(?m)^(?:async )?def {test}\(", path.read_text(encoding="utf-8")):
                missing.append(name)
    assert not missing


def test_no_requirement_is_named_twice() -> None:
    requirements = [row["requirement"] for row in ROW.finditer(PAGE.read_text(encoding="utf-8"))]
    assert len(requirements) == len(set(requirements)) > 0
