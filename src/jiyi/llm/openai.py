"""Language models on servers with OpenAI's `/chat/completions`."""

import json
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any, Literal, Self, cast

from ..errors import LlmBadReply, LlmError, LlmRefused, LlmUnavailable, MissingExtra, SettingsError
from ..http_client import limit_response, without_password
from ..models import utc_now
from ..settings import LLMSettings
from . import ADDRESSES, KEYLESS, LLMRequest, Reply, Usage

CONNECT_TIMEOUT_S = 10.0
MAX_BYTES = 4_000_000  # of an HTTP reply
MAX_PAUSE_S = 86_400.0
MAX_TOKENS = 10**8
BUSY = (408, 409, 425, 429)

Format = Literal["json_schema", "json_object", "plain"]
FALLBACKS: dict[Format, Format] = {"json_schema": "json_object", "json_object": "plain"}
# Words in the error of a server that does not support the format.
FORMAT_WORDS = ("response_format", "json_schema", "json_object", "schema", "structured", "grammar", "guided")


@dataclass(frozen=True, slots=True)
class Dialect:
    """The parts of the protocol that a server supports, found out by its errors."""

    format: Format = "json_schema"
    limit: Literal["max_tokens", "max_completion_tokens"] | None = "max_tokens"
    temperature: bool = True

    def fallback(self, message: str) -> Self | None:
        """Return the dialect to try after an error message; None if the dialect was not the reason."""
        text = message.lower()
        if self.limit == "max_tokens" and "max_completion_tokens" in text and "instead" in text:
            return replace(self, limit="max_completion_tokens")
        if self.limit and ("max_tokens" in text or "max_completion_tokens" in text):
            return replace(self, limit=None)  # above the limit of the model; without one it uses what is left
        if self.temperature and "temperature" in text:
            return replace(self, temperature=False)
        if self.format in FALLBACKS and (not text.strip() or any(word in text for word in FORMAT_WORDS)):
            return replace(self, format=FALLBACKS[self.format])
        return None


