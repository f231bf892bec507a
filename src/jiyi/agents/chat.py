"""Chat models as functions: asking one, and reading its reply."""

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import InvalidInput

Turn = dict[str, str]  # role and content
Chat = Callable[[list[Turn]], Any]


async def ask(chat: Chat, messages: Sequence[Turn]) -> str:
    """Return the model's answer. A synchronous `chat` runs in a thread."""
    asked = list(messages)
    if inspect.iscoroutinefunction(chat) or inspect.iscoroutinefunction(getattr(chat, "__call__", None)):  # noqa: B004
        reply = await chat(asked)
    else:
        reply = await asyncio.to_thread(chat, asked)
        if inspect.isawaitable(reply):
            reply = await reply
    return text_of_reply(reply)


def text_of_reply(reply: Any) -> str:
    """Return the text of a reply: a string, a message, or a reply of the OpenAI or Anthropic client."""
    if isinstance(reply, str):
        return reply
    content = part(reply, "content")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(text for block in content if isinstance(text := part(block, "text"), str))
    if choices := part(reply, "choices"):
        return part(part(choices[0], "message"), "content") or ""
    if isinstance(text := part(reply, "output_text"), str):
        return text
    raise InvalidInput("chat", f"must return text or a message with text, not {type(reply).__name__}")


def part(value: Any, name: str) -> Any:
    """Return a field of an object or of a mapping, or None: clients return objects, stored chats are mappings."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def with_text(content: Any, text: str, kind: str = "text") -> Any:
    """Return the content of a message with a text at its end. Recalled memories are added to the last message, because
    what comes before it is in the model's prompt cache as long as it stays the same."""
    if isinstance(content, str) or content is None:
        return "\n\n".join(filter(None, (content, text)))
    return [*content, {"type": kind, "text": text}]
