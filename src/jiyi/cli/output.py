"""What is written to the terminal: text for people through Rich, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import typer

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

V = TypeVar("V")

# Memories are other people's words: what would steer a terminal is shown, not obeyed. Tab and newline stay.
_CONTROLS = {
    code: "\N{REPLACEMENT CHARACTER}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n"
}


def plain(text: str) -> str:
    return text.translate(_CONTROLS)


def counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def out() -> Console:
    """The console on stdout. Strings are printed as they are: square brackets in a memory are no markup."""
    from rich.console import Console

    return Console(markup=False, highlight=False, emoji=False)


def err() -> Console:
    from rich.console import Console

    return Console(stderr=True, markup=False, highlight=False, emoji=False)


def emit(value: object) -> None:
    """A model, or models in lists and objects, as JSON on stdout; in ASCII where stdout cannot carry anything else."""
    ascii_only = not (sys.stdout.encoding or "").lower().startswith("utf")
    typer.echo(json.dumps(dumped(value), ensure_ascii=ascii_only, indent=2))


def show(value: V, picture: Callable[[V], RenderableType], as_json: bool) -> None:
    """A value of the engine, for a program or for a person."""
    if as_json:
        emit(value)
    else:
        out().print(picture(value))


def dumped(value: Any) -> Any:
    """Models in a value as JSON values."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, dict):
        return {name: dumped(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [dumped(entry) for entry in value]
    return value


def warn(problems: Iterable[str]) -> None:
    """Notes that must not be overlooked: yellow, on stderr."""
    for problem in problems:
        typer.secho(f"! {plain(problem)}", err=True, fg="yellow")
