"""The bench of a local model, with a scripted one in its place."""

from __future__ import annotations

import json

import pytest
from bench.local_model import CITY, QUESTION, measure, text_call

from jiyi.testing import ScriptedModel

ARGUMENTS = {"query": QUESTION, "memory_types": ["location"], "time_range": [None, None]}


@pytest.mark.parametrize("form", ["{}", "```json\n{}\n```", "<tool_call>\n{}\n</tool_call>"])
def test_a_call_that_is_written_as_text_is_read(form: str) -> None:
    written = form.replace("{}", json.dumps({"name": "search_memories", "arguments": ARGUMENTS}, indent=2))
    assert text_call(written) == {"name": "search_memories", "arguments": json.dumps(ARGUMENTS)}
    assert text_call(f"Write {written}") is None and text_call('{"answer": 1}') is None and text_call("{{}}") is None


async def test_every_way_gives_the_model_the_city(capsys: pytest.CaptureFixture[str]) -> None:
    call = json.dumps({"name": "search_memories", "arguments": ARGUMENTS})
    with ScriptedModel(["Lisbon.", "Lisbon.", f"```json\n{call}\n```", "Lisbon."]) as model:
        assert await measure(["remember", "proxy", "agent"], model.base_url, "m", show=False)
    told = [json.dumps(request) for request in model.requests]
    assert [f"I live in {CITY}" in one for one in told] == [True, True, False, True]
    assert capsys.readouterr().out.count("right") == 3
