"""What would be done, as values: looked at first, then done exactly so or not at all."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from ..models import Time, Value


class Member(Value):
    """A memory that becomes part of another, as it was when the plan was made."""

    id: str
    version: int
    text: str


class Bundle(Value):
    """Old memories of one type and subject, and the one to three that take their place; none if they tell nothing."""

    memory_type: str
    subject: str | None
    agent_id: str | None = None
    group_id: str | None = None
    session_id: str | None = None
    level: int = Field(description="1: compressed for the first time")
    members: tuple[Member, ...]
    texts: tuple[str, ...]
    made_by: str = Field(description="`extract`, or which language model with which prompt")
    note: str | None = Field(default=None, description="why a language model's text was not taken")


class CompressPlan(Value):
    """What compressing a user's memories would do."""

    user_id: str
    made_at: Time
    bundles: tuple[Bundle, ...]

    @property
    def before(self) -> int:
        return sum(len(bundle.members) for bundle in self.bundles)

    @property
    def after(self) -> int:
        return sum(len(bundle.texts) for bundle in self.bundles)


class Compressed(Value):
    """What compressing did."""

    archived: int
    made: int
    memory_ids: tuple[str, ...] = Field(default=(), description="the new memories")
    bundles: tuple[Bundle, ...] = Field(default=(), description="what was done, as it was done")
    left: tuple[str, ...] = Field(default=(), description="what was not done, because it changed meanwhile")


class UndoStep(Value):
    """What becomes of one memory."""

    memory_id: str
    version: int = Field(description="as it was when the plan was made; if it is another by then, nothing is done")
    does: Literal["archive", "restore", "change"]
    text: str = Field(description="what it says now")
    values: dict[str, JsonValue] = Field(description="the fields that change, with what they become")


class UndoPlan(Value):
    """What undoing would do."""

    user_id: str
    made_at: Time
    why: str = Field(description="stands in the history of what is changed")
    steps: tuple[UndoStep, ...]
    left: tuple[str, ...] = Field(default=(), description="what stays although it is meant, and why")


class Undone(Value):
    """What undoing did."""

    steps: tuple[UndoStep, ...]
    left: tuple[str, ...] = Field(default=(), description="what stays although it was meant, and why")


class Upkept(Value):
    """What looking after memories did."""

    users: int = Field(description="users that were looked after")
    expired: int = Field(description="memories whose time was over, now archived")
    compressed: int = Field(description="memories that are archived, because others tell what they told")
    made: int = Field(description="the memories that take their place")
    indexed: int = Field(default=0, description="memories that an earlier version had indexed, indexed anew")
    problems: tuple[str, ...] = ()
