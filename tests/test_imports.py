"""Memories of other systems: what becomes of them, and what a file must not do."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jiyi import InvalidInput, Memory
from jiyi.transfer.readers import UnknownFormat, find_reader
from jiyi.transfer.readers.markdown import read_note
from jiyi.transfer.sources import Source
from support import stored

MEM0 = {
    "results": [
        {
            "id": "892db2ae-06d9-49e5-8b3e-585ef9b85b8e",
            "memory": "Likes oolong tea",
            "hash": "e1",
            "metadata": {"channel": "app"},
            "created_at": "2024-03-01T09:00:00.123456-08:00",
            "updated_at": None,
            "user_id": "mei",
            "agent_id": "barista",
            "run_id": "r1",
            "categories": ["food", "tea"],
        },
        {"id": "2", "memory": "对花生过敏", "created_at": "2024-03-02T10:00:00Z", "user_id": "bo"},
    ],
    "relations": [{"source": "mei", "relationship": "works_at", "target": "乐事"}],
}
GRAPH = [
    {"type": "entity", "name": "Mei", "entityType": "person", "observations": ["likes tea", "住在杭州"]},
    {"type": "relation", "from": "Mei", "relationType": "works_at", "to": "Acme"},
]
NOTE = """---
title: "手冲咖啡"
type: note
permalink: coffee/pour-over
tags:
  - coffee
  - '#brewing'
created: 2024-05-06T07:08:09+00:00
---

# 手冲咖啡

A method that gives
clarity, see [[French Press|the press]].

