"""A proxy in front of a server that speaks OpenAI's protocol: it recalls before each turn and observes it afterwards.

Requests to `/v1/chat/completions` and `/v1/responses` get the recalled block added; everything else passes unchanged,
and so does every reply, byte by byte. A key of Jiyi is never sent on.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
from pydantic_core import to_json
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from ..agents.openai import Turn, turn_of, with_block
from ..agents.recall import Conversation
from ..client import Memory as Client
from ..engine import runtime
from ..errors import InvalidInput, JiyiError
from ..http_protocol import ReturningServer
from ..http_server import (
    AsgiApp,
    AsgiScope,
    HostOriginGuard,
    Receive,
    Send,
    bind_socket,
    header,
    host_names,
    is_loopback,
    problem,
    url_host,
)
from ..memory import Memory
from ..models import Message
from ..warm import warm_up
from .auth import Access
from .errors import STATUS, HttpError
from .json_body import parse_json
from .middleware import Authentication, Limits
from .observed_reply import ObservedReply
from .serve import server_config

logger = logging.getLogger("jiyi.proxy")

TIMEOUT_S = 600.0  # of a whole reply
CONNECT_S = 10.0
MAX_BODY_MB = 64.0  # requests can contain images
USER, SESSION, AGENT, KEY = (f"x-jiyi-{name}" for name in ("user", "session", "agent", "key"))
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
TURNS = {"chat/completions": True, "responses": False}  # path: is it Chat Completions
# Headers of one connection, and those that this side sets itself.
NOT_SENT_ON = {"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "host", "content-length"}
NOT_SENT_ON |= {"proxy-authorization", "proxy-connection", "accept-encoding", "cookie", "expect", "authorization"}
OWN_KEY = re.compile(r"\bjiyi_[0-9a-z]{26}_")
NOT_RETURNED = {"connection", "keep-alive", "transfer-encoding", "upgrade", "trailer", "set-cookie"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """The server behind the proxy. Without a `key`, the client's own authorization is sent on."""

    url: str
    key: str | None = None

    @classmethod
    def parse(cls, url: str, *, key: str | None) -> Upstream:
        found = urlsplit(url)
        if found.scheme not in ("http", "https") or not found.hostname:
            raise InvalidInput("--to", "must be the base URL of the model's server, such as http://127.0.0.1:8089/v1")
        if found.username or found.password or found.query or found.fragment:
            raise InvalidInput("--to", "must have no password and no parameters: name the key with --key-env")
        if key and found.scheme == "http" and not is_loopback(found.hostname):
            raise InvalidInput("--to", "must be https:// where a key is sent to another machine")
        return cls(url=url.rstrip("/"), key=key or None)

    def authorization(self, given: str | None) -> str | None:
        """Return the header to send; a key of Jiyi stays here."""
        if self.key is not None:
            return f"Bearer {self.key}"
        return None if given is None or OWN_KEY.search(given) else given


class Proxy:
    """Sends requests on, with what the user's memory has to say about them."""

    def __init__(self, memory: Memory, upstream: Upstream, http: httpx.AsyncClient, *, user_id: str) -> None:
        self._memory = memory
        self._upstream = upstream
        self._http = http
        self._user_id = user_id  # of requests without a key

    async def answer(self, request: Request) -> Response:
        path = request.path_params["path"]
        if any(step in ("", ".", "..") for step in path.split("/")):
            return _problem(404, "not_found", "no such path")
        try:
            conversation = self._conversation(request)
            body = await request.body()
            turn: Turn | None = None
            if request.method == "POST" and path in TURNS:
                turn, body = await self._recalled(conversation, body, is_chat=TURNS[path])
            return await self._send(request, path, body, conversation, turn)
        except HttpError as error:
            return _problem(error.status_code, error.code, str(error.detail))
        except JiyiError as error:
            status, code = next((found for kind, found in STATUS.items() if isinstance(error, kind)), (500, "internal"))
            return _problem(status, code, str(error) if status < 500 else "the memory failed: see the proxy's log")
        except httpx.HTTPError as error:
            logger.warning("the model's server cannot be reached: %s", type(error).__name__)
            status = 504 if isinstance(error, httpx.TimeoutException) else 502
            return _problem(status, "upstream", f"the model's server cannot be reached ({type(error).__name__})")

    def _conversation(self, request: Request) -> Conversation:
        access: Access = request.scope["access"]
        named = _name(request, USER)
        user_id = self._user_id if access.key is None and named is None else access.user(named)
        access.need("read")
        session_id, agent_id = _name(request, SESSION), _name(request, AGENT)
        return Conversation(memory=self._memory, user_id=user_id, session_id=session_id, agent_id=agent_id)

    async def _recalled(self, conversation: Conversation, body: bytes, *, is_chat: bool) -> tuple[Turn | None, bytes]:
        """Return the turn, and the body with the recalled block; the same bytes if nothing was recalled."""
        try:
            given = await parse_json(body)
        except HTTPException:
            return None, body  # the model's server says what is wrong with it
        if not isinstance(given, dict):
            return None, body
        turn = turn_of(given, is_chat)
        block = (await conversation.recall(turn.said)).block
        return turn, to_json(with_block(given, block, is_chat)) if block else body

    async def _send(
        self, request: Request, path: str, body: bytes, conversation: Conversation, turn: Turn | None
    ) -> Response:
        # As bytes: values may have any encoding.
        headers = [(name, value) for name, value in request.headers.raw if not _stays_here(name, value)]
        headers.append((b"accept-encoding", b"identity"))  # so that the reply can be read while it passes
        if authorization := self._upstream.authorization(request.scope.get("own_authorization")):
            headers.append((b"authorization", authorization.encode("latin-1")))
        sent = self._http.build_request(
            request.method,
            f"{self._upstream.url}/{quote(path)}",
            params=request.url.query,
            headers=headers,
            content=body or None,
        )
        reply = await self._http.send(sent, stream=True)
        kept = [(name.lower(), value) for name, value in reply.headers.raw]
        streamed = reply.headers.get("content-type", "").startswith("text/event-stream")
        access: Access = request.scope["access"]
        readable = reply.status_code == 200 and reply.headers.get("content-encoding", "identity") == "identity"
        observed = ObservedReply(streamed=streamed) if turn and readable and "write" in access.scopes else None
        response = StreamingResponse(self._passed(reply, observed, conversation, turn), reply.status_code)
        response.raw_headers = [(name, value) for name, value in kept if name.decode("latin-1") not in NOT_RETURNED]
        return response

    async def _passed(
        self, reply: httpx.Response, observed: ObservedReply | None, conversation: Conversation, turn: Turn | None
    ) -> AsyncIterator[bytes]:
        """Yield the bytes of a reply as they come; queue the turn at the end, or when the client leaves."""
        try:
            async for data in reply.aiter_raw():
                if observed is not None:
                    observed.feed(data)
                yield data
        except httpx.HTTPError as error:
            # The status is sent already: ending early is all that tells the client.
            logger.warning("a reply of the model's server broke off: %s", type(error).__name__)
            raise
        finally:
            await reply.aclose()
            if observed is not None and turn is not None:
                said = [("user", turn.said)] if turn.new else []
                texts = [*said, ("assistant", observed.text())]
                await conversation.observe(Message(role=role, text=text) for role, text in texts if text.strip())


