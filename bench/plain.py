"""`python -m bench.plain`: plain statements and plain questions, as somebody tries who meets Jiyi for the first time.

A question is right if the first hit holds the answer with a score of 0.6 or more or, where nothing answers it, if no
hit reaches 0.6.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import tomllib
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from jiyi import Memory
from jiyi.languages.words import language
from jiyi.models import RELEVANT
from jiyi.settings import load_settings

DATA = Path(__file__).parent / "data" / "plain-use.toml"
BEGAN = datetime(2026, 3, 2, 9, tzinfo=UTC)
ASKED = BEGAN + timedelta(days=60)
USER = "u"


async def ask(person: dict[str, Any], *, read: bool, show: bool) -> Counter[str]:
    counts: Counter[str] = Counter()
    settings = load_settings(search={"reader": read})
    with tempfile.TemporaryDirectory() as folder:
        async with Memory.open(Path(folder) / "memory.db", settings=settings) as memory:
            for day, text in enumerate(person["said"]):
                message = {"role": "user", "content": text, "sent_at": BEGAN + timedelta(days=2 * day)}
                await memory.add([message], user_id=USER, session_id=str(day))
            for question, answer in person["asked"]:
                found = await memory.search(question, user_id=USER, limit=3, asked_at=ASKED)
                sure = found.hits[0].relevance_score >= RELEVANT
                right = sure and answer in found.hits[0].content if answer else not sure
                told = next((text for text in person["said"] if answer and answer in text), "")
                kind = (
                    "absent" if not answer else language(question) if language(told) == language(question) else "across"
                )
                counts.update([kind, "all", *([f"{kind} right", "all right"] if right else [])])
                if show and not right:
                    hits = ", ".join(f"{hit.relevance_score:.2f} {hit.content[:50]}" for hit in found.hits)
                    print(f"{question} [{answer or 'nothing'}] {hits}")
    return counts


async def measure(*, show: bool) -> None:
    people = tomllib.loads(DATA.read_text("utf-8"))["person"]
    for read in (True, False):
        counts: Counter[str] = Counter()
        for person in people:
            counts += await ask(person, read=read, show=show and read)
        shares = [
            f"{kind} {counts[f'{kind} right']}/{counts[kind]}" for kind in ("all", "en", "zh", "across", "absent")
        ]
        print(f"{'with' if read else 'without'} reader: right {', '.join(shares)}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.plain", description=__doc__)
    parser.add_argument("--show", action="store_true", help="print the questions that were not answered rightly")
    asyncio.run(measure(show=parser.parse_args(arguments).show))


if __name__ == "__main__":
    main()
