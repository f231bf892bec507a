"""Coding agents: the hook commands with a server and without, and `jiyi install`."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from jiyi import __version__
from jiyi.cli import hook_input, quick
from jiyi.cli.app import app
from rest import Running, running

ROOT = Path(__file__).parents[1]
HEAVY = (
    "typer",
    "http.client",
    "dataclasses",
    "ssl",
    "rich",
    "pydantic",
    "sqlalchemy",
    "numpy",
    "httpx",
    "jiyi.memory",
    "jiyi.settings",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    place = tmp_path_factory.mktemp("hooks") / "memory.db"
    with running(place, extraction={"enabled": True}) as server:
        yield server


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    def send(**fields: Any) -> None:
        hook_input.read_stdin.cache_clear()
        data = json.dumps(fields, ensure_ascii=False).encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    yield send
    hook_input.read_stdin.cache_clear()


def texts(server: Running, user_id: str) -> list[tuple[str, str]]:
    found = server.do(server.memory.messages(user_id=user_id)).items
    return [(one.role, one.text) for one in reversed(found)]


def test_hooks_recall_and_observe_through_the_server(
    server: Running, stdin: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Claude Code's and Codex's input, Cursor's, and plain arguments."""
    at = ["--store", server.url, "--user", "mei"]
    stdin(hook_event_name="Stop", session_id="s1", last_assistant_message="Noted.", prompt="I prefer tabs over spaces")
    assert quick.run_quickly(["observe", "--hook", *at])
    assert texts(server, "mei") == [("user", "I prefer tabs over spaces"), ("assistant", "Noted.")]

    stdin(hook_event_name="UserPromptSubmit", session_id="s2", prompt="tabs or spaces, what do I prefer?")
    assert quick.run_quickly(["context", "--hook", *at])
    assert "I prefer tabs over spaces" in capsys.readouterr().out
    stdin(hook_event_name="beforeSubmitPrompt", conversation_id="s2", prompt="tabs or spaces, what do I prefer?")
    assert quick.run_quickly(["context", "--hook", *at])
    answer = json.loads(capsys.readouterr().out)
    assert answer["continue"] is True and "tabs" in answer["additional_context"]
    assert quick.run_quickly(["context", "tabs or spaces?", *at]) and "tabs" in capsys.readouterr().out

    said = [
        {"type": "user", "message": {"role": "user", "content": "我用 pnpm，不用 npm"}},
        {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "tool_use", "name": "x"}]}},
        {"type": "user", "message": {"role": "user", "content": [{"type": "tool_result", "content": "secret"}]}},
        {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": "好的"}]}},
    ]
    transcript = tmp_path / "t.jsonl"
    lines = [json.dumps(entry, ensure_ascii=False) for entry in said]
    transcript.write_text("\n".join(["not json", *lines]), encoding="utf-8")
    stdin(hook_event_name="Stop", session_id="s3", transcript_path=str(transcript))
    assert quick.run_quickly(["observe", "--hook", "--store", server.url, "--user", "transcript"])
    assert texts(server, "transcript") == [("user", "我用 pnpm，不用 npm"), ("assistant", "好的")]


def test_a_transcript_of_codex_has_both_sides(tmp_path: Path, server: Running, stdin: Any) -> None:
    def item(role: str, kind: str, text: str) -> dict[str, Any]:
        return {
            "timestamp": "2026-11-01T10:00:00Z",
            "type": "response_item",
            "payload": {"type": "message", "role": role, "content": [{"type": kind, "text": text}]},
        }

    said = [
        {"type": "session_meta", "payload": {"id": "1"}},
        item("user", "input_text", "第一个问题"),
        item("assistant", "output_text", "第一个回答"),
        item("user", "input_text", "I deploy with Ansible, never by hand"),
        item("user", "input_text", "<environment_context>\n<cwd>/x</cwd></environment_context>"),
        {"type": "response_item", "payload": {"type": "function_call", "name": "shell", "arguments": "{}"}},
        item("assistant", "output_text", "Noted."),
        {"type": "event_msg", "payload": {"type": "token_count"}},
    ]
    transcript = tmp_path / "rollout.jsonl"
    transcript.write_text("\n".join(json.dumps(entry, ensure_ascii=False) for entry in said), encoding="utf-8")
    stdin(hook_event_name="Stop", session_id="c1", transcript_path=str(transcript), last_assistant_message="Noted.")
    assert quick.run_quickly(["observe", "--hook", "--store", server.url, "--user", "codex"])
    assert texts(server, "codex") == [("user", "I deploy with Ansible, never by hand"), ("assistant", "Noted.")]


