"""Claude's memories of its user, in an export: `memories.json`, or a file per account in a folder `memories`.

An object has a text on the user, `conversations_memory`, a text for each project, and files of notes. The texts are
Markdown; each paragraph and each list entry becomes a fact."""

from collections.abc import Iterator
from typing import Any

from pydantic import JsonValue

from ...models import CandidateMemory
from ..records import ForeignModel, ForeignTime, ImportedMemory, JsonReader, validate_as
from ..sources import Source, Values
from .claude import NAME
from .markdown import passages


class MemoryFile(ForeignModel):
    path: str | None = None
    content: str = ""
    updated_at: ForeignTime | None = None


class ClaudeMemory(ForeignModel):
    conversations_memory: str | None = None
    project_memories: dict[str, Any] | tuple[Any, ...] | None = None  # text by the id of the project
    memory_files: tuple[MemoryFile, ...] | None = None
    updated_at: ForeignTime | None = None


def is_claude_memory(value: dict[str, Any]) -> bool:
    return not value.keys().isdisjoint({"conversations_memory", "project_memories", "memory_files"})


def read(values: Values, source: Source) -> Iterator[ImportedMemory]:
    for place, value in values:
        known = validate_as(place, ClaudeMemory, value)
        texts: list[tuple[str, str, dict[str, JsonValue], ForeignTime | None]] = [
            ("conversations_memory", known.conversations_memory or "", {}, known.updated_at)
        ]
        projects = known.project_memories if isinstance(known.project_memories, dict) else {}
        texts += [
            (f"project_memories.{project}", text, {"project": project}, known.updated_at)
            for project, text in projects.items()
            if isinstance(text, str)
        ]
        texts += [
            (f"memory_files[{at}]", file.content, {"file": file.path}, file.updated_at or known.updated_at)
            for at, file in enumerate(known.memory_files or ())
        ]
        for field, text, about, at in texts:
            for section, passage in passages(text):
                origin = {**about, **({"section": section} if section else {})}
                memory = CandidateMemory(content=passage, memory_type="fact", metadata={NAME: origin}, occurred_at=at)
                yield ImportedMemory(place=f"{place}.{field}", memory=memory)


READER = JsonReader(NAME, "memories", is_claude_memory, read)
