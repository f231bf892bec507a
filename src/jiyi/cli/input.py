"""Input of `jiyi add`: arguments, a file or stdin."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import typer

from ..errors import InvalidInput

FORMATS = ("text", "json", "jsonl")


def read_input(words: list[str] | None, file: Path | None, form: str | None) -> Any:
    """Return the statement in the arguments, or the contents of a file or stdin (`-`)."""
    if words and file is not None:
        raise InvalidInput("--file", "cannot be used together with TEXT")
    if words == ["-"]:
        if sys.stdin.isatty():
            typer.echo("reading stdin, one statement per line; end with Ctrl-D", err=True)
        return parse(sys.stdin.buffer.read(), form or "text", "stdin")
    if words:
        if form is not None:
            raise InvalidInput("--format", "is for --file and stdin")
        return " ".join(words)
    if file is None:
        raise InvalidInput("TEXT", "is missing: give a text, - for stdin, or --file")
    try:
        data = file.read_bytes()
    except OSError as error:
        raise InvalidInput("--file", f"{file} cannot be read: {error.strerror}") from error
    return parse(data, form or _form_of(file), str(file))


def _form_of(file: Path) -> str:
    return {".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl"}.get(file.suffix.lower(), "text")


def parse(data: bytes, form: str, name: str) -> Any:
    """Parse text (one statement per non-empty line), JSON or JSONL (messages or candidates)."""
    if form not in FORMATS:
        raise InvalidInput("--format", f"must be one of {', '.join(FORMATS)}, not {form!r}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(name, f"is not UTF-8 (byte {error.start:,}): convert it first") from None
    if not text.strip():
        raise InvalidInput(name, "is empty")
    if form == "json":
        return _loads(text, name)
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if form == "jsonl":
        return [_loads(line, f"{name}, line {number}") for number, line in lines]
    return [line.strip() for _, line in lines]


def _loads(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(name, f"is not JSON: {error}") from None
