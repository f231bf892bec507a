"""What an attacker tried: removed files, waiting uploads, bombs, slow clients, keys, races. Each is refused by name."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import shutil
import socket
import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from jiyi import InvalidInput, Memory, StoreError, VersionConflict
from jiyi.errors import NotAStore, StoreUnavailable
from jiyi.settings import load_settings
from jiyi.store import location_of
from jiyi.testing import WordEmbedder
from jiyi.transfer import sources
from jiyi.transfer.spool import SPOOL_STATUS, spool_of
from rest import Running, running
from support import stored


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    settings = {"receive_timeout_s": 1.0, "burst": 10_000, "max_concurrent": 20}
    with running(tmp_path_factory.mktemp("hard") / "memory.db", server=settings) as server:
        yield server


# -- the database file ------------------------------------------------------------------------------------------------


def replaced(path: Path) -> None:
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    copy.replace(path)


SCENES: dict[str, Callable[[Path], Any]] = {
    "removed": Path.unlink,
    "moved": lambda path: path.rename(path.with_name("elsewhere.db")),
    "replaced": replaced,
    "folder moved": lambda path: path.parent.rename(path.parent.with_name("moved")),
}


@pytest.mark.parametrize("scene", SCENES)
async def test_nothing_is_acknowledged_into_a_file_that_is_gone(tmp_path: Path, scene: str) -> None:
    path = tmp_path / "store" / "memory.db"
    async with Memory.open(path, embedder=WordEmbedder()) as memory:
        await memory.add("I like tea", user_id="mei")
        SCENES[scene](path)
        with pytest.raises(StoreUnavailable, match="removed, moved or replaced"):
            await memory.add("I like coffee", user_id="mei")
        health = await memory.health()
        assert not health.ready and "replaced" in str(health.checks[0].problem)


async def test_nothing_is_acknowledged_into_a_log_that_is_gone(path: Path) -> None:
    async with Memory.open(path, embedder=WordEmbedder()) as memory:
        await memory.add("I like tea", user_id="mei")
        path.with_name(path.name + "-wal").unlink()
        with pytest.raises(StoreUnavailable, match="removed, moved or replaced"):
            await memory.add("I like coffee", user_id="mei")


async def test_a_damaged_store_is_named(path: Path) -> None:
    async with Memory.open(path, embedder=WordEmbedder()) as memory:
        await memory.add("I like tea", user_id="mei")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = CAST(x'ff00fe' AS TEXT)")
        connection.commit()
    with pytest.raises((NotAStore, StoreError)):
        async with Memory.open(path, embedder=WordEmbedder()):
            pass


# -- deleted data -----------------------------------------------------------------------------------------------------


async def test_waiting_uploads_go_with_their_user(path: Path, tmp_path: Path) -> None:
    """Another process deletes the user: the upload is not imported by the server that starts later."""
    settings = load_settings(server={"upload_dir": tmp_path / "spool"})
    for user in ("mei", "bo"):
        folder = spool_of(settings, path) / user
        folder.mkdir(parents=True)
        (folder / "chat.jsonl").write_text('{"role": "user", "content": "secret"}\n')
        status = {"id": user, "user_id": user, "filename": "chat.jsonl"}
        (folder / SPOOL_STATUS).write_text(json.dumps(status))
    async with Memory.open(path, settings=settings, embedder=WordEmbedder()) as memory:
        await memory.add("I like tea", user_id="mei")
        assert (await memory.delete_all("mei")).removed["uploads"] == 1
    assert [folder.name for folder in spool_of(settings, path).iterdir()] == ["bo"]


def test_the_spool_belongs_to_the_store_and_not_to_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "one")
    (tmp_path / "one/memory.db").touch()
    ways: list[tuple[str, Any]] = [
        (".", None),
        (".", tmp_path / "one/memory.db"),
        ("one", "memory.db"),
        (".", "link/memory.db"),
        (".", f"sqlite:///{tmp_path}/one/memory.db"),
        (".", "postgresql://u:p@localhost/jiyi"),
        ("one", "postgres://127.0.0.1:5432/jiyi?sslmode=disable"),
    ]
    found = []
    for settings in (load_settings(), load_settings(server={"upload_dir": "uploads"})):
        for folder, where in ways:
            monkeypatch.chdir(tmp_path / folder)
            found.append(spool_of(settings, where))
    default, *files, first, second = found[:7]
    assert len(set(files)) == 1 and first == second and len({default, files[0], first}) == 3
    assert all(path.is_absolute() and path.parent.name == "uploads" for path in found[7:])
    assert location_of(None) != location_of("memory.db")


def test_an_export_leaves_nothing_behind(server: Running) -> None:
    """Also where the server was killed: its folder is swept when the next one starts."""
    with server.client() as web:
        assert web.get("/v1/imports", params={"user_id": "mei"}).status_code == 200  # it has started
    left = server.memory._engine.spool / "export-killed"
    left.mkdir(parents=True)
    (left / "memories").write_text("secret")
    server.do(server.memory.add("I like tea", user_id="mei"))
    with server.client() as web:
        assert "I like tea" in web.get("/v1/export", params={"user_id": "mei"}).text
    assert [folder.name for folder in left.parent.iterdir()] == ["export-killed"]
    server.stop()
    server.__init__(server._place, server._settings, None, None, ())  # type: ignore[misc]
    server.start()
    with server.client() as web:
        assert web.get("/livez").status_code == 200
    assert not left.exists()


async def test_a_deletion_names_lines_in_files_it_does_not_reach(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    async with Memory.open(path, embedder=WordEmbedder(), workspace=folder, workspace_user="mei") as memory:
        made = (await memory.add("I like zebras", user_id="mei")).memories[0]
        await memory.workspace.sync()
    async with Memory.open(path, embedder=WordEmbedder()) as memory:
        assert "workspace" in " ".join((await memory.delete(made.id, user_id="mei")).notes)


# -- bombs and slow clients -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["gzip", "zip"])
async def test_a_bomb_is_refused(memory: Memory, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MIN_UNPACKED", 1 << 20)
    line = b'{"role": "user", "content": "' + b"a" * 5_000_000 + b'"}\n'
    path = tmp_path / ("bomb.jsonl.gz" if kind == "gzip" else "bomb.zip")
    if kind == "gzip":
        path.write_bytes(gzip.compress(line))
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("bomb.jsonl", line)
    with pytest.raises(InvalidInput, match="100 times its size"):
        await memory.transfer.import_chats(path, user_id="mei")


async def test_the_files_in_a_zip_are_one_bomb(memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MIN_UNPACKED", 1 << 20)
    with zipfile.ZipFile(tmp_path / "bombs.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(20):
            archive.writestr(f"{number}.json", json.dumps([{"role": "user", "content": "a" * 99_000}]))
    with pytest.raises(InvalidInput, match="100 times its size"):
        await memory.transfer.import_chats(tmp_path / "bombs.zip", user_id="mei")


async def test_one_value_of_a_file_has_a_limit(memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in RAM as a whole, and decoding it is one step for which everybody else waits."""
    monkeypatch.setattr(sources, "MAX_VALUE", 1 << 20)
    path = tmp_path / "long.json"
    path.write_text(json.dumps([{"role": "user", "content": "\n" * 2_500_000}]))
    with pytest.raises(InvalidInput, match="1,048,576 characters"):
        await memory.transfer.import_chats(path, user_id="mei")
    stream = io.StringIO(path.read_text())
    with pytest.raises(InvalidInput, match="1,048,576 characters"):
        list(sources.json_values(stream, "long.json"))
    assert stream.tell() < (1 << 20) + 10, "nothing beyond the limit is decoded"


