"""A slice of the simulated year: fewer memories, the same answers."""

from __future__ import annotations

from pathlib import Path

from bench.year import CachedEmbedder, Month, Plan, Year, live, plot

from jiyi.embed import BuiltinEmbedder
from support import LONG


async def test_maintenance_bounds_memories_and_keeps_answers(tmp_path: Path, builtin: BuiltinEmbedder) -> None:
    users, days = (10, 360) if LONG else (1, 60)
    plan = Plan(users=users, days=days, every_days=10.0, seed=7, asked=6)
    embedder = CachedEmbedder(builtin)
    everything = (await live(tmp_path, embedder, plan, maintain=False))[-1]
    kept = (await live(tmp_path, embedder, plan, maintain=True))[-1]
    assert kept.memories < (0.5 if LONG else 0.9) * everything.memories
    assert kept.correct >= everything.correct, "the current value is the last stated one"
    assert kept.hit_rate >= everything.hit_rate - max(0.02, 1 / kept.questions)


def test_the_plot_shows_both_stores() -> None:
    months = [
        Month(days=days, memories=days, characters=1, hit_rate=1, old_hit_rate=1, correct=1, questions=1)
        for days in (30, 60, 90)
    ]
    drawn = plot(Year(users=2, everything=months, kept=months))
    assert drawn.startswith("<svg") and drawn.count("<polyline") == 4
