"""Answer a question from memories with a language model. It sees the best ones, numbered and fenced as data, and names
those that its answer rests on; an answer that rests on none of them is no answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..errors import InvalidInput, LlmBadReply
from ..languages.words import prompt_language
from ..models import Answer, Hit, SearchResult
from ..text.fence import NOTICES, Fence, quoted, strip_context
from .client import LLMClient
from .json_reply import read_object

MAX_ANSWER = 4_000  # characters
MAX_SHOWN = 1_500  # characters of a memory
LEAST = 0.12  # score; below it a memory comes from nowhere near the question
NO_MODEL = "is not set: answering needs a language model (JIYI_LLM__MODEL); `search` and `context` do without"


ANSWER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "answer": {"type": ["string", "null"]},
        "memories": {"type": "array", "items": {"type": "integer"}},
    },
    "required": ["answer", "memories"],
    "additionalProperties": False,
}


class ProposedAnswer(BaseModel):
    model_config = ConfigDict(frozen=True, str_strip_whitespace=True)

    answer: Annotated[str, Field(min_length=1, max_length=MAX_ANSWER)] | None
    memories: list[Annotated[int, Field(ge=1)]] = []


async def answer(found: SearchResult, llm: LLMClient | None, fence: Fence, *, user_id: str) -> Answer:
    """Return an answer from what was found. Raise `InvalidInput` if there is no model, and `LlmError` if it fails."""
    if llm is None:
        raise InvalidInput("llm.model", NO_MODEL)
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
