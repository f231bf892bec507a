"""Delivery: the share of indirect requests for which the memory that matters reaches the model, on every path, and the
number of other stored lines that come with it.

    python -m bench.delivery [--paths recall,"search tool"] [--pairs indirect_fresh] [--show]

Pairs of a stored fact and a later request are in bench/data/indirect_requests.toml; nothing was chosen by those in
indirect_fresh.toml. All are stored for one user, with small talk between them. The paths are in delivery_paths.py
and, through servers and other processes, in delivery_servers.py; none of them stores the requests. Exits with 1
if a path delivers less than 85 %.
"""

import argparse
import asyncio
import re
import sys
import tempfile
import tomllib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jiyi import Memory
from jiyi.languages.words import language
from jiyi.settings import load_settings

DATA = Path(__file__).parent / "data"
PAIRS = "indirect_requests"
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


@cache
def raw(name: str = PAIRS) -> dict[str, Any]:
    """Return the pairs and the small talk of a file."""
    return tomllib.loads((DATA / f"{name}.toml").read_text("utf-8"))


def pairs(name: str = PAIRS) -> list[Pair]:
    return [Pair(**one) for one in raw(name)["pair"]]


async def fill(memory: Memory, name: str = PAIRS) -> None:
    """Store every fact in a session of its own, between small talk."""
    talk = raw(name)["small_talk"]
    for at, pair in enumerate(pairs(name)):
        said = [talk[at % len(talk)], pair.fact]
        turns = [[{"role": "user", "content": text}, {"role": "assistant", "content": "OK."}] for text in said]
        await memory.add([message for turn in turns for message in turn], user_id=USER, session_id=f"s{at}")


def unrelated(pair: Pair, text: str, name: str = PAIRS) -> int:
    """Count the stored lines in a text that belong to other requests, or are small talk."""
    talk = raw(name)["small_talk"]
    facts = (other.is_in(text) for other in pairs(name) if other.fact != pair.fact)
    return sum(facts) + sum(line in text for line in talk)


async def missed(memory: Memory, path: DeliveryPath, asked: Sequence[Pair]) -> list[Pair]:
    """Return the pairs whose fact does not reach the model."""
    given = await path(memory, [pair.request for pair in asked])
    return [pair for pair, text in zip(asked, given, strict=True) if not pair.is_in(text)]


async def measure(names: Sequence[str] | None, data: str, show: bool) -> bool:
    """Print a row for each path; return True if all that could be measured deliver enough."""
    from .delivery_paths import PATHS as DIRECT
    from .delivery_servers import PATHS as SERVED

    paths, enough = DIRECT | SERVED, True
    settings = load_settings(tools={"calls_per_minute": 1_000_000})
    with tempfile.TemporaryDirectory() as folder:
        async with Memory.open(Path(folder) / "delivery.db", settings=settings) as memory:
            await fill(memory, data)
            asked = pairs(data)
            for name in names or paths:
                try:
                    given = await paths[name](memory, [pair.request for pair in asked])
                except Unavailable as error:
                    print(f"{name:24} NOT MEASURED: {error}")
                    continue
                lost = [pair for pair, text in zip(asked, given, strict=True) if not pair.is_in(text)]
                others = sum(unrelated(pair, text, data) for pair, text in zip(asked, given, strict=True)) / len(asked)
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
    parser.add_argument("--pairs", default=PAIRS, help="the file of pairs, without .toml")
    parser.add_argument("--show", action="store_true", help="list the pairs that were missed")
    given = parser.parse_args()
    enough = asyncio.run(measure(given.paths.split(",") if given.paths else None, given.pairs, given.show))
    sys.exit(0 if enough else 1)


if __name__ == "__main__":
    from bench.delivery import main as imported  # its exceptions are those that the paths raise

    imported()
