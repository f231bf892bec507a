"""The command line as a new user meets it: nothing is created by reading, and every reply says what happened."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from jiyi import ids
from test_cli import answer, jiyi


@pytest.fixture(autouse=True)
def own_store(path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JIYI_URL", str(path))
    monkeypatch.setenv("JIYI_USER", "mei")
    return path


READING = (
    ("search", "x"),
    ("get", "x"),
    ("list",),
    ("history", "x"),
    ("stats",),
    ("jobs", "list"),
    ("keys", "list"),
    ("synonyms", "list"),
    ("verify",),
    ("update", "x", "--content", "y"),
    ("delete", "x", "--yes"),
)


def test_reading_never_creates_a_store(tmp_path: Path) -> None:
    missing = tmp_path / "no" / "such" / "a.db"
    for words in READING:
        told = jiyi(*words, "--store", missing, code=3).stderr
        assert f"there is no store at {missing}" in told and "jiyi add" in told, words
    assert "none yet" in jiyi("doctor", "--store", missing).stdout
    assert not (tmp_path / "no").exists()
    jiyi("add", "tea", "--store", missing)
    assert "tea" in jiyi("list", "--store", missing).stdout


def test_add_says_what_it_ended_and_delete_what_holds_again() -> None:
    jiyi("add", "I live in Berlin.")
    moved = jiyi("add", "I now live in Munich.").stdout
    assert "- ended" in moved and "I live in Berlin." in moved and "1 new, 1 ended" in moved
    munich = answer("search", "where do I live?")["hits"][0]
    assert "Munich" in munich["content"]
    gone = jiyi("delete", munich["id"], "--yes").stdout
    assert "holds again: I live in Berlin." in gone
    assert "1 relation," in gone and "1 relations" not in gone
    assert "Berlin" in answer("search", "where do I live?")["hits"][0]["content"]


def test_a_receipt_names_the_ended_memories_also_when_it_is_asked_for_again() -> None:
    jiyi("add", "I live in Berlin.")
    words = ("add", "I now live in Munich.", "--idempotency-key", "k")
    first, again = answer(*words), answer(*words)
    assert [one["content"] for one in first["ended"]] == ["I live in Berlin."]
    assert first["ended"][0]["valid_to"] is not None
    assert again["ended"] == first["ended"]


def test_a_unique_beginning_of_an_id_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    # As if the clock had stepped back: then ids go on from the last one, so that both begin alike.
    monkeypatch.setattr(ids, "_last", (time.time_ns() // 1_000_000 + 3_600_000) << 80)
    first = answer("add", "tea")["memories"][0]["id"]
    second = answer("add", "coffee")["memories"][0]["id"]
    same = next(at for at in range(26) if first[at] != second[at])
    assert same >= 10
    assert answer("get", first[: same + 1])["content"] == "tea"
    assert answer("update", first[: same + 1], "--content", "green tea")["id"] == first
    assert answer("restore", first[: same + 1])["content"] == "tea"
    assert len(answer("history", first[: same + 1])) == 3
    assert "several memories" in jiyi("get", first[:8], code=3).stderr
    jiyi("get", first[:4], code=3)  # too short to mean one
    jiyi("delete", first[: same + 1], "--yes")
    jiyi("get", first, code=3)


def test_words_of_other_programs_point_to_the_command() -> None:
    for word, command in (("edit", "update"), ("remove", "delete"), ("find", "search"), ("show", "get")):
        assert f"jiyi {command}" in jiyi(word, "x", code=2).stderr
    assert "TEXT" in jiyi("add", "", code=2).stderr


def test_list_shows_one_thing_once(tmp_path: Path) -> None:
    chat = tmp_path / "chat.jsonl"
    chat.write_text('{"role": "user", "content": "My dog is called Rex."}\n')
    jiyi("add", "--file", chat)
    jiyi("add", "My dog is called Rex.")
    assert jiyi("list").stdout.count("My dog is called Rex.") == 1
