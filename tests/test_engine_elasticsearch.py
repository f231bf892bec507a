"""Elasticsearch 8 in the place of OpenSearch: creating indexes, feeding, searching, repairing, and what is removed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import test_engine_fault_table
import test_engine_faults
import test_engine_rebuild
import test_engine_verify
import test_engines


@pytest.fixture
def urls(engine_urls: dict[str, str], elasticsearch_url: str) -> dict[str, str]:
    return engine_urls | {"elasticsearch": elasticsearch_url}


async def test_it_follows_every_change(path: Path, urls: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jiyi.engines.CONFIRM_S", 0.0)
    await test_engines.test_engines_follow_every_change(path, urls, monkeypatch, None)


async def test_a_deleted_canary_is_gone(path: Path, urls: dict[str, str]) -> None:
    await test_engines.test_a_deleted_canary_is_in_no_engine(path, urls)


@pytest.mark.parametrize("damage", [test_engine_faults.remove, test_engine_faults.change])
async def test_what_was_removed_or_changed_is_made_anew(
    path: Path, urls: dict[str, str], damage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = test_engine_faults.test_what_was_removed_or_changed_is_made_anew
    await work(path, urls, "elasticsearch", damage, monkeypatch)


async def test_changed_contents_are_repaired(path: Path, urls: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    work = test_engine_verify.test_changed_contents_are_found_and_only_they_are_repaired
    await work(path, urls, "elasticsearch", monkeypatch)


async def test_searches_and_writes_go_on_during_a_rebuild(
    path: Path, urls: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jiyi.store.upkeep.engine_memories.PAGE", 10)
    monkeypatch.setattr("jiyi.engines.GRACE_S", 0.5)
    monkeypatch.setattr("jiyi.engines.outbox.GRACE_S", 0.5)
    monkeypatch.setattr("jiyi.engines.outbox.RENEW_S", 0.2)
    await test_engine_rebuild.test_searches_and_writes_go_on_during_a_rebuild(path, urls, "elasticsearch")


@pytest.mark.parametrize("fault", test_engine_fault_table.TABLE)
async def test_a_fault_is_shown_everywhere(
    path: Path, urls: dict[str, str], fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = test_engine_fault_table.test_a_fault_is_shown_everywhere_and_nothing_is_lost
    await work(path, urls, "elasticsearch", fault, monkeypatch)
