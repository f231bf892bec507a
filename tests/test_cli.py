"""The command line, on the real engine: what goes in comes out, and every error has its exit code."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
import typer.testing
from rich.cells import cell_len
from typer.testing import CliRunner, Result

from jiyi import __version__
from jiyi.cli.app import app
from jiyi.cli.options import parse_time
from jiyi.sync import Memory
from jiyi.testing import WordEmbedder
from rest import running
from support import each_case

# The runner builds all commands anew for each call, which is most of its time.
typer.testing._get_command = cache(typer.testing._get_command)  # type: ignore[attr-defined]
COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]


def jiyi(*words: object, code: int = 0, input: str | bytes | None = None) -> Result:  # noqa: A002 - the runner's name
    """Run a command in this process; its exit code is checked, and errors are one line without a traceback."""
    result = CliRunner().invoke(app, [str(word) for word in words], input=input, prog_name="jiyi")
    assert result.exit_code == code, f"{words}: {result.output}"
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def answer(*words: object, input: str | None = None) -> Any:  # noqa: A002
    """The JSON that a command prints; nothing else may be on stdout."""
    return json.loads(jiyi(*words, "--json", input=input).stdout)


@pytest.fixture(autouse=True)
def own_store(path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every command works on this test's store, through the setting."""
    monkeypatch.setenv("JIYI_URL", str(path))
    monkeypatch.setenv("JIYI_USER", "mei")
    return path


# -- add and search -------------------------------------------------------------------------------------------------


def test_what_is_added_is_found_in_both_languages() -> None:
    added = jiyi("add", "我吃素，对花生过敏", "--type", "preference", "--tag", "饮食")
    assert "+ new" in added.stdout and "preference" in added.stdout and "1 new" in added.stdout
    jiyi("add", "I", "moved", "to", "Berlin", "in", "May", "--importance", "0.9", "--occurred-at", "2025-05-01T12:00Z")
    again = jiyi("add", "I moved to Berlin in May")
    assert "= known" in again.stdout and "0 new, 1 known already" in again.stdout

    for query, expected in (("过敏", "我吃素"), ("Berlin", "I moved"), ("any food allergies?", "我吃素")):
        lines = jiyi("search", query).stdout.splitlines()
        assert expected in lines[2], query
    table = jiyi("search", "过敏 Berlin").stdout.splitlines()
    assert len({cell_len(line) for line in table}) == 1, "every line is equally wide on the screen"

    found = answer("search", "Berlin", "--limit", 1, "--explain")
    [hit] = found["hits"]
    assert (hit["importance"], hit["occurred_at"], hit["tags"]) == (0.9, "2025-05-01T12:00:00Z", [])
    told = {part["name"] for part in hit["explanation"]["parts"]}
    assert told == {"keyword", "text", "semantic", "held", "assistant", "asks", "recency", "importance"}
    assert answer("search", "x", "--tag", "饮食", "--type", "preference")["searched"] == 1


