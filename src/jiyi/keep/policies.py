"""What becomes of memories of each type as time goes by, from the settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from ..settings import LASTING
from ..store.aged import Held

if TYPE_CHECKING:
    from ..settings import MaintenanceSettings

LONGER = 3  # what was compressed rests so many times as long before it is compressed again, and may be so much longer


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    settings: MaintenanceSettings

    @property
    def kept(self) -> frozenset[str]:
        """Types that are never compressed."""
        return frozenset(
            name for name in {**LASTING, **self.settings.types} if self.settings.policy(name).never_compress
        )

    @property
    def fewest_days(self) -> float:
        """Memories younger than this need not even be looked at."""
        named = [policy.compress_after_days for policy in self.settings.types.values()]
        return min([self.settings.compress_after_days, *(days for days in named if days is not None)])

    @property
    def lifetimes(self) -> Mapping[str, timedelta]:
        """By type, how long a memory without an end of its own lasts."""
        return {
            name: timedelta(days=policy.ttl_days)
            for name, policy in self.settings.types.items()
            if policy.ttl_days is not None
        }

    def is_old(self, memory: Held, now: datetime) -> bool:
        """Whether nobody has heard of it for long enough. What lies ahead is not old, and what was compressed is as old
        as what it tells."""
        if memory.data.get("single") and memory.slot is not None:
            return False  # where somebody lives is never old, until it is told otherwise
        moments = (memory.occurred_at, memory.last_accessed_at, None if memory.level else memory.created_at)
        last_seen = max(moment for moment in moments if moment is not None)
        own = self.settings.policy(memory.memory_type).compress_after_days
        days = self.settings.compress_after_days if own is None else own
        if memory.level:
            days = self.settings.compress_again_after_days * LONGER ** (memory.level - 1)
        return now - last_seen >= timedelta(days=days)
