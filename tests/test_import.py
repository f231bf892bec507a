"""`jiyi import`: past chats keep their times, nothing comes in twice, and a bad file stores nothing."""

from __future__ import annotations

import gzip
import io
import json
import multiprocessing
import os
import signal
import tempfile
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import jiyi.sync as jiyi_sync
from jiyi import InvalidInput, Memory
from jiyi.store.write_set import STATED
from jiyi.testing import WordEmbedder
from jiyi.transfer import imports, readers, records, sources
from jiyi.transfer.readers import Kind, find_reader
from jiyi.transfer.records import Conversation
from jiyi.transfer.sources import Source, find_sources, json_values
from support import each_case
from test_cli import answer, jiyi


def read(path: Path) -> list[Conversation]:
    found = [record for source in find_sources(path) for record in find_reader(source).read(source)]
    return [record for record in found if isinstance(record, Conversation)]


def written(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def texts(found: list[Conversation]) -> list[str]:
    return [message.text for chat in found for message in chat.messages]


# -- ChatGPT ----------------------------------------------------------------------------------------------------------


def node(
    node_id: str, parent: str | None, role: str, parts: list[Any], at: float | None = 1_700_000_000.25, **more: Any
) -> dict[str, Any]:
    content = {"content_type": more.pop("kind", "text"), "parts": parts}
    message = {"id": f"m-{node_id}", "author": {"role": role}, "create_time": at, "content": content, **more}
    return {"id": node_id, "message": message, "parent": parent, "children": []}


def chatgpt_chat(**changed: Any) -> dict[str, Any]:
    nodes = [
        {"id": "root", "message": None, "parent": None, "children": ["sys"]},
        node("sys", "root", "system", ["You are ChatGPT."]),
        node("about", "sys", "user", [""], kind="user_editable_context"),
        node("u1-old", "about", "user", ["我住在上海"]),
        node("u1", "about", "user", ["我住在杭州", {"content_type": "image_asset_pointer"}], kind="multimodal_text"),
        node("call", "u1", "assistant", ["search('Hangzhou')"], recipient="browser"),
        node("out", "call", "tool", ["{'temperature': 20}"]),
        node("think", "out", "assistant", ["hmm"], kind="thoughts"),
        node("a1", "think", "assistant", ["Hangzhou is lovely."], None, recipient="all"),
        node("a1-again", "think", "assistant", ["Nice city!"]),
        node(
            "u2", "a1", "user", [{"content_type": "audio_transcription", "text": "I work at a bakery"}], 1_700_000_060
        ),
        node("u3", "u2", "user", [{"content_type": "image_asset_pointer"}], kind="multimodal_text"),
    ]
    mapping = {entry["id"]: entry for entry in nodes}
    return {
        "title": "杭州",
        "create_time": 1_699_999_999.0,
        "mapping": mapping,
        "current_node": "u3",
        "conversation_id": "conv-1",
        **changed,
    }


def test_chatgpt_gives_what_the_user_saw_last(tmp_path: Path) -> None:
    (found,) = read(written(tmp_path / "conversations.json", [chatgpt_chat()]))
    assert (found.session_id, found.title, found.format) == ("conv-1", "杭州", "chatgpt")
    said = [(message.role, message.text, message.id) for message in found.messages]
    assert said == [
        ("user", "我住在杭州", "m-u1"),
        ("assistant", "Hangzhou is lovely.", "m-a1"),
        ("user", "I work at a bakery", "m-u2"),
    ]
    assert found.messages[0].sent_at == datetime(2023, 11, 14, 22, 13, 20, 250_000, tzinfo=UTC)
    assert found.messages[1].sent_at == found.messages[0].sent_at, "one without a time was said after the one before"
    left_out = {reason: found.skipped.count(reason) for reason in found.skipped}
    assert left_out == {
        records.INSTRUCTIONS: 1, records.CUSTOM: 1, records.TOOLS: 2, records.REASONING: 1, records.NO_TEXT: 1,
        records.BRANCH: 2,
    }  # fmt: skip


def test_chatgpt_without_a_present_end_goes_to_the_newest_leaf(tmp_path: Path) -> None:
    (found,) = read(written(tmp_path / "x.json", chatgpt_chat(current_node=None)))
    assert found.messages[-1].text == "I work at a bakery"
    (empty,) = read(written(tmp_path / "y.json", chatgpt_chat(mapping={}, current_node=None)))
    assert empty.messages == ()


def test_chatgpt_in_a_circle_is_an_error(tmp_path: Path) -> None:
    circle = chatgpt_chat()
    circle["mapping"]["u1"]["parent"] = "u3"
    with pytest.raises(InvalidInput, match=r"x\.json, \[0\]\.mapping\.\w+\S*: is its own ancestor"):
        read(written(tmp_path / "x.json", [circle]))


# -- Claude, and the others -------------------------------------------------------------------------------------------


def claude_chat(**changed: Any) -> dict[str, Any]:
    at = "2024-05-07T08:0{}:00.123456Z"
    blocks = [
        {"type": "text", "text": "Dear Wei,"},
        {"type": "tool_use", "name": "x"},
        {"type": "text", "text": "thanks"},
    ]
    return {
        "uuid": "c-1",
        "name": "给魏老师的信",
        "created_at": at.format(0),
        "account": {"uuid": "a"},
        "chat_messages": [
            {"uuid": "m1", "sender": "human", "text": "帮我写封信", "content": [], "created_at": at.format(1)},
            {"uuid": "m2", "sender": "assistant", "text": "[tool]", "content": blocks, "created_at": at.format(2)},
            {"uuid": "m3", "sender": "human", "text": "", "attachments": [{"file_name": "a.pdf"}], "created_at": None},
        ],
        **changed,
    }


def test_claude(tmp_path: Path) -> None:
    (found,) = read(written(tmp_path / "conversations.json", [claude_chat()]))
    assert [(one.role, one.text, one.id) for one in found.messages] == [
        ("user", "帮我写封信", "m1"),
        ("assistant", "Dear Wei,\nthanks", "m2"),
    ]
    assert found.messages[0].sent_at == datetime(2024, 5, 7, 8, 1, 0, 123456, tzinfo=UTC)
    assert (found.session_id, found.title, found.skipped) == ("c-1", "给魏老师的信", (records.NO_TEXT,))


MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "be kind"},
    {"role": "user", "content": "我对花生过敏", "timestamp": "2024-05-07T08:00:00+08:00"},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
    {"role": "tool", "content": "42", "tool_call_id": "1"},
    {"role": "user", "name": "Mei", "content": [{"type": "text", "text": "and to shellfish"}, {"type": "image_url"}]},
]


