"""The trade-off between what a recall delivers and the unrelated lines that come with it, on held-out stories.

    python -m bench.recall_lines [--rows FILE] [--every 3]

For each question of the stories that no reader was trained on, all statements are read and scored once. Then, for some
values of the constants in `jiyi/areas/standing.py`, this prints the share of questions whose answer is in the lines,
the number of unrelated lines, and for questions without an answer the share with at most two lines. `now` is the rule
of the package. Requests (`task`, `instruction`) are all asked, of other questions every few."""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from jiyi import Memory
from jiyi.areas.recalls import MAX_HITS
from jiyi.areas.standing import BEARING, MAX_BEARING, MAX_WEAK, WEAK, standing_memories
from jiyi.models import RELEVANT
from jiyi.settings import load_settings

from .reader.fit import Unable, add_story, held_out_stories

ALWAYS_ASKED = ("task", "instruction")
GROUPS = ("requests", "absent", "others")


@dataclass(frozen=True, kw_only=True)
class Rule:
    """The constants of a recall."""

    weak: float = WEAK
    request: float | None = None  # least score of hits for requests, if it is another one
    bearing: float = BEARING
    most: int = MAX_HITS["normal"]
    most_weak: int = MAX_WEAK
    most_bearing: int = MAX_BEARING

    def lines(self, row: Any) -> list[Any]:
        for_request = self.request is not None and row["kind"] == "task"
        hits = [hit for hit in row["hits"] if hit["score"] >= (self.request if for_request else self.weak)]
        if not for_request and not (hits and hits[0]["score"] >= RELEVANT):
            hits = hits[: self.most_weak]
        hits = hits[: self.most]
        others = [hit for hit in row["hits"] if hit["standing"] and hit["score"] >= self.bearing and hit not in hits]
        most = self.most if for_request or (hits and hits[0]["score"] >= RELEVANT) else self.most_weak
        others = others[: min(self.most_bearing, max(most - len(hits), most // 2))]
        return hits[: most - len(others)] + others


RULES = {
    "now": Rule(),
    **{f"hits from {score}": Rule(weak=score) for score in (0.2, 0.3, 0.4, 0.5, 0.6)},
    **{f"standing from {score}": Rule(bearing=score) for score in (0.1, 0.3, 0.4, 0.6)},
    **{f"at most {most} lines": Rule(most=most) for most in (3, 4, 8, 12)},
    "requests from 0.2": Rule(request=0.2),
    "no standing ones": Rule(most_bearing=0),
    "12 from 0.2, all standing": Rule(weak=0.2, bearing=0.0, most=36, most_weak=12, most_bearing=24),
}


async def rows_of(story: Any, folder: Path, every: int) -> AsyncIterator[Any]:
    """Yield the scored statements for the questions of a story."""
    path, user, counts = folder / f"{story['id']}.db", story["id"], Counter[str]()
    async with Memory.open(path, reader=Unable()) as memory:
        await add_story(memory, story)
    async with Memory.open(path, settings=load_settings(search={"reading_tokens": 1200})) as memory:
        standing = await standing_memories(memory, user, {})
        ids = {name for one in standing for name in (one.id, *one.source_ids)}
        for question in story["questions"]:
            counts[question["kind"]] += 1
            if question["kind"] not in ALWAYS_ASKED and counts[question["kind"]] % every != 1 % every:
                continue
            asked_at = datetime.fromisoformat(story["asked_at"])
            found = await memory.search(question["q"], user_id=user, limit=100, asked_at=asked_at)
            hits = [
                {
                    "score": hit.relevance_score,
                    "answers": _answers(question, f"{hit.speaker or story['user']}: {hit.content}"),
                    "standing": not ids.isdisjoint((hit.id, *hit.source_ids)),
                }
                for hit in found.hits
                if not hit.outdated
            ]
            yield {"q": question["q"], "kind": question["kind"], "must": bool(question["must"]), "hits": hits}


def _answers(question: Any, said: str) -> bool:
    return any(all(re.search(one, said, re.I) for one in way) for way in question["must"])


def group_of(row: Any) -> str:
    if not row["must"]:
        return "absent"
    return "requests" if row["kind"] in ALWAYS_ASKED else "others"


def show(name: str, rule: Rule, rows: Sequence[Any]) -> None:
    cells = []
    for group in GROUPS:
        shown = [rule.lines(row) for row in rows if group_of(row) == group]
        if group == "absent":
            cells.append(f"{group}: {_share(len(lines) <= 2 for lines in shown)} with at most 2 lines")
        else:
            delivered = _share(any(hit["answers"] for hit in lines) for lines in shown)
            unrelated = sum(not hit["answers"] for lines in shown for hit in lines) / max(len(shown), 1)
            cells.append(f"{group}: {delivered} delivered, {unrelated:.1f} unrelated")
    print(f"{name:26} {'; '.join(cells)}")


def _share(given: Any) -> str:
    some = list(given)
    return f"{100 * sum(some) / max(len(some), 1):3.0f} %"


async def gather(every: int) -> list[Any]:
    with tempfile.TemporaryDirectory() as folder:
        return [row for story in held_out_stories() async for row in rows_of(story, Path(folder), every)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=Path, help="file in which the scores are kept")
    parser.add_argument("--every", type=int, default=5, help="take every second, third … of the other questions")
    options = parser.parse_args()
    if options.rows and options.rows.exists():
        rows = json.loads(options.rows.read_text(encoding="utf-8"))
    else:
        rows = asyncio.run(gather(options.every))
        if options.rows:
            options.rows.write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
    for name, rule in RULES.items():
        show(name, rule, rows)


if __name__ == "__main__":
    main()
