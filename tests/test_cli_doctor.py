"""`jiyi doctor`: what is configured, what works, what is degraded; never a secret."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jiyi.cli.doctor import hidden, unknown_variables
from jiyi.store.schema import migrate as schema
from jiyi.sync import Memory
from jiyi.testing import WordEmbedder
from test_cli import answer, jiyi

SECRET = "sk-very-secret"


def findings(*words: str, code: int) -> dict[str, list[dict[str, Any]]]:
    """What doctor says, by its mark."""
    report = json.loads(jiyi("doctor", *words, "--json", code=code).stdout)
    assert report["healthy"] is (code == 0)
    by_state: dict[str, list[dict[str, Any]]] = {}
    for check in report["checks"]:
        by_state.setdefault(check["state"], []).append(check)
    return by_state


def test_a_healthy_place(path: Path) -> None:
    found = findings("--store", str(path), code=0)
    assert found.keys() == {"works"}
    told = {check["name"]: check["finding"] for check in found["works"]}
    assert "no settings file" in told["settings"] and "builtin" in told["embedder"] and "ms" in told["embedder"]
    assert "not configured" in told["LLM"] and str(path) in told["store"]
    assert (
        "SQLite 3." in told["database"]
        and f"schema {schema.HEAD}" in told["database"]
        and "writable" in told["database"]
    )
    assert answer("stats", "--store", path)["users"] == 0, "looking leaves no user behind"
    shown = jiyi("doctor", "--store", path).stdout
    assert shown.count("✓") == len(found["works"]) and "all checks passed" in shown


def test_what_is_degraded_is_named_with_the_next_step(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory.open(path, embedder=WordEmbedder()) as memory:
        memory.add("她对花生过敏", user_id="mei")
    Path("jiyi.toml").write_text('[tools]\nproactive_search_threshold = 0.5\n[llm]\nmodel = "m"\n')
    jiyi("trust")
    monkeypatch.setenv("JIYI_URL", str(path))
    monkeypatch.setenv("JIYI_EMBEDER", "x")
    monkeypatch.setenv("LLM_API_KEY", SECRET)
    monkeypatch.setenv("LLM_BASE_URL", f"http://me:{SECRET}@llm/v1")
    found = findings(code=0)
    told = {check["name"]: check for check in found["degraded"]}
    assert "JIYI_EMBEDER" in told["environment"]["finding"]
    assert "testing:words" in told["vectors"]["finding"] and "reindex" in told["vectors"]["next_step"]
    assert "jiyi.toml (trusted)" in found["works"][0]["finding"]
    shown = jiyi("doctor").stdout
    assert "!" in shown and "→ run jiyi reindex" in shown and SECRET not in shown and SECRET not in str(found)


def test_what_is_broken_is_exit_code_1_and_the_rest_is_still_examined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = findings("--store", str(tmp_path), code=1)
    assert [check["name"] for check in found["broken"]] == ["store"]
    assert "search" in {check["name"] for check in found["works"]}

    monkeypatch.setenv("JIYI_EMBEDDER", "psychic:model")
    found = findings(code=1)
    assert [check["name"] for check in found["broken"]] == ["embedder"]
    assert {"store", "search"} <= {check["name"] for check in found["works"]}

    monkeypatch.setenv("JIYI_CACHE_MB", "much")
    assert [check["name"] for check in findings(code=1)["broken"]] == ["settings"]
    assert "cache_mb" in jiyi("doctor", code=1).stdout


def test_variables_are_known_by_every_name_that_a_setting_has() -> None:
    known = ["JIYI_URL", "jiyi_user", "JIYI_CONFIG", "JIYI_SEARCH__RECENCY_WEIGHT", "JIYI_LLM__MODEL", "JIYI_LLM"]
    assert unknown_variables([*known, "PATH", "LLM_MODEL", "JIYI_LLM_MODEL"]) == ["JIYI_LLM_MODEL"]


def test_a_password_in_a_url_is_hidden() -> None:
    assert hidden(f"postgresql://mei:{SECRET}@host/db") == "postgresql://mei:***@host/db"
    assert hidden("sqlite:////data/a:b@c.db") == "sqlite:////data/a:b@c.db"


def test_a_language_model_that_cannot_be_asked_is_broken(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_MODEL", "m")
    found = findings("--store", str(path), code=1)
    told = {check["name"]: check for check in found["broken"]}
    assert "LLM_API_KEY" in told["LLM"]["finding"] and "docs/llm.md" in told["LLM"]["next_step"]


def test_a_redis_is_looked_at(path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JIYI_CACHE__REDIS_URL", redis_url)
    works = findings("--store", str(path), code=0)["works"]
    assert {"name": "cache", "state": "works", "finding": redis_url, "next_step": ""} in works
    monkeypatch.setenv("JIYI_CACHE__REDIS_URL", f"redis://:{SECRET}@127.0.0.1:1/0")
    shown = jiyi("doctor", "--store", path).stdout
    assert "Redis does not answer" in shown and SECRET not in shown
    monkeypatch.setenv("JIYI_CACHE__REDIS_URL", "localhost")
    assert "cache.redis_url" in str(findings("--store", str(path), code=1)["broken"])
