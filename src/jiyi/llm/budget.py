"""Token and cost limits per user and hour, counted in the store."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from ..errors import LlmOverBudget, LlmRefused
from . import Usage

if TYPE_CHECKING:
    from ..settings import LLMSettings


class Ledger(Protocol):
    """Counts usage by user and hour."""

    async def count_llm_usage(self, user_id: str, hour: datetime, usage: Usage) -> Usage:
        """Add usage (negative: refund) to a user's hour. Return the new total."""


class RamLedger:
    """A ledger in memory."""

    def __init__(self) -> None:
        self._used: dict[tuple[str, datetime], Usage] = defaultdict(Usage)

    async def count_llm_usage(self, user_id: str, hour: datetime, usage: Usage) -> Usage:
        self._used[user_id, hour] += usage
        return self._used[user_id, hour]


@dataclass(frozen=True, slots=True)
class Budget:
    """Limit of one user's tokens per hour; None: unlimited."""

    tokens_per_hour: int | None

    @classmethod
    def of(cls, settings: LLMSettings) -> Budget:
        return cls(settings.tokens_per_hour)

    def check(self, used: Usage, wanted: Usage, now: datetime) -> None:
        """Raise if `used`, which includes the `wanted` tokens of the next request, exceeds the limit."""
        limit = self.tokens_per_hour
        if limit is None or used.tokens <= limit:
            return
        if wanted.tokens > limit:
            raise LlmRefused(
                f"one request needs about {wanted.tokens:,} of the user's {limit:,} tokens per hour: "
                "raise llm.tokens_per_hour"
            )
        wait = start_of_hour(now) + timedelta(hours=1) - now
        raise LlmOverBudget(
            f"the user's language model budget is spent: {used.tokens - wanted.tokens:,} of {limit:,} tokens per hour; "
            f"retry in {wait.seconds // 60 + 1} min",
            retry_after_s=wait.total_seconds(),
        )


def start_of_hour(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)
