"""What exporting, importing, backing up and verifying say they have done."""

from __future__ import annotations

from pydantic import Field

from ..models import Coverage, Value


class Exported(Value):
    """What was written by an export."""

    path: str
    format: str
    records: dict[str, int] = Field(description="how many of each kind; in Markdown, of each type of memory")
    size_bytes: int


class Backup(Value):
    """What was backed up, or restored."""

    path: str = Field(description="the file of the backup")
    store: str = Field(description="the store that it is of, or that it was restored into")
    users: int
    memories: int = Field(description="active ones")
    size_bytes: int


class MemoryImport(Value):
    """What became of an import of memories."""

    shape: str = Field(description="what the file was taken for: jiyi, mem0, mcp or markdown")
    read: dict[str, int] = Field(description="how many of each kind there were")
    new: dict[str, int] = Field(description="how many of each kind were not known already")
    notes: tuple[str, ...] = Field(default=(), description="what else a reader should know")


class Verification(Value):
    """What `verify` found."""

    memories: int = Field(description="how many were looked at, archived ones and those that are over too")
    drift: dict[str, int] = Field(default_factory=dict, description="what is not as it should be, by kind")
    repaired: dict[str, int] = Field(default_factory=dict, description="how much of that was set right, by kind")
    examples: tuple[str, ...] = Field(default=(), description="the first of each kind: which memory, and what about it")
    coverage: Coverage = Field(description="how many active memories can be found by meaning, and by keywords")

    @property
    def sound(self) -> bool:
        """Nothing is wrong, or everything that was is set right."""
        return self.drift == self.repaired
