"""Messages without id and time: what was delivered before is known, what was said twice is kept twice."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from jiyi import Memory
from jiyi.testing import WordEmbedder
from jiyi.write.accept import _where
from support import stored

TALK = [
    {"role": "user", "content": "我下周三去上海出差"},
    {"role": "assistant", "content": "好的，记住了"},
    {"role": "user", "content": "ok"},
    {"role": "user", "content": "and I need a hotel near the station"},
    {"role": "user", "content": "ok"},
]


async def said(memory: Memory, **where: str) -> list[str]:
    return [one.content for one in reversed(await stored(memory, memory_types=["message"], **where))]


async def test_a_conversation_added_again_makes_nothing_new(memory: Memory) -> None:
    first = await memory.add(TALK, user_id="mei", session_id="s")
    assert first.created >= 5
    again = await memory.add(TALK, user_id="mei", session_id="s")
    assert again.created == 0
    assert await said(memory) == [message["content"] for message in TALK]


async def test_a_conversation_that_grows_is_gone_on_with(memory: Memory) -> None:
    for length in range(1, len(TALK) + 1):
        await memory.add(TALK[:length], user_id="mei", session_id="s")
    assert await said(memory) == [message["content"] for message in TALK]


async def test_an_overlap_is_known_and_the_rest_is_new(memory: Memory) -> None:
    await memory.add(TALK[:3], user_id="mei", session_id="s")
    await memory.add(TALK[1:], user_id="mei", session_id="s")
    assert await said(memory) == [message["content"] for message in TALK]


async def test_an_earlier_part_is_recognised_later(memory: Memory) -> None:
    await memory.add(TALK[:2], user_id="mei", session_id="s")
    await memory.add(TALK[2:], user_id="mei", session_id="s")
    assert (await memory.add(TALK[:2], user_id="mei", session_id="s")).created == 0
    assert len(await said(memory)) == 5


async def test_one_message_said_again_later_is_kept_however_long(memory: Memory) -> None:
    long = {"role": "user", "content": "I need a quiet hotel near the main station in Hamburg"}
    for message in (long, {"role": "assistant", "content": "Noted."}, long):
        await memory.add([message], user_id="mei", session_id="s")
    assert len(await said(memory)) == 3
    short = [{"role": "user", "content": "ok"}, {"role": "assistant", "content": "好"}]
    for _ in range(2):  # two short ones may be said again too
        await memory.add(short, user_id="mei", session_id="t")
        await memory.add([{"role": "user", "content": "and then?"}], user_id="mei", session_id="t")
    assert len(await said(memory, session_id="t")) == 6


async def test_ok_said_again_later_is_kept(memory: Memory) -> None:
    for message in TALK:
        await memory.add(message, user_id="mei", session_id="s")
    assert (await said(memory)).count("ok") == 2
    await memory.add([{"role": "user", "content": "really?"}], user_id="mei", session_id="s")
    await memory.add([{"role": "user", "content": "ok"}], user_id="mei", session_id="s")
    assert (await said(memory)).count("ok") == 3


async def test_other_sessions_agents_and_groups_have_their_own(memory: Memory) -> None:
    for where in (
        {"session_id": "a"},
        {"session_id": "b"},
        {"session_id": "a", "agent_id": "x"},
        {"group_id": "g"},
        {},
    ):
        assert (await memory.add(TALK, user_id="mei", **where)).created >= 5, where
        assert (await memory.add(TALK, user_id="mei", **where)).created == 0, where
    assert (await memory.add(TALK, user_id="tom", session_id="a")).created >= 5


async def test_two_at_once_make_one_conversation(path: Path) -> None:
    async with Memory.open(path, embedder=WordEmbedder()) as one, Memory.open(path, embedder=WordEmbedder()) as two:
        talks = [memory.add(TALK, user_id="mei", session_id="s") for memory in (one, two, one, two)]
        await asyncio.gather(*talks)
        assert sorted(await said(one)) == sorted(message["content"] for message in TALK)


@given(st.lists(st.sampled_from("ab"), max_size=6), st.lists(st.sampled_from("ab"), min_size=1, max_size=6))
def test_what_follows_the_overlap_is_kept(held: list[str], given_: list[str]) -> None:
    """Whatever is recognised stands there in this order, up to the session's end or the list's."""
    start = _where([("u", None, text) for text in given_], [("u", None, text) for text in held])
    if start is not None:
        known = held[start : start + len(given_)]
        assert given_[: len(known)] == known
        assert start + len(known) == len(held) or len(known) == len(given_)
