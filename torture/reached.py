"""Record which tests run which lines of the code under test, for each file of tests, and keep it for later runs.

A record is used again as long as the package, the file and what the tests share are unchanged.
"""

from __future__ import annotations

import hashlib
import json
import sys
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from .mutant import ROOT, files

KEPT = Path(__file__).parent / "out" / "reached"


@dataclass(frozen=True, slots=True)
class Reached:
    """The tests that pass, with the lines they run and their durations."""

    lines: dict[str, list[str]] = field(default_factory=dict)  # tests by file and line
    took: dict[str, float] = field(default_factory=dict)  # seconds of CPU
    failed: list[str] = field(default_factory=list)

    def join(self, other: Reached) -> None:
        for place, tests in other.lines.items():
            self.lines.setdefault(place, []).extend(tests)
        self.took.update(other.took)
        self.failed.extend(other.failed)

    def tests(self, file: str, first: int, last: int) -> set[str]:
        """Return the tests that run one of these lines."""
        return {name for line in range(first, last + 1) for name in self.lines.get(f"{file}:{line}", ())}


def kept_at(tests: Path) -> Path:
    """Return where the record of a file of tests is kept."""
    digest = hashlib.sha256(sys.version.encode())
    shared = (path for path in (ROOT / "tests").rglob("*.py") if not path.name.startswith("test_"))
    for path in sorted([*(ROOT / "src/jiyi").rglob("*.py"), *shared, tests]):
        digest.update(path.read_bytes())
    return KEPT / f"{tests.stem}-{digest.hexdigest()[:16]}.json"


def kept(tests: Path) -> Reached | None:
    path = kept_at(tests)
    if not path.exists():
        return None
    told = json.loads(path.read_text("utf-8"))
    names = told["names"]
    lines = {place: [names[at] for at in numbers] for place, numbers in told["lines"].items()}
    return Reached(lines, told["took"], told["failed"])


def record(session: pytest.Session, items: list[pytest.Item]) -> None:
    """Run tests unchanged, and keep a record for each file of them."""
    after: dict[str, pytest.Item | None] = {
        one.nodeid: other for one, other in zip(items, [*items[1:], None], strict=True)
    }
    for path, own in groupby(items, key=lambda item: item.path):
        told = json.dumps(_run(session, [(item, after[item.nodeid]) for item in own]))
        KEPT.mkdir(parents=True, exist_ok=True)
        for older in KEPT.glob(f"{path.stem}-*.json"):
            older.unlink()
        kept_at(path).write_text(told, "utf-8")


def _run(session: pytest.Session, items: Iterable[tuple[pytest.Item, pytest.Item | None]]) -> dict[str, Any]:
    ours = {str(ROOT / "src/jiyi" / file): file for file in files()}
    seen: set[tuple[str, int]] = set()

    def line(frame: Any, _event: str, _: Any) -> Any:
        seen.add((frame.f_code.co_filename, frame.f_lineno))
        return line

    def call(frame: Any, _event: str, _: Any) -> Any:
        return line if frame.f_code.co_filename in ours else None

    names: list[str] = []
    lines: dict[str, list[int]] = {}
    took: dict[str, float] = {}
    failed = []
    threading.settrace(call)
    for item, after in items:
        seen.clear()
        began, before = time.process_time(), session.testsfailed
        sys.settrace(call)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        sys.settrace(None)
        took[item.nodeid] = time.process_time() - began
        if session.testsfailed > before:
            failed.append(item.nodeid)
            continue
        for path, number in seen:
            lines.setdefault(f"{ours[path]}:{number}", []).append(len(names))
        names.append(item.nodeid)
    threading.settrace(None)  # type: ignore[arg-type]
    return {"names": names, "lines": lines, "took": took, "failed": failed}
