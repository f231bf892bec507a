"""ChatGPT's export, `conversations.json`: trees of edited and regenerated messages, of which one path is read.

Custom instructions come with each conversation. The newest ones of the file become memories: the lines that the user
wrote about himself, and those on how to be answered."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pydantic import Field

from ...errors import InvalidInput
from ...models import CandidateMemory
from ...write.extract import statement_type
from ..records import (
    BRANCH,
    CUSTOM,
    INSTRUCTIONS,
    NO_TEXT,
    REASONING,
    TOOLS,
    Conversation,
    ConversationBuilder,
    ForeignModel,
    ForeignName,
    ForeignTime,
    ImportedMemory,
    JsonReader,
    Turn,
    validate_as,
)
from ..sources import Source, Values

NAME = "chatgpt"
TEXT_TYPES = ("text", "multimodal_text")
SKIPPED_TYPES = {
    "thoughts": REASONING,
    "reasoning_recap": REASONING,
    "user_editable_context": CUSTOM,
    "model_editable_context": INSTRUCTIONS,
    "code": TOOLS,
    "execution_output": TOOLS,
    "tether_quote": TOOLS,
    "tether_browsing_display": TOOLS,
    "system_error": TOOLS,
}


class Author(ForeignModel):
    role: str


class Content(ForeignModel):
    content_type: str = "text"
    parts: tuple[Any, ...] = ()
    user_profile: str | None = None  # custom instructions, between sentences for the model
    user_instructions: str | None = None


class NodeMessage(ForeignModel):
    id: ForeignName | None = None
    author: Author
    create_time: ForeignTime | None = None
    content: Content | None = None
    recipient: str | None = None
    metadata: dict[str, Any] | None = None


class Node(ForeignModel):
    message: NodeMessage | None = None
    parent: ForeignName | None = None
    children: tuple[ForeignName, ...] = ()


class ChatGptChat(ForeignModel):
    id: ForeignName | None = None
    conversation_id: ForeignName | None = None
    title: str | None = None
    create_time: ForeignTime | None = None
    current_node: ForeignName | None = None
    mapping: dict[str, Node] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomInstructions:
    """Custom instructions of the user in ChatGPT's settings."""

    place: str
    at: datetime | None
    about_user: str
    about_answers: str

    def memories(self) -> Iterator[ImportedMemory]:
        wishes = [(line, "preference") for line in self.about_answers.splitlines()]
        for line, kind in [*((line, statement_type(line)) for line in self.about_user.splitlines()), *wishes]:
            if text := " ".join(line.split()):
                memory = CandidateMemory(
                    content=text, memory_type=kind, metadata={NAME: "custom instructions"}, occurred_at=self.at
                )
                yield ImportedMemory(place=self.place, memory=memory)


_FENCED = re.compile(r"```(.*?)```", re.DOTALL)


def _custom_instructions(place: str, message: NodeMessage, at: datetime | None) -> CustomInstructions | None:
    """Return the custom instructions in a message: those in its metadata, or what is fenced in its text."""
    if message.content is None or message.content.content_type != "user_editable_context":
        return None
    told = (message.metadata or {}).get("user_context_message_data")
    told = told if isinstance(told, dict) else {}
    texts = []
    for field, shown in (
        ("about_user_message", message.content.user_profile),
        ("about_model_message", message.content.user_instructions),
    ):
        fenced = _FENCED.search(shown or "")
        texts.append(told[field] if isinstance(told.get(field), str) else fenced[1] if fenced else "")
    return CustomInstructions(place=place, at=at, about_user=texts[0], about_answers=texts[1])


LONG_AGO = datetime.min.replace(tzinfo=UTC)


def read(values: Values, source: Source) -> Iterator[Conversation | ImportedMemory]:
    newest: CustomInstructions | None = None
    for number, (place, value) in enumerate(values):
        chat = validate_as(place, ChatGptChat, value)
        session = chat.conversation_id or chat.id or f"{source.stem}#{number}"
        builder = ConversationBuilder(session, format=NAME, title=chat.title or None)
        path = _path(place, chat)
        sent_at = chat.create_time
        for node_id in path:
            message = chat.mapping[node_id].message
            if message is None:  # the root
                continue
            sent_at = message.create_time or sent_at
            custom = _custom_instructions(f"{place}.mapping.{node_id}", message, sent_at)
            if custom is not None and (newest is None or (custom.at or LONG_AGO) > (newest.at or LONG_AGO)):
                newest = custom
            if (reason := _skip_reason(message)) is not None:
                builder.skip(reason)
                continue
            builder.add(
                Turn(
                    place=f"{place}.mapping.{node_id}",
                    id=message.id or node_id,
                    text=_text(message),
                    role=message.author.role,
                    sent_at=sent_at,
                )
            )
        for node_id, node in chat.mapping.items():
            if node_id not in path and node.message is not None and _skip_reason(node.message) is None:
                builder.skip(BRANCH)
        yield builder.build()
    if newest is not None:
        yield from newest.memories()


def _path(place: str, chat: ChatGptChat) -> dict[str, None]:
    """Path from the root to `current_node`, or to the newest leaf if the file does not name it."""
    end = chat.current_node if chat.current_node in chat.mapping else _newest_leaf(chat)
    path: dict[str, None] = {}
    while end is not None and end in chat.mapping:
        if end in path:
            raise InvalidInput(f"{place}.mapping.{end}", "is its own ancestor: the conversation is damaged")
        path[end] = None
        end = chat.mapping[end].parent
    return dict(reversed(path.items()))


def _newest_leaf(chat: ChatGptChat) -> str | None:
    leaves = [
        (node.message.create_time.timestamp() if node.message and node.message.create_time else 0.0, at, node_id)
        for at, (node_id, node) in enumerate(chat.mapping.items())
        if not node.children
    ]
    return max(leaves)[2] if leaves else None


def _skip_reason(message: NodeMessage) -> str | None:
    """Return the reason to skip a message, or None."""
    kind = message.content.content_type if message.content is not None else "text"
    if message.author.role in ("user", "assistant"):
        if kind in SKIPPED_TYPES:
            return SKIPPED_TYPES[kind]
        if message.recipient not in (None, "all"):
            return TOOLS  # a call of a tool
        if (message.metadata or {}).get("is_visually_hidden_from_conversation"):
            return INSTRUCTIONS
        if kind not in TEXT_TYPES or not _text(message).strip():
            return NO_TEXT
        return None
    return INSTRUCTIONS if message.author.role == "system" else TOOLS


def _text(message: NodeMessage) -> str:
    """Text parts and transcripts of audio."""
    parts = message.content.parts if message.content is not None else ()
    texts = (part if isinstance(part, str) else part.get("text") if isinstance(part, dict) else None for part in parts)
    return "\n".join(text for text in texts if isinstance(text, str) and text.strip())


READER = JsonReader(NAME, "conversations", lambda value: isinstance(value.get("mapping"), dict), read)