def test_what_a_server_cannot_do_is_left_to_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that is a file, other options, and no server; the key goes only to a server that was named."""
    monkeypatch.setattr(quick, "DEFAULT_URL", "http://127.0.0.1:1")
    assert not quick.run_quickly(["context", "tea", "--store", "memory.db"])
    assert not quick.run_quickly(["context", "tea", "--help"])
    assert not quick.run_quickly(["context", "tea"])
    sent: list[dict[str, str]] = []

    def exchange(_authority: str, _target: str, _body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        sent.append(headers)
        raise OSError

    monkeypatch.setattr(quick, "exchange_http", exchange)
    monkeypatch.setenv("JIYI_CLIENT__KEY", "jiyi_secret")
    assert not quick.run_quickly(["context", "tea"]) and "Authorization" not in sent[-1]
    assert not quick.run_quickly(["context", "tea", "--store", "http://127.0.0.1:1"])
    assert sent[-1]["Authorization"] == "Bearer jiyi_secret"


def test_the_quick_way_loads_nothing_heavy(server: Running) -> None:
    program = (
        f"import sys; sys.argv[1:] = ['context', 'tea', '--store', {server.url!r}, '--user', 'mei']\n"
        "from jiyi.cli import main; main()\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr.strip() == "[]"


def test_without_a_server_the_store_is_asked_and_a_hook_never_fails(tmp_path: Path) -> None:
    run, store = CliRunner().invoke, str(tmp_path / "memory.db")
    hook_input.read_stdin.cache_clear()
    nothing = run(app, ["context", "--hook", "--store", store], input='{"prompt": "tabs or spaces?"}')
    assert nothing.exit_code == 0 and nothing.output.strip() == "" and not Path(store).exists()
    assert run(app, ["observe", "I prefer tabs over spaces", "Noted.", "--store", store]).exit_code == 0
    found = run(app, ["context", "do I prefer tabs or spaces?", "--store", store])
    assert found.exit_code == 0 and "I prefer tabs over spaces" in found.output
    (tmp_path / "broken.db").write_text("this is no database")
    broken = run(app, ["context", "--hook", "--store", str(tmp_path / "broken.db")])
    assert broken.exit_code == 0 and "jiyi:" in broken.stderr
    assert run(app, ["context", "--store", store]).exit_code == 2
    hook_input.read_stdin.cache_clear()


def test_a_hook_recalls_from_the_store_in_the_environment(
    server: Running, stdin: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server.do(server.memory.add("我用 pnpm，不用 npm", user_id="url"))
    monkeypatch.setenv("JIYI_URL", server.url)
    stdin(hook_event_name="UserPromptSubmit", session_id="s9", prompt="我用 npm 还是 pnpm？")
    assert quick.run_quickly(["context", "--hook", "--user", "url"])
    assert "我用 pnpm，不用 npm" in capsys.readouterr().out


def test_a_hook_without_its_server_warns_waits_no_more_and_keeps_the_turn(
    server: Running, stdin: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    exchange = quick.exchange_http
    state: list[str] = []

    def hangs(*_: Any) -> Any:
        state.append("asked")
        raise TimeoutError("timed out")

    monkeypatch.setenv("JIYI_URL", server.url)
    monkeypatch.setattr(quick, "exchange_http", hangs)
    prompt: Any = {"hook_event_name": "UserPromptSubmit", "session_id": "s9", "prompt": "我喜欢简短的提交说明"}
    for _ in range(3):
        stdin(**prompt)
        assert quick.run_quickly(["context", "--hook", "--user", "away"])
        printed = capsys.readouterr()
        assert server.url in json.loads(printed.out)["systemMessage"] and server.url in printed.err
    stdin(**{**prompt, "hook_event_name": "Stop"}, last_assistant_message="好的")
    assert quick.run_quickly(["observe", "--hook", "--user", "away"])
    assert state == ["asked"], "only the first one waits"
    assert not texts(server, "away")

    monkeypatch.setattr(quick, "exchange_http", exchange)
    monkeypatch.setattr(quick, "AWAY_S", 0.0)
    stdin(hook_event_name="Stop", session_id="s9", prompt="测试用 pytest", last_assistant_message="记住了")
    assert quick.run_quickly(["observe", "--hook", "--user", "away"])
    said = [text for _, text in texts(server, "away")]
    assert said == ["我喜欢简短的提交说明", "好的", "测试用 pytest", "记住了"]


def test_a_kept_turn_of_a_user_who_was_deleted_meanwhile_is_not_stored(
    server: Running, stdin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange = quick.exchange_http

    def hangs(*_: Any) -> Any:
        raise TimeoutError("timed out")

    monkeypatch.setenv("JIYI_URL", server.url)
    monkeypatch.setattr(quick, "exchange_http", hangs)
    for user in ("gone", "stays"):
        stdin(hook_event_name="Stop", session_id=user, prompt="我住在苏州", last_assistant_message="好的")
        assert quick.run_quickly(["observe", "--hook", "--user", user])
    server.do(server.memory.delete_all(user_id="gone"))
    monkeypatch.setattr(quick, "exchange_http", exchange)
    monkeypatch.setattr(quick, "AWAY_S", 0.0)
    stdin(hook_event_name="Stop", session_id="new", prompt="I like quince", last_assistant_message="Noted.")
    assert quick.run_quickly(["observe", "--hook", "--user", "gone"])
    assert [text for _, text in texts(server, "gone")] == ["I like quince", "Noted."]
    assert [text for _, text in texts(server, "stays")] == ["我住在苏州", "好的"]


# -- a group for each repository ---------------------------------------------------------------------------------------


def repository(folder: Path, origin: str | None = None) -> Path:
    folder.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    if origin is not None:
        subprocess.run(["git", "-C", str(folder), "remote", "add", "origin", origin], check=True)
    return folder


def test_a_repository_is_named_by_its_origin_or_its_path(tmp_path: Path) -> None:
    addresses = ("git@example.org:acme/shop.git", "https://mei:secret@example.org/acme/shop.git/")
    for at, address in enumerate((*addresses, "ssh://git@example.org/acme/shop")):
        (repository(tmp_path / f"clone{at}", address) / "src" / "深").mkdir(parents=True)
        assert hook_input.repository_of(str(tmp_path / f"clone{at}" / "src" / "深")) == "example.org/acme/shop"
    alone = repository(tmp_path / "商店")
    commit = ["-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-q", "--allow-empty", "-m", "x"]
    subprocess.run(["git", "-C", str(alone), *commit], check=True)
    subprocess.run(["git", "-C", str(alone), "worktree", "add", "-q", str(tmp_path / "tree")], check=True)
    assert hook_input.repository_of(str(tmp_path / "tree")) == hook_input.repository_of(str(alone)) == str(alone)
    assert hook_input.repository_of(str(tmp_path)) == str(tmp_path)


@pytest.mark.parametrize("through", ["server", "store"])
def test_what_is_said_in_one_repository_is_not_recalled_in_another(
    through: str, server: Running, stdin: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Claude Code's and Codex's input, which names the folder. The person stays the user."""
    where = server.url if through == "server" else str(tmp_path / "memory.db")

    def run(verb: str, **fields: Any) -> str:
        stdin(**fields)
        words = [verb, "--hook", "--per-project", "--store", where, "--user", "lin"]
        if through == "server":
            assert quick.run_quickly(words)
            return capsys.readouterr().out
        done = CliRunner().invoke(app, words, input=json.dumps(fields, ensure_ascii=False))
        assert done.exit_code == 0, done.output
        return done.output

    shop, blog = (repository(tmp_path / name) for name in ("shop", "博客"))
    for folder, said in ((shop, "We deploy with Ansible"), (blog, "我们用 Hugo 部署")):
        run("observe", hook_event_name="Stop", prompt=said, last_assistant_message="OK.", cwd=str(folder))
    for folder, here, there in ((shop, "Ansible", "Hugo"), (blog, "Hugo", "Ansible")):
        asked = {"hook_event_name": "UserPromptSubmit", "session_id": "new", "prompt": "怎么部署？ how do we deploy?"}
        found = run("context", **asked, cwd=str(folder))
        assert here in found and there not in found
    if through == "server":
        groups = server.do(server.memory.usage.groups(user_id="lin", memory_types=["message"]))
        assert set(groups) == {str(shop), str(blog)}


