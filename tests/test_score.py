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
from jiyi.index.query import Candidates, Evidence, IndexQuery
from jiyi.read.presets import PRESETS
from jiyi.read.query import interpret, quoted
from jiyi.read.rank import FORMULAS, LEGS, Scores, best, matched, score
from jiyi.read.relevance import CANDIDATE_FEATURES, ENDED, QUERY_FEATURES, Relevance, query_features
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
        "evidence": lambda places: None,
        "statement": np.arange(size),
        "successions": (np.empty(0, np.intp), np.empty(0, np.intp)),
        "weak_kind": np.zeros(size, np.bool_),
        **dict.fromkeys((*ALWAYS, *COSINES, "age_days", "uses"), np.zeros(size)),
    }
    arrays = {
        name: value if callable(value) or isinstance(value, tuple) else np.full(size, value)
        for name, value in given.items()
    }
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
    async with Memory.open(path, embedder=builtin) as memory:
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


# -- the relevance model --------------------------------------------------------------------------------------------


def relevance(
    text: str, size: int = 2, *, words: int = 0, columns: dict[str, Any] | None = None, **given: Any
) -> Relevance:
    """The model on candidates without vectors."""
    told = {name: np.zeros(size) for name in CANDIDATE_FEATURES if name not in Candidates.__dataclass_fields__}
    told |= {name: np.zeros(size) for name in ("coverage", "assistant")}
    told |= {name: np.array(value, np.float64) for name, value in (columns or {}).items()}
    vectors = np.zeros((size, 4), np.float32)
    evidence = Evidence(columns=told, vectors=vectors, previous_vectors=vectors)
    found = candidates(size, evidence=lambda _: evidence, **given)
    query = interpret(
        text, WHERE, mode="hybrid", keywords=None, min_score=0, limit=9, explain=True, with_synonyms=False
    )
    asked = IndexQuery(filter=WHERE, words=("word",) * words, model="none")
    return Relevance(found, np.arange(size), query, asked, "none")


def adjustments(found: Relevance, name: str) -> list[float]:
    """The named adjustment in the explanation of each candidate, 0 where there is none."""
    told = [{part.name: part.contribution for part in found.explain(place)} for place in range(len(found.logits))]
    return [round(parts.get(name, 0.0), 6) for parts in told]


@each_case(
    ("name", "text", "given", "expected"),
    [
        ("keywords", "tea garden", {"words": 2, "columns": {"coverage": [0.5, 1.0]}}, [0.0, 4.0]),
        ("keywords", "tea garden", {"words": 2, "columns": {"coverage": [0.5, 0.0]}}, [0.0, -4.0]),
        ("keywords", "tea garden", {"words": 2, "columns": {"coverage": [0.49, 0.0]}}, [0.0, 0.0]),
        ("keywords", "tea", {"words": 6, "columns": {"coverage": [1.0, 1.0], "assistant": [0, 1]}}, [4.0, 2.0]),
        ("keywords", "tea", {"words": 7, "columns": {"coverage": [1.0, 1.0]}}, [0.0, 0.0]),
        ("keywords", "tea", {"words": 0, "columns": {"coverage": [1.0, 1.0]}}, [0.0, 0.0]),
        ("keywords", "where is tea?", {"words": 2, "columns": {"coverage": [1.0, 1.0]}}, [0.0, 0.0]),
        ("assistant asked", "what did you recommend?", {"columns": {"assistant": [0, 1]}}, [0.0, 2.0]),
        ("assistant asked", "what did Tom recommend?", {"columns": {"assistant": [0, 1]}}, [0.0, 0.0]),
        ("outdated", "where is tea?", {"over": [0.0, 1.0]}, [0.0, -3.0]),
        ("small talk", "where is tea?", {"weak_kind": [False, True]}, [0.0, -1.5]),
        ("left out", "where is tea?", {"left_out": [False, True]}, [0.0, -2.0]),
        ("named time", "where is tea?", {"time": [0.0, 1.0]}, [0.0, 1.5]),
    ],
)
def test_an_adjustment_of_the_relevance_model_by_hand(
    name: str, text: str, given: dict[str, Any], expected: list[float]
) -> None:
    assert adjustments(relevance(text, **given), name) == expected


