"""Delivery: the share of indirect requests for which the memory that matters reaches the model, on every path, and the
number of other stored lines that come with it.

    python -m bench.delivery [--paths recall,"search tool"] [--show]

Pairs of a stored fact and a later request are in bench/data/indirect_requests.toml. All are stored for one user, with
small talk between them. The paths are in bench/delivery_paths.py and, through servers and other processes, in
bench/delivery_servers.py; none of them stores the requests. Exits with 1 if a path delivers less than 85 %.
"""

import argparse
import asyncio
import re
import sys
import tempfile
import tomllib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jiyi import Memory
from jiyi.languages.words import language
from jiyi.settings import load_settings

DATA = Path(__file__).parent / "data" / "indirect_requests.toml"
USER = "sam"
DeliveryPath = Callable[[Memory, Sequence[str]], Awaitable[list[str]]]  # from requests to what the model is given
LEAST = 0.85


class Unavailable(Exception):
    """A path cannot be measured here, and why."""


@dataclass(frozen=True)
class Pair:
    fact: str
    request: str

    @property
    def language(self) -> str:
        return language(self.request)

    def is_in(self, text: str) -> bool:
        """Return True if a text shows the fact, with or without dates in brackets."""
        return self.fact.strip(".。") in re.sub(r" ?[(（]\d{4}-[-\d to]*[)）]", "", text)


def pairs() -> list[Pair]:
    return [Pair(**one) for one in tomllib.loads(DATA.read_text("utf-8"))["pair"]]


async def fill(memory: Memory) -> None:
    """Store every fact in a session of its own, between small talk."""
    talk = tomllib.loads(DATA.read_text("utf-8"))["small_talk"]
    for at, pair in enumerate(pairs()):
        said = [talk[at % len(talk)], pair.fact]
        turns = [[{"role": "user", "content": text}, {"role": "assistant", "content": "OK."}] for text in said]
        await memory.add([message for turn in turns for message in turn], user_id=USER, session_id=f"s{at}")


def unrelated(pair: Pair, text: str) -> int:
    """Count the stored lines in a text that belong to other requests, or are small talk."""
    talk = tomllib.loads(DATA.read_text("utf-8"))["small_talk"]
    facts = (other.is_in(text) for other in pairs() if other.fact != pair.fact)
    return sum(facts) + sum(line in text for line in talk)


async def missed(memory: Memory, path: DeliveryPath, asked: Sequence[Pair]) -> list[Pair]:
    """Return the pairs whose fact does not reach the model."""
    given = await path(memory, [pair.request for pair in asked])
    return [pair for pair, text in zip(asked, given, strict=True) if not pair.is_in(text)]


async def measure(names: Sequence[str] | None, show: bool) -> bool:
    """Print a row for each path; return True if all that could be measured deliver enough."""
    from .delivery_paths import PATHS as DIRECT
    from .delivery_servers import PATHS as SERVED

    paths, enough = DIRECT | SERVED, True
    settings = load_settings(tools={"calls_per_minute": 1_000_000})
    with tempfile.TemporaryDirectory() as folder:
        async with Memory.open(Path(folder) / "delivery.db", settings=settings) as memory:
            await fill(memory)
            asked = pairs()
            for name in names or paths:
                try:
                    given = await paths[name](memory, [pair.request for pair in asked])
                except Unavailable as error:
                    print(f"{name:24} NOT MEASURED: {error}")
                    continue
                lost = [pair for pair, text in zip(asked, given, strict=True) if not pair.is_in(text)]
                others = sum(map(unrelated, asked, given)) / len(asked)
                enough = enough and len(lost) <= (1 - LEAST) * len(asked)
                shares = [
                    f"{kind} {1 - sum(pair.language == kind for pair in lost) / len(of_kind):.0%}"
                    for kind in ("en", "zh")
                    if (of_kind := [pair for pair in asked if pair.language == kind])
                ]
                share = f"{1 - len(lost) / len(asked):.0%} of {len(asked)} ({', '.join(shares)})"
                print(f"{name:24} {share}, {others:.1f} unrelated lines")
                for pair in lost if show else ():
                    print(f"    missed: {pair.request} / {pair.fact}")
    return enough


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--paths", help="names, separated by commas; default: all")
    parser.add_argument("--show", action="store_true", help="list the pairs that were missed")
    given = parser.parse_args()
    enough = asyncio.run(measure(given.paths.split(",") if given.paths else None, given.show))
    sys.exit(0 if enough else 1)


if __name__ == "__main__":
    from bench.delivery import main as imported  # its exceptions are those that the paths raise

    imported()
