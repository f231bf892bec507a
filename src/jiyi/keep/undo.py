"""Undo: take back what came from somewhere, or go back to how it was. Nothing is deleted, so an undo can be undone.

Only what the meant changes did is taken back: a field that somebody has set to something else since stays.
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from pydantic import JsonValue

from ..embed import Embedder
from ..models import MemoryItem
from ..store.contract import Change, ChangedMemory
from ..store.undo import Touched, Undoing
from ..write.change import embed_changes, prepare
from ..write.index import KeywordRules
from .plans import Undone, UndoPlan, UndoStep

if TYPE_CHECKING:
    from ..store.base import Store

BY_A_PERSON = ("update", "restore")
TIMES = ("occurred_at", "valid_from", "valid_to", "expires_at")

AT_ONCE = 500  # memories that are read


def described(what: Undoing) -> str:
    """Why, for the history."""
    told = [
        what.memory_id and "the last change",
        what.session_id and f"what session {what.session_id} brought",
        what.actor and f"what {what.actor} did",
        *(f"what came with {name} {value}" for name, value in what.metadata.items()),
        what.since and f"since {what.since:%Y-%m-%d %H:%M:%S}",
        what.after and f"everything after {what.after:%Y-%m-%d %H:%M:%S}",
    ]
    return "undo: " + ", ".join(part for part in told if part)


async def plan(what: Undoing, now: datetime, store: Store) -> UndoPlan:
    steps: list[UndoStep] = []
    left: list[str] = []
    for one in await store.touched(what):
        edited = [revision for revision in one.revisions if revision.version not in one.selected]
        edited = [revision for revision in edited if revision.action in BY_A_PERSON and revision.version > 1]
        if 1 in one.selected and edited:
            last = edited[-1]
            left.append(f"{one.memory.id}: {last.actor} changed it on {last.changed_at:%Y-%m-%d}, so it stays")
            continue
        values = _taken_back(one)
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
    # Who makes room comes first: there is one current memory for each thing said.
    steps.sort(key=lambda step: (step.does != "archive", step.memory_id))
    return UndoPlan(user_id=what.user_id, made_at=now, why=described(what), steps=tuple(steps), left=tuple(left))


def _taken_back(one: Touched) -> dict[str, JsonValue]:
    """The fields that the meant changes set and that are still as they left them, with what they were before."""
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
    if "content" in back:  # what was told beside it belongs to it
        back |= {"summary": then["summary"], "data": then["data"]}
    return back


def _kind(values: dict[str, JsonValue]) -> Literal["archive", "restore", "change"]:
    if values.get("status") == "archived":
        return "archive"
    return "restore" if values.get("status") == "active" else "change"


async def apply(plan: UndoPlan, *, actor: str, store: Store, embedder: Embedder, rules: KeywordRules) -> Undone:
    """All of it in one transaction; what was changed since the plan was made stays as it is."""
    there: dict[str, MemoryItem] = {}
    for start in range(0, len(plan.steps), AT_ONCE):
        some = [step.memory_id for step in plan.steps[start : start + AT_ONCE]]
        there |= {memory.id: memory for memory in await store.get(plan.user_id, some)}
    steps = [step for step in plan.steps if step.memory_id in there]
    memories = [there[step.memory_id] for step in steps]
    changes = await asyncio.to_thread(
        lambda: [_change(step, there[step.memory_id], actor, plan.why, rules) for step in steps]
    )
    changes, _ = await embed_changes(changes, memories, embedder)
    wanted = [
        ChangedMemory(id=step.memory_id, change=change, version=step.version)
        for step, change in zip(steps, changes, strict=True)
    ]
    kept = dict(await store.change_all(plan.user_id, wanted))
    gone = [f"{step.memory_id}: it is gone" for step in plan.steps if step.memory_id not in there]
    return Undone(
        steps=tuple(step for step in steps if step.memory_id not in kept),
        left=(*plan.left, *gone, *(f"{memory_id}: {why}" for memory_id, why in kept.items())),
    )


def _change(step: UndoStep, memory: MemoryItem, actor: str, why: str, rules: KeywordRules) -> Change:
    action = "archive" if step.does == "archive" else "restore"
    return prepare(memory, _read(step.values), rules, action=action, actor=actor, reason=why)


def _read(values: dict[str, JsonValue]) -> dict[str, Any]:
    """As they are stored: times are kept as text in the history."""
    return {
        name: datetime.fromisoformat(value) if name in TIMES and isinstance(value, str) else value
        for name, value in values.items()
    }
