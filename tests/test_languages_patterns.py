"""Every compiled pattern of the package takes linear time on runs of any character."""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jiyi
from jiyi.languages import LANGUAGES
from jiyi.languages.clock import blank_pattern
from jiyi.languages.dates import _scanners
from jiyi.languages.registry import cue
from jiyi.write import slots
from jiyi.write.drafts import Said, Unit
from jiyi.write.extract import extract
from support import LONG

ROOT = Path(jiyi.__path__[0])
FACTORIES = ("_runs", "_pieces", "_ascii_pieces", "_patterns", "_phrases")


def compiled() -> Iterator[tuple[str, re.Pattern[str]]]:
    for path in sorted(ROOT.rglob("*.py")):
        if "migrations" in path.parts or path.stem == "__main__":
            continue
        name = ".".join(("jiyi", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
        frameworks = "agents" in path.parts  # slow to import; their patterns are plain texts
        for attribute, value in () if frameworks else vars(import_module(name)).items():
            found = value() if attribute in FACTORIES and is_factory(value) else value
            if isinstance(found, dict):
                found = tuple(found.values())
            for pattern in found if isinstance(found, (tuple, list)) else (found,):
                if isinstance(pattern, re.Pattern) and isinstance(pattern.pattern, str):
                    yield f"{name}.{attribute}", pattern
        for pattern in inline(path):
            yield f"{name}: {pattern.pattern}", pattern
    for ended in (True, False):
        for slot, _, pattern in slots._patterns(ended=ended):
            yield f"slot {slot} {pattern.pattern}", pattern
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
    for field in sorted(set(re.findall(r'cue\("(\w+)"\)', "".join(map(Path.read_text, ROOT.rglob("*.py")))))):
        yield f"cue {field}", cue(field)


def inline(path: Path) -> Iterator[re.Pattern[str]]:
    """Compile the patterns that are written as text in calls such as `re.search("…", text)`."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        given = node.args[0] if isinstance(node, ast.Call) and node.args else None
        if called.startswith("re.") and isinstance(given, ast.Constant) and isinstance(given.value, str):
            yield re.compile(given.value)


def is_factory(value: Any) -> bool:
    function = getattr(value, "__wrapped__", None)
    return function is not None and function.__code__.co_argcount + function.__code__.co_kwonlyargcount == 0


PUMPS = (
    " ", "a", "1", ".", "\n", "-", "(", '"', "一", "月", "的", "上", "年", "`", "\t", "\u0300", "a ", "1 ", "a.", "1,",
    "you ", "in ", "我们", ". ", "{", "<", "'", "|", "1-", "a-", "x'", "AB", "昨天", "“", "\u200d", "\ufe0f",
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
    # Eight times the length takes 64 times as long if every character looks at all others.
    # Three times, because another process may get in between.
    return [
        pump
        for pump in PUMPS
        if seconds(pattern, pump, 300) > 0.0004 and all(seconds(pattern, pump, 2400) > 0.025 for _ in range(3))
    ]


def test_patterns_are_linear() -> None:
    patterns = {(pattern.pattern, pattern.flags): (name, pattern) for name, pattern in compiled()}.values()
    assert len(patterns) > 400
    slow = {name: runs for name, pattern in patterns if (runs := slow_runs(pattern))}
    assert slow == {}


@pytest.mark.parametrize("run", ["monday ", "下周", "?", "1-", "不用了。", "I live in Rome on monday "])
def test_reading_a_message_takes_linear_time(run: str) -> None:
    def seconds(length: int) -> float:
        said = Said(id="m", role="user", speaker=None, text=("a" + run * length)[:length], sent_at=datetime.now(UTC))
        started = time.process_time()
        extract(Unit(id="u", user_id="mei", messages=(said,)))
        return time.process_time() - started

    seconds(500)  # compiles the patterns
    assert any(seconds(16_000) < 12 * seconds(4_000) + 0.1 for _ in range(3))


# Texts that match such a pattern take seconds to make: a long run tries all of them, another one each twelfth.
QUICK_TESTS = [
    *((words, pattern) for ended in (True, False) for _, words, pattern in slots._patterns(ended=ended)),
][:: 1 if LONG else 12]


@pytest.mark.parametrize(("words", "pattern"), QUICK_TESTS, ids=lambda value: getattr(value, "pattern", None))
@settings(max_examples=5, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_text_without_the_words_of_a_pattern_does_not_match_it(
    words: list[str], pattern: re.Pattern[str], data: st.DataObject
) -> None:
    found = pattern.search(data.draw(st.from_regex(pattern)))
    assert found is None or any(word in found[0].casefold() for word in words)