## Observations
- [method] 水温 92 度 #temp #水 (learned the hard way)
- [preference] I like light roasts (2023-01-02)
* [ ] buy filters
- [a link](http://example.org) is no category

## Relations
- contrasts_with [[French Press]]
- 需要 [[磨豆机]] (手摇)

| a | table |
```
code - [fact] not this
```
1. first step
"""


def save(path: Path, value: Any) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), encoding="utf-8")
    return path


async def test_mem0_keeps_its_times_users_and_categories(memory: Memory, tmp_path: Path) -> None:
    report = await memory.transfer.import_memories(save(tmp_path / "m.json", MEM0))
    assert (report.format, report.new) == ("mem0", {"memory": 3})
    (tea,) = await stored(memory, "mei")
    assert (tea.content, tea.tags, tea.agent_id, tea.session_id) == (
        "Likes oolong tea",
        ("food", "tea"),
        "barista",
        "r1",
    )
    assert tea.occurred_at == datetime(2024, 3, 1, 17, 0, 0, 123456, tzinfo=UTC)
    assert tea.metadata == {"channel": "app", "mem0": {"id": MEM0["results"][0]["id"]}}  # type: ignore[index]
    assert [item.content for item in await stored(memory, "bo")] == ["对花生过敏"]
    assert [item.content for item in await stored(memory, "default")] == ["mei works at 乐事"]
    assert (await memory.transfer.import_memories(tmp_path / "m.json")).new == {"memory": 0}


@pytest.mark.parametrize("value", [MEM0["results"], {"results": MEM0["results"]}])
async def test_with_a_user_nothing_is_written_for_anybody_else(memory: Memory, tmp_path: Path, value: Any) -> None:
    await memory.transfer.import_memories(save(tmp_path / "m.json", value), user_id="ann")
    assert await memory.users() == ["ann"]
    assert len(await stored(memory, "ann")) == 2


async def test_the_graph_of_the_reference_server(memory: Memory, tmp_path: Path) -> None:
    path = save(tmp_path / "memory.jsonl", "\n".join(json.dumps(line, ensure_ascii=False) for line in GRAPH) + "\n")
    report = await memory.transfer.import_memories(path, user_id="mei")
    assert report.format == "mcp"
    assert sorted(item.content for item in await stored(memory)) == [
        "Mei works at Acme",
        "Mei: likes tea",
        "Mei: 住在杭州",
    ]
    assert (await memory.transfer.import_memories(path, user_id="mei")).new == {"memory": 0}


async def test_a_folder_of_notes(memory: Memory, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    (notes / "drinks").mkdir(parents=True)
    (notes / ".obsidian").mkdir()
    save(notes / "drinks" / "coffee.md", NOTE)
    save(notes / ".obsidian" / "hidden.md", "- [fact] hidden")
    save(notes / "human.md", "The human is called Bo.\n\n- plays chess")
    report = await memory.transfer.import_memories(notes, user_id="mei")
    assert report.format == "markdown"
    there = {item.content: item for item in await stored(memory)}
    assert set(there) == {
        "手冲咖啡: A method that gives clarity, see the press.",
        "手冲咖啡: 水温 92 度",
        "手冲咖啡: I like light roasts",
        "手冲咖啡: buy filters",
        "手冲咖啡: [a link](http://example.org) is no category",
        "手冲咖啡 contrasts with French Press",
        "手冲咖啡 需要 磨豆机 (手摇)",
        "手冲咖啡: first step",
        "human: The human is called Bo.",
        "human: plays chess",
    }
    warm = there["手冲咖啡: 水温 92 度"]
    assert (warm.memory_type, warm.tags) == ("fact", ("coffee", "brewing", "method", "temp", "水"))
    assert warm.occurred_at == datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
    assert warm.metadata["markdown"] == {
        "file": "drinks/coffee.md",
        "title": "手冲咖啡",
        "permalink": "coffee/pour-over",
        "type": "note",
        "category": "method",
        "context": "learned the hard way",
    }
    light = there["手冲咖啡: I like light roasts"]
    assert (light.memory_type, light.occurred_at) == ("preference", datetime(2023, 1, 2, tzinfo=UTC))
    assert (await memory.transfer.import_memories(notes, user_id="mei")).new == {"memory": 0}


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("m.json", '{"results": [{"memory": "fine"}, {"memory": ""}]}', r"results\[1\]: .*empty"),
        ("m.json", '[{"memory": "fine"}, {"memory": 7}]', r"\[1\].memory"),
        ("m.json", '[{"memory": "fine", "created_at": "someday"}]', r"created_at: 'someday' is not a time"),
        ("m.json", '{"results": [{"memory": "fine"}], "relations": 1.5}', "relations: must be a list"),
        ("m.json", '[{"memory": "fine"}', "truncated"),
        ("g.jsonl", '{"type": "entity", "name": "a", "entityType": "b"}\n{"type": "x"}', "line 2: is neither"),
        ("g.jsonl", '{"type": "entity", "name": "", "entityType": "x"}', "name must be a text"),
        ("g.jsonl", '{"type": "entity", "name": "a", "entityType": "x", "observations": [1]}', "list of texts"),
        ("g.jsonl", '{"type": "relation", "from": "a", "to": "b"}', "relationType"),
        ("n.md", "# only a heading", "contains no memories"),
        ("c.json", '[{"role": "user", "content": "hi"}]', r"contains conversations \(messages\), not memories"),
        ("n.json", "7", "is in no known format"),
        ("e.json", "", "is empty"),
    ],
)
async def test_a_bad_file_is_named_and_nothing_is_stored(
    path: Path, memory: Memory, tmp_path: Path, name: str, text: str, problem: str
) -> None:
    with pytest.raises(InvalidInput, match=problem) as caught:
        await memory.transfer.import_memories(save(tmp_path / name, text), user_id="mei")
    assert name in str(caught.value)
    assert await memory.users() == []


async def test_what_is_not_there_is_named(memory: Memory, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="does not exist"):
        await memory.transfer.import_memories(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("value", "format_name"),
    [
        (MEM0, "mem0"),
        ({"results": []}, "mem0"),
        (GRAPH[0], "mcp"),
        ([{"role": "user", "content": "hi"}], "messages"),
        ([{"memory": "x", "role": "user"}], "mem0"),
        ({"kind": "jiyi-export", "version": 9}, "jiyi"),
    ],
)
def test_a_format_is_recognised_by_its_content(tmp_path: Path, value: Any, format_name: str) -> None:
    assert find_reader(Source(path=save(tmp_path / "any.txt", value))).name == format_name


def test_an_empty_list_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownFormat, match="is an empty list"):
        find_reader(Source(path=save(tmp_path / "any.txt", [])))


@given(st.text(max_size=200))
def test_no_note_breaks_the_reader(text: str) -> None:
    for found in read_note(text, "a.md", "a.md"):
        assert found.memory.content.strip()


@given(
    st.sampled_from(["fact", "method", "偏好"]),
    st.text("abc 茶水", min_size=1).map(lambda text: " ".join(text.split())).filter(bool),
    st.lists(st.sampled_from(["tea", "茶", "a-b"]), unique=True),
    st.sampled_from(["", "context", "2024-05-06"]),
)
def test_an_observation_is_read_back_as_it_was_written(category: str, text: str, tags: list[str], context: str) -> None:
    written = f"- [{category}] {text}" + "".join(f" #{tag}" for tag in tags) + (f" ({context})" if context else "")
    (found,) = read_note(written, "n.md", "n.md")
    assert found.memory.content == f"n: {text}"
    assert found.memory.tags == tuple(dict.fromkeys([*([] if category == "fact" else [category]), *tags]))
    about = (found.memory.metadata or {})["markdown"]
    assert isinstance(about, dict)
    assert about.get("context", "") == context


@pytest.mark.parametrize(
    "note",
    ["[" * 300_000, "- [idea] x" + " " * 300_000 + "y", "# a" + " " * 300_000 + "b", "[[" * 100_000 + "|"],
    ids=["brackets", "spaces in an observation", "spaces in a heading", "links without an end"],
)
def test_a_note_takes_time_in_proportion_to_its_length(note: str) -> None:
    """Each of these would take an hour if a pattern went back and forth over it."""
    for found in read_note(note, "a.md", "a.md"):
        assert found.memory.content.startswith("a: ")
