"""Settings: where they come from, which wins, and that wrong ones are named."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from typer.testing import CliRunner

from jiyi import Memory, SettingsError
from jiyi.cli.app import app
from jiyi.engine import runtime
from jiyi.settings import LLMSettings, load_settings
from jiyi.settings_files import SHARED_VARIABLES, own_program
from jiyi.testing import WordEmbedder


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """The current folder."""
    return tmp_path / "here"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The user's configuration directory."""
    folder = tmp_path / "home/config/jiyi"
    folder.mkdir(parents=True)
    return folder


def write_trusted(path: Path, text: str) -> None:
    """Write a settings file of the current folder, which its user trusts: `test_hostile_folder` has the others."""
    path.write_text(text, encoding="utf-8")
    assert CliRunner().invoke(app, ["trust"]).exit_code == 0


def write_json(path: Path, section: Any) -> None:
    write_trusted(path, json.dumps({"other": {"x": 1}, "memory_system": section}))


def test_the_stronger_source_wins_setting_by_setting(here: Path, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments, then JIYI_ variables, then jiyi.toml here, then the user's, then config.json."""
    weights = {"keyword_weight": 0.1, "text_weight": 0.1, "semantic_weight": 0.1, "half_life_days": 1}
    write_json(here / "config.json", {"user": "json", "search": weights})
    assert load_settings().user == "json"
    (config / "jiyi.toml").write_text(
        'user = "home"\n[search]\nkeyword_weight = 0.2\ntext_weight = 0.2\nsemantic_weight = 0.2\n'
    )
    assert load_settings().user == "home"
    write_trusted(here / "jiyi.toml", 'user = "here"\n[search]\nkeyword_weight = 0.3\ntext_weight = 0.3\n')
    assert load_settings().user == "here"
    monkeypatch.setenv("JIYI_USER", "environment")
    monkeypatch.setenv("JIYI_SEARCH__KEYWORD_WEIGHT", "0.4")
    assert load_settings().user == "environment"
    settings = load_settings(user="argument")
    assert settings.user == "argument"
    found = settings.search
    assert (found.keyword_weight, found.text_weight, found.semantic_weight, found.half_life_days) == (0.4, 0.3, 0.2, 1)
    assert found.recency_weight is None


def test_ones_own_variables_win_over_those_of_other_programs(monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    write_trusted(here / "jiyi.toml", '[llm]\nmodel = "file"\n')
    monkeypatch.setenv("LLM_MODEL", "shared")
    with own_program():
        assert load_settings().llm.model == "shared"
        monkeypatch.setenv("JIYI_LLM__MODEL", "own")
        assert load_settings().llm.model == "own"


async def test_the_model_of_the_program_around_it_is_not_used(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`LLM_MODEL` of an agent is the agent's: without a setting of ours, nothing is sent to it."""
    monkeypatch.setenv("LLM_MODEL", "agents-own")
    monkeypatch.setenv("LLM_API_KEY", "sk-agents-own")
    monkeypatch.setenv("LLM_BASE_URL", "http://127.0.0.1:9/v1")
    assert load_settings().llm == LLMSettings()
    async with Memory.open(path, embedder=WordEmbedder()) as memory:
        assert runtime(memory).llm is None
        assert (await memory.add("I moved to Berlin", user_id="mei")).state == "indexed"
    monkeypatch.setenv("JIYI_LLM__MODEL", "ours")
    assert (load_settings().llm.model, load_settings().llm.base_url) == ("ours", None)
    monkeypatch.delenv("JIYI_LLM__MODEL")
    command = ["doctor", "--store", str(path)]
    shown = (await asyncio.to_thread(CliRunner().invoke, app, command)).stdout
    assert "agents-own at http://127.0.0.1:9/v1" in shown, "a command of ours reads them"
    assert load_settings().llm.model is None


def test_one_file_can_be_named_instead_of_all(here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "jiyi.toml").write_text('user = "here"\ncache_mb = 1\n')
    (tmp_path / "other.toml").write_text('user = "other"\n')
    monkeypatch.setenv("JIYI_CONFIG", str(tmp_path / "other.toml"))
    assert (load_settings().user, load_settings().cache_mb) == ("other", 512)
    write_json(tmp_path / "other.json", {"user": "json"})
    monkeypatch.setenv("JIYI_CONFIG", str(tmp_path / "other.json"))
    assert load_settings().user == "json"
    monkeypatch.setenv("JIYI_CONFIG", str(tmp_path / "missing.toml"))
    with pytest.raises(SettingsError, match=r"missing\.toml"):
        load_settings()


def test_the_memory_system_section_of_the_design_is_understood(here: Path) -> None:
    """As it stands in the design document, with its own names for two weights."""
    section = {
        "search": {
            "default_mode": "hybrid",
            "keyword_weight": 0.4,
            "text_similarity_weight": 0.45,
            "time_decay_weight": 0.2,
            "half_life_days": 30,
        },
        "extraction": {"max_keywords_per_memory": 5, "min_keyword_weight": 0.3, "enable_synonym_expansion": True},
        "tools": {"enable_proactive_search": True, "proactive_search_threshold": 0.7, "max_results_per_search": 5},
    }
    write_json(here / "config.json", section)
    found = load_settings()
    assert (found.search.text_weight, found.search.recency_weight, found.search.keyword_weight) == (0.45, 0.2, 0.4)


VECTOR_STORE = {
    "host": "db.example.org",
    "port": 5433,
    "user": "mei",
    "password": "p@ss/word",
    "database": "agents",
    "table": "public.memory_vector_store",
    "dimension": 1024,
    "create-table": True,
    "drop-table-first": False,
}


def write_vector_store(path: Path, section: object) -> None:
    path.write_text(json.dumps({"memory": {"embedding": {"vector-store": section}}, "other": {"port": 1}}))


def test_the_vector_store_section_of_the_design_is_understood(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_vector_store(here / "config.json", VECTOR_STORE)
    with pytest.raises(SettingsError, match="jiyi trust"):
        load_settings()
    monkeypatch.setenv("JIYI_CONFIG", str(here / "config.json"))
    found = load_settings()
    assert found.url == "postgresql://mei:p%40ss%2Fword@db.example.org:5433/agents"
    assert found.embedding.dimension == 1024


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"tabel": "x"}, "vector-store.tabel is not known"),
        ({"drop-table-first": True}, "vector-store.drop-table-first must be false"),
        ({"host": None}, "vector-store needs a host"),
        ({"dimension": 0}, r"embedding\.dimension"),
    ],
)
def test_a_wrong_vector_store_section_is_named(
    here: Path, monkeypatch: pytest.MonkeyPatch, wrong: dict[str, object], named: str
) -> None:
    write_vector_store(here / "config.json", VECTOR_STORE | wrong)
    monkeypatch.setenv("JIYI_CONFIG", str(here / "config.json"))
    with pytest.raises(SettingsError, match=named):
        load_settings()
    write_vector_store(here / "config.json", 3)
    with pytest.raises(SettingsError, match="vector-store is not an object"):
        load_settings()


