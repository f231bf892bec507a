"""`jiyi context` and `jiyi observe` with a running server, without loading the engine or the command line.

Hooks of coding agents run at every prompt, and importing the engine takes longer than the server's answer. This module
leaves to the commands in `hooks` whatever it cannot do itself.
"""

from __future__ import annotations

import json
import os
import sys
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import quote, urlsplit

from .hook_input import HookInput, read_stdin
from .plain_text import plain

DEFAULT_URL = "http://127.0.0.1:8766"  # of `jiyi serve`
CONNECT_S = 0.3
ANSWER_S = 5.0
MAX_REPLY = 4_000_000
OPTIONS = {"--user": "user", "-u": "user", "--session": "session", "--agent": "agent", "--store": "store"}


class NoServer(Exception):
    """No server answered; the store can be opened instead."""


def run_quickly(arguments: list[str]) -> bool:
    """Run a command with the server, if there is one; return True if it is done."""
    command, *rest = arguments
    given = _parse(rest)
    if given is None:
        return False
    try:
        url = server_url(given["options"].get("store"))
        if command == "context":
            print(_context(given, url))  # noqa: T201 - the output of the command
        else:
            _observe(given, url)
    except (NoServer, ValueError):
        return False
    return True


def server_url(store: str | None) -> str | None:
    """Return the address of the server that was named, or None for the one on this machine."""
    where = store or os.environ.get("JIYI_URL")
    if where is None:
        return None
    if not where.lower().startswith(("http://", "https://")):
        raise NoServer("the store is a file or a database")
    return where


def _parse(arguments: list[str]) -> dict[str, Any] | None:
    """Read the common arguments; None if there are others."""
    options: dict[str, str] = {}
    words: list[str] = []
    hook = False
    rest = iter(arguments)
    for argument in rest:
        if argument in OPTIONS:
            value = next(rest, None)
            if value is None:
                return None
            options[OPTIONS[argument]] = value
        elif argument == "--hook":
            hook = True
        elif argument.startswith("-"):
            return None
        else:
            words.append(argument)
    return {"options": options, "words": words, "hook": hook}


def _context(given: dict[str, Any], url: str | None) -> str:
    options, words = given["options"], given["words"]
    if given["hook"]:
        hook = HookInput.parse(read_stdin())
        return hook.answer(plain(recall(hook.prompt, options, hook.session_id, url)) if hook.prompt else "")
    if len(words) != 1:
        raise ValueError("one query")
    return plain(recall(words[0], options, None, url))


def recall(query: str, options: dict[str, str], session_id: str | None, url: str | None) -> str:
    body: dict[str, Any] = {"said": query}
    if session := options.get("session") or session_id:
        body["session_id"] = session
    if agent := options.get("agent"):
        body["agent_id"] = agent
    return str(ask_server("/v1/recall", body, user=options.get("user"), url=url)["block"])


def _observe(given: dict[str, Any], url: str | None) -> None:
    options, words = given["options"], given["words"]
    session_id: str | None = None
    if given["hook"]:
        hook = HookInput.parse(read_stdin())
        turn, session_id = hook.turn, hook.session_id
        if not turn:
            return
    else:
        if not 1 <= len(words) <= 2 or "-" in words:
            raise ValueError("a message, and an answer")
        roles = ("user", "assistant")
        turn = [{"role": role, "content": text} for role, text in zip(roles, words, strict=False)]
    body: dict[str, Any] = {"messages": turn}
    if session := options.get("session") or session_id:
        body["session_id"] = session
    if agent := options.get("agent"):
        body["agent_id"] = agent
    ask_server("/v1/memories", body, user=options.get("user"), url=url)


def ask_server(path: str, body: dict[str, Any], *, user: str | None, url: str | None) -> dict[str, Any]:
    """Send a request to the server at `url`, or to the one on this machine; raise NoServer if none does it.

    The key in JIYI_CLIENT__KEY is sent only to a server that was named.
    """
    target = urlsplit(url or DEFAULT_URL)
    kind = HTTPSConnection if target.scheme == "https" else HTTPConnection
    key = os.environ.get("JIYI_CLIENT__KEY") if url else None
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
    named = user or os.environ.get("JIYI_USER")  # otherwise the user of the key, or the server's own
    query = f"?user_id={quote(named, safe='')}" if named else ""
    connection = kind(target.hostname or "", target.port, timeout=CONNECT_S)
    try:
        connection.connect()
        if connection.sock is not None:
            connection.sock.settimeout(ANSWER_S)
        connection.request("POST", f"{target.path.rstrip('/')}{path}{query}", json.dumps(body).encode(), headers)
        answer = connection.getresponse()
        found = json.loads(answer.read(MAX_REPLY))
    except (OSError, HTTPException, ValueError) as error:
        raise NoServer(str(error)) from error
    finally:
        connection.close()
    if answer.status >= 300 or not isinstance(found, dict):
        detail = found.get("detail") if isinstance(found, dict) else None
        print(f"the server at {target.netloc} answered {answer.status}: {detail}", file=sys.stderr)  # noqa: T201
        raise NoServer(str(detail))
    return found