class OpenAIChat:
    """A model on an OpenAI-compatible server."""

    def __init__(self, model: str, settings: LLMSettings) -> None:
        try:
            import openai
        except ImportError as error:
            raise MissingExtra("llm", "openai") from error
        if settings.api_key is None and settings.provider not in KEYLESS:
            raise SettingsError(
                "llm: set JIYI_LLM__API_KEY, for jiyi's commands also LLM_API_KEY (any text if it needs none)"
            )
        key = "none" if settings.api_key is None else settings.api_key.get_secret_value()
        self.id = f"{settings.provider}:{model}"
        self._model = model
        self._key = key
        self._temperature = settings.temperature
        self._max_tokens = settings.max_tokens
        self._dialect = Dialect("json_schema")
        self._openai = openai
        self._client = openai.AsyncOpenAI(
            api_key=key,
            base_url=settings.base_url or ADDRESSES.get(settings.provider),
            max_retries=0,  # LLMClient retries
            default_headers={"Accept-Encoding": "identity"},  # a compressed reply could unpack to gigabytes
            http_client=openai.DefaultAsyncHttpxClient(
                timeout=openai.Timeout(settings.timeout_s, connect=CONNECT_TIMEOUT_S),
                follow_redirects=False,
                event_hooks={"response": [limit_response(MAX_BYTES, LlmBadReply)]},
            ),
        )
        self.address = without_password(str(self._client.base_url)).rstrip("/")

    async def reply(self, request: LLMRequest) -> Reply:
        while True:
            try:
                body = await self._post(request)
            except _BadRequest as refusal:
                fallback = self._dialect.fallback(refusal.message)
                if fallback is None:
                    raise LlmRefused(self._message(f"refused the request: {refusal.message}")) from None
                self._dialect = fallback
                continue
            return read_completion(body, self.id)

    async def close(self) -> None:
        await self._client.close()

    async def _post(self, request: LLMRequest) -> bytes:
        try:
            raw = await self._client.chat.completions.with_raw_response.create(
                model=self._model,
                messages=[
                    {"role": "system", "content": request.system},
                    {"role": "user", "content": request.user},
                ],
                **self._options(request),
            )
        except self._openai.APIStatusError as error:
            raise self._refusal(error) from None
        except self._openai.APIConnectionError as error:
            cause: BaseException = error.__cause__ or error
            if isinstance(cause, LlmError):
                raise cause from None
            raise LlmUnavailable(self._message(f"was not reached: {type(cause).__name__} {cause}")) from error
        except self._openai.OpenAIError as error:
            raise LlmBadReply(self._message(f"failed: {type(error).__name__} {error}")) from error
        return cast(bytes, raw.http_response.content)

    def _options(self, request: LLMRequest) -> dict[str, Any]:
        options: dict[str, Any] = {}
        if self._dialect.temperature:
            options["temperature"] = self._temperature
        if self._dialect.limit:
            options[self._dialect.limit] = self._max_tokens
        if self._dialect.format == "json_schema":
            schema = {"name": request.task, "strict": True, "schema": request.schema}
            options["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif self._dialect.format == "json_object":
            options["response_format"] = {"type": "json_object"}
        return options

    def _refusal(self, error: Any) -> Exception:
        status: int = error.status_code
        message = _error_message(error)
        if status in (400, 422):
            return _BadRequest(message)
        if status in BUSY or status >= 500:
            pause = _pause(error.response.headers)
            return LlmUnavailable(self._message(f"answered {status}: {message}"), retry_after_s=pause)
        if status < 400:
            return LlmRefused(self._message(f"answered {status}, a redirect: set LLM_BASE_URL to its target"))
        hint = {
            401: " (check LLM_API_KEY)",
            403: " (check LLM_API_KEY)",
            404: " (check LLM_MODEL, and LLM_BASE_URL, which usually ends in /v1)",
        }.get(status, "")
        return LlmRefused(self._message(f"answered {status}{hint}: {message}"))

    def _message(self, what: str) -> str:
        """Return a short message without the key, which some servers repeat."""
        line = " ".join((what.replace(self._key, "***") if len(self._key) > 4 else what).split())
        return f"{self.id} {line[:400]}"


class _BadRequest(Exception):
    def __init__(self, message: str) -> None:
        self.message = message


def _error_message(error: Any) -> str:
    """Return the message of the server, wherever it is in the body."""
    body = error.body.get("error", error.body) if isinstance(error.body, dict) else error.body
    if isinstance(body, dict):
        body = " ".join(str(body[name]) for name in ("message", "detail", "code", "param") if body.get(name))
    return str(body or "")[:2_000]


def _pause(headers: Any) -> float | None:
    """Return the seconds to wait before a retry, if the server says so."""
    try:
        if "retry-after-ms" in headers:
            seconds = float(headers["retry-after-ms"]) / 1000
        elif headers.get("retry-after", "").strip().replace(".", "", 1).isdigit():
            seconds = float(headers["retry-after"])
        elif "retry-after" in headers:
            seconds = (parsedate_to_datetime(headers["retry-after"]) - utc_now()).total_seconds()
        else:
            return None
    except (TypeError, ValueError):
        return None
    return min(max(seconds, 0.0), MAX_PAUSE_S) if isfinite(seconds) else None


def read_completion(body: bytes, name: str) -> Reply:
    """Read the reply from a response, in which anything may be missing or of another type."""
    try:
        found = json.loads(body)
        choice = found["choices"][0]
        message = choice["message"]
        finish = choice.get("finish_reason")
        content = message.get("content")
    except (ValueError, RecursionError) as error:
        start = body[:60].decode(errors="replace")
        raise LlmBadReply(f"{name} did not return JSON ({type(error).__name__}): it begins {start!r}") from None
    except (AttributeError, KeyError, IndexError, TypeError):
        reason = found.get("error") if isinstance(found, dict) else None
        raise LlmBadReply(f"{name} returned no completion" + (f": {str(reason)[:200]}" if reason else "")) from None
    refusal = message.get("refusal") or (finish == "content_filter" and "its content filter stopped the reply")
    if refusal:
        raise LlmRefused(f"{name} refuses: {str(refusal)[:200]}")
    if isinstance(content, list):  # some servers answer in parts
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "".join(text for text in texts if isinstance(text, str)) or None
    if not isinstance(content, str) or not content.strip():
        instead = "a tool call" if message.get("tool_calls") else f"no text (finish_reason {finish!r})"
        raise LlmBadReply(f"{name} returned {instead}")
    return Reply(text=content, cut_off=finish == "length", usage=_usage(found))


def _usage(completion: dict[str, Any]) -> Usage | None:
    usage = completion.get("usage")
    if not isinstance(usage, dict):
        return None
    sent, received = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if type(sent) is int and type(received) is int and 0 <= sent < MAX_TOKENS and 0 <= received < MAX_TOKENS:
        return Usage(1, sent, received)
    return None
