"""`search`: what is found, in which order, within which limits, and how the answer tells what happened."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from jiyi import RELEVANT, UNSET, EmbeddingError, InvalidInput, Memory
from jiyi.embed import BuiltinEmbedder
from jiyi.models import to_micros
from jiyi.settings import load_settings
from jiyi.sync import Memory as SyncMemory
from jiyi.testing import Clock, FailingEmbedder, WordEmbedder
from support import DAY, LONG_AGO, NOW, Place, contents, each_case, stored

MODES = ("hybrid", "keyword", "semantic")

# -- words that must be found ---------------------------------------------------------------------------------------

CORPUS = {
    "coffee": "用户早上喜欢喝咖啡，不加糖",
    "tea": "周末下午会泡一壶龙井茶",
    "vegetarian": "我吃素，对花生过敏",
    "shanghai": "下周三要去上海出差，住在静安寺附近",
    "hangzhou": "老家在杭州，每年清明回去扫墓",
    "rust": "用 Rust 写的 parser 比 Python 版快十倍",
    "cat": "养了一只橘猫，名字叫豆腐",
    "dog-zh": "邻居家的狗晚上总是叫",
    "zhang": "张伟是我的大学室友，现在在深圳做硬件",
    "li": "李小龙的电影看过很多遍",
    "ouyang": "欧阳娜娜下个月在北京开演唱会",
    "mother": "妈妈的生日是农历八月十五",
    "running": "每周二和周四晚上在公园跑步五公里",
    "insomnia": "最近总是失眠，医生建议睡前不看手机",
    "guitar-zh": "正在学吉他，已经会弹三首歌",
    "rent": "房租每月四千五百元，押一付三",
    "wechat": "微信号和手机号是同一个",
    "subway": "上班坐地铁二号线，大约四十分钟",
    "exam": "十二月要考日语N2",
    "allergy-zh": "吃海鲜会起疹子",
    "taiwan": "去年冬天去臺灣騎單車環島",
    "traditional": "喜歡聽周杰倫的舊專輯",
    "fullwidth": "项目代号是ＡＬＰＨＡ－７",
    "meeting-zh": "产品评审会改到周五下午三点",
    "hotpot": "最喜欢的火锅店在春熙路",
    "contract": "合同编号是 HT-2024-0317",
    "berlin": "Mei moved to Berlin in May and rents a flat near the canal",
    "window": "She prefers a window seat on long flights",
    "chess": "On Thursdays he plays chess with his grandfather",
    "kubernetes": "The staging cluster runs Kubernetes 1.29.3 on three nodes",
    "python": "We pinned Python to version 3.11.7 because of the wheel for numpy",
    "user-id": "The column user_id is an opaque string of up to 256 characters",
    "camel": "Call getUserName() only after the session has been opened",
    "cpp": "The game engine is written in C++ and ships with a C API",
    "csharp": "Their back office runs on C# and SQL Server",
    "node": "The web frontend is built with node.js and Vite",
    "dotnet-free": "The installer weighs 250 MB and needs no administrator rights",
    "email": "Invoices go to billing@example.org at the end of the month",
    "url": "The handbook lives at https://wiki.example.org/handbook",
    "path": "Logs are written to /var/log/jiyi/server.log every night",
    "flag": "Start it with --no-cache when the disk is slow",
    "error": "Error E4012 means that the licence has expired",
    "marathon": "He finished the Hamburg marathon in 3:52:10",
    "garden": "The tomatoes in the garden were eaten by snails",
    "bakery": "The bakery around the corner closes on Mondays",
    "swimming": "Our daughter learned to swim last summer",
    "piano": "The piano has to be tuned before Christmas",
    "dentist": "Dentist appointment with Dr. Okonkwo on the 14th",
    "siobhan": "Siobhán is the godmother of our son",
    "mueller": "Herr Müller from the tax office called again",
    "car": "The car's inspection is due in October",
    "bicycle": "My bicycle was stolen in front of the library",
    "wine": "She does not drink alcohol, not even wine",
    "budget": "The budget for the offsite is 12,500 euros",
    "password": "The router's admin page is only reachable by cable",
    "release": "Release v2.1 fixes the login bug, v21 was never published",
    "dark": "Dark mode everywhere, and a large font in the editor",
    "standup": "Daily stand-up moved to 9:30 because of the Tokyo team",
    "gpt": "The summaries come from gpt-4o-mini, temperature 0.3",
    "iphone": "He switched from an iPhone 13 to a Pixel",
}

# query → the memory that must come first
FIRST = [
    # two characters inside a sentence
    ("咖啡", "coffee"),
    ("花生", "vegetarian"),
    ("上海", "shanghai"),
    ("橘猫", "cat"),
    ("豆腐", "cat"),
    ("失眠", "insomnia"),
    ("吉他", "guitar-zh"),
    ("房租", "rent"),
    ("地铁", "subway"),
    ("火锅", "hotpot"),
    ("清明", "hangzhou"),
    # one character
    ("茶", "tea"),
    ("狗", "dog-zh"),
    ("猫", "cat"),
    ("疹", "allergy-zh"),
    # Chinese and English in one query
    ("用 Rust 写的 parser", "rust"),
    ("rust parser", "rust"),
    ("日语 N2", "exam"),
    ("N2考试", "exam"),
    # names
    ("张伟", "zhang"),
    ("张伟在哪里工作", "zhang"),
    ("欧阳娜娜", "ouyang"),
    ("娜娜", "ouyang"),
    ("李小龙", "li"),
    ("周杰伦", "traditional"),
    ("Okonkwo", "dentist"),
    ("okonkwo's appointment", "dentist"),
    ("Siobhán", "siobhan"),
    ("Müller", "mueller"),
    ("mei", "berlin"),
    # versions, numbers, codes
    ("1.29.3", "kubernetes"),
    ("3.11.7", "python"),
    ("v2.1", "release"),
    ("HT-2024-0317", "contract"),
    ("E4012", "error"),
    ("12,500", "budget"),
    ("12500 euros", "budget"),
    ("3:52:10", "marathon"),
    ("iPhone 13", "iphone"),
    # identifiers
    ("user_id", "user-id"),
    ("getUserName", "camel"),
    ("user name", "camel"),
    ("C++", "cpp"),
    ("c++ engine", "cpp"),
    ("C#", "csharp"),
    ("node.js", "node"),
    ("billing@example.org", "email"),
    ("wiki.example.org", "url"),
    ("server.log", "path"),
    ("--no-cache", "flag"),
    ("gpt-4o-mini", "gpt"),
    # width and script variants
    ("ＡＬＰＨＡ-7", "fullwidth"),
    ("alpha-7", "fullwidth"),
    ("ｃｏｎｔｒａｃｔ HT-2024-0317", "contract"),
    ("台湾", "taiwan"),
    ("臺灣", "taiwan"),
    ("单车环岛", "taiwan"),
    ("聽歌 舊專輯", "traditional"),
    ("旧专辑", "traditional"),
    ("房租 ４５００", "rent"),
    # inflection
    ("flight seats", "window"),
    ("swam swimming", "swimming"),
    ("finishing a marathon", "marathon"),
]

# query → a memory in the other language that must be among the first three: a sentence of the query's own language can
# be as near in meaning, and two languages never share a word that would decide.
ACROSS = [
    ("what does she drink in the morning?", "coffee"),
    ("coffee without sugar", "coffee"),
    ("travelling to Shanghai for work", "shanghai"),
    ("food allergy", "vegetarian"),
    ("what is the name of the cat?", "cat"),
    ("trouble sleeping", "insomnia"),
    ("monthly rent of the apartment", "rent"),
    ("learning to play the guitar", "guitar-zh"),
    ("她搬到了哪个城市？", "berlin"),
    ("坐飞机喜欢靠窗的座位", "window"),
    ("和爷爷下棋", "chess"),
    ("自行车被偷了", "bicycle"),
    ("看牙医的预约", "dentist"),
    ("面包店星期几关门", "bakery"),
    ("女儿学会了游泳", "swimming"),
    ("不喝酒", "wine"),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, builtin: BuiltinEmbedder) -> Iterator[SyncMemory]:
    """Sixty memories, in both languages, with the real embedder."""
    path = tmp_path_factory.mktemp("library") / "memory.db"
    with SyncMemory.open(path, settings=load_settings(), embedder=builtin) as memory:
        memory.add([{"content": text, "memory_key": key} for key, text in CORPUS.items()], user_id="mei")
        yield memory


def keys(memory: SyncMemory, query: str, **arguments: Any) -> list[str]:
    return [hit.memory_key for hit in memory.search(query, user_id="mei", **arguments).hits]


@each_case(("query", "expected"), FIRST)
def test_the_memory_with_these_words_comes_first(library: SyncMemory, query: str, expected: str) -> None:
    assert keys(library, query)[:1] == [expected]


@each_case(("query", "expected"), FIRST)
def test_words_alone_find_it_too(library: SyncMemory, query: str, expected: str) -> None:
    """Without meaning: so it works when the embedder is down."""
    assert keys(library, query, search_mode="keyword")[:1] == [expected]


@each_case(("query", "expected"), ACROSS)
def test_meaning_crosses_languages(library: SyncMemory, query: str, expected: str) -> None:
    assert expected in keys(library, query, limit=3)


async def test_an_exact_code_is_found_among_many_memories_that_are_alike(real_memory: Memory) -> None:
    near = [
        f"The {thing} printer in room {room} reports a paper jam error" for thing, room in product("ABCDEF", range(15))
    ]
    await real_memory.add([*near, "Grandma's recipe box has a label: QX-7781"], user_id="mei")
    for query in ("QX-7781", "What has the label QX-7781?"):
        assert "QX-7781" in contents(await real_memory.search(query, user_id="mei", limit=1))[0]


async def test_what_only_one_leg_finds_is_found(real_memory: Memory) -> None:
    await real_memory.add(["养了一只橘猫", "zxqv 8812"], user_id="mei")
    assert contents(await real_memory.search("my pet", user_id="mei"))[0] == "养了一只橘猫"
    assert contents(await real_memory.search("zxqv", user_id="mei"))[0] == "zxqv 8812"


@each_case("query", ["%", "_", "100%", "*", '"', "' OR 1=1 --", "\\", "？", "🧠", "的", "the", "a", "\u200b"])
async def test_odd_queries_are_only_text(memory: Memory, query: str) -> None:
    """No character of a query is an operator; none makes it match everything."""
    await memory.add(["likes tea", "喜欢喝茶"], user_id="mei")
    for mode in MODES:
        assert (await memory.search(query, user_id="mei", search_mode=mode)).hits == ()


@pytest.mark.parametrize("text", ["100% wool", "snake_case", "🧠 surgery", "的", "The Who", "???"])
async def test_odd_texts_are_found_by_themselves(real_memory: Memory, text: str) -> None:
    await real_memory.add([text, "喜欢喝茶", "plays chess"], user_id="mei")
    assert contents(await real_memory.search(text, user_id="mei"))[0] == text


async def test_keywords_of_the_caller_are_looked_up(memory: Memory) -> None:
    await memory.add(["likes oolong", "plays chess"], user_id="mei")
    found = await memory.search("what?", user_id="mei", keywords=["Chess"], search_mode="keyword")
    assert contents(found) == ["plays chess"]
    assert found.expanded_keywords == ("chess",)


async def test_tags_are_words_to_search_for(memory: Memory) -> None:
    await memory.add("likes oolong", user_id="mei", tags=["饮料", "Hot Drinks"])
    for query in ("饮料", "hot drinks"):
        assert contents(await memory.search(query, user_id="mei", search_mode="keyword")) == ["likes oolong"]


# -- filters --------------------------------------------------------------------------------------------------------

AT = datetime(2024, 6, 1, tzinfo=UTC)


@pytest.fixture
async def shelf(memory: Memory) -> Memory:
    """Memories that differ in one property each. All share a word, so every mode scores each of them above zero."""
    base = {"user_id": "mei", "occurred_at": AT}
    await memory.add("apple plain", **base)
    await memory.add("apple session", **base, session_id="s1")
    await memory.add("apple agent", **base, agent_id="a1")
    await memory.add("apple group", **base, group_id="g1")
    await memory.add("apple task", **base, memory_type="task")
    await memory.add("apple skill", **base, memory_type="skill")
    await memory.add("apple tagged", **base, tags=["Red", "水果"])
    await memory.add("apple green", **base, tags=["green"])
    await memory.add("apple old", user_id="mei", occurred_at=AT - 400 * DAY)
    await memory.add("apple young", user_id="mei", occurred_at=AT + 10 * DAY)
    await memory.add("apple gone", **base, expires_at=NOW - DAY)
    await memory.add("apple going", **base, expires_at=NOW + DAY)
    await memory.add({"content": "apple past", "valid_from": AT - 30 * DAY, "valid_to": AT - 10 * DAY}, **base)
    await memory.add("apple of bo", user_id="bo", occurred_at=AT, session_id="s1", tags=["red"])
    archived = await memory.add("apple archived", **base)
    await memory.update(archived.memories[0].id, user_id="mei", status="archived")
    return memory


ALIVE = {"plain", "session", "agent", "group", "task", "skill", "tagged", "green", "old", "young", "going"}

FILTERS: list[tuple[dict[str, Any], set[str]]] = [
    ({}, ALIVE),
    ({"session_id": "s1"}, {"session"}),
    ({"session_id": "S1"}, set()),
    ({"agent_id": "a1"}, {"agent"}),
    ({"group_id": "g1"}, {"group"}),
    ({"group_id": "g1", "agent_id": "a1"}, set()),
    ({"memory_types": ["task"]}, {"task"}),
    ({"memory_types": ["task", "skill", "never seen"]}, {"task", "skill"}),
    ({"memory_types": ["never seen"]}, set()),
    ({"memory_types": []}, set()),
    ({"layers": ["procedural"]}, {"skill"}),
    ({"layers": ["procedural", "episodic"]}, {"skill", "task"}),
    ({"layers": []}, set()),
    ({"tags": ["red"]}, {"tagged"}),
    ({"tags": ["ＲＥＤ"]}, {"tagged"}),
    ({"tags": ["水果", "green"]}, {"tagged", "green"}),
    ({"tags": ["re"]}, set()),
    ({"tags": ["apple"]}, set()),
    ({"tags": []}, set()),
    ({"time_range": (AT, None)}, ALIVE - {"old"}),
    ({"time_range": (None, AT)}, {"old"}),
    ({"time_range": (AT + DAY, AT + 10 * DAY)}, set()),
    ({"time_range": (AT + DAY, AT + 10 * DAY + timedelta(microseconds=1))}, {"young"}),
    ({"as_of": AT - 20 * DAY}, {"old", "past"}),
    ({"as_of": AT - 30 * DAY}, {"old", "past"}),
    ({"as_of": AT - 10 * DAY}, {"old"}),
    ({"as_of": AT}, ALIVE - {"young"}),
    ({"tags": ["red", "green"], "time_range": (AT, AT + DAY), "layers": ["semantic"]}, {"tagged", "green"}),
]


@pytest.mark.parametrize("mode", MODES)
async def test_every_filter_holds_in_every_mode_before_the_limit(shelf: Memory, mode: str) -> None:
    for filters, expected in FILTERS:
        for query in ("apple", "apple plain"):
            found = await shelf.search(query, user_id="mei", search_mode=mode, limit=1000, **filters)
            assert {text.removeprefix("apple ") for text in contents(found)} == expected, filters
            assert (found.searched, found.total_found) == (len(expected), len(expected)), filters
            few = await shelf.search(query, user_id="mei", search_mode=mode, limit=1, **filters)
            assert len(few.hits) == min(1, len(expected)), filters
            assert few.total_found == len(expected), filters


async def test_list_and_count_have_the_same_filters(shelf: Memory) -> None:
    for filters, expected in FILTERS:
        assert {kept.content.removeprefix("apple ") for kept in await stored(shelf, **filters)} == expected, filters
        assert await shelf.count(user_id="mei", **filters) == len(expected), filters


@pytest.mark.parametrize("mode", MODES)
async def test_days_count_back_from_the_moment_of_asking(shelf: Memory, mode: str) -> None:
    for days, expected in ((5, {"young"}), (20, ALIVE - {"old"}), (1000, ALIVE)):
        found = await shelf.search(
            "apple", user_id="mei", search_mode=mode, limit=50, time_range_days=days, asked_at=AT + 11 * DAY
        )
        texts = {text.removeprefix("apple ") for text in contents(found)} - {"gone"}
        assert texts == expected, days


async def test_what_expires_is_found_until_it_does(shelf: Memory) -> None:
    for asked_at, there in ((NOW - 2 * DAY, True), (NOW, False)):
        found = await shelf.search("apple gone", user_id="mei", asked_at=asked_at, limit=1)
        assert (contents(found)[0] == "apple gone") is there


async def test_an_ended_memory_is_found_again_when_its_end_is_taken_away(memory: Memory) -> None:
    made = (await memory.add("likes tea", user_id="mei")).memories[0]
    await memory.update(made.id, user_id="mei", valid_to=NOW - DAY)
    assert (await memory.search("tea", user_id="mei")).hits == ()
    assert contents(await memory.search("tea", user_id="mei", as_of=NOW - 2 * DAY)) == []  # it was not valid yet
    await memory.update(made.id, user_id="mei", valid_to=None)
    assert contents(await memory.search("tea", user_id="mei")) == ["likes tea"]
    assert UNSET is not None


async def test_pages_hold_everything_once_while_others_write(memory: Memory) -> None:
    await memory.add([f"fact {number}" for number in range(25)], user_id="mei")
    seen: list[str] = []
    cursor = None
    while True:
        page = await memory.list(user_id="mei", limit=10, cursor=cursor)
        seen += [kept.content for kept in page.items]
        await memory.add(f"meanwhile {len(seen)}", user_id="mei")
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == [f"fact {number}" for number in reversed(range(25))]


async def test_a_page_that_is_exactly_full_is_the_last(memory: Memory) -> None:
    await memory.add(["one", "two"], user_id="mei")
    assert (await memory.list(user_id="mei", limit=2)).next_cursor is None


# -- order and limits -----------------------------------------------------------------------------------------------


async def test_equal_scores_come_newest_first_and_always_in_the_same_order(memory: Memory) -> None:
    await memory.add([f"apple {number}" for number in range(1, 6)], user_id="mei", occurred_at=AT)
    for mode in MODES:
        whole = await memory.search("apple", user_id="mei", search_mode=mode, asked_at=AT, limit=5)
        assert len({hit.relevance_score for hit in whole.hits}) == 1
        assert contents(whole) == ["apple 5", "apple 4", "apple 3", "apple 2", "apple 1"]
        for limit in range(1, 5):
            part = await memory.search("apple", user_id="mei", search_mode=mode, asked_at=AT, limit=limit)
            assert contents(part) == contents(whole)[:limit]


async def test_of_equally_relevant_memories_the_more_important_comes_first(memory: Memory) -> None:
    for number, importance in ((1, 0.5), (2, 1.0), (3, 0.5)):
        await memory.add(f"apple {number}", user_id="mei", occurred_at=AT, importance=importance)
    assert contents(await memory.search("apple", user_id="mei", asked_at=AT)) == ["apple 2", "apple 3", "apple 1"]


async def test_min_relevance_score_is_a_floor(memory: Memory) -> None:
    await memory.add(["apple", "apple pie with cream and sugar and a cup of tea", "pear"], user_id="mei")
    ask = {"query": "apple", "user_id": "mei", "asked_at": NOW + DAY}
    every = await memory.search(**ask)
    best_score, second_score = (hit.relevance_score for hit in every.hits)
    assert best_score > second_score
    above = await memory.search(**ask, min_relevance_score=best_score)
    assert contents(above) == contents(every)[:1]
    assert (above.total_found, above.searched) == (1, 3)
    assert (await memory.search(**ask, min_relevance_score=1.0)).hits == ()


# -- what the answer says -------------------------------------------------------------------------------------------


async def test_nothing_stored_nothing_matched_and_degraded_are_three_answers(
    deaf_memory: Memory, switch: FailingEmbedder
) -> None:
    nothing_stored = await deaf_memory.search("tea", user_id="mei", search_mode="keyword")
    assert (nothing_stored.searched, nothing_stored.hits, nothing_stored.degraded) == (0, (), ())
    await deaf_memory.add("likes tea", user_id="mei")
    nothing_matched = await deaf_memory.search("chess", user_id="mei", search_mode="keyword")
    assert (nothing_matched.searched, nothing_matched.hits, nothing_matched.degraded) == (1, (), ())
    degraded = await deaf_memory.search("chess", user_id="mei")
    assert (degraded.searched, degraded.hits) == (1, ())
    assert degraded.degraded
    with pytest.raises(EmbeddingError, match="switched off"):
        await deaf_memory.search("tea", user_id="mei", search_mode="semantic")
    assert (await deaf_memory.search("nothing here", user_id="bo")).searched == 0


async def test_a_hit_carries_what_the_tools_need(memory: Memory) -> None:
    long = "apple " + "很长的内容 " * 100
    made = (
        await memory.add(long, user_id="mei", session_id="s", tags=["t"], metadata={"k": 1}, importance=0.7)
    ).memories[0]
    found = await memory.search("apple", user_id="mei")
    [hit] = found.hits
    assert hit.content_preview == long[:200]
    assert len(hit.summary) <= 120
    assert (hit.id, hit.memory_key, hit.memory_type, hit.layer) == (made.id, made.memory_key, "fact", "semantic")
    assert (hit.importance, hit.tags, hit.metadata, hit.session_id) == (0.7, ("t",), {"k": 1}, "s")
    assert (hit.created_at, hit.occurred_at, hit.explanation) == (made.created_at, made.occurred_at, None)
    assert (found.query, found.search_strategy_used, found.total_found) == ("apple", "hybrid", 1)
    assert 0 < hit.relevance_score <= 1


async def test_the_default_mode_is_a_setting(place: Place) -> None:
    async with Memory.open(
        place, embedder=WordEmbedder(), settings=load_settings(search={"default_mode": "keyword"})
    ) as memory:
        assert (await memory.search("x", user_id="mei")).search_strategy_used == "keyword"
        assert (await memory.search("x", user_id="mei", search_mode="hybrid")).search_strategy_used == "hybrid"
        with pytest.raises(InvalidInput):
            await memory.search("x", user_id="mei", search_mode="")


@pytest.mark.parametrize("mode", MODES)
def test_a_searchs_explanations_give_its_scores(library: SyncMemory, mode: str) -> None:
    for query in ("咖啡", "what does she drink?", "用 Rust 写的 parser", "C++"):
        found = library.search(query, user_id="mei", search_mode=mode, explain=True, limit=60)
        assert found.hits
        for hit in found.hits:
            assert hit.explanation is not None
            assert hit.explanation.score == hit.relevance_score
            assert 0 < hit.relevance_score <= 1
            assert {"words", "asks", "bias"} <= {part.name for part in hit.explanation.evidence}
            assert {"recency", "importance"} <= {part.name for part in hit.explanation.parts}


def test_an_explanation_shows_the_words_that_matched(library: SyncMemory) -> None:
    [hit] = library.search("用 Rust 写的 parser", user_id="mei", explain=True, limit=1).hits
    assert hit.explanation is not None
    assert {"rust", "parser"} <= set(hit.explanation.matched_terms)


async def test_recency_halves_with_the_half_life_however_long_ago(place: Place) -> None:
    """Also before 1970, where the clock's numbers are negative."""
    weights = {"recency_weight": 0.5, "half_life_days": 20_000}
    async with Memory.open(place, embedder=WordEmbedder(), settings=load_settings(search=weights)) as memory:
        born = datetime(1940, 1, 1, tzinfo=UTC)
        await memory.add("apple", user_id="mei", occurred_at=born)
        for at in (AT, AT + 20_000 * DAY):
            [hit] = (await memory.search("apple", user_id="mei", asked_at=at, explain=True)).hits
            assert hit.explanation is not None
            [recency] = [part for part in hit.explanation.parts if part.name == "recency"]
            days = (to_micros(at) - to_micros(born)) / 86_400_000_000
            assert recency.value == pytest.approx(0.5 ** (days / 20_000))


