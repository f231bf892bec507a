"""`jiyi demo`: what it promises a newcomer is what the engine does."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.cells import cell_len

from jiyi.cli import demo
from test_cli import answer, jiyi

EXPECTED = {
    "过敏": "花生过敏",
    "她什么时候喝咖啡？": "espresso",
    "What is the cat's name?": "豆包",
    "v2.14.3": "v2.14.3",
    "林岚": "林岚",
    "用 Rust 写的 parser": "Rust",
}


def test_the_demo_finds_what_it_says_and_touches_nothing(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JIYI_URL", str(path))
    monkeypatch.setenv("JIYI_EMBEDDER", "openai:none")  # whatever is configured, the demo does not care
    monkeypatch.setenv("JIYI_SEARCH__SEMANTIC_WEIGHT", "0")
    before = path.read_bytes()
    shown = jiyi("demo").stdout
    played = answer("demo")
    assert path.read_bytes() == before and list((tmp_path / "home").iterdir()) == []

    assert len(played["receipts"]) == len(demo.SCRIPT["conversation"])
    made = {memory["content"] for memory in played["memories"]["items"]}
    for said in ("吃素", "对花生过敏", "住在杭州", "林岚"):
        assert any(said in content for content in made), said
    best = {found["query"]: found["hits"][0] for found in played["searches"]}
    assert best.keys() == EXPECTED.keys()
    for query, expected in EXPECTED.items():
        assert expected in best[query]["summary"], query
        score = f"{best[query]['relevance_score']:.2f}"
        assert any(query in line and score in line for line in shown.splitlines()), "each showing is the same"
    assert "柏林" in played["where"]["today"]["hits"][0]["summary"]
    assert "住在杭州" in played["where"]["before"]["hits"][0]["summary"]
    assert [change["action"] for change in played["history"]] == ["add", "supersede"]
    assert played["forgotten"]["deletion"]["messages"] == 1 and played["forgotten"]["after"]["hits"] == []

    assert max(map(cell_len, shown.splitlines())) <= 80
    assert "nothing matched" in shown.split("Forgetting")[1] and "\x1b" not in shown
    score = f"{played['why']['hits'][0]['explanation']['score']:.3f}"
    assert ["score", score] in [line.split()[-2:] for line in shown.splitlines()]
    assert "jiyi doctor" in shown


def test_it_is_narrated_in_both_languages() -> None:
    english_texts, chinese_texts = (demo.SCRIPT["narrations"][lang] for lang in ("en", "zh"))
    assert english_texts.keys() == chinese_texts.keys()
    for key, english in english_texts.items():
        chinese = chinese_texts[key]
        assert any("\u4e00" <= letter <= "\u9fff" for letter in chinese), key
        assert english.count("{") == chinese.count("{"), key
