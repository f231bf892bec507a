"""Progress bars, tables and error output shared by the benchmarks' command lines."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

from jiyi.errors import JiyiError

Report = Callable[[str, int, int], None]  # step, done, total


@contextmanager
def progress_bars() -> Iterator[Report]:
    """Show one bar on stderr for each named step."""
    tasks: dict[str, TaskID] = {}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True, markup=False, highlight=False))

    def report(step: str, done: int, total: int) -> None:
        if step not in tasks:
            bar.start()
            tasks[step] = bar.add_task(printable(step), total=total)
        bar.update(tasks[step], completed=done, total=total)

    try:
        yield report
    finally:
        if tasks:  # an unused bar would print an empty line
            bar.stop()


def table(*headers: str) -> Table:
    """A table whose first column is text and whose other columns are numbers."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim", border_style="dim")
    made.padding = (0, 1, 0, 0)
    made.add_column(headers[0], overflow="fold")
    for header in headers[1:]:
        made.add_column(header, justify="right", no_wrap=True)
    return made


def stdout() -> Console:
    return Console(markup=False, highlight=False, emoji=False)


def print_json(value: object) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2))


def warn(message: str) -> None:
    print(f"! {printable(message)}", file=sys.stderr)


def printable(text: str) -> str:
    """Replace control characters: names come from foreign files."""
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(character) == "Cc" and character != "\n" else character
        for character in text
    )


def plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def run(command: Callable[[], None]) -> int:
    """Run a command and return its exit status: 2 for invalid input, 130 after Ctrl-C."""
    try:
        command()
    except JiyiError as error:
        print(f"error: {printable(str(error))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return 0
