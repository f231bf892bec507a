"""What all readers give."""

from __future__ import annotations

from dataclasses import dataclass

from ...models import CandidateMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A memory of another system, and where it belongs if that system knows."""

    place: str  # in the file, for an error
    memory: CandidateMemory
    user_id: str | None = None
    agent_id: str | None = None
    session_id: str | None = None

    @property
    def scope(self) -> tuple[str | None, str | None, str | None]:
        return self.user_id, self.agent_id, self.session_id
