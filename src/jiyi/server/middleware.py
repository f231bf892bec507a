"""Middleware, from the outside in: request log, limits, authentication."""

import asyncio
import logging
import re
from collections import Counter, OrderedDict
from time import monotonic, perf_counter

from fastapi import HTTPException

from ..engine import runtime
from ..errors import JiyiError
from ..http_server import AsgiApp, AsgiScope, Message, Receive, Send, header, refuse
from ..ids import new_id
from ..memory import Memory
from ..rate_limit import TokenBucket
from ..settings import ServerSettings
from .auth import Access, authenticate
from .metrics import RequestMetrics

logger = logging.getLogger("jiyi.server")
access_log = logging.getLogger("jiyi.server.auth")

MIB = 1024 * 1024
MAX_CALLERS = 10_000
MAX_HEADER_BYTES = 32 * 1024
MAX_HEADERS = 100
FORWARDED = (b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip", b"via")  # of a proxy
UPLOADS, DOWNLOADS = "/v1/imports", "/v1/export"
FILE_TIMEOUT_S = 900
REQUEST_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")
SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
NO_STORE = (b"cache-control", b"no-store")
API_PATHS = ("/v1/", "/v2/", "/v3/", "/api/")  # Jiyi's and mem0's
SCHEMES = ("bearer", "token")  # mem0's clients send `Token`


class RequestLog:
    """Gives each request an id, measures it, and logs one line without query, body and key."""

    def __init__(self, app: AsgiApp, metrics: RequestMetrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = header(scope, b"x-request-id") or ""
        request_id = scope["request_id"] = given if REQUEST_ID.fullmatch(given) else new_id()
        more = [*SECURITY_HEADERS, (b"x-request-id", request_id.encode())]
        if scope["path"].startswith(API_PATHS):
            more.append(NO_STORE)
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *more]
            await send(message)

        began = perf_counter()
        try:
            await self._app(scope, receive, send_with_id)
        except Exception as error:
            logger.error("unexpected %s", type(error).__name__, exc_info=error, extra={"request_id": request_id})
            if status == 0:
                await refuse(send_with_id, 500, "internal", "internal error: see the server's log for the request_id")
        finally:
            self._log(scope, status, perf_counter() - began)

    def _log(self, scope: AsgiScope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", None) or "unknown"
        self._metrics.request(scope["method"], route, status, seconds)
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
    """Limits the size, the duration and the number of concurrent requests."""

    def __init__(self, app: AsgiApp, settings: ServerSettings) -> None:
        self._app = app
        self._settings = settings
        self._active = 0

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        upload = scope["path"] == UPLOADS
        largest = int((self._settings.max_upload_mb if upload else self._settings.max_body_mb) * MIB)
        refusal = self._refusal(scope, largest)
        if refusal is not None:
            await refuse(send, *refusal)
            return
        started = False

        async def send_tracked(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        limit_s: float | None = self._settings.timeout_s
        if scope["path"] in (UPLOADS, DOWNLOADS):
            limit_s = FILE_TIMEOUT_S
        elif scope["path"].endswith("/events"):
            limit_s = None
        self._active += 1
        try:
            async with asyncio.timeout(limit_s) as timeout:
                await self._app(scope, self._counted(receive, largest), send_tracked)
        except TimeoutError:
            if not timeout.expired():
                raise
            if not started:
                await _give_up(scope, send, 504, "timeout", f"the request took longer than {limit_s:.0f} seconds")
        except asyncio.CancelledError:
            if not started:
                await _give_up(scope, send, 503, "unavailable", "the server is stopping: try again")
        finally:
            self._active -= 1

    def _refusal(self, scope: AsgiScope, largest: int) -> tuple[int, str, str, list[tuple[bytes, bytes]]] | None:
        headers = scope["headers"]
        if len(headers) > MAX_HEADERS or sum(len(name) + len(value) for name, value in headers) > MAX_HEADER_BYTES:
            return 431, "headers_too_large", f"the headers have more than {MAX_HEADER_BYTES:,} bytes", []
        if self._active >= self._settings.max_concurrent and scope["path"] != "/livez":
            return 503, "unavailable", "too many concurrent requests: try again", [(b"retry-after", b"1")]
        announced = header(scope, b"content-length")
        if announced is not None and header(scope, b"transfer-encoding") is not None:
            # Request smuggling: a proxy may find another end of this request than we do.
            both = "content-length and transfer-encoding exclude each other"
            return 400, "bad_request", both, [(b"connection", b"close")]
        if announced and announced.isdecimal() and int(announced[:20]) > largest:
            return 413, "too_large", f"the body has more than {largest:,} bytes", []
        return None

    def _counted(self, receive: Receive, largest: int) -> Receive:
        seen = 0
        complete = False

        async def counted() -> Message:
            nonlocal seen, complete
            if complete:  # from now on it only waits for a disconnect
                return await receive()
            try:
                async with asyncio.timeout(self._settings.receive_timeout_s):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(408, "the body did not arrive") from None
            if message["type"] == "http.request":
                seen += len(message.get("body", b""))
                complete = not message.get("more_body", False)
                if seen > largest:
                    raise HTTPException(413, f"the body has more than {largest:,} bytes")
            return message

        return counted


async def _give_up(scope: AsgiScope, send: Send, status: int, code: str, why: str) -> None:
    """Refuse a request that was being worked on."""
    key: str | None = scope.get("idempotency_key")
    if key:
        why += f"; it may be stored all the same: repeat it with Idempotency-Key {key} for its receipt"
    await refuse(send, status, code, why, [(b"idempotency-key", key.encode())] if key else [])


class Authentication:
    """Checks the key and the rate of API requests. The console's files and the health routes need no key."""

    def __init__(self, app: AsgiApp, memory: Memory, *, keyless: bool) -> None:
        self._app = app
        self._memory = memory
        self._keyless = keyless
        self._settings = runtime(memory).settings.server
        self._callers: OrderedDict[str, TokenBucket] = OrderedDict()
        self._active: Counter[str] = Counter()
        self._logged_at = float("-inf")

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith((*API_PATHS, "/metrics")):
            try:
                access = await authenticate(self._memory, _secret(scope), keyless=self._keyless)
            except JiyiError as error:
                logger.error("cannot read the keys: %s", error, extra={"request_id": scope.get("request_id")})
                await refuse(send, 503, "unavailable", "try again later", [(b"retry-after", b"5")])
                return
            client = (scope.get("client") or ("",))[0]
            if access is not None and access.key is None and any(header(scope, name) for name in FORWARDED):
                await refuse(send, 403, "key_needed", "behind a proxy a key is needed: create one (`jiyi keys create`)")
                return
            wait = self._bucket(access, client).take(monotonic())
            if wait:
                later = [(b"retry-after", str(max(1, round(wait))).encode())]
                await refuse(send, 429, "too_many_requests", "rate limit exceeded: see the setting server.burst", later)
                return
            if access is None:
                await self._log_refusal(client)
                asked = [(b"www-authenticate", b"Bearer")]
                await refuse(send, 401, "key_needed", "a valid key is required: Authorization: Bearer KEY", asked)
                return
            scope["access"] = access
            await self._within_share(access.key_id or f"at {client}", scope, receive, send)
            return
        await self._app(scope, receive, send)

    async def _within_share(self, name: str, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Let one caller hold at most half of the concurrent requests, so that slow ones leave room for others."""
        if self._active[name] >= max(1, self._settings.max_concurrent // 2):
            later = [(b"retry-after", b"1")]
            await refuse(send, 429, "too_many_requests", "too many concurrent requests of one key: try again", later)
            return
        self._active[name] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._active[name] -= 1
            if not self._active[name]:
                del self._active[name]

    def _bucket(self, access: Access | None, client: str) -> TokenBucket:
        """Return the rate limit of a key or, with a tenth of it, of an address without a key."""
        share = 10 if access is None else 1
        name = f"refused {client}" if access is None else access.key_id or f"at {client}"
        burst, rate = self._settings.burst // share, self._settings.requests_per_minute // share
        bucket = self._callers.setdefault(name, TokenBucket(max(1, burst), max(1, rate)))
        self._callers.move_to_end(name)
        while len(self._callers) > MAX_CALLERS:
            self._callers.popitem(last=False)
        return bucket

    async def _log_refusal(self, client: str) -> None:
        """Record a refusal in the audit log, at most once a minute, so that it cannot fill the disk."""
        if monotonic() - self._logged_at < 60:
            return
        self._logged_at = monotonic()
        try:
            await self._memory.keys.log("key.refused", detail=f"from {client}")
        except JiyiError as error:
            logger.error("cannot record a refused key: %s", error)


def _secret(scope: AsgiScope) -> str | None:
    scheme, _, secret = (header(scope, b"authorization") or "").partition(" ")
    return secret.strip() if scheme.lower() in SCHEMES else None