async def test_a_recall_makes_a_memory_recent_from_the_next_period_on(path: Path) -> None:
    with Clock(LONG_AGO) as clock:
        async with Memory.open(path, embedder=WordEmbedder()) as memory:
            await memory.add("likes tea", user_id="mei")
            shares = []
            for passed in (30 * DAY, timedelta(seconds=1), timedelta(minutes=20)):
                clock.now += passed
                [hit] = (await memory.search("tea", user_id="mei", explain=True)).hits
                assert hit.explanation is not None
                shares += [part.value for part in hit.explanation.parts if part.name == "recency"]
    assert shares == pytest.approx([0.5, 0.5, 1.0], abs=0.01)


async def test_stats_tell_how_many_memories_carry_keywords(memory: Memory) -> None:
    await memory.add(["I like jasmine tea", "???", "下周三去上海出差"], user_id="mei")
    await memory.add("nobody else counts", user_id="bo")
    coverage = (await memory.stats("mei")).coverage
    assert (coverage.memories, coverage.with_keywords) == (3, 2)
    assert (await memory.stats()).coverage.with_keywords == 3


@pytest.mark.parametrize("mode", MODES)
async def test_hostile_queries_get_an_answer_or_a_clear_error(memory: Memory, mode: Any) -> None:
    from bench.hostile_queries import HOSTILE, TOO_LONG

    await memory.add(["likes tea", "喜欢喝茶"], user_id="mei")
    for query in HOSTILE.values():
        found = await memory.search(query, user_id="mei", search_mode=mode, explain=True)
        assert found.searched == 2
        assert not found.degraded
    with pytest.raises(InvalidInput, match="query"):
        await memory.search(TOO_LONG, user_id="mei", search_mode=mode)
    assert (await memory.count(user_id="mei")) == 2


