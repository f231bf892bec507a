"""Asking a language model. `resolve` turns settings into an `Llm`; one file per provider.

A model makes memories better and is never needed to keep or to find them. Whatever it answers is foreign input.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import SettingsError

if TYPE_CHECKING:
    from ..metrics import Meter
    from ..settings import Settings
    from .budget import Ledger
    from .client import Llm

# Where a provider is found when no address is given; None: the client package knows.
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
NEED_NO_KEY = ("ollama", "vllm", "lmstudio", "llamacpp")


@dataclass(frozen=True, slots=True)
class Usage:
    """What asking has cost."""

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
class Question:
    """What a model is asked: `schema` is the JSON schema of the answer, for servers that can hold a model to it."""

    task: str
    system: str
    user: str
    schema: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What it said, unread. `cut_off`: it ran out of tokens."""

    text: str
    cut_off: bool
    usage: Usage | None  # None: the server did not say


class ChatModel(Protocol):
    """One way to a model: one try, no budget, no second try. Errors are Jiyi's."""

    @property
    def id(self) -> str:
        """Names the model on what it produced."""

    async def reply(self, question: Question) -> Reply:
        """The answer to one question."""

    async def close(self) -> None:
        """Let go of connections."""


def resolve(settings: Settings, ledger: Ledger | None = None, meter: Meter | None = None) -> Llm | None:
    """The model that the settings name, or None if they name none."""
    if settings.llm.model is None:
        return None
    if settings.llm.base_url is None and settings.llm.provider not in ADDRESSES:
        raise SettingsError(
            f"llm.provider: {settings.llm.provider!r} has no address of its own; "
            f"set LLM_BASE_URL, or use one of {', '.join(ADDRESSES)}"
        )
    from .client import Llm
    from .openai import OpenAIChat

    return Llm(OpenAIChat(settings.llm.model, settings.llm), settings.llm, ledger, meter)
