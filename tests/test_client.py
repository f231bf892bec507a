"""The client: the same verbs over HTTP, with the same results and the same errors, on a line that may fail."""

from __future__ import annotations

import asyncio
import inspect
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import jiyi
import jiyi.client
import jiyi.sync
from jiyi import (
    AccessDenied,
    ConnectionLost,
    IdempotencyConflict,
    InvalidInput,
    JiyiError,
    Memory,
    NotFound,
    ServerError,
    SettingsError,
    StoreError,
    StoreUnavailable,
    VersionConflict,
)
from jiyi.engine import runtime
from jiyi.settings import Settings, load_settings
from jiyi.testing import FailingEmbedder, WordEmbedder
from rest import Running, running
from support import each_case, verbs

NEXT_TO_THE_STORE = (
    *("jobs.work", "jobs.counts", "keys.check", "keys.log", "transfer.backup", "usage.most_used"),
    *("maintenance.reindex", "maintenance.vacuum", "maintenance.verify"),
    *("workspace.sync", "workspace.status", "workspace.verify", "workspace.rebuild", "workspace.watch"),
)


# -- the same verbs ---------------------------------------------------------------------------------------------------


def verb_of(memory: Any, name: str) -> Any:
    for part in name.split("."):
        memory = getattr(memory, part)
    return memory


def test_every_verb_of_the_engine_is_here_with_the_same_arguments() -> None:
    memory = jiyi.client.Memory("http://127.0.0.1:1")
    for name, verb in verbs(Memory).items():
        own = verb_of(memory, name)
        expected = list(inspect.signature(verb).parameters.values())[1:]
        assert list(inspect.signature(own).parameters.values()) == expected, name
        assert own.__doc__, name


class Waiting:
    """An asynchronous verb or area, called without `await`."""

    def __init__(self, found: Any, runner: asyncio.Runner) -> None:
        self._found = found
        self._runner = runner

    def __getattr__(self, verb: str) -> Waiting:
        return Waiting(getattr(self._found, verb), self._runner)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._runner.run(self._found(*args, **kwargs))


class Plain:
    """A memory without `await`, whichever kind it is."""

    def __init__(self, memory: Any) -> None:
        self._memory = memory
        self._runner = None if isinstance(memory, jiyi.sync.Memory) else asyncio.Runner()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._memory, name)
        return found if self._runner is None else Waiting(found, self._runner)

    def __enter__(self) -> Plain:
        if self._runner is not None:
            try:
                self._runner.run(self._memory.__aenter__())
            except BaseException:
                self._runner.close()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        if self._runner is not None:
            self._runner.close()


def impatient(**client: Any) -> Settings:
    """Settings of a client that gives up at once, unless told otherwise."""
    return load_settings(extraction={"enabled": False}, client={"retry_timeout_s": 0, **client})


def opened(where: str | Path, face: str, key: str | None = None, **client: Any) -> Plain:
    kind: Any = jiyi.sync.Memory if face == "sync" else Memory
    embedder = None if str(where).startswith("http") else WordEmbedder(128)
    return Plain(kind.open(where, settings=impatient(**client), embedder=embedder, key=key))


@pytest.fixture(params=["async", "sync"])
def face(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("server") / "memory.db") as server:
        yield server


@pytest.fixture
def own(server: Running, face: str) -> Iterator[Plain]:
    with opened(server.url, face) as memory:
        yield memory


def test_an_address_gives_a_client_of_both_kinds(server: Running) -> None:
    assert isinstance(Memory.open(server.url), jiyi.client.Memory)
    with jiyi.sync.Memory.open(server.url) as memory:
        assert isinstance(memory._memory, jiyi.client.Memory)


async def test_it_can_be_made_directly_and_opens_when_it_is_used(server: Running) -> None:
    memory = jiyi.client.Memory(server.url + "/", key=None)
    assert (await memory.add("made directly", user_id="direct")).created == 1
    await memory.close()
    await memory.close()
    with pytest.raises(StoreError, match="is not open"):
        await memory.count(user_id="direct")


