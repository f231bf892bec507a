"""Asking a model: what servers do wrong, how long one waits, what it costs, and what a user pays."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from faults import (
    FaultServer,
    answer,
    bomb,
    broken_chunks,
    completion,
    drip,
    drip_spaces,
    fault_server,
    flood,
    flood_error,
    half,
    hang,
    http,
    no_http,
    raw,
    reset,
    says,
    status,
)
from jiyi import LlmBadReply, LlmError, LlmOverBudget, LlmRefused, LlmUnavailable, SettingsError
from jiyi.llm import LLMRequest, Usage, resolve
from jiyi.llm import client as client_module
from jiyi.llm.client import LLMClient, RamLedger, check_budget, start_of_hour
from jiyi.llm.prompts import BUILT_IN, IN_SETS, PLACEHOLDERS, Prompts
from jiyi.settings import load_settings
from jiyi.store import open_store
from support import each_case

QUESTION = LLMRequest(task="memories", system="Be brief.", user="Hello?", schema={"type": "object"})


@pytest.fixture
async def server() -> AsyncIterator[FaultServer]:
    async with fault_server() as faults:
        yield faults


@pytest.fixture(autouse=True)
def no_long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "FIRST_PAUSE_S", 0.001)


def llm_at(server: FaultServer, **settings: Any) -> LLMClient:
    given = {"model": "m", "api_key": "sk-secret-key", "base_url": server.url, "timeout_s": 60, **settings}
    llm = resolve(load_settings(llm=given))
    assert llm is not None
    return llm


# -- settings ---------------------------------------------------------------------------------------------------------


def test_without_a_model_there_is_none() -> None:
    assert resolve(load_settings()) is None


def test_a_provider_without_an_address_is_named() -> None:
    with pytest.raises(SettingsError, match="LLM_BASE_URL"):
        resolve(load_settings(llm={"model": "m", "provider": "elsewhere"}))


def test_a_key_is_asked_for_unless_the_model_runs_here() -> None:
    with pytest.raises(SettingsError, match="LLM_API_KEY"):
        resolve(load_settings(llm={"model": "m"}))
    local = resolve(load_settings(llm={"model": "m", "provider": "ollama"}))
    assert local is not None
    assert local.id == "ollama:m"


# -- one reply --------------------------------------------------------------------------------------------------------


async def test_a_reply_comes_with_its_usage(server: FaultServer) -> None:
    server.behave(says("yes"))
    reply = await llm_at(server).ask(QUESTION, user_id="mei")
    assert (reply.text, reply.cut_off, reply.usage) == ("yes", False, Usage(1, 100, 20))
    [asked] = server.requests
    assert asked["response_format"]["json_schema"]["schema"] == {"type": "object"}
    assert (asked["model"], asked["temperature"], asked["max_tokens"]) == ("m", 0.3, 16384)


@pytest.mark.parametrize("usage", [0, [], {}, {"prompt_tokens": "many"}, {"prompt_tokens": -1, "completion_tokens": 5}])
async def test_usage_that_a_server_does_not_tell_is_estimated(server: FaultServer, usage: Any) -> None:
    server.behave(answer(completion("yes", usage=usage)))
    reply = await llm_at(server).ask(QUESTION, user_id="mei")
    assert reply.usage is not None
    assert 0 < reply.usage.output_tokens < reply.usage.input_tokens < 50


async def test_a_reply_in_parts_is_put_together(server: FaultServer) -> None:
    server.behave(
        answer(completion([{"type": "text", "text": "ye"}, {"type": "image"}, {"type": "text", "text": "s"}]))
    )
    assert (await llm_at(server).ask(QUESTION, user_id="mei")).text == "yes"


async def test_a_byte_order_mark_does_no_harm(server: FaultServer) -> None:
    server.behave(raw(http(200, b"\xef\xbb\xbf" + json.dumps(completion("yes")).encode())))
    assert (await llm_at(server).ask(QUESTION, user_id="mei")).text == "yes"


WRONG: dict[str, tuple[Any, type[LlmError], str]] = {
    "hangs": (hang, LlmUnavailable, "did not answer within"),
    "drips": (drip, LlmUnavailable, "did not answer within"),
    "drips spaces": (drip_spaces, LlmUnavailable, "did not answer within"),
    "resets": (reset, LlmUnavailable, "was not reached"),
    "speaks another protocol": (no_http, LlmUnavailable, "was not reached"),
    "ends in the middle": (half, LlmUnavailable, "was not reached"),
    "breaks its chunks": (broken_chunks, LlmUnavailable, "was not reached"),
    "answers without end": (flood, LlmBadReply, "longer than 4,000,000 bytes"),
    "fails without end": (flood_error, LlmBadReply, "longer than 4,000,000 bytes"),
    "sends a bomb": (raw(bomb()), LlmBadReply, "is compressed"),
    "400": (status(400, "nonsense"), LlmRefused, "refused the request: nonsense"),
    "401": (
        status(401, "Incorrect key sk-secret-key"),
        LlmRefused,
        r"answered 401 \(check LLM_API_KEY\).*key \*",
    ),
    "402": (status(402, "no money"), LlmRefused, "answered 402: no money"),
    "403": (status(403), LlmRefused, "check LLM_API_KEY"),
    "404": (status(404, "no such model"), LlmRefused, "check LLM_MODEL"),
    "408": (status(408), LlmUnavailable, "answered 408"),
    "413": (status(413, "too long"), LlmRefused, "answered 413: too long"),
    "429": (status(429, "slow down"), LlmUnavailable, "answered 429: slow down"),
    "500": (status(500), LlmUnavailable, "answered 500"),
    "502 as a page": (status(502, "<html>Bad Gateway</html>", kind="text/html"), LlmUnavailable, "answered 502"),
    "503": (status(503), LlmUnavailable, "answered 503"),
    "529": (status(529, "overloaded"), LlmUnavailable, "answered 529: overloaded"),
    "a redirect": (status(302, Location="http://127.0.0.1:1/v1"), LlmRefused, "a redirect"),
    "a page": (raw(http(200, b"<html>Hello</html>", kind="text/html")), LlmBadReply, "not return JSON.*<html>"),
    "no bytes": (raw(http(200, b"")), LlmBadReply, "not return JSON"),
    "no UTF-8": (raw(http(200, b'{"choices": "\xff\xfe"}')), LlmBadReply, "not return JSON"),
    "deep": (raw(http(200, b"[" * 100_000)), LlmBadReply, "not return JSON"),
    "another object": (answer({"hello": 1}), LlmBadReply, "no completion"),
    "an error with 200": (answer({"error": {"message": "overloaded"}}), LlmBadReply, "no completion: .*overloaded"),
    "a list": (answer([1]), LlmBadReply, "no completion"),
    "no choices": (answer({"choices": []}), LlmBadReply, "no completion"),
    "null choices": (answer({"choices": None}), LlmBadReply, "no completion"),
    "null content": (says(None), LlmBadReply, "no text"),
    "no content": (says("  "), LlmBadReply, "no text"),
    "a number": (answer(completion(42)), LlmBadReply, "no text"),
    "a tool call": (says(None, finish="tool_calls", tool_calls=[{"id": "t"}]), LlmBadReply, "a tool call"),
    "a refusal": (says(None, refusal="I cannot help"), LlmRefused, "refuses: I cannot help"),
    "a filter": (says("half", finish="content_filter"), LlmRefused, "content filter"),
}


async def test_whatever_a_server_does_is_a_named_error(server: FaultServer) -> None:
    for name, (behaviour, expected, message) in WRONG.items():
        server.behave(behaviour)
        limit_s = 0.3 if "did not answer" in message else 60
        with pytest.raises(expected, match=message) as raised:
            await llm_at(server, retries=0, timeout_s=limit_s).ask(QUESTION, user_id="mei")
        assert "sk-secret-key" not in str(raised.value), name
        assert raised.value.temporary == (expected is not LlmRefused), name


async def test_nobody_there_is_a_named_error(server: FaultServer) -> None:
    with pytest.raises(LlmUnavailable, match="was not reached"):
        await llm_at(server, base_url="http://127.0.0.1:1/v1", retries=0).ask(QUESTION, user_id="mei")


# -- asking again -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [status(429), status(500), status(529), reset, half, no_http])
async def test_a_busy_server_is_asked_again(server: FaultServer, fault: Any) -> None:
    server.behave(fault, fault, says("yes"))
    assert (await llm_at(server, retries=2).ask(QUESTION, user_id="mei")).text == "yes"
    assert len(server.requests) == 3


async def test_tries_are_bounded(server: FaultServer) -> None:
    server.behave(status(503))
    with pytest.raises(LlmUnavailable):
        await llm_at(server, retries=3).ask(QUESTION, user_id="mei")
    assert len(server.requests) == 4


@pytest.mark.parametrize("fault", [status(400), status(401), status(404), says(None), hang])
async def test_what_would_fail_again_is_not_asked_again_at_once(server: FaultServer, fault: Any) -> None:
    server.behave(fault)
    with pytest.raises(LlmError):
        await llm_at(server, retries=3, timeout_s=0.3 if fault is hang else 60).ask(QUESTION, user_id="mei")
    assert len(server.requests) == 1


async def test_a_server_says_when_to_come_back(server: FaultServer) -> None:
    server.behave(status(429, Retry_After="0"), says("yes"))
    assert (await llm_at(server).ask(QUESTION, user_id="mei")).text == "yes"
    server.behave(status(429, retry_after_ms="1"), says("yes"))
    assert (await llm_at(server).ask(QUESTION, user_id="mei")).text == "yes"


@pytest.mark.parametrize(
    ("header", "pause_s"),
    [("90", 90), (None, None), ("99999999999", 86_400)],
    ids=["seconds", "date", "for ever"],
)
async def test_a_long_pause_is_left_to_a_later_job(
    server: FaultServer, header: str | None, pause_s: float | None
) -> None:
    began = datetime.now(UTC)
    due = began.replace(microsecond=0) + timedelta(hours=1)
    server.behave(status(429, Retry_After=header or format_datetime(due, usegmt=True)))
    with pytest.raises(LlmUnavailable) as raised:
        await llm_at(server, retries=2).ask(QUESTION, user_id="mei")
    assert len(server.requests) == 1
    assert raised.value.retry_after_s is not None
    if pause_s is None:  # counted from some moment of this test, however long it took
        assert (due - datetime.now(UTC)).total_seconds() <= raised.value.retry_after_s
        assert raised.value.retry_after_s <= (due - began).total_seconds()
    else:
        assert raised.value.retry_after_s == pause_s


@pytest.mark.parametrize("header", ["soon", "nan", "-5", "", "Mon, 99 Foo 2023"])
async def test_a_pause_that_makes_no_sense_is_passed_over(server: FaultServer, header: str) -> None:
    server.behave(status(429, Retry_After=header), says("yes"))
    assert (await llm_at(server).ask(QUESTION, user_id="mei")).text == "yes"


# -- what a server understands ----------------------------------------------------------------------------------------


async def test_a_server_without_schemas_is_asked_more_simply_and_that_is_remembered(server: FaultServer) -> None:
    server.behave(
        status(400, "response_format json_schema is not supported"),
        status(422, "'response_format.type' must be text"),
        says("yes"),
    )
    llm = llm_at(server)
    await llm.ask(QUESTION, user_id="mei")
    await llm.ask(QUESTION, user_id="mei")
    formats = [request.get("response_format", {}).get("type") for request in server.requests]
    assert formats == ["json_schema", "json_object", None, None]


async def test_models_that_want_other_names_get_them(server: FaultServer) -> None:
    server.behave(
        status(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
        status(400, "Unsupported value: 'temperature' does not support 0.3"),
        says("yes"),
    )
    await llm_at(server).ask(QUESTION, user_id="mei")
    last = server.requests[-1]
    assert last["max_completion_tokens"] == 16384
    assert "max_tokens" not in last
    assert "temperature" not in last
    assert last["response_format"]["type"] == "json_schema"


async def test_a_limit_beyond_the_model_is_left_out(server: FaultServer) -> None:
    server.behave(status(400, "max_tokens is too large: this model's context is 8192 tokens"), says("yes"))
    await llm_at(server).ask(QUESTION, user_id="mei")
    assert "max_tokens" not in server.requests[-1]


async def test_a_server_that_refuses_everything_is_left_alone(server: FaultServer) -> None:
    server.behave(status(400, "max_tokens temperature response_format"))
    with pytest.raises(LlmRefused):
        await llm_at(server).ask(QUESTION, user_id="mei")
    assert len(server.requests) <= 5


async def test_replies_are_asked_for_unpacked(server: FaultServer) -> None:
    server.behave(says("yes"))
    await llm_at(server).ask(QUESTION, user_id="mei")
    assert server.headers[0]["accept-encoding"] == "identity"


# -- budget -----------------------------------------------------------------------------------------------------------


async def test_a_spent_budget_is_a_state_that_ends_with_the_hour(server: FaultServer) -> None:
    server.behave(says("yes"))
    llm = llm_at(server, tokens_per_hour=130)
    await llm.ask(QUESTION, user_id="mei")
    with pytest.raises(LlmOverBudget, match=r"120 of 130 tokens per hour") as raised:
        await llm.ask(QUESTION, user_id="mei")
    assert raised.value.temporary
    assert 0 < (raised.value.retry_after_s or 0) <= 3600
    await llm.ask(QUESTION, user_id="somebody else")
    assert len(server.requests) == 2


async def test_a_question_that_no_hour_can_pay_is_refused_for_good(server: FaultServer) -> None:
    with pytest.raises(LlmRefused, match=r"raise llm\.tokens_per_hour"):
        await llm_at(server, tokens_per_hour=3).ask(QUESTION, user_id="mei")


async def test_questions_at_once_cannot_all_spend_the_last_tokens(server: FaultServer) -> None:
    server.behave(says("yes"))
    llm = llm_at(server, tokens_per_hour=30)
    asked = await asyncio.gather(*(llm.ask(QUESTION, user_id="mei") for _ in range(8)), return_exceptions=True)
    refused = [error for error in asked if isinstance(error, LlmOverBudget)]
    assert len(refused) + len(server.requests) == 8
    assert len(server.requests) <= 30 // 7 + 1


async def test_what_was_never_answered_is_not_paid_and_what_was_garbage_is(server: FaultServer) -> None:
    ledger = RamLedger()
    hour = start_of_hour(datetime.now(UTC))
    settings = load_settings(llm={"model": "m", "api_key": "k", "base_url": server.url, "retries": 0})
    llm = resolve(settings, ledger)
    assert llm is not None
    server.behave(status(503))
    with pytest.raises(LlmUnavailable):
        await llm.ask(QUESTION, user_id="mei")
    assert await ledger.count_llm_usage("mei", hour, Usage()) == Usage()
    server.behave(raw(http(200, b"garbage")))
    with pytest.raises(LlmBadReply):
        await llm.ask(QUESTION, user_id="mei")
    assert (await ledger.count_llm_usage("mei", hour, Usage())).tokens > 0


async def test_counts_outlive_the_process_and_go_with_the_user(server: FaultServer, path: Path) -> None:
    server.behave(says("yes"))
    settings = load_settings(llm={"model": "m", "api_key": "k", "base_url": server.url, "tokens_per_hour": 130})
    for expected in (None, LlmOverBudget):
        store = open_store(path, settings)
        await store.start()
        llm = resolve(settings, store.llm_usage)
        assert llm is not None
        if expected is None:
            await llm.ask(QUESTION, user_id="mei")
        else:
            with pytest.raises(expected):
                await llm.ask(QUESTION, user_id="mei")
            await store.deletions.delete_user("mei")
            hour, epoch = start_of_hour(datetime.now(UTC)), await store.llm_usage.epoch("mei")
            assert await store.llm_usage.count_llm_usage("mei", hour, Usage(), epoch) == Usage()
        await store.close()


def test_an_hour_begins_anew() -> None:
    at = datetime(2026, 5, 7, 13, 59, 30, tzinfo=UTC)
    assert start_of_hour(at) == datetime(2026, 5, 7, 13, tzinfo=UTC)
    with pytest.raises(LlmOverBudget) as raised:
        check_budget(100, Usage(1, 80, 30), Usage(1, 20, 0), at)
    assert raised.value.retry_after_s == 30


# -- prompts ----------------------------------------------------------------------------------------------------------

TASKS = [
    (task, tongue, chosen) for task in PLACEHOLDERS for tongue in ("zh", "en") for chosen in ("production", "eval")
]


@each_case(("task", "tongue", "chosen"), TASKS)
def test_every_task_has_a_prompt_in_both_languages(task: str, tongue: Any, chosen: Any) -> None:
    prompt = Prompts(None, chosen).get(task, tongue)
    assert prompt.system
    assert "JSON" in prompt.user or '{"' in prompt.user
    assert prompt.version.startswith(f"{tongue}/{chosen}/{task}@" if task in IN_SETS else f"{tongue}/{task}@")


def test_there_is_no_prompt_that_nothing_uses() -> None:
    used = {Prompts(None, chosen).get(task, tongue).version.split("@")[0] for task, tongue, chosen in TASKS}  # type: ignore[arg-type]
    assert used == {str(path.relative_to(BUILT_IN).with_suffix("")) for path in BUILT_IN.rglob("*.md")}


def test_a_prompt_of_ones_own_wins_and_has_a_version_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "en").mkdir()
    (tmp_path / "en" / "judge.md").write_text("# system\nJudge.\n# user\n{{pairs}}, which?\n", encoding="utf-8")
    own = Prompts(tmp_path, "production")
    prompt = own.get("judge", "en")
    assert prompt.version != Prompts(None, "production").get("judge", "en").version
    request = prompt.request({}, pairs="{{pairs}} or b")
    assert (request.system, request.user) == ("Judge.", "{{pairs}} or b, which?")
    assert own.get("judge", "zh") == Prompts(None, "production").get("judge", "zh")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "# system"),
        ("# user\n{{pairs}}\n# system\nx", "in this order"),
        ("# system\nx\n# user\nwhich?", r"lacks \{\{pairs\}\}"),
        ("# system\n{{secret}}\n# user\n{{pairs}}", r"has \{\{secret\}\}, which is not a placeholder of this task"),
    ],
)
def test_a_prompt_that_cannot_work_is_named(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "en").mkdir()
    (tmp_path / "en" / "judge.md").write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError, match=problem):
        Prompts(tmp_path, "production").get("judge", "en")


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="is not a folder"):
        Prompts(tmp_path / "nowhere", "production")
