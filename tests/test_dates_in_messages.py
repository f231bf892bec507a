"""Relative dates of a message are shown with the date they mean, seen from when it was sent."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from conftest import WordEmbedder
from jiyi import Memory
from jiyi.write.when import resolve

TUESDAY = datetime(2025, 6, 10, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("i graduated sunday, they let me", "(2025-06-08) i graduated sunday, they let me"),
        ("signed the lease friday", "(2025-06-06) signed the lease friday"),
        ("sold the civic yesterday", "(2025-06-09) sold the civic yesterday"),
        ("we moved in on saturday!!", "(2025-06-07) we moved in on saturday!!"),
        ("the baby came last night", "(2025-06-09) the baby came last night"),
        ("she was born friday the 6th, tiny", "(2025-06-06) she was born friday the 6th, tiny"),
        ("Njeri left on the 3rd.", "(2025-06-03) Njeri left on the 3rd."),
        ("teen night on the 21st. im nervous", "(2025-06-21) teen night on the 21st. im nervous"),
        ("The dentist moved me to the 21st.", "(2025-06-21) The dentist moved me to the 21st."),
        ("booked the vet for friday", "(2025-06-13) booked the vet for friday"),
        ("周六生了，是个女孩", "(2025-06-07) 周六生了，是个女孩"),
        ("婚礼推到7月11号了", "(2025-07-11) 婚礼推到7月11号了"),
        ("my exam is on friday", "(2025-06-13) my exam is on friday"),
        ("周五交房租。", "(2025-06-13) 周五交房租。"),
        ("I swam every friday last year", "(2024) I swam every friday last year"),
    ],
)
async def test_a_relative_date_is_shown_with_the_day_it_means(said: str, shown: str, tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "m.db", embedder=WordEmbedder(64)) as memory:
        message = {"role": "user", "content": said, "sent_at": TUESDAY}
        await memory.jobs.wait(await memory.add([message], user_id="mei"), user_id="mei")
        found = await memory.search(said, user_id="mei", limit=5, memory_types=["message"])
        assert shown in [hit.summary for hit in found.hits]


@pytest.mark.parametrize(
    ("said", "dates"),
    [("We met Anna on November 22.", ["2024-11-22"]), ("We met Anna on November 21.", [])],
    ids=["200 days ago", "201 days ago"],
)
def test_a_day_that_is_long_past_or_soon_to_come_gets_no_year(said: str, dates: list[str]) -> None:
    found = resolve(said, datetime(2025, 6, 10, tzinfo=UTC), future=False)
    assert [f"{time.start:%F}" for time in found] == dates
