"""Memories that need a look: conflicts first, each memory once, and none that was reviewed or has ended."""

from __future__ import annotations

from typing import Any

from jiyi.read.overview import UNSURE, to_review
from jiyi.store.overview import Told
from jiyi.testing import Clock
from support import DAY, MONDAY


def told(name: str, **changes: Any) -> Told:
    values: dict[str, Any] = {
        "id": name, "content": f"text of {name}", "data": {}, "meta": {}, "confidence": 1.0, "trust": 1.0,
        "occurred_at": MONDAY, "valid_from": MONDAY, "valid_to": None,
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
        home("b", "Oslo", meta={"reviewed": True}),
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