@pytest.mark.parametrize("name", ["text_weight", "text_similarity_weight"])
def test_the_stronger_source_wins_whichever_name_the_file_uses(
    here: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    write_json(here / "config.json", {"search": {name: 0.2}})
    assert load_settings().search.text_weight == 0.2
    assert load_settings(search={"text_weight": 0.7}).search.text_weight == 0.7
    write_trusted(here / "jiyi.toml", "[search]\ntext_weight = 0.8\n")
    assert load_settings().search.text_weight == 0.8
    monkeypatch.setenv("JIYI_SEARCH__TEXT_WEIGHT", "0.9")
    assert load_settings().search.text_weight == 0.9


def test_elsewhere_there_is_one_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JIYI_SEARCH__TEXT_SIMILARITY_WEIGHT", "0.9")
    with pytest.raises(SettingsError, match=r"search\.text_similarity_weight"):
        load_settings()


def test_the_variables_of_the_design_are_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {
        "LLM_PROVIDER": "qwen",
        "LLM_MODEL": "gpt-4",
        "LLM_BASE_URL": "https://llm.example.org/v1",
        "LLM_API_KEY": "sk-1",
        "LLM_TEMPERATURE": "0.4",
        "LLM_MAX_TOKENS": "1000",
        "EMBEDDING_BASE_URL": "https://e.example.org/v1",
        "EMBEDDING_API_KEY": "sk-2",
        "EMBEDDING_DIMENSION": "256",
        "MONGODB_URI": "mongodb://db.example.org/app",
        "ELASTICSEARCH_HOSTS": "http://a.example.org:9200,http://b.example.org:9200",
    }
    assert set(values) == set(SHARED_VARIABLES)
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    with own_program():
        found = load_settings()
    for variable, (section, name) in SHARED_VARIABLES.items():
        value = getattr(getattr(found, section), name)
        assert str(value.get_secret_value() if isinstance(value, SecretStr) else value) == values[variable]


def test_the_place_of_milvus_is_two_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILVUS_HOST", "vectors")
    monkeypatch.setenv("MILVUS_PORT", "19531")
    assert load_settings().engines.milvus_url is None  # in another program they are that program's
    for port in ("19531", "19530"):
        with own_program():
            url = load_settings().engines.milvus_url
        assert url is not None and url.get_secret_value() == f"http://vectors:{port}"
        monkeypatch.delenv("MILVUS_PORT", raising=False)


def test_variables_in_the_vector_store_section(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "config.json"
    section = {"host": "${DB_HOST}", "port": 5432, "database": "memory", "user": "mei", "password": "${DB_PASSWORD}"}
    file.write_text(json.dumps({"memory": {"embedding": {"vector-store": section}}}))
    monkeypatch.setenv("JIYI_CONFIG", str(file))
    monkeypatch.setenv("DB_HOST", "db.example")
    with pytest.raises(SettingsError, match=r"vector-store\.host names an environment variable"):
        load_settings()
    with own_program():
        with pytest.raises(SettingsError, match="DB_PASSWORD is not set"):
            load_settings()
        monkeypatch.setenv("DB_PASSWORD", "p@ss")
        assert load_settings().url == "postgresql://mei:p%40ss@db.example:5432/memory"


def test_an_empty_variable_of_another_program_is_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_MAX_TOKENS", "")
    with own_program():
        assert load_settings().llm.max_tokens == 16384


# -- wrong ones -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('usr = "mei"', "usr"),
        ("[search]\nkeywrd_weight = 1", "search.keywrd_weight"),
        ("[serch]\nkeyword_weight = 1", "serch"),
        ('[search]\nkeyword_weight = "much"', "search.keyword_weight"),
        ("[search]\nkeyword_weight = -1", "search.keyword_weight"),
        ("[search]\ntext_weight = nan", "search.text_weight"),
        ('[search]\ndefault_mode = "fuzzy"', "search.default_mode"),
        ("busy_timeout_s = 0", "busy_timeout_s"),
    ],
)
def test_a_wrong_toml_setting_is_named(here: Path, text: str, named: str) -> None:
    write_trusted(here / "jiyi.toml", text)
    with pytest.raises(SettingsError, match=rf"settings: {named}"):
        load_settings()


