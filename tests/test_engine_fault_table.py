"""What each fault of an engine does to searches, writes, the health check, `jiyi doctor` and the metrics."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from engine_proxy import Proxy
from jiyi.cli.doctor import State, _engines
from jiyi.errors import EngineError
from jiyi.settings import Settings
from jiyi.testing import WordEmbedder
from support import contents
from test_engine_faults import TEXTS, change, indexes, remove, wait_at_most
from test_engines import PATIENCE_S, engine_settings, engines_of, open_with, settled

# Fault: (a search names it, writing to the engine fails, `health` and the metric show it). `doctor` always shows it,
# adding to the store always works, the process stays ready, and every search finds everything.
TABLE = {
    "removed": (True, False, True),  # writing loads everything anew
    "changed": (False, False, False),
    "hung": (True, True, True),
    "dead": (True, True, True),
    "slow": (True, False, True),
    "unauthorized": (True, True, True),
    "read-only": (False, True, True),
    "disk full": (False, True, True),
}
FAULTS = [
    *(("elasticsearch", fault) for fault in TABLE),
    *(("milvus", fault) for fault in ("removed", "changed", "hung", "dead")),
    *(("mongodb", fault) for fault in ("removed", "changed", "hung", "dead")),
]
BLOCKS = {"read-only": "index.blocks.write", "disk full": "index.blocks.read_only_allow_delete"}  # by a full disk


def block(url: str, settings: Settings, fault: str, value: bool | None) -> None:
    for name in indexes(settings):
        httpx.put(f"{url}/{name}/_settings", json={BLOCKS[fault]: value}).raise_for_status()


@pytest.mark.parametrize(("engine", "fault"), FAULTS)
async def test_a_fault_is_shown_everywhere_and_nothing_is_lost(
    path: Path, engine_urls: dict[str, str], engine: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jiyi.engines.outbox.CHECK_S", 0.0)
    search_names_it, writing_fails, is_shown = TABLE[fault]
    search_names_it &= engine != "mongodb"  # it is not searched
    is_shown &= engine != "mongodb" or writing_fails
    embedder = WordEmbedder(64)
    async with Proxy(engine_urls[engine]) as proxy:
        settings = engine_settings(engine_urls, timeout_s=4.0)
        named = f"{engine}_url"
        secret = type(getattr(settings.engines, named))
        through = proxy.url + (f"{settings.engines.prefix}" if engine == "mongodb" else "")
        behind = settings.engines.model_copy(update={named: secret(through)})
        async with open_with(path, settings.model_copy(update={"engines": behind})) as memory:
            for text in TEXTS:
                await memory.add(text, user_id="mei")
            await settled(memory)
            if fault in ("removed", "changed"):
                await asyncio.to_thread(remove if fault == "removed" else change, settings, engine)
            elif fault in BLOCKS:
                await asyncio.to_thread(block, engine_urls[engine], settings, fault, True)
            else:
                wait_at_most(memory, engine, 0.5)
                await proxy.set(fault)

            assert (await memory.add("one more", user_id="mei")).memories
            for text in TEXTS:
                found = await memory.search(text, user_id="mei")
                assert text in contents(found)
                assert any(engine in problem for problem in found.degraded) == search_names_it
            outbox = engines_of(memory).outbox(engine)
            if writing_fails:
                with pytest.raises(EngineError, match=engine):
                    await outbox.step()
            health = await memory.health()
            assert health.ready
            assert (engine in {check.name for check in health.checks if check.problem}) == is_shown
            assert (f'engine_failing{{engine="{engine}"}} 1' in await memory.usage.prometheus()) == is_shown
            if fault != "slow":  # it answers
                checks = await _engines(str(path), settings.model_copy(update={"engines": behind}), embedder)
                assert [check.name for check in checks if check.state is State.DEGRADED] == [engine]

            if fault in BLOCKS:
                await asyncio.to_thread(block, engine_urls[engine], settings, fault, None)
            wait_at_most(memory, engine, PATIENCE_S)
            await proxy.set("open")
            await recovered(memory, engine)


async def recovered(memory: Any, engine: str) -> None:
    """Wait until the engine is fed and searched again, and nothing is reported any more."""
    while True:
        try:
            await settled(memory)
            break
        except EngineError:
            await asyncio.sleep(0.1)
    search = engines_of(memory).search
    found = await memory.search("one more", user_id="mei")
    while found.degraded:
        search.breakers[engine].try_again()
        found = await memory.search("one more", user_id="mei")
    assert set(found.engines) == {"milvus", "elasticsearch"} and "one more" in contents(found)
    assert engine not in {check.name for check in (await memory.health()).checks if check.problem}