# -- the same results -------------------------------------------------------------------------------------------------

THEN = datetime(2024, 5, 1, 8, tzinfo=UTC)


def scenario(memory: Plain, folder: Path) -> Iterator[Any]:
    """A life, verb by verb."""
    mei: dict[str, Any] = {"user_id": "mei/梅"}
    first = memory.add("我吃素，对花生过敏", tags=["diet", "Diet", "健康"], importance=0.9, **mei)
    yield first
    yield memory.add("我吃素，对花生过敏", **mei)
    yield memory.add("likes tea", memory_type="preference", metadata={"a": None, "b": [1]}, **mei)
    said = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "name": "Mei", "content": "下周三去上海", "timestamp": THEN.isoformat()},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "A train?"}]},
    ]
    talk = memory.add(said, session_id="s 1", agent_id="a", group_id="办公室", occurred_at=THEN, **mei)
    yield talk
    past = {
        "content": "lives in Rome",
        "memory_key": "home/rome ☂",
        "valid_from": THEN,
        "valid_to": THEN + timedelta(9),
    }
    yield memory.add(jiyi.CandidateMemory(**past), actor="me", **mei)
    for key in ("k 1", "键"):
        yield memory.add("has a key", idempotency_key=key, **mei)
        yield memory.add("has a key", idempotency_key=key, **mei)

    yield memory.search("花生", explain=True, **mei)
    yield memory.search("tea", search_mode="keyword", memory_types=["preference"], layers=["semantic"], **mei)
    yield memory.search("上海", time_range=(THEN - timedelta(1), None), session_id="s 1", limit=1, **mei)
    yield memory.search("Rome", as_of=THEN + timedelta(1), **mei)
    yield memory.search("tea", tags=[], **mei)
    yield memory.context("tea", max_tokens=200, **mei)
    yield memory.context("something", user_id="nobody")

    kept = first.memories[0]
    yield memory.get(kept.id, **mei)
    yield memory.get("home/rome ☂", **mei)
    yield memory.get_many(["home/rome ☂", "nothing", kept.id], **mei)
    yield memory.list(limit=2, **mei)
    yield memory.list(limit=2, cursor=memory.list(limit=2, **mei).next_cursor, **mei)
    yield memory.list(memory_types=["message"], group_id="办公室", **mei)
    yield memory.list(tags=["健康", "x"], time_range=(None, datetime.now(UTC) + timedelta(1)), **mei)
    yield memory.list(tags=[], **mei)
    yield memory.list(as_of=THEN + timedelta(1), **mei)
    yield memory.count(**mei)
    yield memory.count(memory_types=[], **mei)
    yield memory.count(layers=["episodic"], **mei)
    yield memory.timeline(**mei)
    yield memory.timeline(time_range=(None, THEN + timedelta(2)), memory_types=["fact"], **mei)
    yield memory.usage.groups(**mei)
    yield memory.usage.groups(memory_types=["fact"], **mei)
    yield memory.sources(talk.memories[0].id, **mei)
    yield memory.messages(**mei)
    yield memory.messages(session_id="s 1", limit=1, **mei)
    yield memory.usage.profile(**mei)
    yield memory.usage.profile(group_id="办公室", limit=2, **mei)
    yield memory.usage.units(session_id="s 1", limit=1, **mei)
    related = memory.relations.add(kept.id, "home/rome ☂", "supports", strength=0.5, **mei)
    yield related.relation_type, related.strength
    yield [(one.relation_type, one.strength) for one in memory.relations.list(kept.id, **mei)]
    yield memory.relations.remove(kept.id, memory.get("home/rome ☂", **mei).id, **mei)
    yield memory.relations.list(kept.id, **mei)
    yield [(recall.query, len(recall.memory_ids)) for recall in memory.usage.recalls(**mei)]

    changed = memory.update(
        kept.id, content="吃鱼", valid_to=THEN + timedelta(10_000), expected_version=1, reason="变了", **mei
    )
    yield changed
    yield memory.update("home/rome ☂", status="archived", expires_at=None, **mei)
    yield memory.list(status="archived", **mei)
    yield memory.update(kept.id, valid_to=None, **mei)
    yield memory.restore(kept.id, **mei)
    yield memory.restore(kept.id, to_version=1, actor="me", **mei)
    yield memory.history(kept.id, **mei)
    yield memory.history("home/rome ☂", **mei)

    yield memory.synonyms.add([("k8s", "kubernetes"), ("老王", "王总", 0.9)], **mei)
    yield memory.synonyms.add([("shared", "common")])
    yield memory.synonyms.list(**mei)
    yield memory.synonyms.list()
    yield memory.synonyms.expand(["K8S", "过敏"], **mei)
    yield memory.synonyms.remove("k8s", **mei)
    yield memory.synonyms.remove("shared", "common")

    yield memory.observe("我下周三去上海", "好的", session_id="s2", **mei)
    yield memory.sessions.flush()
    yield memory.usage.observed()
    yield memory.sessions.end("s2", **mei)
    yield memory.sessions.add_summary("a trip", session_id="s2", group_id="办公室", **mei)
    yield memory.sessions.record_skill("深度研究", ["web_search", {"tool": "read"}], session_id="s2", note="好", **mei)
    yield memory.jobs.status(first, **mei)
    yield memory.jobs.wait(first.id, timeout=1, **mei)
    yield memory.jobs.list(limit=3, **mei)
    yield memory.jobs.list(state="failed")
    yield memory.jobs.get(first.id, **mei)

    chat = folder / "chat.jsonl"
    chat.write_text('{"role": "user", "content": "imported", "timestamp": "2024-01-01T00:00:00Z"}\n' * 2, "utf-8")
    steps: list[tuple[int, int]] = []
    yield memory.transfer.import_chats(chat, progress=lambda *step: steps.append(step), **mei)
    yield steps
    (folder / "mem0.json").write_text('{"results": [{"id": "1", "memory": "from mem0", "user_id": "lin"}]}', "utf-8")
    yield memory.transfer.import_memories(folder / "mem0.json")
    yield memory.list(user_id="lin")

    yield memory.stats().by_type
    yield memory.usage.metrics().by_type
    yield memory.health()
    yield "jiyi_memories{" in memory.usage.prometheus()
    yield sorted(memory.users())
    yield memory.delete("home/rome ☂", **mei)
    yield memory.delete(talk.memories[0].id, with_sources=True, **mei)
    yield memory.delete_all("mei/梅")
    yield memory.count(**mei), memory.count(memory_types=["message"], **mei)
    yield memory.keys.exist()
    made = memory.keys.create("后台", scopes=["read", "admin"], all_users=True)
    yield made.model_copy(update={"key": ""})


