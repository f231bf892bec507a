"""Language models for benchmarks: recorded replies or a real endpoint, with their prompts counted."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from jiyi.errors import InvalidInput
from jiyi.llm import LLM, LLMRequest, Reply
from jiyi.settings import load_settings
from jiyi.settings_files import own_program
from jiyi.testing import ReplayLLM
from jiyi.text.budget import token_bound

REPLAY = "replay:"


class Calls:
    """Calls and tokens by task, of all models together."""

    def __init__(self, replies: Path | None = None) -> None:
        self.replies = replies  # file for the replies
        self.calls: Counter[str] = Counter()
        self.prefix: dict[str, int] = {}  # tokens that are the same in every prompt of a task, and can be cached
        self.sent: Counter[str] = Counter()  # tokens
        self.received: Counter[str] = Counter()

    def lines(self, messages: int) -> list[str]:
        """Describe the cost per 100 messages."""
        per = 100 / max(messages, 1)
        return [
            f"{task}: {self.calls[task] * per:.1f} calls, {self.sent[task] * per:,.0f} tokens sent "
            f"({self.prefix[task]:,} of each call are a prefix that can be cached), "
            f"{self.received[task] * per:,.0f} received per 100 messages"
            for task in sorted(self.calls)
        ]


class CountedLLM:
    """A model whose calls are counted."""

    def __init__(self, model: LLM, calls: Calls) -> None:
        self.id = model.id
        self._model = model
        self._calls = calls

    async def reply(self, request: LLMRequest) -> Reply:
        begun = time.perf_counter()
        answer = await self._model.reply(request)
        calls, prefix = self._calls, token_bound(request.system)
        if calls.replies is not None:
            seconds = round(time.perf_counter() - begun, 1)
            one = {"task": request.task, "asked": request.user, "seconds": seconds, "reply": answer.text}
            with calls.replies.open("a", encoding="utf-8") as file:  # at once: a run may take hours
                file.write(json.dumps(one, ensure_ascii=False) + "\n")
        calls.calls[request.task] += 1
        calls.prefix[request.task] = prefix
        calls.sent[request.task] += prefix + token_bound(request.user)
        calls.received[request.task] += token_bound(answer.text)
        return answer

    async def close(self) -> None:
        await self._model.close()


def open_model(name: str | None, calls: Calls) -> Callable[[str], LLM | None]:
    """Return the model of each story: none, recorded replies (`replay:FILE`) or an endpoint, named as in LLM_MODEL."""
    if name is None:
        return lambda _: None
    if not name.startswith(REPLAY):
        from jiyi.llm.openai import OpenAIChat

        with own_program():
            llm = load_settings().llm
        return lambda _: CountedLLM(OpenAIChat(name, llm), calls)
    path = Path(name.removeprefix(REPLAY))
    try:
        stories = ReplayLLM.stories(path)
    except (OSError, EOFError, ValueError, KeyError) as error:
        raise InvalidInput("--model", f"{path} cannot be read: {error}") from error
    return lambda story: CountedLLM(stories[story], calls) if story in stories else None