def test_explain_shows_how_the_score_came_about(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JIYI_RECALLS__ENABLED", "false")  # a first look would count as recent in the second
    jiyi("add", "parser 用 Rust 写的", "--occurred-at", "2025-05-01T12:00Z")
    words = ("search", "Rust 写的", "--asked-at", "2025-05-31T12:00Z")
    why = answer(*words, "--explain")["hits"][0]["explanation"]
    picture = jiyi(*words, "--explain", "--all").stdout
    lines = [line.split() for line in picture.splitlines()]
    for part in why["parts"]:
        named = [line for line in lines if line[:1] == [part["name"]] and "×" in line]
        [line] = named if part["contribution"] else [None]
        if line is not None:
            shown = f"{part['value']:.2f} × {part['weight']:+.2f} = {part['contribution']:+.3f}"
            assert " ".join(line).endswith(shown)
            assert "".join(line).count("█") == round(20 * part["value"])
    assert {"similarity", "words", "bias"} <= {part["name"] for part in why["evidence"]}
    for part in why["evidence"]:
        shown = f"{part['name']} {part['value']:.2f} → {part['contribution']:+.3f}"
        assert any(" ".join(line).endswith(shown) for line in lines) == bool(part["contribution"]), part["name"]
    assert ["score", f"{why['score']:.3f}"] in lines
    assert "rust" in picture.split("words in common:")[1]
    short = jiyi(*words, "--explain").stdout.splitlines()
    assert len([line for line in short if "→" in line]) <= 7 and not any("×" in line for line in short)


def test_finding_nothing_says_which_kind_of_nothing(own_store: Path) -> None:
    nothing = jiyi("search", "茶", "--mode", "keyword")
    assert nothing.stdout == "" and "nothing is stored for user 'mei'" in nothing.stderr
    assert own_store.name in nothing.stderr
    jiyi("add", "Mei drinks coffee")
    assert "nothing matched among 1 memory" in jiyi("search", "茶", "--mode", "keyword").stderr
    filtered = jiyi("search", "coffee", "--tag", "none", "--mode", "keyword")
    assert "user 'mei' has 1 memory; none passes the filters" in filtered.stderr


def test_whoever_brings_back_what_has_expired_is_told_how_to_keep_it() -> None:
    made = answer("add", "门禁码 4711", "--expires-at", "2025-05-07")["memories"][0]["id"]
    jiyi("maintain")
    assert made in jiyi("list", "--status", "archived").stdout
    card = " ".join(jiyi("restore", made).stdout.split())
    assert f"no search finds it; to keep it: jiyi update {made} --expires-at none" in card
    assert "no search" not in jiyi("update", made, "--expires-at", "none").stdout
    assert "4711" in jiyi("search", "门禁码").stdout


def test_a_degraded_search_says_so_and_reindex_mends_it(own_store: Path) -> None:
    with Memory.open(own_store, embedder=WordEmbedder()) as memory:
        memory.add("她对花生过敏", user_id="mei")
    found = jiyi("search", "过敏")
    assert "花生" in found.stdout and "found by words only" in found.stderr and "jiyi reindex" in found.stderr
    nothing = jiyi("search", "茶")
    assert "nothing matched" in nothing.stderr and "a part of the search failed" in nothing.stderr
    refused = jiyi("search", "过敏", "--mode", "semantic", code=1)
    assert refused.stderr.startswith("error: ") and refused.stdout == ""

    jiyi("reindex", code=2)
    assert answer("reindex", "--embeddings") == {"embedded": 1}
    assert jiyi("search", "any allergies?").stderr == ""
    assert "already" in jiyi("reindex", "--embeddings").stdout


def test_what_would_steer_a_terminal_or_look_like_markup_is_shown_as_it_is() -> None:
    text = "\x1b[31mred\x1b[0m [bold]bold[/bold] :smile: \x07"
    jiyi("add", text)
    memory_id = answer("list")["items"][0]["id"]
    assert answer("get", memory_id)["content"] == text
    jiyi("update", memory_id, "--content", text + "!", "--reason", "[red]why")
    for words in (("list",), ("search", "bold", "-x"), ("search", "bold"), ("get", memory_id), ("history", memory_id)):
        shown = jiyi(*words).stdout
        assert "\x1b" not in shown and "\x07" not in shown
        assert "[bold]bold[/bold] :smile:" in shown


def test_marks_of_direction_never_reach_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """They make a text read as another one: in contents, names, tags, reasons and errors."""
    marks = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    name = f"{marks}name"
    monkeypatch.setenv("JIYI_USER", name)
    jiyi("add", f"pays{marks}001", "--tag", name, "--session", name, "--actor", name)
    memory_id = answer("list")["items"][0]["id"]
    jiyi("update", memory_id, "--content", f"pays{marks}100", "--reason", name)
    jiyi("synonyms", "import", "-", input=f"pay{marks}s,pay,0.9\n")
    jiyi("keys", "create", name, "--for", name)
    shown = [
        jiyi(*words)
        for words in (
            ("list",), ("search", "pays"), ("search", "pays", "-x"), ("get", memory_id), ("history", memory_id),
            ("context", "pays"), ("stats",), ("jobs", "list"), ("synonyms", "list"), ("keys", "list"), ("doctor",),
        )
    ]  # fmt: skip
    shown += [jiyi("get", name, code=3), jiyi("list", "--type", name), jiyi("search", "x", "--mode", name, code=2)]
    for result in shown:
        assert not set(marks) & set(result.output)
    assert any("001" in result.stdout for result in shown) and any("100" in result.stdout for result in shown)


# -- files and stdin ------------------------------------------------------------------------------------------------

MESSAGES = [
    {"role": "user", "name": "林梅", "content": "下周三去上海出差", "timestamp": "2025-05-07T18:30:00+08:00"},
    {"role": "assistant", "content": [{"type": "text", "text": "Shall I book a train?"}], "id": "m2"},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "t1"}]},
]
CANDIDATES = [{"memory_type": "task", "content": "Renew the passport", "tags": ["travel"], "memory_key": "护照"}]


