"""Episodes, groups, further extractors, summaries and merged texts with a language model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from jiyi import Draft, Evidence, Memory, Unit
from jiyi.agents.agent import MemoryHooks
from jiyi.llm import LLMRequest, Reply
from jiyi.llm.prompts import BUILT_IN
from jiyi.testing import ScriptedLLM, WordEmbedder

AT = datetime(2024, 3, 4, 9, tzinfo=UTC)
ANA = {
    "en": "I quit smoking last month, and my son Leo starts school on September 2.",
    "zh": "我上个月戒烟了，儿子小乐9月2日上学。",
}


class Model:
    """Answers each task with a prepared object."""

    id = "testing:by-task"

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.requests: list[LLMRequest] = []

    async def reply(self, request: LLMRequest) -> Reply:
        self.requests.append(request)
        answer = self.answers.get(request.task, [])
        if isinstance(answer, Exception):
            raise answer
        return Reply(text=json.dumps({request.task: answer}, ensure_ascii=False), cut_off=False, usage=None)

    async def close(self) -> None:
        pass


def example(language: str, prompt_set: str, task: str) -> list[dict[str, Any]]:
    """Return what the prompt of a task shows as the answer to its example."""
    text = (BUILT_IN / language / prompt_set / f"{task}.md").read_text("utf-8")
    [answer] = [line for line in text.splitlines() if line.startswith(f'{{"{task}": [{{')]
    found: list[dict[str, Any]] = json.loads(answer)[task]
    return found


@pytest.mark.parametrize("prompt_set", ["production", "eval"])
@pytest.mark.parametrize(("language", "name"), [("en", "Ana"), ("zh", "安娜")])
async def test_the_examples_of_our_own_prompts_are_accepted(
    language: str, name: str, prompt_set: str, tmp_path: Path
) -> None:
    """Episodes are asked for from three messages on."""
    memories = example(language, prompt_set, "memories")
    episodes = example(language, prompt_set, "episodes")
    model = Model(memories=memories, episodes=episodes)
    talk = [
        {"role": "user", "name": name, "content": ANA[language], "sent_at": AT},
        {"role": "assistant", "content": "OK", "sent_at": AT},
        {"role": "user", "name": name, "content": "👍 ok", "sent_at": AT},
    ]
    async with Memory.open(tmp_path / "m.db", llm=model, embedder=WordEmbedder()) as memory:
        receipt = await memory.add(talk, user_id="ana", user_names=[name])
        found = await memory.list(user_id="ana")
    assert receipt.problems == ()
    kept = {one.content for one in found}
    assert kept == {one["text"] for one in memories} | {one["content"] for one in episodes}


# -- groups -----------------------------------------------------------------------------------------------------------

GROUP = [
    {"role": "user", "name": "mei", "content": "I sold my red car yesterday."},
    {"role": "user", "name": "lin", "content": "我下个月搬去成都。"},
    {"role": "assistant", "content": "Noted."},
]
PROPOSED = [
    {"messages": [1], "quote": "sold my red car", "type": "fact", "text": "mei sold her red car.", "subject": "mei"},
    {"messages": [2], "quote": "搬去成都", "type": "fact", "text": "lin下个月搬去成都。", "subject": "lin"},
    {"messages": [2], "quote": "下个月", "type": "fact", "text": "mei knows lin.", "subject": "mei"},
]
EPISODES = [
    {"participant": "mei", "title": "mei sells", "content": "mei told that her car is sold.", "messages": [1]},
    {"participant": "lin", "title": "lin搬家", "content": "lin说要搬家。", "messages": [2]},
]


async def test_each_of_a_group_has_memories_of_their_own_only(tmp_path: Path) -> None:
    held: dict[str, set[str]] = {}
    async with Memory.open(
        tmp_path / "m.db", llm=Model(memories=PROPOSED, episodes=EPISODES), embedder=WordEmbedder()
    ) as memory:
        for user in ("mei", "lin", "tom"):
            await memory.add(GROUP, user_id=user, session_id="s", own_only=True)
            held[user] = {one.content for one in await memory.list(user_id=user)}
            assert await memory.count(user_id=user, memory_types=["message"]) == 3, "the conversation itself is kept"
    assert held == {
        "mei": {"mei sold her red car.", "mei knows lin.", "mei told that her car is sold."},
        "lin": {"lin下个月搬去成都。", "lin说要搬家。", "mei knows lin."},
        "tom": set(),
    }


async def test_the_same_without_a_model(tmp_path: Path) -> None:
    talk = [
        {"role": "user", "name": "mei", "content": "I'm allergic to peanuts."},
        {"role": "user", "name": "lin", "content": "我对花生不过敏，我在成都的银行工作。"},
    ]
    async with Memory.open(tmp_path / "m.db", embedder=WordEmbedder()) as memory:
        held = {}
        for user in ("mei", "lin", "tom"):
            await memory.add(talk, user_id=user, own_only=True)
            held[user] = " ".join(one.content for one in await memory.list(user_id=user))
    assert "peanuts" in held["mei"] and "成都" not in held["mei"]
    assert "成都" in held["lin"] and "peanuts" not in held["lin"]
    assert held["tom"] == ""


# -- further extractors -----------------------------------------------------------------------------------------------


class Tickets:
    """Finds numbers of tickets."""

    id = "tickets"

    def __init__(self) -> None:
        self.units = 0

    async def __call__(self, unit: Unit, /) -> Sequence[Draft]:
        self.units += 1
        return [
            Draft(
                memory_type="ticket",
                content=f"ticket in: {said.text}",
                evidence=(Evidence(message_id=said.id),),
                occurred_at=said.sent_at,
            )
            for said in unit.messages
            if "#" in said.text
        ]


@pytest.mark.parametrize("said", ["The login fails, see #4711.", "登录失败，见 #4711。"])
async def test_further_extractors_run_with_a_model_too(said: str, tmp_path: Path) -> None:
    tickets = Tickets()
    model = Model(memories=[{"messages": [1], "quote": "4711", "type": "fact", "text": "Mei reported #4711."}])
    async with Memory.open(tmp_path / "m.db", llm=model, embedder=WordEmbedder(), extractors=[tickets]) as memory:
        await memory.add({"role": "user", "content": said}, user_id="mei")
        assert {one.content for one in await memory.list(user_id="mei")} == {
            "Mei reported #4711.",
            f"ticket in: {said}",
        }
    assert tickets.units == 1


# -- summaries --------------------------------------------------------------------------------------------------------

SUMMARIES = [
    ("We fixed the importer. Mei lives near Porto and likes brevity.", "Mei lives near Porto", "Mei lives near Porto."),
    ("我们修了导入程序。小美住在里斯本附近，想要简短的回答。", "住在里斯本附近", "小美住在里斯本附近。"),
]  # fmt: skip


@pytest.mark.parametrize(("summary", "quote", "text"), SUMMARIES)
async def test_a_summary_is_shown_to_the_model(summary: str, quote: str, text: str, tmp_path: Path) -> None:
    model = Model(memories=[{"messages": [1], "quote": quote, "type": "fact", "text": text, "tags": ["home"]}])
    async with Memory.open(tmp_path / "m.db", llm=model, embedder=WordEmbedder()) as memory:
        for _ in range(2):
            receipt = await MemoryHooks(memory, user_id="mei").on_summary_created(summary, session_id="s")
            assert receipt is not None and receipt.memories[0].content == summary
            await memory.jobs.work()
        held = {one.content: one for one in await memory.list(user_id="mei")}
        assert set(held) == {summary, text}
        assert (held[text].tags, held[text].trust, held[text].data["model"]) == (("summary", "home"), 0.5, model.id)
        problems = (await memory.jobs.status(receipt, user_id="mei")).problems
    asked = [request for request in model.requests if request.task == "memories"]
    assert len(asked) == 1 and summary in asked[0].user and problems == ()


async def test_a_summary_that_a_model_cannot_read_is_read_by_the_rules(tmp_path: Path) -> None:
    from jiyi.errors import LlmRefused

    summary = "The user lives in Lisbon. She prefers short answers. We debugged the importer today."
    model = Model(memories=LlmRefused("no"))
    async with Memory.open(tmp_path / "m.db", llm=model, embedder=WordEmbedder()) as memory:
        receipt = await memory.sessions.add_summary(summary, user_id="mei", session_id="s1")
        await memory.jobs.work()
        held = [(one.memory_type, one.content) for one in await memory.list(user_id="mei")]
        assert ("episode", summary) in held and any(kind == "fact" and "Lisbon" in text for kind, text in held)
        [problem] = (await memory.jobs.status(receipt, user_id="mei")).problems
        assert "the built-in extractor read the summary" in problem


# -- merged texts -----------------------------------------------------------------------------------------------------

MERGES = [
    ("Mei's bike is a blue Kona", "Mei's bike has 24 gears", "Mei's bike is a blue Kona and has 24 gears."),
    ("小美的自行车是蓝色的", "小美的自行车有二十四速", "小美的自行车是蓝色的，有二十四速。"),
]


@pytest.mark.parametrize(("old", "new", "merged"), MERGES)
@pytest.mark.parametrize("complete", [True, False])
async def test_merged_saved_texts_become_the_merged_text(
    complete: bool, old: str, new: str, merged: str, tmp_path: Path
) -> None:
    text = merged if complete else old
    judged = {"pair": 1, "action": "merge", "reason": "one bike", "merged": text}
    model = ScriptedLLM(json.dumps({"judgements": [judged]}, ensure_ascii=False))
    async with Memory.open(tmp_path / "m.db", llm=model) as memory:
        for at, one in enumerate((old, new)):
            receipt = await memory.add(one, user_id="mei", tags=[f"t{at}"])
            await memory.jobs.work()
        held = {one.content: one for one in await memory.list(user_id="mei")}
        if not complete:
            assert set(held) == {old, new}, "a merged text that leaves something out is not used"
            return
        assert set(held) == {merged} and set(held[merged].tags) == {"t0", "t1"}
        [added, change] = await memory.history(receipt.memories[0].id, user_id="mei")
        assert {added.action, change.action} == {"add", "merge"}
        assert (await memory.search("bike 自行车", user_id="mei")).hits[0].content == merged
