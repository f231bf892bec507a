"""Claude's export, `conversations.json`: conversations with `chat_messages`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field

from .chat import Chat, Foreign, Gathered, Turn, Values, read_as
from .moments import Moment, Name

SOURCE = "claude"
ROLES = {"human": "user"}


class ClaudeMessage(Foreign):
    uuid: Name | None = None
    sender: str
    text: str | None = None
    content: tuple[dict[str, Any], ...] | None = None
    created_at: Moment | None = None

    @property
    def said(self) -> str:
        """The blocks of text. `text` has them too, but with remarks in place of tools; old exports have only that."""
        blocks = [block.get("text") for block in self.content or () if block.get("type") == "text"]
        found = "\n".join(block for block in blocks if isinstance(block, str) and block.strip())
        return found if self.content else self.text or ""


class ClaudeChat(Foreign):
    uuid: Name | None = None
    name: str | None = None
    created_at: Moment | None = None
    chat_messages: tuple[ClaudeMessage, ...] = Field(default=())


def claude(values: Values, name: str) -> Iterator[Chat]:
    for number, (place, value) in enumerate(values):
        chat = read_as(place, ClaudeChat, value)
        session = chat.uuid or f"{name}#{number}"
        gathered = Gathered(session, source=SOURCE, title=chat.name or None)
        sent_at = chat.created_at
        for at, message in enumerate(chat.chat_messages):
            sent_at = message.created_at or sent_at
            role = message.sender.lower()
            gathered.take(
                Turn(
                    place=f"{place}.chat_messages[{at}]",
                    id=message.uuid or f"{session}#{at}",
                    text=message.said,
                    session=session,
                    speaker=None,
                    role=ROLES.get(role, role),
                    sent_at=sent_at,
                )
            )
        yield gathered.chat()
