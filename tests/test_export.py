"""Export and import: nothing is lost, the same memories are the same bytes, a bad file changes nothing."""

from __future__ import annotations

import asyncio
import gzip
import json
from base64 import b64encode
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from jiyi import InvalidInput, Memory
from jiyi.cli.app import app
from jiyi.settings import load_settings
from jiyi.store.upkeep.export_records import LINE
from jiyi.store.upkeep.row_export import AT_ONCE
from jiyi.testing import WordEmbedder
from support import DAY, LONG_AGO, NOW, ODD_NAMES, Place, contents, dump, each_case, stored

CHAT = [
    {"role": "user", "content": "I live in Berlin and I like tea", "name": "Mei", "id": "m1"},
    {"role": "assistant", "content": "Good to know.", "id": "m2"},
    {"role": "user", "content": "我对花生过敏，下周三去上海出差", "id": "m3"},
    {"role": "system", "content": "be kind", "id": "m4"},
]
FOUND_BY = ("terms", "keywords", "embeddings")


def opened(where: Place) -> Memory:
    return Memory.open(where, embedder=WordEmbedder(64), settings=load_settings(jobs={"in_process": False}))


async def fill(memory: Memory) -> None:
    """Something of everything."""
    await memory.add(CHAT, user_id="mei", session_id="s", idempotency_key="k", metadata={"z": 1, "a": [1.5, None]})
    await memory.add("I moved to Paris", user_id="mei", agent_id="a", group_id="g", occurred_at=LONG_AGO)
    await memory.add({"content": "old news", "memory_key": "news", "valid_to": NOW - DAY}, user_id="mei", tags=["旧"])
    made = (await memory.add("likes coffee", user_id="mei", expires_at=NOW + DAY)).memories[0]
    await memory.update(made.id, user_id="mei", content="likes 咖啡", reason="translated", tags=["drink"])
    await memory.update(made.id, user_id="mei", status="archived")
    await memory.synonyms.add([("tea", "茶")], user_id="mei")
    await memory.synonyms.add([("car", "车")])
    await memory.search("tea", user_id="mei")
    for name in ODD_NAMES[:4]:
        await memory.add(f"{name!r} plays chess", user_id=name)


async def exported(memory: Memory, path: Path, **options: Any) -> bytes:
    await memory.transfer.export(path, overwrite=True, **options)
    return path.read_bytes()


