"""A short slice of the trials in `torture/`: nothing breaks, and what breaks without a protection is noticed."""

from __future__ import annotations

import importlib
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from torture import (
    attacker,
    concurrency,
    engine_kills,
    erasure,
    folder,
    forked,
    growth,
    kills,
    mem0_calls,
    soak,
    standing,
    users,
)
from torture.forks import in_process
from torture.mutant import mutants_of
from torture.trial import Trial
from torture.trials import TRIALS
from torture.writes import under_the_shim

from support import LONG

no_compiler = not shutil.which("cc") and os.environ.get("CI") != "true"  # there they fail
needs_compiler = pytest.mark.skipif(no_compiler, reason="NO C COMPILER, so these faults are not tested")
only_long = pytest.mark.skipif(not LONG, reason="what a trial notices without a protection: JIYI_TEST_LONG=1")


def trial(name: str, folder: Path, scale: float = 0.0, without: str | None = None) -> Trial:
    return Trial(name, 7, scale, folder, without)


async def part(name: str, what: str, folder: Path, without: str | None = None, **given: Any) -> Trial:
    """A part of a trial in a process that has the shim."""
    made = trial(name, folder, without=without)
    assert without is None or without in importlib.import_module(f"torture.{name}").PROTECTIONS
    await under_the_shim(made, what, **given)
    return made


def test_every_trial_is_there() -> None:
    assert all(callable(importlib.import_module(f"torture.{name}").run) for name in TRIALS)


async def test_what_is_acknowledged_survives_kills(tmp_path: Path) -> None:
    made = trial("kills", tmp_path)
    await kills.run(made)
    assert made.broken == [] and made.counts["kills"] == 8 and made.counts["acknowledged"]


async def test_an_acknowledgement_before_the_commit_is_noticed(tmp_path: Path) -> None:
    made = trial("kills", tmp_path, without="the commit")
    await kills.run(made)
    assert any("lost" in broken for broken in made.broken)


async def test_deleted_users_do_not_return(tmp_path: Path) -> None:
    made = trial("erasure", tmp_path)
    await in_process(made, "erasure.drive", where="a file", rounds=len(erasure.KINDS))
    assert made.broken == [] and made.counts["deletions"] >= len(erasure.KINDS)
    assert made.counts["texts that began before"] and made.counts["texts that began after"]


@only_long
async def test_an_epoch_that_does_not_change_is_noticed(tmp_path: Path) -> None:
    made = trial("erasure", tmp_path, without="the epoch")
    await erasure.run(made)
    assert any("came back" in broken for broken in made.broken)


@pytest.mark.skipif(not LONG, reason="some minutes: JIYI_TEST_LONG=1")
@pytest.mark.parametrize("without", [None, *engine_kills.PROTECTIONS])
async def test_engines_equal_the_store_after_kills(without: str | None, tmp_path: Path) -> None:
    made = trial("engine_kills", tmp_path, without=without)
    await engine_kills.run(made)
    assert bool(made.broken) == bool(without) and made.counts["writes to engines"]


@needs_compiler
async def test_a_kill_at_a_call_leaves_before_or_after(tmp_path: Path) -> None:
    made = await part("writes", "writes.killed_at_every_call", tmp_path, stride=30, only=["update", "sync_workspace"])
    assert made.broken == [] and made.counts["kills at a call"] >= 4


@needs_compiler
@only_long
async def test_a_store_without_a_journal_is_noticed(tmp_path: Path) -> None:
    made = await part("writes", "writes.killed_at_every_call", tmp_path, "the journal", stride=8)
    assert any("DAMAGED" in broken or "cannot be" in broken for broken in made.broken)


@needs_compiler
@only_long
async def test_files_written_in_place_are_noticed(tmp_path: Path) -> None:
    assert (await part("writes", "writes.killed_at_every_call", tmp_path, "replacing files", stride=5)).broken


@needs_compiler
async def test_a_disk_that_fails_gives_a_named_error_and_damages_nothing(tmp_path: Path) -> None:
    made = await part("io_errors", "io_errors.drive", tmp_path, stride=25, only=["update"])
    assert made.broken == [] and made.counts["named StoreUnavailable"]


@needs_compiler
@only_long
async def test_an_error_without_a_name_is_noticed(tmp_path: Path) -> None:
    made = await part("io_errors", "io_errors.drive", tmp_path, "names of errors", stride=20)
    assert any("unnamed" in broken for broken in made.broken)


@needs_compiler
async def test_what_is_acknowledged_survives_power_cuts(tmp_path: Path) -> None:
    made = await part("power", "power.drive", tmp_path, sessions=1, stride=1000, shares=[0.0, 0.9])
    assert made.broken == [] and made.counts["power cuts"] >= 8


@needs_compiler
@only_long
async def test_a_store_that_is_not_flushed_is_noticed(tmp_path: Path) -> None:
    made = await part("power", "power.drive", tmp_path, without="flushing the store", sessions=1, stride=400)
    assert any("lost" in broken for broken in made.broken)


@pytest.mark.skipif(not LONG, reason="a minute: JIYI_TEST_LONG=1")
@pytest.mark.parametrize("without", [None, "transactions"])
async def test_sixteen_processes_lose_nothing_and_make_nothing_twice(without: str | None, tmp_path: Path) -> None:
    made = trial("concurrency", tmp_path, without=without)
    await concurrency.run(made)
    assert bool(made.broken) == bool(without)


