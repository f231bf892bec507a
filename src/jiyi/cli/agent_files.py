"""Configuration files of coding agents: which ones hold Jiyi's entries, and how to add and remove these.

Entries of others stay. A plan is a list of changes, each with the text before and after, so that it can be shown first.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InvalidInput

AGENTS = ("claude-code", "codex", "cursor", "vscode")
OURS = re.compile(r"\bjiyi(\.exe)?[\"']? (context|observe) --hook( --per-project)?$")
BEGIN, END, MARK = "# >>> jiyi", "# <<< jiyi", "  # jiyi"
Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file with its text before and after; None: it does not exist."""

    path: Path
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Places:
    """Folders of the configuration: of the user, or of a project."""

    home: Path
    project: Path | None = None

    def claude(self) -> tuple[Path, Path]:
        """Return the files of hooks and of MCP servers."""
        if self.project is not None:
            return self.project / ".claude" / "settings.json", self.project / ".mcp.json"
        if folder := os.environ.get("CLAUDE_CONFIG_DIR"):
            return Path(folder) / "settings.json", Path(folder) / ".claude.json"
        return self.home / ".claude" / "settings.json", self.home / ".claude.json"

    def codex(self) -> tuple[Path, Path]:
        folder = os.environ.get("CODEX_HOME")
        base = self.project / ".codex" if self.project else Path(folder) if folder else self.home / ".codex"
        return base / "hooks.json", base / "config.toml"

    def cursor(self) -> tuple[Path, Path]:
        base = (self.project or self.home) / ".cursor"
        return base / "hooks.json", base / "mcp.json"

    def vscode(self) -> Path:
        if self.project is not None:
            return self.project / ".vscode" / "mcp.json"
        if sys.platform == "darwin":
            return self.home / "Library" / "Application Support" / "Code" / "User" / "mcp.json"
        if sys.platform == "win32":
            return Path(os.environ.get("APPDATA", self.home)) / "Code" / "User" / "mcp.json"
        return self.home / ".config" / "Code" / "User" / "mcp.json"


def plan_changes(
    agent: str, places: Places, *, command: str, remove: bool, per_project: bool = False
) -> list[FileChange]:
    """Return the files that change; none if everything is as it should be."""
    apart = ["--per-project"] if per_project else []
    server: Object = {"command": command, "args": ["mcp", *apart]}
    hook = " ".join(["--hook", *apart])
    shell = f'"{command}"' if " " in command else command

    def claude_hook(verb: str) -> Object:
        return {"hooks": [{"type": "command", "command": f"{shell} {verb} {hook}", "timeout": 10}]}

    def cursor_hook(verb: str) -> Object:
        return {"command": f"{shell} {verb} {hook}"}

    prompts = {"UserPromptSubmit": [claude_hook("context")], "Stop": [claude_hook("observe")]}
    if agent == "claude-code":
        hooks, mcp = places.claude()
        changes = [_json(hooks, _hooks(prompts, remove)), _json(mcp, _entry("mcpServers", server, remove))]
    elif agent == "codex":
        hooks, config = places.codex()
        changes = [_json(hooks, _hooks(prompts, remove)), _toml(config, server, remove)]
    elif agent == "cursor":
        hooks, mcp = places.cursor()
        events = {
            "beforeSubmitPrompt": [cursor_hook("context"), cursor_hook("observe")],
            "afterAgentResponse": [cursor_hook("observe")],
        }
        changes = [
            _json(hooks, _hooks(events, remove), base={"version": 1}),
            _json(mcp, _entry("mcpServers", server, remove)),
        ]
    elif agent == "vscode":
        changes = [_json(places.vscode(), _entry("servers", {"type": "stdio", **server}, remove))]
    else:
        raise InvalidInput("AGENT", f"{agent!r} is none of {', '.join(AGENTS)}")
    return [change for change in changes if change.before != change.after]


def write(change: FileChange) -> None:
    """Apply a change. A file that changed since it was read is an error."""
    path = change.path.resolve()
    if _read(path) != change.before:
        raise InvalidInput(str(path), "was changed meanwhile: run the command again")
    if change.after is None:
        path.unlink()
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
    temporary = path.with_name(f".{path.name}.jiyi")
    temporary.write_text(change.after, encoding="utf-8")
    temporary.chmod(mode)
    temporary.replace(path)


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(str(path), f"cannot be read: {error}") from None


