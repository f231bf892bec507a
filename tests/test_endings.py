"""What a message says is over ends the statement about it, and no other."""

from __future__ import annotations

import re

import pytest

from jiyi import Memory
from support import said, stored

MISSED = pytest.mark.xfail(reason="the reader is not sure enough of it")
ENDINGS = [
    ("I drive a blue Golf.", "I sold the Golf yesterday."),
    ("I have a subscription to the Times.", "I cancelled my Times subscription."),
    ("I take vitamin D every morning.", "I stopped taking vitamin D."),
    ("我有一辆蓝色的高尔夫。", "我把高尔夫卖了。"),
    ("我每周日打网球。", "我不打网球了。"),
]


@pytest.mark.usefixtures("changes_are_read")
@pytest.mark.parametrize(
    ("first", "then"), [pytest.param(*one, marks=[MISSED] if "Times" in one[0] else []) for one in ENDINGS]
)
async def test_an_ending_ends_what_it_names_and_nothing_else(extracting_memory: Memory, first: str, then: str) -> None:
    others = [one for one, _ in ENDINGS if one != first]
    await said(extracting_memory, *others, first, then)
    left = {content.rstrip(".。") for content in await held(extracting_memory)}
    assert first.rstrip(".。") not in left
    assert {one.rstrip(".。") for one in others} <= left


MOVED = [
    ("My dentist appointment is on Thursday at 9:15.", "The dentist moved my appointment to Friday at 14:00."),
    ("I'm meeting Karin for lunch on Wednesday.", "Karin rescheduled our lunch to Friday."),
    ("My flight to Oslo leaves on May 3.", "My flight to Oslo was pushed back to May 5."),
    ("家长会在下周二。", "家长会推迟到下周四了。"),
]
NOT_MOVED = [
    ("My dentist appointment is on Thursday at 9:15.", "I moved my desk to the window."),
    ("My exam on calculus is on Friday.", "I moved my desk to the window on Friday."),
    ("I work at the exam office.", "The exam was moved to Friday."),
    ("I'm meeting Karin for lunch on Wednesday.", "The concert was postponed to June 3."),
]


async def held(memory: Memory) -> set[str]:
    """Return the derived memories, without the dates that were added."""
    found = [item.content for item in await stored(memory) if item.memory_type != "message"]
    return {re.sub(r" ?[(（]\d{4}-[^()（）]*[)）]", "", content) for content in found}


@pytest.mark.usefixtures("changes_are_read")
@pytest.mark.parametrize(("first", "then"), MOVED)
async def test_what_takes_place_at_another_time_ends_the_old_one(
    extracting_memory: Memory, first: str, then: str
) -> None:
    await said(extracting_memory, first, then)
    assert await held(extracting_memory) == {then}


@pytest.mark.usefixtures("changes_are_read")
@pytest.mark.parametrize(("first", "then"), NOT_MOVED)
async def test_what_is_moved_elsewhere_ends_nothing(extracting_memory: Memory, first: str, then: str) -> None:
    await said(extracting_memory, first, then)
    assert first in await held(extracting_memory)


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("I work at Arcadis.", "I switched jobs: since Monday I'm at Fugro."),
        ("I work at Arcadis.", "I got a new job at Fugro."),
        ("I work at Arcadis.", "I've been working at Fugro since March."),
        ("我在华为上班。", "我换工作了，现在在腾讯。"),
        ("我在华为做工程师。", "我跳槽到腾讯了。"),
    ],
)
async def test_a_new_employer_ends_the_old_one(extracting_memory: Memory, first: str, then: str) -> None:
    await said(extracting_memory, first, then)
    assert await held(extracting_memory) == {then}


async def test_a_new_employer_does_not_end_a_job_in_a_town(extracting_memory: Memory) -> None:
    await said(extracting_memory, "我在苏州做产品经理。", "我换工作了，现在在拼多多。")
    assert await held(extracting_memory) == {"我在苏州做产品经理。", "我换工作了，现在在拼多多。"}


async def test_who_changes_jobs_to_stay_at_home_has_no_employer(extracting_memory: Memory) -> None:
    await said(extracting_memory, "我在华为上班。", "我换工作了，现在在家休息。")
    assert "我在华为上班。" in await held(extracting_memory)
