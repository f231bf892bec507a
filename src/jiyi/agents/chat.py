"""Any chat model as a function: messages in, the answer out."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import InvalidInput

Turn = dict[str, str]  # role and content, as all chat models know it
Chat = Callable[[list[Turn]], Any]


async def ask(chat: Chat, messages: Sequence[Turn]) -> str:
    """The model's answer. `chat` may be asynchronous; if it is not, it runs in a thread."""
    called = list(messages)
    if inspect.iscoroutinefunction(chat) or inspect.iscoroutinefunction(getattr(chat, "__call__", None)):  # noqa: B004
        reply = await chat(called)
    else:
        reply = await asyncio.to_thread(chat, called)
        if inspect.isawaitable(reply):
            reply = await reply
    return text_of_reply(reply)


def text_of_reply(reply: Any) -> str:
    """The text of an answer: text itself, a message, or a reply of OpenAI's or Anthropic's client."""
    if isinstance(reply, str):
        return reply
    for look in (_message_text, _choices_text, _output_text):
        text = look(reply)
        if text is not None:
            return text
    raise InvalidInput("chat", f"must return text or a message with text, not {type(reply).__name__}")


def part(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _message_text(reply: Any) -> str | None:
    content = part(reply, "content")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(text for block in content if isinstance(text := part(block, "text"), str))
    return None


def _choices_text(reply: Any) -> str | None:
    choices = part(reply, "choices")
    if not choices:
        return None
    return part(part(choices[0], "message"), "content") or ""


def _output_text(reply: Any) -> str | None:
    text = part(reply, "output_text")
    return text if isinstance(text, str) else None