@pytest.mark.parametrize("suffix", ["json", "jsonl", "pretty.json", "json.gz"])
def test_messages_as_a_list_or_line_by_line(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"trip.{suffix}"
    lines = "\n".join(json.dumps(message, ensure_ascii=False) for message in MESSAGES)
    text = {"jsonl": lines, "pretty.json": json.dumps(MESSAGES, indent=2)}.get(suffix) or json.dumps(MESSAGES)
    path.write_bytes(gzip.compress(text.encode()) if suffix.endswith("gz") else b"\xef\xbb\xbf" + text.encode())
    (found,) = read(path)
    assert texts([found]) == ["我对花生过敏", "and to shellfish"]
    assert found.messages[0].sent_at == datetime(2024, 5, 7, tzinfo=UTC)
    assert found.messages[1].speaker == "Mei"
    assert sorted(found.skipped) == sorted([records.INSTRUCTIONS, records.NO_TEXT, records.TOOLS])
    name = "trip.pretty" if suffix == "pretty.json" else "trip"
    assert found.session_id == name and found.messages[0].id == f"{name}#1"


def test_objects_with_messages_and_messages_with_sessions(tmp_path: Path) -> None:
    lines = [
        {"id": 7, "title": "t", "created_at": 1_700_000_000, "messages": [{"role": "user", "content": "a"}]},
        {"messages": [{"role": "user", "content": "b"}]},
    ]
    path = tmp_path / "x.jsonl"
    path.write_text("\n\n".join(map(json.dumps, lines)) + "\n")
    first, second = read(path)
    assert (first.session_id, first.title, second.session_id) == ("7", "t", "x#2")
    assert first.messages[0].sent_at == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    apart = [{"role": "user", "content": c, "session_id": c} for c in "aab"]
    assert [chat.session_id for chat in read(written(tmp_path / "y.json", apart))] == ["a", "b"]


def test_what_cannot_be_stored_is_mended_or_left_out(tmp_path: Path) -> None:
    said = [{"role": "user", "content": c} for c in ("half \ud83d", "nul \x00", "x" * 200_001, "whole 😀")]
    (found,) = read(written(tmp_path / "x.json", said))
    assert texts([found]) == ["half \ufffd", "nul \ufffd", "whole 😀"]
    assert found.repaired == 2 and found.skipped == (records.TOO_LONG,)


# -- a zip as it was downloaded, and folders --------------------------------------------------------------------------


def zipped(path: Path, **members: object) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in members.items():
            archive.writestr(f"{name}.json", json.dumps(value, ensure_ascii=False))
        archive.writestr("chat.html", "<html></html>")
    return path


async def test_a_zip_as_it_was_downloaded(tmp_path: Path, memory: Memory) -> None:
    """The account's own files beside the conversations are no reason to warn; an unknown file is."""
    account = {"user": {"id": "x"}, "message_feedback": [], "shared_conversations": [], "model_comparisons": []}
    path = zipped(tmp_path / "export.zip", conversations=[chatgpt_chat()], strange={"id": "x"}, **account)
    report = await memory.transfer.import_chats(path, user_id="mei")
    assert (report.files, report.conversations, report.messages, report.new) == (1, 1, 3, 3)
    (note,) = report.notes
    assert note.startswith("skipped:") and "strange.json" in note
    (item,) = (await memory.list(user_id="mei", memory_types=["message"], limit=1)).items
    assert item.session_id == "conv-1" and item.metadata == {"imported_from": "chatgpt", "title": "杭州"}
    assert item.occurred_at == datetime(2023, 11, 14, 22, 14, 20, tzinfo=UTC)


async def test_a_folder(tmp_path: Path, memory: Memory) -> None:
    (tmp_path / "in" / "deep").mkdir(parents=True)
    written(tmp_path / "in" / "deep" / "a.json", MESSAGES)
    written(tmp_path / "in" / "settings.json", {"theme": "dark"})
    (tmp_path / "in" / "notes.txt").write_text("not looked at")
    zipped(tmp_path / "in" / "b.zip", conversations=[claude_chat()])
    report = await memory.transfer.import_chats(str(tmp_path / "in"), user_id="mei")
    assert (report.files, report.conversations, report.new) == (2, 2, 4)
    assert any("settings.json" in note for note in report.notes)
    assert any("have no time" in note for note in report.notes)


# -- once is enough ---------------------------------------------------------------------------------------------------


async def stored(memory: Memory) -> list[tuple[str, datetime]]:
    items = (await memory.list(user_id="mei", memory_types=["message"], limit=1000)).items
    return sorted((item.content, item.occurred_at) for item in items)


async def test_twice_makes_nothing_new_and_a_longer_file_only_what_is_new(tmp_path: Path, memory: Memory) -> None:
    path = written(tmp_path / "chat.json", MESSAGES)
    assert (await memory.transfer.import_chats(path, user_id="mei")).new == 2
    everything = await stored(memory)
    count = await memory.count(user_id="mei")
    assert (await memory.transfer.import_chats(path, user_id="mei")).new == 0
    assert await stored(memory) == everything and await memory.count(user_id="mei") == count
    written(path, [*MESSAGES, {"role": "user", "content": "我吃素"}])
    again = await memory.transfer.import_chats(path, user_id="mei")
    assert (again.messages, again.new) == (3, 1)
    assert (await memory.transfer.import_chats(path, user_id="someone else")).new == 3


class Stop(BaseException):
    """What Ctrl-C is to the engine."""


async def test_interrupted_anywhere_and_started_again_makes_nothing_twice(
    tmp_path: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "BATCH", 2)
    said = [{"role": "user", "content": f"sentence number {n}", "timestamp": 1_700_000_000 + n} for n in range(7)]
    path = written(tmp_path / "chat.json", [{"id": "a", "messages": said[:5]}, {"id": "b", "messages": said[5:]}])
    for steps in range(1, 4):

        def stop_after(done: int, whole: int, steps: int = steps) -> None:
            assert whole == 7
            if done >= 2 * steps:
                raise Stop

        with pytest.raises(Stop):
            await memory.transfer.import_chats(path, user_id="mei", progress=stop_after)
    progress: list[int] = []
    report = await memory.transfer.import_chats(path, user_id="mei", progress=lambda done, _: progress.append(done))
    assert (report.messages, await memory.count(user_id="mei", memory_types=["message"])) == (7, 7)
    assert progress == [2, 4, 5, 7]
    assert [text for text, _ in await stored(memory)] == [f"sentence number {n}" for n in range(7)]


def killed_on_the_way(path: Path, store: Path, after: int) -> None:
    """A process that is killed when so many messages are stored."""

    def kill(done: int, whole: int) -> None:
        if done >= after:
            os.kill(os.getpid(), signal.SIGKILL)

    imports.BATCH = 10
    with jiyi_sync.Memory.open(store, embedder=WordEmbedder(64)) as memory:
        memory.transfer.import_chats(path, user_id="mei", progress=kill)


async def test_a_killed_import_is_finished_by_the_next(tmp_path: Path, path: Path) -> None:
    said = [{"role": "user", "content": f"sentence number {n}"} for n in range(95)]
    file = written(tmp_path / "chat.json", said)
    for after in (10, 40, 60):
        process = multiprocessing.get_context("spawn").Process(target=killed_on_the_way, args=(file, path, after))
        process.start()
        process.join(60)
        assert process.exitcode == -signal.SIGKILL
    async with Memory.open(path, embedder=WordEmbedder(64)) as memory:
        assert await memory.count(user_id="mei", memory_types=["message"]) == 60
        report = await memory.transfer.import_chats(file, user_id="mei")
        assert (report.messages, report.new) == (95, 35)
        assert await memory.count(user_id="mei", memory_types=["message"]) == 95


# -- bad files --------------------------------------------------------------------------------------------------------

GOOD = json.dumps([claude_chat(uuid=f"c-{n}") for n in range(3)])


@each_case(
    ("text", "problem"),
    [
        ("", "is empty"),
        ("   \n", "is empty"),
        ("[]", "is an empty list"),
        ("hello", "is not JSON"),
        ('{"theme": "dark"}', "is in no known format"),
        ("[1, 2]", "is in no known format"),
        (GOOD[:-1], "line 1: is not JSON: the list does not end: the file is truncated"),
        (GOOD[: len(GOOD) // 2], r"\[1\]: is not JSON"),
        (GOOD + "x", "there is text after the list"),
        (GOOD[:-1] + ",]", "a comma before the end"),
        (GOOD[:-1] + " 5]", "instead of a comma"),
        ("[" * 100_000, "cannot be read|is not JSON"),
        ('[{"role": "user", "content": ' + "1" * 5000 + "}]", "cannot be read"),
        (
            GOOD.replace('"c-1", "name"', '"c-1", "chat_messages": 5, "x"').replace('"chat_messages": [', '"y": ['),
            "known",
        ),
        (json.dumps([claude_chat(), claude_chat(chat_messages="none")]), r"\[1\]\.chat_messages"),
        (json.dumps([*MESSAGES, {"role": "user"}, 5]), r"\[6\]"),
        (json.dumps([{**MESSAGES[1], "timestamp": "yesterday"}]), r"\[0\].*sent_at|timestamp"),
        (json.dumps([{**MESSAGES[1], "timestamp": 1e300}]), "seconds since 1970"),
        (json.dumps([{**MESSAGES[1], "role": "x" * 100}]), r"\[0\]\.role"),
        (json.dumps([{"messages": [{"role": "user", "content": "a"}, "b"]}]), r"messages\[1\]: is not a message"),
        ('{"role": "user", "content": "a"}\n{"role": "user", "cont', "line 2"),
    ],
)
async def test_a_bad_file_is_named_with_its_place_and_nothing_is_stored(
    tmp_path: Path, memory: Memory, text: str, problem: str
) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput, match=problem) as refused:
        await memory.transfer.import_chats(path, user_id="mei")
    assert "bad.json" in str(refused.value)
    assert await stored(memory) == []


async def test_files_that_cannot_be_opened(tmp_path: Path, memory: Memory) -> None:
    good = written(tmp_path / "a.json", [claude_chat()])
    whole = zipped(tmp_path / "whole.zip", conversations=[chatgpt_chat(title=str(n)) for n in range(50)]).read_bytes()
    broken = bytearray(whole)
    broken[len(whole) // 4] ^= 0xFF
    bad = {
        "utf16.json": "[]".encode("utf-16"),
        "latin.json": b'[{"role": "user", "content": "caf\xe9"}]',
        "cut.zip": whole[: len(whole) // 2],
        "broken.zip": bytes(broken),
        "cut.json.gz": gzip.compress(good.read_bytes())[:-20],
        "none.zip": zip_of({}),
        "tomorrow.zip": newer_zip(whole),
    }
    for name, data in bad.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(InvalidInput, match=name.replace(".", r"\.")):
            await memory.transfer.import_chats(tmp_path / name, user_id="mei")
    with pytest.raises(InvalidInput, match="does not exist"):
        await memory.transfer.import_chats(tmp_path / "missing.json", user_id="mei")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInput, match="contains no file that ends in"):
        await memory.transfer.import_chats(tmp_path / "empty", user_id="mei")
    with pytest.raises(InvalidInput):  # one that is damaged stops the folder, before anything is stored
        await memory.transfer.import_chats(tmp_path, user_id="mei")
    assert await stored(memory) == []


def newer_zip(whole: bytes) -> bytes:
    """One that says that a later version than any is needed to unpack it."""
    entry = whole.rindex(b"PK\x01\x02")
    return whole[: entry + 6] + b"\x94" + whole[entry + 7 :]


def zip_of(members: dict[str, str]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return data.getvalue()


# -- streams of values ------------------------------------------------------------------------------------------------

json_value = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


class InPieces(io.StringIO):
    """A stream that gives less than it is asked for, as pipes do."""

    def __init__(self, text: str, size: int) -> None:
        super().__init__(text)
        self._size = size

    def read(self, size: int | None = -1, /) -> str:
        return super().read(self._size)


@given(st.lists(json_value), st.integers(1, 40), st.sampled_from([None, 1]))
def test_a_list_is_read_as_json_reads_it_wherever_it_is_cut(found: list[Any], size: int, indent: int | None) -> None:
    text = json.dumps(found, ensure_ascii=size % 2 == 0, indent=indent)
    assert [value for _, value in json_values(InPieces(text, size), "x")] == found


@given(st.lists(st.dictionaries(st.text(), json_value, max_size=3), min_size=1), st.integers(1, 40))
def test_values_in_a_row_are_read_line_by_line(found: list[Any], size: int) -> None:
    text = "\n".join(map(json.dumps, found))
    read_back = list(json_values(InPieces(text, size), "x"))
    assert [value for _, value in read_back] == found
    assert [place for place, _ in read_back] == [f"x, line {n}" for n in range(1, len(found) + 1)]


@given(st.text() | st.binary(), st.integers(1, 40))
def test_anything_else_is_refused_or_read(text: str | bytes, size: int) -> None:
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    try:
        list(json_values(InPieces(text, size), "x"))
    except InvalidInput as error:
        assert str(error).startswith("x")


def mutations(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from mutations(inner, (*at, key))


def changed_at(value: Any, at: tuple[Any, ...], new: Any) -> Any:
    if not at:
        return new
    copied = value.copy()
    copied[at[0]] = changed_at(value[at[0]], at[1:], new)
    return copied


EXPORTS = [[chatgpt_chat()], [claude_chat()], MESSAGES, [{"messages": MESSAGES}]]


@given(st.sampled_from(EXPORTS), st.data(), json_value)
def test_an_export_with_anything_replaced_is_read_or_refused(export: Any, data: st.DataObject, new: Any) -> None:
    """Whatever stands in a field: chats, or an error of ours that names the file. Never another exception."""
    place = data.draw(st.sampled_from(list(mutations(export))))
    text = json.dumps(changed_at(export, place, new))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.json"
        path.write_text(text)
        try:
            found = read(path)
        except InvalidInput as error:
            assert "x.json" in str(error) or error.argument == "session"
        else:
            assert all(message.text.strip() for one in found for message in one.messages)


def test_a_large_file_is_never_in_memory_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "CHUNK", 100)
    asked: list[int] = []

    class Counted(io.StringIO):
        def read(self, size: int | None = -1, /) -> str:
            asked.append(size or -1)
            return super().read(size)

    stream = Counted(json.dumps([{"n": n, "text": "x" * 50} for n in range(1000)]))
    values = json_values(stream, "x")
    for n, (_, value) in enumerate(values):
        assert value["n"] == n
        assert stream.tell() < 100 * (n + 4), "no more was read than was needed"
    assert max(asked) <= 200


# -- a new format -----------------------------------------------------------------------------------------------------


class DiaryReader:
    """A format written outside the package."""

    name = "diary"
    kind: Kind = "conversations"

    def matches(self, source: Source, first: Any) -> bool:
        return isinstance(first, dict) and "diary" in first

    def read(self, source: Source) -> Iterator[Conversation]:
        for number, line in enumerate(source.path.read_text(encoding="utf-8").splitlines()):
            entry = json.loads(line)
            builder = records.ConversationBuilder(entry["diary"], format=self.name)
            builder.add(
                records.Turn(
                    place=f"{source.name}, line {number}",
                    id=f"{source.stem}#{number}",
                    text=entry["text"],
                    session=None,
                    speaker=None,
                    role="user",
                    sent_at=records.parse_time(entry["diary"]),
                )
            )
            yield builder.build()


async def test_a_new_format_is_a_reader_and_a_line_in_the_registry(
    tmp_path: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "my.json", {"diary": "2024-05-07", "text": "I planted tomatoes today."})
    with pytest.raises(InvalidInput, match="is in no known format"):
        await memory.transfer.import_chats(path, user_id="mei")
    monkeypatch.setattr(readers, "READERS", [*readers.READERS, DiaryReader()])
    assert (await memory.transfer.import_chats(path, user_id="mei")).new == 1
    (item,) = (await memory.list(user_id="mei", memory_types=["message"])).items
    assert (item.content, item.session_id, item.metadata) == (
        "I planted tomatoes today.", "2024-05-07", {"imported_from": "diary"},
    )  # fmt: skip


# -- the command ------------------------------------------------------------------------------------------------------


def test_the_command_reports_what_came_of_it(tmp_path: Path) -> None:
    path = written(tmp_path / "conversations.json", [chatgpt_chat()])
    report = answer("import", path, "--user", "mei")
    assert report["new"] == 3 and report["left_out"][records.BRANCH] == 2
    again = jiyi("import", path, "--user", "mei")
    assert "3 messages: 0 new, 3 known already" in again.stdout and "skipped: 2 × replaced" in again.stdout
    assert again.stderr == "", "no bar where there is no terminal"
    refused = jiyi("import", tmp_path / "none", code=2)
    assert refused.stderr.startswith("error: ") and refused.stderr.count("\n") == 1


# -- what the assistant remembered ------------------------------------------------------------------------------------

CLAUDE_MEMORY = {
    "account_uuid": "a",
    "conversations_memory": "**Work context**\n\nAda is a baker in Turin. She runs two shops.\n\n"
    "## 饮食\n- 她对花生过敏\n- Prefers oolong tea\n",
    "project_memories": {"p-1": "The oven is to be replaced in May."},
    "memory_files": [{"path": "/areas/family.md", "content": "- Her son is called Leo", "updated_at": "2026-01-02"}],
}


async def contents(memory: Memory, user_id: str = "mei") -> dict[str, str]:
    """Contents and types of what is stored, without the messages and what was taken from them."""
    items = (await memory.list(user_id=user_id, limit=100)).items
    return {item.content: item.memory_type for item in items if item.source == STATED}


async def test_the_memories_of_a_claude_export_are_stored_with_the_chats(tmp_path: Path, memory: Memory) -> None:
    path = tmp_path / "claude.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conversations.json", json.dumps([claude_chat()]))
        archive.writestr("memories.json", json.dumps([CLAUDE_MEMORY], ensure_ascii=False))
        archive.writestr("users.json", json.dumps([{"uuid": "a", "full_name": "Ada"}]))
    report = await memory.transfer.import_chats(path, user_id="mei")
    assert (report.messages, report.memories, report.new_memories, report.notes) == (2, 5, 5, ())
    assert set(await contents(memory)) == {
        "Ada is a baker in Turin. She runs two shops.",
        "她对花生过敏",
        "Prefers oolong tea",
        "The oven is to be replaced in May.",
        "Her son is called Leo",
    }
    told = [(one.file, one.user_id, one.messages, one.memories) for one in report.by_file]
    assert told == [("conversations.json", "mei", 2, 0), ("memories.json", "mei", 0, 5)]
    found = {item.content: item for item in (await memory.list(user_id="mei", limit=100)).items}
    assert found["她对花生过敏"].metadata == {"claude": {"section": "饮食"}}
    assert found["Her son is called Leo"].occurred_at == datetime(2026, 1, 2, tzinfo=UTC)
    assert (await memory.transfer.import_chats(path, user_id="mei")).new_memories == 0


async def test_claudes_memories_alone_are_memories(tmp_path: Path, memory: Memory) -> None:
    (tmp_path / "memories").mkdir()
    written(tmp_path / "memories" / "a.json", CLAUDE_MEMORY)
    report = await memory.transfer.import_memories(tmp_path / "memories", user_id="mei")
    assert (report.format, report.new) == ("claude", {"memory": 5})


def custom_node(node_id: str, parent: str, about: str, wishes: str, *, clean: bool) -> dict[str, Any]:
    """Custom instructions as ChatGPT exports them: between sentences for the model, mostly also by themselves."""
    found = node(node_id, parent, "user", [], None, kind="user_editable_context")
    found["message"]["content"] |= {
        "user_profile": f"The user provided the following information about themselves.\nUser profile:\n```{about}```",
        "user_instructions": f"The user provided the additional info about how to respond:\n```{wishes}```",
    }
    data = {"about_user_message": about, "about_model_message": wishes} if clean else None
    found["message"]["metadata"] = {"is_visually_hidden_from_conversation": True, "user_context_message_data": data}
    return found


@pytest.mark.parametrize("clean", [True, False])
async def test_custom_instructions_of_chatgpt_are_memories_of_the_user(
    tmp_path: Path, memory: Memory, clean: bool
) -> None:
    chats = []
    for at, about in (
        (1_700_000_000, "Role: apprentice"),
        (1_710_000_000, "Role: baker\nI prefer window seats\n我住在杭州"),
    ):
        chat = chatgpt_chat(create_time=at, conversation_id=f"c{at}")
        chat["mapping"]["about"] = custom_node("about", "sys", about, "Be brief. No emojis.", clean=clean)
        chats.append(chat)
    report = await memory.transfer.import_chats(written(tmp_path / "conversations.json", chats[::-1]), user_id="mei")
    assert await contents(memory) == {
        "Role: baker": "fact",
        "I prefer window seats": "preference",
        "我住在杭州": "fact",
        "Be brief. No emojis.": "preference",
    }
    assert report.left_out[records.CUSTOM] == 2 and report.memories == 4
    [file] = report.by_file
    assert (file.file, file.conversations, file.memories) == ("conversations.json", 2, 4)


def test_the_command_counts_what_the_assistant_remembered(tmp_path: Path) -> None:
    (tmp_path / "memories").mkdir()
    written(tmp_path / "memories" / "a.json", CLAUDE_MEMORY)
    assert "memories/a.json: 5 memories → user bo" in jiyi("import", tmp_path, "--user", "bo").stdout
    written(tmp_path / "chats.json", [claude_chat()])
    said = jiyi("import", tmp_path, "--user", "mei").stdout
    assert "5 memories of the assistant: 5 new, 0 known already" in said
    assert "chats.json: 1 conversation, 2 messages → user mei" in said


def test_the_command_says_what_of_which_file_went_to_whom(tmp_path: Path) -> None:
    results = [
        {"memory": "Likes tea", "user_id": "ann"},
        {"memory": "喜欢咖啡", "user_id": "bo"},
        {"memory": "Owns a bike"},
    ]
    path = written(tmp_path / "mem0.json", {"results": results})
    apart = jiyi("import", path)
    for line in ("1 memory → user ann", "1 memory → user bo", "1 memory → user default"):
        assert f"mem0.json: {line}" in apart.stdout
    merged = jiyi("import", path, "--user", "mei")
    assert "mem0.json: 1 memory of ann → user mei" in merged.stdout
    assert "memories of 2 users (ann, bo) are all mei's now" in " ".join(merged.stderr.split())


async def test_relations_of_mem0_belong_to_the_only_user_of_the_file(tmp_path: Path, memory: Memory) -> None:
    got = {
        "results": [{"memory": "Likes tea", "user_id": "ann"}],
        "relations": [{"source": "ann", "relationship": "works_at", "target": "Acme"}],
    }
    await memory.transfer.import_memories(written(tmp_path / "mem0.json", got))
    assert set(await contents(memory, "ann")) == {"Likes tea", "ann works at Acme"}