def plain(values: list[Any]) -> list[Any]:
    """Results without what is another one each time: ids become numbers, moments of today a word."""
    names: dict[str, str] = {}
    today = f"{datetime.now(UTC):%Y-%m-%d}|{datetime.now(UTC) - timedelta(days=1):%Y-%m-%d}"

    def name(found: re.Match[str]) -> str:
        return names.setdefault(found[0], f"id {len(names)}")

    def one(value: Any) -> Any:
        if hasattr(value, "model_dump"):
            return one(value.model_dump(mode="json"))
        if isinstance(value, dict):
            kept = {key: entry for key, entry in value.items() if "access" not in key}  # counted a little later
            if kept.get("evidence"):  # ordered by strength, which the seconds between two searches change
                kept["evidence"] = sorted(kept["evidence"], key=lambda part: part["name"])
            return {one(key): one(entry) for key, entry in kept.items()}
        if isinstance(value, (list, tuple)):
            return [one(entry) for entry in value]
        if isinstance(value, str):
            return re.sub(rf"({today})T[0-9:.]+(Z|[+]00:00)", "now", re.sub(r"\b[0-9a-z]{26}\b", name, value))
        if hasattr(value, "by_word"):
            return [value.original, value.synonyms, value.related, dict(value.by_word)]
        return value

    return [one(value) for value in values]