def test_files_and_stdin_go_in_by_their_format(tmp_path: Path) -> None:
    chat = tmp_path / "chat.json"
    chat.write_text(json.dumps(MESSAGES), encoding="utf-8")
    lines = tmp_path / "chat.jsonl"
    lines.write_text("\n".join(json.dumps(message) for message in MESSAGES) + "\n\n", encoding="utf-8-sig")
    notes = tmp_path / "notes.txt"
    notes.write_text("第一条\r\n\r\n  second note  \r\n", encoding="utf-8")

    said = jiyi("add", "--file", chat, "--session", "trip", "--json")
    receipt = json.loads(said.stdout)
    said_in_it = [memory for memory in receipt["memories"] if memory["memory_type"] == "message"]
    assert [memory["content"] for memory in said_in_it] == ["下周三去上海出差", "Shall I book a train?"]
    assert "! input[2] has no text and was left out" in said.stderr
    assert said_in_it[1]["source_ids"] == ["m2"]
    assert answer("add", "--file", lines, "--session", "trip")["created"] == 0, "by their time and id they are known"
    assert [memory["content"] for memory in answer("add", "-f", notes)["memories"]] == ["第一条", "second note"]
    stdin = answer("add", "-", "--metadata", '{"from": "pipe"}', input="三\nfour\n第一条\n")
    assert (len(stdin["memories"]), stdin["created"]) == (3, 2)
    assert jiyi("add", "-", input="第一条\n五\n").stdout.count("+ new") == 1
    assert answer("add", "-", "--format", "json", input=json.dumps(CANDIDATES))["created"] == 1
    assert answer("get", "护照")["memory_type"] == "task"


