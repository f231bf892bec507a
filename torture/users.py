"""Half an hour with ever more users: memory and open files level off.

Each step is a new user who tells something, recalls, searches, and is sometimes deleted; old users come back now and
then. With and without files of a workspace. Caches are small, so that they are full early.
"""

from __future__ import annotations

import gc
import random
from pathlib import Path
from statistics import mean
from time import monotonic

from bench.texts import questions, statements

from jiyi import Memory
from jiyi.agents.recall import Conversation
from jiyi.settings import Settings, load_settings
from jiyi.testing import WordEmbedder

from .soak import rss_mb
from .trial import Trial

PROTECTIONS = {"letting go": "each user leaves 100 kB behind"}
SECONDS = 1800
SAMPLES = 24
RSS_GROWTH = 1.02  # last quarter against the third
RSS_SLACK_MB = 6.0
WORKSPACE_SHARE = 0.25  # of the time
DELETED, RETURNING = 0.1, 0.3  # share of the users


async def run(trial: Trial) -> None:
    for name, share in (("store", 1 - WORKSPACE_SHARE), ("workspace", WORKSPACE_SHARE)):
        workspace = trial.scratch / "files" if name == "workspace" else None
        settings = load_settings(cache_mb=4, cache={"max_searches": 100, "max_query_vectors": 100})
        await _grow(trial, name, settings, workspace, max(SECONDS * trial.scale, 8.0) * share)
        judge(trial, name)


async def _grow(trial: Trial, name: str, settings: Settings, workspace: Path | None, seconds: float) -> None:
    rng, leak, users = trial.chances(name), [], 0
    asked = questions(str(trial.seed), 200)
    embedder = WordEmbedder(64)
    rss, fds = trial.series.setdefault(f"rss_mb {name}", []), trial.series.setdefault(f"fds {name}", [])
    path = trial.scratch / f"{name}.db"
    async with Memory.open(path, settings=settings, embedder=embedder, workspace=workspace) as memory:
        began = monotonic()
        while (passed := monotonic() - began) < seconds:
            users += 1
            await _visit(memory, f"{name} user {users}", rng, trial, asked)
            if rng.random() < RETURNING:
                await memory.search(rng.choice(asked), user_id=f"{name} user {rng.randint(1, users)}")
            if trial.without is not None:
                leak.append(bytearray(rng.randbytes(100_000)))
            if passed >= len(rss) * seconds / SAMPLES:
                gc.collect()
                rss.append(rss_mb())
                fds.append(_open_files())
                trial.series.setdefault(f"users {name}", []).append(float(users))
    trial.counts[f"users of a {name}"] = users


async def _visit(memory: Memory, user: str, rng: random.Random, trial: Trial, asked: list[str]) -> None:
    """Tell, recall, search, and perhaps be deleted."""
    conversation = Conversation(memory=memory, user_id=user, session_id="s")
    for text in statements(f"{trial.seed}:{user}", 3):
        await memory.add([{"role": "user", "content": text}], user_id=user)
    await conversation.context(rng.choice(asked))
    found = await memory.list(user_id=user)
    await memory.search(rng.choice(asked), user_id=user)
    trial.counts["operations"] += 6
    if any(item.user_id != user for item in found.items):
        trial.breaks("leak", f"{user} sees memories of others")
    if rng.random() < DELETED:
        await memory.delete_all(user)
        trial.counts["users deleted"] += 1


def _open_files() -> float:
    return float(len(list(Path("/proc/self/fd").iterdir())))


def judge(trial: Trial, name: str) -> None:
    """Compare the last quarter of the samples with the third."""
    rss, fds = trial.series[f"rss_mb {name}"], trial.series[f"fds {name}"]
    quarter = len(rss) // 4
    if not quarter:
        trial.breaks("other", f"{name}: there are only {len(rss)} samples")
        return
    third, last = mean(rss[2 * quarter : 3 * quarter]), mean(rss[3 * quarter :])
    told = (
        f"{name}: RSS {third:.1f} MB in the third quarter, {last:.1f} MB in the last; at most {max(fds):.0f} open files"
    )
    trial.notes.append(told)
    if last > third * RSS_GROWTH + RSS_SLACK_MB:
        trial.breaks("other", f"memory grows with the users: {told}")
    if mean(fds[3 * quarter :]) > mean(fds[quarter : 2 * quarter]) + 4:
        trial.breaks("other", f"open files grow with the users: {told}")
