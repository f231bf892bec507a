"""Language models: one file per provider, and `resolve`, which makes a client from the settings. A model improves
memories; storing and searching never need one. Its replies are untrusted input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import SettingsError

if TYPE_CHECKING:
    from ..metrics import Meter
    from ..settings import Settings
    from .client import Ledger, LLMClient

# Default address of each provider; None: that of the client package.
ADDRESSES: Mapping[str, str | None] = {
    "openai": None,
    "ollama": "http://127.0.0.1:11434/v1",
    "vllm": "http://127.0.0.1:8000/v1",
    "lmstudio": "http://127.0.0.1:1234/v1",
    "llamacpp": "http://127.0.0.1:8080/v1",
    "deepseek": "https://api.deepseek.com/v1",
    "qwen": "https://dashscope.aliyuncs.com/compatible-mode/v1",
    "moonshot": "https://api.moonshot.cn/v1",
    "zhipu": "https://open.bigmodel.cn/api/paas/v4",
    "openrouter": "https://openrouter.ai/api/v1",
}
KEYLESS = ("ollama", "vllm", "lmstudio", "llamacpp")


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and calls used."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
        )

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class LLMRequest:
    """A filled-in prompt. `schema`: JSON schema of the reply, for servers that can enforce it."""

    task: str
    system: str
    user: str
    schema: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The text of a reply. `cut_off`: it ran out of tokens."""

    text: str
    cut_off: bool
    usage: Usage | None  # None: not reported


class LLM(Protocol):
    """A language model: one request, one reply. `LLMClient` adds the budget and retries.

    class Echo:
        id = "echo"

        async def reply(self, request):
            return Reply(text='{"memories": []}', cut_off=False, usage=None)

        async def close(self): ...

    `LlmUnavailable` means "try again later", `LlmRefused` "do not try again".
    """

    @property
    def id(self) -> str:
        """Name of the model, stored with its memories."""

    async def reply(self, request: LLMRequest) -> Reply:
        """Send one request and return the reply."""

    async def close(self) -> None:
        """Close connections."""


def resolve(
    settings: Settings, ledger: Ledger | None = None, meter: Meter | None = None, model: LLM | None = None
) -> LLMClient | None:
    """Make a client for a model, by default the one that the settings name; None if there is none."""
    if model is not None:
        from .client import LLMClient

        return LLMClient(model, settings.llm, ledger, meter)
    if settings.llm.model is None:
        return None
    if settings.llm.base_url is None and settings.llm.provider not in ADDRESSES:
        raise SettingsError(
            f"llm.provider: {settings.llm.provider!r} has no default address; "
            f"set JIYI_LLM__BASE_URL, for jiyi's commands also LLM_BASE_URL, or use one of {', '.join(ADDRESSES)}"
        )
    from .client import LLMClient
    from .openai import OpenAIChat

    return LLMClient(OpenAIChat(settings.llm.model, settings.llm), settings.llm, ledger, meter)
