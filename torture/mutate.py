"""Mutate valid input: cut, splice and repeat seeds, and insert strings that have broken other parsers."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

NASTY = (
    "\x00", "\ud800", "\udfff", "\ufeff", "\u202e", "\u200b", "\u2028", "\x85", "\x0b", "\r", "\r\n", "\n", "\t",
    "\\", '"', "'",
    "{", "}", "[", "]", ",", ":", "<!--", "-->", "```", "~~~", "---", "===", "- ", "* ", "# ", "## ", "|", ">",
    "\\u0000", "\\ud83d",
    "NaN", "Infinity", "-0", "1e999", "9" * 400, "0x1F", "null", "true", "None", "\U000e0041", "e\u0301", "ﷺ",
    "👩‍🔬", "𝕵", "%00", "%s",
    "../", "jiyi:01k9zq4f3rw5m8v2c7t6n1d0ab", "importance=nan", "at=9999-12-31T23:59-14:00", "上周五", "last May",
    "2月30日", "99:99",
    "<jiyi-memory>", "</jiyi-memory>", "<|im_start|>", "<<<<<<< HEAD", "\x1f\x8b", "PK\x03\x04", " " * 50,
    "a" * 300, "记" * 100,
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 1.5, 2**63, -(10**400), 1e308, float("nan"), float("inf"), "", " ", "\x00", "\ud800",
    "x" * 300, "9999-12-31",
    "0001-01-01T00:00:00+14:00", 253402300799, -62135596801, 1e18, [], {}, [[]], [None], {"": None},
    {"a": {"b": [1]}}, "记忆", ["a", 1, None],
)  # fmt: skip


def mutated(seeds: Sequence[str], chances: random.Random) -> str:
    """Change a seed at one to six places, as text or, if it is JSON, in its values."""
    text = chances.choice(seeds)
    if chances.random() < 0.4 and (changed := _in_values(text, chances)) is not None:
        return changed
    for _ in range(chances.choice((1, 1, 2, 3, 6))):
        text = chances.choice(_WAYS)(text, seeds, chances)
    return text[:20_000]


def _place(text: str, chances: random.Random) -> tuple[int, int]:
    start = chances.randint(0, len(text))
    return start, min(len(text), start + chances.choice((0, 1, 1, 2, 5, 30, 200)))


def _cut(text: str, seeds: Sequence[str], chances: random.Random) -> str:
    start, end = _place(text, chances)
    return text[:start] + text[end:]


def _end_early(text: str, seeds: Sequence[str], chances: random.Random) -> str:
    return text[: chances.randint(0, len(text))]


def _put_in(text: str, seeds: Sequence[str], chances: random.Random) -> str:
    start, _ = _place(text, chances)
    return text[:start] + chances.choice(NASTY) * chances.choice((1, 1, 1, 2, 40)) + text[start:]


def _exchange(text: str, seeds: Sequence[str], chances: random.Random) -> str:
    start, end = _place(text, chances)
    return text[:start] + chances.choice(NASTY) + text[end:]


def _double(text: str, seeds: Sequence[str], chances: random.Random) -> str:
    start, end = _place(text, chances)
    return text[:end] + text[start:end] * chances.choice((1, 2, 20)) + text[end:]


def _splice(text: str, seeds: Sequence[str], chances: random.Random) -> str:
    other = chances.choice(seeds)
    return text[: chances.randint(0, len(text))] + other[chances.randint(0, len(other)) :]


def _another(text: str, seeds: Sequence[str], chances: random.Random) -> str:
    """Replace a character, often by a neighbour."""
    if not text:
        return chr(chances.randrange(0x110000))
    at = chances.randrange(len(text))
    code = ord(text[at]) ^ (1 << chances.randrange(8)) if chances.random() < 0.7 else chances.randrange(0x110000)
    return text[:at] + chr(code) + text[at + 1 :]


def _lines_about(text: str, seeds: Sequence[str], chances: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    chances.shuffle(lines)
    return "".join(lines)


def _nest(text: str, seeds: Sequence[str], chances: random.Random) -> str:
    """Nest deeper than the stack."""
    start, _ = _place(text, chances)
    return (
        text[:start] + chances.choice(("[", "{", '{"a":', "(", "> ", "  ")) * chances.choice((40, 3000)) + text[start:]
    )


_WAYS = (_nest, _cut, _end_early, _put_in, _put_in, _exchange, _double, _splice, _another, _another, _lines_about)


def _in_values(text: str, chances: random.Random) -> str | None:
    """Change, drop or repeat a value of JSON or JSONL, keeping it valid."""
    try:
        lines = [json.loads(line) for line in text.splitlines()] if "\n{" in text else [json.loads(text)]
    except ValueError:
        return None
    at = chances.randrange(len(lines))
    for _ in range(chances.choice((1, 1, 2, 4))):
        lines[at] = changed_value(lines[at], chances)
    return "\n".join(json.dumps(line, ensure_ascii=chances.random() < 0.5) for line in lines)


def changed_value(value: Any, chances: random.Random) -> Any:
    """Return a copy of the value with one change inside."""
    if isinstance(value, dict) and value and chances.random() < 0.85:
        key = chances.choice(list(value))
        way = chances.random()
        if way < 0.15:
            return {name: inner for name, inner in value.items() if name != key}
        if way < 0.25:
            return {(name + "x" if name == key else name): inner for name, inner in value.items()}
        return {**value, key: changed_value(value[key], chances)}
    if isinstance(value, list) and value and chances.random() < 0.85:
        at = chances.randrange(len(value))
        way = chances.random()
        if way < 0.15:
            return value[:at] + value[at + 1 :]
        if way < 0.3:
            return value[:at] + [value[at]] * chances.choice((2, 3, 50)) + value[at + 1 :]
        return [*value[:at], changed_value(value[at], chances), *value[at + 1 :]]
    return chances.choice(VALUES)