# -- install -----------------------------------------------------------------------------------------------------------

FOREIGN: dict[str, dict[str, str]] = {
    "claude-code": {
        ".claude/settings.json": json.dumps(
            {"model": "opus", "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say 完成"}]}]}},
            indent=4,
            ensure_ascii=False,
        )
        + "\n",
        ".mcp.json": json.dumps({"mcpServers": {"other": {"command": "x"}}}, indent=2) + "\n",
    },
    "codex": {
        ".codex/hooks.json": json.dumps(
            {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "y"}]}]}}, indent=2
        )
        + "\n",
        ".codex/config.toml": '# mine\nmodel = "gpt"\n\n[features]\nweb = true\n\n[mcp_servers.other]\ncommand = "x"\n',
    },
    "cursor": {
        ".cursor/hooks.json": json.dumps({"version": 1, "hooks": {"stop": [{"command": "z"}]}}, indent=2) + "\n",
        ".cursor/mcp.json": json.dumps({"mcpServers": {"other": {"url": "http://x"}}}, indent=2) + "\n",
    },
    "vscode": {".vscode/mcp.json": json.dumps({"inputs": [], "servers": {"other": {"command": "x"}}}, indent=2) + "\n"},
}


def files(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.is_file()
    }


@pytest.mark.parametrize("agent", FOREIGN)
@pytest.mark.parametrize("foreign", [False, True], ids=["alone", "beside others"])
def test_install_adds_its_entries_once_and_removes_them_again(
    agent: str, foreign: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in FOREIGN[agent].items() if foreign else ():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    before = files(tmp_path)
    run = CliRunner().invoke
    shown = run(app, ["install", agent, "--project"], input="n\n")
    assert shown.exit_code == 1 and "+" in shown.output and "jiyi" in shown.output and files(tmp_path) == before
    assert run(app, ["install", agent, "--project", "--yes"]).exit_code == 0
    written = files(tmp_path)
    assert set(written) == set(FOREIGN[agent])
    for name, text in written.items():
        read = tomllib.loads(text) if name.endswith(".toml") else json.loads(text)
        assert "jiyi" in text and read
        if foreign:
            known = before[name]
            lost = [line for line in known.splitlines() if line.strip(" ,{}[]") and line.rstrip(",") not in text]
            assert lost == []
    assert "everything is in place" in run(app, ["install", agent, "--project", "--yes"]).output
    assert files(tmp_path) == written
    assert run(app, ["install", agent, "--project", "--remove", "--yes"]).exit_code == 0
    assert files(tmp_path) == before
    assert "nothing to remove" in run(app, ["install", agent, "--project", "--remove"]).output


def test_install_uses_the_users_own_files_and_refuses_what_it_cannot_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    run = CliRunner().invoke
    assert run(app, ["install", "claude-code", "--yes"]).exit_code == 0
    assert set(files(tmp_path)) == {".claude/settings.json", ".claude.json"}
    assert (tmp_path / ".claude.json").stat().st_mode & 0o777 == 0o600
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor" / "mcp.json").write_text("{ // mine\n}")
    refused = run(app, ["install", "cursor", "--yes"])
    assert refused.exit_code == 2 and "by hand" in refused.output
    assert (tmp_path / ".cursor" / "mcp.json").read_text() == "{ // mine\n}" and len(files(tmp_path)) == 3
    assert run(app, ["install", "emacs"]).exit_code == 2


def test_install_writes_a_command_that_a_desktop_finds_and_needs_the_mcp_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke
    with monkeypatch.context() as without:
        without.setattr("jiyi.cli.install.find_spec", lambda _: None)
        refused = run(app, ["install", "claude-code", "--project", "--yes"])
        assert refused.exit_code != 0 and not files(tmp_path)
    monkeypatch.setattr("shutil.which", lambda _: "jiyi")
    assert run(app, ["install", "claude-code", "--project", "--yes"]).exit_code == 0
    command = Path(json.loads((tmp_path / ".mcp.json").read_text())["mcpServers"]["jiyi"]["command"])
    assert command.is_absolute() and command.exists()


def test_the_plugin_for_claude_code_does_what_install_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("shutil.which", lambda _: "jiyi")
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))  # with no command beside it
    CliRunner().invoke(app, ["install", "claude-code", "--project", "--yes"])
    plugin = ROOT / "plugins" / "claude-code"
    settings = json.loads((tmp_path / ".claude/settings.json").read_text())
    assert json.loads((plugin / "hooks/hooks.json").read_text())["hooks"] == settings["hooks"]
    assert json.loads((plugin / ".mcp.json").read_text()) == json.loads((tmp_path / ".mcp.json").read_text())
    assert json.loads((plugin / ".claude-plugin/plugin.json").read_text())["version"] == __version__
    [listed] = json.loads((ROOT / ".claude-plugin/marketplace.json").read_text())["plugins"]
    assert (ROOT / listed["source"]).resolve() == plugin and listed["name"] == "jiyi"


def test_install_can_keep_repositories_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke
    for agent in ("claude-code", "codex"):
        for words in ([], ["--per-project"], []):  # each replaces the other
            done = run(app, ["install", agent, "--project", "--yes", *words])
            assert done.exit_code == 0 and ("/hooks" in done.output) == (agent == "codex")
            written = "".join(files(tmp_path).values())
            assert written.count("context --hook") == written.count("observe --hook") == 1
            assert written.count("--per-project") == (3 if words else 0)
        assert run(app, ["install", agent, "--project", "--remove", "--yes"]).exit_code == 0 and not files(tmp_path)
