"""Small pictures in a terminal: bars and lines of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from .output import plain
from .render import pairs

if TYPE_CHECKING:
    from ..metrics import Metrics

STEPS = " ▁▂▃▄▅▆▇█"
PARTS = " ▏▎▍▌▋▊▉█"
WIDTH = 30


def spark(numbers: Sequence[int]) -> str:
    """A column of eighths for each number; whatever is there at all is seen."""
    most = max(numbers, default=0)
    if not most:
        return STEPS[0] * len(numbers)
    return "".join(STEPS[-(-number * 8 // most)] for number in numbers)


def bar(number: int, most: int, width: int = WIDTH) -> str:
    eighths = max(round(number * width * 8 / most), 1) if number and most else 0
    return PARTS[8] * (eighths // 8) + (PARTS[eighths % 8] if eighths % 8 else "")


def metrics_plot(measured: Metrics) -> Table:
    grid = pairs()
    most = max(measured.by_type.values(), default=0)
    for at, (name, number) in enumerate(measured.by_type.items()):
        line = Text.assemble((f"{number:>9,} ", ""), (f"{bar(number, most):<{WIDTH}} ", "cyan"), plain(name))
        grid.add_row("by type" if at == 0 else "", line)
    if measured.archived:
        grid.add_row("archived", f"{measured.archived:>9,}")
    if measured.average_importance is not None:
        spread = Text.assemble("0 ", (spark(measured.by_importance), "cyan"), " 1")
        grid.add_row("importance", spread.append(f"   {measured.average_importance:.2f} on average"))
    days = _days(measured)
    if sum(days):
        grid.add_row("added", Text.assemble((spark(days), "cyan"), f"   {sum(days):,} in {len(days)} days"))
    return grid


def _days(measured: Metrics) -> list[int]:
    """One number for each of the last 30 days, also for those on which nothing was added."""
    if not measured.added_by_day:
        return []
    last = date.fromisoformat(max(measured.added_by_day))
    days = [(last - timedelta(days=back)).isoformat() for back in reversed(range(30))]
    return [measured.added_by_day.get(day, 0) for day in days]
