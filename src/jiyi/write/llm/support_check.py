"""Confidence in the memories of a model: do their messages support them? A reader judges, and the model itself can be
asked once more. Nothing is refused here: an unsure memory is stored, ranks lower, ends nothing and is up for review."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import BeforeValidator, JsonValue, TypeAdapter, ValidationError

from ...errors import LlmBadReply, LlmError
from ...llm import Usage
from ...llm.client import LLMClient
from ...llm.json_reply import read_object
from ...models import UNSURE
from ...reader import USER, Passage, Reader
from ...text.fence import strip_context
from ..drafts import CHECKED_BY, Draft, Said, Unit
from .schema import VERDICTS, numbers
from .transcript import Transcript

AROUND = 2  # messages before and after those that a memory cites, which a reader is shown
VERIFIER_ODDS = 9.0  # a model that verifies is right in nine of ten cases
MAX_LOGIT = 5.0  # of a reader

# Models that invent more than others: by name, or by their number of parameters in the name ("qwen3:8b").
WEAK_MODELS = (
    "gpt-3.5",
    "gpt-4.1-nano",
    "gpt-5-nano",
    "flash-lite",
    "ministral",
    "tinyllama",
    "smollm",
    "phi-",
    "phi3",
)
WEAK_BILLIONS = 9.0
_BILLIONS = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)b(?![a-z0-9])", re.IGNORECASE)

_NUMBERS = TypeAdapter(Annotated[list[int], BeforeValidator(numbers)])


def is_weak(model: str) -> bool:
    """Return True if a model is small by its name.

    >>> is_weak("ollama:qwen3:8b"), is_weak("openai:gpt-5"), is_weak("vllm:Qwen/Qwen3-30B-A3B")
    (True, False, False)
    """
    name = model.casefold()
    billions = [float(number) for number in _BILLIONS.findall(name)]
    return any(weak in name for weak in WEAK_MODELS) or bool(billions and max(billions) <= WEAK_BILLIONS)


async def verifies(mode: str, model: str, passed: Callable[[str], Awaitable[bool | None]]) -> bool:
    """Return True if a model is to be asked once more; `passed`: outcome of the model's last self-test, if any."""
    return mode == "on" or (mode == "auto" and (is_weak(model) or await passed(model) is False))


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportCheck:
    """The judges of the memories of a model. Without a reader and a second call, their confidence is not known."""

    reader: Reader | None = None
    verify: Callable[[], Awaitable[bool]] | None = None  # should the model be asked once more?

    async def judge(
        self, drafts: Sequence[Draft], talk: Transcript, unit: Unit, llm: LLMClient
    ) -> tuple[list[Draft], tuple[str, ...], Usage]:
        """Return the drafts with their confidence, problems, and what asking has used."""
        if not drafts:
            return [], (), Usage()
        logits = [0.0] * len(drafts)
        judges: list[list[JsonValue]] = [[] for _ in drafts]
        problems: tuple[str, ...] = ()
        used = Usage()
        if self.reader is not None:
            for at, logit in enumerate(await asyncio.to_thread(_read, self.reader, drafts, talk)):
                if logit is not None:
                    logits[at] = logit
                    judges[at].append(self.reader.id)
        if self.verify is not None and await self.verify():
            try:
                unsupported, version, used = await _unsupported(drafts, talk, unit, llm)
            except LlmError as error:
                problems = (f"{len(drafts)} memories of the language model were not verified: {error}",)
            else:
                sure = math.log(VERIFIER_ODDS)
                logits = [one + (-sure if at in unsupported else sure) for at, one in enumerate(logits)]
                for by in judges:
                    by.append(f"{llm.id} {version}")
        judged = [
            _with(draft, 1 / (1 + math.exp(-one)), by) if by else draft
            for draft, one, by in zip(drafts, logits, judges, strict=True)
        ]
        return judged, problems, used


def _with(draft: Draft, confidence: float, judges: list[JsonValue]) -> Draft:
    """Give a draft its confidence. What is unsure changes nothing else."""
    draft = replace(draft, confidence=round(confidence, 3), data={**draft.data, CHECKED_BY: judges})
    if draft.confidence >= UNSURE:
        return draft
    return replace(
        draft, ends=(), repeats=(), merges=(), attribute=None, value=None, replaces=None, single=False, ended=False
    )


def _read(reader: Reader, drafts: Sequence[Draft], talk: Transcript) -> list[float | None]:
    """Return the reader's judgement of each draft as a logit; None where it does not know the language."""
    found: list[float | None] = []
    for draft in drafts:
        chance = reader.supports(_passages(draft, talk), draft.content)
        if chance is None:
            found.append(None)
            continue
        logit = math.log(max(chance, 1e-6) / max(1 - chance, 1e-6))
        found.append(max(-MAX_LOGIT, min(MAX_LOGIT, logit)))
    return found


def _passages(draft: Draft, talk: Transcript) -> list[Passage]:
    """Return the messages that a draft cites, with those around them."""
    cited = {proof.message_id for proof in draft.evidence}
    places = [at for at, said in enumerate(talk.messages) if said.id in cited]
    shown = sorted({at for place in places for at in range(place - AROUND, place + AROUND + 1)})
    return [_passage(talk.messages[at], talk) for at in shown if 0 <= at < len(talk.messages)]


def _passage(said: Said, talk: Transcript) -> Passage:
    own = said.role == USER and said.id not in talk.others
    return Passage(text=strip_context(said.text), speaker=USER if own else said.speaker or said.role)


async def _unsupported(
    drafts: Sequence[Draft], talk: Transcript, unit: Unit, llm: LLMClient
) -> tuple[set[int], str, Usage]:
    """Ask the model which memories the conversation does not support; return their positions."""
    prompt = llm.prompts.get("verify", talk.language)
    listed = "\n".join(f"[{at}] {' '.join(draft.content.split())}" for at, draft in enumerate(drafts, 1))
    request = prompt.request(VERDICTS, conversation=talk.text, earlier=talk.earlier, memories=listed)
    reply = await llm.ask(request, user_id=unit.user_id, epoch=unit.epoch)
    read = read_object(reply.text, "unsupported")
    try:
        named = _NUMBERS.validate_python(read.value["unsupported"])
    except ValidationError:
        raise LlmBadReply("the unsupported memories are not a list of numbers") from None
    if reply.cut_off or read.cut_off or any(not 1 <= number <= len(drafts) for number in named):
        raise LlmBadReply("the list of unsupported memories is cut off or names unknown ones")
    return {number - 1 for number in named}, prompt.version, reply.usage or Usage()
