"""Relative dates of a message are shown with the date they mean, seen from when it was sent."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from conftest import WordEmbedder
from jiyi import Memory
from jiyi.write.dated import with_dates

TUESDAY = datetime(2025, 6, 10, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("i graduated sunday, they let me", "i graduated sunday (2025-06-08), they let me"),
        ("signed the lease friday", "signed the lease friday (2025-06-06)"),
        ("sold the civic yesterday", "sold the civic yesterday (2025-06-09)"),
        ("we moved in on saturday!!", "we moved in on saturday (2025-06-07)!!"),
        ("the baby came last night", "the baby came last night (2025-06-09)"),
        ("she was born friday the 6th, tiny", "she was born friday the 6th (2025-06-06), tiny"),
        ("Njeri left on the 3rd.", "Njeri left on the 3rd (2025-06-03)."),
        ("teen night on the 21st. im nervous", "teen night on the 21st (2025-06-21). im nervous"),
        ("The dentist moved me to the 21st.", "The dentist moved me to the 21st (2025-06-21)."),
        ("booked the vet for friday", "booked the vet for friday (2025-06-13)"),
        ("周六生了，是个女孩", "周六（2025-06-07）生了，是个女孩"),
        ("婚礼推到7月11号了", "婚礼推到7月11号（2025-07-11）了"),
        ("my exam is on friday", "my exam is on friday (2025-06-13)"),
        ("周五交房租。", "周五（2025-06-13）交房租。"),
        ("I swam every friday last year", "I swam every friday last year"),
    ],
)
async def test_a_relative_date_is_shown_with_the_day_it_means(said: str, shown: str, tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "m.db", embedder=WordEmbedder(64)) as memory:
        message = {"role": "user", "content": said, "sent_at": TUESDAY}
        await memory.jobs.wait(await memory.add([message], user_id="mei"), user_id="mei")
        found = await memory.search(said, user_id="mei", limit=5, memory_types=["message"])
        assert shown in [hit.summary for hit in found.hits]


@pytest.mark.parametrize(
    ("said", "shown"),
    [("We met Anna on November 22.", "We met Anna on November 22 (2024-11-22)."), ("We met Anna on November 21.",) * 2],
    ids=["200 days ago", "201 days ago"],
)
def test_a_day_that_is_long_past_or_soon_to_come_gets_no_year(said: str, shown: str) -> None:
    assert with_dates(said, datetime(2025, 6, 10, tzinfo=UTC), future=False) == shown
