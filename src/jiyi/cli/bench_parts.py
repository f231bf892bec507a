"""What the benches show alike: bars while they run, tables when they are done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .output import err, plain

if TYPE_CHECKING:
    from rich.table import Table

    from ..evaluate.run import Progress


@contextmanager
def bars() -> Iterator[Progress]:
    """A bar for each thing that is being done."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

    tasks: dict[str, TaskID] = {}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=err())

    def progress(doing: str, done: int, whole: int) -> None:
        if doing not in tasks:
            bar.start()
            tasks[doing] = bar.add_task(plain(doing), total=whole)
        bar.update(tasks[doing], completed=done, total=whole)

    try:
        yield progress
    finally:
        if tasks:  # without any it would print an empty line
            bar.stop()


def table(*headers: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim", border_style="dim")
    table.padding = (0, 1, 0, 0)
    table.add_column(headers[0], overflow="fold")
    for header in headers[1:]:
        table.add_column(header, justify="right", no_wrap=True)
    return table
