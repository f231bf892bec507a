"""How much a user's memories may cost in an hour. Counts are kept in the store, so a restart does not forget them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from ..errors import LlmOverBudget, LlmRefused
from . import Usage

if TYPE_CHECKING:
    from ..settings import LLMSettings

MILLION = 1_000_000


class Ledger(Protocol):
    """Where usage is counted, by user and hour."""

    async def count_llm_usage(self, user_id: str, hour: datetime, usage: Usage) -> Usage:
        """Add to what a user has used in the hour that begins then; what is negative gives back. → what it is now"""


class RamLedger:
    """A ledger for as long as the process runs."""

    def __init__(self) -> None:
        self._used: dict[tuple[str, datetime], Usage] = defaultdict(Usage)

    async def count_llm_usage(self, user_id: str, hour: datetime, usage: Usage) -> Usage:
        self._used[user_id, hour] += usage
        return self._used[user_id, hour]


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits; None: there is none."""

    tokens_per_hour: int | None
    cost_per_hour: float | None
    input_price: float
    output_price: float

    @classmethod
    def of(cls, settings: LLMSettings) -> Budget:
        return cls(settings.tokens_per_hour, settings.cost_per_hour, settings.input_price, settings.output_price)

    def cost(self, usage: Usage) -> float:
        """In the currency of the prices, which are for a million tokens."""
        return (usage.input_tokens * self.input_price + usage.output_tokens * self.output_price) / MILLION

    def check(self, used: Usage, of_these: Usage, now: datetime) -> None:
        """Raise if what is used is too much; `of_these` are for the question that is about to be asked."""
        for what, limit, spent, wanted in (
            ("tokens", self.tokens_per_hour, used.tokens, of_these.tokens),
            ("cost", self.cost_per_hour, self.cost(used), self.cost(of_these)),
        ):
            if limit is None or spent <= limit:
                continue
            if wanted > limit:
                raise LlmRefused(
                    f"one question needs about {wanted:,} of the user's {limit:,} ({what} per hour): "
                    f"raise llm.{what}_per_hour"
                )
            wait = beginning_of_hour(now) + timedelta(hours=1) - now
            raise LlmOverBudget(
                f"the user's language model budget is spent: {spent - wanted:,} of {limit:,} ({what} per hour); "
                f"it goes on in {wait.seconds // 60 + 1} min",
                retry_after_s=wait.total_seconds(),
            )


def beginning_of_hour(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)