@each_case(
    ("words", "input", "problem"),
    [
        (["add"], None, "TEXT: is missing"),
        (["add", "x", "--file", "y.txt"], None, "--file: cannot be used together with TEXT"),
        (["add", "x", "--format", "text"], None, "--format"),
        (["add", "--file", "none.txt"], None, "none.txt cannot be read: No such file"),
        (["add", "-"], "", "stdin: is empty"),
        (["add", "-"], b"\xff\xfe\x00", "stdin: is not UTF-8"),
        (["add", "-", "--format", "xml"], "x", "--format: must be one of text, json, jsonl, not 'xml'"),
        (["add", "-", "--format", "json"], "{", "stdin: is not JSON"),
        (["add", "-", "--format", "jsonl"], '{"text": "a"}\n\nno\n', "stdin, line 3: is not JSON"),
        (["add", "-", "--format", "json"], "[]", "input: is an empty list"),
        (["add", "x", "--metadata", "[1]"], None, "--metadata: must be a JSON object"),
        (["add", "x", "--importance", "7"], None, "--importance: must be a number from 0 to 1"),
        (["search", "x", "--mode", "psychic"], None, "--mode: must be one of"),
        (["search", "x", "--limit", "0"], None, "--limit: must be"),
        (["search", "x", "--since", "2025-02-01", "--until", "2025-01-01"], None, "--since and --until: ends before"),
        (["search", "x", "--since", "2025-02-01", "--days", "3"], None, "cannot be used together with --days"),
        (["search", "x", "--user", " "], None, "--user: is empty"),
        (["search"], None, "QUERY: is missing (jiyi search --help shows"),
        (["search", "x", "--bogus"], None, "No such option: --bogus"),
        (["search", "x", "--limit", "many"], None, "--limit: "),
        (["serach", "x"], None, "No such command 'serach'"),
        (["jobs", "lst"], None, "No such command 'lst'"),
        (["undo"], None, "a source: --session, --source-actor or --metadata"),
        (["add", "I like tea", "Berlin"], None, "TEXT: is it one statement or several?"),
        (["add", "--file", "none.txt", "--on-conflict", "guess"], None, "none.txt"),
        (["list", "--status", "deleted"], None, "--status: must be one of"),
        (["update", "x"], None, "update: names nothing to change"),
        (["update", "x", "--tag", "a", "--no-tags"], None, "--no-tags"),
        (["delete"], None, "ID: name one memory"),
        (["delete", "x", "--all"], None, "ID: name one memory"),
        (["delete", "--all", "--yes"], None, "--user: is needed with --all"),
        (["demo", "--lang", "fr"], None, "--lang: must be one of en, zh"),
    ],
)
def test_wrong_input_is_exit_code_2_and_names_what_is_wrong(
    words: list[str],
    input: str | bytes | None,  # noqa: A002
    problem: str,
) -> None:
    result = jiyi(*words, code=2, input=input)
    assert result.stdout == ""
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    assert problem in result.stderr


def test_several_quoted_texts_are_several_memories_and_single_words_are_one() -> None:
    assert [one["content"] for one in answer("add", "A cat lives here", "我住在柏林")["memories"]] == [
        "A cat lives here",
        "我住在柏林",
    ]
    assert len(answer("add", "I", "like", "tea")["memories"]) == 1
    assert len(answer("add", "喝", "绿茶")["memories"]) == 1


@each_case(
    ("text", "memory_type"),
    [
        ("I prefer window seats", "preference"),
        ("我喜欢靠窗的座位", "preference"),
        ("The parser is written in Rust", "fact"),
        ("The parser is written in Rust. I like tea.", "fact"),
        ("下周三去上海出差", "task"),
    ],
)
def test_a_statement_has_the_type_of_the_same_words_in_a_message(text: str, memory_type: str) -> None:
    assert answer("add", text)["memories"][0]["memory_type"] == memory_type
    assert answer("add", "-", input=f"{text}\n")["created"] == 0, "it is known, whichever way it comes"
    assert answer("add", text, "--type", "lesson")["memories"][0]["memory_type"] == "lesson"


def test_what_is_piped_in_needs_no_dash() -> None:
    assert [one["content"] for one in answer("add", input="三\nfour\n")["memories"]] == ["三", "four"]


def test_errors_name_the_options_of_the_command(tmp_path: Path) -> None:
    jiyi("add", "x")
    jiyi("backup", tmp_path / "b.db")
    refused = jiyi("backup", tmp_path / "b.db", code=2).stderr
    assert refused.startswith("error: FILE: ") and "pass --force" in refused
    assert "pass --force" in jiyi("restore", "--from", tmp_path / "b.db", code=2).stderr
    keyed = json.dumps({"text": "y", "memory_key": "k"})
    jiyi("add", "-", "--format", "json", input=keyed)
    taken = json.dumps({"text": "z", "memory_key": "k"})
    told = jiyi("add", "-", "--format", "json", input=taken, code=4).stderr
    assert "use --on-conflict update or --on-conflict skip" in told
    changed = answer("add", "-", "--format", "json", "--on-conflict", "update", input=taken)
    assert answer("get", "k")["content"] == "z" and changed["created"] == 0


