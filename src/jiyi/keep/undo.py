"""Undo: revert everything from a source, or after a time, except fields that were set to another value since."""

from __future__ import annotations

import asyncio
from datetime import datetime
from itertools import starmap
from typing import Any, Literal

from pydantic import Field, JsonValue

from ..embed import Embedder
from ..models import MemoryItem, Time, Value
from ..store.repositories.revisions import Touched, Undoing
from ..store.store import Store
from ..store.write_set import Change, ChangedMemory
from ..write.change import embed_changes, prepare
from ..write.index import KeywordRules

EDITS = ("update", "restore")  # actions of people
TIMES = ("occurred_at", "valid_from", "valid_to", "expires_at")
BATCH = 500


class UndoStep(Value):
    """The change of one memory."""

    memory_id: str
    version: int = Field(description="version when the plan was made; a memory changed since is left as it is")
    does: Literal["archive", "restore", "change"]
    text: str = Field(description="current text")
    values: dict[str, JsonValue] = Field(description="fields that change, with their new values")


class UndoPlan(Value):
    """The changes that `undo` would make."""

    user_id: str
    made_at: Time
    why: str = Field(description="reason in the history of the changed memories")
    steps: tuple[UndoStep, ...]
    left: tuple[str, ...] = Field(default=(), description="selected memories that stay, and why")


class UndoReport(Value):
    """Result of `undo`."""

    steps: tuple[UndoStep, ...]
    left: tuple[str, ...] = Field(default=(), description="selected memories that stayed, and why")


def describe(what: Undoing) -> str:
    """Reason in the history."""
    parts = [
        what.memory_id and "the last change",
        what.session_id and f"what session {what.session_id} brought",
        what.actor and f"what {what.actor} did",
        *(f"what came with {name} {value}" for name, value in what.metadata.items()),
        what.since and f"since {what.since:%Y-%m-%d %H:%M:%S}",
        what.after and f"everything after {what.after:%Y-%m-%d %H:%M:%S}",
    ]
    return "undo: " + ", ".join(part for part in parts if part)


async def plan(what: Undoing, now: datetime, store: Store) -> UndoPlan:
    steps: list[UndoStep] = []
    left: list[str] = []
    for one in await store.history.touched(what):
        edited = [revision for revision in one.revisions if revision.version not in one.selected]
        edited = [revision for revision in edited if revision.action in EDITS and revision.version > 1]
        if 1 in one.selected and edited:
            last = edited[-1]
            left.append(f"{one.memory.id}: {last.actor} changed it on {last.changed_at:%Y-%m-%d}, so it stays")
            continue
        values = _reverted(one)
        if values:
            steps.append(
                UndoStep(
                    memory_id=one.memory.id,
                    version=one.memory.version,
                    does=_kind(values),
                    text=one.memory.content,
                    values=values,
                )
            )
    # Archive first: there is only one current memory for each statement.
    steps.sort(key=lambda step: (step.does != "archive", step.memory_id))
    return UndoPlan(user_id=what.user_id, made_at=now, why=describe(what), steps=tuple(steps), left=tuple(left))


def _reverted(one: Touched) -> dict[str, JsonValue]:
    """Fields that still have the values set by the selected changes, with their earlier values."""
    if 1 in one.selected:
        return {} if one.memory.status == "archived" else {"status": "archived"}
    now = dict(one.revisions[-1].after)
    then = dict(now)
    for revision in reversed(one.revisions):
        if revision.version in one.selected and revision.before is not None:
            for name, after in revision.after.items():
                before = revision.before.get(name)
                if before != after and then.get(name) == after:
                    then[name] = before
    back = {name: value for name, value in then.items() if value != now.get(name)}
    if "content" in back:  # they belong to the text
        back |= {"summary": then["summary"], "data": then["data"]}
    return back


def _kind(values: dict[str, JsonValue]) -> Literal["archive", "restore", "change"]:
    if values.get("status") == "archived":
        return "archive"
    return "restore" if values.get("status") == "active" else "change"


async def apply(plan: UndoPlan, *, actor: str, store: Store, embedder: Embedder, rules: KeywordRules) -> UndoReport:
    """Apply the plan in one transaction; memories changed since the plan was made stay as they are."""
    current: dict[str, MemoryItem] = {}
    for start in range(0, len(plan.steps), BATCH):
        batch = [step.memory_id for step in plan.steps[start : start + BATCH]]
        current |= {memory.id: memory for memory in await store.memories.get(plan.user_id, batch)}
    steps = [step for step in plan.steps if step.memory_id in current]
    memories = [current[step.memory_id] for step in steps]
    given = [(step, current[step.memory_id], actor, plan.why, rules) for step in steps]
    changes = await asyncio.to_thread(lambda: list(starmap(_change, given)))
    changes, _ = await embed_changes(changes, memories, embedder)
    wanted = [
        ChangedMemory(id=step.memory_id, change=change, version=step.version)
        for step, change in zip(steps, changes, strict=True)
    ]
    kept = dict(await store.edits.update_many(plan.user_id, wanted))
    deleted = [f"{step.memory_id}: it was deleted" for step in plan.steps if step.memory_id not in current]
    return UndoReport(
        steps=tuple(step for step in steps if step.memory_id not in kept),
        left=(*plan.left, *deleted, *(f"{memory_id}: {why}" for memory_id, why in kept.items())),
    )


def _change(step: UndoStep, memory: MemoryItem, actor: str, why: str, rules: KeywordRules) -> Change:
    action = "archive" if step.does == "archive" else "restore"
    return prepare(memory, _parse(step.values), rules, action=action, actor=actor, reason=why)


def _parse(values: dict[str, JsonValue]) -> dict[str, Any]:
    """Parse times, which the history stores as text."""
    return {
        name: datetime.fromisoformat(value) if name in TIMES and isinstance(value, str) else value
        for name, value in values.items()
    }
