"""A person and the engine change memories at random, with crashes between any two steps; files and index stay equal.

In the long mode (`JIYI_TEST_LONG=1`) 5,000 runs of 30 steps; it takes hours.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from jiyi import Memory, NotFound
from jiyi.errors import InvalidInput
from jiyi.files import safe, sync
from jiyi.settings import load_settings
from jiyi.testing import WordEmbedder
from support import LONG

USER = "mei"
WORDS = ("tea", "咖啡", "cat", "Berlin", "上海", "- x", "<!-- y -->", "a\nb", "a\n\n  b", "`c`", "# d")
TYPES = ("fact", "preference", "skill", "lesson", "goal", "task", "episode")
HEADINGS = (
    *("## Facts", "## 偏好", "## Skills", "### part", "## Other", "## 经历"),
    *("## goal <!-- jiyi:type=goal -->", "## to do <!-- jiyi:type=task -->"),
)
PROSE = ("some prose", "| a |", "> quote", "1. one", "[link]: x", "---")
DAY = "daily/2025-05-07"
FILES = ("memory", "learnings", DAY)
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=2).map(" ".join)


class Crash(BaseException):
    """The process ends here."""


class Stumble:
    """Lets the process end at the n-th step of a sync that touches the disk or the database."""

    def __init__(self, machine: Workspace, after: int) -> None:
        self.left = after
        self.store = machine.memory._engine.store
        self.patched: list[tuple[Any, str, Any]] = []

    def step(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Crash

    def __enter__(self) -> None:
        for name in ("apply", "agree"):
            self._patch(self.store.files, name, self._around_async)
        for name in ("_write", "_exchange", "_create", "flush"):
            self._patch(safe, name, self._around)
        for name in ("replace", "unlink", "fsync"):
            self._patch(safe.os, name, self._around)

    def __exit__(self, *_: object) -> None:
        for owner, name, before in reversed(self.patched):
            setattr(owner, name, before)

    def _patch(self, owner: Any, name: str, around: Any) -> None:
        before = getattr(owner, name)
        self.patched.append((owner, name, before))
        setattr(owner, name, around(before))

    def _around(self, call: Any) -> Any:
        def stumbling(*args: Any, **kwargs: Any) -> Any:
            self.step()
            done = call(*args, **kwargs)
            self.step()
            return done

        return stumbling

    def _around_async(self, call: Any) -> Any:
        async def stumbling(*args: Any, **kwargs: Any) -> Any:
            self.step()
            done = await call(*args, **kwargs)
            self.step()
            return done

        return stumbling


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Nobody else is here, and a change of threads costs more than the work does."""
    to_thread = asyncio.to_thread

    async def here(call: Any, /, *args: Any, **options: Any) -> Any:
        return call(*args, **options)

    asyncio.to_thread = here
    try:
        yield
    finally:
        asyncio.to_thread = to_thread