MARK = re.compile(r"(?<=jiyi-memory)-[a-z]{8}(?=>)")  # of a fence: each store has its own secret


def assert_same(found: Any, expected: Any, where: str) -> None:
    """Compare results; scores contain a memory's age, so floats may differ by what a slow machine adds."""
    if isinstance(expected, float):
        assert found == pytest.approx(expected, abs=0.02), where
    elif isinstance(expected, dict):
        assert found.keys() == expected.keys(), where
        for key, value in expected.items():
            assert_same(found[key], value, f"{where}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for number, value in enumerate(expected):
            assert_same(found[number], value, f"{where}[{number}]")
    elif isinstance(expected, str):
        assert MARK.sub("", found) == MARK.sub("", expected), where
    else:
        assert found == expected, where


@pytest.fixture(scope="module")
def engines_results(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    folder = tmp_path_factory.mktemp("engine")
    with opened(folder / "memory.db", "async") as memory:
        return plain(list(scenario(memory, folder)))


def test_a_whole_life_gives_the_same_results_as_in_the_engine(
    path: Path, tmp_path: Path, face: str, engines_results: list[Any]
) -> None:
    with running(path) as server, opened(server.url, face) as memory:
        results = plain(list(scenario(memory, tmp_path)))
    assert len(results) == len(engines_results)
    for number, (found, expected) in enumerate(zip(results, engines_results, strict=True)):
        assert_same(found, expected, f"step {number}")


# -- the same errors --------------------------------------------------------------------------------------------------

WRONG: list[Callable[[Plain], Any]] = [
    lambda memory: memory.get("nothing", user_id="mei"),
    lambda memory: memory.get("0" * 26, user_id="mei"),
    lambda memory: memory.history("..", user_id="mei"),
    lambda memory: memory.delete(".", user_id="mei"),
    lambda memory: memory.update("a/b", user_id="mei", content="x"),
    lambda memory: memory.jobs.get("../keys", user_id="mei"),
    lambda memory: memory.jobs.status("nothing", user_id="mei"),
    lambda memory: memory.keys.revoke("nothing"),
    lambda memory: memory.add("", user_id="mei"),
    lambda memory: memory.add("\ud800", user_id="mei"),
    lambda memory: memory.add([], user_id="mei"),
    lambda memory: memory.add({"role": "user", "content": "x"}, memory_type="fact", user_id="mei"),
    lambda memory: memory.add("x", user_id=""),
    lambda memory: memory.add("x", user_id=None),
    lambda memory: memory.add("x", user_id="a" * 257),
    lambda memory: memory.add("x", user_id="mei", occurred_at=datetime(2024, 1, 1)),  # noqa: DTZ001
    lambda memory: memory.add("x", user_id="mei", importance=7),
    lambda memory: memory.search("", user_id="mei"),
    lambda memory: memory.search("x", user_id="mei", limit=0),
    lambda memory: memory.search("x", user_id="mei", search_mode="magic"),
    lambda memory: memory.list(user_id="mei", limit=100_000),
    lambda memory: memory.list(user_id="mei", tags="abc"),
    lambda memory: memory.list(user_id="mei", time_range=(THEN, THEN)),
    lambda memory: memory.timeline(user_id="mei", cursor="nonsense"),
    lambda memory: memory.jobs.wait("x", user_id="mei", timeout=-1),
    lambda memory: memory.jobs.list(state="nonsense"),
    lambda memory: memory.synonyms.add([("a", "a")], user_id="mei"),
    lambda memory: memory.synonyms.remove("nothing", user_id="mei"),
    lambda memory: memory.keys.create("x"),
]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plain]:
    with opened(tmp_path_factory.mktemp("errors") / "memory.db", "sync") as memory:
        yield memory


@each_case("number", range(len(WRONG)))
def test_a_mistake_is_the_same_error_as_in_the_engine(engine: Plain, server: Running, number: int) -> None:
    with pytest.raises(JiyiError) as expected:
        WRONG[number](engine)
    with opened(server.url, "sync") as memory, pytest.raises(JiyiError) as raised:
        WRONG[number](memory)
    assert type(raised.value) is type(expected.value), str(raised.value)
    if isinstance(expected.value, InvalidInput):
        assert raised.value.argument == expected.value.argument
    else:
        assert str(raised.value) == str(expected.value)


def test_conflicts_are_told_with_their_versions(own: Plain, face: str) -> None:
    who = f"conflict {face}"
    kept = own.add("likes tea", user_id=who).memories[0]
    own.update(kept.id, user_id=who, content="likes coffee", expected_version=kept.version)
    with pytest.raises(VersionConflict) as raised:
        own.update(kept.id, user_id=who, content="likes milk", expected_version=kept.version)
    told = raised.value
    assert (told.memory_id, told.expected, told.actual) == (kept.id, kept.version, kept.version + 1)
    own.add("one", user_id=who, idempotency_key="k")
    with pytest.raises(IdempotencyConflict):
        own.add("two", user_id=who, idempotency_key="k")


def test_a_failing_part_of_the_server_keeps_its_name(path: Path, face: str) -> None:
    with running(path, embedder=FailingEmbedder()) as server, opened(server.url, face) as memory:
        assert memory.add("likes tea", user_id="mei").state == "extracted"
        assert memory.search("tea", user_id="mei").degraded
        with pytest.raises(jiyi.EmbeddingError):
            memory.search("tea", user_id="mei", search_mode="semantic")


@pytest.mark.parametrize("verb", NEXT_TO_THE_STORE)
async def test_what_only_works_next_to_the_store_says_so(server: Running, verb: str) -> None:
    memory = jiyi.client.Memory(server.url)
    with pytest.raises(AccessDenied, match=f"{verb.split('.')[1]} is not served to clients: "):
        await verb_of(memory, verb)()


async def test_what_is_not_told_over_a_server_says_so(server: Running) -> None:
    async with Memory.open(server.url) as memory:
        for refused in (memory.usage.metrics("mei"), memory.keys.create("x", all_users=True, actor="me")):
            with pytest.raises(AccessDenied):
                await refused


def test_memories_go_out_into_a_file_and_come_in_again(server: Running, own: Plain, path: Path, face: str) -> None:
    who = f"carried {face}"
    own.add("我吃素，对花生过敏", user_id=who)
    folder = path.parent
    exported = own.transfer.export(folder / "mine.jsonl", user_id=who)
    there = server.do(server.memory.transfer.export(folder / "theirs.jsonl", user_id=who))
    assert (folder / "mine.jsonl").read_bytes() == (folder / "theirs.jsonl").read_bytes()
    assert exported == there.model_copy(update={"path": exported.path}) and exported.records["memory"] == 1
    with pytest.raises(InvalidInput, match="exists already"):
        own.transfer.export(folder / "mine.jsonl", user_id=who)
    assert own.transfer.export(folder / "mine.md", user_id=who, format="markdown").records == {"fact": 1}
    own.delete_all(who)
    report = own.transfer.import_memories(folder / "mine.jsonl")
    assert report.format == "jiyi" and report.new["memory"] == 1
    assert own.get_many([item.id for item in own.list(user_id=who).items], user_id=who)[0].content.startswith("我吃素")
    with pytest.raises(AccessDenied, match="all users"):
        own.transfer.export(folder / "all.jsonl")
    (folder / "broken.jsonl").write_bytes((folder / "mine.jsonl").read_bytes()[:-40])
    with pytest.raises(InvalidInput):
        own.transfer.import_memories(folder / "broken.jsonl")


def test_compressing_looking_after_and_undoing(own: Plain, face: str) -> None:
    who = {"user_id": f"kept {face}"}
    kept = own.add("likes tea", session_id="s1", **who).memories[0]
    assert own.maintenance.compress_plan(**who).user_id == who["user_id"]
    assert own.maintenance.compress(**who).made == 0
    assert own.maintenance.run(**who).users == 1
    own.update(kept.id, content="likes coffee", **who)
    assert own.maintenance.undo_plan(kept.id, **who) is not None
    own.maintenance.undo(kept.id, **who)
    assert own.get(kept.id, **who).content == "likes tea"
    for refused in (
        own.maintenance.run,
        lambda: own.maintenance.compress(plan=own.maintenance.compress_plan(**who), **who),
    ):
        with pytest.raises(AccessDenied):
            refused()


# -- keys -------------------------------------------------------------------------------------------------------------


def test_a_key_decides_and_is_needed_at_once(path: Path, face: str) -> None:
    with running(path) as server:
        key = server.key("mei", scopes=["read", "write"])
        for wrong in (None, "nonsense", "jiyi_" + "0" * 26 + "_" + "0" * 43):
            with pytest.raises(AccessDenied, match="key"):
                opened(server.url, face, wrong).__enter__()
        with opened(server.url, face, server.key(scopes=["read", "admin"])) as memory:
            made = memory.keys.create("后台", scopes=["read"], user_ids=["mei"])
            assert made.key.startswith("jiyi_") and memory.keys.revoke(made.id).revoked_at is not None
            assert [one.id for one in memory.keys.list()][-1] == made.id
            assert [entry.action for entry in memory.keys.audit(limit=2)] == ["key.revoke", "key.create"]
        with opened(server.url, face, key) as memory:
            kept = memory.add("likes tea", user_id="mei").memories[0]
            assert memory.users() == ("mei",) and memory.keys.exist()
            with pytest.raises(NotFound):
                memory.count(user_id="lin")
            for refused in (
                lambda: memory.delete(kept.id, user_id="mei"),
                memory.keys.list,
                memory.health,
                memory.jobs.list,
            ):
                with pytest.raises(AccessDenied):
                    refused()


def test_the_key_may_stand_in_the_settings(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(path) as server:
        monkeypatch.setenv("JIYI_CLIENT__KEY", server.key("mei") + "\n")
        with jiyi.sync.Memory.open(server.url, settings=load_settings()) as memory:
            assert memory.count(user_id="mei") == 0
            assert "jiyi_" not in repr(runtime(memory).settings)


# -- a line that fails ------------------------------------------------------------------------------------------------


class BadLine:
    """A line to a server that does as it is told, once for each word: `ok`; `lose request`: nothing arrives;
    `lose answer`: the server does it, but its answer never comes back; an answer of its own, as `503`."""

    def __init__(self, port: int, *script: str) -> None:
        self._port = port
        self.script = list(script)
        self.requests = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                caller, _ = self._listening.accept()
            except OSError:
                return
            with caller:
                caller.settimeout(10)
                request = _whole_message(caller)
                if not request:
                    continue
                self.requests += 1
                word = self.script.pop(0) if self.script else "ok"
                if word == "lose request":
                    continue
                if word.isdecimal():
                    told = f"HTTP/1.1 {word} Busy\r\nRetry-After: 0\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
                    caller.sendall(told.encode())
                    continue
                answer = self._ask(request)
                if word != "lose answer":
                    caller.sendall(answer)

    def _ask(self, request: bytes) -> bytes:
        """One request on a connection of its own, so that each word of the script is one request."""
        head, _, body = request.partition(b"\r\n\r\n")
        lines = [line for line in head.split(b"\r\n") if not line.lower().startswith((b"connection:", b"host:"))]
        lines += [b"Connection: close", b"Host: localhost"]
        with socket.create_connection(("127.0.0.1", self._port), 10) as server:
            server.sendall(b"\r\n".join(lines) + b"\r\n\r\n" + body)
            answer = b""
            while part := server.recv(65536):
                answer += part
            return answer

    def close(self) -> None:
        self._listening.close()


def _whole_message(caller: socket.socket) -> bytes:
    message = b""
    while b"\r\n\r\n" not in message:
        part = caller.recv(65536)
        if not part:
            return b""
        message += part
    head, _, body = message.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: *(\d+)", head)
    while len(body) < (int(length[1]) if length else 0):
        body += caller.recv(65536)
    return head + b"\r\n\r\n" + body


@pytest.fixture
def line(server: Running) -> Iterator[Callable[..., BadLine]]:
    lines: list[BadLine] = []

    def make(*script: str) -> BadLine:
        lines.append(BadLine(server.port, "ok", *script))  # the first is the client's question who it is
        return lines[-1]

    yield make
    for one in lines:
        one.close()


@pytest.mark.parametrize("trouble", ["lose request", "lose answer", "503", "502", "504", "429"])
def test_an_add_is_sent_again_and_is_done_once(line: Callable[..., BadLine], face: str, trouble: str) -> None:
    bad = line(trouble, trouble)
    said = [{"role": "user", "content": "好的"}] * 2  # which only an idempotency key tells from saying it twice more
    who = f"{trouble} {face}"
    with opened(bad.url, face, retry_timeout_s=60) as memory:
        receipt = memory.add(said, user_id=who, session_id="s")
        assert receipt.created == 2 and bad.requests == 4
        assert memory.count(user_id=who, memory_types=["message"]) == 2
        assert [job.id for job in memory.jobs.list(user_id=who)] == [receipt.id]


def test_what_only_reads_is_asked_again(line: Callable[..., BadLine], face: str) -> None:
    bad = line("503", "lose answer", "ok", "lose request")
    with opened(bad.url, face, retry_timeout_s=60) as memory:
        assert memory.search("tea", user_id="reader").searched == 0
        assert memory.count(user_id="reader") == 0
        assert bad.requests == 6


def test_a_change_without_its_version_is_not_sent_twice(line: Callable[..., BadLine], own: Plain, face: str) -> None:
    kept = own.add("likes tea", user_id=f"careful {face}").memories[0]
    bad = line("lose answer", "lose answer", "503", "lose answer", "429", "ok")
    with opened(bad.url, face, retry_timeout_s=60) as memory:
        whose = {"user_id": kept.user_id}
        with pytest.raises(ConnectionLost, match="broke off"):
            memory.update(kept.id, content="likes coffee", **whose)
        with pytest.raises(ConnectionLost):
            memory.restore(kept.id, **whose)
        with pytest.raises(StoreUnavailable):
            memory.delete(kept.id, **whose)
        assert [change.action for change in own.history(kept.id, **whose)] == ["add", "update", "restore"]
        with pytest.raises(ConnectionLost):
            memory.delete(kept.id, **whose)
        assert memory.count(**whose) == 0, "a 429 was refused at the door: anything may be asked again"


def test_a_change_with_its_version_is_sent_again_and_done_once(
    line: Callable[..., BadLine], own: Plain, face: str
) -> None:
    who = f"versions {face}"
    kept = own.add("likes tea", user_id=who).memories[0]
    bad = line("lose request", "503", "ok")
    with opened(bad.url, face, retry_timeout_s=60) as memory:
        assert memory.update(kept.id, user_id=who, content="likes coffee", expected_version=1).version == 2
        bad.script = ["lose answer", "ok"]
        with pytest.raises(VersionConflict) as raised:  # it was done, and is not done twice
            memory.update(kept.id, user_id=who, content="likes milk", expected_version=2)
        assert raised.value.actual == 3 and own.get(kept.id, user_id=who).content == "likes milk"


def test_it_waits_as_long_as_the_server_says_and_gives_up_in_time(path: Path, face: str) -> None:
    with running(path, server={"burst": 4, "requests_per_minute": 60}) as server:
        with opened(server.url, face, retry_timeout_s=60) as memory:
            began = time.monotonic()
            for _ in range(4):
                memory.count(user_id="mei")
            assert time.monotonic() - began >= 1
        with (
            pytest.raises(StoreUnavailable, match="rate limit"),
            opened(server.url, face, retry_timeout_s=0.1) as memory,
        ):
            for _ in range(99):
                memory.count(user_id="mei")


def test_a_server_that_is_not_there_is_named(face: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(StoreUnavailable, match="jiyi serve"):
        opened(f"http://127.0.0.1:{port}", face).__enter__()
    with pytest.raises(StoreUnavailable), opened(f"http://127.0.0.1:{port}", face, retry_timeout_s=0.3):
        pass


def test_a_hanging_server_is_given_up(face: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        address = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        with pytest.raises(ConnectionLost), opened(address, face, timeout_s=0.2):
            pass


@pytest.mark.parametrize(
    "answer",
    [
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n<html>Hi!",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno",
        "HTTP/1.1 307 Moved\r\nLocation: http://127.0.0.1:1/v1/whoami\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n",
    ],
)
def test_something_else_than_a_jiyi_server_is_named_and_a_key_goes_nowhere_else(answer: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:

        def serve() -> None:
            caller, _ = other.accept()
            with caller:
                caller.recv(65536)
                caller.sendall(answer.encode())

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with pytest.raises(ServerError, match="is it a Jiyi server"):
            opened(f"http://127.0.0.1:{other.getsockname()[1]}", "sync", "secret").__enter__()
        thread.join(10)


@pytest.mark.parametrize(
    "url", ["http://", "http://:1", "http://a:99999", "http://u:p@h", "http://h/?q=1", "http://h/#f", "ftp://h", "h:1"]
)
def test_a_wrong_address_is_refused(url: str) -> None:
    with pytest.raises(SettingsError):
        jiyi.client.Memory(url)


@pytest.mark.parametrize("key", ["a\r\nX-Injected: 1", "a b", "钥匙", "a\x00"])
def test_a_key_cannot_smuggle_a_header(key: str) -> None:
    with pytest.raises(SettingsError, match=r"client\.key"):
        jiyi.client.Memory("http://h", key=key)


def test_what_belongs_to_the_server_is_refused_here(server: Running, path: Path) -> None:
    with pytest.raises(InvalidInput, match="is set on the server"):
        Memory.open(server.url, embedder=WordEmbedder())
    with pytest.raises(InvalidInput, match="is for a server"):
        Memory.open(path, key="x")
    with pytest.raises(InvalidInput, match="address of a server"):
        jiyi.client.Memory.open(path)


def test_a_newer_server_may_tell_more_than_is_known_here(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    from jiyi.client.connection import Connection

    real = Connection.answer

    async def newer(self: Connection, *args: Any, **kwargs: Any) -> Any:
        answer = await real(self, *args, **kwargs)
        answer._content = answer.content.replace(b'"hits":[{', b'"news":1,"hits":[{"more":{"a":[]},')
        return answer

    with opened(server.url, "sync") as memory:
        memory.add("likes tea", user_id="newer")
        monkeypatch.setattr(Connection, "answer", newer)
        assert memory.search("tea", user_id="newer").hits[0].summary == "likes tea"


# -- with the rest of Jiyi --------------------------------------------------------------------------------------------


async def test_tools_and_agents_work_over_a_server(server: Running) -> None:
    from jiyi.agents.tools import MemoryTools

    async with Memory.open(server.url) as memory:
        tools = MemoryTools(memory, user_id="tools")
        await memory.add("I am allergic to peanuts", user_id="tools")
        result = await tools.call("search_memories", {"query": "peanuts"})
        assert "peanuts" in str(result)


def test_the_command_line_works_over_a_server(server: Running) -> None:
    for command in (["add", "喜欢喝茶"], ["search", "茶"]):
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                "from jiyi.cli import main; main()",
                *command,
                "--store",
                server.url,
                "--user",
                "cli",
            ],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0 and "喜欢喝茶" in done.stdout, done.stderr


def test_without_httpx_the_extra_is_named() -> None:
    program = "import sys; sys.modules['httpx'] = None\nfrom jiyi.sync import Memory\nMemory.open('http://127.0.0.1:1')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert "pip install 'jiyi[client]'" in done.stderr