@pytest.mark.parametrize("text", ["user = ", "\ufeff["])
def test_a_file_that_is_no_toml_is_named(here: Path, text: str) -> None:
    (here / "jiyi.toml").write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError, match=r"jiyi\.toml cannot be read as TOML"):
        load_settings()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('{"memory_system": {"usr": "mei"}}', "usr"),
        ('{"memory_system": {"search": {"half_life_days": 0}}}', "search.half_life_days"),
    ],
)
def test_a_wrong_json_setting_is_named(here: Path, text: str, named: str) -> None:
    write_trusted(here / "config.json", text)
    with pytest.raises(SettingsError, match=rf"settings: {named}"):
        load_settings()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('{"memory_system": [1]}', r"config\.json: memory_system is not an object"),
        ("{", r"config\.json cannot be read as JSON"),
    ],
)
def test_a_file_that_is_no_json_is_named(here: Path, text: str, named: str) -> None:
    (here / "config.json").write_text(text)
    with pytest.raises(SettingsError, match=named):
        load_settings()


@pytest.mark.parametrize("text", ["[]", "3", "{}", '{"other": 1}', '{"memory": {"embedding": 3}}'])
def test_another_programs_config_json_is_left_alone(here: Path, text: str) -> None:
    (here / "config.json").write_text(text)
    assert load_settings() == load_settings(user="default")


def test_a_wrong_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JIYI_CACHE_MB", "lots")
    with pytest.raises(SettingsError, match="cache_mb"):
        load_settings()
    monkeypatch.delenv("JIYI_CACHE_MB")
    monkeypatch.setenv("JIYI_SEARCH__KEYWRD_WEIGHT", "1")
    with pytest.raises(SettingsError, match=r"search\.keywrd_weight"):
        load_settings()
    monkeypatch.delenv("JIYI_SEARCH__KEYWRD_WEIGHT")
    monkeypatch.setenv("LLM_TEMPERATURE", "hot")
    with own_program(), pytest.raises(SettingsError, match=r"llm\.temperature"):
        load_settings()


def test_a_wrong_argument_is_named() -> None:
    with pytest.raises(SettingsError, match="usr"):
        load_settings(usr="mei")


async def test_opening_with_wrong_settings_is_a_settings_error(here: Path) -> None:
    (here / "jiyi.toml").write_text("user = ")
    with pytest.raises(SettingsError):
        Memory.open(embedder=WordEmbedder())


def test_settings_do_not_change() -> None:
    with pytest.raises(ValueError, match="frozen"):
        load_settings().user = "other"  # type: ignore[misc]


def test_secrets_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JIYI_LLM__API_KEY", "sk-very-secret")
    monkeypatch.setenv("JIYI_EMBEDDING__API_KEY", "sk-very-secret")
    found = load_settings()
    for shown in (repr(found), str(found), found.model_dump_json(), repr(found.llm)):
        assert "very-secret" not in shown
    monkeypatch.setenv("JIYI_LLM__MAX_TOKENS", "-1")
    with pytest.raises(SettingsError) as wrong:
        load_settings()
    assert "very-secret" not in str(wrong.value)


def test_the_tests_see_no_settings_of_the_developer() -> None:
    found = [name for name in os.environ if name.startswith(("JIYI_", "LLM_", "EMBEDDING_"))]
    assert sorted(found) == ["JIYI_SEARCH__READER", "JIYI_TOOLS__RECALL_TIMEOUT_S"]  # set by conftest.py
    assert load_settings() == load_settings(user="default")
