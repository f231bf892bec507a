"""The trials of `torture/` at a tiny size: they find nothing, and without a protection they find something."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from collections import Counter
from pathlib import Path

import pytest
from torture.report import Result, page, read
from torture.trial import Trial
from torture.trials import TRIALS

from support import LONG

# The others have tests of their own.
TINY = {"inputs": 0.003, "endpoints": 0.01, "model": 0.01, "isolation": 0.01, "poisoning": 0.01}
UNPROTECTED_SCALE = {"inputs": 0.09, "model": 0.03}  # only what was protected is tried then


def tried(name: str, scratch: Path, without: str | None = None, *, scale: float | None = None) -> Trial:
    trial = Trial(name, seed=7, scale=scale or TINY[name], scratch=scratch, without=without)
    asyncio.run(importlib.import_module(f"torture.{name}").run(trial))
    return trial


@pytest.mark.parametrize("name", TINY)
def test_no_promise_is_broken(name: str, tmp_path: Path) -> None:
    trial = tried(name, tmp_path)
    assert trial.broken == []
    assert sum(trial.counts.values()) > 0


# One protection of each trial; all of them in a long run.
UNPROTECTED = [
    (name, protection)
    for name in TINY
    for protection in list(importlib.import_module(f"torture.{name}").PROTECTIONS)[: None if LONG else 1]
]


@pytest.mark.parametrize(("name", "protection"), UNPROTECTED)
def test_without_its_protection_a_trial_fails(name: str, protection: str, tmp_path: Path) -> None:
    """Else it would prove nothing."""
    assert tried(name, tmp_path, protection, scale=UNPROTECTED_SCALE.get(name, TINY[name])).broken != []


# -- the report -------------------------------------------------------------------------------------------------------


def test_the_report_says_what_was_counted_and_what_broke(tmp_path: Path) -> None:
    whole = Trial(
        "inputs", 4711, 0.5, tmp_path, counts=Counter({"inputs": 25_000}), notes=["a | note"], ended_at="today"
    )
    whole.breaks("leak", "bo sees <b>mei</b>\n`x`")
    whole.write(tmp_path)
    off = Trial("inputs", 1, 0.1, tmp_path, without="the limit of nesting")
    off.breaks("other", "RecursionError")
    off.write(tmp_path)
    told = page(read(tmp_path), "- a bug that was mended")
    assert "| leaks from one user to another | **1** |" in told
    assert "| acknowledged memories lost | **0** |" in told
    assert "| bad inputs | 25,000 |" in told and "killed" not in told.partition("## What was done")[0]
    assert "25,000 inputs" in told and "| 4711 |" in told
    assert "- a \\| note" in told
    assert "bo sees \\<b\\>mei\\</b\\>\\n\\`x\\`" in told
    assert "| `inputs` | the limit of nesting |" in told and "RecursionError" in told
    assert "- a bug that was mended" in told
    assert "Not among these results: `fuzzing`, `kills`, " in told and "as the column says: `inputs`." in told


def test_what_a_trial_writes_is_what_the_report_reads(tmp_path: Path) -> None:
    Trial("inputs", 1, 1.0, tmp_path, counts=Counter(kills=3)).write(tmp_path)
    [result] = read(tmp_path)
    assert result == Result.of(json.loads((tmp_path / "inputs.json").read_text("utf-8")))
    assert result.counts == {"kills": 3}


def test_every_trial_is_a_module_with_a_line_about_it() -> None:
    for name, told in TRIALS.items():
        assert callable(importlib.import_module(f"torture.{name}").run)
        assert told


def test_guided_inputs_find_a_mark_in_a_text_or_say_that_they_did_not_run(tmp_path: Path) -> None:
    trial = Trial("fuzzing", 7, 0.01, tmp_path, without="the escape of comments")
    asyncio.run(importlib.import_module("torture.fuzzing").run(trial))
    if importlib.util.find_spec("atheris") is None:
        assert trial.notes[0].startswith("NOT RUN")
    else:
        assert any("a new line" in broken for broken in trial.broken)
