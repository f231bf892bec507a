"""ChatGPT's export, `conversations.json`: each conversation is a tree, because messages were edited and regenerated.

What the user saw last is the way from the root to `current_node`; only that is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field

from ...errors import InvalidInput
from .chat import BRANCH, INSTRUCTIONS, NO_TEXT, THOUGHTS, TOOLS, Chat, Foreign, Gathered, Turn, Values, read_as
from .moments import Moment, Name

SOURCE = "chatgpt"
SPOKEN = ("text", "multimodal_text")
REASONS = {
    "thoughts": THOUGHTS,
    "reasoning_recap": THOUGHTS,
    "user_editable_context": INSTRUCTIONS,
    "model_editable_context": INSTRUCTIONS,
    "code": TOOLS,
    "execution_output": TOOLS,
    "tether_quote": TOOLS,
    "tether_browsing_display": TOOLS,
    "system_error": TOOLS,
}


class Author(Foreign):
    role: str


class Content(Foreign):
    content_type: str = "text"
    parts: tuple[Any, ...] = ()


class NodeMessage(Foreign):
    id: Name | None = None
    author: Author
    create_time: Moment | None = None
    content: Content | None = None
    recipient: str | None = None
    metadata: dict[str, Any] | None = None


class Node(Foreign):
    message: NodeMessage | None = None
    parent: Name | None = None
    children: tuple[Name, ...] = ()


class ChatGptChat(Foreign):
    id: Name | None = None
    conversation_id: Name | None = None
    title: str | None = None
    create_time: Moment | None = None
    current_node: Name | None = None
    mapping: dict[str, Node] = Field(default_factory=dict)


def chatgpt(values: Values, name: str) -> Iterator[Chat]:
    for number, (place, value) in enumerate(values):
        chat = read_as(place, ChatGptChat, value)
        session = chat.conversation_id or chat.id or f"{name}#{number}"
        gathered = Gathered(session, source=SOURCE, title=chat.title or None)
        way = _way(place, chat)
        sent_at = chat.create_time
        for node_id in way:
            message = chat.mapping[node_id].message
            if message is None:  # the root
                continue
            sent_at = message.create_time or sent_at
            reason = _reason(message)
            if reason is not None:
                gathered.leave_out(reason)
                continue
            gathered.take(
                Turn(
                    place=f"{place}.mapping.{node_id}",
                    id=message.id or node_id,
                    text=_text(message),
                    session=session,
                    speaker=None,
                    role=message.author.role,
                    sent_at=sent_at,
                )
            )
        seen = set(way)
        for node_id, node in chat.mapping.items():
            if node_id not in seen and node.message is not None and _reason(node.message) is None:
                gathered.leave_out(BRANCH)
        yield gathered.chat()


def _way(place: str, chat: ChatGptChat) -> list[str]:
    """From the root to the present end; where the file does not name it, to the newest leaf."""
    end = chat.current_node if chat.current_node in chat.mapping else _newest_leaf(chat)
    way: list[str] = []
    seen: set[str] = set()
    while end is not None and end in chat.mapping:
        if end in seen:
            raise InvalidInput(f"{place}.mapping.{end}", "is its own ancestor: the conversation is damaged")
        seen.add(end)
        way.append(end)
        end = chat.mapping[end].parent
    return way[::-1]


def _newest_leaf(chat: ChatGptChat) -> str | None:
    leaves = [
        (node.message.create_time.timestamp() if node.message and node.message.create_time else 0.0, at, node_id)
        for at, (node_id, node) in enumerate(chat.mapping.items())
        if not node.children
    ]
    return max(leaves)[2] if leaves else None


def _reason(message: NodeMessage) -> str | None:
    """Why it is nothing that was said, if so."""
    kind = message.content.content_type if message.content is not None else "text"
    if message.author.role in ("user", "assistant"):
        if kind in REASONS:
            return REASONS[kind]
        if message.recipient not in (None, "all"):
            return TOOLS  # the assistant speaks to a tool
        if (message.metadata or {}).get("is_visually_hidden_from_conversation"):
            return INSTRUCTIONS
        if kind not in SPOKEN or not _text(message).strip():
            return NO_TEXT
        return None
    return INSTRUCTIONS if message.author.role == "system" else TOOLS


def _text(message: NodeMessage) -> str:
    """Written parts, and what was spoken aloud."""
    parts = message.content.parts if message.content is not None else ()
    texts = (part if isinstance(part, str) else part.get("text") if isinstance(part, dict) else None for part in parts)
    return "\n".join(text for text in texts if isinstance(text, str) and text.strip())
