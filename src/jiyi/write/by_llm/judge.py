"""Asks a model what becomes of a new memory and an old one that may be about the same thing (D3's judgement)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pydantic import ValidationError

from ...errors import LlmBadReply
from ...llm.client import Llm
from ...llm.prompts import PromptLanguage
from ...llm.reading import read_object
from ...text.language import language
from ..drafts import Said
from .grounds import Grounds, Unsupported, tongues_of, well_formed
from .schema import JUDGEMENT, Action, ProposedJudgement
from .transcript import Transcript


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A memory as the judge sees it."""

    text: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    action: Action
    reason: str
    merged: str | None  # with `merge`: the text that says both
    made_by: str  # which model, with which prompt


async def judge(new: Told, old: Told, llm: Llm, *, user_id: str) -> Judgement:
    """What the model says, if it can be used; otherwise an `LlmError`, and the rules decide."""
    tongue: PromptLanguage = "en" if language(new.text) in ("en", "other") else "zh"
    prompt = llm.prompts.get("judge", tongue)
    question = prompt.question(
        JUDGEMENT,
        old=" ".join(old.text.split()),
        new=" ".join(new.text.split()),
        old_at=f"{old.at:%Y-%m-%d}",
        new_at=f"{new.at:%Y-%m-%d}",
    )
    reply = await llm.ask(question, user_id=user_id)
    read = read_object(reply.text, "action")
    if reply.cut_off or read.cut_off:
        raise LlmBadReply("the judgement was cut off")
    try:
        found = ProposedJudgement.model_validate(read.value)
    except ValidationError as error:
        raise LlmBadReply(f"the judgement has the wrong shape: {error.errors()[0]['msg']}") from None
    merged = _merged(found.merged, new, old, tongue) if found.action == "merge" else None
    return Judgement(action=found.action, reason=found.reason, merged=merged, made_by=f"{llm.id} {prompt.version}")


def _merged(text: str | None, new: Told, old: Told, tongue: PromptLanguage) -> str:
    """A merged text may say what the two say and nothing else, as if they were a conversation."""
    if text is None:
        raise LlmBadReply("the judgement is to merge, but it says not into what")
    both = tuple(
        Said(id=name, role="user", speaker=None, text=told.text, sent_at=told.at)
        for name, told in (("old", old), ("new", new))
    )
    talk = Transcript(language=tongue, messages=both, participants=(), conversation="", earlier="", notes=())
    try:
        well_formed(text, tongues_of(both))
        Grounds(talk).supported(text, both)
    except Unsupported as error:
        raise LlmBadReply(f"the merged memory is not taken: {error}") from None
    return text
