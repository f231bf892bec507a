"""Extract memories and episodes from a unit with a language model, one request each."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import LlmBadReply
from ...llm import Usage
from ...llm.client import LLMClient
from ...llm.json_reply import read_object
from ..drafts import Draft, Extracted, Unit
from ..extract import extract
from .checker import Checker, Rejected, summary_of
from .schema import EPISODES, MEMORIES
from .transcript import Transcript, transcript

SCHEMAS: dict[str, dict[str, Any]] = {"memories": MEMORIES, "episodes": EPISODES}
NO_USAGE = Usage()
MIN_EPISODE = 3  # messages


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmDrafts:
    """Drafts of a model for a unit. `problems`: what was rejected or is missing, for the receipt."""

    drafts: tuple[Draft, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    problems: tuple[str, ...] = ()
    usage: Usage = NO_USAGE


async def llm_drafts(unit: Unit, llm: LLMClient) -> LlmDrafts:
    """Return the valid drafts. Raise `LlmError`; `temporary` says if a retry can help.

    A reply without a valid draft is an error too, so that the caller knows why there is nothing.
    """
    conversation = transcript(unit)
    if conversation is None:
        return LlmDrafts()
    tasks = ["memories"] if len(conversation.messages) < MIN_EPISODE else ["memories", "episodes"]
    answers = await asyncio.gather(*(_ask(task, conversation, unit, llm) for task in tasks), return_exceptions=True)
    found, problems = _parts(answers)
    drafts = [draft for part in found for draft in part.drafts]
    if found[0].problems:  # memories come first
        drafts += await asyncio.to_thread(_from_rules, unit, drafts)
    return LlmDrafts(
        drafts=tuple(drafts),
        rejected=tuple(one for part in found for one in part.rejected),
        problems=(*conversation.notes, *problems),
        usage=sum((part.usage for part in found), NO_USAGE),
    )


def _parts(answers: Sequence[LlmDrafts | BaseException]) -> tuple[list[LlmDrafts], list[str]]:
    """Separate results and problems. A bad reply with episodes is only reported; any other failure is raised."""
    found, problems = [], []
    for at, answer in enumerate(answers):
        if isinstance(answer, LlmBadReply) and at > 0:
            problems.append(str(answer))
        elif isinstance(answer, BaseException):
            raise answer
        else:
            found.append(answer)
            problems += answer.problems
    return found, problems


def _from_rules(unit: Unit, drafts: Sequence[Draft]) -> list[Draft]:
    """Extract with the rules from messages that the drafts do not cover, so that a damaged reply loses no fact."""
    covered = {proof.message_id for draft in drafts if draft.memory_type != "episode" for proof in draft.evidence}
    return [draft for draft in extract(unit) if not covered & {proof.message_id for proof in draft.evidence}]


async def _ask(task: str, conversation: Transcript, unit: Unit, llm: LLMClient) -> LlmDrafts:
    prompt = llm.prompts.get(task, conversation.language)
    request = prompt.request(
        SCHEMAS[task],
        conversation=conversation.text,
        earlier=conversation.earlier,
        participants=("、" if conversation.language == "zh" else ", ").join(conversation.participants),
    )
    reply = await llm.ask(request, user_id=unit.user_id)
    read = read_object(reply.text, task)
    checker = Checker(conversation, unit.history, {"extractor": "llm", "model": llm.id, "prompt": prompt.version})
    drafts, rejected = await asyncio.to_thread(getattr(checker, task), read.value[task])
    rejected += [Rejected("wrong shape: unreadable", "")] * read.damaged
    problems = [summary_of(rejected, len(drafts))] if rejected else []
    if reply.cut_off or read.cut_off:
        problems.append(f"the reply was cut off: {len(drafts)} {task} before that were kept, more may be missing")
    if problems and not drafts:
        raise LlmBadReply("; ".join(problems))
    return LlmDrafts(
        drafts=tuple(drafts), rejected=tuple(rejected), problems=tuple(problems), usage=reply.usage or NO_USAGE
    )


class LlmExtractor:
    """An extractor that uses a language model."""

    def __init__(self, llm: LLMClient) -> None:
        self._llm = llm
        self.id = llm.id

    async def __call__(self, unit: Unit, /) -> Extracted:
        found = await llm_drafts(unit, self._llm)
        return Extracted(drafts=found.drafts, problems=found.problems)
