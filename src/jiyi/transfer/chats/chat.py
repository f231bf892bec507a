"""What all readers give: conversations of messages that can be added, and why others were left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from ... import validation
from ...errors import InvalidInput
from ...models import Message

# Why a message is left out.
NO_TEXT = "no text (pictures, files, calls of tools)"
INSTRUCTIONS = "instructions to the assistant"
TOOLS = "output of tools"
THOUGHTS = "thoughts of the model"
BRANCH = "branches that were edited or regenerated away"
TOO_LONG = f"longer than {validation.MAX_TEXT:,} characters"

LEFT_OUT_ROLES = {"system": INSTRUCTIONS, "developer": INSTRUCTIONS, "tool": TOOLS, "function": TOOLS}

Values = Iterable[tuple[str, Any]]  # each with its place in the file
Reader = Callable[[Values, str], Iterator["Chat"]]  # with the file's name, for chats that have none


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """A conversation, or a part of a long one: several in a row may have the same session."""

    session_id: str
    source: str
    title: str | None
    messages: tuple[Message, ...]
    left_out: tuple[str, ...]  # why, once for each message
    mended: int  # messages with characters that cannot be stored, which were replaced


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message as a file has it."""

    place: str
    id: str
    text: str
    session: str | None
    speaker: str | None
    role: str
    sent_at: datetime | None


class Foreign(BaseModel):
    """What is not named here does not matter to us."""

    model_config = ConfigDict(frozen=True, extra="ignore")


F = TypeVar("F", bound=Foreign)


def read_as(place: str, model: type[F], value: object) -> F:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
        raise InvalidInput(place + path, first["msg"].removeprefix("Value error, ")) from None


class Gathered:
    """The messages of one conversation, while it is read."""

    def __init__(self, session_id: str, *, source: str, title: str | None = None) -> None:
        self.session_id = session_id
        self.source = source
        self.title = _storable(title).strip()[: validation.MAX_NAME] if title else None
        self._messages: list[Message] = []
        self._left_out: list[str] = []
        self._mended = 0

    def __len__(self) -> int:
        return len(self._messages) + len(self._left_out)

    def take(self, turn: Turn) -> None:
        """Keep it, if it is something that a person or the assistant said."""
        text = _storable(turn.text)
        reason = LEFT_OUT_ROLES.get(turn.role)
        if reason is None and not text.strip():
            reason = NO_TEXT
        if reason is None and len(text) > validation.MAX_TEXT:
            reason = TOO_LONG
        if reason is not None:
            self._left_out.append(reason)
            return
        self._mended += text != turn.text
        self._messages.append(
            Message(
                id=validation.name(f"{turn.place}.id", turn.id),
                role=validation.memory_type(f"{turn.place}.role", turn.role),
                speaker=validation.optional_name(f"{turn.place}.speaker", turn.speaker),
                text=text,
                sent_at=turn.sent_at,
            )
        )

    def leave_out(self, reason: str) -> None:
        self._left_out.append(reason)

    def chat(self) -> Chat:
        return Chat(
            session_id=validation.name("session", self.session_id),
            source=self.source,
            title=self.title,
            messages=tuple(self._messages),
            left_out=tuple(self._left_out),
            mended=self._mended,
        )


def _storable(text: str) -> str:
    """Exports hold halves of emoji and NULs; a message is worth more than those."""
    return (
        text.replace("\x00", "\N{REPLACEMENT CHARACTER}").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    )
