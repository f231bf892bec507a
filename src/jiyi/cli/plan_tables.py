"""Plans, and what became of them, for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from .output import counted, plain

if TYPE_CHECKING:
    from ..keep.compress import Bundle, CompressPlan, CompressReport
    from ..keep.undo import UndoPlan, UndoReport, UndoStep

MARKS = {"archive": "-", "restore": "+", "change": "~"}
COLOURS = {"archive": "red", "restore": "green", "change": "yellow"}


def compress_plan(plan: CompressPlan) -> RenderableType:
    if not plan.bundles:
        return "nothing is old and seldom used enough to be compressed"
    head = f"{counted(plan.before, 'memory', 'memories')} would become {plan.after:,}; nothing was changed"
    return Group(head, *map(_bundle, plan.bundles))


def compressed(done: CompressReport) -> RenderableType:
    if not done.bundles:
        return "nothing was compressed"
    head = f"{counted(done.archived, 'memory', 'memories')} became {done.made:,}"
    return Group(head, *map(_bundle, done.bundles))


def _bundle(bundle: Bundle) -> Table:
    grid = _grid(" · ".join(filter(None, (bundle.memory_type, plain(bundle.subject or ""), bundle.made_by))))
    for member in bundle.members:
        grid.add_row(Text("-", "red"), Text(plain(member.text), "dim"))
    for text in bundle.texts:
        grid.add_row(Text("+", "green"), plain(text))
    if bundle.note:
        grid.add_row(Text("!", "yellow"), plain(bundle.note))
    return grid


def undo_plan(plan: UndoPlan) -> RenderableType:
    if not plan.steps:
        return Group("there is nothing to undo", *map(plain, plan.left))
    return Group(f"{plain(plan.why)}; nothing was changed", _steps(plan.steps), *map(plain, plan.left))


def undone(done: UndoReport) -> RenderableType:
    if not done.steps:
        return "nothing was undone"
    return Group(f"{counted(len(done.steps), 'memory', 'memories')} changed back", _steps(done.steps))


def _steps(steps: Sequence[UndoStep]) -> Table:
    grid = _grid("")
    for step in steps:
        said = Text.assemble((plain(step.text), ""), (f"  {step.memory_id}", "dim"))
        if step.does == "change":
            told = ", ".join(f"{name}: {value}" for name, value in step.values.items() if name != "data")
            said.append(f"\n→ {plain(told)}")
        grid.add_row(Text(MARKS[step.does], COLOURS[step.does]), said)
    return grid


def _grid(title: str) -> Table:
    grid = Table(box=None, show_header=False, pad_edge=False, title=title or None, title_justify="left")
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    return grid