@pytest.mark.skipif(not LONG, reason="some minutes: JIYI_TEST_LONG=1")
@pytest.mark.parametrize("without", [None, "letting go"])
async def test_a_load_for_a_while_lets_nothing_grow(without: str | None, tmp_path: Path) -> None:
    made = trial("soak", tmp_path, 0.01, without)
    await soak.run(made)
    assert bool(made.broken) == bool(without)


@pytest.mark.parametrize("name", ["rss_mb", "fds", "p99_over_reference", "cpu_ms_per_operation"])
def test_what_grows_under_load_is_noticed(name: str, tmp_path: Path) -> None:
    flat = {one: [100.0] * 120 for one in ("rss_mb", "fds", "p99_over_reference", "cpu_ms_per_operation")}
    quiet = trial("soak", tmp_path)
    quiet.series = flat
    soak.judge(quiet)
    grown = trial("soak", tmp_path)
    grown.series = {**flat, name: [100.0 + 5 * at for at in range(120)]}
    soak.judge(grown)
    assert quiet.broken == [] and len(grown.broken) == 1


async def test_searches_of_a_growing_store_find_the_last_message_at_once(tmp_path: Path) -> None:
    made = trial("growth", tmp_path)
    await growth.run(made)
    assert made.broken == [] and made.counts["searches"] > 30 and len(made.notes) == 6


@pytest.mark.parametrize("without", [None, *attacker.PROTECTIONS])
async def test_an_attacker_finds_nothing_unless_a_protection_is_off(without: str | None, tmp_path: Path) -> None:
    made = trial("attacker", tmp_path, without=without)
    await attacker.run(made)
    assert bool(made.broken) == (without is not None), made.broken
    assert without is not None or len(made.counts) == 9


@pytest.mark.parametrize("without", [None, *folder.PROTECTIONS])
async def test_a_hostile_folder_gets_nothing_unless_a_protection_is_off(without: str | None, tmp_path: Path) -> None:
    made = trial("folder", tmp_path, without=without)
    await folder.run(made)
    assert bool(made.broken) == (without is not None), made.broken
    assert made.counts["commands"] and made.counts["hooks"]


@pytest.mark.parametrize("without", [None, *standing.PROTECTIONS])
async def test_a_running_process_has_every_limit(without: str | None, tmp_path: Path) -> None:
    made = trial("standing", tmp_path, without=without)
    await standing.run(made)
    assert bool(made.broken) == (without is not None), made.broken
    assert made.counts == {"limits by this process": 4, "limits by another process": 4}


@pytest.mark.parametrize("without", [None, *mem0_calls.PROTECTIONS])
async def test_a_call_of_mem0_deletes_what_it_names(without: str | None, tmp_path: Path) -> None:
    made = trial("mem0_calls", tmp_path, without=without)
    await mem0_calls.run(made)
    assert bool(made.broken) == (without is not None), made.broken
    assert made.counts["calls that delete or change"] == 30


def test_mutants_know_the_lines_that_run_with_them() -> None:
    source = (Path(__file__).parents[1] / "src/jiyi/store/repositories/key_rows.py").read_text("utf-8").splitlines()
    found = list(mutants_of("store/repositories/key_rows.py"))
    [absent] = [each for each in found if each.was.startswith("if row is None")]
    assert absent.lines == (absent.line, absent.line), "its condition, not its body"
    assert source[absent.line - 1].strip() == "if row is None:"
    assert not [each for each in found if each.was == "True"], "SQLite has no row locks"


def test_no_mutant_changes_what_is_logged_or_the_checks_of_zip() -> None:
    package = Path(__file__).parents[1] / "src/jiyi"
    for file in (
        "read/accesses.py",
        "read/search.py",
        "read/overview.py",
        "store/repositories/index_entries.py",
        "write/worker.py",
    ):
        checks = [
            at for at, line in enumerate((package / file).read_text("utf-8").splitlines(), 1) if "strict=" in line
        ]
        found = list(mutants_of(file))
        assert found and not [each for each in found if each.was.startswith("logger.")]
        assert not [each for each in found if each.was in ("True", "False") and each.line in checks]


async def test_processes_that_fork_from_a_busy_one_neither_hang_nor_lose_anything(tmp_path: Path) -> None:
    made = trial("forked", tmp_path)
    await forked.run(made)
    assert made.broken == [] and made.counts["forks"] == 12 and made.counts["acknowledged"]


@only_long
@pytest.mark.parametrize("without", forked.PROTECTIONS)
async def test_a_process_that_hangs_after_a_fork_is_noticed(without: str, tmp_path: Path) -> None:
    made = trial("forked", tmp_path, 0.02, without)
    await forked.run(made)
    assert made.broken


def test_memory_that_grows_with_the_users_is_noticed(tmp_path: Path) -> None:
    for growth_mb, broken in ((0.0, 0), (5.0, 1)):
        made = trial("users", tmp_path)
        made.series = {"rss_mb store": [100.0 + growth_mb * at for at in range(24)], "fds store": [10.0] * 24}
        users.judge(made, "store")
        assert len(made.broken) == broken
