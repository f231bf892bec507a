"""What mem0's `get_all` returns: `{"results": [{"id", "memory", "created_at", …}, …]}`, or the list alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import AliasChoices, Field, JsonValue

from ...errors import InvalidInput
from ...models import CandidateMemory
from ..chats.chat import Foreign, Values, read_as
from ..chats.moments import Moment, Name
from .found import Found

SOURCE = "mem0"


class _Memory(Foreign):
    id: Name | None = None
    memory: str
    metadata: dict[str, JsonValue] | None = None
    categories: list[str] | None = None
    created_at: Moment | None = None
    updated_at: Moment | None = None
    expires_at: Moment | None = Field(default=None, validation_alias="expiration_date")
    user_id: Name | None = None
    agent_id: Name | None = None
    session_id: Name | None = Field(default=None, validation_alias="run_id")


class _Relation(Foreign):
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


def read_mem0(values: Values) -> Iterator[Found]:
    """A candidate for each memory, with its own times, and a fact for each relation of mem0's graph."""
    for place, value in values:
        if isinstance(value, dict) and isinstance(value.get("results"), list):
            for at, entry in enumerate(value["results"]):
                yield _found(f"{place}.results[{at}]", entry)
            relations = value.get("relations") or ()
            if not isinstance(relations, (list, tuple)):
                raise InvalidInput(f"{place}.relations", "must be a list")
            for at, entry in enumerate(relations):
                yield _related(f"{place}.relations[{at}]", entry)
        else:
            yield _found(place, value)


def _found(place: str, value: object) -> Found:
    read = read_as(place, _Memory, value)
    origin: dict[str, JsonValue] = {"id": read.id}
    if read.updated_at is not None:
        origin["updated_at"] = read.updated_at.isoformat()
    return Found(
        place=place,
        memory=CandidateMemory(
            text=read.memory,
            tags=tuple(read.categories or ()),
            metadata={**(read.metadata or {}), SOURCE: origin},
            occurred_at=read.created_at,
            expires_at=read.expires_at,
        ),
        user_id=read.user_id,
        agent_id=read.agent_id,
        session_id=read.session_id,
    )


def _related(place: str, value: object) -> Found:
    read = read_as(place, _Relation, value)
    about: dict[str, JsonValue] = {"from": read.source, "relation": read.relationship, "to": read.target}
    said = f"{read.source} {read.relationship.replace('_', ' ')} {read.target}"
    return Found(place=place, memory=CandidateMemory(text=said, type="fact", metadata={SOURCE: about}))