async def test_a_message_with_two_statements_is_found_for_each(real_memory: Memory) -> None:
    said = "I'm allergic to peanuts. I fly to Shanghai next Wednesday."
    await real_memory.add([{"role": "user", "content": said}], user_id="mei", session_id="s")
    for query, word in (("what am I allergic to?", "peanuts"), ("when do I fly to Shanghai?", "Shanghai")):
        [hit] = (await real_memory.search(query, user_id="mei")).hits
        assert word in hit.content
        assert hit.relevance_score >= 0.6


async def test_an_empty_result_is_falsy_and_hits_say_whether_they_are_relevant(memory: Memory) -> None:
    nothing = await memory.search("tea", user_id="mei")
    assert not nothing and len(nothing) == 0
    for page in (
        await memory.list(user_id="mei"),
        await memory.messages(user_id="mei"),
        await memory.timeline(user_id="mei"),
    ):
        assert not page and len(page) == 0
    await memory.add(["I like green tea", "The bus was late"], user_id="mei")
    found = await memory.search("do I like tea?", user_id="mei")
    assert found and len(found) == len(found.hits)
    assert [hit.relevant for hit in found] == [hit.relevance_score >= RELEVANT for hit in found]
    assert all(hit["relevant"] in (True, False) for hit in found.model_dump(mode="json")["hits"])
    assert type(found).model_validate_json(found.model_dump_json()) == found, "as a client reads it"
    assert len(await memory.list(user_id="mei")) == 2
