"""Whoever asks for what is so now is not answered with what was: what took its place stands first."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import WordEmbedder
from jiyi import Hit, Memory
from jiyi.index.query import Candidates, IndexQuery
from jiyi.index.relations import ABOUT, NONE, Derivations
from jiyi.index.user_index import UserIndex
from jiyi.models import to_micros
from jiyi.read.query import asks_for_the_past
from jiyi.read.score import MAX_ENDED
from jiyi.scope import Filter
from jiyi.settings import load_settings
from test_userindex import row_of

BEGAN = datetime(2026, 3, 1, 10, tzinfo=UTC)
NOW = BEGAN + timedelta(days=300)
Place = str | Path


async def tell(memory: Memory, *said: str) -> None:
    for number, text in enumerate(said):
        message = {"role": "user", "content": text, "sent_at": BEGAN + timedelta(days=30 * number)}
        await memory.jobs.wait(await memory.add([message], user_id="mei", session_id=f"s{number}"), user_id="mei")


async def found(memory: Memory, query: str, **filters: object) -> list[Hit]:
    result = await memory.search(query, user_id="mei", limit=20, explain=True, asked_at=NOW, **filters)  # type: ignore[arg-type]
    return list(result.hits)


async def messages(memory: Memory, query: str, **filters: object) -> list[str]:
    return [hit.content for hit in await found(memory, query, **filters)]


CHANGES = [
    ("I live in Lyon near the river.", "Big news: I moved to Lisbon.", "Where do I live?"),
    ("My favourite tea is jasmine.", "My favourite tea is oolong now.", "What is my favourite tea?"),
    ("I work as a nurse at the clinic.", "I now work as a teacher at a school.", "What do I work as?"),
    ("I'm on the payments team.", "They're moving me to the search team.", "Which team am I on?"),
    ("我住在杭州西湖边。", "告诉你个消息，我搬到成都了。", "我住在哪里？"),
    ("我最喜欢的茶是茉莉花茶。", "我最喜欢的茶现在是乌龙茶。", "我最喜欢的茶是什么？"),
    ("我在医院当护士。", "我换工作了，现在在学校当老师。", "我在哪里工作？"),
]
OTHERS = ("I read a book about whales.", "今天天气很好，去公园散步了。")


@pytest.mark.parametrize(("old", "new", "query"), CHANGES)
async def test_what_is_so_now_stands_before_what_was(old: str, new: str, query: str, place: Place) -> None:
    async with Memory.open(place, embedder=WordEmbedder(512)) as memory:
        await tell(memory, old, *OTHERS, new)
        hits = await found(memory, query)
        said = [hit.content_preview for hit in hits]
        assert said[0] == new
        assert old in said, "what was said stays findable"
        assert hits[said.index(old)].outdated and not hits[0].outdated
        assert hits[said.index(old)].relevance_score <= MAX_ENDED, "the outdated statement makes way"


async def test_the_latest_of_many_changes_answers_and_each_at_its_time(place: Place) -> None:
    said = ["I live in Lyon.", "I moved to Lisbon.", "I moved to Oslo.", "I moved to Rome."]
    async with Memory.open(place, embedder=WordEmbedder(512)) as memory:
        await tell(memory, *said)
        assert (await messages(memory, "Where do I live?"))[0] == "I moved to Rome."
        for number, text in enumerate(said):
            at = BEGAN + timedelta(days=30 * number + 10)
            assert (await messages(memory, "Where do I live?", as_of=at))[0] == text
        assert (await messages(memory, "Where did I live before?"))[0] == "I live in Lyon."


async def test_a_message_that_says_something_else_too_is_found_for_that(place: Place) -> None:
    old = "I live in Lyon, and my sister Anna is allergic to peanuts."
    async with Memory.open(place, embedder=WordEmbedder(512)) as memory:
        await tell(memory, old, "I moved to Lisbon.")
        assert (await messages(memory, "Where do I live?"))[0] == "I moved to Lisbon."
        assert (await messages(memory, "Is Anna allergic to peanuts?"))[0] == "my sister Anna is allergic to peanuts."
        assert "I live in Lyon" in await messages(memory, "Where did I live before?")


async def test_who_catches_up_with_a_change_and_who_loads_it_agree(place: Place) -> None:
    async with (
        Memory.open(place, embedder=WordEmbedder(512)) as early,
        Memory.open(place, embedder=WordEmbedder(512)) as memory,
    ):
        await tell(memory, "I live in Lyon.")
        assert await messages(early, "Where do I live?") == ["I live in Lyon."]
        await tell(memory, "I live in Lyon.", "I moved to Lisbon.")
        async with Memory.open(place, embedder=WordEmbedder(512)) as late:
            order = [await messages(one, "Where do I live?") for one in (early, memory, late)]
            assert order == [["I moved to Lisbon.", "I live in Lyon."]] * 3
        [new] = [
            item for item in (await memory.list(user_id="mei", memory_types=["fact"])).items if "Lisbon" in item.content
        ]
        await memory.update(new.id, user_id="mei", tags=["seen"])  # which gives it another place in the copy
        assert (await messages(early, "Where do I live?"))[0] == "I moved to Lisbon."


OVER = [
    ("I have a Honda Civic.", "sold the civic yesterday", "Do I have a Honda Civic?"),
    ("I take ramipril for my blood pressure.", "They've taken me off the ramipril.", "Do I take ramipril?"),
    ("我每周三上钢琴课。", "钢琴课停了", "我每周三上什么课？"),
]
UNSURE = [
    ("My cat is called Mochi.", "Mochi died yesterday.", "What is my cat called?"),
    ("I signed up for the Cork marathon.", "So I'm out of the marathon, gutted.", "Do I run the Cork marathon?"),
    ("我家猫叫团子。", "团子昨天去世了", "我家猫叫什么？"),
]
MISSED = pytest.mark.xfail(reason="the reader is not sure enough of it")


@pytest.mark.usefixtures("changes_are_read")
@pytest.mark.parametrize(("old", "new", "query"), [*OVER, *(pytest.param(*one, marks=MISSED) for one in UNSURE)])
async def test_what_is_over_with_nothing_in_its_place_makes_way(old: str, new: str, query: str, place: Place) -> None:
    async with Memory.open(place, embedder=WordEmbedder(512)) as memory:
        await tell(memory, old, new)
        hits = {hit.content_preview: hit for hit in await found(memory, query)}
        assert hits[old].outdated and hits[old].relevance_score <= MAX_ENDED


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I live in Berlin.", "The Berlin marathon was cancelled."),
        ("My dog is called Rex.", "My phone died lol."),
        ("I love the Boulder hall.", "I stopped by the Boulder hall."),
    ],
)
async def test_the_end_of_something_else_ends_nothing(old: str, new: str, place: Place) -> None:
    async with Memory.open(place, embedder=WordEmbedder(512)) as memory:
        await tell(memory, old, new)
        current = await memory.list(user_id="mei", memory_types=["fact", "preference"])
        assert old in [item.content for item in current.items]


async def test_the_plain_formulas_stay_as_they_are_written(place: Place) -> None:
    plain = load_settings(search={"preset": "two_legs"})
    async with Memory.open(place, embedder=WordEmbedder(512), settings=plain) as memory:
        await tell(memory, "I live in Lyon.", "I moved to Lisbon.")
        assert (await messages(memory, "Where do I live?"))[0] == "I live in Lyon."


@pytest.mark.parametrize(
    ("query", "past"),
    [
        ("Where did I live before?", True),
        ("What was my previous job?", True),
        ("我以前住在哪里", True),
        ("我上一份工作是什么", True),
        ("Where do I live?", False),
        ("How old am I?", False),
        ("我老婆叫什么", False),
        ("旧金山的天气", False),
    ],
)
def test_words_tell_whether_the_past_is_asked_for(query: str, past: bool) -> None:
    assert asks_for_the_past(query, (), NOW) is past


def test_so_does_a_time_that_is_over() -> None:
    week = (BEGAN, BEGAN + timedelta(days=7))
    assert asks_for_the_past("What did I do that week?", [week], NOW)
    assert not asks_for_the_past("What do I do that week?", [week, (NOW, NOW + timedelta(days=1))], NOW)


def asked(index: UserIndex, **filters: object) -> Candidates:
    where = replace(Filter(user_id="mei", now=NOW), **filters)  # type: ignore[arg-type]
    return index.gather(IndexQuery(filter=where, vector=np.array([1, 0], np.float32), model="m"))


def test_what_a_filter_leaves_out_is_not_taken_for_over() -> None:
    index = UserIndex("m", seen=0)
    index.put([replace(row_of("said", "s", vector=(1, 0)), memory_type="message"), row_of("fact", "f", vector=(1, 0))])
    index.link([("fact", "said", None)])
    assert asked(index, memory_types=("message",)).over is None
    ended = replace(row_of("fact", "f", vector=(1, 0)), valid_to=to_micros(BEGAN))
    index.put([ended])
    index.link([("fact", "said", None)])
    over = asked(index, memory_types=("message",)).over
    assert over is not None
    assert over.tolist() == [1]


@given(st.data())
def test_it_agrees_with_following_each_by_hand(data: st.DataObject) -> None:
    size = data.draw(st.integers(2, 9))
    slots = st.integers(0, size - 1)
    flags = st.lists(st.booleans(), min_size=size, max_size=size)
    ended, alive = np.array(data.draw(flags)), np.array(data.draw(flags))
    fit = np.array(data.draw(st.lists(st.sampled_from([0, 0.3, 0.5, 1]), min_size=size, max_size=size)), np.float32)
    after = data.draw(st.lists(st.integers(NONE, size - 1), min_size=size, max_size=size))
    pairs = data.draw(st.lists(st.tuples(slots, slots), max_size=12))
    gists = Derivations()
    gists.add([(gist, message, after[gist]) for gist, message in pairs])
    found = gists.succession(fit, alive, ended)

    living = [(gist, message) for gist, message in pairs if alive[gist] and alive[message]]
    known = {gist for gist, _ in pairs}
    if not any(ended[gist] for gist, _ in living):
        assert found is None
        return
    assert found is not None

    def best(message: int, past: bool) -> float:
        return max((fit[gist] for gist, said in living if said == message and ended[gist] == past), default=0)

    def latest(gist: int) -> int:
        for _ in range(size + 1):
            if gist == NONE or not ended[gist]:
                return gist
            gist = after[gist] if gist in known else NONE
        return NONE

    over = [
        0 < best(said, True) >= best(said, False) and best(said, True) >= np.float32(ABOUT) * fit[said]
        for said in range(size)
    ]
    assert found.outdated.astype(bool).tolist() == over
    wanted = set()
    for gist, said in living:
        if ended[gist] and over[said] and fit[gist] >= best(said, True) and (new := latest(gist)) != NONE:
            wanted |= {(said, target) for target in (new, *(m for g, m in living if g == new)) if not over[target]}
    assert set(zip(found.old.tolist(), found.new.tolist(), strict=True)) == wanted
