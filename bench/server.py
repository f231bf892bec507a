"""`python -m bench.server`: a running server under load, against the engine in process under the same load.

Requests begin at their times whether earlier ones were answered or not, and are timed from then on, so that a server
that falls behind cannot hide it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path
from statistics import quantiles
from time import monotonic, perf_counter, sleep

from rich.console import Console
from rich.table import Table

from jiyi import JiyiError, Memory
from jiyi.embed import BuiltinEmbedder
from jiyi.settings import load_settings

from .fill import PerturbedEmbedder, Plan, fill
from .texts import questions, statements

FACTOR = 3.0  # bound: p99 of the server ≤ FACTOR × p99 of the engine, and no error
ADDS_OF_TEN = 1
WARM_S = 2.0
LATE_S = 60.0  # answers that come later than this after the last request count as errors

Act = Callable[[int], Awaitable[object]]


@dataclass(slots=True)
class Load:
    """Results of the requests; times in seconds."""

    searches: list[float] = field(default_factory=list)
    adds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    seconds: float = 0.0
    cpu: float = 0.0  # of the process that does the work

    @property
    def times(self) -> list[float]:
        return self.searches + self.adds

    def percentile(self, share: int) -> float:
        return percentile(self.times, share)

    def and_more(self, other: Load) -> Load:
        return Load(
            self.searches + other.searches,
            self.adds + other.adds,
            self.errors + other.errors,
            self.seconds + other.seconds,
            self.cpu + other.cpu,
        )


def percentile(times: Sequence[float], share: int) -> float:
    return quantiles(times, n=100)[share - 1] if len(times) > 1 else float("nan")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.server", description=__doc__)
    parser.add_argument("--memories", type=int, default=100_000, help="in the store (default 100000)")
    parser.add_argument("--users", type=int, default=10, help="whom they belong to, in equal parts (default 10)")
    parser.add_argument("--rate", type=float, default=50.0, help="requests a second (default 50)")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long (default 60)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="fill the store there, or use it again")
    return parser.parse_args()


async def drive(act: Act, rate: float, seconds: float) -> Load:
    """One request in ten adds, the others search."""
    load = Load()
    began = perf_counter()

    async def one(number: int, at: float) -> None:
        await asyncio.sleep(max(0.0, at - perf_counter()))
        try:
            await act(number)
        except (JiyiError, OSError) as error:
            load.errors.append(f"{type(error).__name__}: {error}")
            return
        (load.adds if is_add(number) else load.searches).append(perf_counter() - at)

    tasks = [asyncio.create_task(one(number, began + number / rate)) for number in range(int(rate * seconds))]
    _, late = await asyncio.wait(tasks, timeout=seconds + LATE_S)
    for task in late:
        task.cancel()
        load.errors.append("no answer")
    load.seconds = perf_counter() - began
    return load


def is_add(number: int) -> bool:
    return number % 10 < ADDS_OF_TEN


def traffic(memory: Memory, users: Sequence[str], texts: Iterator[str], asked: Iterator[str]) -> Act:
    """Each question and statement occurs once, so that no cache answers."""

    async def act(number: int) -> object:
        user_id = users[number * 7 % len(users)]
        if is_add(number):
            return await memory.add(next(texts), user_id=user_id)
        return await memory.search(next(asked), user_id=user_id)

    return act


async def measure(
    memory: Memory, users: Sequence[str], name: str, given: argparse.Namespace, seconds: float, pid: int
) -> Load:
    number = int(given.rate * (seconds + WARM_S)) + len(users)
    act = traffic(
        memory,
        users,
        iter(list(statements(f"{given.seed}:{name}:adds", number))),
        iter(questions(f"{given.seed}:{name}:asked", number)),
    )
    for user_id in users:  # loads them before the measurement
        await memory.search("tea", user_id=user_id)
    await drive(act, given.rate, WARM_S)
    before = cpu_of(pid)
    load = await drive(act, given.rate, seconds)
    load.cpu = cpu_of(pid) - before
    return load


def cpu_of(pid: int) -> float:
    """CPU time of a process and its workers so far (Linux only); other programs hardly disturb it."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        workers = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return float("nan")
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own + sum(cpu_of(int(worker)) for worker in workers)