def test_a_backup_and_a_restore_say_what_was_done(tmp_path: Path, own_store: Path) -> None:
    jiyi("add", "x")
    said = " ".join(jiyi("backup", tmp_path / "b.db").stdout.split())
    assert said.startswith("backed up") and "1 memory of 1 user" in said
    said = "".join(jiyi("restore", "--from", tmp_path / "b.db", "--force").stdout.split())  # a long path is divided
    assert own_store.name in said and "nowholdswhatisin" in said


def test_a_deletion_counts_in_words(tmp_path: Path) -> None:
    chat = tmp_path / "chat.json"
    chat.write_text(json.dumps(MESSAGES), encoding="utf-8")
    jiyi("add", "--file", chat)
    said = " ".join(jiyi("delete", "--user", "mei", "--all", "--yes").stdout.split())
    assert said.startswith("deleted 3 memories and 2 messages") and "in units" in said
    assert "_" not in said and "memorie," not in said and "1 jobs" not in said


def test_more_hits_than_shown_say_how_to_see_them() -> None:
    jiyi("add", "I like green tea", "I like black tea")
    said = jiyi("search", "tea", "--limit", "1").stdout
    assert "the best 1 of 2 hits; for more: --limit" in said


def test_a_server_that_is_away_is_named() -> None:
    told = jiyi("search", "x", "--store", "http://127.0.0.1:9", code=1).stderr
    assert "the server at http://127.0.0.1:9 cannot be reached" in told and "jiyi serve" in told


def test_help_shows_no_types_of_flags_and_arguments() -> None:
    for words in (("add",), ("jobs", "list"), ()):
        shown = jiyi(*words, "--help").stdout
        assert "<bool>" not in shown and "<list" not in shown and "<str>" not in shown


# -- one memory -----------------------------------------------------------------------------------------------------


def test_update_history_restore_and_conflicts() -> None:
    memory_id = answer("add", "用户喜欢长回答", "--tag", "style")["memories"][0]["id"]
    changed = answer(
        "update", memory_id, "--content", "用户喜欢短回答", "--expected-version", 1, "--reason", "更正",
        "--actor", "mei", "--no-tags", "--metadata", '{"sure": true}', "--valid-to", "2030-01-01T00:00Z",
    )  # fmt: skip
    assert (changed["version"], changed["tags"], changed["metadata"]) == (2, [], {"sure": True})
    assert changed["valid_to"] == "2030-01-01T00:00:00Z"
    assert answer("update", memory_id, "--valid-to", "none")["valid_to"] is None
    late = jiyi("update", memory_id, "--content", "x", "--expected-version", 1, code=4)
    assert "is at version 3, not 1" in late.stderr

    story = jiyi("history", memory_id).stdout
    assert "● v2" in story and "update by mei — 更正" in story
    assert story.index("content  用户喜欢长回答") < story.index("→ 用户喜欢短回答")
    assert "tags" in story and '["style"]' in story
    assert [change["version"] for change in answer("history", memory_id)] == [1, 2, 3]

    assert "用户喜欢长回答" in jiyi("restore", memory_id, "--to-version", 1, "--reason", "back").stdout
    assert answer("get", memory_id)["version"] == 4
    jiyi("restore", memory_id, "--to-version", 9, code=2)
    jiyi("add", "a", "--idempotency-key", "k")
    assert "error" in jiyi("add", "b", "--idempotency-key", "k", code=4).stderr


@pytest.mark.parametrize("command", ["get", "history", "update", "restore", "delete"])
def test_an_unknown_memory_is_exit_code_3(command: str) -> None:
    more = {"update": ["--content", "x"], "delete": ["--yes"]}.get(command, [])
    result = jiyi(command, "nobody", *more, code=3)
    assert result.stdout == "" and result.stderr.startswith("error: ") and "nobody" in result.stderr


