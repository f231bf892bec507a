"""HTTP requests to a server: authentication, timeouts and retries."""

from __future__ import annotations

import asyncio
import logging
import random
import re
from collections.abc import AsyncIterator, Callable, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from .. import errors
from ..forks import Owner
from ..http_server import is_loopback
from ..keys import Permission
from ..settings import ClientSettings
from ..store.write_set import CLOSED
from .errors import error_in, retry_after

if TYPE_CHECKING:
    import httpx


logger = logging.getLogger(__name__)

MAX_CONNECTIONS = 20
T = TypeVar("T")
Query = tuple[tuple[str, str], ...]

FIRST_PAUSE_S = 0.1
NOT_PROCESSED = frozenset({429})  # any request can be sent again
TRANSIENT = frozenset({502, 503, 504})  # may have been processed: only repeatable requests are sent again


class WhoAmI(BaseModel):
    """The permissions of the key."""

    scopes: tuple[Permission, ...]
    all_users: bool
    user_ids: tuple[str, ...]
    default_user: str | None
    keys_needed: bool
    version: str


def is_address(where: object) -> bool:
    return isinstance(where, str) and where.lower().startswith(("http://", "https://"))


class Connection:
    def __init__(self, url: str, key: str | None, settings: ClientSettings) -> None:
        self._url = _checked(url)
        self._key = _plain_key(key)
        self._settings = settings
        self._http: httpx.AsyncClient | None = None
        self._closed = False
        self.owner = Owner()
        self._who: WhoAmI | None = None

    async def open(self) -> None:
        self._closed = False
        try:
            self._who = await self.get("/v1/whoami", WhoAmI)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        self._closed = True
        if self._http is not None:
            await self._http.aclose()
            self._http = None

    async def who(self) -> WhoAmI:
        if self._who is None:
            self._who = await self.get("/v1/whoami", WhoAmI)
        return self._who

    async def get(self, path: str, kind: type[T], /, **params: Any) -> T:
        return await self.ask("GET", path, kind, params=params, repeatable=True)

    async def ask(
        self,
        method: str,
        path: str,
        kind: type[T],
        *,
        params: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        repeatable: bool = False,
        retry_timeout_s: float | None = None,
    ) -> T:
        """Send a request and parse the answer. `repeatable`: it does no harm if the server gets it twice."""
        retrying: Any = {"repeatable": repeatable, "retry_timeout_s": retry_timeout_s}
        answer = await self.answer(method, path, params=params, body=body, headers=headers or {}, **retrying)
        return self.parse(answer, path, TypeAdapter(kind))

    def parse(self, answer: httpx.Response, path: str, adapter: TypeAdapter[T], field: str | None = None) -> T:
        """Return the answer, or one field of it, as a value. Fields that only a newer server knows are ignored."""
        try:
            if field is None:
                return adapter.validate_json(answer.content, extra="ignore")
            content = from_json(answer.content)
            if not isinstance(content, dict) or field not in content:
                raise ValueError(f"{field} is missing")
            return adapter.validate_json(to_json(content[field]), extra="ignore")
        except ValueError as error:
            what = error.errors(include_url=False)[0]["msg"] if isinstance(error, ValidationError) else error
            raise errors.ServerError(
                f"{self._url}{path} answered something unknown ({what}): is it a Jiyi server?"
            ) from None

    async def answer(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str],
        repeatable: bool,
        retry_timeout_s: float | None = None,
    ) -> httpx.Response:
        """Send a request and raise its error; if that is safe, retry, by default for `client.retry_timeout_s`."""
        http = self._client()
        import httpx

        content = None if body is None else _json(body)
        more = dict(headers) if content is None else {**headers, "Content-Type": "application/json"}
        query = _query(params or {})
        until = monotonic() + (self._settings.retry_timeout_s if retry_timeout_s is None else retry_timeout_s)
        pause = FIRST_PAUSE_S
        while True:
            failure: errors.JiyiError
            try:
                answer = await http.request(method, self._url + path, params=query, content=content, headers=more)
                if answer.is_success:
                    return answer
                failure = error_in(answer, self._url)
                again = answer.status_code in NOT_PROCESSED or (repeatable and answer.status_code in TRANSIENT)
                wait = retry_after(answer)
            except httpx.TransportError as error:
                failure, wait = self._failure(error), 0.0
                again = repeatable or not isinstance(failure, errors.ConnectionLost)
            wait = max(wait, pause * random.uniform(0.5, 1.0))  # noqa: S311 - jitter
            if not again or monotonic() + wait > until:
                raise failure
            logger.info("retrying in %.1f seconds: %s", wait, failure)
            await asyncio.sleep(wait)
            pause *= 2
            http = self._client()

    def _failure(self, error: httpx.TransportError) -> errors.StoreError:
        import httpx

        if isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)):
            return errors.StoreUnavailable(
                f"the server at {self._url} cannot be reached ({_words(error)}): is `jiyi serve` running?"
            )
        return errors.ConnectionLost(f"the connection to the server at {self._url} broke off ({_words(error)})")

    async def download(self, path: str, params: Mapping[str, Any], write: Callable[[bytes], object]) -> None:
        """Download a file in chunks."""
        http = self._client()
        import httpx

        try:
            async with http.stream("GET", self._url + path, params=_query(params)) as answer:
                if not answer.is_success:
                    await answer.aread()
                    raise error_in(answer, self._url)
                async for chunk in answer.aiter_bytes():
                    await asyncio.to_thread(write, chunk)
        except httpx.TransportError as error:
            raise self._failure(error) from None

    async def upload(self, path: str, params: Mapping[str, Any], parts: AsyncIterator[bytes], kind: type[T]) -> T:
        """Upload a file in chunks and parse the answer."""
        http = self._client()
        import httpx

        try:
            answer = await http.post(self._url + path, params=_query(params), content=parts)
        except httpx.TransportError as error:
            raise self._failure(error) from None
        if not answer.is_success:
            raise error_in(answer, self._url)
        return self.parse(answer, path, TypeAdapter(kind))

    def _client(self) -> httpx.AsyncClient:
        if self._closed:
            raise errors.StoreError(CLOSED)
        self.owner.check()
        if self._http is None:
            self.owner.take()
            self._http = _new_client(self._url, self._key, self._settings)
        return self._http