def test_slow_bodies_and_half_open_connections_leave_room_for_others(server: Running) -> None:
    slow = b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{"
    with ExitStack() as open_:
        for sent in [slow] * 15 + [b"GET / HT"] * 450:
            link = open_.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=30))
            link.sendall(sent)
        with server.client() as web:
            assert web.get("/livez").status_code == 200
    with server.client() as web:
        assert web.get("/v1/whoami").status_code == 200


def test_a_late_answer_tells_how_to_get_the_receipt(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = {"text": "I like cake"}
    with running(path, server={"timeout_s": 1.0}) as server, server.client() as web:
        whole = server.memory.add

        async def late(*given: Any, **options: Any) -> Any:
            await whole(*given, **options)
            await asyncio.sleep(600)

        monkeypatch.setattr(server.memory, "add", late)
        answer = web.post("/v1/memories", json=body, params={"user_id": "mei"})
        assert answer.status_code == 504, answer.text
        key = answer.headers["idempotency-key"]
        assert key in answer.json()["detail"]
    with running(path) as server, server.client() as web:
        again = web.post("/v1/memories", json=body, params={"user_id": "mei"}, headers={"Idempotency-Key": key})
        assert again.status_code == 201 and again.json()["memories"][0]["content"] == "I like cake"
        assert [one.content for one in server.do(stored(server.memory))] == ["I like cake"]


def test_imports_of_one_user_are_limited(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jiyi.server.uploads.MAX_WAITING", 0)
    with server.client() as web:
        answer = web.post("/v1/imports", params={"user_id": "mei", "filename": "a.jsonl"}, content=b"{}")
    assert answer.status_code == 429


def test_without_a_key_nothing_is_served_behind_a_proxy(server: Running) -> None:
    with server.client() as web:
        for name in ("Forwarded", "X-Forwarded-For", "X-Real-IP", "Via"):
            assert web.get("/v1/whoami", headers={name: "for=1.2.3.4"}).status_code == 403, name


# -- keys, races and numbers ------------------------------------------------------------------------------------------


def test_a_key_that_expires_makes_none_that_lives_longer(tmp_path: Path) -> None:
    with running(tmp_path / "memory.db") as server:
        soon = datetime.now(UTC) + timedelta(hours=1)
        key = server.key(scopes=("read", "admin"), expires_at=soon)
        with server.client(key) as web:
            wanted = {"name": "x", "scopes": ["read"], "all_users": True}
            assert web.post("/v1/keys", json=wanted).status_code == 403
            late = (soon + timedelta(days=1)).isoformat()
            assert web.post("/v1/keys", json={**wanted, "expires_at": late}).status_code == 403
            assert web.post("/v1/keys", json={**wanted, "expires_at": soon.isoformat()}).status_code == 201


async def test_restoring_an_expected_version_is_one_step(memory: Memory) -> None:
    made = (await memory.add("I like tea", user_id="mei")).memories[0]
    await memory.update(made.id, user_id="mei", content="I like coffee")
    with pytest.raises(VersionConflict):
        await memory.restore(made.id, user_id="mei", expected_version=1)
    tried = [memory.restore(made.id, user_id="mei", to_version=1, expected_version=2) for _ in range(5)]
    done = await asyncio.gather(*tried, return_exceptions=True)
    assert sum(not isinstance(one, Exception) for one in done) == 1


async def test_the_last_moment_and_full_weights_are_no_surprise(path: Path) -> None:
    weights = {"preset": "words_and_time", "keyword_weight": 0.4, "text_weight": 0.4, "recency_weight": 0.2}
    async with Memory.open(path, settings=load_settings(search=weights), embedder=WordEmbedder()) as memory:
        await memory.add("green tea green tea", user_id="mei")
        for _ in range(3):
            [hit] = (await memory.search("green tea", user_id="mei")).hits
            assert hit.relevance_score <= 1
        for at in (datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)):
            for verb in (
                memory.add("later", user_id="mei", occurred_at=at),
                memory.add([{"role": "user", "content": "I fly tomorrow", "sent_at": at}], user_id="mei"),
                memory.search("tea last week", user_id="mei", asked_at=at),
                memory.context("tea last week", user_id="mei", asked_at=at),
                memory.search("tea", user_id="mei", as_of=at),
            ):
                try:
                    await verb
                except InvalidInput:
                    continue
