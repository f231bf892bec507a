"""A worker that is killed at any stage loses nothing and leaves nothing twice."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from extractors import SpelledOut
from jiyi import Memory, ReceiptState
from jiyi.settings import load_settings
from jiyi.testing import WordEmbedder
from support import stored
from test_processes import assert_whole

STAGES = ("claimed", "loaded", "extract", "embed", "index", "save", "in the transaction", "saved", "failing")
TALK = [
    {"role": "user", "content": "Mei home = Rome"},
    {"role": "user", "content": "Mei home = Oslo"},
    {"role": "user", "content": "Mei hobby ~ chess"},
]


@pytest.mark.parametrize("stage", STAGES)
async def test_a_killed_worker_loses_nothing_and_leaves_nothing_twice(path: Path, stage: str) -> None:
    settings = load_settings(jobs={"lease_s": 0.3, "retry_delay_s": 0.01, "in_process": False})
    async with Memory.open(path, settings=settings, embedder=WordEmbedder(), extractor=SpelledOut()) as memory:
        receipt = await memory.add(TALK, user_id="mei", session_id="s", wait=False)
        assert receipt.state is ReceiptState.ACCEPTED
    killer = Path(__file__).with_name("kill_worker.py")
    killed = await asyncio.to_thread(
        subprocess.run, [sys.executable, str(killer), str(path), stage], cwd=killer.parent, timeout=60, check=False
    )
    assert killed.returncode == -9, stage
    assert_whole(path)
    async with Memory.open(path, settings=settings, embedder=WordEmbedder(), extractor=SpelledOut()) as memory:
        before = await memory.jobs.get(receipt.id, user_id="mei")
        assert before.state is (ReceiptState.INDEXED if stage == "saved" else ReceiptState.ACCEPTED)
        await memory.jobs.work()  # takes over as soon as the lease of the dead has run out
        done = await memory.jobs.status(receipt, user_id="mei")
        assert done.state is ReceiptState.INDEXED
        assert [one.content for one in reversed(await stored(memory, memory_types=["message"]))] == [
            message["content"] for message in TALK
        ]
        facts = sorted(one.content for one in await stored(memory, memory_types=["fact"]))
        assert facts == ["Mei hobby: chess", "Mei home: Oslo"]
        everything = [one for one in done.memories if one.memory_type == "fact"]
        assert len(everything) == 3, "Rome is over, and there once"
        assert (await memory.add(TALK, user_id="mei", session_id="s")).created == 0
    assert_whole(path)
