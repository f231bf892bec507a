"""`jiyi doctor` tests a language model with ten sentences; one that fails is asked twice about its memories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jiyi import Memory
from jiyi.cli import doctor
from jiyi.llm import LLMRequest, Reply
from jiyi.llm.client import LLMClient
from jiyi.settings import LLMSettings
from jiyi.testing import ScriptedModel, WordEmbedder
from jiyi.write.llm import self_test
from test_llm_confidence import AT, ENGLISH, Model, open_at

TRUE = {
    "en": [("The user's sister plays the cello.", "plays the cello"),
           ("The user almost bought a Vespa and did not.", "bought a Vespa"),
           ("The user is allergic to walnuts.", "allergic to walnuts"),
           ("The locker code is 7315.", "locker code is 7315"),
           ("The user's flight to Oslo leaves on May 9, 2026 at 6:40.", "flight to Oslo")],
    "zh": [("用户的妹妹在成都学画画。", "学画画"), ("用户没有报名马拉松。", "报名了马拉松"),
           ("用户对花生过敏。", "对花生过敏"),
           ("会议室的密码是6027。", "密码是6027"), ("用户爸爸的体检改到2026年6月12日。", "体检改到6月12号")],
}  # fmt: skip
FALSE = {
    "en": [("The user plays the cello.", "plays the cello"), ("The user bought a Vespa.", "bought a Vespa")],
    "zh": [("用户跑马拉松。", "马拉松"), ("用户对腰果过敏。", "腰果")],
}


def proposals(told: dict[str, list[tuple[str, str]]], language: str) -> str:
    memories = [{"messages": [1], "quote": quote, "type": "fact", "text": text} for text, quote in told[language]]
    return json.dumps({"memories": memories}, ensure_ascii=False)


class Reads:
    """Finds some memories in each language."""

    id = "testing:reads"

    def __init__(self, told: dict[str, list[tuple[str, str]]]) -> None:
        self.told = told

    async def reply(self, request: LLMRequest) -> Reply:
        language = "zh" if "大" in request.system or "你" in request.system else "en"
        return Reply(text=proposals(self.told, language), cut_off=False, usage=None)

    async def close(self) -> None:
        pass


@pytest.mark.parametrize(("told", "right"), [(TRUE, 10), (FALSE, 3)])
async def test_a_model_is_tested_with_ten_sentences(told: Any, right: int) -> None:
    found = await self_test(LLMClient(Reads(told), LLMSettings()))
    assert (found.model, found.items) == ("testing:reads", 10)
    assert found.right == right and found.passed is (right >= 8), found.wrong


@pytest.mark.parametrize("told", [TRUE, FALSE])
async def test_doctor_notes_the_outcome_and_one_that_fails_is_verified(
    told: Any, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Memory.open(path, embedder=WordEmbedder()):
        pass
    with ScriptedModel([proposals(told, "en"), proposals(told, "zh")]) as server:
        for name, value in (("MODEL", "large"), ("API_KEY", "k"), ("BASE_URL", server.base_url)):
            monkeypatch.setenv(f"JIYI_LLM__{name}", value)
        checks = {check.name: check for check in await doctor.examine(str(path))}
    passed = told is TRUE
    assert checks["LLM"].state is (doctor.State.WORKS if passed else doctor.State.DEGRADED)
    assert f"{10 if passed else 3} of 10" in checks["LLM"].finding
    for name in ("MODEL", "API_KEY", "BASE_URL"):
        monkeypatch.delenv(f"JIYI_LLM__{name}")
    model = Model(ENGLISH[1])
    model.id = "openai:large"
    path.rename(path.with_name("m.db"))
    async with open_at(path.parent, model, verify="auto") as memory:
        await memory.add({"role": "user", "content": ENGLISH[0], "sent_at": AT}, user_id="mei")
        await memory.jobs.work()
        [entry] = await memory.keys.audit()
    assert ("verify" in [request.task for request in model.requests]) is not passed
    assert (entry.target, entry.detail) == ("openai:large", f"{10 if passed else 3} of 10")


async def test_a_model_that_does_not_answer_is_degraded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("MODEL", "m"), ("API_KEY", "k"), ("BASE_URL", "http://127.0.0.1:9/v1")):
        monkeypatch.setenv(f"JIYI_LLM__{name}", value)
    checks = {check.name: check for check in await doctor.examine(str(path))}
    assert checks["LLM"].state is doctor.State.DEGRADED and "the test failed" in checks["LLM"].finding
