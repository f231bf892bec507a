"""Answer a question from memories with a language model. It sees the best ones, numbered and fenced as data, and names
those that its answer rests on; an answer that rests on none of them is no answer."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from ..errors import LlmBadReply, LlmRefused
from ..languages.words import prompt_language
from ..llm.client import LLMClient
from ..llm.json_reply import read_object
from ..models import Answer, Hit, SearchResult
from ..text.fence import NOTICES, Fence, quoted, strip_context
from ..write.llm.schema import ANSWER, ProposedAnswer

MAX_SHOWN = 1_500  # characters of a memory
LEAST = 0.12  # score; below it a memory comes from nowhere near the question
NO_MODEL = "answering needs a language model: set llm.model (JIYI_LLM__MODEL); `search` and `context` work without"


async def answer(found: SearchResult, llm: LLMClient | None, fence: Fence, *, user_id: str) -> Answer:
    """Return an answer from what was found. Raise `LlmError` if there is no model or it fails."""
    if llm is None:
        raise LlmRefused(NO_MODEL)
    hits = [hit for hit in found.hits if hit.relevance_score >= LEAST]
    unknown = Answer(question=found.query, degraded=found.degraded)
    if not hits:
        return unknown
    language = prompt_language(found.query)
    prompt = llm.prompts.get("answer", language)
    memories = fence.block([NOTICES[language], *(_line(at, hit) for at, hit in enumerate(hits, 1))])
    request = prompt.request(ANSWER, memories=memories, question=quoted(strip_context(found.query)))
    reply = await llm.ask(request, user_id=user_id)
    read = read_object(reply.text, "answer")
    if reply.cut_off or read.cut_off:
        raise LlmBadReply("the answer was cut off")
    try:
        proposed = ProposedAnswer.model_validate(read.value)
    except ValidationError as error:
        raise LlmBadReply(f"the answer has the wrong shape: {error.errors()[0]['msg']}") from None
    ids = _rests_on(proposed.memories, hits)
    if proposed.answer is None or ids is None:
        return unknown
    return unknown.model_copy(update={"text": proposed.answer, "memory_ids": ids})


def _line(number: int, hit: Hit) -> str:
    by = "" if hit.speaker is None else f", {quoted(hit.speaker)}"
    return f"- [{number}] ({hit.occurred_at:%Y-%m-%d}{by}) {quoted(strip_context(hit.content)[:MAX_SHOWN])}"


def _rests_on(numbers: Sequence[int], hits: Sequence[Hit]) -> tuple[str, ...] | None:
    """Return the ids of memories; None if none is named, or one that was not shown."""
    if not numbers or max(numbers) > len(hits):
        return None
    return tuple(dict.fromkeys(hits[number - 1].id for number in numbers))
