"""Terminal output: text through Rich, or JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import typer

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

V = TypeVar("V")

# Memories are untrusted text: control characters are replaced, except tab and newline.
_CONTROLS = {
    code: "\N{REPLACEMENT CHARACTER}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n"
}


def plain(text: str) -> str:
    return text.translate(_CONTROLS)


def counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def out() -> Console:
    """Return the console on stdout; markup is off, so that brackets in memories stay."""
    from rich.console import Console

    return Console(markup=False, highlight=False, emoji=False)


def err() -> Console:
    from rich.console import Console

    return Console(stderr=True, markup=False, highlight=False, emoji=False)


def emit(value: object) -> None:
    """Print a value as JSON, in ASCII if stdout is not UTF-8."""
    ascii_only = not (sys.stdout.encoding or "").lower().startswith("utf")
    typer.echo(json.dumps(dumped(value), ensure_ascii=ascii_only, indent=2))


def show(value: V, picture: Callable[[V], RenderableType], as_json: bool) -> None:
    """Print a value as JSON or as text."""
    if as_json:
        emit(value)
    else:
        out().print(picture(value))


def dumped(value: Any) -> Any:
    """Convert models inside a value to JSON values."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, dict):
        return {name: dumped(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [dumped(entry) for entry in value]
    return value


def warn(problems: Iterable[str]) -> None:
    """Print warnings in yellow on stderr."""
    for problem in problems:
        typer.secho(f"! {plain(problem)}", err=True, fg="yellow")
