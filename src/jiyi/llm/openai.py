"""Any server that speaks OpenAI's `/chat/completions`."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal

from ..errors import LlmBadReply, LlmError, LlmRefused, LlmUnavailable, MissingExtra, SettingsError
from ..http_client import limit_response
from ..models import utc_now
from . import ADDRESSES, NEED_NO_KEY, Question, Reply, Usage

if TYPE_CHECKING:
    from ..settings import LLMSettings

CONNECT_TIMEOUT_S = 10.0
MOST_BYTES = 4_000_000  # of a reply with all its wrapping
LONGEST_PAUSE_S = 86_400.0
MOST_TOKENS = 10**8
BUSY = (408, 409, 425, 429)

Format = Literal["json_schema", "json_object", "plain"]
EASIER: dict[Format, Format] = {"json_schema": "json_object", "json_object": "plain"}
# What a server says that cannot do what the format asks for.
FORMAT_WORDS = ("response_format", "json_schema", "json_object", "schema", "structured", "grammar", "guided")


@dataclass(frozen=True, slots=True)
class Dialect:
    """Which parts of the protocol a server understands. It is found out by asking and then remembered."""

    format: Format = "json_schema"
    limit: Literal["max_tokens", "max_completion_tokens"] | None = "max_tokens"
    temperature: bool = True

    def easier(self, complaint: str) -> Dialect | None:
        """The dialect to try next when a request was not understood; None: that was not the reason."""
        said = complaint.lower()
        if self.limit == "max_tokens" and "max_completion_tokens" in said and "instead" in said:
            return replace(self, limit="max_completion_tokens")
        if self.limit and ("max_tokens" in said or "max_completion_tokens" in said):
            return replace(self, limit=None)  # more than the model can; without one it takes what is left
        if self.temperature and "temperature" in said:
            return replace(self, temperature=False)
        if self.format in EASIER and (not said.strip() or any(word in said for word in FORMAT_WORDS)):
            return replace(self, format=EASIER[self.format])
        return None


class OpenAIChat:
    def __init__(self, model: str, settings: LLMSettings) -> None:
        try:
            import openai
        except ImportError as error:
            raise MissingExtra("llm", "openai") from error
        if settings.api_key is None and settings.provider not in NEED_NO_KEY:
            raise SettingsError("llm: set LLM_API_KEY (any word, if the server asks none)")
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
            max_retries=0,  # ours know the budget
            default_headers={"Accept-Encoding": "identity"},  # a few bytes can unpack to gigabytes
            http_client=openai.DefaultAsyncHttpxClient(
                timeout=openai.Timeout(settings.timeout_s, connect=CONNECT_TIMEOUT_S),
                follow_redirects=False,
                event_hooks={"response": [limit_response(MOST_BYTES, LlmBadReply)]},
            ),
        )

    async def reply(self, question: Question) -> Reply:
        while True:
            try:
                body = await self._post(question)
            except _NotUnderstood as refusal:
                easier = self._dialect.easier(refusal.complaint)
                if easier is None:
                    raise LlmRefused(self._told(f"refused the request: {refusal.complaint}")) from None
                self._dialect = easier
                continue
            return read_completion(body, self.id)

    async def close(self) -> None:
        await self._client.close()

    async def _post(self, question: Question) -> bytes:
        try:
            raw = await self._client.chat.completions.with_raw_response.create(
                model=self._model,
                messages=[
                    {"role": "system", "content": question.system},
                    {"role": "user", "content": question.user},
                ],
                **self._options(question),
            )
        except self._openai.APIStatusError as error:
            raise self._refusal(error) from None
        except self._openai.APIConnectionError as error:
            cause: BaseException = error.__cause__ or error
            if isinstance(cause, LlmError):
                raise cause from None
            raise LlmUnavailable(self._told(f"was not reached: {type(cause).__name__} {cause}")) from error
        except self._openai.OpenAIError as error:
            raise LlmBadReply(self._told(f"failed: {type(error).__name__} {error}")) from error
        body: bytes = raw.http_response.content
        return body

    def _options(self, question: Question) -> dict[str, Any]:
        options: dict[str, Any] = {}
        if self._dialect.temperature:
            options["temperature"] = self._temperature
        if self._dialect.limit:
            options[self._dialect.limit] = self._max_tokens
        if self._dialect.format == "json_schema":
            schema = {"name": question.task, "strict": True, "schema": question.schema}
            options["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif self._dialect.format == "json_object":
            options["response_format"] = {"type": "json_object"}
        return options

    def _refusal(self, error: Any) -> Exception:
        status: int = error.status_code
        complaint = _complaint(error)
        if status in (400, 422):
            return _NotUnderstood(complaint)
        if status in BUSY or status >= 500:
            pause = _pause(error.response.headers)
            return LlmUnavailable(self._told(f"answered {status}: {complaint}"), retry_after_s=pause)
        if status < 400:
            return LlmRefused(self._told(f"answered {status}, a redirect: set LLM_BASE_URL to where it leads"))
        hint = {
            401: " (check LLM_API_KEY)",
            403: " (check LLM_API_KEY)",
            404: " (check LLM_MODEL, and LLM_BASE_URL, which mostly ends in /v1)",
        }.get(status, "")
        return LlmRefused(self._told(f"answered {status}{hint}: {complaint}"))

    def _told(self, what: str) -> str:
        """A message for people: short, and without the key, which some servers repeat."""
        line = " ".join(what.replace(self._key, "***").split()) if len(self._key) > 4 else " ".join(what.split())
        return f"{self.id} {line[:400]}"


class _NotUnderstood(Exception):
    def __init__(self, complaint: str) -> None:
        self.complaint = complaint


def _complaint(error: Any) -> str:
    """The server's own words, wherever it put them."""
    body = error.body
    if isinstance(body, dict):
        body = body.get("error", body)
    if isinstance(body, dict):
        words = [str(body[name]) for name in ("message", "detail", "code", "param") if body.get(name)]
        return " ".join(words)[:2_000]
    return str(body or "")[:2_000]