def test_list_pages_and_filters() -> None:
    jiyi("add", "-", input="".join(f"note {number}\n" for number in range(5)))
    first = answer("list", "--limit", 3)
    assert [memory["content"] for memory in first["items"]] == ["note 4", "note 3", "note 2"]
    second = answer("list", "--limit", 3, "--cursor", first["next_cursor"])
    assert [memory["content"] for memory in second["items"]] == ["note 1", "note 0"] and not second["next_cursor"]
    shown = jiyi("list", "--limit", 3)
    assert f"--cursor {first['next_cursor']}" in shown.stderr and "note 4" in shown.stdout

    old = second["items"][-1]["id"]
    jiyi("update", old, "--status", "archived", "--occurred-at", "2020-01-01")
    assert [memory["id"] for memory in answer("list", "--status", "archived")["items"]] == [old]
    assert "no memories" in jiyi("list", "--until", "2021-01-01").stderr
    assert len(answer("list", "--since", "2021-01-01", "--layer", "semantic")["items"]) == 4
    assert answer("stats", "--user", "mei")["memories"] == 4
    assert "4" in jiyi("stats").stdout


# -- delete ---------------------------------------------------------------------------------------------------------


def test_delete_asks_and_where_nobody_can_answer_deletes_nothing() -> None:
    memory_id = answer("add", "keep me")["memories"][0]["id"]
    for words in (("delete", memory_id), ("delete", "--user", "mei", "--all")):
        assert "--yes: is needed" in jiyi(*words, code=2, input="y\nmei\n").stderr
    assert answer("get", memory_id)["content"] == "keep me"
    assert "deleted 1 memory and 0 messages" in jiyi("delete", memory_id, "--yes").stdout
    jiyi("get", memory_id, code=3)


def test_delete_all_deletes_exactly_that_user() -> None:
    for user in ("mei", "mei2", "Mei", "m%"):
        jiyi("add", "something", "--user", user)
    for user in ("mei", "m%"):
        gone = answer("delete", "--user", user, "--all", "--yes")
        assert (gone["memories"], gone["messages"], gone["notes"]) == (1, 0, [])
    assert [len(answer("list", "-u", user)["items"]) for user in ("mei", "mei2", "Mei", "m%")] == [0, 1, 1, 0]


def test_stats_show_growth_by_week_and_how_relevant_the_hits_of_a_server_were(tmp_path: Path) -> None:
    jiyi("add", "I like tea", "I like coffee")
    today = datetime.now(UTC).date()
    monday = (today - timedelta(days=today.weekday())).isoformat()
    [line] = [line for line in jiyi("stats").stdout.splitlines() if f"from {monday}" in line]
    assert line.split()[:3] == ["by", "week", "2"] and "█" in line
    assert "relevance" not in jiyi("stats").stdout, "nothing was searched since it was opened"
    with running(tmp_path / "served.db") as server:
        jiyi("add", "I like green tea", "--store", server.url)
        jiyi("search", "tea", "--store", server.url)
        assert "on average, best hits of 1 search" in jiyi("stats", "--store", server.url).stdout
        figures = answer("stats", "--store", server.url)
    assert sum(figures["best_relevance"]) == 1 and len(figures["best_relevance"]) == 20


# -- everywhere -----------------------------------------------------------------------------------------------------