def test_adjustments_move_the_score_and_what_has_ended_stays_below_the_line() -> None:
    plain, shifted = relevance("where is tea?"), relevance("where is tea?", time=[0.0, 1.0])
    assert shifted.logits[0] == plain.logits[0] and shifted.logits[1] > plain.logits[1]
    assert list(shifted.scores()) == pytest.approx([1 / (1 + math.exp(-logit)) for logit in shifted.logits])
    sure = {"columns": {"coverage": [1.0, 1.0]}, "words": 2, "time": [5.0, 5.0]}
    held, over = relevance("tea garden", **sure, over=[0.0, 1.0]).logits
    assert over == ENDED < held


def test_a_successor_inherits_the_logit_of_what_it_replaced() -> None:
    columns = {"cosine": [0.9, 0.0, 0.0]}
    plain = relevance("where is tea?", 3, columns=columns)
    found = relevance("where is tea?", 3, columns=columns, successions=(np.array([0]), np.array([2])))
    # Single precision: a row's last digits depend on where it stands in the matrix, differently on each processor.
    inherited = pytest.approx(plain.logits[0], abs=1e-5)
    assert plain.logits[0] > plain.logits[2] + 0.01 and found.logits[2] == inherited
    assert found.logits[1] == pytest.approx(plain.logits[1], abs=1e-5)


@each_case(
    ("given", "shown"),
    [
        ({}, [0, 1]),  # nothing is derived
        ({"derived": [False, True], "columns": {"length": [0.5, 0.5]}}, [1, 1]),  # it says all of the message
        ({"derived": [False, True], "columns": {"length": [0.5, 0.3]}}, [0, 0]),
        ({"derived": [True, True], "columns": {"length": [0.5, 0.5]}}, [0, 1]),  # without a message
        (
            {"derived": [False, True], "partly_over": [True, False], "columns": {"length": [0.5, 0.3]}},
            [1, 1],
        ),  # the part that still holds
    ],
)
def test_the_clearest_member_of_a_statement_is_shown(given: dict[str, Any], shown: list[int]) -> None:
    statement = np.zeros(2, np.intp) if "derived" in given else np.arange(2)
    columns = given.pop("columns", {})
    found = candidates(2, statement=statement, **given)
    model = relevance("where is tea?", columns=columns, statement=statement, **given)
    statements = [[0, 1], [1, 0]] if "derived" in given else [[0], [1]]  # the best member first
    assert model.clearest(statements, found, np.arange(2)) == shown


@each_case(
    ("text", "words", "last_terms", "expected"),
    [
        ("tea", 3, None, {"chinese": 0.0, "words": 0.3, "has_proper_words": 0.0, "dialogue": 0.0}),
        ("茶在哪里？", 40, None, {"chinese": 1.0, "words": 3.0, "has_proper_words": 0.0, "dialogue": 0.0}),
        ("Tom: hello\nwhere is the Golf?", 3, (), {"chinese": 0.0, "has_proper_words": 1.0, "dialogue": 1.0}),
    ],
)
def test_a_query_is_described(text: str, words: int, last_terms: Any, expected: dict[str, float]) -> None:
    query = interpret(
        text, WHERE, mode="hybrid", keywords=None, min_score=0, limit=9, explain=False, with_synonyms=False
    )
    asked = IndexQuery(filter=WHERE, words=("word",) * words, last_terms=last_terms, model="none")
    told = dict(zip(QUERY_FEATURES, query_features(query, asked), strict=True))
    assert {name: told[name] for name in expected} == pytest.approx(expected)
