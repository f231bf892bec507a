"""Searches with a reranker: the best candidates are read together with the question."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import jiyi_rerank
from jiyi import Memory
from jiyi.embed import BuiltinEmbedder
from jiyi.read import rerank
from jiyi.settings import load_settings
from jiyi.testing import WordEmbedder, WordReranker

ON = load_settings(search={"rerank": True})
SAID = (
    "Pho for lunch again, that place is too good.",
    "The landlord finally fixed the heating.",
    "My sister Ana just got her pilot licence!",
    "We signed the lease, so from May on I'm in Lisbon.",
    "周末和同事去爬了香山，腿到现在还酸。",
    "医生让我把咖啡戒了，换成了低因的。",
    "Totally forgot my umbrella on the tram.",
    "We watched that heist film, it was fine.",
)
APRIL = datetime(2026, 4, 1, 10, tzinfo=UTC)
QUESTION = "Which city will Mei live in?"
ABSENT = "What is the name of Mei's dentist?"


async def say(memory: Memory, texts: Sequence[str] = SAID) -> None:
    await memory.add([{"role": "user", "name": "Mei", "content": text} for text in texts], user_id="mei")


@pytest.fixture
async def reading(path: Path, builtin: BuiltinEmbedder) -> AsyncIterator[Memory]:
    async with Memory.open(path, settings=ON, embedder=builtin) as memory:
        await say(memory)
        yield memory


async def test_an_answer_without_common_words_is_found(reading: Memory) -> None:
    found = await reading.search(QUESTION, user_id="mei")
    assert "Lisbon" in found.hits[0].content and found.hits[0].relevance_score >= 0.6
    assert all(hit.relevance_score < 0.6 for hit in found.hits[1:])


async def test_a_question_without_an_answer_gets_none(reading: Memory) -> None:
    found = await reading.search(ABSENT, user_id="mei")
    assert all(hit.relevance_score < 0.6 for hit in found.hits)


async def test_the_reranker_is_named_where_a_score_is_explained(
    reading: Memory, path: Path, builtin: BuiltinEmbedder
) -> None:
    asked: Any = {"user_id": "mei", "explain": True, "asked_at": datetime.now(UTC)}
    found = (await reading.search(QUESTION, **asked)).hits[0]
    part = next(part for part in found.explanation.evidence if part.name == "reranker")
    async with Memory.open(path, settings=load_settings(search={"rerank": False}), embedder=builtin) as plain:
        without = next(hit for hit in (await plain.search(QUESTION, **asked)).hits if hit.id == found.id)
    odds = [math.log(hit.relevance_score / (1 - hit.relevance_score)) for hit in (found, without)]
    assert part.value and part.contribution == pytest.approx(odds[0] - odds[1], abs=0.05)


async def test_below_the_line_similarity_decides_too(path: Path) -> None:
    """What matters for a request often answers nothing, so that all scores are low; they must not hide what is near."""

    said = (
        "Shellfish makes me ill at any restaurant table.",
        "Our old kitchen table wobbles since we moved it here.",
        "A table by the harbour, please.",
    )
    async with Memory.open(path, settings=ON, embedder=WordEmbedder(), reranker=WordReranker("harbour")) as memory:
        await say(memory, said)
        request = "a table by the harbour at any restaurant"
        hits = (await memory.search(request, user_id="mei", explain=True, memory_types=["message"])).hits
        by_text = {hit.content: {part.name: part for part in hit.explanation.evidence} for hit in hits}
        assert "similarity" not in by_text[said[2]]  # it is above the line
        near, far = by_text[said[0]]["similarity"], by_text[said[1]]["similarity"]
        assert near.value > far.value and near.contribution - far.contribution == pytest.approx(
            rerank.SIMILAR * (near.value - far.value)
        )
        assert [hit.content for hit in hits] == [said[2], said[0], said[1]]
        assert all(hit.relevance_score < 0.6 for hit in hits[1:])


async def test_a_date_that_was_added_is_not_read(path: Path, builtin: BuiltinEmbedder) -> None:
    """Rerankers know messages as people write them: "(2026-09)" made "Where do I live?" miss its answer."""
    async with Memory.open(path, settings=ON, embedder=builtin) as memory:
        said = (
            "I work as a midwife at the city hospital.",
            "I moved from Ghent to Antwerp in September.",
            "我六月买了一辆自行车。",
        )
        for text in said:
            await memory.add({"role": "user", "content": text}, user_id="noor")
        first = (await memory.search("Where do I live?", user_id="noor")).hits[0]
        assert "Antwerp in September (20" in first.content and first.relevance_score >= 0.6
        held = await memory.list(user_id="noor", memory_types=["fact", "event"])
        read = [rerank.candidate(one, datetime.now(UTC)).text for one in held.items]
        own = await memory.add("The lease began with the new owner (2019-06).", user_id="noor")
        kept = await memory.get(own.memories[0].id, user_id="noor")
    assert "I moved from Ghent to Antwerp in September." in read and not any("（20" in text for text in read)
    assert rerank.candidate(kept, datetime.now(UTC)).text == kept.content  # its author wrote that date


async def test_stats_and_health_name_the_reranker(reading: Memory) -> None:
    assert (await reading.stats()).reranker == "jiyi-rerank-2"
    check = next(check for check in (await reading.health()).checks if check.name == "reranker")
    assert check.ok and check.problem is None


async def test_the_setting_turns_it_off(path: Path, builtin: BuiltinEmbedder) -> None:
    off = load_settings(search={"rerank": False})
    async with Memory.open(path, settings=off, embedder=builtin) as memory:
        await say(memory)
        found = await memory.search(QUESTION, user_id="mei", explain=True)
        assert not [part for hit in found.hits for part in hit.explanation.evidence if part.name == "reranker"]
        assert (await memory.stats()).reranker is None
        check = next(check for check in (await memory.health()).checks if check.name == "reranker")
        assert check.ok and "turned off" in (check.detail or "")


async def test_without_the_package_everything_works_and_health_says_so(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rerank, "PACKAGE", "jiyi_rerank_that_nobody_installed")
    async with Memory.open(path, settings=ON, embedder=WordEmbedder(512)) as memory:
        await say(memory)
        assert "umbrella" in (await memory.search("forgot my umbrella?", user_id="mei")).hits[0].content
        health = await memory.health()
        check = next(check for check in health.checks if check.name == "reranker")
        assert health.ready and check.ok and "pip install jiyi-rerank" in (check.detail or "")


async def test_a_reranker_of_your_own_decides(path: Path) -> None:
    reader = WordReranker("umbrella")
    async with Memory.open(path, embedder=WordEmbedder(512), reranker=reader) as memory:
        await say(memory)
        found = await memory.search("did we watch the film on the tram?", user_id="mei", limit=3)
        assert "umbrella" in found.hits[0].content and len(found.hits) > 1
        question, candidates = reader.asked[0]
        assert question == "did we watch the film on the tram?" and {one.speaker for one in candidates} == {"Mei"}
        assert len(candidates) <= rerank.MOST_READ and all(one.age_days is not None for one in candidates)
        sure = await memory.search("what about the tram?", user_id="mei", min_relevance_score=0.6)
        assert [hit.relevance_score >= 0.6 for hit in sure.hits] == [True] and sure.total_found == 1
        before = reader.cleared
        await memory.delete(found.hits[0].id, user_id="mei")
        assert reader.cleared > before


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ("Mei: I was out all day\nTom: where did you leave your umbrella?", {}),
        ("umbrella " * 40, {}),
        ("where is my umbrella?", {"search_mode": "keyword"}),
    ],
)
async def test_dialogues_long_texts_and_words_alone_are_not_read(path: Path, query: str, options: dict) -> None:
    reader = WordReranker("film")
    async with Memory.open(path, settings=ON, embedder=WordEmbedder(512), reranker=reader) as memory:
        await say(memory)
        assert "umbrella" in (await memory.search(query, user_id="mei", **options)).hits[0].content
        assert not reader.asked


async def test_texts_up_to_the_limit_are_read(path: Path) -> None:
    reader = WordReranker("film")
    longest, longer = ("umbrella " + "x" * (rerank.LONGEST - 9 + more) for more in (0, 1))
    async with Memory.open(path, settings=ON, embedder=WordEmbedder(512), reranker=reader) as memory:
        await memory.add([longest, longer], user_id="mei")
        await memory.search("where is my umbrella?", user_id="mei")
        [(_, candidates)] = reader.asked
        assert [one.text for one in candidates] == [longest]


async def test_presets_with_a_formula_are_not_reranked(path: Path) -> None:
    reader = WordReranker("film")
    settings = load_settings(search={"rerank": True, "preset": "two_legs"})
    async with Memory.open(path, settings=settings, embedder=WordEmbedder(512), reranker=reader) as memory:
        await say(memory)
        await memory.search("where is my umbrella?", user_id="mei")
        assert not reader.asked


def test_scores_depend_on_nothing_but_question_and_candidate() -> None:
    """Batches and caches change no score; a changed text gets a new one."""
    candidates = [jiyi_rerank.Candidate("Mei", text) for text in SAID]
    together = jiyi_rerank.LocalReranker().logits(QUESTION, candidates)
    one = jiyi_rerank.LocalReranker()
    alone = [one.logits(QUESTION, [candidate])[0] for candidate in candidates]
    assert alone == pytest.approx(together, abs=1e-3)
    assert one.logits(QUESTION, candidates) == alone  # from the cache
    assert max(range(len(SAID)), key=lambda at: together[at]) == 3
    assert one.logits(QUESTION, [jiyi_rerank.Candidate("Mei", SAID[3].replace("Lisbon", "bed"))])[0] != alone[3]
    one.clear()
    assert one.cache_bytes == 0


def test_the_cache_of_messages_stays_within_its_limit() -> None:
    reader = jiyi_rerank.LocalReranker(cache_mb=1)
    reader.logits(QUESTION, [jiyi_rerank.Candidate("Mei", f"{text} {number}") for text in SAID for number in range(5)])
    assert 0 < reader.cache_bytes <= 2**20


@pytest.mark.parametrize(
    ("old", "new", "question"),
    [
        ("I pay 640 for the room.", "Landlord wants 700 from May on.", "What rent does Mei pay?"),
        ("我在国贸那家健身房办了年卡。", "换到城西那家健身房了，离家近。", "梅现在去哪家健身房？"),
    ],
)  # fmt: skip
async def test_a_newer_answer_that_replaces_an_older_one_stands_before_it(
    path: Path, builtin: BuiltinEmbedder, old: str, new: str, question: str
) -> None:
    async with Memory.open(path, settings=ON, embedder=builtin) as memory:
        for month, text in ((1, old), (3, new)):
            said = {"role": "user", "name": "Mei", "content": text, "sent_at": f"2026-0{month}-05T10:00:00Z"}
            await memory.add([said], user_id="mei", session_id=str(month))
        found = await memory.search(question, user_id="mei", asked_at=APRIL, explain=True)
        assert found.hits[0].content == new
        assert found.hits[0].relevance_score >= 0.6


async def test_a_successor_answers_what_its_predecessor_did(path: Path, builtin: BuiltinEmbedder) -> None:
    said = (
        "Hi! I'm Dana, I'm 34 and I live in Rome.",
        "My sister lives in Toronto.",
        "Actually we moved to Milan last month.",
    )
    async with Memory.open(path, settings=ON, embedder=builtin) as memory:
        for day, text in enumerate(said, 1):
            message = {"role": "user", "content": text, "sent_at": f"2026-03-0{day}T10:00:00Z"}
            await memory.add([message], user_id="dana", session_id=str(day))
        home = await memory.search("Where do I live?", user_id="dana", asked_at=APRIL)
        assert "Milan" in home.hits[0].content and home.hits[0].relevance_score >= 0.6
        age = await memory.search("How old am I?", user_id="dana", asked_at=APRIL)
        assert "34" in age.hits[0].content


@pytest.mark.parametrize(
    ("old", "new", "question"),
    [
        ("I live in Lyon with my husband Marc.", "Actually we moved to Grenoble last week.", "Where do I live?"),
        ("我住在上海，跟我老婆一起。", "我们上周搬到成都了。", "我住在哪里？"),
    ],
)  # fmt: skip
async def test_what_has_ended_does_not_answer_questions_about_the_present(
    path: Path, builtin: BuiltinEmbedder, old: str, new: str, question: str
) -> None:
    async with Memory.open(path, settings=ON, embedder=builtin) as memory:
        for day, text in enumerate((old, new), 1):
            message = {"role": "user", "content": text, "sent_at": f"2026-03-0{day}T10:00:00Z"}
            await memory.add([message], user_id="sofia", session_id=str(day))
        found = await memory.search(question, user_id="sofia", asked_at=APRIL)
        assert [hit.content[:4] for hit in found.hits if hit.relevance_score >= 0.6] == [new[:4]]


async def test_of_a_message_only_what_still_holds_is_shown(path: Path, builtin: BuiltinEmbedder) -> None:
    async with Memory.open(path, settings=ON, embedder=builtin) as memory:
        for day, text in enumerate(
            ("I am a vegetarian, and I'm allergic to peanuts.", "I'm not vegetarian any more."), 1
        ):
            message = {"role": "user", "content": text, "sent_at": f"2026-03-0{day}T10:00:00Z"}
            await memory.add([message], user_id="mei", session_id=str(day))
        now = await memory.context("What can't I eat?", user_id="mei", asked_at=APRIL)
        assert "allergic to peanuts" in now and "am a vegetarian" not in now
        before = await memory.search("What did I eat before?", user_id="mei", asked_at=APRIL)
        assert any("am a vegetarian" in hit.content for hit in before)


async def test_a_part_of_a_query_that_fails_is_named(path: Path) -> None:
    class Failing(WordEmbedder):
        async def embed_query(self, text: str) -> Any:
            if text.startswith("Which"):
                raise ConnectionError("no answer")
            return await super().embed_query(text)

    async with Memory.open(path, settings=ON, embedder=Failing()) as memory:
        await say(memory)
        found = await memory.search("I'm packing. Which city will Mei live in?", user_id="mei")
        assert ["searched by words only" in problem for problem in found.degraded] == [True]
        assert found.hits


class Replacing(WordReranker):
    """A reranker for which every message replaces all older ones."""

    def replaced(self, newer: Any, older: Sequence[Any]) -> list[float]:
        return [3.0 for _ in older]


async def test_questions_about_the_past_get_what_was(path: Path) -> None:
    async with Memory.open(path, settings=ON, embedder=WordEmbedder(), reranker=Replacing("tea")) as memory:
        for month, text in ((1, "My morning tea is green tea."), (3, "My morning tea is black tea.")):
            said = {"role": "user", "content": text, "sent_at": f"2026-0{month}-05T10:00:00Z"}
            await memory.add([said], user_id="mei", session_id=str(month))

        async def evidence(question: str) -> set[str]:
            found = await memory.search(question, user_id="mei", asked_at=APRIL, explain=True)
            return {part.name for hit in found.hits for part in hit.explanation.evidence}

        assert {"replaces", "replaced"} <= await evidence("Which morning tea is mine?")
        assert not {"replaces", "replaced"} & await evidence("Which morning tea was mine before?")


async def test_a_newer_message_far_from_an_answer_replaces_none(path: Path) -> None:
    async with Memory.open(path, settings=ON, embedder=WordEmbedder(), reranker=Replacing("tea")) as memory:
        for month, text in ((1, "My morning tea is green tea."), (3, "Ana lost her tea cup this morning.")):
            said = {"role": "user", "content": text, "sent_at": f"2026-0{month}-05T10:00:00Z"}
            await memory.add([said], user_id="mei", session_id=str(month))
        found = await memory.search("Which morning tea is mine?", user_id="mei", asked_at=APRIL, explain=True)
        assert found.hits[0].content == "My morning tea is green tea."
        assert not {"replaces", "replaced"} & {part.name for hit in found.hits for part in hit.explanation.evidence}


@pytest.mark.parametrize(
    ("question", "answers"),
    [
        ("Which city will Mei live in? And what did the doctor tell her to give up?", ("Lisbon", "咖啡")),
        ("I'm making a list of the family. What does Mei's sister do, by the way?", ("pilot",)),
        ("梅要搬到哪个城市住？另外，医生让她戒掉什么？", ("Lisbon", "咖啡")),
    ],
)  # fmt: skip
async def test_every_question_of_a_query_is_answered(reading: Memory, question: str, answers: tuple[str, ...]) -> None:
    found = await reading.search(question, user_id="mei")
    sure = [hit.content for hit in found.hits if hit.relevance_score >= 0.6]
    assert all(any(answer in text for text in sure) for answer in answers), sure
    assert len({hit.id for hit in found.hits}) == len(found.hits)
    scores = [hit.relevance_score for hit in found.hits]
    assert scores == sorted(scores, reverse=True)


async def test_a_failing_reranker_costs_its_reading_only(path: Path) -> None:
    """A file of the package is missing, or a class of one's own raises: the hits are there, and the answer says so."""

    class Failing(WordReranker):
        def logits(self, question: str, candidates: Sequence[Any]) -> Sequence[float]:
            raise FileNotFoundError("words.npy")

    async with Memory.open(path, settings=ON, embedder=WordEmbedder(512), reranker=Failing("film")) as memory:
        await say(memory)
        for _ in range(2):  # a degraded answer is not cached
            found = await memory.search("did I forget my umbrella?", user_id="mei")
            assert "umbrella" in found.hits[0].content
            assert [("reranker failed (FileNotFoundError)" in problem) for problem in found.degraded] == [True]


