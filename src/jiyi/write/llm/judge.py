"""Ask a language model how new memories relate to old ones about the same thing, one request per unit."""

from collections.abc import Sequence

from pydantic import ValidationError

from ...errors import LlmBadReply
from ...languages.words import prompt_language
from ...llm.client import LLMClient
from ...llm.json_reply import read_object
from ...llm.prompts import PromptLanguage
from ..repeats import details
from ..similar import DatedText, Judgement, Pair
from .refusals import Refused, check_text, contains
from .schema import JUDGEMENTS, ProposedJudgement

NEW, OLD = {"zh": "新记忆", "en": "New memory"}, {"zh": "已存在的记忆", "en": "Old memory"}


async def judge(
    pairs: Sequence[Pair], llm: LLMClient, *, user_id: str, epoch: str | None = None
) -> list[Judgement | None]:
    """Return a judgement for each pair; None if it is unusable and the rules decide. Raise `LlmError` if no judgement
    is usable."""
    spoken = prompt_language(pairs[0][0].text)
    prompt = llm.prompts.get("judge", spoken)
    request = prompt.request(JUDGEMENTS, pairs=_render(pairs, spoken))
    reply = await llm.ask(request, user_id=user_id, epoch=epoch)
    read = read_object(reply.text, "judgements")
    given = read.value["judgements"]
    if not isinstance(given, list):
        raise LlmBadReply("the judgements are not a list")
    found: dict[int, Judgement] = {}
    problems = ["the judgement was cut off"] if reply.cut_off or read.cut_off else []
    for one in given:
        try:
            proposed = ProposedJudgement.model_validate(one)
            new, old = pairs[_number(proposed, len(pairs), found)]
            merged = _checked_merge(proposed.merged, new, old) if proposed.action == "merge" else None
        except ValidationError as error:
            problems.append(f"the judgement has the wrong shape: {error.errors()[0]['msg']}")
            continue
        except Refused as error:
            problems.append(f"the judgement is rejected: {error}")
            continue
        made_by = f"{llm.id} {prompt.version}"
        found[proposed.pair - 1] = Judgement(
            action=proposed.action, reason=proposed.reason, merged=merged, made_by=made_by
        )
    if not found:
        raise LlmBadReply(problems[0] if problems else "the reply has no judgement")
    return [found.get(number) for number in range(len(pairs))]


def _number(proposed: ProposedJudgement, count: int, found: dict[int, Judgement]) -> int:
    number = proposed.pair - 1
    if not 0 <= number < count or number in found:
        raise Refused("an unknown pair, or one that was judged already", str(proposed.pair))
    return number


def _render(pairs: Sequence[Pair], spoken: PromptLanguage) -> str:
    lines = []
    for number, (new, old) in enumerate(pairs, 1):
        for name, memory in ((OLD[spoken], old), (NEW[spoken], new)):
            lines.append(f"[{number}] {name} ({memory.at:%Y-%m-%d}): {' '.join(memory.text.split())}")
    return "\n".join(lines)


def _checked_merge(text: str | None, new: DatedText, old: DatedText) -> str:
    """Return a merged text that has no number, code or name besides those of the two memories."""
    if text is None:
        raise Refused("merge without a merged text")
    check_text(text, own=False)
    invented = {one for one in details(text) - details(new.text) - details(old.text) if not one.endswith("negations")}
    if invented and not all(contains(one, f"{old.text} {new.text}") for one in invented):
        raise Refused("the merged text says more than both", ", ".join(sorted(invented)))
    return text
