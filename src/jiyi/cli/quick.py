"""`jiyi context` and `jiyi observe` with a running server, without loading the engine or the command line.

Hooks of coding agents run at every prompt, and importing the engine takes longer than the server's answer. This module
leaves to the commands in `hooks` whatever it cannot do itself.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

from .hook_input import HookInput, read_stdin, repository_of
from .plain_text import plain

if TYPE_CHECKING:
    from typing import Any

DEFAULT_URL = "http://127.0.0.1:8766"  # of `jiyi serve`
CONNECT_S = 0.3
ANSWER_S = 1.7  # with the connection, a hook waits two seconds
AWAY_S = 30.0  # a hook does not wait for a server that was away so short ago
MOST_KEPT = 1_000  # turns that wait for a server
MAX_REPLY = 4_000_000
OPTIONS = {"--user": "user", "-u": "user", "--session": "session", "--agent": "agent", "--store": "store"}


class NoServer(Exception):
    """No server answered; the store can be opened instead."""


class ServerAway(Exception):
    """The server did not answer in time; a hook goes on without it."""


def run_quickly(arguments: list[str]) -> bool:
    """Run a command with the server, if there is one; return True if it is done. A hook waits for a server for two
    seconds, and not at all in the half minute after it was away."""
    command, *rest = arguments
    given = _parse(rest)
    if given is None:
        return False
    hook = None
    try:
        url = server_url(given["options"].get("store"))
        if given["hook"]:
            hook = HookInput.parse(read_stdin())
            if is_away(url):
                raise ServerAway("did not answer a moment ago")
        if command == "context":
            print(_context(given, hook, url))  # noqa: T201 - the output of the command
        else:
            _observe(given, hook, url)
    except ServerAway as problem:
        if hook is None:
            return False
        told = f"the memory at {url or DEFAULT_URL} {problem}: this turn goes on without it"
        print(f"jiyi: {told}", file=sys.stderr)  # noqa: T201
        if command == "context":
            print(hook.warning(told))  # noqa: T201
        else:
            keep_turn(hook.turn, _scope(given, hook), given["options"].get("user"), url)
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
    flags = dict.fromkeys(("--hook", "--per-project"), False)
    rest = iter(arguments)
    for argument in rest:
        if argument in OPTIONS:
            value = next(rest, None)
            if value is None:
                return None
            options[OPTIONS[argument]] = value
        elif argument in flags:
            flags[argument] = True
        elif argument.startswith("-"):
            return None
        else:
            words.append(argument)
    return {"options": options, "words": words, "hook": flags["--hook"], "per_project": flags["--per-project"]}


def _context(given: dict[str, Any], hook: HookInput | None, url: str | None) -> str:
    if hook is not None:
        return hook.answer(recall(hook.prompt, given, hook, url) if hook.prompt else "")
    if len(given["words"]) != 1:
        raise ValueError("one query")
    return recall(given["words"][0], given, None, url)


def recall(query: str, given: dict[str, Any], hook: HookInput | None, url: str | None) -> str:
    body: dict[str, Any] = {"said": query, **_scope(given, hook)}
    if given["per_project"]:
        body["private"] = True
    return plain(str(ask_server("/v1/recall", body, user=given["options"].get("user"), url=url)["block"]))


def _observe(given: dict[str, Any], hook: HookInput | None, url: str | None) -> None:
    options, words = given["options"], given["words"]
    if hook is not None:
        turn = hook.turn
        if not turn:
            return
    else:
        if not 1 <= len(words) <= 2 or "-" in words:
            raise ValueError("a message, and an answer")
        roles = ("user", "assistant")
        turn = [{"role": role, "content": text} for role, text in zip(roles, words, strict=False)]
    send_kept_turns(url)
    body = {"messages": turn, **_scope(given, hook)}
    ask_server("/v1/memories", body, user=options.get("user"), url=url)


def _scope(given: dict[str, Any], hook: HookInput | None) -> dict[str, str]:
    options = given["options"]
    named = {"session_id": options.get("session") or (hook and hook.session_id), "agent_id": options.get("agent")}
    if given["per_project"]:
        named["group_id"] = repository_of(hook and hook.folder)
    return {name: value for name, value in named.items() if value}


# -- a server that is away ---------------------------------------------------------------------------------------------


def _state_folder() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base, "jiyi", f"{crc32((os.environ.get('JIYI_URL') or '').encode()):08x}")


def is_away(url: str | None) -> bool:
    """Return True if this server did not answer within the last half minute."""
    try:
        age = time.time() - (_state_folder() / "away").stat().st_mtime
        return (_state_folder() / "away").read_text("utf-8") == (url or "") and 0 <= age < AWAY_S
    except (OSError, ValueError):
        return False


def _note_away(url: str | None) -> None:
    try:
        _state_folder().mkdir(mode=0o700, parents=True, exist_ok=True)
        (_state_folder() / "away").write_text(url or "", "utf-8")
    except OSError:
        pass  # the next hook waits again


def keep_turn(turn: list[dict[str, str]], scope: dict[str, str], user: str | None, url: str | None) -> None:
    """Keep a turn in a file until the server is back; if there are too many, drop the oldest one and say so."""
    if not turn:
        return
    now = time.time()
    key = f"{int(now * 1e9):020d}-{os.getpid()}"
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    body = {"messages": [{**message, "sent_at": at} for message in turn], **scope}
    kept = {"url": url, "user": user, "key": f"hook-{key}", "kept_at": now, "body": body}
    try:
        folder = _state_folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / f"{key}.turn"
        path.touch(mode=0o600, exist_ok=False)
        path.write_text(json.dumps(kept, ensure_ascii=False), "utf-8")
        for oldest in sorted(folder.glob("*.turn"))[:-MOST_KEPT]:
            oldest.unlink(missing_ok=True)
            print("jiyi: too many turns wait for the server: the oldest is dropped", file=sys.stderr)  # noqa: T201
    except OSError as error:
        print(f"jiyi: a turn is lost, because it could not be kept: {error}", file=sys.stderr)  # noqa: T201


def send_kept_turns(url: str | None) -> None:
    """Send the turns that were kept while this server was away, oldest first, but not those of users who have been
    deleted since."""
    until = time.monotonic() + ANSWER_S
    for path in sorted(_state_folder().glob("*.turn")):
        try:
            kept = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError):
            continue
        if kept["url"] == url and time.monotonic() < until:
            from ..ids import time_of  # only with a turn to send: it loads what the rest can do without

            epoch = ask_server("/v1/epoch", None, user=kept["user"], url=url)["epoch"]
            erased_at = time_of(epoch)
            if erased_at is None or erased_at.timestamp() < kept["kept_at"]:
                body = {**kept["body"], "epoch": epoch}
                ask_server("/v1/memories", body, user=kept["user"], url=url, key=kept["key"])
            path.unlink(missing_ok=True)


# -- requests ----------------------------------------------------------------------------------------------------------


def ask_server(
    path: str, body: dict[str, Any] | None, *, user: str | None, url: str | None, key: str | None = None
) -> dict[str, Any]:
    """Send a request to the server at `url`, or to the one on this machine: without a `body` to read something. Raise
    NoServer if none does it, and ServerAway if it does not answer. With a `key` it is done once, however often it is
    sent.

    The API key in JIYI_CLIENT__KEY is sent only to a server that was named.
    """
    scheme, _, rest = (url or DEFAULT_URL).partition("://")
    authority, _, base = rest.partition("/")
    named = user or os.environ.get("JIYI_USER")  # otherwise the user of the key, or the server's own
    query = "?user_id=" + "".join(f"%{byte:02X}" for byte in named.encode()) if named else ""
    headers = {"Host": authority, "Content-Type": "application/json"}
    if url and (secret := os.environ.get("JIYI_CLIENT__KEY")):
        headers["Authorization"] = f"Bearer {secret}"
    if key:
        headers["Idempotency-Key"] = key
    prefix = f"/{base}".rstrip("/")
    exchange = _exchange_https if scheme.lower() == "https" else exchange_http
    try:
        sent = None if body is None else json.dumps(body).encode()
        status, data = exchange(authority, f"{prefix}{path}{query}", sent, headers)
        found = json.loads(data)
    except (OSError, ValueError) as error:
        if url or isinstance(error, TimeoutError):  # a server on this machine that is not there is not missed
            _note_away(url)
            raise ServerAway(f"cannot be reached ({error})") from error
        raise NoServer(str(error)) from error
    if status >= 300 or not isinstance(found, dict):
        detail = found.get("detail") if isinstance(found, dict) else None
        print(f"the server at {authority} answered {status}: {detail}", file=sys.stderr)  # noqa: T201
        raise NoServer(str(detail))
    return found


def exchange_http(authority: str, target: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
    """Send a request over a socket: importing `http.client` would take longer than the rest of the command."""
    host, _, port = authority.rpartition(":") if authority.rpartition(":")[2].isdecimal() else (authority, "", "80")
    lines = [f"GET {target} HTTP/1.0"]
    if body is not None:
        lines = [f"POST {target} HTTP/1.0", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    until = time.monotonic() + ANSWER_S
    with socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_S) as connection:
        connection.settimeout(ANSWER_S)
        connection.sendall("\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b""))
        received = bytearray()
        while (part := connection.recv(65536)) and len(received) < MAX_REPLY:
            received += part
            connection.settimeout(max(until - time.monotonic(), 0.01))
    head, _, data = bytes(received).partition(b"\r\n\r\n")
    return int(head.split(b" ", 2)[1]) if b" " in head else 0, data


def _exchange_https(authority: str, target: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
    from http.client import HTTPException, HTTPSConnection

    connection = HTTPSConnection(authority, timeout=ANSWER_S)
    try:
        connection.request("GET" if body is None else "POST", target, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read(MAX_REPLY)
    except HTTPException as error:
        raise OSError(str(error)) from error
    finally:
        connection.close()
