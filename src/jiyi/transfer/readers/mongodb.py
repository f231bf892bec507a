"""Documents of MongoDB with a `narrative` or a `summary` and an owner: `memunits`, `episodic_memories`,
`semantic_memories`, `event_logs`, `behavior_histories` and `profiles`. `jiyi import mongodb://…` fetches them, and
`mongoexport` writes the same."""

from collections.abc import Iterator
from typing import Any

from pydantic import Field, JsonValue

from ...models import CandidateMemory
from ..records import ForeignModel, ForeignName, ForeignTime, ImportedMemory, JsonReader, validate_as
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
NOT_AGAIN = ("message",)  # types that only messages can have


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


def is_document(value: Any) -> bool:
    if not isinstance(value, dict) or not ("user_id" in value or "user_id_list" in value):
        return False
    return "narrative" in value or ("summary" in value and ("event_id" in value or "unit_id" in value))


def read(values: Values, source: Source) -> Iterator[ImportedMemory]:
    """Yield one memory per active document that has a text, for each of its users."""
    for place, value in values:
        document = validate_as(place, _Document, value)
        text = document.narrative or document.summary
        if not text or not text.strip() or document.status != "active":
            continue
        kind = TYPES.get(document.collection or source.stem, document.memory_type or "fact")
        origin: dict[str, JsonValue] = {"id": document.event_id or document.unit_id}
        if document.subject is not None:
            origin["subject"] = document.subject
        owners = (document.user_id,) if document.user_id else document.user_id_list or (None,)
        for user_id in owners:
            yield ImportedMemory(
                place=place,
                memory=CandidateMemory(
                    content=text,
                    memory_type="fact" if kind in NOT_AGAIN else kind,
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


READER = JsonReader(NAME, "memories", is_document, read)
