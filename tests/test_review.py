"""Memories that need a look: conflicts first, each memory once, and none that was reviewed or has ended. Names that
memories mention, and lines of the change log."""

from __future__ import annotations

from typing import Any

from jiyi.models import UNSURE
from jiyi.read.overview import ChangeEntry, subject_names, subjects_of, to_entry, to_review
from jiyi.store.repositories.overview_rows import LoggedChange, Told
from jiyi.testing import Clock
from support import DAY, MONDAY, each_case


def told(name: str, **changes: Any) -> Told:
    values: dict[str, Any] = {
        "id": name, "content": f"text of {name}", "length": 20, "data": {}, "metadata": {},
        "confidence": 1.0, "trust": 1.0, "occurred_at": MONDAY, "valid_from": MONDAY, "valid_to": None,
        "memory_type": "fact",
    }  # fmt: skip
    return Told(**{**values, **changes})


def home(name: str, value: str, **more: Any) -> Told:
    data = {"subject": "user", "attribute": "home", "value": value, "single": True}
    return told(name, data=data | more.pop("data", {}), **more)


def review(*memories: Told, contradictions: tuple[tuple[str, str], ...] = ()) -> list[tuple[str, list[str]]]:
    with Clock(MONDAY):
        return [(why, ids) for why, ids in to_review(memories, contradictions)]


def test_two_values_of_which_there_is_one_are_a_conflict() -> None:
    assert review(home("a", "Rome"), home("b", "Oslo")) == [("conflict", ["a", "b"])]
    assert review(home("a", "Rome"), home("b", "rome")) == [], "the same value"
    for other in (
        home("b", "Oslo", data={"single": False}),
        home("b", "Oslo", data={"attribute": "work"}),
        home("b", "Oslo", data={"subject": "Tom"}),
        home("b", "Oslo", data={"ended": True}),
        home("b", "Oslo", data={"value": 5}),
        home("b", "Oslo", data={"attribute": None}),
        home("b", "Oslo", metadata={"reviewed": True}),
        home("b", "Oslo", valid_to=MONDAY),
    ):
        assert review(home("a", "Rome"), other) == []
    assert review(home("a", "Rome"), home("b", "Oslo", valid_to=MONDAY + DAY)) == [("conflict", ["a", "b"])]


def test_contradictions_count_where_both_hold() -> None:
    both = (told("a"), told("b"))
    assert review(*both, contradictions=(("a", "b"), ("a", "gone"))) == [("conflict", ["b", "a"])]
    assert review(told("a", valid_to=MONDAY), told("b"), contradictions=(("a", "b"),)) == []


def test_repetitions_and_doubts_follow_each_memory_once() -> None:
    memories = (
        told("a", content="tea"),
        told("b", content="tea", trust=UNSURE - 0.1),
        told("c", trust=UNSURE - 0.1),
        told("d", confidence=UNSURE - 0.1),
        told("e", confidence=UNSURE - 0.2),
        told("f", trust=UNSURE, confidence=UNSURE),
    )
    assert review(*memories) == [
        ("repeated", ["a", "b"]),
        ("untrusted", ["c"]),
        ("unsure", ["e"]),
        ("unsure", ["d"]),
    ]


# -- names and the change log -----------------------------------------------------------------------------------------


