"""Questions for a name are answered by what names somebody in passing."""

from __future__ import annotations

from pathlib import Path

import pytest

from jiyi import Memory
from jiyi.read.names import name_question
from support import contents

ANSWERED = [
    ("What's my wife's name?", "My wife Elena is an architect.", "My wife is German."),
    ("What's my mother's name?", "hey, my mum Carol is visiting on Sunday", "my mum is visiting on Sunday"),
    ("Who is my boss?", "My new manager, Anna, is strict", "My boss is really nice today"),
    ("what is my dog called", "our puppy is called waffles", "My dog is ill."),
    ("What's my cousin's name?", "my cousin's getting married, her name is Fiona", "my cousin is getting married"),
    ("What's the name of my band?", "I play bass in a band called Night Bus.", "My name is Tom."),
    ("What is my name?", "I'm Dana and I work at Siemens.", "I am Norwegian."),
    ("What's my name?", "Call me Dana, please.", "I flew to Rome, Italy."),
    ("我叫什么名字？", "我叫李雷，今年三十岁。", "我叫了外卖。"),
    ("你还记得我女朋友叫什么吗？", "我女朋友小雯是护士。", "我女朋友常常加班。"),
    ("我儿子叫什么？", "我们有一个儿子，叫乐乐。", "我儿子对牛奶过敏。"),
    ("我老婆叫什么？", "My wife Elena is an architect.", "My wife and I run a shop."),
    ("What's my best friend's name?", "我闺蜜叫周婷，在银行上班", "我闺蜜在银行上班"),
]


@pytest.mark.parametrize(("question", "naming", "other"), ANSWERED)
def test_what_names_somebody_is_told_from_what_does_not(question: str, naming: str, other: str) -> None:
    asked = name_question(question)
    assert asked is not None
    assert asked.is_answered_by(naming) and not asked.is_answered_by(other)
    assert not asked.is_about_another(naming) and not asked.is_about_another(other)


@pytest.mark.parametrize(
    "question",
    [
        "What is my plan?",
        "Who is Jonas?",
        "我老婆是做什么的？",
        "我的车是什么牌子？",
        "他是谁？",
        "What's my username?",
    ],
)
def test_other_questions_ask_for_no_name(question: str) -> None:
    assert name_question(question) is None


async def test_a_name_told_in_passing_is_an_answer_and_another_relation_is_none(path: Path) -> None:
    async with Memory.open(path) as memory:
        for said in ("My brother Sam broke his arm.", "My brother loves pizza.", "Our son Leo started kindergarten."):
            await memory.add([{"role": "user", "content": said}], user_id="mei")
        found = await memory.search("What's my brother's name?", user_id="mei", min_relevance_score=0.6)
        assert contents(found)[0] == "My brother Sam broke his arm."
        assert "Our son Leo started kindergarten." not in contents(found)
        missing = await memory.search("What's my daughter's name?", user_id="mei", min_relevance_score=0.6)
        assert contents(missing) == []
