"""What stands around every request, from the outside in: a name and a line in the log, limits, and the door."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import OrderedDict
from time import monotonic, perf_counter
from typing import TYPE_CHECKING

from fastapi import HTTPException

from ..agents.tools.usage import Bucket
from ..errors import JiyiError
from ..http_guards import AsgiApp, AsgiScope, Message, Receive, Send, header, refuse
from ..ids import new_id
from ..memory import Memory
from ..settings import ServerSettings
from .access import Access, admit

if TYPE_CHECKING:
    from .measures import Measures

logger = logging.getLogger("jiyi.server")
access_log = logging.getLogger("jiyi.server.access")

MIB = 1024 * 1024
MOST_CALLERS = 10_000
LARGEST_HEADERS = 32 * 1024
MOST_HEADERS = 100
UPLOADS, DOWNLOADS = "/v1/imports", "/v1/export"
LONGEST_FILE_S = 900
OURS = re.compile(r"[A-Za-z0-9_.-]{1,64}")
ALWAYS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
NOT_KEPT = (b"cache-control", b"no-store")


class Accounted:
    """Gives each request an id, times it, and writes one line about it: no query, no body, no key."""

    def __init__(self, app: AsgiApp, measures: Measures) -> None:
        self._app = app
        self._measures = measures

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = header(scope, b"x-request-id") or ""
        request_id = scope["request_id"] = given if OURS.fullmatch(given) else new_id()
        more = [*ALWAYS, (b"x-request-id", request_id.encode())]
        if scope["path"].startswith("/v1"):
            more.append(NOT_KEPT)
        status = 0

        async def send_named(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *more]
            await send(message)

        began = perf_counter()
        try:
            await self._app(scope, receive, send_named)
        except Exception as error:
            logger.error("unexpected %s", type(error).__name__, exc_info=error, extra={"request_id": request_id})
            if status == 0:
                await refuse(send_named, 500, "internal", "the server failed; its log says why, under the request_id")
        finally:
            self._note(scope, status, perf_counter() - began)

    def _note(self, scope: AsgiScope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", None) or "unknown"
        self._measures.request(scope["method"], route, status, seconds)
        who: Access | None = scope.get("access")
        access_log.info(
            "%s %s %d",
            scope["method"],
            route,
            status,
            extra={
                "request_id": scope["request_id"],
                "method": scope["method"],
                "route": route,
                "status": status,
                "ms": round(seconds * 1000, 1),
                "key_id": None if who is None else who.key_id,
                "client": (scope.get("client") or ("",))[0],
            },
        )


class Limits:
    """How much, how long, and how many at once."""

    def __init__(self, app: AsgiApp, settings: ServerSettings) -> None:
        self._app = app
        self._settings = settings
        self._at_once = 0

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = scope["headers"]
        if len(headers) > MOST_HEADERS or sum(len(name) + len(value) for name, value in headers) > LARGEST_HEADERS:
            await refuse(send, 431, "headers_too_large", f"the headers have more than {LARGEST_HEADERS:,} bytes")
            return
        if self._at_once >= self._settings.max_concurrent:
            later = [(b"retry-after", b"1")]
            await refuse(send, 503, "unavailable", "too many requests are being worked on: try again", later)
            return
        upload = scope["path"] == UPLOADS
        largest = int((self._settings.max_upload_mb if upload else self._settings.max_body_mb) * MIB)
        if header(scope, b"content-length") is not None and header(scope, b"transfer-encoding") is not None:
            # A proxy may see another end of this request than we do, and a second request behind it.
            await refuse(
                send, 400, "bad_request", "a body has a length or comes in chunks", [(b"connection", b"close")]
            )
            return
        announced = header(scope, b"content-length") or "0"
        if announced.isdecimal() and int(announced[:20]) > largest:
            await refuse(send, 413, "too_large", f"the body has more than {largest:,} bytes")
            return
        started = False

        async def send_noted(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        limit_s: float | None = self._settings.timeout_s
        if scope["path"] in (UPLOADS, DOWNLOADS):
            limit_s = LONGEST_FILE_S
        elif scope["path"].endswith("/events"):
            limit_s = None
        self._at_once += 1
        try:
            async with asyncio.timeout(limit_s) as patience:
                await self._app(scope, self._counted(receive, largest), send_noted)
        except TimeoutError:
            if not patience.expired():
                raise
            if not started:
                await refuse(send, 504, "timeout", f"this took longer than {limit_s:.0f} seconds and was given up")
        finally:
            self._at_once -= 1

    def _counted(self, receive: Receive, largest: int) -> Receive:
        seen = 0
        whole = False

        async def counted() -> Message:
            nonlocal seen, whole
            if whole:  # now it only waits for the client to leave
                return await receive()
            try:
                async with asyncio.timeout(self._settings.receive_timeout_s):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(408, "the body did not come") from None
            if message["type"] == "http.request":
                seen += len(message.get("body", b""))
                whole = not message.get("more_body", False)
                if seen > largest:
                    raise HTTPException(413, f"the body has more than {largest:,} bytes")
            return message

        return counted


class Door:
    """Lets in who shows a key, as often as the key may. Pages and health need none; they hold no memories."""

    def __init__(self, app: AsgiApp, memory: Memory, *, keyless: bool) -> None:
        self._app = app
        self._memory = memory
        self._keyless = keyless
        self._settings = memory.settings.server
        self._callers: OrderedDict[str, Bucket] = OrderedDict()
        self._noted_at = float("-inf")

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith(("/v1/", "/metrics")):
            try:
                access = await admit(self._memory, _secret(scope), keyless=self._keyless)
            except JiyiError as error:
                logger.error("keys cannot be read: %s", error, extra={"request_id": scope.get("request_id")})
                await refuse(send, 503, "unavailable", "try again later", [(b"retry-after", b"5")])
                return
            client = (scope.get("client") or ("",))[0]
            wait = self._bucket(access, client).take(monotonic())
            if wait:
                later = [(b"retry-after", str(max(1, round(wait))).encode())]
                await refuse(send, 429, "too_many_requests", "slower, please: see the setting server.burst", later)
                return
            if access is None:
                await self._note_refusal(client)
                asked = [(b"www-authenticate", b"Bearer")]
                await refuse(send, 401, "key_needed", "a valid key is needed: Authorization: Bearer KEY", asked)
                return
            scope["access"] = access
        await self._app(scope, receive, send)

    def _bucket(self, access: Access | None, client: str) -> Bucket:
        """Whoever has no key has a tenth of what a key has, by address."""
        share = 10 if access is None else 1
        name = f"refused {client}" if access is None else access.key_id or f"at {client}"
        burst, rate = self._settings.burst // share, self._settings.requests_per_minute // share
        bucket = self._callers.setdefault(name, Bucket(max(1, burst), max(1, rate)))
        self._callers.move_to_end(name)
        while len(self._callers) > MOST_CALLERS:
            self._callers.popitem(last=False)
        return bucket

    async def _note_refusal(self, client: str) -> None:
        """In the audit log, but not so often that whoever has no key could fill the disk."""
        if monotonic() - self._noted_at < 60:
            return
        self._noted_at = monotonic()
        try:
            await self._memory.keys.log("key.refused", detail=f"from {client}")
        except JiyiError as error:
            logger.error("a refused key was not noted: %s", error)


def _secret(scope: AsgiScope) -> str | None:
    scheme, _, secret = (header(scope, b"authorization") or "").partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else None
