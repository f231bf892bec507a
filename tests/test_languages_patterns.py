"""Every compiled pattern of the package takes linear time on runs of any character."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import jiyi.languages
import jiyi.text
from jiyi.languages import LANGUAGES
from jiyi.languages.clock import blank_pattern
from jiyi.languages.dates import _scanners
from jiyi.languages.registry import cue

PACKAGES = (jiyi.languages, jiyi.text)
FACTORIES = ("_runs", "_pieces", "_patterns", "_phrases")


def compiled() -> Iterator[tuple[str, re.Pattern[str]]]:
    for package in PACKAGES:
        root = Path(package.__path__[0])
        for path in sorted(root.rglob("*.py")):
            name = ".".join((package.__name__, *path.relative_to(root).with_suffix("").parts)).removesuffix(".__init__")
            module = import_module(name)
            for attribute, value in vars(module).items():
                found = value() if attribute in FACTORIES and is_factory(value) else value
                for pattern in found if isinstance(found, tuple) else (found,):
                    if isinstance(pattern, re.Pattern):
                        yield f"{name}.{attribute}", pattern
    for scanner in _scanners(LANGUAGES):
        yield f"core {scanner.family.core}", scanner.core
        for pattern, _ in scanner.rules:
            yield f"rule {pattern.pattern[:60]}", pattern
    for language in LANGUAGES:
        rules = language.dates
        for field in ("narrowing", "anchor_before", "anchor_after", "opening", "joint", "before", "after"):
            yield f"{language.code} range {field}", blank_pattern(getattr(rules.ranges, field))
        for source, _ in (*rules.clock.after, *rules.clock.before):
            yield f"{language.code} clock {source[:40]}", blank_pattern(source)
    for field in ("first_person", "negation", "past_question", "assistant_question"):
        yield f"cue {field}", cue(field)


def is_factory(value: Any) -> bool:
    function = getattr(value, "__wrapped__", None)
    return function is not None and function.__code__.co_argcount == 0


PUMPS = (
    " ", "a", "1", ".", "\n", "-", "(", '"', "一", "月", "的", "上", "年", "`", "\t", "\u0300", "a ", "1 ", "a.", "1,",
    "you ", "in ", "我们", ". ", "{", "<", "'", "|",
)  # fmt: skip


def seconds(pattern: re.Pattern[str], pump: str, length: int) -> float:
    """Return the time that the slowest of three texts with a run takes."""
    run = (pump * length)[:length]
    slowest = 0.0
    for text in (run + "\0", "a" + run + "b", "I live in Berlin" + run + "x"):
        started = time.process_time()
        for _ in pattern.finditer(text):
            pass
        slowest = max(slowest, time.process_time() - started)
    return slowest


def slow_runs(pattern: re.Pattern[str]) -> list[str]:
    """Return the runs on which a pattern takes more than linear time."""
    # The short run finds the few that are worth the long one.
    return [pump for pump in PUMPS if seconds(pattern, pump, 1_000) > 0.004 and seconds(pattern, pump, 16_000) > 0.4]


def test_patterns_are_linear() -> None:
    patterns = list(compiled())
    assert len(patterns) > 150
    slow = {name: runs for name, pattern in patterns if (runs := slow_runs(pattern))}
    assert slow == {}
