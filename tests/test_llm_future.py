"""What a model says about the future stays as it said it: text, date and what it ends."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from jiyi import Memory
from jiyi.testing import ScriptedLLM, WordEmbedder

MONDAY = datetime(2026, 6, 8, 9, tzinfo=UTC)
ENGLISH = [
    ("My eye test is on Friday.", "Ada's eye test is on Friday (June 12, 2026).", "event", "2026-06-12"),
    ("The landlord comes on Wednesday at noon.", "Ada's landlord comes on Wednesday (June 10, 2026).", "event",
     "2026-06-10"),
    ("We fly to Porto on August 3.", "Ada flies to Porto on August 3, 2026.", "event", "2026-08-03"),
    ("I have to hand in the report in two weeks.", "Ada has to hand in the report in two weeks (June 22, 2026).",
     "task", "2026-06-22"),
    ("The course starts the Monday after next.", "Ada's course starts the Monday after next (June 22, 2026).", "event",
     "2026-06-22"),
    ("Rent is due on the 1st.", "Ada's rent is due on the 1st (July 1, 2026).", "task", "2026-07-01"),
    ("My passport runs out in March.", "Ada's passport runs out in March (2027).", "fact", "2027-03-01"),
]  # fmt: skip
CHINESE = [
    ("周四要带猫去打疫苗。", "阿达周四（2026年6月11日）要带猫去打疫苗。", "task", "2026-06-11"),
    ("下周二我去交房租。", "阿达下周二（2026年6月16日）去交房租。", "task", "2026-06-16"),
    ("后天下午面试。", "阿达后天（2026年6月10日）下午面试。", "event", "2026-06-10"),
    ("八月十五号搬家。", "阿达8月15日（2026年8月15日）搬家。", "event", "2026-08-15"),
    ("驾照三个月以后到期。", "阿达的驾照三个月以后（2026年9月8日）到期。", "fact", "2026-09-08"),
    ("月底要交论文初稿。", "阿达月底（2026年6月30日）要交论文初稿。", "task", "2026-06-30"),
    ("明年一月我妈退休。", "阿达的妈妈明年一月（2027年1月）退休。", "event", "2027-01-01"),
]


@pytest.mark.parametrize(("said", "text", "kind", "when"), [*ENGLISH, *CHINESE])
async def test_dates_that_lie_ahead_stay_as_the_model_gave_them(
    said: str, text: str, kind: str, when: str, tmp_path: Path
) -> None:
    proposed = {"messages": [1], "quote": said, "type": kind, "text": text, "when": when, "importance": 0.6}
    model = ScriptedLLM(json.dumps({"memories": [proposed]}, ensure_ascii=False))
    async with Memory.open(tmp_path / "m.db", llm=model, embedder=WordEmbedder()) as memory:
        receipt = await memory.add({"content": said, "sent_at": MONDAY}, user_id="ada")
        [found] = await memory.list(user_id="ada")
    assert receipt.problems == ()
    assert (found.content, found.data.get("when"), found.valid_to) == (text, when, None)
    assert f"{found.occurred_at:%F}" == (when if kind in ("event", "task") else f"{MONDAY:%F}")
    assert found.valid_from == MONDAY


@pytest.mark.parametrize(
    ("said", "text", "when"),
    [
        ("My eye test is on Friday.", "Ada's eye test is on June 12, 2026.", "2026-07-19"),
        ("后天下午面试。", "阿达2026年6月10日下午面试。", "2026-07-17"),
    ],
)
async def test_a_date_that_is_not_consistent_is_left_out_and_that_is_said(
    said: str, text: str, when: str, tmp_path: Path
) -> None:
    proposed = {"messages": [1], "quote": said, "type": "event", "text": text, "when": when}
    model = ScriptedLLM(json.dumps({"memories": [proposed]}, ensure_ascii=False))
    async with Memory.open(tmp_path / "m.db", llm=model, embedder=WordEmbedder()) as memory:
        receipt = await memory.add({"content": said, "sent_at": MONDAY}, user_id="ada")
        [found] = await memory.list(user_id="ada")
    assert (found.content, found.data.get("when"), found.occurred_at) == (text, None, MONDAY)
    [problem] = receipt.problems
    assert when in problem
