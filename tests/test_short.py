"""A tight budget is not spent on how things were said."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from conftest import WordEmbedder
from jiyi import Memory
from jiyi.read.short import in_short
from test_context import T, item

CHATTER = ", and we talked for hours about the weather, the long queue at the bakery and everything else"
SAID = [
    ("My sister Anna is allergic to peanuts", "Anna is allergic to peanuts"),
    ("My brother Tom is allergic to shrimps", "Tom is allergic to shrimps"),
    ("My cousin Eva is allergic to walnuts", "Eva is allergic to walnuts"),
    ("My uncle Max is allergic to sesame", "Max is allergic to sesame"),
    ("My aunt Ida is allergic to lupins", "Ida is allergic to lupins"),
    ("My nephew Leo is allergic to celery", "Leo is allergic to celery"),
]


async def filled(memory: Memory) -> None:
    for number, (said, _) in enumerate(SAID):
        text = f"Well, you know how it is on Sundays in the old town{CHATTER}. {said}. Yes, really{CHATTER}!"
        message = {"role": "user", "content": text}
        await memory.jobs.wait(await memory.add([message], user_id="mei", session_id=f"s{number}"), user_id="mei")


async def test_where_not_all_fit_the_best_are_told_as_they_were_said_and_others_in_short(place: str | Path) -> None:
    async with Memory.open(place, embedder=WordEmbedder(512)) as memory:
        await filled(memory)
        roomy = await memory.context("Who is allergic to what?", user_id="mei", max_tokens=5000)
        assert roomy.count("Well, you know how it is") == len(SAID)
        tight = await memory.context("Who is allergic to what?", user_id="mei", max_tokens=500)
        told = [gist for _, gist in SAID if gist in tight]
        assert told == [gist for _, gist in SAID], "each of them finds room"
        assert tight.count("Well, you know how it is") == 3


async def test_whoever_asks_for_messages_gets_messages(place: str | Path) -> None:
    async with Memory.open(place, embedder=WordEmbedder(512)) as memory:
        await filled(memory)
        tight = await memory.context("allergic", user_id="mei", max_tokens=500, memory_types=["message"])
        assert "Known Facts" not in tight


@pytest.mark.parametrize("change", [{"valid_to": T}, {"expires_at": T}])
async def test_what_a_search_would_not_find_is_no_short_form(place: str | Path, change: dict[str, datetime]) -> None:
    async with Memory.open(place, embedder=WordEmbedder(512)) as memory:
        await filled(memory)
        for item in (await memory.list(user_id="mei", limit=100)).items:
            if item.memory_type == "fact":
                await memory.update(item.id, user_id="mei", **change)  # type: ignore[arg-type]
            elif item.memory_type != "message":
                await memory.delete(item.id, user_id="mei")
        tight = await memory.context("Who is allergic to what?", user_id="mei", max_tokens=500)
        assert "What Happened" in tight
        assert "Known Facts" not in tight


def test_the_best_and_what_is_no_shorter_are_told_as_they_are() -> None:
    long = [item(f"what was said, at length and in many words, {number}", "message") for number in range(5)]
    short, longer = item("in short"), item("longer than " + long[0].content)
    gists = {memory.id: [short] for memory in long if memory is not long[3]}
    assert list(in_short(long, gists)) == [*long[:4], short]
    assert list(in_short(long, {long[4].id: [longer]})) == long