def _new_client(url: str, key: str | None, settings: ClientSettings) -> httpx.AsyncClient:
    try:
        import httpx
    except ImportError as error:
        raise errors.MissingExtra("client", "httpx") from error
    from .. import __version__

    here = is_loopback(urlsplit(url).hostname or "")
    if key is not None and not here and url.startswith("http://"):
        logger.warning("the key goes to %s without encryption: use https://", url)
    headers = {"User-Agent": f"jiyi/{__version__}", "Accept": "application/json"}
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    return httpx.AsyncClient(
        headers=headers,
        timeout=httpx.Timeout(settings.timeout_s, connect=min(settings.connect_timeout_s, settings.timeout_s)),
        limits=httpx.Limits(max_connections=MAX_CONNECTIONS, max_keepalive_connections=MAX_CONNECTIONS),
        follow_redirects=False,  # the key is for this server only
        trust_env=not here,  # no proxy for loopback addresses
    )


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises if it is invalid
    except (ValueError, TypeError, AttributeError):
        raise errors.SettingsError(f"url: {url!r} is no address of a server") from None
    if not is_address(url) or not parts.hostname or parts.query or parts.fragment:
        raise errors.SettingsError(f"url: must be the address of a server, such as http://127.0.0.1:8766, not {url!r}")
    if parts.username is not None or parts.password is not None:
        raise errors.SettingsError("url: carries a name or a password; a key is handed over as `key`, or as client.key")
    return url.rstrip("/")


def _plain_key(key: str | None) -> str | None:
    """Return a key that fits into a header; surrounding whitespace is stripped."""
    if key is None or not key.strip():
        return None
    if not re.fullmatch("[!-~]+", key.strip()):
        raise errors.SettingsError("client.key: is no key; one looks like jiyi_…")
    return key.strip()


def _json(body: Mapping[str, Any]) -> bytes:
    try:
        return to_json(body)
    except (PydanticSerializationError, UnicodeEncodeError, ValueError) as error:
        raise errors.InvalidInput("arguments", f"cannot be sent as JSON: {error}") from None


def _query(params: Mapping[str, Any]) -> Query:
    """Return query parameters: None is left out, lists are repeated."""
    found: list[tuple[str, str]] = []
    for name, value in params.items():
        if value is None:
            continue
        values = [value] if isinstance(value, str) or not isinstance(value, (list, tuple)) else value
        found += [(name, one if isinstance(one, str) else to_json(one).decode().strip('"')) for one in values]
    return tuple(found)


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