def _stays_here(raw_name: bytes, value: bytes) -> bool:
    """Return True for headers of this connection and of Jiyi, whatever their spelling, and for any that holds a key."""
    name = raw_name.decode("latin-1")
    holds_key = OWN_KEY.search(value.decode("latin-1")) is not None
    return name in NOT_SENT_ON or name.replace("_", "-").startswith("x-jiyi-") or holds_key


def _name(request: Request, header: str) -> str | None:
    """Return a name in a header: UTF-8, as clients send it, although HTTP knows Latin-1 only."""
    value = request.headers.get(header)
    try:
        return None if value is None else value.encode("latin-1").decode()
    except UnicodeDecodeError:
        return value


def _problem(status: int, code: str, detail: str) -> Response:
    """Return an error in OpenAI's form, which its clients show."""
    content = {
        "error": {"message": detail, "type": "jiyi", "code": code, "param": None},
        **problem(status, code, detail),
    }
    return Response(json.dumps(content, ensure_ascii=False), status, media_type="application/json")


class OwnKey:
    """Reads a key of Jiyi from `X-Jiyi-Key` too, so that `Authorization` can be the model's."""

    def __init__(self, app: AsgiApp) -> None:
        self._app = app

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope["own_authorization"] = header(scope, b"authorization") or None
            if key := header(scope, KEY.encode()):
                rest = [pair for pair in scope["headers"] if pair[0] != b"authorization"]
                scope["headers"] = [*rest, (b"authorization", b"Bearer " + key.encode("latin-1"))]
        await self._app(scope, receive, send)


def proxy_app(
    memory: Memory,
    upstream: Upstream,
    http: httpx.AsyncClient,
    *,
    user_id: str,
    host: str,
    allowed_hosts: Sequence[str] = (),
) -> AsgiApp:
    """Build the application; the walls are those of `jiyi serve`."""
    settings = runtime(memory).settings.server
    limits = settings.model_copy(update={"timeout_s": TIMEOUT_S, "max_body_mb": max(settings.max_body_mb, MAX_BODY_MB)})
    proxy = Proxy(memory, upstream, http, user_id=user_id)
    app: AsgiApp = Starlette(routes=[Route("/v1/{path:path}", proxy.answer, methods=METHODS)])
    app = Authentication(app, memory, keyless=is_loopback(host))
    app = Limits(OwnKey(app), limits)
    return HostOriginGuard(app, host_names(host, (*settings.allow_hosts, *allowed_hosts)), same_origin=False)


async def serve_proxy(
    memory: Memory,
    upstream: Upstream,
    *,
    user_id: str,
    host: str,
    port: int,
    allowed_hosts: Sequence[str] = (),
    ready: Callable[[str, bool], None],
) -> None:
    """Serve until stopped. `ready` is called with the base URL, and whether a key is needed, once it listens."""
    opened: Any = memory
    if isinstance(opened, Client):
        raise InvalidInput("--store", "must be a file or a database: the proxy checks keys itself")
    needs_key = await memory.keys.exist()
    if not needs_key and not is_loopback(host):
        raise InvalidInput(
            "--host", f"{host} can be reached from other machines: create a key first (`jiyi keys create --help`)"
        )
    await warm_up(memory)
    settings = runtime(memory).settings.server
    pool = httpx.Limits(max_connections=settings.max_concurrent)
    timeout = httpx.Timeout(TIMEOUT_S, connect=CONNECT_S)
    local = is_loopback(urlsplit(upstream.url).hostname or "")  # a proxy of the environment is for other machines
    async with httpx.AsyncClient(timeout=timeout, limits=pool, follow_redirects=False, trust_env=not local) as http:
        app = proxy_app(memory, upstream, http, user_id=user_id, host=host, allowed_hosts=allowed_hosts)
        with bind_socket(host, port) as sock:
            ready(f"http://{url_host(host)}:{sock.getsockname()[1]}/v1", needs_key)
            await ReturningServer(server_config(app, settings)).serve(sockets=[sock])
