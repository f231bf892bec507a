"""`jiyi context` and `jiyi observe` with a running server, without loading the engine or the command line.

Hooks of coding agents run at every prompt, and importing the engine takes longer than the server's answer. This module
leaves to the commands in `hooks` whatever it cannot do itself.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from typing import TYPE_CHECKING

from .hook_input import HookInput, read_stdin
from .plain_text import plain

if TYPE_CHECKING:
    from typing import Any

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
    body = {"said": query, **_scope(options, session_id)}
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
    body = {"messages": turn, **_scope(options, session_id)}
    ask_server("/v1/memories", body, user=options.get("user"), url=url)


def _scope(options: dict[str, str], session_id: str | None) -> dict[str, str]:
    named = {"session_id": options.get("session") or session_id, "agent_id": options.get("agent")}
    return {name: value for name, value in named.items() if value}


def ask_server(path: str, body: dict[str, Any], *, user: str | None, url: str | None) -> dict[str, Any]:
    """Send a request to the server at `url`, or to the one on this machine; raise NoServer if none does it.

    The key in JIYI_CLIENT__KEY is sent only to a server that was named.
    """
    scheme, _, rest = (url or DEFAULT_URL).partition("://")
    authority, _, base = rest.partition("/")
    named = user or os.environ.get("JIYI_USER")  # otherwise the user of the key, or the server's own
    query = "?user_id=" + "".join(f"%{byte:02X}" for byte in named.encode()) if named else ""
    headers = {"Host": authority, "Content-Type": "application/json"}
    if url and (key := os.environ.get("JIYI_CLIENT__KEY")):
        headers["Authorization"] = f"Bearer {key}"
    prefix = f"/{base}".rstrip("/")
    exchange = _exchange_https if scheme.lower() == "https" else exchange_http
    try:
        status, data = exchange(authority, f"{prefix}{path}{query}", json.dumps(body).encode(), headers)
        found = json.loads(data)
    except (OSError, ValueError) as error:
        raise NoServer(str(error)) from error
    if status >= 300 or not isinstance(found, dict):
        detail = found.get("detail") if isinstance(found, dict) else None
        print(f"the server at {authority} answered {status}: {detail}", file=sys.stderr)  # noqa: T201
        raise NoServer(str(detail))
    return found


def exchange_http(authority: str, target: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
    """Send a request over a socket: importing `http.client` would take longer than the rest of the command."""
    host, _, port = authority.rpartition(":") if authority.rpartition(":")[2].isdecimal() else (authority, "", "80")
    lines = [f"POST {target} HTTP/1.0", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    with socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_S) as connection:
        connection.settimeout(ANSWER_S)
        connection.sendall("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        received = bytearray()
        while (part := connection.recv(65536)) and len(received) < MAX_REPLY:
            received += part
    head, _, data = bytes(received).partition(b"\r\n\r\n")
    return int(head.split(b" ", 2)[1]) if b" " in head else 0, data


def _exchange_https(authority: str, target: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
    from http.client import HTTPException, HTTPSConnection

    connection = HTTPSConnection(authority, timeout=ANSWER_S)
    try:
        connection.request("POST", target, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read(MAX_REPLY)
    except HTTPException as error:
        raise OSError(str(error)) from error
    finally:
        connection.close()
