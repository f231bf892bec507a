"""Two hours of mixed load on 100,000 memories: memory, open files and search times do not grow.

RSS and open files are sampled each minute. Search times are compared with reference work timed at the same time
(embedding a sentence and scanning a matrix), because the machine may be busy.
"""

from __future__ import annotations

import asyncio
import gc
import os
from pathlib import Path
from statistics import mean, median
from time import monotonic, perf_counter, process_time

import numpy as np
from bench.fill import PerturbedEmbedder, Plan, fill
from bench.texts import questions

from jiyi import Memory, NotFound
from jiyi.embed import BuiltinEmbedder
from jiyi.settings import load_settings
from jiyi.store.repositories.job_queue import GONE

from .load import Load, Slowly
from .trial import Trial

PROTECTIONS = {"letting go": "each operation keeps half a megabyte, and a file open"}
SECONDS = 7200
MEMORIES = 100_000
SAMPLES = 24  # at least; otherwise one per minute
PER_SECOND = 6.0
AT_ONCE = 3
RSS_GROWTH = 1.03  # last quarter against the third
RSS_SLACK_MB = 12.0
P99_GROWTH = 1.6  # last quarter against the second, relative to the reference
CPU_GROWTH = 1.3


async def run(trial: Trial) -> None:
    seconds = max(SECONDS * trial.scale, 6.0)
    real = BuiltinEmbedder()
    users = max(4, round(trial.times(MEMORIES, 2000) / 1000))
    size = trial.times(MEMORIES, 2000) // users
    path = await fill(
        trial.scratch,
        Plan(trial.seed, (), users, size),
        await PerturbedEmbedder.make(real, trial.seed),
        lambda more: trial.counts.update({"memories at the start": more}),
    )
    # The RAM index is bounded, and full before the comparison begins.
    settings = load_settings(cache_mb=64, maintenance={"compress_after_days": 0.02}, cache={"max_searches": 200})
    async with Memory.open(path, settings=settings, embedder=real, extractor=Slowly()) as memory:
        load = Load(
            memory, [f"other-{at}" for at in range(users)], trial.chances(), trial, questions(str(trial.seed), 2000)
        )
        await _drive(load, real, seconds)
        await _afterwards(load)
    await _reopened(path, real, load)
    judge(trial)


async def _drive(load: Load, real: BuiltinEmbedder, seconds: float) -> None:
    leak: list[object] = []
    until = monotonic() + seconds
    every = min(60.0, seconds / SAMPLES)

    async def worker() -> None:
        while monotonic() < until:
            await asyncio.gather(load.one(), asyncio.sleep(AT_ONCE / PER_SECOND))
            if load.trial.without is not None:
                leak.append((bytearray(os.urandom(1 << 19)), Path("/dev/null").open()))  # noqa: ASYNC230, SIM115

    matrix = np.ones((20_000, 512), np.float32)

    async def reference() -> None:
        """Time fixed work once per second: embedding and scanning."""
        while monotonic() < until:
            began = perf_counter()
            vector = await real.embed_query("what does she prefer for breakfast, 早餐吃什么")
            await asyncio.to_thread(np.argsort, matrix @ vector)
            load.took["reference"].append(perf_counter() - began)
            await asyncio.sleep(min(1.0, every / 4))

    work = [asyncio.create_task(task) for task in (reference(), *(worker() for _ in range(AT_ONCE)))]
    began, cpu = monotonic(), process_time()
    while monotonic() + every / 2 < until:
        await asyncio.sleep(every)
        _sample(load, monotonic() - began, process_time() - cpu)
        cpu = process_time()
    await asyncio.gather(*work)


def _sample(load: Load, at: float, cpu: float) -> None:
    reference = _percentile(load.took.pop("reference", []), 0.95)
    operations = sum(map(len, load.took.values()))
    searches = load.took["search"] + load.took["context"]
    load.took.clear()
    p99 = _percentile(searches, 0.99)
    gc.collect()
    told = {
        "seconds": round(at, 1),
        "rss_mb": rss_mb(),
        "fds": float(len(list(Path("/proc/self/fd").iterdir()))),
        "operations": float(operations),
        "search_p50_ms": round(1000 * _percentile(searches, 0.5), 2),
        "search_p99_ms": round(1000 * p99, 2),
        "reference_p95_ms": round(1000 * reference, 2),
        "p99_over_reference": round(p99 / reference, 3) if reference else 0.0,
        "cpu_ms_per_operation": round(1000 * cpu / max(operations, 1), 2),
    }
    for name, value in told.items():
        load.trial.series.setdefault(name, []).append(value)
    print("  " + ", ".join(f"{name} {value:g}" for name, value in told.items()), flush=True)


def _percentile(values: list[float], share: float) -> float:
    return sorted(values)[int(len(values) * share)] if values else 0.0


def rss_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20), 2)


async def _afterwards(load: Load) -> None:
    """Check that all jobs finish."""
    until = monotonic() + 120
    counts = await load.memory.jobs.counts()
    while counts.by_state.get("accepted", 0) and monotonic() < until:
        await asyncio.sleep(0.5)
        counts = await load.memory.jobs.counts()
    load.trial.counts["jobs"] = sum(counts.by_state.values())
    if counts.by_state.get("accepted", 0):
        load.trial.breaks("other", f"{counts.by_state['accepted']} jobs are accepted at the end")
    for job in await load.memory.jobs.list(state="failed", limit=1000):
        if job.problems != (GONE,):  # jobs of deleted messages fail with a reason
            load.trial.breaks("other", f"a job has failed: {job.problems}")


async def _reopened(path: Path, real: BuiltinEmbedder, load: Load) -> None:
    """Check that acknowledged memories exist and the store is sound."""
    trial = load.trial
    async with Memory.open(path, embedder=real) as memory:
        for memory_id, owner in load.kept.items():
            try:
                await memory.get(memory_id, user_id=owner)
            except NotFound:
                trial.breaks("lost", f"memory {memory_id} of {owner}")
        trial.counts["acknowledged and looked for at the end"] = len(load.kept)
        found = await memory.maintenance.verify()
        trial.counts["memories verified at the end"] = found.memories
        if found.drift:
            trial.breaks("other", f"verify: {found.drift}")


def judge(trial: Trial) -> None:
    rss, fds = trial.series["rss_mb"], trial.series["fds"]
    quarter = len(rss) // 4
    third, last = mean(rss[2 * quarter : 3 * quarter]), mean(rss[3 * quarter :])
    told = f"RSS: {third:.1f} MB in the third quarter, {last:.1f} MB in the last"
    trial.notes.append(told)
    if last > third * RSS_GROWTH + RSS_SLACK_MB:
        trial.breaks("other", f"it grows: {told}")
    before, after = median(fds[quarter : 2 * quarter]), median(fds[3 * quarter :])
    trial.notes.append(
        f"open files: {before:.0f} in the second quarter, {after:.0f} in the last, {max(fds):.0f} at most"
    )
    if after > before + 4:
        trial.breaks("other", f"open files grow: {before:.0f} in the second quarter, {after:.0f} in the last")
    for name, most, what in (
        ("p99_over_reference", P99_GROWTH, "p99 of searches over the reference's p95"),
        ("cpu_ms_per_operation", CPU_GROWTH, "milliseconds of CPU for an operation"),
    ):
        was, now = (median(trial.series[name][at : at + quarter]) for at in (quarter, 3 * quarter))
        told = f"{what}: {was:.2f} in the second quarter, {now:.2f} in the last"
        trial.notes.append(told)
        if len(rss) >= 60 and now > was * most:  # too few samples otherwise
            trial.breaks("other", f"it gets slower: {told}")
