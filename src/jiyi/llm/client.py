"""A model with a budget and some patience: what all tasks ask through."""

from __future__ import annotations

import asyncio
import logging
import random
from typing import TYPE_CHECKING

from ..errors import LlmOverBudget, LlmRefused, LlmUnavailable
from ..metrics import Meter
from ..models import utc_now
from ..text.budget import token_bound
from . import ChatModel, Question, Reply, Usage
from .budget import Budget, Ledger, RamLedger, beginning_of_hour
from .prompts import Prompts

if TYPE_CHECKING:
    from ..settings import LLMSettings

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 20.0  # who asks for a longer pause is asked again by a later job
PAUSE_AFTER_HANGING_S = 60.0

logger = logging.getLogger(__name__)


class Llm:
    """Asks, counts, and asks again when the server was busy."""

    def __init__(
        self, model: ChatModel, settings: LLMSettings, ledger: Ledger | None = None, meter: Meter | None = None
    ) -> None:
        self._model = model
        self._retries = settings.retries
        self._timeout_s = settings.timeout_s
        self._budget = Budget.of(settings)
        self._ledger = ledger or RamLedger()
        self._meter = meter or Meter()
        self.id = model.id
        self.prompts = Prompts(settings.prompts, settings.prompt_set)

    async def ask(self, question: Question, *, user_id: str, hurry_s: float | None = None) -> Reply:
        """The reply to a question, paid from a user's budget. `hurry_s`: one try, and no longer than that.

        The input is paid before the call and the rest after it, so that several processes cannot all spend the last
        tokens. A question that was not taken is not paid.
        """
        now = utc_now()
        hour = beginning_of_hour(now)
        expected = Usage(1, token_bound(question.system) + token_bound(question.user), 0)
        used = await self._ledger.count_llm_usage(user_id, hour, expected)
        try:
            self._budget.check(used, expected, now)
            with self._meter.timing("llm", question.task):
                reply = await self._patiently(question) if hurry_s is None else await self._in_time(question, hurry_s)
        except (LlmRefused, LlmUnavailable, LlmOverBudget) as error:
            if not isinstance(error.__cause__, TimeoutError):  # a request that timed out may still be charged
                await self._ledger.count_llm_usage(user_id, hour, Usage(-1, -expected.input_tokens, 0))
            raise
        usage = reply.usage or Usage(1, expected.input_tokens, token_bound(reply.text))
        rest = Usage(usage.calls - 1, usage.input_tokens - expected.input_tokens, usage.output_tokens)
        await self._ledger.count_llm_usage(user_id, hour, rest)
        self._meter.count("llm_tokens_total", "in", by=usage.input_tokens)
        self._meter.count("llm_tokens_total", "out", by=usage.output_tokens)
        return Reply(text=reply.text, cut_off=reply.cut_off, usage=usage)

    async def _patiently(self, question: Question) -> Reply:
        """Asked again, after a pause, by a server that is busy or was not reached."""
        for attempt in range(self._retries):
            try:
                return await self._in_time(question, self._timeout_s)
            except LlmUnavailable as error:
                pause = FIRST_PAUSE_S * 2**attempt if error.retry_after_s is None else error.retry_after_s
                if pause > LONGEST_PAUSE_S:
                    raise
                logger.info("the language model is asked again in %.1f s: %s", pause, error)
                await asyncio.sleep(pause * random.uniform(1.0, 1.25))  # noqa: S311 - spreads the crowd, no secret
        return await self._in_time(question, self._timeout_s)

    async def _in_time(self, question: Question, timeout_s: float) -> Reply:
        """One try. A server that hangs or drips is given up, and not asked again at once: it would hang again."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self._model.reply(question)
        except TimeoutError as error:
            raise LlmUnavailable(
                f"{self.id} did not answer within {timeout_s:g} s", retry_after_s=PAUSE_AFTER_HANGING_S
            ) from error

    async def close(self) -> None:
        await self._model.close()
