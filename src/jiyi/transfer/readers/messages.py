"""OpenAI-style messages: a list, one per line, or objects with a list `messages`."""

from collections.abc import Iterator
from typing import Any

from pydantic import AliasChoices, Field, model_validator

from ...errors import InvalidInput
from ...models import Message
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

NAME = "messages"
BATCH = 500  # messages of a long conversation in one record

_SENT_AT = AliasChoices("sent_at", "timestamp", "created_at", "create_time", "created", "time", "date")
_SESSION = AliasChoices("session_id", "conversation_id", "thread_id")


class ForeignMessage(ForeignModel):
    """`content` is text or a list of parts; parts without text are ignored, as in `add`."""

    id: ForeignName | None = None
    role: str
    content: str
    name: ForeignName | None = Field(default=None, validation_alias=AliasChoices("name", "speaker"))
    sent_at: ForeignTime | None = Field(default=None, validation_alias=_SENT_AT)
    session_id: ForeignName | None = Field(default=None, validation_alias=_SESSION)

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


class ForeignConversation(ForeignModel):
    id: ForeignName | None = Field(
        default=None, validation_alias=AliasChoices("id", "session_id", "conversation_id", "thread_id")
    )
    title: str | None = None
    created_at: ForeignTime | None = Field(default=None, validation_alias=_SENT_AT)
    messages: tuple[Any, ...]


def is_message(value: Any) -> bool:
    return isinstance(value, dict) and "role" in value and bool({"content", "text", "tool_calls"} & value.keys())


def read_messages(values: Values, source: Source) -> Iterator[Conversation]:
    """Read single messages: one conversation, or several separated by `session_id`."""
    builder: ConversationBuilder | None = None
    counts: dict[str, int] = {}
    for place, value in values:
        message = validate_as(place, ForeignMessage, value)
        session = message.session_id or source.stem
        if builder is not None and (builder.session_id != session or len(builder) >= BATCH):
            yield builder.build()
            builder = None
        builder = builder or ConversationBuilder(session, format=NAME)
        builder.add(_turn(place, message, session, counts.get(session, 0)))
        counts[session] = counts.get(session, 0) + 1
    if builder is not None:
        yield builder.build()


def read_conversations(values: Values, source: Source) -> Iterator[Conversation]:
    """Read objects with `messages`; one without an id is named after the file and its position."""
    for number, (place, value) in enumerate(values, 1):
        chat = validate_as(place, ForeignConversation, value)
        session = chat.id or (source.stem if number == 1 else f"{source.stem}#{number}")
        builder = ConversationBuilder(session, format=NAME, title=chat.title)
        sent_at = chat.created_at
        for at, entry in enumerate(chat.messages):
            there = f"{place}.messages[{at}]"
            if not is_message(entry):
                raise InvalidInput(there, "is not a message with role and content")
            message = validate_as(there, ForeignMessage, entry)
            sent_at = message.sent_at or sent_at
            builder.add(_turn(there, message.model_copy(update={"sent_at": sent_at}), session, at))
        yield builder.build()


def _turn(place: str, message: ForeignMessage, session: str, number: int) -> Turn:
    """Without an id, a message is identified by its position in the conversation."""
    return Turn(
        place=place,
        id=message.id or f"{session}#{number}"[-256:],
        text=message.content,
        session=session,
        speaker=message.name,
        role=message.role,
        sent_at=message.sent_at,
    )


CONVERSATIONS = JsonReader(
    NAME, "conversations", lambda value: isinstance(value.get("messages"), list), read_conversations
)
MESSAGES = JsonReader(NAME, "conversations", is_message, read_messages)