@pytest.fixture(scope="module")
def some_export(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("some")

    async def make() -> bytes:
        async with opened(folder / "a.db") as memory:
            await fill(memory)
            return await exported(memory, folder / "a.jsonl")

    return asyncio.run(make())


async def test_export_import_export_is_byte_for_byte_the_same(place: Place, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    async with opened(place) as memory:
        await fill(memory)
        first = await exported(memory, tmp_path / "first.jsonl")
    async with opened(other) as memory:
        report = await memory.transfer.import_memories(tmp_path / "first.jsonl")
        assert report.read == report.new
        assert report.notes == ()
        assert await exported(memory, tmp_path / "second.jsonl") == first
        assert contents(await memory.search("Berlin", user_id="mei"))
    if isinstance(place, Path):  # what it is found by is worked out anew, and is the same
        ours, theirs = dump(place), dump(other)
        assert [theirs[table] for table in FOUND_BY] == [ours[table] for table in FOUND_BY]


async def test_across_databases_and_back(path: Path, database: str, tmp_path: Path) -> None:
    async with opened(path) as memory:
        await fill(memory)
        first = await exported(memory, tmp_path / "a.jsonl")
    async with opened(database) as memory:
        await memory.transfer.import_memories(tmp_path / "a.jsonl")
        assert await exported(memory, tmp_path / "b.jsonl") == first
        added = await memory.add("the change feed goes on", user_id="mei")
        assert added.created == 1
        assert contents(await memory.search("feed", user_id="mei"))[0] == "the change feed goes on"


async def test_importing_twice_makes_nothing_new(
    memory: Memory, place: Place, tmp_path: Path, some_export: bytes
) -> None:
    (tmp_path / "a.jsonl").write_bytes(some_export)
    await memory.transfer.import_memories(tmp_path / "a.jsonl")
    before = dump(place)
    report = await memory.transfer.import_memories(tmp_path / "a.jsonl")
    assert set(report.new.values()) == {0}
    assert dump(place) == before
    assert await exported(memory, tmp_path / "b.jsonl") == some_export


async def test_an_interrupted_import_goes_on(
    tmp_path: Path, some_export: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jiyi.transfer.imports.BATCH", 3)
    (tmp_path / "a.jsonl").write_bytes(some_export)
    for stop_after in (1, 5, 11):
        async with opened(tmp_path / "new.db") as memory:

            def stop(what: str, done: int, whole: int, last: int = stop_after) -> None:
                if what == "importing" and done >= last:
                    raise KeyboardInterrupt

            with pytest.raises(KeyboardInterrupt):
                await memory.transfer.import_memories(tmp_path / "a.jsonl", progress=stop)
    async with opened(tmp_path / "new.db") as memory:
        await memory.transfer.import_memories(tmp_path / "a.jsonl")
        assert await exported(memory, tmp_path / "b.jsonl") == some_export


async def test_a_retry_with_its_key_is_known_after_the_move(tmp_path: Path, some_export: bytes) -> None:
    (tmp_path / "a.jsonl").write_bytes(some_export)
    async with opened(tmp_path / "new.db") as other:
        await other.transfer.import_memories(tmp_path / "a.jsonl")
        before = len(await stored(other))
        again = await other.add(
            CHAT, user_id="mei", session_id="s", idempotency_key="k", metadata={"z": 1, "a": [1.5, None]}
        )
        assert again.created > 0  # the first receipt, as it was
        assert len(await stored(other)) == before


async def test_one_users_export_holds_nobody_elses(memory: Memory, tmp_path: Path, some_export: bytes) -> None:
    (tmp_path / "all.jsonl").write_bytes(some_export)
    await memory.transfer.import_memories(tmp_path / "all.jsonl")
    lines = [json.loads(line) for line in (await exported(memory, tmp_path / "m.jsonl", user_id="mei")).splitlines()]
    assert {line["user_id"] for line in lines[:-1]} == {"mei"}
    async with opened(tmp_path / "new.db") as other:
        await other.transfer.import_memories(tmp_path / "all.jsonl", user_id="mei")
        assert await other.users() == ["mei"]
        assert await exported(other, tmp_path / "again.jsonl", user_id="mei") == (tmp_path / "m.jsonl").read_bytes()


async def test_into_a_store_that_knows_some_of_it(tmp_path: Path, some_export: bytes) -> None:
    """What is there stays; the same message or statement under another id is the same one, and what points to it
    follows."""
    (tmp_path / "a.jsonl").write_bytes(some_export)
    async with opened(tmp_path / "b.db") as memory:
        await memory.add(CHAT, user_id="mei", session_id="s")
        await memory.add({"content": "something else", "memory_key": "news"}, user_id="mei")
        before = {item.id: item for item in await stored(memory)}
        report = await memory.transfer.import_memories(tmp_path / "a.jsonl")
        after = {item.id: item for item in await stored(memory)}
        assert all(after[name].content == before[name].content for name in before)
        assert 0 < report.new["memory"] < report.read["memory"]
        said = [(item.memory_type, item.content) for item in after.values() if item.valid_to is None]
        assert len(said) == len(set(said))
        assert any("keys that another memory has" in note for note in report.notes)
        assert (await memory.transfer.import_memories(tmp_path / "a.jsonl")).new["memory"] == 0


@each_case(
    ("spoil", "problem"),
    [
        (lambda lines: [*lines[:5], b"{oops\n", *lines[5:]], "line 6: is not JSON"),
        (lambda lines: [*lines[:5], b"[]\n", *lines[5:]], "line 6: is not a JSON object"),
        (lambda lines: [*lines[:5], b'{"kind": "spell"}\n', *lines[5:]], "line 6: Input tag 'spell'"),
        (lambda lines: lines[:-1], "is truncated"),
        (lambda lines: [*lines[:-1], lines[-1][:9]], "is not JSON"),
        (lambda lines: [*lines[:3], *lines[4:]], "it was cut or edited"),
        (lambda lines: [*lines[:-1], b'{"kind": "end", "records": {"a": 1}}\n'], "it was cut or edited"),
        (lambda lines: [*lines[:-1], b'{"kind": "end"}\n'], "it was cut or edited"),
        (lambda lines: [*lines, lines[3]], "comes after the last line"),
        (
            lambda lines: [lines[0].replace(b'"version": 1', b'"version": 2'), *lines[1:]],
            "version 2; this Jiyi reads version 1",
        ),
        (lambda lines: [line.replace(b'"status":"active"', b'"status":"alive"') for line in lines], "status: "),
        (lambda lines: [line.replace(b'"trust":1.0', b'"trust":"\\ud800"') for line in lines], "trust: "),
        (lambda lines: [line.replace(b'"content":"', b'"content":"\\u0000') for line in lines], "NUL"),
        (lambda lines: [line.replace(b'"vector":"', b'"vector":"!') for line in lines], "is no vector"),
    ],
)
async def test_a_bad_line_is_named_and_nothing_is_stored(
    path: Path, tmp_path: Path, some_export: bytes, spoil: Any, problem: str
) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"".join(spoil(some_export.splitlines(keepends=True))))
    async with opened(path) as memory:
        with pytest.raises(InvalidInput, match=r"a\.jsonl") as caught:
            await memory.transfer.import_memories(tmp_path / "a.jsonl")
        assert problem in str(caught.value)
        assert await memory.users() == []


async def test_an_export_is_what_the_store_held_when_it_began(memory: Memory, tmp_path: Path) -> None:
    """Others go on writing and deleting; the file holds all of the earlier state and nothing of the later one."""
    for number in range(30):
        await memory.add([f"early {number} {part}" for part in range(4)], user_id=f"user{number:02}")
    seen: list[int] = []
    changed = asyncio.Event()

    def advance(what: str, done: int, whole: int) -> None:
        seen.append(whole)
        changed.set()

    async def meanwhile() -> None:
        await changed.wait()
        await memory.add("late", user_id="user29")
        await memory.delete_all("user28")

    writing = asyncio.create_task(meanwhile())
    await memory.transfer.export(tmp_path / "a.jsonl", progress=advance)
    await writing
    text = (tmp_path / "a.jsonl").read_text(encoding="utf-8")
    assert "early 28 3" in text
    assert '"late"' not in text
    assert set(seen) == {120}


async def test_a_file_is_not_replaced_unasked_and_appears_whole(memory: Memory, tmp_path: Path) -> None:
    target = tmp_path / "out" / "a.jsonl"
    with pytest.raises(InvalidInput, match="does not exist"):
        await memory.transfer.export(target)
    target.parent.mkdir()
    await memory.add("likes tea", user_id="mei")
    await memory.transfer.export(target)
    with pytest.raises(InvalidInput, match="exists already"):
        await memory.transfer.export(target)
    assert [file.name for file in target.parent.iterdir()] == ["a.jsonl"]
    assert target.stat().st_mode & 0o077 == 0

    def fail(what: str, done: int, whole: int) -> None:
        raise RuntimeError

    before = target.read_bytes()
    with pytest.raises(RuntimeError):
        await memory.transfer.export(target, overwrite=True, progress=fail)
    assert [file.name for file in target.parent.iterdir()] == ["a.jsonl"]
    assert target.read_bytes() == before


async def test_packed_is_the_same(path: Path, memory: Memory, tmp_path: Path, some_export: bytes) -> None:
    (tmp_path / "a.jsonl").write_bytes(some_export)
    await memory.transfer.import_memories(tmp_path / "a.jsonl")
    packed = await exported(memory, tmp_path / "a.jsonl.gz")
    assert gzip.decompress(packed) == some_export
    async with opened(tmp_path / "new.db") as other:
        await other.transfer.import_memories(tmp_path / "a.jsonl.gz")
        assert await exported(other, tmp_path / "b.jsonl.gz") == packed


async def test_markdown_is_for_people_and_can_be_taken_in(memory: Memory, tmp_path: Path) -> None:
    await memory.add("我对花生\n过敏", user_id="mei", tags=["吃 的"], occurred_at=LONG_AGO)
    await memory.add({"content": "likes tea (green)", "memory_type": "preference"}, user_id="mei", occurred_at=LONG_AGO)
    done = await memory.transfer.export(tmp_path / "mei.md", user_id="mei", format="markdown")
    assert done.records == {"fact": 1, "preference": 1}
    text = (tmp_path / "mei.md").read_text(encoding="utf-8")
    assert "## fact\n\n- [fact] 我对花生 过敏 #吃-的 (2021-03-04)\n" in text
    async with opened(tmp_path / "new.db") as other:
        await other.transfer.import_memories(tmp_path / "mei.md", user_id="mei")
        there = {item.content: item for item in await stored(other)}
        assert there["likes tea (green)"].memory_type == "preference"
        assert there["我对花生 过敏"].tags == ("吃-的",)
        assert there["我对花生 过敏"].occurred_at.date() == LONG_AGO.date()


async def test_an_unknown_format_is_refused(memory: Memory, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="jsonl, markdown"):
        await memory.transfer.export(tmp_path / "x", format="xml")


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=30).filter(
    lambda text: bool(text.strip())
)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(st.tuples(texts, texts, st.dictionaries(texts, values, max_size=3)), min_size=1, max_size=4))
@settings(max_examples=8)
def test_whatever_was_said_survives_the_way_out_and_in(
    tmp_path_factory: pytest.TempPathFactory, said: list[tuple[str, str, dict[str, Any]]]
) -> None:
    folder = tmp_path_factory.mktemp("round")

    async def there_and_back() -> None:
        async with opened(folder / "a.db") as memory:
            for user, text, metadata in said:
                await memory.add(text, user_id=user, metadata=metadata, occurred_at=NOW - timedelta(days=1))
            first = await exported(memory, folder / "a.jsonl")
        async with opened(folder / "b.db") as memory:
            await memory.transfer.import_memories(folder / "a.jsonl")
            assert await exported(memory, folder / "b.jsonl") == first

    asyncio.run(there_and_back())