class Workspace(RuleBasedStateMachine):
    template: Path | None = None

    @initialize(daily_notes=st.booleans())
    def start(self, daily_notes: bool) -> None:
        self.daily_notes = daily_notes  # else the file of that day is none of ours
        self.loop = asyncio.Runner()
        self.thread = one_thread()
        self.thread.__enter__()
        self.settled, sync.SETTLED_S = sync.SETTLED_S, 0.0  # nobody is in the middle of a save here
        self.folder = Path(tempfile.mkdtemp(prefix="jiyi-machine-"))
        self.foreign: list[str] = []  # lines that a person wrote and that are no memories
        if Workspace.template is None:
            Workspace.template = Path(tempfile.mkdtemp(prefix="jiyi-machine-")) / "empty.db"
            self.open(Workspace.template)
            self.loop.run(self.memory.close())
        shutil.copy(Workspace.template, self.folder / "memory.db")
        self.open(self.folder / "memory.db")

    def open(self, where: Path) -> None:
        async def opened() -> Memory:
            memory = await Memory.open(
                where,
                settings=load_settings(extraction={"enabled": False}, workspace={"daily_notes": self.daily_notes}),
                embedder=WordEmbedder(16),
                workspace=self.folder / "ws",
                workspace_user=USER,
            )
            memory._engine.store.database.after_write = lambda users: None
            return memory

        self.memory = self.loop.run(opened())

    def teardown(self) -> None:
        if hasattr(self, "memory"):
            self.loop.run(self.memory.close())
            self.loop.close()
            shutil.rmtree(self.folder)
            sync.SETTLED_S = self.settled
            self.thread.__exit__(None, None, None)

    # -- the engine -----------------------------------------------------------------------------------------------

    @rule(text=texts, memory_type=st.sampled_from(TYPES), importance=st.sampled_from((0.5, 0.8)))
    def add(self, text: str, memory_type: str, importance: float) -> None:
        at = datetime(2025, 5, 7, 18, 30, tzinfo=UTC) if memory_type == "episode" else None
        tags = ["t 1", "标签"]
        self.loop.run(
            self.memory.add(
                text, user_id=USER, memory_type=memory_type, importance=importance, tags=tags, occurred_at=at
            )
        )

    @rule(at=st.integers(0, 20), text=texts | st.none(), memory_type=st.sampled_from(TYPES) | st.none())
    def update(self, at: int, text: str | None, memory_type: str | None) -> None:
        some = self.some_memory(at)
        if some and (text or memory_type):
            try:
                self.loop.run(self.memory.update(some, user_id=USER, content=text, memory_type=memory_type))
            except InvalidInput as error:
                assert "says the same" in str(error)

    @rule(at=st.integers(0, 20))
    def archive(self, at: int) -> None:
        if some := self.some_memory(at):
            self.loop.run(self.memory.update(some, user_id=USER, status="archived"))

    @rule(at=st.integers(0, 20))
    def delete(self, at: int) -> None:
        if some := self.some_memory(at):
            self.loop.run(self.memory.delete(some, user_id=USER))

    @rule()
    def reindex(self) -> None:
        self.loop.run(self.memory.maintenance.reindex())

    # -- the person -----------------------------------------------------------------------------------------------

    @rule(name=st.sampled_from(FILES), heading=st.sampled_from(HEADINGS), text=texts, prose=st.sampled_from(PROSE))
    def write(self, name: str, heading: str, text: str, prose: str) -> None:
        bullet = "- " + text.replace("\n", "\n  ")
        self.save(name, self.read(name) + f"\n{heading}\n\n{bullet}\n\n{prose}\n")
        if heading == "## Other" and "\n" not in text:
            self.foreign.append(bullet)
        self.foreign += [heading, prose]

    @rule(name=st.sampled_from(FILES), at=st.integers(0, 30), text=texts)
    def edit(self, name: str, at: int, text: str) -> None:
        lines = self.read(name).split("\n")
        marked = [number for number, line in enumerate(lines) if "<!-- jiyi:0" in line and line.startswith("- ")]
        if marked:
            number = marked[at % len(marked)]
            comment = lines[number][lines[number].rindex(" <!-- jiyi:") :]
            lines[number] = f"- {text.splitlines()[0]} by hand{comment}"
            self.save(name, "\n".join(lines))

    @rule(name=st.sampled_from(FILES), at=st.integers(0, 30))
    def remove(self, name: str, at: int) -> None:
        lines = self.read(name).split("\n")
        marked = [number for number, line in enumerate(lines) if "<!-- jiyi:0" in line and line.startswith("- ")]
        if marked:
            del lines[marked[at % len(marked)]]
            self.save(name, "\n".join(lines))

    @rule(name=st.sampled_from(FILES), at=st.integers(0, 30), copy=st.booleans())
    def move(self, name: str, at: int, copy: bool) -> None:
        lines = self.read(name).split("\n")
        marked = [number for number, line in enumerate(lines) if "<!-- jiyi:0" in line and line.startswith("- ")]
        if marked:
            line = lines[marked[at % len(marked)]]
            if not copy:
                lines.remove(line)
                self.save(name, "\n".join(lines))
            other = "learnings" if name == "memory" else "memory"
            self.save(other, self.read(other) + f"\n## Lessons\n\n{line}\n")
            self.foreign.append("## Lessons")

    @rule(name=st.sampled_from(FILES))
    def strip_comments(self, name: str) -> None:
        self.save(name, re.sub(r" <!-- jiyi:0[^>]*-->", "", self.read(name)))

    @rule(name=st.sampled_from(FILES), end=st.sampled_from(["\n", "\r\n"]))
    def other_line_ends(self, name: str, end: str) -> None:
        self.save(name, self.read(name).replace("\n", end))

    # -- both -----------------------------------------------------------------------------------------------------

    @rule(restore=st.booleans())
    def sync(self, restore: bool) -> None:
        self.agree(confirm=not restore, restore=restore)

    @rule()
    def rebuild(self) -> None:
        self.loop.run(self.memory.workspace.rebuild(confirm=True))

    @rule(after=st.integers(0, 25))
    def crash(self, after: int) -> None:
        """In the middle of a sync; then the process starts again."""
        with Stumble(self, after), contextlib.suppress(Crash):
            self.loop.run(self.memory.workspace.sync(confirm=True))
        self.loop.run(self.memory.close())
        self.open(self.folder / "memory.db")

    # -- what must hold -------------------------------------------------------------------------------------------

    def agree(self, **options: bool) -> None:
        self.loop.run(self.memory.workspace.sync(**options))
        before = {name: self.read(name) for name in FILES}
        [again] = self.loop.run(self.memory.workspace.sync(**options))
        assert again.steps == (), "a second sync changes nothing"
        assert {name: self.read(name) for name in FILES} == before
        drifts = self.loop.run(self.memory.workspace.verify())
        assert [drift for drift in drifts if drift.kind != "file"] == [], "files and index are equal"
        problems = [drift.problem for drift in drifts]
        assert all("skipped" in problem or "is mentioned" in problem for problem in problems), problems

    @invariant()
    def nothing_foreign_is_lost(self) -> None:
        if not hasattr(self, "folder"):
            return
        there = "\n".join(self.read(name) for name in FILES)
        lines = [line.rstrip("\r") for line in there.split("\n")]
        for line in set(self.foreign):
            assert lines.count(line) >= self.foreign.count(line) or any(
                one.startswith(line + " <!-- jiyi:") for one in lines
            ), f"{line!r} is lost"
        left = [path.name for path in (self.folder / "ws").rglob("*") if path.suffix in (".md", "")]
        assert not [name for name in left if "rescued" in name]

    def some_memory(self, at: int) -> str | None:
        try:
            items = self.loop.run(self.memory._engine.store.memories.page(_all(), cursor=None, limit=100)).items
        except NotFound:
            return None
        return items[at % len(items)].id if items else None

    def read(self, name: str) -> str:
        path = self.folder / f"ws/context/{name}.md"
        return path.read_bytes().decode() if path.exists() else ""

    def save(self, name: str, text: str) -> None:
        path = self.folder / f"ws/context/{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())


def _all() -> Any:
    from jiyi.scope import Filter

    return Filter.parse(user_id=USER)


Workspace.TestCase.settings = settings(
    max_examples=5000 if LONG else 12,
    stateful_step_count=30 if LONG else 15,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestFilesAndIndexStayEqual = Workspace.TestCase
