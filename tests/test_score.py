"""Scores: the order they give, how they are explained, what they mean, and the plain formulas by hand."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jiyi import Memory, SearchResult
from jiyi.embed import BuiltinEmbedder
from jiyi.index.query import Candidates, NamedColumn
from jiyi.models import RELEVANT
from jiyi.read.presets import PRESETS
from jiyi.read.query import interpret, is_keywords, quoted
from jiyi.read.rank import FORMULAS, LEGS, Scores, best, matched, score
from jiyi.read.score import MAX_ENDED, MAX_UNREAD
from jiyi.read.score import score as judge
from jiyi.scope import Filter
from jiyi.settings import load_settings
from support import NOW, contents, each_case, recomputed

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
ALWAYS = ("keyword", "text", "coverage", "assistant", "asks", "importance")
COSINES = ("semantic", "near")


def candidates(size: int = 1, **given: Any) -> Candidates:
    """Candidates with nothing to say, but for what is given."""
    unused = {
        "ids": np.array([f"id{number:03}" for number in range(size)], dtype=object),
        "idle_days": np.full(size, np.inf),
        "statement": np.arange(size),
        "successions": (np.empty(0, np.intp), np.empty(0, np.intp)),
        "kind": NamedColumn(np.zeros(size, np.intp), slice(0, size), [None]),
        **dict.fromkeys((*ALWAYS, *COSINES, "age_days", "uses"), np.zeros(size)),
    }
    arrays = {name: value if isinstance(value, tuple) else np.full(size, value) for name, value in given.items()}
    return Candidates(**{**unused, **arrays})


@given(data=st.data(), size=st.integers(0, 40), limit=st.integers(1, 50))
def test_the_best_are_those_a_full_sort_gives(data: st.DataObject, size: int, limit: int) -> None:
    totals = data.draw(st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.3, 0.5, 0.9]), min_size=size, max_size=size))
    matched = data.draw(st.lists(st.booleans(), min_size=size, max_size=size))
    ids = data.draw(st.permutations([f"id{number:03}" for number in range(size)]))
    found = candidates(size, ids=np.array(ids, dtype=object))
    noise = np.linspace(0, 1e-9, size)  # what adding floats in another order does
    places = best(found, Scores({}, np.array(totals) + noise, np.array(matched, np.bool_)), limit)
    reaching = [(value, name) for value, name, ok in zip(totals, ids, matched, strict=True) if ok]
    assert [ids[place] for place in places] == [name for _, name in sorted(reaching, reverse=True)][:limit]


# -- the plain formulas, by hand ------------------------------------------------------------------------------------


def by(preset: Any, mode: Any = "hybrid", **given: float) -> float:
    return float(FORMULAS[preset](candidates(**given), PRESETS[preset], LEGS[mode]).total[0])


def test_two_legs_by_hand() -> None:
    """0.6 meaning + 0.4 keywords if both find it; 0.7 of the one that does, if it is alone."""
    assert by("two_legs", semantic=0.8, keyword=0.5) == pytest.approx(0.6 * 0.8 + 0.4 * 0.5)  # 0.68
    assert by("two_legs", semantic=0.9) == pytest.approx(0.63)
    assert by("two_legs", keyword=1.0) == pytest.approx(0.7)
    assert by("two_legs", semantic=-0.2, keyword=0.5) == pytest.approx(0.35)
    assert by("two_legs", "keyword", keyword=0.5, semantic=0.9) == pytest.approx(0.5)
    assert by("two_legs", "semantic", keyword=0.5, semantic=0.9) == pytest.approx(0.9)
    assert by("two_legs") == 0.0


def test_words_and_time_by_hand() -> None:
    """(0.4 keywords + 0.4 text + 0.2 recency) × 0.7 + 0.2 interaction + 0.1 type; recency halves every 30 days."""
    assert by("words_and_time", keyword=1.0, text=0.5, age_days=30.0) == pytest.approx((0.4 + 0.2 + 0.1) * 0.7)  # 0.49
    assert by("words_and_time", keyword=0.8, age_days=0.9) == pytest.approx((0.32 + 0.2) * 0.7)  # whole days: 0
    # five recalls, the last one 30 days ago: half of one half, half of the other
    used = by("words_and_time", keyword=1.0, age_days=60.0, uses=5.0, idle_days=30.0, priority=1.0)
    assert used == pytest.approx((0.4 + 0.2 * 0.25) * 0.7 + 0.2 * 0.5 + 0.1)  # 0.515
    assert by("words_and_time", "semantic", semantic=0.5) == pytest.approx((0.8 * 0.5 + 0.2) * 0.7)


def test_meaning_and_time_by_hand() -> None:
    """0.6 meaning + 0.2 e^(-days/30) + 0.2 importance; what was never recalled counts as 365 days."""
    recalled = by("meaning_and_time", semantic=0.5, idle_days=30.0, importance=0.7)
    assert recalled == pytest.approx(0.3 + 0.2 * math.exp(-1) + 0.14)  # 0.5136
    never = by("meaning_and_time", semantic=1.0, importance=0.5)
    assert never == pytest.approx(0.6 + 0.2 * math.exp(-365 / 30) + 0.1)
    assert by("meaning_and_time", "keyword", text=0.5) == pytest.approx(0.3 + 0.2 * math.exp(-365 / 30))


@each_case(
    ("preset", "mode", "names"),
    [
        ("two_legs", "hybrid", {"semantic", "keyword"}),
        ("two_legs", "keyword", {"keyword"}),
        ("two_legs", "semantic", {"semantic"}),
        ("words_and_time", "hybrid", {"keyword", "text", "recency", "uses", "priority"}),
        ("words_and_time", "keyword", {"keyword", "text", "recency", "uses", "priority"}),
        ("words_and_time", "semantic", {"semantic", "recency", "uses", "priority"}),
        ("meaning_and_time", "hybrid", {"semantic", "recency", "importance"}),
        ("meaning_and_time", "keyword", {"text", "recency", "importance"}),
        ("meaning_and_time", "semantic", {"semantic", "recency", "importance"}),
    ],
)
def test_a_formula_names_its_parts(preset: Any, mode: Any, names: set[str]) -> None:
    found = FORMULAS[preset](candidates(keyword=1.0, text=1.0, semantic=1.0), PRESETS[preset], LEGS[mode])
    assert found.parts.keys() == names


@pytest.mark.parametrize("preset", ["two_legs", "words_and_time", "meaning_and_time"])
async def test_a_preset_is_chosen_by_a_setting(path: Path, builtin: BuiltinEmbedder, preset: Any) -> None:
    async with Memory.open(path, embedder=builtin, settings=load_settings(search={"preset": preset})) as memory:
        await memory.add(["I like green tea", "下周去上海出差"], user_id="mei")
        [hit, *_] = (await memory.search("green tea", user_id="mei", explain=True)).hits
        assert hit.content_preview == "I like green tea"
        assert hit.explanation is not None
        assert hit.explanation.evidence == ()
        assert recomputed(hit.explanation) == pytest.approx(hit.relevance_score, abs=1e-9)


async def test_a_weight_that_is_set_replaces_the_presets_own(path: Path, builtin: BuiltinEmbedder) -> None:
    settings = load_settings(search={"preset": "two_legs", "semantic_weight": 0.5, "keyword_weight": 0.5})
    async with Memory.open(path, embedder=builtin, settings=settings) as memory:
        await memory.add("green tea", user_id="mei")
        [hit] = (await memory.search("green tea", user_id="mei", explain=True)).hits
        assert hit.explanation is not None
        assert {part.name: part.weight for part in hit.explanation.parts} == {"semantic": 0.5, "keyword": 0.5}


# -- what a score means ---------------------------------------------------------------------------------------------

LIFE = [
    "我吃素，对花生过敏",
    "I moved to Berlin in May and rent a flat near the canal",
    "下周三去上海出差，住在静安寺附近",
    "My sister Anna is a nurse at the children's hospital",
    "每周二和周四晚上在公园跑步五公里",
    "The car insurance runs out at the end of March",
]
ANSWERED = [
    ("对什么过敏？", 0),
    ("what is she allergic to", 0),
    ("Where do I live, in Berlin?", 1),
    ("去上海出差住哪里", 2),
    ("What does my sister Anna do?", 3),
    ("什么时候跑步？", 4),
    ("when does the car insurance end", 5),
]
UNANSWERED = [
    "Which programming language did the team choose?",
    "Who won the chess tournament?",
    "what is the name of the dog",
    "打印机的型号是什么？",
    "合同编号是多少",
    "哪家银行的贷款利率最低？",
]


@pytest.fixture
async def life(path: Path, builtin: BuiltinEmbedder) -> Any:
    async with Memory.open(path, embedder=builtin, settings=load_settings(search={"reader": True})) as memory:
        await memory.add(LIFE, user_id="mei")
        yield memory


@pytest.mark.parametrize(("query", "expected"), ANSWERED)
async def test_what_is_answered_stands_at_06_or_more(life: Memory, query: str, expected: int) -> None:
    found = await life.search(query, user_id="mei")
    assert contents(found)[0] == LIFE[expected]
    assert found.hits[0].relevance_score >= 0.6


@pytest.mark.parametrize("query", UNANSWERED)
async def test_what_the_memory_does_not_hold_stays_below_06(life: Memory, query: str) -> None:
    found = await life.search(query, user_id="mei")
    assert all(hit.relevance_score < 0.6 for hit in found.hits)
    assert (await life.search(query, user_id="mei", min_relevance_score=0.6)).hits == ()


@pytest.mark.parametrize("mode", list(LEGS))
async def test_the_line_holds_in_every_mode(life: Memory, mode: Any) -> None:
    def top(found: SearchResult) -> float:
        return found.hits[0].relevance_score if found.hits else 0.0

    asked: dict[str, Any] = {"user_id": "mei", "search_mode": mode}
    assert top(await life.search("car insurance", **asked)) >= 0.6
    assert top(await life.search("花生过敏", **asked)) >= 0.6
    assert top(await life.search("quarterly sales report", **asked)) < 0.6


# -- phrases --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "phrases"),
    [
        ('"blue bowls"', ["blue bowls"]),
        ("谁说过“蓝色的碗”？", ["蓝色的碗"]),
        ("《三体》看完了吗", ["三体"]),
        ("「夜に駆ける」", ["夜に駆ける"]),
        ('the 5" screen', []),
        ('"" "!"', []),
        ("don't and won't", []),
    ],
)
def test_phrases_stand_in_quotation_marks(query: str, phrases: list[str]) -> None:
    assert quoted(query) == phrases


@pytest.mark.parametrize("query", ['"blue bowls" pottery', "“蓝色的碗” 陶艺"])
async def test_a_quoted_phrase_comes_first(memory: Memory, query: str) -> None:
    said = ["blue bowls from the fair", "pottery pottery class", "蓝色的碗 来自集市", "陶艺 陶艺 课"]
    await memory.add(said, user_id="mei", occurred_at=AT)
    found = await memory.search(query, user_id="mei", explain=True)
    assert contents(found)[0] in (said[0], said[2])
    assert found.hits[0].explanation is not None
    assert {part.name: part.value for part in found.hits[0].explanation.parts}["phrase"] == 1.0


# -- the parts of the default score ---------------------------------------------------------------------------------

ALL_LEGS = LEGS["hybrid"]
WHERE = Filter(user_id="mei", now=NOW)


def part(name: str, legs: tuple[str, ...] = ALL_LEGS, *, unasked: bool = True, **given: Any) -> list[float] | None:
    size = max(len(value) for value in given.values())
    parts = score(candidates(size, **given), PRESETS["measured"], legs, unasked=unasked).parts
    return None if name not in parts else [round(float(value), 6) for value in parts[name][1]]


@each_case(
    ("name", "given", "expected"),
    [
        ("text", {"text": [0.2, 0.4]}, [0.5, 1.0]),  # shares of the best
        ("text", {"text": [0.01, 0.02]}, [0.2, 0.4]),  # unless that is weak
        ("text", {"text": [0.2, 0.4], "derived": [False, True]}, [1.0, 1.0]),  # messages set the scale
        ("dialogue_text", {"text": [0.2, 0.4], "last_text": [0.0, 0.1]}, [0.5, 1.0]),
        ("last_text", {"text": [0.2, 0.4], "last_text": [0.05, 0.1]}, [0.5, 1.0]),
        ("episode", {"episode": [0.25, 1.0]}, [0.25, 1.0]),
        ("episode", {"episode": [0.1, 0.2]}, [0.2, 0.4]),
        ("before", {"text": [0.2, 0.4], "before": [0.4, 0.0]}, [1.0, 0.0]),
        ("held", {"coverage": [0.5, 0.75, 1.0]}, [0.0, 0.5, 1.0]),  # what exceeds half of the words
        ("phrase", {"phrase": [0.0, 1.0]}, [0.0, 1.0]),
        ("semantic", {"near": [0.1, 0.3, 0.5]}, [0.0, 0.5, 1.0]),  # from the worst to the best
        ("semantic", {"near": [0.4, 0.55]}, [0.0, 0.5]),  # unless they are close
        ("dialogue_semantic", {"near": [0.1, 0.5], "last_semantic": [0.0, 0.0]}, [0.0, 1.0]),
        ("last_semantic", {"near": [0.1, 0.5], "last_semantic": [0.2, 0.8]}, [0.0, 1.0]),
        ("gist", {"near": [0.1, 0.5], "gist": [0.3, 0.9]}, [0.5, 1.0]),  # on the scale of the messages
        ("assistant", {"assistant": [0.0, 1.0]}, [0.0, 1.0]),
        ("derived", {"derived": [False, True]}, [0.0, 1.0]),
        ("recency", {"age_days": [0.0, 30.0, 60.0]}, [1.0, 0.5, 0.25]),
        ("importance", {"importance": [0.2, 0.7]}, [0.2, 0.7]),
    ],
)
def test_a_part_of_the_score_by_hand(name: str, given: dict[str, Any], expected: list[float]) -> None:
    assert part(name, **given) == expected


def test_parts_belong_to_their_legs_and_questions() -> None:
    given = {"text": [0.4], "keyword": [1.0], "near": [0.4], "assistant": [1.0]}
    assert part("text", ("semantic",), **given) is None and part("keyword", ("semantic",), **given) is None
    assert part("semantic", ("text", "keyword"), **given) is None
    assert part("assistant", unasked=False, **given) is None


def test_the_parts_add_up() -> None:
    found = score(candidates(2, text=[0.2, 0.4], importance=[0.5, 1.0]), PRESETS["measured"], ALL_LEGS)
    total = sum(weight * value for weight, value in found.parts.values())
    assert found.total == pytest.approx(total) and {"text", "importance"} <= found.parts.keys()


def test_a_candidate_matches_by_a_leg_that_ran() -> None:
    found = candidates(5, text=[1, 0, 0, 0, 0], before=[0, 1, 0, 0, 0], keyword=[0, 0, 1, 0, 0], near=[0, 0, 0, 1, 0])
    assert list(matched(found, ALL_LEGS)) == [True, True, True, True, False]
    assert list(matched(found, ("text",))) == [True, True, False, False, False]
    assert list(matched(found, ("keyword",))) == [False, False, True, False, False]
    assert list(matched(found, ("semantic",))) == [False, False, False, True, False]


# -- the score by the reader and the evidence -------------------------------------------------------------------------

SAID = {"similarity": 0.4, "words": 0.5, "reader": 2.0}


def made(reader: str = "testing:mine", **more: Any) -> float:
    inputs = {**SAID, **more.pop("inputs", {})}
    return judge({name: value for name, value in inputs.items() if value is not None}, "where?", reader, **more).value


def test_a_reader_without_fitted_weights_decides_alone() -> None:
    assert made() == pytest.approx(1 / (1 + math.exp(-2)), abs=1e-6)
    assert made(inputs={"similarity": 0.9}) == made()


def test_without_a_reader_the_evidence_decides() -> None:
    low, high = (made(inputs={"reader": None, "similarity": share}) for share in (0.1, 0.8))
    assert low < 0.5 < high
    assert made(inputs={"reader": None, "similarity": None, "words": 1.0}) < high, "words alone tell less"
    assert made(inputs={"reader": None, "similarity": 0.8}, is_beyond=True) == MAX_UNREAD


def test_what_has_ended_and_what_is_unsure_stand_lower() -> None:
    assert made(has_ended=True) == MAX_ENDED
    assert made(confidence=0.5) == pytest.approx(made() / 2, abs=1e-6)


def test_all_of_a_few_keywords_are_enough() -> None:
    assert made(inputs={"reader": -5.0}) < 0.1 < RELEVANT < made(inputs={"reader": -5.0}, holds_all=True)


@pytest.mark.parametrize(
    "more",
    [{}, {"holds_all": True}, {"confidence": 0.3}, {"has_ended": True}, {"is_beyond": True, "confidence": 0.9}],
)
@pytest.mark.parametrize("logit", [-3.0, 4.0])
def test_an_explanation_adds_up_to_the_logit(more: Any, logit: float) -> None:
    found = judge(SAID | {"reader": logit}, "where?", "jiyi-reader-1", explain=True, **more)
    assert math.fsum(part.contribution for part in found.parts) == pytest.approx(found.logit, abs=1e-5)
    assert found.value == pytest.approx(1 / (1 + math.exp(-found.logit)), abs=1e-5)


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("green tea", True),
        ("花生过敏", True),
        ("what is my dog called", False),
        ("我女儿几年级", False),
        ("给家里买点零食", False),
        ("book a table", False),
        ("one two three four five six seven", False),
    ],
)
def test_a_few_words_with_which_nothing_is_asked_are_keywords(text: str, bare: bool) -> None:
    options: Any = {"mode": "hybrid", "keywords": None, "min_score": 0.0, "limit": 5, "explain": False}
    assert is_keywords(interpret(text, WHERE, with_synonyms=False, **options)) is bare