def _pause(headers: Any) -> float | None:
    """For how many seconds the server wants to be left alone."""
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
    return min(max(seconds, 0.0), LONGEST_PAUSE_S) if isfinite(seconds) else None


def read_completion(body: bytes, name: str) -> Reply:
    """What was said, out of the protocol's wrapping, in which anything may be missing or of another type."""
    try:
        found = json.loads(body)
        choice = found["choices"][0]
        message = choice["message"]
        finish = choice.get("finish_reason")
        content = message.get("content")
    except (ValueError, RecursionError) as error:
        start = body[:60].decode(errors="replace")
        raise LlmBadReply(f"{name} answered with no JSON ({type(error).__name__}): it begins {start!r}") from None
    except (AttributeError, KeyError, IndexError, TypeError):
        told = found.get("error") if isinstance(found, dict) else None
        raise LlmBadReply(f"{name} answered with no completion" + (f": {str(told)[:200]}" if told else "")) from None
    if message.get("refusal"):
        raise LlmRefused(f"{name} refuses: {str(message['refusal'])[:200]}")
    if finish == "content_filter":
        raise LlmRefused(f"{name} refuses: its content filter stopped the reply")
    if isinstance(content, list):  # some servers answer in parts
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "".join(text for text in texts if isinstance(text, str)) or None
    if not isinstance(content, str) or not content.strip():
        instead = "a call of a tool" if message.get("tool_calls") else f"no text (finish_reason {finish!r})"
        raise LlmBadReply(f"{name} answered with {instead}")
    return Reply(text=content, cut_off=finish == "length", usage=_usage(found))


def _usage(completion: dict[str, Any]) -> Usage | None:
    usage = completion.get("usage")
    if not isinstance(usage, dict):
        return None
    asked, answered = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if type(asked) is int and type(answered) is int and 0 <= asked < MOST_TOKENS and 0 <= answered < MOST_TOKENS:
        return Usage(1, asked, answered)
    return None
