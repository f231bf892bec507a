"""Retention rules by memory type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from ..settings import LASTING, MaintenanceSettings

if TYPE_CHECKING:
    from ..store.upkeep.aged_rows import Held

LEVEL_FACTOR = 3  # each compression multiplies the age for the next one, and the maximal length, by this


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    settings: MaintenanceSettings

    @property
    def exempt_types(self) -> frozenset[str]:
        """Types that are never compressed."""
        return frozenset(
            name for name in {**LASTING, **self.settings.types} if self.settings.policy(name).never_compress
        )

    @property
    def min_days(self) -> float:
        """Age in days below which no memory of any type is compressed."""
        named = [policy.compress_after_days for policy in self.settings.types.values()]
        return min([self.settings.compress_after_days, *(days for days in named if days is not None)])

    @property
    def lifetimes(self) -> Mapping[str, timedelta]:
        """Lifetime by type of memories without their own expiry time."""
        return {
            name: timedelta(days=policy.ttl_days)
            for name, policy in self.settings.types.items()
            if policy.ttl_days is not None
        }

    def is_old(self, memory: Held, now: datetime) -> bool:
        """Return True if a memory was not mentioned or used for long enough to be compressed."""
        if memory.data.get("single") and memory.slot is not None:
            return False  # the current value of a single-valued attribute
        moments = (memory.occurred_at, memory.last_accessed_at, None if memory.level else memory.created_at)
        last_seen = max(moment for moment in moments if moment is not None)
        own = self.settings.policy(memory.memory_type).compress_after_days
        days = self.settings.compress_after_days if own is None else own
        if memory.level:
            days = self.settings.compress_again_after_days * LEVEL_FACTOR ** (memory.level - 1)
        return now - last_seen >= timedelta(days=days)
