"""Asks a model what is worth remembering of a unit: one question for each task."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import LlmBadReply
from ...llm import Usage
from ...llm.client import Llm
from ...llm.reading import read_object
from ..drafts import Draft, Extracted, Unit
from ..extract import extract
from .propose import Checker, Rejected, summary_of
from .schema import EPISODES, MEMORIES
from .transcript import Transcript, transcript

SCHEMAS: dict[str, dict[str, Any]] = {"memories": MEMORIES, "episodes": EPISODES}
NOTHING_USED = Usage()
LEAST_FOR_AN_EPISODE = 3  # messages; less is told best by the messages themselves


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmDrafts:
    """What a model made of a unit. `problems` says what was rejected or is missing, for the receipt."""

    drafts: tuple[Draft, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    problems: tuple[str, ...] = ()
    usage: Usage = NOTHING_USED


async def llm_drafts(unit: Unit, llm: Llm) -> LlmDrafts:
    """The drafts that hold. Raises an `LlmError`; its `temporary` says whether a later try can help.

    A reply of which nothing holds is a bad reply: somebody who gets nothing must be able to tell why.
    """
    talk = transcript(unit)
    if talk is None:
        return LlmDrafts()
    tasks = ["memories"] if len(talk.messages) < LEAST_FOR_AN_EPISODE else ["memories", "episodes"]
    answers = await asyncio.gather(*(_ask(task, talk, unit, llm) for task in tasks), return_exceptions=True)
    found, problems = _parts(answers)
    drafts = [draft for part in found for draft in part.drafts]
    if found[0].problems:  # of the memories, which come first
        drafts += await asyncio.to_thread(_by_rule, unit, drafts)
    return LlmDrafts(
        drafts=tuple(drafts),
        rejected=tuple(one for part in found for one in part.rejected),
        problems=(*talk.notes, *problems),
        usage=sum((part.usage for part in found), NOTHING_USED),
    )


def _parts(answers: Sequence[LlmDrafts | BaseException]) -> tuple[list[LlmDrafts], list[str]]:
    """What the tasks gave. Episodes that cannot be used are no reason to lose memories that can; any other failure is
    one of the whole, and it is tried again."""
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


def _by_rule(unit: Unit, drafts: Sequence[Draft]) -> list[Draft]:
    """What rules find in the messages that the usable part of a reply says nothing of: an allergy must not be lost with
    the other part."""
    spoken_for = {proof.message_id for draft in drafts if draft.memory_type != "episode" for proof in draft.evidence}
    return [draft for draft in extract(unit) if not spoken_for & {proof.message_id for proof in draft.evidence}]


async def _ask(task: str, talk: Transcript, unit: Unit, llm: Llm) -> LlmDrafts:
    prompt = llm.prompts.get(task, talk.language)
    question = prompt.question(
        SCHEMAS[task],
        conversation=talk.conversation,
        earlier=talk.earlier,
        participants=("、" if talk.language == "zh" else ", ").join(talk.participants),
    )
    reply = await llm.ask(question, user_id=unit.user_id)
    read = read_object(reply.text, task)
    checker = Checker(talk, unit.history, {"extractor": "llm", "model": llm.id, "prompt": prompt.version})
    drafts, rejected = await asyncio.to_thread(getattr(checker, task), read.value[task])
    rejected += [Rejected("wrong shape: unreadable", "")] * read.damaged
    problems = [summary_of(rejected, len(drafts))] if rejected else []
    if reply.cut_off or read.cut_off:
        problems.append(f"the reply was cut off: {len(drafts)} {task} before that were kept, others may be missing")
    if problems and not drafts:
        raise LlmBadReply("; ".join(problems))
    return LlmDrafts(
        drafts=tuple(drafts), rejected=tuple(rejected), problems=tuple(problems), usage=reply.usage or NOTHING_USED
    )


class LlmExtractor:
    """The extractor that asks a language model."""

    def __init__(self, llm: Llm) -> None:
        self._llm = llm
        self.id = llm.id

    async def __call__(self, unit: Unit, /) -> Extracted:
        found = await llm_drafts(unit, self._llm)
        return Extracted(drafts=found.drafts, problems=found.problems)