def test_every_line_says_what_it_is(some_export: bytes) -> None:
    head, *lines, end = some_export.splitlines()
    assert json.loads(head) == {"kind": "jiyi-export", "version": 1, "user_id": None}
    assert json.loads(end) == {"kind": "end", "records": len(lines)}
    records = [LINE.validate_python(json.loads(line)) for line in lines]
    users = list(dict.fromkeys(record.user_id for record in records))
    assert users == sorted(users)
    news = next(record for record in records if getattr(record, "memory_key", "") == "news")
    assert news.kind == "memory"
    assert news.revisions[0].action == "add"


def test_the_command_line_carries_it_out_and_in(
    path: Path, tmp_path: Path, some_export: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JIYI_URL", str(path))
    (tmp_path / "a.jsonl").write_bytes(some_export)
    run = CliRunner()
    told = run.invoke(app, ["import", str(tmp_path / "a.jsonl")])
    assert told.exit_code == 0
    assert "format: jiyi" in told.stdout
    told = run.invoke(app, ["export", str(tmp_path / "b.jsonl")])
    assert told.exit_code == 0
    assert "× memory" in told.stdout
    assert (tmp_path / "b.jsonl").read_bytes() == some_export
    assert run.invoke(app, ["export", str(tmp_path / "b.jsonl")]).exit_code == 2
    assert run.invoke(app, ["export", str(tmp_path / "b.jsonl"), "--force", "--json"]).exit_code == 0
    assert run.invoke(app, ["export", str(tmp_path / "m.md"), "--user", "mei", "--format", "markdown"]).exit_code == 0
    told = run.invoke(app, ["import", str(tmp_path / "m.md"), "--agent", "a"])
    assert told.exit_code == 2


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


WRONG: list[dict[str, Any]] = [
    {"data": {"speaker": 5}},
    {"metadata": nested(255)},
    {"metadata": {"a": "b\x00"}},
    {"importance": 1e300},
    {"importance": -0.1},
    {"trust": 2},
    {"tags": [" "]},
    {"version": 2**31 - 1},
    {"content": "  "},
    {"content": "x" * 200_001},
    {"id": ""},
]


async def test_imports_are_checked_like_add(memory: Memory, tmp_path: Path, some_export: bytes) -> None:
    lines = [json.loads(line) for line in some_export.decode().splitlines()]
    at = next(at for at, line in enumerate(lines) if line.get("kind") == "memory")
    wrong = [{**lines[at], **change} for change in WRONG]
    vectors = [[0.0] * 64, [float("inf")] + [0.0] * 63]
    wrong += [{**lines[at], "vectors": [{"part": 0, "model": "m", "vector": vector_text(one)}]} for one in vectors]
    path = tmp_path / "wrong.jsonl"
    for line in wrong:
        path.write_text("\n".join(json.dumps(one) for one in [*lines[:at], line]), "utf-8")
        with pytest.raises(InvalidInput):
            await memory.transfer.import_memories(path)
    assert await memory.users() == []
    with pytest.raises(InvalidInput, match="deep"):
        await memory.add("x", user_id="mei", metadata=nested(255))
    with pytest.raises(InvalidInput, match="NUL"):
        await memory.add("x", user_id="mei", metadata={"a\x00": 1})
    with pytest.raises(InvalidInput, match=r"data\.speaker"):
        await memory.add({"content": "x", "data": {"speaker": 5}}, user_id="mei")


def vector_text(vector: list[float]) -> str:
    return b64encode(np.array(vector, "<f4").tobytes()).decode()


@pytest.mark.parametrize("more", [-1, 0, 1])
async def test_an_export_of_several_pages_holds_everything(memory: Memory, tmp_path: Path, more: int) -> None:
    pairs = [(f"word {number}", f"other {number}") for number in range(AT_ONCE // 2 + more)]  # two rows each
    await memory.synonyms.add(pairs, user_id="mei")
    lines = (await exported(memory, tmp_path / "a.jsonl", user_id="mei")).splitlines()
    assert sum(json.loads(line)["kind"] == "synonym" for line in lines) == 2 * len(pairs)


async def test_the_same_text_twice_in_a_file_is_one_memory_and_messages_without_a_hash_stay(
    memory: Memory, tmp_path: Path
) -> None:
    said = [{"role": "user", "content": text} for text in ("hello there", "hello again", "hello there")]
    await memory.add(said, user_id="mei", session_id="s")
    await memory.add(["I like tea", "I like go"], user_id="mei")
    first, *lines, end = (await exported(memory, tmp_path / "a.jsonl", user_id="mei")).decode().splitlines()
    records = [json.loads(line) for line in lines]
    assert [one["dedupe_hash"] for one in records if one["kind"] == "message"] == [None] * 3
    again = [{**one, "id": f"{one['id'][:-1]}{'0' if one['id'][-1] != '0' else '1'}"} for one in records]
    twice = [one | {"memory_key": one["id"]} for one in again if one["kind"] == "memory" and "I like" in one["content"]]
    last = json.loads(end) | {"records": len(records) + len(twice)}
    at = max(number for number, one in enumerate(records) if one["kind"] == "memory") + 1
    every = [*records[:at], *twice, *records[at:], last]
    text = "\n".join([first, *map(json.dumps, every)])
    (tmp_path / "b.jsonl").write_text(text.replace('"mei"', '"tom"'), "utf-8")
    await memory.transfer.import_memories(tmp_path / "b.jsonl")
    assert len((await memory.messages(user_id="tom")).items) == 3
    assert sorted(one.content for one in (await memory.list(user_id="tom")).items) == ["I like go", "I like tea"]


async def test_what_follows_from_a_text_is_computed_again(memory: Memory, tmp_path: Path) -> None:
    """A full counter, a huge vector and a text under an old hash harm neither this user nor another."""
    for user in ("mei", "bo"):
        await memory.add("I like tea", user_id=user)
    lines = [json.loads(line) for line in (await exported(memory, tmp_path / "a.jsonl", user_id="mei")).splitlines()]
    await memory.delete_all("mei")
    for line in lines:
        if line.get("kind") == "memory":
            line |= {"access_count": 2**31 - 1, "content": "I like coffee and tea"}
            line["vectors"] = [{**one, "vector": vector_text([1e10] * 32)} for one in line["vectors"]]
    (tmp_path / "b.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    await memory.transfer.import_memories(tmp_path / "b.jsonl")
    for _ in range(2):
        for user in ("mei", "bo"):
            assert (await memory.search("tea", user_id=user)).hits
        assert len(await memory.usage.recalls(user_id="bo"))
        assert len(await memory.usage.recalls(user_id="mei"))
    assert (await memory.add("I like tea", user_id="mei")).created == 1, "the old text is no longer stored"
    assert (await memory.add("I like coffee and tea", user_id="mei")).created == 0
    assert {item.access_count for item in await stored(memory)} <= {0, 1, 2, 2_000_000_000}
    drift = (await memory.maintenance.verify()).drift
    assert set(drift) <= {"vectors", "keywords"}, drift
