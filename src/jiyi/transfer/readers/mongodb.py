"""Documents of MongoDB with a `narrative` or a `summary` and an owner: `memunits`, `messages`, `episodic_memories`,
`semantic_memories`, `event_logs`, `behavior_histories` and `profiles`. `jiyi import mongodb://…` fetches them, and
`mongoexport` writes the same."""

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import AliasChoices, BeforeValidator, Field, JsonValue

from ...models import CandidateMemory
from ..records import (
    ConversationBuilder,
    ForeignModel,
    ForeignName,
    ForeignTime,
    ImportedMemory,
    ImportedMessage,
    JsonReader,
    Turn,
    validate_as,
)
from ..sources import Source, Values

NAME = "mongodb"
TYPES = {
    "memunits": "episode",
    "episodic_memories": "episode",
    "event_logs": "event",
    "behavior_histories": "behavior",
    "profiles": "profile",
    "group_profiles": "group_profile",
}
TEXTS = ("content", "text", "message")  # names of the text of a message
MESSAGE = "message"  # a type that only messages can have


class _Message(ForeignModel):
    id: ForeignName | None = Field(default=None, validation_alias=AliasChoices("id", "message_id"))
    text: str = Field(validation_alias=AliasChoices(*TEXTS))
    role: str = "user"
    speaker: ForeignName | None = Field(
        default=None, validation_alias=AliasChoices("speaker", "speaker_name", "name", "sender", "speaker_id")
    )
    sent_at: ForeignTime | None = Field(
        default=None, validation_alias=AliasChoices("timestamp", "sent_at", "create_time", "created_at")
    )


def _readable(value: Any) -> Any:
    """Leave out what has no text."""
    some = [one for one in value if isinstance(one, dict)] if isinstance(value, (list, tuple)) else []
    texts = [next((one[name] for name in TEXTS if name in one), None) for one in some]
    return [one for one, text in zip(some, texts, strict=True) if isinstance(text, str)]


class _Document(ForeignModel):
    event_id: ForeignName | None = None
    unit_id: ForeignName | None = None
    user_id: ForeignName | None = None
    user_id_list: tuple[ForeignName, ...] = ()
    agent_id: ForeignName | None = None
    session_id: ForeignName | None = None
    group_id: ForeignName | None = None
    memory_type: str | None = None
    status: str = "active"
    narrative: str | None = None
    summary: str | None = None
    subject: str | None = None
    keywords: list[str] | None = None
    tags: list[str] | None = None
    importance_score: float | None = Field(default=None, ge=0, le=1)
    timestamp: ForeignTime | None = None
    expires_at: ForeignTime | None = None
    collection: str | None = None
    memunit_id_list: tuple[ForeignName, ...] = ()
    original_data: Annotated[tuple[_Message, ...], BeforeValidator(_readable)] = ()
    digest: str | None = None

    @property
    def owners(self) -> tuple[str | None, ...]:
        return (self.user_id,) if self.user_id else self.user_id_list or (None,)

    @property
    def is_unit(self) -> bool:
        return self.unit_id is not None and self.event_id is None

    @property
    def is_own_unit(self) -> bool:
        """Return True for a unit that Jiyi has made of messages and memories, which have documents of their own."""
        return self.is_unit and self.digest is not None

    @property
    def is_message(self) -> bool:
        """Return True for a memory that repeats its message."""
        same = len(self.original_data) == 1 and self.original_data[0].text == self.narrative
        return self.memory_type == MESSAGE and same


def is_document(value: Any) -> bool:
    if not isinstance(value, dict) or not ("user_id" in value or "user_id_list" in value):
        return False
    return "narrative" in value or ("summary" in value and ("event_id" in value or "unit_id" in value))


def read(values: Values, source: Source) -> Iterator[ImportedMemory | ImportedMessage]:
    """Yield one memory per active document that has a text, and the messages of units, for each of its users."""
    for place, value in values:
        document = validate_as(place, _Document, value)
        if document.status != "active" or document.is_own_unit:
            continue
        if document.is_unit or document.is_message:
            yield from _messages(place, document)
        text = document.narrative or document.summary
        if document.is_message or not text or not text.strip():
            continue
        kind = TYPES.get(document.collection or source.stem, document.memory_type or "fact")
        origin: dict[str, JsonValue] = {"id": document.event_id or document.unit_id}
        if document.subject is not None:
            origin["subject"] = document.subject
        if document.memunit_id_list:
            origin["unit_ids"] = list(document.memunit_id_list)
        for user_id in document.owners:
            yield ImportedMemory(
                place=place,
                memory=CandidateMemory(
                    content=text,
                    memory_type="fact" if kind == MESSAGE else kind,
                    tags=tuple(document.tags or ()),
                    importance=document.importance_score,
                    metadata={NAME: origin},
                    occurred_at=document.timestamp,
                    expires_at=document.expires_at,
                ),
                user_id=user_id,
                agent_id=document.agent_id,
                session_id=document.session_id,
                group_id=document.group_id,
            )


def _messages(place: str, document: _Document) -> Iterator[ImportedMessage]:
    """Yield the messages of a document. Those of a unit without a session make a session of their own."""
    unit_id = document.unit_id or next(iter(document.memunit_id_list), None)
    session_id = document.session_id or document.unit_id
    builder = ConversationBuilder(session_id or NAME, format=NAME)
    for number, said in enumerate(document.original_data):
        builder.add(
            Turn(
                place=place,
                id=said.id or f"{unit_id}-{number}",
                text=said.text,
                role=said.role,
                speaker=said.speaker,
                sent_at=said.sent_at or document.timestamp,
            )
        )
    for user_id in document.owners:
        for message in builder.build().messages:
            yield ImportedMessage(
                message=message,
                metadata=None if unit_id is None else {NAME: {"unit_id": unit_id}},
                user_id=user_id,
                agent_id=document.agent_id,
                session_id=session_id,
                group_id=document.group_id,
            )


READER = JsonReader(NAME, "memories", is_document, read)