@contextmanager
def serving(path: Path, *options: str) -> Iterator[tuple[str, int]]:
    """Start `jiyi serve`; yield its address and process id."""
    log = path.with_suffix(".log")
    program = [sys.executable, "-c", "from jiyi.cli import main; main()", "serve", "--port", "0", "--store", str(path)]
    program += options
    with log.open("wb") as output:
        process = subprocess.Popen(
            program, stderr=output, env={**os.environ, "JIYI_SERVER__UPLOAD_DIR": str(path.parent)}
        )
    try:
        until = monotonic() + 60
        while (found := re.search(r"serving (http://\S+)", log.read_text())) is None:
            if process.poll() is not None or monotonic() > until:
                raise SystemExit(f"the server did not start: {log.read_text()}")
            sleep(0.05)
        yield found[1], process.pid
    finally:
        process.terminate()
        process.wait(60)


def copies(path: Path, folder: Path) -> Iterator[Path]:
    """Yield fresh copies of the filled store."""
    for number in count():
        where = folder / str(number)
        where.mkdir()
        yield Path(shutil.copy(path, where / "memory.db"))


async def compare(given: argparse.Namespace, folder: Path, console: Console) -> tuple[Load, Load]:
    embedder = BuiltinEmbedder()
    plan = Plan(given.seed, (), others=given.users, each=given.memories // given.users)
    with console.status(f"filling a store with {plan.memories:,} memories of {given.users} users"):
        filler = await PerturbedEmbedder.make(embedder, given.seed)
        filled = await fill(given.keep or folder / "filled", plan, filler, lambda _: None)
    users = [f"other-{number}" for number in range(given.users)]
    stores = copies(filled, folder)
    settings = load_settings(client={"retry_timeout_s": 0})  # an error is an error

    async def engine(name: str) -> Load:
        with console.status("the engine, in process"):
            async with Memory.open(next(stores), settings=settings, embedder=embedder) as memory:
                return await measure(memory, users, name, given, given.seconds / 2, os.getpid())

    before = await engine("before")
    with serving(next(stores)) as (url, pid), console.status(f"the server at {url}"):
        async with Memory.open(url, settings=settings) as memory:
            server = await measure(memory, users, "server", given, given.seconds, pid)
    return before.and_more(await engine("after")), server


def show(given: argparse.Namespace, engine: Load, server: Load) -> None:
    table = Table("ms", "number", "errors", "p50", "p95", "p99", "largest", "CPU")
    for name, load in (("engine", engine), ("server", server)):
        table.add_row(
            name,
            f"{len(load.times):,}",
            f"{len(load.errors):,}",
            *(f"{1000 * load.percentile(share):.1f}" for share in (50, 95, 99)),
            f"{1000 * max(load.times, default=float('nan')):.1f}",
            f"{1000 * load.cpu / max(len(load.times), 1):.1f}",
        )
        for kind, times in (("  searches", load.searches), ("  adds", load.adds)):
            shares = (f"{1000 * percentile(times, share):.1f}" for share in (50, 95, 99))
            table.add_row(kind, f"{len(times):,}", "", *shares, f"{1000 * max(times, default=float('nan')):.1f}", "")
    Console().print(table)
    print(f"{given.memories:,} memories of {given.users} users, {given.rate:g} requests a second, {given.seconds:g} s")
    print(f"p99 of the server is {ratio(engine, server):.2f} × that of the engine (bound: {FACTOR:g})")
    for error in sorted(set(engine.errors + server.errors))[:5]:
        print(f"error: {error}")


def ratio(engine: Load, server: Load) -> float:
    return server.percentile(99) / engine.percentile(99)


def main() -> int:
    given = arguments()
    with tempfile.TemporaryDirectory(prefix="jiyi-bench-") as folder:
        engine, server = asyncio.run(compare(given, Path(folder), Console(stderr=True)))
    show(given, engine, server)
    if given.json:
        given.json.write_text(json.dumps({"engine": asdict(engine), "server": asdict(server)}, indent=2))
    passed = not engine.errors and not server.errors and ratio(engine, server) <= FACTOR
    print("The bound is met." if passed else "The bound is missed.")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
