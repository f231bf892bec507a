"""The result of mem0's `get_all`: `{"results": [{"id", "memory", "created_at", …}, …]}`, or the list alone."""

from collections.abc import Iterator
from typing import Any

from pydantic import AliasChoices, Field, JsonValue

from ...errors import InvalidInput
from ...models import CandidateMemory
from ..records import ForeignModel, ForeignName, ForeignTime, ImportedMemory, JsonReader, validate_as
from ..sources import Source, Values

NAME = "mem0"


class _Memory(ForeignModel):
    id: ForeignName | None = None
    memory: str
    metadata: dict[str, JsonValue] | None = None
    categories: list[str] | None = None
    created_at: ForeignTime | None = None
    updated_at: ForeignTime | None = None
    expires_at: ForeignTime | None = Field(default=None, validation_alias="expiration_date")
    user_id: ForeignName | None = None
    agent_id: ForeignName | None = None
    session_id: ForeignName | None = Field(default=None, validation_alias="run_id")


class _Relation(ForeignModel):
    source: str
    relationship: str = Field(validation_alias=AliasChoices("relationship", "relation"))
    target: str = Field(validation_alias=AliasChoices("target", "destination"))


def is_mem0(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    results = value.get("results")
    if isinstance(results, list):
        return not results or is_mem0(results[0])
    return isinstance(value.get("memory"), str) and "content" not in value


def read(values: Values, source: Source) -> Iterator[ImportedMemory]:
    """Yield each memory with its own times, and each relation of mem0's graph as a fact."""
    for place, value in values:
        if isinstance(value, dict) and isinstance(value.get("results"), list):
            owners: set[str | None] = set()
            for at, entry in enumerate(value["results"]):
                memory = _memory(f"{place}.results[{at}]", entry)
                owners.add(memory.user_id)
                yield memory
            owner = owners.pop() if len(owners) == 1 else None  # relations name none
            relations = value.get("relations") or ()
            if not isinstance(relations, (list, tuple)):
                raise InvalidInput(f"{place}.relations", "must be a list")
            for at, entry in enumerate(relations):
                yield _relation(f"{place}.relations[{at}]", entry, owner)
        else:
            yield _memory(place, value)


def _memory(place: str, value: object) -> ImportedMemory:
    read = validate_as(place, _Memory, value)
    origin: dict[str, JsonValue] = {"id": read.id}
    if read.updated_at is not None:
        origin["updated_at"] = read.updated_at.isoformat()
    return ImportedMemory(
        place=place,
        memory=CandidateMemory(
            content=read.memory,
            tags=tuple(read.categories or ()),
            metadata={**(read.metadata or {}), NAME: origin},
            occurred_at=read.created_at,
            expires_at=read.expires_at,
        ),
        user_id=read.user_id,
        agent_id=read.agent_id,
        session_id=read.session_id,
    )


def _relation(place: str, value: object, owner: str | None) -> ImportedMemory:
    read = validate_as(place, _Relation, value)
    about: dict[str, JsonValue] = {"from": read.source, "relation": read.relationship, "to": read.target}
    text = f"{read.source} {read.relationship.replace('_', ' ')} {read.target}"
    memory = CandidateMemory(content=text, memory_type="fact", metadata={NAME: about})
    return ImportedMemory(place=place, memory=memory, user_id=owner)


READER = JsonReader(NAME, "memories", is_mem0, read)
