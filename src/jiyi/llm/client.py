"""A language model with a budget and retries."""

import asyncio
import logging
import random
from collections import defaultdict
from datetime import datetime, timedelta
from typing import Protocol

from ..errors import LlmOverBudget, LlmRefused, LlmUnavailable
from ..metrics import Meter
from ..models import utc_now
from ..settings import LLMSettings
from ..text.budget import token_bound
from . import LLM, LLMRequest, Reply, Usage
from .prompts import Prompts


class Ledger(Protocol):
    """Counts usage by user and hour."""

    async def epoch(self, user_id: str) -> str:
        """Return the erasure epoch of a user."""

    async def count_llm_usage(self, user_id: str, hour: datetime, usage: Usage, epoch: str) -> Usage:
        """Add usage (negative: refund) to a user's hour. Return the new total. Raise `UserErased` if the user was
        deleted since this was their epoch."""


class RamLedger:
    """A ledger in memory."""

    def __init__(self) -> None:
        self._used: dict[tuple[str, datetime], Usage] = defaultdict(Usage)

    async def epoch(self, user_id: str) -> str:
        return ""

    async def count_llm_usage(self, user_id: str, hour: datetime, usage: Usage, epoch: str = "") -> Usage:
        self._used[user_id, hour] += usage
        return self._used[user_id, hour]


def check_budget(limit: int | None, used: Usage, wanted: Usage, now: datetime) -> None:
    """Raise if `used`, which includes the `wanted` tokens of the next request, exceeds a user's tokens per hour."""
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


FIRST_PAUSE_S = 0.5
MAX_PAUSE_S = 20.0  # for a longer pause, a later job tries again
PAUSE_AFTER_TIMEOUT_S = 60.0

logger = logging.getLogger(__name__)


class LLMClient:
    """Sends requests within a budget and retries when the server is busy."""

    def __init__(
        self, model: LLM, settings: LLMSettings, ledger: Ledger | None = None, meter: Meter | None = None
    ) -> None:
        self._model = model
        self._retries = settings.retries
        self._timeout_s = settings.timeout_s
        self._tokens_per_hour = settings.tokens_per_hour
        self._ledger = ledger or RamLedger()
        self._meter = meter or Meter()
        self.id = model.id
        self.address: str = getattr(model, "address", "given by the program")
        self.prompts = Prompts(settings.prompts, settings.prompt_set)

    async def ask(
        self, request: LLMRequest, *, user_id: str, epoch: str | None = None, timeout_s: float | None = None
    ) -> Reply:
        """Send a request on a user's budget. `timeout_s`: one try within this time. The input is counted before the
        call and the output after it, so that several processes cannot all spend the last tokens. A refused request is
        refunded. Raise `UserErased` if the user was deleted since their `epoch`, by default the current one."""
        if epoch is None:
            epoch = await self._ledger.epoch(user_id)
        now = utc_now()
        hour = start_of_hour(now)
        expected = Usage(1, token_bound(request.system) + token_bound(request.user), 0)
        used = await self._ledger.count_llm_usage(user_id, hour, expected, epoch)
        try:
            check_budget(self._tokens_per_hour, used, expected, now)
            with self._meter.timing("llm", request.task):
                reply = await self._with_retries(request) if timeout_s is None else await self._once(request, timeout_s)
        except (LlmRefused, LlmUnavailable, LlmOverBudget) as error:
            if not isinstance(error.__cause__, TimeoutError):  # a request that timed out may still be charged
                await self._ledger.count_llm_usage(user_id, hour, Usage(-1, -expected.input_tokens, 0), epoch)
            raise
        usage = reply.usage or Usage(1, expected.input_tokens, token_bound(reply.text))
        rest = Usage(usage.calls - 1, usage.input_tokens - expected.input_tokens, usage.output_tokens)
        await self._ledger.count_llm_usage(user_id, hour, rest, epoch)
        self._meter.count("llm_tokens_total", "in", by=usage.input_tokens)
        self._meter.count("llm_tokens_total", "out", by=usage.output_tokens)
        return Reply(text=reply.text, cut_off=reply.cut_off, usage=usage)

    async def _with_retries(self, request: LLMRequest) -> Reply:
        """Send a request; try again after a pause if the server is busy or unreachable."""
        for attempt in range(self._retries):
            try:
                return await self._once(request, self._timeout_s)
            except LlmUnavailable as error:
                pause = FIRST_PAUSE_S * 2**attempt if error.retry_after_s is None else error.retry_after_s
                if pause > MAX_PAUSE_S:
                    raise
                logger.info("retrying the language model in %.1f s: %s", pause, error)
                await asyncio.sleep(pause * random.uniform(1.0, 1.25))  # noqa: S311 - jitter, not a secret
        return await self._once(request, self._timeout_s)

    async def _once(self, request: LLMRequest, timeout_s: float) -> Reply:
        """Send a request once; do not retry a server that hangs at once: it would hang again."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self._model.reply(request)
        except TimeoutError as error:
            raise LlmUnavailable(
                f"{self.id} did not answer within {timeout_s:g} s", retry_after_s=PAUSE_AFTER_TIMEOUT_S
            ) from error

    async def close(self) -> None:
        await self._model.close()