JSON_EXAMPLES: dict[str, Callable[[str], list[str]]] = {
    "add": lambda _: ["x"],
    "search": lambda _: ["x"],
    "ask": lambda _: ["x"],
    "get": lambda memory_id: [memory_id],
    "list": lambda _: [],
    "profile": lambda _: [],
    "update": lambda memory_id: [memory_id, "--content", "y"],
    "history": lambda memory_id: [memory_id],
    "restore": lambda memory_id: [memory_id],
    "undo": lambda memory_id: [memory_id],
    "compress": lambda _: ["--dry-run"],
    "maintain": lambda _: [],
    "delete": lambda memory_id: [memory_id, "--yes"],
    "stats": lambda _: [],
    "reindex": lambda _: ["--embeddings"],
    "doctor": lambda _: [],
    "version": lambda _: [],
    "trust": lambda _: [],
    "synonyms": lambda _: ["list"],
    "relations": lambda memory_id: ["list", memory_id],
    "jobs": lambda _: ["list"],
    "workspace": lambda _: ["init", "notes"],
    "worker": lambda _: ["--once"],
    "demo": lambda _: [],
    "import": lambda _: [],
    "mcp": lambda _: [],
    "migrate": lambda _: [],
    "migrate-store": lambda _: [],
    "export": lambda _: ["out.jsonl"],
    "backup": lambda _: ["out.db"],
    "serve": lambda _: [],
    "proxy": lambda _: [],
    "rebuild": lambda _: [],
    "context": lambda _: [],
    "observe": lambda _: [],
    "install": lambda _: [],
    "keys": lambda _: ["list"],
    "vacuum": lambda _: [],
    "verify": lambda _: ["--repair"],
}


# They have tests of their own.
APART = {
    "ask", "context", "demo", "import", "install", "mcp", "migrate-store", "observe", "proxy", "rebuild", "relations",
    "serve",
}  # fmt: skip


def test_relations_are_listed_added_and_removed() -> None:
    one, other = (answer("add", text)["memories"][0]["id"] for text in ("drinks tea every morning", "喜欢喝茶"))
    made = answer("relations", "add", one, other, "supports", "--strength", "0.7")
    assert (made["memory_id"], made["target_id"], made["strength"]) == (one, other, 0.7)
    assert answer("relations", "list", other) == [made]
    assert f"{one} supports {other} (0.70)" in jiyi("relations", "list", one).stdout
    jiyi("relations", "add", one, other, "likes", code=2)
    assert answer("relations", "remove", one, other) == {"removed": 1}
    assert answer("relations", "list", one) == []


def test_a_profile_shows_attributes_with_values() -> None:
    color = {"type": "preference", "text": "用户偏好蓝色", "data": {"key": "color_scheme", "value": "blue"}}
    for given in (color, {"type": "fact", "text": "likes long walks"}):
        jiyi("add", "-", "--format", "json", "--user", "mei", input=json.dumps([given]))
    shown = jiyi("profile", "--user", "mei").stdout.splitlines()
    assert shown == ["mei", "  color_scheme → blue", "  - likes long walks"]
    lines = answer("profile", "--user", "mei")["lines"]
    assert {"subject": "mei", "attribute": "color_scheme", "value": "blue"}.items() <= lines[0].items()


def test_synonyms_are_added_by_pairs() -> None:
    assert answer("synonyms", "add", "k8s", "kubernetes", "--similarity", "0.9") == {"added": 1}
    assert "known already" in jiyi("synonyms", "add", "k8s", "kubernetes", "--similarity", "0.9").stdout
    [pair] = answer("synonyms", "list")
    assert {pair["keyword"], pair["synonym"]} == {"k8s", "kubernetes"} and pair["similarity"] == 0.9


def test_every_command_prints_json_and_nothing_else() -> None:
    assert JSON_EXAMPLES.keys() == COMMANDS.keys()
    memory_id = answer("add", "记忆 x")["memories"][0]["id"]
    jiyi("update", memory_id, "--importance", "0.7")
    printed = {name: answer(name, *words(memory_id)) for name, words in JSON_EXAMPLES.items() if name not in APART}
    assert printed["version"]["jiyi"] == __version__
    assert printed["restore"]["importance"] == 0.7, "back to before the content was changed"
    assert printed["stats"]["memories"] == 1 and printed["doctor"]["healthy"] is True


@each_case("name", COMMANDS)
def test_help_shows_examples_in_both_languages(name: str) -> None:
    shown = jiyi(name, "--help").stdout
    examples = [line.strip() for line in shown.splitlines() if line.strip().startswith("$ ")]
    assert any(line.isascii() for line in examples), "one in English"
    if name != "demo":  # it takes no text; its --lang zh is the Chinese example
        assert any(not line.isascii() for line in examples), "one in Chinese"


