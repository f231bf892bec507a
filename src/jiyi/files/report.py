"""A plan in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .steps import Archive, Drop, Edit, Mark, Plan, Rewrite, Same, Step, Take, Write
from .values import SyncAction, SyncReport, SyncStep

SHOWN = 120  # characters of a text


def report(plan: Plan, *, problems: Sequence[str] = (), dry_run: bool = False) -> SyncReport:
    return SyncReport(
        user_id=plan.user_id,
        dry_run=dry_run,
        steps=tuple(told for step in plan.steps for told in _told(step)),
        conflicts=plan.conflicts,
        withheld=len(plan.withheld),
        problems=(*plan.problems, *problems),
    )


def _told(step: Step) -> Iterator[SyncStep]:
    if isinstance(step, Archive):
        yield SyncStep(action="archive", memory_id=step.memory_id, path=step.path, text=_short(step.text))
    elif isinstance(step, Drop):
        entry = step.line.entry
        yield SyncStep(
            action="drop",
            memory_id=step.memory_id,
            path=step.line.path,
            line=entry.line,
            text=_short(entry.item.content),
        )
    elif isinstance(step, Write):
        yield SyncStep(action="write", memory_id=step.memory_id, path=step.path, text=_short(step.note.content))
    elif isinstance(step, Take) and step.line is None:
        yield SyncStep(action="keep both", memory_id=step.memory_id, path=step.path, text=_short(step.note.content))
    elif isinstance(step, (Take, Edit, Rewrite, Mark)) and step.line is not None:
        yield SyncStep(
            action=_action(step),
            memory_id=step.memory_id,
            path=step.line.path,
            line=step.line.entry.line,
            text=_short(step.note.content),
        )
    elif not isinstance(step, Same):
        raise TypeError(step)


def _action(step: Take | Edit | Rewrite | Mark) -> SyncAction:
    if isinstance(step, Edit):
        return "restore" if step.revive else "change"
    if isinstance(step, Rewrite):
        return "move" if step.to else "rewrite"
    return "take" if isinstance(step, Take) else "mark"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else line[: SHOWN - 1] + "…"