async def test_in_the_other_language_too_a_hit_is_about_whom_the_query_names(reading: Memory) -> None:
    told = (
        "My husband Ben is a chef.",
        "Ben is now vegetarian.",
        "我的好朋友叫王芳，她住在上海。",
        "王芳喜欢吃辣，但是她对虾过敏。",
    )
    await say(reading, told)
    found = await reading.search("What does Ben eat?", user_id="mei")
    assert "Ben" in found.hits[0].content and all(
        hit.relevance_score < 0.6 for hit in found.hits if "王芳" in hit.content
    )
    found = await reading.search("Mei住在哪个城市？", user_id="mei", explain=True)
    assert "Lisbon" in "".join(hit.content for hit in found.hits if hit.relevance_score > 0.3), "Mei said it"
    await say(reading, ("I want to move to Berlin.", "去年我去了柏林。"))
    found = await reading.search("When did I go to Berlin?", user_id="mei", explain=True)
    parts = {part.name for hit in found.hits if hit.explanation for part in hit.explanation.evidence}
    assert "柏林" in "".join(hit.content for hit in found.hits) and "not named" not in parts, "a place has two names"
    [first, *_] = (await reading.search("Where does Wang Fang live?", user_id="mei")).hits
    assert "上海" in first.content and first.relevance_score >= 0.6
