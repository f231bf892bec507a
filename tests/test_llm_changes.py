"""What a language model says has changed or ended: shown the stored memories, it names those that no longer hold."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from jiyi import Memory
from jiyi.reader import Passage
from jiyi.testing import ReplayLLM, ScriptedLLM, ScriptedReader, WordEmbedder

AT = datetime(2025, 2, 3, 9, tzinfo=UTC)


def told(text: str, quote: str, value: str, **more: Any) -> dict[str, Any]:
    about = {"subject": "Mei", "attribute": "ward", "value": value}
    rest = {"type": "profile", "messages": [0], "occurred_at": None, "importance": 0.6, "ends": []}
    return {"text": text, "quote": quote, **about, **rest, **more}


RESPIRATORY = told("Mei works on the respiratory ward.", "I'm on the respiratory ward", "respiratory")
SURGERY = told(
    "Mei moved to surgery.",
    "moved me to surgery",
    "surgery",
    ends=[{"subject": "Mei", "attribute": "ward", "value": "respiratory"}],
)
LINES = ("I'm on the respiratory ward, and it is chaos.", "They moved me to surgery, thank god.")


async def two_sessions(memory: Memory) -> None:
    for number, line in enumerate(LINES):
        message = {"role": "user", "name": "Mei", "content": line, "sent_at": AT + timedelta(days=30 * number)}
        await memory.add([message], user_id="mei", session_id=f"s{number}", wait=True)


async def test_a_model_ends_what_no_longer_holds(tmp_path: Path) -> None:
    model = ReplayLLM([{"memories": [RESPIRATORY]}, {"memories": [SURGERY]}])
    async with Memory.open(tmp_path / "m.db", embedder=WordEmbedder(), llm=model) as memory:
        await two_sessions(memory)
        found = await memory.search("Which ward does Mei work on?", user_id="mei", memory_types=["fact"])
        assert [hit.content for hit in found.hits] == ["Mei moved to surgery."]
        past = await memory.search("ward", user_id="mei", memory_types=["fact"], as_of=AT + timedelta(days=5))
        assert [hit.content for hit in past.hits] == ["Mei works on the respiratory ward."]
        [(old, new)] = [
            (one.target_id, one.memory_id)
            for one in await memory.relations.list(found.hits[0].id, user_id="mei")
            if one.relation_type == "contradicts"
        ]
        assert (await memory.get(old, user_id="mei")).superseded_by == new
    asked = [request.user for request in model.requests if request.task == "memories"]
    assert "[K1] (2025-02-03, Mei) Mei works on the respiratory ward." in asked[1] and "[K1]" not in asked[0]


async def test_a_statement_is_read_in_the_model_s_words_and_only_as_far_as_it_holds(tmp_path: Path) -> None:
    """Of a message that says several things, the fact that answers is shown, and never the message with ended parts."""

    class Brief(ScriptedReader):
        """Prefers short texts about the query's words."""

        def answers(self, question: str, passages: Sequence[Passage]) -> list[float | None]:
            return [8.0 - len(one.text) / 10 if "ward" in one.text or "team" in one.text else -8.0 for one in passages]

    line = "I'm on the respiratory ward, and Kim leads our team."
    kim = told("Kim leads Mei's team.", "Kim leads our team", "Kim", attribute="lead")
    model = ReplayLLM([{"memories": [RESPIRATORY, kim]}, {"memories": [SURGERY]}])
    async with Memory.open(tmp_path / "m.db", embedder=WordEmbedder(), llm=model, reader=Brief("brief")) as memory:
        first = {"role": "user", "name": "Mei", "content": line, "sent_at": AT}
        await memory.add([first], user_id="mei", session_id="s0", wait=True)
        found = await memory.search("Who leads Mei's team?", user_id="mei")
        assert found.hits[0].content == "Kim leads Mei's team."
        second = {"role": "user", "name": "Mei", "content": LINES[1], "sent_at": AT + timedelta(days=30)}
        await memory.add([second], user_id="mei", session_id="s1", wait=True)
        found = await memory.search("Which ward is Mei on, and which team?", user_id="mei")
        assert line not in [hit.content for hit in found.hits]
        assert all("respiratory" not in hit.content for hit in found.hits if hit.relevant)


@pytest.mark.parametrize(
    ("said", "quote", "text", "question"),
    [
        (
            ("The weekly meeting is on Wednesday at ten.", "no wait, it's on Thursday at ten"),
            "it's on Thursday at ten",
            "The weekly meeting is on Thursday at ten.",
            "When is the weekly meeting?",
        ),
        (
            ("部门的周会在每周三上午十点。", "啊不对，周会是周四上午十点"),
            "周会是周四上午十点",
            "部门的周会是周四上午十点。",
            "部门周会是星期几？",
        ),
    ],
)
async def test_a_statement_that_was_corrected_a_moment_later_has_ended(
    said: tuple[str, str], quote: str, text: str, question: str, tmp_path: Path
) -> None:
    proposed = {"messages": [2, 1], "quote": quote, "type": "fact", "text": text, "importance": 0.6}
    model = ScriptedLLM(json.dumps({"memories": [proposed]}, ensure_ascii=False))
    began = datetime(2026, 3, 2, 9, tzinfo=UTC)
    messages = [
        {"role": "user", "content": one, "sent_at": began + timedelta(minutes=at)} for at, one in enumerate(said)
    ]
    async with Memory.open(tmp_path / "memory.db", llm=model) as memory:
        await memory.add(messages, user_id="mei", session_id="s")
        found = await memory.search(question, user_id="mei")
        assert found.hits[0].content != said[0]