@each_case(
    ("content", "data", "names"),
    [
        ("text", {"subject": "user"}, {"mei": "user"}),
        ("text", {"subject": "Tom"}, {"Tom": "person"}),
        ("text", {"subject": ""}, {}),
        ("text", {"subject": 5}, {}),
        ("text", {"subject": "user: sister Ana"}, {"Ana": "person"}),
        ("text", {"subject": "user: sister"}, {"sister": "person"}),
        ("text", {"subject": "user: daughter", "attribute": "name", "value": "Mia"}, {"Mia": "person"}),
        ("text", {"subject": "user: son", "attribute": "name", "value": 5}, {"son": "person"}),
        ("text", {"subject": "user: son", "attribute": "rent", "value": "Mia"}, {"son": "person"}),
        ("text", {"subject": "user", "attribute": "name", "value": "Mei Lin"}, {"mei": "user"}),
        ("text", {"attribute": "home", "value": "Berlin since May"}, {"Berlin": "place"}),
        ("text", {"attribute": "rent", "value": "Oslo"}, {}),
        ("text", {"attribute": "home", "value": 5}, {}),
        ("I met my friend Tom Baker in Oslo.", {}, {"Tom Baker": "person", "Oslo": "place"}),
        ("The Apollo project is late.", {}, {"Apollo": "project"}),
        ("Berlin is nice.", {}, {"Berlin": "place"}),
        ("Tom Baker is nice.", {}, {"Tom Baker": "thing"}),
        ("We visited Anna's house on Monday.", {}, {"Anna": "thing"}),
        ("I said OK to X's boss", {}, {}),
        ("王小明住在上海。", {}, {"王小明": "person", "上海": "place"}),
        ("near Oslo", {"attribute": "home", "value": "Oslo"}, {"Oslo": "place"}),
    ],
)
def test_names_of_people_and_things(content: str, data: dict[str, Any], names: dict[str, str]) -> None:
    assert subject_names(told("a", content=content, data=data), "mei") == names


def test_subjects_are_counted_with_the_user_first() -> None:
    with Clock(MONDAY):
        found = subjects_of(
            [
                told("a", content="near Oslo", occurred_at=MONDAY - DAY),
                told("b", data={"attribute": "home", "value": "oslo"}, valid_to=MONDAY),
                told("c", data={"subject": "Bob"}, valid_to=MONDAY + DAY),
                told("d", data={"subject": "Robert", "kind": "end"}),
                told("e", data={"subject": "Anna"}),
                told("f", data={"subject": "user"}),
            ],
            {"bob": "robert"},
            "mei",
        )
    assert [(one.name, one.kind, one.aliases, one.facts, one.mentions) for one in found] == [
        ("mei", "user", (), 1, 1),
        ("Robert", "person", ("Bob",), 1, 2),
        ("oslo", "place", ("Oslo",), 1, 2),
        ("Anna", "person", (), 1, 1),
    ]
    assert (found[2].first_at, found[2].last_at) == (MONDAY - DAY, MONDAY)


CURRENT: dict[str, Any] = {"content": "tea", "memory_type": "fact", "version": 2, "status": "active", "data": {}}


def logged(**changes: Any) -> ChangeEntry:
    values: dict[str, Any] = {
        "memory_id": "a", "version": 2, "action": "update", "actor": "user", "reason": None, "changed_at": MONDAY,
        "before": {"content": "milk"}, "memory": CURRENT,
    }  # fmt: skip
    return to_entry(LoggedChange(**{**values, **changes}))


@each_case(
    ("changes", "source"),
    [
        ({}, "person"),
        ({"actor": "console"}, "person"),
        ({"actor": "user (key abc)"}, "person"),
        ({"memory": CURRENT | {"agent_id": "a"}}, "agent"),
        ({"actor": "crawler"}, "agent"),
        ({"actor": "jiyi"}, "jiyi"),
        ({"memory": None}, "jiyi"),
        ({"actor": "import", "memory": None}, "file"),
        ({"action": "add", "memory": CURRENT | {"data": {"extractor": "llm"}}}, "model"),
        ({"action": "add", "memory": CURRENT | {"data": {"extractor": "builtin-2"}}}, "chat"),
        ({"action": "update", "memory": CURRENT | {"data": {"extractor": "llm"}}}, "person"),
    ],
)
def test_the_change_log_names_the_source_of_a_change(changes: dict[str, Any], source: str) -> None:
    assert logged(**changes).source == source


def test_the_change_log_tells_the_kind_of_a_change_and_whether_it_can_be_undone() -> None:
    assert (logged().kind, logged().before, logged().text, logged().can_undo) == ("changed", "milk", "tea", True)
    assert logged(before={"content": "tea"}).before is None
    assert logged(reason="ended by hand").kind == "ended"
    assert logged(reason="ended by hand", action="restore").kind == "restored"
    assert logged(reason="ended by hand", before=None).kind == "changed"
    assert not logged(version=1).can_undo, "it is not the last change"
    assert not logged(memory=None).can_undo, "it is deleted"
    archived = CURRENT | {"status": "archived"}
    assert not logged(action="add", memory=archived).can_undo, "it is undone"
    assert logged(action="archive", memory=archived).can_undo