def _json(path: Path, edit: Callable[[Object], None], base: Object | None = None) -> FileChange:
    before = _read(path)
    data: Any = dict(base or {})
    if before is not None and before.strip():
        try:
            data = json.loads(before)
        except ValueError as error:
            problem = (
                f"is not plain JSON ({error}), maybe because of comments: edit it by hand, see docs/coding-agents.md"
            )
            raise InvalidInput(str(path), problem) from None
    if not isinstance(data, dict):
        raise InvalidInput(str(path), "is not a JSON object")
    unchanged = json.dumps(data)
    edit(data)
    if json.dumps(data) == unchanged:
        return FileChange(path, before, before)
    if not data or data == base:
        return FileChange(path, before, None)
    indent = re.search(r"^([ \t]+)\S", before or "", re.MULTILINE)
    text = json.dumps(data, indent=indent[1] if indent else 2, ensure_ascii=False)
    return FileChange(path, before, text + "\n")


def _entry(section: str, server: Object, remove: bool) -> Callable[[Object], None]:
    """Return an edit that adds or removes the MCP server `jiyi`."""

    def edit(data: Object) -> None:
        servers = data.setdefault(section, {})
        if not isinstance(servers, dict):
            raise InvalidInput(section, "is not an object")
        if remove:
            servers.pop("jiyi", None)
        else:
            servers["jiyi"] = server
        if not servers:
            del data[section]

    return edit


def _hooks(events: dict[str, list[Object]], remove: bool) -> Callable[[Object], None]:
    """Return an edit that replaces our hooks, wherever they are, and keeps those of others."""

    def edit(data: Object) -> None:
        hooks = data.setdefault("hooks", {})
        if not isinstance(hooks, dict) or not all(isinstance(entries, list) for entries in hooks.values()):
            raise InvalidInput("hooks", "is not an object of lists")
        wanted = {} if remove else events
        for event in [*hooks, *(name for name in wanted if name not in hooks)]:
            others = [entry for entry in hooks.get(event, []) if not _is_ours(entry)]
            entries = [*others, *wanted.get(event, [])]
            if entries:
                hooks[event] = entries
            elif others != hooks.get(event):
                del hooks[event]
        if not hooks:
            del data["hooks"]

    return edit


def _is_ours(entry: Any) -> bool:
    if not isinstance(entry, dict):
        return False
    inner = entry.get("hooks")
    if isinstance(inner, list):
        return bool(inner) and all(_is_ours(one) for one in inner)
    return isinstance(entry.get("command"), str) and OURS.search(entry["command"]) is not None


def _toml(path: Path, server: Object, remove: bool) -> FileChange:
    """Add or remove a marked block at the end of Codex's configuration, and the flag that turns hooks on."""
    before = _read(path)
    text = re.sub(rf"(?ms)^\n?{BEGIN}\n.*?^{END}\n?", "", before or "")
    text = re.sub(rf"(?m)^codex_hooks = true{MARK}\n", "", text)
    if not remove:
        found = _parsed(path, text)
        block = ""
        if "jiyi" not in found.get("mcp_servers", {}):
            arguments = ", ".join(json.dumps(one) for one in server["args"])
            block += f"[mcp_servers.jiyi]\ncommand = {json.dumps(server['command'])}\nargs = [{arguments}]\n"
        if "features" not in found:
            block += "\n[features]\ncodex_hooks = true\n"
        elif "codex_hooks" not in found["features"] and re.search(r"(?m)^\[features\][^\n]*\n", text):
            text = re.sub(r"(?m)^(\[features\][^\n]*\n)", rf"\1codex_hooks = true{MARK}\n", text, count=1)
        if block:
            gap = "\n" if text.strip() else ""
            end = "" if not text or text.endswith("\n") else "\n"
            text = f"{text}{end}{gap}{BEGIN}\n{block.lstrip()}{END}\n"
        _parsed(path, text)
    return FileChange(path, before, text if text.strip() else None)


def _parsed(path: Path, text: str) -> Object:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(str(path), f"is not TOML: {error}") from None
