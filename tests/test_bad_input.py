"""What is wrong is refused with the name of the argument; the store is unchanged and goes on working."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import jiyi.client
from jiyi import CandidateMemory, InvalidInput, Message
from jiyi.settings import load_settings
from jiyi.sync import Memory
from jiyi.testing import WordEmbedder
from support import NOW, contents, dump

NAIVE = datetime(2024, 1, 1)  # noqa: DTZ001 - that it has no zone is the point
LATER = datetime(2024, 1, 2, tzinfo=UTC)
TOO_LATE = datetime(9999, 12, 31, 23, 59, tzinfo=UTC).replace(tzinfo=None).isoformat() + "-14:00"
HUGE = "x" * 1_000_000
DEEP: dict[str, Any] = {}
_level = DEEP
for _ in range(100_000):
    _level["a"] = _level = {}

BAD_TEXTS = {
    "empty": "",
    "blank": " \n\t\u3000",
    "NUL": "a\x00b",
    "surrogate": "a\ud800b",
    "huge": HUGE,
    "bytes": b"tea",
}
BAD_NAMES = {**BAD_TEXTS, "long": "x" * 257, "number": 7}
BAD_LISTS = {
    "string": "tag",
    "number": 5,
    "of numbers": [1],
    "of blanks": [" "],
    "of None": [None],
    "many": list(map(str, range(65))),
}
BAD_OBJECTS = {
    "NaN": {"a": float("nan")},
    "infinity": {"a": [float("inf")]},
    "a set": {"a": {1}},
    "a date": {"a": NOW},
    "surrogate": {"a": "\ud800"},
    "surrogate key": {"\ud800": 1},
    "number as key": {1: 2},
    "a list": [1],
    "text": "a",
    "too deep": DEEP,
}
BAD_TIMES = {"naive": NAIVE, "text": "2024-01-01", "date": date(2024, 1, 1), "number": 5}
BAD_SHARES = {"two": 2, "negative": -0.1, "NaN": float("nan"), "text": "0.5", "bool": True}
BAD_LIMITS = {"zero": 0, "negative": -1, "huge": 10**9, "bool": True, "text": "5", "float": 5.0, "None": None}


def each(argument: str, values: dict[str, Any], **others: Any) -> list[Any]:
    return [
        pytest.param({argument: value, **others}, argument, id=f"{argument} {name}") for name, value in values.items()
    ]


def one(argument: str, value: Any, name: str = "", **others: Any) -> Any:
    return pytest.param({argument: value, **others}, name or argument, id=f"{name or argument} {value!r:.40}")


ADD = [
    *each("what", BAD_TEXTS | {"None": None, "number": 5, "a set": {"a"}, "empty list": [], "object": {}}),
    *each("user_id", BAD_NAMES | {"None": None}),
    *[
        case
        for name in ("session_id", "agent_id", "group_id", "memory_type", "idempotency_key")
        for case in each(name, BAD_NAMES)
    ],
    *each("actor", BAD_NAMES | {"None": None}),
    *each("importance", BAD_SHARES),
    *each("tags", BAD_LISTS),
    *each("metadata", BAD_OBJECTS),
    *each("occurred_at", BAD_TIMES),
    *each("expires_at", BAD_TIMES),
    one("tags", ["\u200b"]),  # nothing is left of it when it is normalised
    one("tags", ["ﷺ" * 20]),  # and of this 360 characters
    one("what", ["fine", ""], "what[1]"),
    one("what", ["fine", 5], "what[1]"),
    one("what", ["fine", None], "what[1]"),
    one("what", [["nested"]], "what[0]"),
    one("what", [{"role": "user", "content": "hi"}, {"role": "user", "content": " "}], "what[1].text"),
    one("what", {"role": "user", "content": "a\ud800b"}, "what.text"),
    one("what", {"role": "user", "content": "a\x00b"}, "what.text"),
    one("what", {"role": "user", "content": HUGE}, "what.text"),
    one("what", {"role": "user"}, "what.text"),
    one("what", {"role": "user", "content": 5}, "what.text"),
    one("what", {"role": "user", "content": [5]}, "what"),
    one("what", {"role": "u" * 65, "content": "hi"}, "what.role"),
    one("what", {"role": "", "content": "hi"}, "what.role"),
    one("what", {"role": "user", "content": "hi", "name": "a\x00"}, "what.speaker"),
    one("what", {"role": "user", "content": "hi", "id": "x" * 257}, "what.id"),
    one("what", {"role": "user", "content": "hi", "id": 5}, "what.id"),
    one("what", {"role": "user", "content": "hi", "sent_at": NAIVE}, "what.sent_at"),
    one("what", {"role": "user", "content": "hi", "timestamp": "2024-01-01T00:00:00"}, "what.sent_at"),
    one("what", {"role": "user", "content": "hi", "timestamp": "yesterday"}, "what.sent_at"),
    one("what", {"role": "user", "content": "hi", "timestamp": TOO_LATE}, "what.sent_at"),
    one("what", Message(text=" "), "what.text"),
    one("what", {"role": "user", "content": "hi"}, "memory_type", memory_type="fact"),
    one("what", [{"role": "assistant", "content": None, "tool_calls": []}], "what"),
    one("what", {"memory_type": "fact"}, "what.content"),
    one("what", {"content": " "}, "what.content"),
    one("what", {"content": "tea", "typ": "fact"}, "what.typ"),
    one("what", {"content": "tea", "importance": 2}, "what.importance"),
    one("what", {"content": "tea", "importance": float("nan")}, "what.importance"),
    one("what", {"content": "tea", "confidence": -1}, "what.confidence"),
    one("what", {"content": "tea", "tags": "drink"}, "what.tags"),
    one("what", {"content": "tea", "tags": [""]}, "what.tags[0]"),
    one("what", {"content": "tea", "memory_type": "x" * 65}, "what.memory_type"),
    one("what", {"content": "tea", "memory_key": "\x00"}, "what.memory_key"),
    one("what", {"content": "tea", "summary": ""}, "what.summary"),
    one("what", {"content": "tea", "occurred_at": NAIVE}, "what.occurred_at"),
    one("what", {"content": "tea", "valid_from": TOO_LATE}, "what.valid_from"),
    one("what", {"content": "tea", "valid_from": LATER, "valid_to": LATER}, "what.valid_to"),
    one("what", {"content": "tea", "metadata": {"a": float("nan")}}, "what.metadata"),
    one("what", {"content": "tea", "metadata": {"a": "\ud800"}}, "what.metadata"),
    one("what", {"content": "tea", "data": {"a": {1}}}, "what.data"),
    one("what", {"content": "tea", "data": {"a": float("inf")}}, "what.data"),
    one("what", CandidateMemory(content="tea", tags=("a\x00",)), "what.tags[0]"),
]

SEARCH = [
    *each("query", BAD_TEXTS | {"None": None, "number": 5, "long": "x" * 8001}),
    *each("user_id", BAD_NAMES | {"None": None}),
    *each("search_mode", {"unknown": "fuzzy", "empty": "", "list": ["hybrid"], "case": "HYBRID"}),
    *[case for name in ("session_id", "agent_id", "group_id") for case in each(name, BAD_NAMES)],
    *[case for name in ("keywords", "memory_types", "layers", "tags") for case in each(name, BAD_LISTS)],
    one("layers", ["semantic", "deep"]),
    *each("limit", BAD_LIMITS),
    *each("min_relevance_score", BAD_SHARES | {"None": None}),
    *each("time_range_days", {"zero": 0, "negative": -3, "huge": 10**9, "bool": True, "text": "5"}),
    *each("as_of", BAD_TIMES),
    *each("asked_at", BAD_TIMES),
    *each(
        "time_range",
        {"one": (LATER,), "text": "2024", "reversed": (LATER, LATER - timedelta(1)), "empty": (LATER, LATER)},
    ),
    one("time_range", (NAIVE, None), "time_range[0]"),
    one("time_range", (None, NAIVE), "time_range[1]"),
    one("time_range", (LATER, None), time_range_days=3),
]

LIST = [
    *each("user_id", BAD_NAMES | {"None": None}),
    *each("limit", BAD_LIMITS),
    *each("status", {"unknown": "deleted", "None": None, "empty": ""}),
    *each("cursor", {"empty": "", "NUL": "\x00", "number": 5}),
    *each("layers", BAD_LISTS),
    *each("tags", BAD_LISTS),
    *each("as_of", BAD_TIMES),
    one("time_range", (NAIVE, None), "time_range[0]"),
]

UPDATE = [
    *each("memory_id", BAD_NAMES | {"None": None}, content="x"),
    *each("user_id", BAD_NAMES | {"None": None}, content="x"),
    *each("expected_version", {"zero": 0, "negative": -1, "bool": True, "text": "1", "huge": 10**30}, content="x"),
    *each("content", BAD_TEXTS),
    *each("summary", BAD_TEXTS),
    *each("memory_type", BAD_NAMES),
    *each("importance", BAD_SHARES),
    *each("tags", BAD_LISTS),
    *each("metadata", BAD_OBJECTS),
    *each("occurred_at", BAD_TIMES),
    *each("valid_to", BAD_TIMES),
    *each("expires_at", BAD_TIMES),
    *each("status", {"unknown": "deleted", "empty": "", "case": "ACTIVE"}),
    *each("actor", BAD_NAMES, content="x"),
    *each("reason", BAD_TEXTS, content="x"),
    pytest.param({}, "update", id="nothing to change"),
]

OTHER_VERBS = [
    *[
        pytest.param(verb, {argument: value}, argument, id=f"{verb} {argument} {name}")
        for verb in ("get", "delete", "history", "restore")
        for argument in ("memory_id", "user_id")
        for name, value in (BAD_NAMES | {"None": None}).items()
    ],
    *[
        pytest.param("delete_all", {"user_id": value}, "user_id", id=f"delete_all {name}")
        for name, value in BAD_NAMES.items()
    ],
    pytest.param("delete_all", {"user_id": None}, "user_id", id="delete_all None"),
    *[pytest.param("stats", {"user_id": value}, "user_id", id=f"stats {name}") for name, value in BAD_NAMES.items()],
    *[pytest.param("count", {"user_id": value}, "user_id", id=f"count {name}") for name, value in BAD_NAMES.items()],
    pytest.param("get_many", {"memory_ids": "abc"}, "memory_ids", id="get_many text"),
    pytest.param("get_many", {"memory_ids": None}, "memory_ids", id="get_many None"),
    pytest.param("get_many", {"memory_ids": 5}, "memory_ids", id="get_many number"),
    pytest.param("get_many", {"memory_ids": ["a", ""]}, "memory_ids[1]", id="get_many blank"),
    pytest.param("restore", {"to_version": 0}, "to_version", id="restore version 0"),
    pytest.param("restore", {"to_version": "1"}, "to_version", id="restore version text"),
]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Memory, str, Path]]:
    """One store for all cases: none of them may change it."""
    path = tmp_path_factory.mktemp("bad") / "memory.db"
    settings = load_settings(recalls={"enabled": False})  # they would be written a moment after each search
    with Memory.open(path, settings=settings, embedder=WordEmbedder()) as memory:
        made = memory.add("likes tea", user_id="mei").memories[0]
        memory.update(made.id, user_id="mei", content="likes green tea")
        yield memory, made.id, path


def problem(memory: Memory, verb: str, arguments: dict[str, Any], argument: str) -> str:
    """Return how a call fails to refuse its arguments; nothing if it refuses them as it should."""
    try:
        getattr(memory, verb)(**arguments)
    except InvalidInput as error:
        named = error.argument == argument or error.argument.startswith((f"{argument}[", f"{argument}."))
        whole = str(error) == f"{error.argument}: {error.problem}" and len(str(error)) < 500
        str(error).encode()  # an error that cannot be printed helps nobody
        return "" if named and whole else f"the error is {error}"
    return "accepted"


def refuses(shared: tuple[Memory, str, Path], verb: str, cases: list[Any], **usual: Any) -> None:
    memory, memory_id, path = shared
    before = dump(path)
    failed = []
    for case in cases:
        arguments, argument = case.values
        if verb in ("get", "delete", "history", "restore", "update"):
            arguments = {"memory_id": memory_id, **arguments}
        if verb not in ("delete_all", "stats"):
            arguments = {"user_id": "mei", **arguments}
        if found := problem(memory, verb, {**usual, **arguments}, argument):
            failed.append(f"{case.id}: {found}")
    assert failed == []
    assert dump(path) == before
    assert contents(memory.search("green", user_id="mei")) == ["likes green tea"]


def test_add_refuses(shared: tuple[Memory, str, Path]) -> None:
    refuses(shared, "add", ADD, what="fine")


def test_search_refuses(shared: tuple[Memory, str, Path]) -> None:
    refuses(shared, "search", SEARCH, query="tea")


def test_list_refuses(shared: tuple[Memory, str, Path]) -> None:
    refuses(shared, "list", LIST)


def test_update_refuses(shared: tuple[Memory, str, Path]) -> None:
    refuses(shared, "update", UPDATE)


def test_the_other_verbs_refuse(shared: tuple[Memory, str, Path]) -> None:
    for verb in dict.fromkeys(case.values[0] for case in OTHER_VERBS):
        cases = [pytest.param(*case.values[1:], id=case.id) for case in OTHER_VERBS if case.values[0] == verb]
        refuses(shared, verb, cases)


# Arguments of mem0 and others: the verb, theirs, and a word of ours that the error names.
FOREIGN = [
    ("search", {"top_k": 3}, "limit"),
    ("search", {"threshold": 0.3}, "min_relevance_score"),
    ("search", {"filters": {"user_id": "mei"}}, "user_id"),
    ("search", {"run_id": "monday"}, "session_id"),
    ("search", {"rerank": True}, "search.reader"),
    ("list", {"page_size": 3}, "limit"),
    ("count", {"run_id": "monday"}, "session_id"),
    ("add", {"messages": "tea"}, "first argument"),
    ("add", {"infer": False}, "statement"),
    ("add", {"run_id": "monday"}, "session_id"),
    ("add", {"timestamp": 1}, "occurred_at"),
    ("update", {"data": "tea"}, "content"),
    ("update", {"colour": "red"}, "content"),
]


def test_arguments_of_other_libraries_are_answered_with_ours(shared: tuple[Memory, str, Path]) -> None:
    memory, _, _ = shared
    client = jiyi.client.Memory("http://127.0.0.1:1")
    for verb, given, ours in FOREIGN:
        with pytest.raises(TypeError, match=f"has no argument '{next(iter(given))}'.*{ours}"):
            getattr(memory, verb)(**given)
        with pytest.raises(TypeError, match=ours):
            asyncio.run(getattr(client, verb)(**given))
    for one in (memory, client):
        with pytest.raises(AttributeError, match=r"no get_all; use list\(user_id"):
            one.get_all  # noqa: B018
        assert not hasattr(one, "colour")
