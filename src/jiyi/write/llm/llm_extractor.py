"""Extract memories and episodes from a unit with a language model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import JsonValue

from ...errors import LlmBadReply
from ...llm import Usage
from ...llm.client import LLMClient
from ...llm.json_reply import read_object
from ..drafts import Draft, Evidence, Extracted, Unit
from ..extract import corrected_message, extract
from .proposals import Proposals, Rejected, summary_of
from .schema import EPISODES, MEMORIES
from .support_check import SupportCheck
from .transcript import LABELS, Transcript, render_known, transcript

SCHEMAS: dict[str, dict[str, Any]] = {"memories": MEMORIES, "episodes": EPISODES}
NO_USAGE = Usage()
UNCHECKED = SupportCheck()
MIN_EPISODE = 3  # messages
REFUSED_ATTEMPTS = 2  # for a well-formed reply of which the checks accept nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmDrafts:
    """Drafts of a model for a unit. `problems`: what was refused, left out or is missing, for the receipt."""

    drafts: tuple[Draft, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    problems: tuple[str, ...] = ()
    unusable: frozenset[str] | None = frozenset()  # messages of refused memories; None: the reply is damaged
    usage: Usage = NO_USAGE


async def llm_drafts(unit: Unit, llm: LLMClient, check: SupportCheck = UNCHECKED) -> LlmDrafts:
    """Return the valid drafts with their confidence. Raise `LlmError`; `temporary` says if a retry can help. A reply
    without a valid draft is an error too, so that the caller knows why there is nothing."""
    conversation = transcript(unit)
    if conversation is None:
        return LlmDrafts()
    tasks = ["memories"] if len(conversation.messages) < MIN_EPISODE else ["memories", "episodes"]
    answers = await asyncio.gather(*(_ask(task, conversation, unit, llm) for task in tasks), return_exceptions=True)
    found, problems = _parts(answers)
    drafts, unchecked, used = await check.judge(
        [draft for part in found for draft in part.drafts], conversation, unit, llm
    )
    # The rules know nothing of instructions, such as what is never to be remembered. Memories come first.
    if unit.instructions is None and (found[0].rejected or found[0].unusable is None):
        drafts += await asyncio.to_thread(_from_rules, unit, drafts, found[0].unusable)
    drafts += await asyncio.to_thread(_corrected, unit, drafts)
    return LlmDrafts(
        drafts=tuple(drafts),
        rejected=tuple(one for part in found for one in part.rejected),
        problems=(*conversation.notes, *problems, *unchecked),
        usage=sum((part.usage for part in found), used),
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


def _from_rules(unit: Unit, drafts: Sequence[Draft], unusable: frozenset[str] | None) -> list[Draft]:
    """Extract with the rules from messages of refused memories, or from all if the reply is damaged (None), unless
    drafts cover them: a bad reply loses no fact, and what a model left out on purpose stays out."""
    covered = {proof.message_id for draft in drafts if draft.memory_type != "episode" for proof in draft.evidence}
    found = [(draft, {proof.message_id for proof in draft.evidence}) for draft in extract(unit)]
    return [draft for draft, ids in found if not covered & ids and (unusable is None or unusable & ids)]


def _corrected(unit: Unit, drafts: Sequence[Draft]) -> list[Draft]:
    """Return statements that were corrected a moment later, as memories that have ended: a model remembers only the
    correction, and the first message would still look true."""
    covered = {proof.message_id for draft in drafts if draft.memory_type != "episode" for proof in draft.evidence}
    found = []
    for at, said in enumerate(unit.messages):
        wrong = corrected_message(said, (*unit.history, *unit.messages[:at])) if said.id in covered else None
        if wrong is None or wrong.sent_at >= said.sent_at:
            continue
        data: dict[str, JsonValue] = {"extractor": "correction"}
        if wrong.speaker is not None:
            data["speaker"] = wrong.speaker
        found.append(
            Draft(
                memory_type="fact",
                content=wrong.text,
                evidence=(Evidence(message_id=wrong.id),),
                occurred_at=wrong.sent_at,
                valid_to=said.sent_at,
                data=data,
            )
        )
    return found


async def _ask(task: str, conversation: Transcript, unit: Unit, llm: LLMClient) -> LlmDrafts:
    prompt = llm.prompts.get(task, conversation.language)
    nothing = LABELS[conversation.language]["nobody"]
    rules = {"instructions": unit.instructions, "categories": "\n".join(f"- {name}" for name in unit.categories)}
    request = prompt.request(
        SCHEMAS[task],
        **{name: text or nothing for name, text in rules.items()},
        known=render_known(unit.known, conversation.language),
        conversation=conversation.text,
        earlier=conversation.earlier,
        participants=("、" if conversation.language == "zh" else ", ").join(conversation.participants),
    )
    missing = [text for name, text in rules.items() if text and name not in prompt.placeholders]
    if missing:  # a prompt of the user's own: what is never to be remembered must not depend on it
        request = replace(request, system="\n\n".join((request.system, *missing)))
    reply = await llm.ask(request, user_id=unit.user_id, epoch=unit.epoch)
    read = read_object(reply.text, task)
    made_by: dict[str, JsonValue] = {"extractor": "llm", "model": llm.id, "prompt": prompt.version}
    proposals = Proposals(conversation, made_by, unit.known, unit.categories)
    drafts, rejected = await asyncio.to_thread(getattr(proposals, task), read.value[task])
    rejected += [Rejected("wrong shape: unreadable", "")] * read.damaged
    problems = [summary_of(rejected, len(drafts))] if rejected else []
    cut_off = reply.cut_off or read.cut_off
    if cut_off:
        problems.append(f"the reply was cut off: {len(drafts)} {task} before that were kept, more may be missing")
    if problems and not drafts:
        sound = not any(one.reason == "repeats itself" or one.reason.startswith("wrong shape") for one in rejected)
        raise LlmBadReply("; ".join(problems), most_attempts=REFUSED_ATTEMPTS if sound and not cut_off else None)
    damaged = cut_off or read.damaged or len(rejected) > len(drafts) or any(not one.message_id for one in rejected)
    return LlmDrafts(
        drafts=tuple(drafts),
        rejected=tuple(rejected),
        problems=(*problems, *proposals.notes),
        unusable=None if damaged else frozenset(one.message_id for one in rejected if one.message_id),
        usage=reply.usage or NO_USAGE,
    )


class LlmExtractor:
    """An extractor that uses a language model, and `check` for the confidence in what it finds."""

    def __init__(self, llm: LLMClient, check: SupportCheck = UNCHECKED) -> None:
        self._llm = llm
        self._check = check
        self.id = llm.id

    async def __call__(self, unit: Unit, /) -> Extracted:
        found = await llm_drafts(unit, self._llm, self._check)
        return Extracted(drafts=found.drafts, problems=found.problems)