def test_store_and_user_can_be_named(tmp_path: Path, own_store: Path) -> None:
    other = tmp_path / "new folder" / "记忆.db"
    jiyi("add", "elsewhere", "--store", other, "--user", "林梅")
    assert answer("stats", "--store", f"sqlite:///{other}")["users"] == 1
    assert answer("stats", "--store", own_store)["users"] == 0
    jiyi("add", "x", "--user", "", code=2)
    refused = jiyi("stats", "--store", "oracle://scott:tiger@host/db", code=1)
    assert refused.stderr.startswith("error: ") and "tiger" not in refused.stderr
    not_a_store = tmp_path / "letter.txt"
    not_a_store.write_text("Dear Sir or Madam, " * 100)
    assert jiyi("list", "--store", not_a_store, code=1).stderr.count("\n") == 1


def test_times_without_a_zone_are_local(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    try:
        assert parse_time("2025-05-07") == datetime(2025, 5, 6, 16, tzinfo=UTC)
        assert parse_time("2025-05-07T18:30") == datetime(2025, 5, 7, 18, 30, tzinfo=timezone(timedelta(hours=8)))
        assert parse_time("2025-05-07 18:30:00-05:00") == datetime(2025, 5, 7, 23, 30, tzinfo=UTC)
        jiyi("add", "x", "--occurred-at", "2025-05-07")
        assert answer("list")["items"][0]["occurred_at"] == "2025-05-06T16:00:00Z"
        assert "2025-05-07" in jiyi("list").stdout
    finally:
        monkeypatch.undo()
        time.tzset()
    for wrong in ("yesterday", "昨天", "2025-13-01", ""):
        assert "ISO 8601" in jiyi("list", "--since", wrong, code=2).stderr


def test_a_bug_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("jiyi.memory.Memory.stats", broken)
    with pytest.raises(ZeroDivisionError):
        jiyi("stats", code=1)


def test_a_workspace_is_begun_synced_verified_and_rebuilt(tmp_path: Path) -> None:
    jiyi("add", "喝绿茶", "--type", "preference")
    notes = tmp_path / "笔记"
    jiyi("workspace", "init", notes, "--lang", "en")
    note = notes / "context/memory.md"
    note.write_text(note.read_text(encoding="utf-8") + "- likes cats\n", encoding="utf-8")
    assert "create" in jiyi("workspace", "sync", notes, "--dry-run").stdout
    assert "1 change to sync" in jiyi("workspace", "status", notes).stdout
    jiyi("workspace", "verify", notes, code=1)
    assert answer("workspace", "sync", notes)[0]["steps"][0]["text"] == "likes cats"
    assert "agree" in jiyi("workspace", "verify", notes).stdout
    assert answer("workspace", "rebuild", notes)[0]["indexed"] == 2
    note.write_text("", encoding="utf-8")
    assert "nothing is archived" in jiyi("workspace", "sync", notes, code=1).stderr
    assert "write" in jiyi("workspace", "sync", notes, "--restore").stdout
    assert "not a workspace" in jiyi("workspace", "sync", tmp_path, code=1).stderr


def test_daily_notes_are_begun_with_a_workspace_and_the_empty_folder_of_one_is_not(tmp_path: Path) -> None:
    jiyi("add", "talked with Bo", "--type", "episode")
    jiyi("workspace", "init", tmp_path / "plain")
    assert not (tmp_path / "plain/context/daily").exists()
    assert "workspace.json" in jiyi("workspace", "init", tmp_path / "plain", "--daily-notes", code=2).stderr
    jiyi("workspace", "init", tmp_path / "notes", "--daily-notes")
    [day] = (tmp_path / "notes/context/daily").iterdir()
    assert "- talked with Bo <!-- jiyi:" in day.read_text(encoding="utf-8")
