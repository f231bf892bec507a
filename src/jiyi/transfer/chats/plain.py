"""OpenAI-style messages: a list of them, a message per line, or objects that each hold a list `messages`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import AliasChoices, Field, model_validator

from ...errors import InvalidInput
from ...models import Message
from .chat import Chat, Foreign, Gathered, Turn, Values, read_as
from .moments import Moment, Name

SOURCE = "messages"
AT_ONCE = 500  # messages of a long file that are handed on together

_SENT_AT = AliasChoices("sent_at", "timestamp", "created_at", "create_time", "created", "time", "date")
_SESSION = AliasChoices("session_id", "conversation_id", "thread_id")


class PlainMessage(Foreign):
    """`content` is text, or parts of which those with text count, as in `add`."""

    id: Name | None = None
    role: str
    content: str
    name: Name | None = Field(default=None, validation_alias=AliasChoices("name", "speaker"))
    sent_at: Moment | None = Field(default=None, validation_alias=_SENT_AT)
    session_id: Name | None = Field(default=None, validation_alias=_SESSION)

    @model_validator(mode="before")
    @classmethod
    def _text_of_parts(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        text = data.get("content", data.get("text"))
        if isinstance(text, list):
            text = Message.model_validate({"content": [part for part in text if _has_text(part)]}).text
        return {**data, "content": "" if text is None else text}


def _has_text(part: Any) -> bool:
    return isinstance(part, str) or (isinstance(part, dict) and isinstance(part.get("text"), str))


class PlainChat(Foreign):
    id: Name | None = Field(
        default=None, validation_alias=AliasChoices("id", "session_id", "conversation_id", "thread_id")
    )
    title: str | None = None
    created_at: Moment | None = Field(default=None, validation_alias=_SENT_AT)
    messages: tuple[Any, ...]


def is_message(value: Any) -> bool:
    return isinstance(value, dict) and "role" in value and bool({"content", "text", "tool_calls"} & value.keys())


def messages(values: Values, name: str) -> Iterator[Chat]:
    """A message after the other: one conversation, or those that `session_id` names."""
    gathered: Gathered | None = None
    counts: dict[str, int] = {}
    for place, value in values:
        said = read_as(place, PlainMessage, value)
        session = said.session_id or name
        if gathered is not None and (gathered.session_id != session or len(gathered) >= AT_ONCE):
            yield gathered.chat()
            gathered = None
        gathered = gathered or Gathered(session, source=SOURCE)
        gathered.take(_turn(place, said, session, counts.get(session, 0)))
        counts[session] = counts.get(session, 0) + 1
    if gathered is not None:
        yield gathered.chat()


def chats(values: Values, name: str) -> Iterator[Chat]:
    """Objects with `messages`. One without an id is called after the file and its place in it."""
    for number, (place, value) in enumerate(values, 1):
        chat = read_as(place, PlainChat, value)
        session = chat.id or (name if number == 1 else f"{name}#{number}")
        gathered = Gathered(session, source=SOURCE, title=chat.title)
        sent_at = chat.created_at
        for at, entry in enumerate(chat.messages):
            there = f"{place}.messages[{at}]"
            if not is_message(entry):
                raise InvalidInput(there, "is no message with role and content")
            said = read_as(there, PlainMessage, entry)
            sent_at = said.sent_at or sent_at
            gathered.take(_turn(there, said.model_copy(update={"sent_at": sent_at}), session, at))
        yield gathered.chat()


def _turn(place: str, said: PlainMessage, session: str, number: int) -> Turn:
    """Without an id of its own, a message is known again by its place in the conversation."""
    return Turn(
        place=place,
        id=said.id or f"{session}#{number}"[-256:],
        text=said.content,
        session=session,
        speaker=said.name,
        role=said.role,
        sent_at=said.sent_at,
    )
