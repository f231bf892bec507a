"""The `memory.jsonl` of MCP's reference memory server: entities with observations, and relations."""

from collections.abc import Iterator
from typing import Any

from ...errors import InvalidInput
from ...models import CandidateMemory
from ..records import ImportedMemory, JsonReader
from ..sources import Source, Values

METADATA = "mcp_memory_server"


def read(values: Values, source: Source) -> Iterator[ImportedMemory]:
    """Yield each observation and relation, and each entity without observations. The texts are complete statements
    ("Mei: likes tea"), so that importing a file twice adds nothing."""
    for place, value in values:
        if not isinstance(value, dict) or value.get("type") not in ("entity", "relation"):
            raise InvalidInput(place, 'is neither an entity nor a relation: {"type": "entity" or "relation", …}')
        for candidate in _candidates(value, place):
            yield ImportedMemory(place=place, memory=candidate)


def _candidates(entry: dict[str, Any], where: str) -> Iterator[CandidateMemory]:
    if entry["type"] == "relation":
        start, kind, end = (_text(entry, field, where) for field in ("from", "relationType", "to"))
        yield _candidate(f"{start} {kind.replace('_', ' ')} {end}", {"from": start, "relation": kind, "to": end})
        return
    entity, kind = _text(entry, "name", where), _text(entry, "entityType", where)
    observations = entry.get("observations", [])
    if not isinstance(observations, list) or not all(isinstance(one, str) for one in observations):
        raise InvalidInput(where, "observations must be a list of texts")
    texts = [one.strip() for one in observations if one.strip()]
    about = {"entity": entity, "entity_type": kind}
    for observation in texts or [kind]:
        yield _candidate(f"{entity}: {observation}", about)


def _candidate(text: str, about: dict[str, Any]) -> CandidateMemory:
    return CandidateMemory(content=text, memory_type="fact", metadata={METADATA: about})


def _text(entry: dict[str, Any], field: str, where: str) -> str:
    value = entry.get(field)
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(where, f"{field} must be a text")
    return value.strip()


READER = JsonReader("mcp", "memories", lambda value: value.get("type") in ("entity", "relation"), read)
