"""`bench.grounding`: of what an imaginary model proposes, a confidence tells the true from the false."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from bench import grounding

PLACES = ("Oslo", "Porto", "Lima", "Quito", "Turin", "Delft", "Bergen", "Nantes", "Graz", "Ghent")
CITIES = ("成都", "南京", "西安", "杭州", "青岛", "苏州", "大连", "长沙", "昆明", "厦门")


def snippets(path: Path) -> None:
    records = [
        {"at": "2026-03-02", "messages": [f"user: I live in {place}."], "true": [f"The user lives in {place}."],
         "false": [f"The user was born in {place}."]}
        for place in PLACES
    ] + [
        {"at": "2026-03-02", "messages": [f"user: 我住在{city}。"], "true": [f"用户住在{city}。"],
         "false": [f"用户出生在{city}。"]}
        for city in CITIES
    ]  # fmt: skip
    path.write_text("\n".join(json.dumps(record, ensure_ascii=False) for record in records), "utf-8")


def shares(said: str) -> list[list[float]]:
    """Return for true and false ones the shares that are stored, and sure."""
    return [list(map(float, re.findall(r"([\d.]+) %", line))) for line in said.splitlines()]


def test_a_model_that_verifies_tells_true_from_false(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    snippets(tmp_path / "s.jsonl")
    said = []
    for more in ([], [], ["--accuracy", "1"], ["--unverified"]):
        assert grounding.main(["--data", str(tmp_path / "s.jsonl"), *more]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1], "the seed makes it repeatable"
    [[true, true_sure], [false, false_sure]] = shares(said[0])
    assert (true, false) == (100, 100) and true_sure >= 75 and false_sure <= 25
    assert shares(said[2]) == [[100, 100], [100, 0]]
    assert shares(said[3]) == [[100, 100], [100, 100]], "what nothing has judged is not unsure"
