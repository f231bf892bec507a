"""Each memory of a model has a confidence: how far its messages support it. Unsure ones are stored, rank lower, end
nothing and are up for review."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from jiyi import Memory
from jiyi.errors import LlmUnavailable
from jiyi.llm import LLMRequest, Reply
from jiyi.llm.client import LLMClient
from jiyi.reader import Passage, Verdict
from jiyi.settings import LLMSettings, load_settings
from jiyi.testing import WordEmbedder
from jiyi.write.llm import LlmExtractor, SupportCheck, is_weak

AT = datetime(2026, 3, 2, 9, tzinfo=UTC)
ENGLISH = (
    "I keep my spare keys at the bakery, and my sister plays the cello.",
    [("Mei keeps her spare keys at the bakery.", "spare keys"), ("Mei plays the cello.", "plays the cello")],
    "Who plays the cello?",
)
CHINESE = (
    "我的备用钥匙放在面包店，我妹妹拉大提琴。",
    [("小美的备用钥匙放在面包店。", "备用钥匙"), ("小美拉大提琴。", "拉大提琴")],
    "谁拉大提琴？",
)
BOTH = pytest.mark.parametrize(("said", "proposed", "question"), [ENGLISH, CHINESE], ids=["en", "zh"])
Proposed = Sequence[tuple[str, str]]


class Model:
    """Proposes memories, and finds those at some positions unsupported when it is asked once more."""

    id = "testing:large"

    def __init__(self, proposed: Proposed, unsupported: Any = (2,)) -> None:
        self.requests: list[LLMRequest] = []
        self._proposed = proposed
        self._unsupported = unsupported

    async def reply(self, request: LLMRequest) -> Reply:
        self.requests.append(request)
        if request.task == "verify":
            if self._unsupported is None:
                raise LlmUnavailable("down")
            return Reply(text=json.dumps({"unsupported": self._unsupported}), cut_off=False, usage=None)
        memories = [
            {"messages": [1], "quote": quote, "type": "fact", "text": text, "importance": 0.6}
            for text, quote in self._proposed
        ]
        answer = {"memories": memories, "episodes": []}
        return Reply(text=json.dumps(answer, ensure_ascii=False), cut_off=False, usage=None)

    async def close(self) -> None:
        pass


class CelloReader:
    """A reader that believes everything but what is about cellos."""

    id = "cello-reader"

    def __init__(self) -> None:
        self.asked: list[tuple[Sequence[Passage], str]] = []

    def answers(self, question: str, passages: Sequence[Passage]) -> list[float]:
        raise NotImplementedError

    def changes(self, newer: Passage, older: Sequence[Passage]) -> list[Verdict]:
        raise NotImplementedError

    def supports(self, messages: Sequence[Passage], memory: str) -> float:
        self.asked.append((messages, memory))
        return 0.2 if "cello" in memory or "大提琴" in memory else 0.8


def open_at(path: Path, model: Model, *, verify: str = "on", **more: Any) -> Memory:
    settings = load_settings(llm={"verify": verify, "retries": 0}, jobs={"retry_delay_s": 0.001})
    return Memory.open(path / "m.db", llm=model, embedder=WordEmbedder(), settings=settings, **more)


async def confidences(memory: Memory) -> dict[str, float]:
    return {one.content: one.confidence for one in await memory.list(user_id="mei")}


@BOTH
async def test_a_model_that_verifies_gives_its_memories_a_confidence(
    said: str, proposed: Proposed, question: str, tmp_path: Path
) -> None:
    model = Model(proposed)
    async with open_at(tmp_path, model) as memory:
        receipt = await memory.add({"role": "user", "content": said, "sent_at": AT}, user_id="mei")
        assert receipt.problems == ()
        assert await confidences(memory) == {proposed[0][0]: 0.9, proposed[1][0]: 0.1}
        [review] = await memory.usage.review(user_id="mei")
        assert (review.why, [one.content for one in review.memories]) == ("unsure", [proposed[1][0]])
        assert "testing:large" in str(review.memories[0].data["checked_by"])
        [first] = await memory.history(review.memories[0].id, user_id="mei")
        assert first.action == "add"
    [asked] = [request for request in model.requests if request.task == "verify"]
    assert f"[2] {proposed[1][0]}" in asked.user and said in asked.user


@BOTH
async def test_an_unsure_memory_ranks_lower(said: str, proposed: Proposed, question: str, tmp_path: Path) -> None:
    scores = {}
    for name, unsupported in (("unsure", [1]), ("sure", [])):
        (tmp_path / name).mkdir()
        async with open_at(tmp_path / name, Model(proposed[1:], unsupported)) as memory:
            await memory.add({"role": "user", "content": said, "sent_at": AT}, user_id="mei")
            found = await memory.search(question, user_id="mei", memory_types=["fact"], explain=True)
            [hit] = [hit for hit in found.hits if hit.content == proposed[1][0]]
            scores[name] = hit.relevance_score
            assert hit.explanation is not None
            lowered = [part for part in hit.explanation.evidence if part.name == "unsupported"]
            assert bool(lowered) is (name == "unsure")
    assert scores["unsure"] < scores["sure"]


@pytest.mark.parametrize("answer", [None, ["x"], [7], "all"])
async def test_a_verification_that_fails_leaves_the_memories_and_says_so(answer: Any, tmp_path: Path) -> None:
    said, proposed, _ = ENGLISH
    async with open_at(tmp_path, Model(proposed, answer)) as memory:
        receipt = await memory.add({"role": "user", "content": said, "sent_at": AT}, user_id="mei")
        [problem] = receipt.problems
        assert "2 memories of the language model were not verified" in problem
        found = await memory.list(user_id="mei")
        assert len(found.items) == 2 and all("checked_by" not in one.data for one in found)
        assert await memory.usage.review(user_id="mei") == []
        assert (await memory.jobs.status(receipt, user_id="mei")).problems == (problem,)


@BOTH
async def test_a_reader_judges_with_the_messages_that_a_memory_cites(
    said: str, proposed: Proposed, question: str, tmp_path: Path
) -> None:
    model, reader = Model(proposed), CelloReader()
    extractor = LlmExtractor(LLMClient(model, LLMSettings()), SupportCheck(reader=reader))
    async with open_at(tmp_path, model, extractor=extractor) as memory:
        await memory.add({"role": "user", "content": said, "sent_at": AT}, user_id="mei")
        assert await confidences(memory) == {proposed[0][0]: 0.8, proposed[1][0]: 0.2}
    assert [memory for _, memory in reader.asked] == [text for text, _ in proposed]
    assert reader.asked[0][0] == [Passage(text=said)]
    assert "verify" not in [request.task for request in model.requests]


async def test_reader_and_model_judge_together(tmp_path: Path) -> None:
    async def always() -> bool:
        return True

    said, proposed, _ = ENGLISH
    model = Model(proposed, [1])
    check = SupportCheck(reader=CelloReader(), verify=always)
    extractor = LlmExtractor(LLMClient(model, LLMSettings()), check)
    async with open_at(tmp_path, model, extractor=extractor) as memory:
        await memory.add({"role": "user", "content": said, "sent_at": AT}, user_id="mei")
        assert await confidences(memory) == {proposed[0][0]: 0.308, proposed[1][0]: 0.692}


async def test_what_is_unsure_ends_nothing(tmp_path: Path) -> None:
    class Mover(Model):
        async def reply(self, request: LLMRequest) -> Reply:
            said = {"bakery": "Mei lives above the bakery.", "canal": "Mei lives by the canal."}
            place = "canal" if "[1]" in request.user and "canal" in request.user else "bakery"
            self._proposed = [(said[place], place)]
            self._unsupported = [1] if place == "canal" else []
            reply = await super().reply(request)
            if request.task == "memories":
                answer = json.loads(reply.text)
                more = {"subject": "The user", "attribute": "home", "value": place, "ends": [1]}
                answer["memories"][0] |= more
                return Reply(text=json.dumps(answer), cut_off=False, usage=None)
            return reply

    async with open_at(tmp_path, Mover([])) as memory:
        for line in ("I live above the bakery.", "He said I live by the canal, ha."):
            await memory.add({"role": "user", "content": line}, user_id="mei", session_id="s")
        assert set(await confidences(memory)) == {"Mei lives above the bakery.", "Mei lives by the canal."}


@pytest.mark.parametrize(("mode", "model", "asked"), [
    ("auto", "testing:large", False),
    ("auto", "ollama:qwen3:8b", True),
    ("off", "ollama:qwen3:8b", False),
    ("on", "testing:large", True),
])  # fmt: skip
async def test_by_default_small_models_are_asked_once_more(mode: str, model: str, asked: bool, tmp_path: Path) -> None:
    said, proposed, _ = ENGLISH
    asking = Model(proposed)
    asking.id = model
    async with open_at(tmp_path, asking, verify=mode) as memory:
        await memory.add({"role": "user", "content": said}, user_id="mei")
    assert ("verify" in [request.task for request in asking.requests]) is asked


@pytest.mark.parametrize(("model", "weak"), [
    ("ollama:llama3.2:1b", True), ("ollama:qwen3:0.6b", True), ("openai:gpt-4.1-nano", True), ("vllm:phi-4", True),
    ("openai:gpt-5", False), ("deepseek:deepseek-chat", False), ("ollama:qwen3:32b", False), ("x:mixtral-8x7b", False),
])  # fmt: skip
def test_small_models_are_known_by_their_names(model: str, weak: bool) -> None:
    assert is_weak(model) is weak
