"""Claude's export, `conversations.json`: conversations with `chat_messages`."""

from collections.abc import Iterator
from typing import Any

from pydantic import Field

from ..records import (
    Conversation,
    ConversationBuilder,
    ForeignModel,
    ForeignName,
    ForeignTime,
    JsonReader,
    Turn,
    validate_as,
)
from ..sources import Source, Values

NAME = "claude"
ROLES = {"human": "user"}


class ClaudeMessage(ForeignModel):
    uuid: ForeignName | None = None
    sender: str
    text: str | None = None
    content: tuple[dict[str, Any], ...] | None = None
    created_at: ForeignTime | None = None

    @property
    def full_text(self) -> str:
        """Text of the content blocks. `text` has placeholders for tools, but old exports have only that."""
        blocks = [block.get("text") for block in self.content or () if block.get("type") == "text"]
        found = "\n".join(block for block in blocks if isinstance(block, str) and block.strip())
        return found if self.content else self.text or ""


class ClaudeChat(ForeignModel):
    uuid: ForeignName | None = None
    name: str | None = None
    created_at: ForeignTime | None = None
    chat_messages: tuple[ClaudeMessage, ...] = Field(default=())


def read(values: Values, source: Source) -> Iterator[Conversation]:
    for number, (place, value) in enumerate(values):
        chat = validate_as(place, ClaudeChat, value)
        session = chat.uuid or f"{source.stem}#{number}"
        builder = ConversationBuilder(session, format=NAME, title=chat.name or None)
        sent_at = chat.created_at
        for at, message in enumerate(chat.chat_messages):
            sent_at = message.created_at or sent_at
            role = message.sender.lower()
            builder.add(
                Turn(
                    place=f"{place}.chat_messages[{at}]",
                    id=message.uuid or f"{session}#{at}",
                    text=message.full_text,
                    role=ROLES.get(role, role),
                    sent_at=sent_at,
                )
            )
        yield builder.build()


READER = JsonReader(NAME, "conversations", lambda value: isinstance(value.get("chat_messages"), list), read)
