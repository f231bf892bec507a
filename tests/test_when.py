"""Times that a statement names: where they lie, what comes again, and what stays undated."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from conftest import WordEmbedder
from jiyi import Memory
from jiyi.models.shown_dates import date_label, with_dates
from jiyi.write.extract import times_in

ROWS: dict[str, list[dict[str, Any]]] = tomllib.loads(Path(__file__).with_name("write_dates.toml").read_text("utf-8"))
SAID_AT = datetime(2026, 11, 19, 10, 30, tzinfo=UTC)  # Thursday


def dates_of(row: dict[str, Any]) -> str:
    times = times_in(row["text"], row.get("said", SAID_AT))
    return "; ".join(filter(None, (date_label(time.as_data()) for time in times)))


@pytest.mark.parametrize("row", ROWS["build"], ids=lambda row: row["text"])
def test_a_time_is_the_one_that_a_person_understands(row: dict[str, Any]) -> None:
    assert dates_of(row) in row["when"].split(" | ")
    if "recurs" in row:
        times = times_in(row["text"], row.get("said", SAID_AT))
        assert [time.recurrence for time in times] == [row["recurs"]]


def test_of_sentences_that_nothing_was_built_on_nine_in_ten_get_the_right_dates() -> None:
    wrong = [row["text"] for row in ROWS["report"] if dates_of(row) not in row["when"].split(" | ")]
    assert len(wrong) <= 0.08 * len(ROWS["report"]), wrong


@pytest.mark.parametrize("rows", ["build", "report"])
async def test_the_text_of_a_memory_is_what_was_said(rows: str, tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "m.db", embedder=WordEmbedder(64)) as memory:
        for number, row in enumerate(ROWS[rows]):
            message = {"role": "user", "content": row["text"], "sent_at": row.get("said", SAID_AT)}
            await memory.add([message], user_id="mei", session_id=f"{number}")
        messages = (await memory.list(user_id="mei", memory_types=["message"], limit=100)).items
        derived = (await memory.list(user_id="mei", limit=100)).items
    said = "\n".join(row["text"] for row in ROWS[rows])
    assert sorted(item.content for item in messages) == sorted(row["text"] for row in ROWS[rows])
    assert derived
    assert [item.content for item in derived if item.content not in said] == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("I fly on Friday", "(2026-11-20) I fly on Friday"),
        (
            "On Monday I'll see Ann, my lease ends in two weeks.",
            "(Monday = 2026-11-23, in two weeks = 2026-12-03) On Monday I'll see Ann, my lease ends in two weeks.",
        ),
        ("The flat was built in 1974.", "The flat was built in 1974."),
        ("I play tennis every Tuesday.", "I play tennis every Tuesday."),
        ("去年五月开始吃素", "(2025-05) 去年五月开始吃素"),
    ],
)
async def test_dates_are_shown_before_the_text(text: str, shown: str, tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "m.db", embedder=WordEmbedder(64)) as memory:
        receipt = await memory.add([{"role": "user", "content": text, "sent_at": SAID_AT}], user_id="mei")
        [message] = [item for item in receipt.memories if item.memory_type == "message"]
        found = await memory.search(text, user_id="mei", memory_types=["message"])
    assert (message.content, message.dated_text, found.hits[0].summary) == (text, shown, shown)


async def test_the_same_words_of_another_week_are_another_memory(tmp_path: Path) -> None:
    text = "Remind me to pay Anna back on Friday."
    async with Memory.open(tmp_path / "m.db", embedder=WordEmbedder(64)) as memory:
        for week in range(2):
            said_at = SAID_AT + timedelta(weeks=week)
            await memory.add(
                [{"role": "user", "content": text, "sent_at": said_at}], user_id="mei", session_id=f"{week}"
            )
        messages = (await memory.list(user_id="mei", memory_types=["message"])).items
        derived = (await memory.list(user_id="mei")).items
    for items in (messages, derived):
        assert sorted(item.dated_text for item in items) == [f"(2026-11-20) {text}", f"(2026-11-27) {text}"]


async def test_an_edited_text_keeps_the_dates_that_it_still_names(tmp_path: Path) -> None:
    said = "I moved to Lisbon on Friday."
    async with Memory.open(tmp_path / "m.db", embedder=WordEmbedder(64)) as memory:
        receipt = await memory.add([{"role": "user", "content": said, "sent_at": SAID_AT}], user_id="mei")
        [fact] = [item for item in receipt.memories if item.memory_type != "message"]
        corrected = await memory.update(fact.id, user_id="mei", content="I moved to Porto on Friday.")
        undated = await memory.update(fact.id, user_id="mei", content="I moved to Porto.")
    assert fact.dated_text == "(2026-11-13) I moved to Lisbon on Friday."
    assert corrected.dated_text == "(2026-11-13) I moved to Porto on Friday."
    assert undated.dated_text == "I moved to Porto."


def test_texts_with_dates_of_earlier_versions_are_still_shown() -> None:
    assert with_dates("I fly on Friday", {"dated": "I fly on Friday (2026-11-20)"}) == "I fly on Friday (2026-11-20)"


@pytest.mark.parametrize(
    "when", [None, 5, "Friday", [1], [{"text": "Friday"}], [{"text": 1, "start": "x", "end": "y"}]]
)
def test_data_of_other_programs_is_no_date(when: Any) -> None:
    assert with_dates("I fly on Friday", {"when": when}) == "I fly on Friday"
