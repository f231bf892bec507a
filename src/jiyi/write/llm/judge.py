"""Asks a model what becomes of new memories and old ones that may be about the same thing (D3's judgement): one
question for all pairs of a unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import ValidationError

from ...errors import LlmBadReply
from ...languages.script import language
from ...llm.client import Llm
from ...llm.prompts import PromptLanguage
from ...llm.reading import read_object
from ..alike import Judgement
from ..drafts import Said
from .grounds import Grounds, Unsupported, tongues_of, well_formed
from .schema import JUDGEMENTS, ProposedJudgement
from .transcript import Transcript

NEW, OLD = {"zh": "新记忆", "en": "New memory"}, {"zh": "已存在的记忆", "en": "Old memory"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A memory as the judge sees it."""

    text: str
    at: datetime


Pair = tuple[Told, Told]  # the new one, and the old one


class LlmJudge:
    def __init__(self, llm: Llm) -> None:
        self._llm = llm

    async def __call__(
        self, pairs: Sequence[tuple[str, datetime, str, datetime]], user_id: str
    ) -> Sequence[Judgement | None]:
        told = [(Told(text=new, at=new_at), Told(text=old, at=old_at)) for new, new_at, old, old_at in pairs]
        return await judge(told, self._llm, user_id=user_id)


async def judge(pairs: Sequence[Pair], llm: Llm, *, user_id: str) -> list[Judgement | None]:
    """What the model says of each pair, if it can be used; None: it cannot, and the rules decide. A reply of which
    nothing can be used is an `LlmError`."""
    tongue: PromptLanguage = "en" if language(pairs[0][0].text) in ("en", "other") else "zh"
    prompt = llm.prompts.get("judge", tongue)
    question = prompt.question(JUDGEMENTS, pairs=_written(pairs, tongue))
    reply = await llm.ask(question, user_id=user_id)
    read = read_object(reply.text, "judgements")
    given = read.value["judgements"]
    if not isinstance(given, list):
        raise LlmBadReply("the judgements are no list")
    found: dict[int, Judgement] = {}
    problems = ["the judgement was cut off"] if reply.cut_off or read.cut_off else []
    for one in given:
        try:
            proposed = ProposedJudgement.model_validate(one)
            new, old = pairs[_number(proposed, len(pairs), found)]
            merged = _merged(proposed.merged, new, old, tongue) if proposed.action == "merge" else None
        except ValidationError as error:
            problems.append(f"the judgement has the wrong shape: {error.errors()[0]['msg']}")
            continue
        except Unsupported as error:
            problems.append(f"the judgement is not taken: {error}")
            continue
        made_by = f"{llm.id} {prompt.version}"
        found[proposed.pair - 1] = Judgement(
            action=proposed.action, reason=proposed.reason, merged=merged, made_by=made_by
        )
    if not found:
        raise LlmBadReply(problems[0] if problems else "there is no judgement in the reply")
    return [found.get(number) for number in range(len(pairs))]


def _number(proposed: ProposedJudgement, count: int, found: dict[int, Judgement]) -> int:
    number = proposed.pair - 1
    if not 0 <= number < count or number in found:
        raise Unsupported("of no pair, or of one that was judged already", str(proposed.pair))
    return number


def _written(pairs: Sequence[Pair], tongue: PromptLanguage) -> str:
    lines = []
    for number, (new, old) in enumerate(pairs, 1):
        for name, told in ((OLD[tongue], old), (NEW[tongue], new)):
            lines.append(f"[{number}] {name} ({told.at:%Y-%m-%d}): {' '.join(told.text.split())}")
    return "\n".join(lines)


def _merged(text: str | None, new: Told, old: Told, tongue: PromptLanguage) -> str:
    """A merged text may say what the two say and nothing else, as if they were a conversation."""
    if text is None:
        raise Unsupported("it is to merge, but says not into what")
    both = tuple(
        Said(id=name, role="user", speaker=None, text=told.text, sent_at=told.at)
        for name, told in (("old", old), ("new", new))
    )
    talk = Transcript(language=tongue, messages=both, participants=(), conversation="", earlier="", notes=())
    well_formed(text, tongues_of(both))
    Grounds(talk).supported(text, both)
    return text
