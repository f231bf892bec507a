"""Model endpoints that misbehave: messages are kept, the state is visible, nothing false is remembered, no wrong
vector is stored; and when the endpoints work again, the result is as without the fault.

Each fault is tried alone, then many in random order. LLM faults come from the tests, embedding faults from
`embedding_faults.py`.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from faults import Behaviour, FaultServer, fault_server
from jiyi import Memory, ReceiptState
from jiyi.embed.openai import OpenAIEmbedder
from jiyi.settings import load_settings
from jiyi.testing import WordEmbedder
from jiyi.write.drafts import Evidence
from test_llm_jobs import GOOD, TALK, TRUE, WRONG

from .embedding_faults import DIMENSION, HARMLESS, VECTORS, true_vector
from .trial import Trial

HALF_EXACT = 1e-3  # vectors are stored as float16
SEQUENCES = 60  # of each kind, at scale 1
SLOW = ("hangs", "drips", "drips spaces", "floods", "floods errors")
HURRIED_S, PATIENT_S = 0.5, 30.0  # the machine may be slow
MAX_FAULTS = 3  # in a row
PROTECTIONS = {
    "the proof of a quote": "`quoted` takes any quote for said, so a reply with invented ones makes memories",
    "the check of vectors": "`jiyi.embed.validated` takes any array, so NaN and wrong dimensions are stored",
    "the order of vectors": "the embedder takes the rows of a reply as they come, without their index",
}
SHOWN_BY = {
    "the proof of a quote": ["says invented quotes"],
    "the check of vectors": ["NaN", "another dimension", "empty vectors"],
    "the order of vectors": ["in another order", "one twice"],
}
FACTS = ["likes tea", "plays chess", "对花生过敏", "lives in Berlin", "有一只猫"]


async def run(trial: Trial) -> None:
    with ExitStack() as off:
        _switch_off(trial.without, off)
        off.enter_context(patch("jiyi.llm.client.FIRST_PAUSE_S", 0.001))
        off.enter_context(patch("jiyi.llm.client.PAUSE_AFTER_TIMEOUT_S", 0.001))
        async with fault_server() as server:
            empty = trial.scratch / "empty.db"
            async with Memory.open(empty, embedder=WordEmbedder()):
                pass
            about = trial.without or ""
            if "vector" not in about:
                await _all(trial, server, empty, WRONG, _model)
            if "quote" not in about:
                await _all(trial, server, empty, VECTORS, _embeddings)


async def _all(trial: Trial, server: FaultServer, empty: Path, ways: dict[str, Behaviour], one: Any) -> None:
    """Try each fault alone, as far as the scale goes, and random sequences."""
    chances = trial.chances(one.__name__)
    kind = "of an LLM" if one is _model else "of embeddings"
    names = list(ways)
    alone = names if trial.scale >= 0.2 else chances.sample(names, max(4, round(len(names) * trial.scale)))
    if trial.without is not None:
        alone = SHOWN_BY[trial.without]
    for name in alone:
        trial.counts[f"faults {kind}"] += 1
        await one(trial, server, _copy(trial, empty), [name])
    trial.counts[f"kinds of faults {kind}"] = len(alone)
    for _ in range(0 if trial.without else trial.times(SEQUENCES)):
        some = [chances.choice(names) for _ in range(chances.randint(2, MAX_FAULTS))]
        trial.counts[f"faults {kind}"] += len(some)
        await one(trial, server, _copy(trial, empty), some)


def _copy(trial: Trial, empty: Path) -> Path:
    folder = trial.scratch / "store"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return Path(shutil.copy(empty, folder))


# -- the LLM ----------------------------------------------------------------------------------------------------------


async def _model(trial: Trial, server: FaultServer, path: Path, names: list[str]) -> None:
    """Add once with the fault, then repair the model and retry the job."""
    settings = load_settings(
        llm={"model": "m", "api_key": "k", "base_url": server.url, "timeout_s": _patience(names), "retries": 0},
        jobs={"retry_delay_s": 0.001, "max_attempts": len(names), "wait_timeout_s": 30},
        extraction={"fallback": False},
    )
    server.behave(*(WRONG[name] for name in names))
    what = f"LLM {' then '.join(names)}"
    async with Memory.open(path, settings=settings, embedder=WordEmbedder()) as memory:
        receipt = await memory.add(TALK, user_id="mei", session_id="s")
        if await _said(memory) != sorted(turn["content"] for turn in TALK):
            trial.breaks("lost", f"{what}: the message is not stored")
        if made := await _made(memory):
            trial.breaks("false success", f"{what}: {made} was derived from it")
        if receipt.state is not ReceiptState.FAILED or not receipt.problems:
            trial.breaks("false success", f"{what}: the state is {receipt.state}, {receipt.problems}")
        server.behave(GOOD)
        done = receipt
        for _ in range(5 if receipt.state is ReceiptState.FAILED else 0):
            await memory.jobs.retry(receipt.id, user_id="mei")
            done = await memory.jobs.wait(receipt, user_id="mei")
            if done.state is not ReceiptState.FAILED:
                break
        if done.state is not ReceiptState.INDEXED or await _made(memory) != [TRUE]:
            trial.breaks("lost", f"{what}: after the repair it is {done.state} with {await _made(memory)}")


def _patience(names: list[str]) -> float:
    return HURRIED_S if any(name in SLOW for name in names) else PATIENT_S


async def _said(memory: Memory) -> list[str]:
    page = await memory.list(user_id="mei", memory_types=["message"])
    return sorted(item.content for item in page.items)


async def _made(memory: Memory) -> list[str]:
    page = await memory.list(user_id="mei")
    return [item.content for item in page.items if item.memory_type != "profile"]


# -- embeddings -------------------------------------------------------------------------------------------------------


async def _embeddings(trial: Trial, server: FaultServer, path: Path, names: list[str]) -> None:
    """Add memories with a good server, one for each fault, then repair the server and reindex."""
    what = f"embeddings {' then '.join(names)}"
    async with _remote(server, path) as memory:
        server.behave(VECTORS["well"])
        await memory.add(FACTS[0], user_id="mei")
        for at, name in enumerate(names):
            server.behave(VECTORS[name])
            given = [f"{text} {at}" for text in FACTS[1:]]
            with patch("jiyi.embed.openai.TOTAL_TIMEOUT_S", _patience([name])):
                receipt = await memory.add(given, user_id="mei")
                found = await memory.search(f"chess {at}", user_id="mei", limit=1)
            if receipt.created != len(given):
                trial.breaks("lost", f"{what}: {receipt.created} of {len(given)} were stored")
            whole = receipt.state is ReceiptState.INDEXED
            if whole != (name in HARMLESS) or (not whole and not receipt.problems):
                trial.breaks("false success", f"{what}: the state is {receipt.state}, {receipt.problems}")
            if [hit.content_preview for hit in found.hits] != [f"plays chess {at}"]:
                trial.breaks("lost", f"{what}: keyword search does not find it")
            if name not in HARMLESS and not found.degraded:
                trial.breaks("false success", f"{what}: a search without vectors does not say so")
        await _no_wrong_vector(trial, memory, what)
        server.behave(VECTORS["well"])
        await memory.maintenance.reindex()
        await _no_wrong_vector(trial, memory, f"{what}, mended")
        coverage = (await memory.stats("mei")).coverage
        if coverage.embedded != coverage.memories or coverage.memories != 1 + len(names) * (len(FACTS) - 1):
            trial.breaks("lost", f"{what}: after the repair {coverage}")


async def _no_wrong_vector(trial: Trial, memory: Memory, what: str) -> None:
    """Check that each stored vector is that of its text."""
    page = await memory.list(user_id="mei", limit=1000)
    texts = {item.id: item.content for item in page.items}
    for memory_id, vector in (await vectors_of(memory)).items():
        right = true_vector(texts[memory_id])
        if vector.shape != right.shape or not np.allclose(vector, right, atol=HALF_EXACT):
            trial.breaks("false success", f"{what}: {texts[memory_id]!r} has a wrong vector")


async def vectors_of(memory: Memory) -> dict[str, Any]:
    """Read the vectors from the table, bypassing all checks."""
    from sqlalchemy import select

    from jiyi.store.schema.tables import EmbeddingRow

    stored = select(EmbeddingRow.memory_id, EmbeddingRow.vector)
    rows = await memory._engine.store.database.read("mei", lambda session: session.execute(stored).all())
    return {memory_id: np.asarray(vector) for memory_id, vector in rows}


@asynccontextmanager
async def _remote(server: FaultServer, path: Path) -> AsyncIterator[Memory]:
    settings = load_settings(
        embedder="openai:m",
        embedding={"base_url": server.url, "api_key": "k", "batch_size": 3},
        extraction={"enabled": False},
        cache={"max_query_vectors": 0},
    )
    embedder = OpenAIEmbedder("m", settings)
    embedder._client = embedder._client.with_options(max_retries=0)
    async with Memory.open(path, settings=settings, embedder=embedder) as memory:
        yield memory
    await embedder._client.close()


# -- switching off ----------------------------------------------------------------------------------------------------


def _switch_off(what: str | None, off: ExitStack) -> None:
    if what == "the proof of a quote":
        off.enter_context(
            patch(
                "jiyi.write.llm.proposals.quoted",
                lambda quote, cited, transcript: (cited[0], Evidence(message_id=cited[0].id)),
            )
        )
    elif what == "the check of vectors":

        def anything(embedder: object, reply: Any, wanted: int) -> Any:
            found = np.resize(np.asarray(reply, np.float32), (wanted, DIMENSION))
            return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9)

        off.enter_context(patch("jiyi.embed.validated", anything))
    elif what == "the order of vectors":

        async def as_they_come(self: OpenAIEmbedder, texts: list[str]) -> list[Any]:
            reply = await self._client.embeddings.create(model="m", input=list(texts), encoding_format="float")
            return [row.embedding for row in reply.data]

        off.enter_context(patch("jiyi.embed.openai.OpenAIEmbedder._embed", as_they_come))
