"""The file of MCP's reference memory server (`memory.jsonl`): entities with observations, and relations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ...errors import InvalidInput
from ...models import CandidateMemory
from .found import Found

SOURCE = "mcp_memory_server"


def read_graph(text: str, name: str = "FILE") -> list[CandidateMemory]:
    """A candidate for each observation and each relation, and for an entity of which nothing else is said.

    The statements are complete in themselves ("Mei: likes tea"), so that importing a file twice makes nothing new.
    """
    found: list[CandidateMemory] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            found.extend(_candidates(_entry(line, f"{name}, line {number}"), f"{name}, line {number}"))
    if not found:
        raise InvalidInput(name, "has no entities and no relations")
    return found


def found_in(value: object, where: str) -> Iterator[Found]:
    """The same for one value of the file."""
    for candidate in _candidates(_checked(value, where), where):
        yield Found(place=where, memory=candidate)


def _entry(line: str, where: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(where, f"is not JSON: {error}") from None
    return _checked(entry, where)


def _checked(entry: object, where: str) -> dict[str, Any]:
    if not isinstance(entry, dict) or entry.get("type") not in ("entity", "relation"):
        raise InvalidInput(where, 'is neither an entity nor a relation: {"type": "entity" or "relation", …}')
    return entry


def _candidates(entry: dict[str, Any], where: str) -> Iterator[CandidateMemory]:
    if entry["type"] == "relation":
        start, kind, end = (_text(entry, field, where) for field in ("from", "relationType", "to"))
        yield _candidate(f"{start} {kind.replace('_', ' ')} {end}", {"from": start, "relation": kind, "to": end})
        return
    entity, kind = _text(entry, "name", where), _text(entry, "entityType", where)
    observations = entry.get("observations", [])
    if not isinstance(observations, list) or not all(isinstance(one, str) for one in observations):
        raise InvalidInput(where, "observations must be a list of texts")
    said = [one.strip() for one in observations if one.strip()]
    about = {"entity": entity, "entity_type": kind}
    for observation in said or [kind]:
        yield _candidate(f"{entity}: {observation}", about)


def _candidate(text: str, about: dict[str, Any]) -> CandidateMemory:
    return CandidateMemory(text=text, type="fact", metadata={SOURCE: about})


def _text(entry: dict[str, Any], field: str, where: str) -> str:
    value = entry.get(field)
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(where, f"{field} must be a text")
    return value.strip()
