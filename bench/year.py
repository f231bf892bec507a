"""`python -m bench.year`: a simulated year of many users, with maintenance and without, and the effect on searches.

The same conversations are added to two stores; one of them gets maintenance every ten days. Each month both are asked
questions whose answers were added before. The plot is in docs/images.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from jiyi import Memory
from jiyi.embed import BuiltinEmbedder, Embedder, Vectors
from jiyi.settings import load_settings
from jiyi.testing import Clock

from .simulated_users import CHINESE, ENGLISH, Planted, Session, life

START = datetime(2025, 1, 1, tzinfo=UTC)
MAINTENANCE_DAYS, MONTH_DAYS = 10, 30
FACTS = {
    "home": "home",
    "work": "job",
    "drink": "favourite:drink",
    "phone": "uses:phone",
}  # attribute names of the extractor


class CachedEmbedder:
    """Embeds each text once for both stores."""

    def __init__(self, real: Embedder) -> None:
        self._real = real
        self._known: dict[str, Vectors] = {}
        self.id = real.id

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known.update(zip(new, await self._real.embed_documents(new), strict=True))
        return np.stack([self._known[text] for text in texts])

    async def embed_query(self, text: str) -> Vectors:
        return await self._real.embed_query(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Month:
    """Figures of one store after a number of days; sizes are per user."""

    days: int
    memories: float
    characters: float
    hit_rate: float  # questions with the answer among the first 3
    old_hit_rate: float  # of facts stated more than 90 days ago
    correct: float  # current facts with the last stated value
    questions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Year:
    users: int
    everything: list[Month]
    kept: list[Month]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    users: int
    days: int
    every_days: float
    seed: int
    asked: int


async def live(folder: Path, embedder: Embedder, plan: Plan, *, maintain: bool) -> list[Month]:
    """Run one store through the year, with maintenance or without."""
    rng = random.Random(plan.seed)
    months: list[Month] = []
    with Clock(START) as clock:
        path = folder / f"{maintain}.db"
        async with Memory.open(path, settings=load_settings(), embedder=embedder) as memory:
            so_far = _Progress(plan)
            for day in range(1, plan.days + 1):
                for session in so_far.until(START + timedelta(days=day)):
                    clock.now = session.at
                    await memory.add(session.messages, user_id=session.user_id, session_id=session.session_id)
                clock.now = START + timedelta(days=day)
                if maintain and day % MAINTENANCE_DAYS == 0:
                    await memory.maintenance.run()
                if day % MONTH_DAYS == 0:
                    async with Memory.open(
                        path, settings=load_settings(recalls={"enabled": False}), embedder=embedder
                    ) as asked:
                        months.append(await _measure(asked, so_far, clock.now, day, rng, plan.asked))
    return months


def _live(plan: Plan, maintain: bool) -> list[Month]:
    """Run one store in its own process."""
    with tempfile.TemporaryDirectory(prefix="jiyi-year-") as folder:
        return asyncio.run(live(Path(folder), CachedEmbedder(BuiltinEmbedder()), plan, maintain=maintain))


def simulate(plan: Plan) -> Year:
    with ProcessPoolExecutor(2) as processes:
        everything, kept = (processes.submit(_live, plan, maintain) for maintain in (False, True))
        return Year(users=plan.users, everything=everything.result(), kept=kept.result())


class _Progress:
    """Sessions, questions and current facts so far."""

    def __init__(self, plan: Plan) -> None:
        options = {"seed": plan.seed, "start": START, "days": plan.days, "every_days": plan.every_days}
        lives = [list(life(number, **options)) for number in range(plan.users)]
        self._upcoming = sorted(
            (session for one in lives for session in one), key=lambda session: session.at, reverse=True
        )
        self.users = [f"user-{number:02d}" for number in range(plan.users)]
        self.planted: dict[str, list[Planted]] = {user: [] for user in self.users}
        self.current: dict[str, dict[str, str]] = {user: {} for user in self.users}

    def until(self, end: datetime) -> Sequence[Session]:
        found = []
        while self._upcoming and self._upcoming[-1].at < end:
            session = self._upcoming.pop()
            found.append(session)
            self.planted[session.user_id] += session.planted
            self.current[session.user_id] = session.current
        return found


async def _measure(
    memory: Memory, so_far: _Progress, now: datetime, days: int, rng: random.Random, asked: int
) -> Month:
    memories = characters = 0
    hits: list[bool] = []
    old: list[bool] = []
    right: list[bool] = []
    for number, user in enumerate(so_far.users):
        for types in (None, ["message"]):
            cursor = None
            while True:
                page = await memory.list(user_id=user, memory_types=types, limit=1000, cursor=cursor)
                memories += len(page.items)
                characters += sum(len(item.content) for item in page.items)
                cursor = page.next_cursor
                if cursor is None:
                    break
        planted = so_far.planted[user]
        for one in rng.sample(planted, min(asked, len(planted))):
            hit = await _hit(memory, user, one.question, one.answer)
            hits.append(hit)
            if now - one.stated_at > timedelta(days=90):
                old.append(hit)
        words = CHINESE if number % 2 else ENGLISH
        for name, value in so_far.current[user].items():
            right.append(await _knows(memory, user, name, value))
            hits.append(await _hit(memory, user, words.ask[name], value))
    return Month(
        days=days,
        memories=memories / len(so_far.users),
        characters=characters / len(so_far.users),
        hit_rate=_share(hits),
        old_hit_rate=_share(old),
        correct=_share(right),
        questions=len(hits),
    )


def _share(values: Sequence[bool]) -> float:
    return sum(values) / len(values) if values else 1.0


async def _hit(memory: Memory, user: str, question: str, answer: str) -> bool:
    found = await memory.search(question, user_id=user, limit=3)
    items = await memory.get_many([hit.id for hit in found.hits], user_id=user)
    return any(answer in item.content for item in items)


async def _knows(memory: Memory, user: str, name: str, value: str) -> bool:
    """Return True if exactly one current memory has the attribute, with the current value."""
    page = await memory.list(user_id=user, memory_types=["fact", "preference"], limit=1000)
    held = [item.content for item in page.items if item.data.get("attribute") == FACTS[name]]
    return len(held) == 1 and value in held[0]


# -- the plot -------------------------------------------------------------------------------------------------------

COLOURS = {"everything": "#d98032", "kept": "#3569b0"}
NAMES = {"everything": "keeping everything", "kept": "with maintenance"}
WIDTH, HEIGHT, LEFT, TOP, GAP = 300, 170, 60, 60, 90


def plot(year: Year) -> str:
    panels = (
        ("active memories per user", lambda month: month.memories, None),
        ("planted questions answered in the top 3, %", lambda month: 100 * month.hit_rate, 100.0),
    )
    lines = [_text(LEFT, 24, f"A simulated year: {year.users} users", bold=True)]
    for at, (name, colour) in enumerate(COLOURS.items()):
        x = LEFT + 260 + at * 170
        lines.append(f'<rect x="{x}" y="15" width="11" height="11" fill="{colour}"/>')
        lines.append(_text(x + 17, 25, NAMES[name]))
    for number, (title, value, most) in enumerate(panels):
        lines += _panel(year, title, value, most, LEFT + number * (WIDTH + GAP))
    width, height = LEFT + 2 * (WIDTH + GAP), TOP + HEIGHT + 60
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return "\n".join(
        (
            f'{head} font-family="system-ui, sans-serif">',
            f"<title>A simulated year of {year.users} users, with maintenance and without</title>",
            f'<rect width="{width}" height="{height}" fill="#fff"/>',
            *lines,
            "</svg>\n",
        )
    )


def _panel(year: Year, title: str, value: Callable[[Month], float], most: float | None, left: int) -> list[str]:
    top = most or max(value(month) for month in (*year.everything, *year.kept))
    days = max(month.days for month in year.everything)
    lines = [_text(left, TOP - 8, title)]
    for step in range(5):
        y = TOP + HEIGHT - HEIGHT * step / 4
        lines.append(f'<line x1="{left}" y1="{y:.1f}" x2="{left + WIDTH}" y2="{y:.1f}" stroke="#ddd"/>')
        lines.append(_text(left - 6, y + 4, f"{top * step / 4:,.0f}", anchor="end", colour="#666"))
    for month in year.everything[2::3]:
        x = left + WIDTH * month.days / days
        lines.append(_text(x, TOP + HEIGHT + 18, f"{month.days}", anchor="middle", colour="#666"))
    lines.append(_text(left + WIDTH / 2, TOP + HEIGHT + 36, "days", anchor="middle", colour="#666"))
    for name, months in (("everything", year.everything), ("kept", year.kept)):
        points = " ".join(
            f"{left + WIDTH * month.days / days:.1f},{TOP + HEIGHT - HEIGHT * value(month) / top:.1f}"
            for month in months
        )
        lines.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[name]}" stroke-width="2.5"/>')
    return lines


def _text(x: float, y: float, text: str, *, anchor: str = "start", colour: str = "#222", bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" font-size="12"{weight}>{text}</text>'


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.year", description=__doc__)
    parser.add_argument("--users", type=int, default=50)
    parser.add_argument("--days", type=int, default=360)
    parser.add_argument(
        "--every-days", type=float, default=15.0, help="days between two sessions of a user, on average"
    )
    parser.add_argument("--asked", type=int, default=6, help="planted questions per user and month")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--svg", type=Path, help="write the plot there")
    parser.add_argument("--json", type=Path, help="write the figures there")
    given = parser.parse_args()
    year = simulate(
        Plan(users=given.users, days=given.days, every_days=given.every_days, seed=given.seed, asked=given.asked)
    )
    print(
        "days  memories     letters      top-3, %     older than 90 days   current facts right, %   (kept / everything)"
    )
    for kept, every in zip(year.kept, year.everything, strict=True):
        print(
            f"{kept.days:4}  {kept.memories:5.0f} /{every.memories:5.0f}"
            f"  {kept.characters:6.0f} /{every.characters:6.0f}"
            f"  {100 * kept.hit_rate:5.1f} /{100 * every.hit_rate:5.1f}"
            f"  {100 * kept.old_hit_rate:5.1f} /{100 * every.old_hit_rate:5.1f}"
            f"  {100 * kept.correct:5.1f} /{100 * every.correct:5.1f}  ({kept.questions} questions)"
        )
    if given.svg:
        given.svg.write_text(plot(year), encoding="utf-8")
    if given.json:
        given.json.write_text(json.dumps(asdict(year), indent=2) + "\n")


if __name__ == "__main__":
    main()
