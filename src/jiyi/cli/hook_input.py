"""Input of the hooks of coding agents. Standard library only: see `quick`."""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

TAIL_BYTES = 2_000_000  # of a transcript; the last turn is at its end
NOT_SAID = ("isMeta", "isSidechain", "isCompactSummary")  # marks of entries that no person wrote
NOT_SAID_TO_CODEX = ("<environment_context>", "<user_instructions>", "# AGENTS.md instructions")  # as from the user
TEXT_PARTS = ("text", "input_text", "output_text")
MAX_INPUT = 4_000_000
MAX_TEXT = 20_000
MAX_QUERY = 8_000
MAX_GROUP = 256  # characters of a group
Turn = list[dict[str, str]]


class HookInput(NamedTuple):
    """Input that a coding agent sends to a hook; Claude Code, Codex and Cursor name its parts almost alike."""

    event: str
    prompt: str
    session_id: str | None
    turn: Turn
    folder: str | None  # in which the agent works

    @classmethod
    def parse(cls, data: str) -> HookInput:
        """Read the JSON of a hook; raise ValueError for anything else."""
        given = json.loads(data)
        if not isinstance(given, dict):
            raise ValueError("a hook sends a JSON object")
        prompt = _text(given.get("prompt"))
        session = given.get("session_id") or given.get("conversation_id")
        answer = _text(given.get("last_assistant_message")) or _text(given.get("text"))
        turn = [{"role": "user", "content": prompt}] if prompt else []
        path = given.get("transcript_path")
        if not turn and isinstance(path, str) and path:
            turn = _last_turn(Path(path))
        if answer:
            turn = [*(one for one in turn if one["role"] == "user"), {"role": "assistant", "content": answer}]
        roots = given.get("workspace_roots")  # Cursor's
        folder = given.get("cwd") or (roots[0] if isinstance(roots, list) and roots else None)
        return cls(
            event=str(given.get("hook_event_name") or ""),
            prompt=prompt[:MAX_QUERY],
            session_id=str(session)[:256] if session else None,
            turn=turn,
            folder=folder if isinstance(folder, str) else None,
        )

    def answer(self, block: str) -> str:
        """Return what the agent reads from the hook's output. Plain text is context for Claude Code and Codex."""
        if self.event in ("beforeSubmitPrompt", "sessionStart"):  # Cursor
            allowed = {"continue": True} if self.event == "beforeSubmitPrompt" else {}
            return json.dumps({**allowed, "additional_context": block}, ensure_ascii=False)
        return block

    def warning(self, told: str) -> str:
        """Return the output that shows the person a warning, for agents that have one."""
        if self.event == "UserPromptSubmit":  # Claude Code and Codex
            return json.dumps({"systemMessage": f"jiyi: {told}"}, ensure_ascii=False)
        return self.answer("")


@cache
def read_stdin() -> str:
    """Return stdin, which can be read only once."""
    return sys.stdin.buffer.read(MAX_INPUT).decode("utf-8", "replace")


def _text(value: Any) -> str:
    return value[:MAX_TEXT] if isinstance(value, str) else ""


def _last_turn(transcript: Path) -> Turn:
    """Return the user's last message and the agent's last answer from a transcript, which has a JSON object a line."""
    try:
        with transcript.open("rb") as file:
            file.seek(max(0, transcript.stat().st_size - TAIL_BYTES))
            lines = file.read().split(b"\n")
    except OSError:
        return []
    answer: str | None = None
    for line in reversed(lines):
        try:
            entry = json.loads(line)
            role, text = _said(entry)
        except (ValueError, KeyError, TypeError):
            continue
        if any(entry.get(mark) for mark in NOT_SAID) or not text:
            continue
        if role == "assistant" and answer is None:
            answer = text
        elif role == "user":
            said = [{"role": "user", "content": text}]
            return [*said, {"role": "assistant", "content": answer}] if answer else said
    return []


def _said(entry: dict[str, Any]) -> tuple[str, str]:
    """Return role and text of an entry, of Claude Code or of Codex."""
    if entry["type"] != "response_item":
        return entry["type"], _message_text(entry["message"]["content"])
    payload = entry["payload"]
    text = _message_text(payload["content"]) if payload["type"] == "message" else ""
    return payload["role"], "" if text.startswith(NOT_SAID_TO_CODEX) else text


def _message_text(content: Any) -> str:
    """Return the text of a message; results of tools have none."""
    if isinstance(content, str):
        return _text(content)
    parts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") in TEXT_PARTS]
    return _text("\n".join(part for part in parts if isinstance(part, str)))


# -- the repository ----------------------------------------------------------------------------------------------------


def repository_of(folder: str | None = None) -> str:
    """Return the group of memories for the repository of a folder: the address of its remote `origin`, so that clones
    and worktrees have one, else its path. Outside of a repository it is the folder itself."""
    here = Path(folder or Path.cwd()).absolute()
    for root in (here, *here.parents):
        if (root / ".git").exists():
            common = _git_folder(root / ".git")
            main = common.parent if common.name == ".git" else root
            return (_origin(common / "config") or str(main))[-MAX_GROUP:]
    return str(here)[-MAX_GROUP:]


def _git_folder(path: Path) -> Path:
    """Return the folder that a repository shares with its worktrees; `.git` is a file in those and in submodules."""
    if path.is_dir():
        return path
    try:
        own = path.parent / path.read_text("utf-8").partition("gitdir:")[2].strip()
        shared = own / "commondir"
        return (own / shared.read_text("utf-8").strip()).resolve() if shared.exists() else own.resolve()
    except (OSError, ValueError):
        return path


def _origin(config: Path) -> str | None:
    """Return host and path of the remote `origin`, without credentials."""
    try:
        lines = config.read_text("utf-8").splitlines()
    except (OSError, ValueError):
        return None
    section = ""
    for line in map(str.strip, lines):
        if line.startswith("["):
            section = line
        name, _, value = line.partition("=")
        if section == '[remote "origin"]' and name.strip() == "url":
            address = value.strip().partition("://")[2] or value.strip().replace(":", "/", 1)
            address = address.rpartition("@")[2] if "@" in address.partition("/")[0] else address
            return address.rstrip("/").removesuffix(".git") or None
    return None
