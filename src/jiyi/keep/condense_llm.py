"""Condense memories with a language model. Its reply must contain all names, numbers and dates of the originals and no
others; otherwise it is refused and the verbatim condensation is used."""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..errors import LlmBadReply
from ..languages.dates import dates
from ..languages.words import language
from ..llm.client import LLMClient
from ..llm.json_reply import read_object
from ..llm.prompts import PromptLanguage
from ..write.llm.refusals import Refused, check_text
from .condense import DatedText, condense, missing, particulars

MAX_TEXTS = 24
_SPOKEN: dict[PromptLanguage, tuple[str, ...]] = {"en": ("en", "other"), "zh": ("zh", "mixed")}
MAX_CHARACTERS = 2_000  # of one memory in the prompt
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "memories": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"content": {"type": "string"}},
                "required": ["content"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["memories"],
    "additionalProperties": False,
}


class _Text(BaseModel):
    model_config = ConfigDict(extra="ignore")

    content: str = Field(min_length=1, max_length=4_000)


class _Texts(BaseModel):
    model_config = ConfigDict(extra="ignore")

    memories: list[_Text] = Field(min_length=1, max_length=MAX_TEXTS)


async def condense_with_llm(
    memories: Sequence[DatedText], llm: LLMClient, *, user_id: str, epoch: str | None = None
) -> tuple[tuple[str, ...], str]:
    """Return the texts and an id of the model and prompt; raise `LlmError` if they are refused."""
    tongue: PromptLanguage = "en" if language(" ".join(one.text for one in memories)) in ("en", "other") else "zh"
    prompt = llm.prompts.get("compress", tongue)
    reply = await llm.ask(prompt.request(SCHEMA, memories=_numbered(memories)), user_id=user_id, epoch=epoch)
    read = read_object(reply.text, "memories")
    if reply.cut_off or read.cut_off or read.damaged:
        raise LlmBadReply("the compressed memories were cut off")
    try:
        found = _Texts.model_validate(read.value)
    except ValidationError as error:
        raise LlmBadReply(f"the compressed memories have the wrong format: {error.errors()[0]['msg']}") from None
    texts = tuple(one.content.strip() for one in found.memories)
    check(texts, memories, tongue)
    return texts, f"{llm.id} {prompt.version}"


def check(texts: Sequence[str], memories: Sequence[DatedText], tongue: PromptLanguage) -> None:
    """Raise `LlmBadReply` if something is lost or invented, or the texts are not shorter."""
    told = "\n".join(one.text for one in memories)
    try:
        for text in texts:
            check_text(text, own=False)
            if language(text) not in (*_SPOKEN[tongue], language(told)):
                raise Refused("in another language")
    except Refused as error:
        raise LlmBadReply(f"a compressed memory was refused: {error}") from None
    if invented := _invented(texts, memories, told):
        raise LlmBadReply(f"the compressed memories invent {', '.join(invented[:5])}")
    lost = [*missing(_required(memories), "\n".join(texts)), *_lost_times(memories, texts)]
    if lost:
        raise LlmBadReply(f"the compressed memories leave out {', '.join(lost[:5])}")
    if sum(map(len, texts)) > max(sum(len(one.text) for one in memories), 40):
        raise LlmBadReply("the compressed memories are longer than the originals")


def _invented(texts: Sequence[str], memories: Sequence[DatedText], told: str) -> list[str]:
    """Return particulars of the texts that the memories do not have; days may be written in another way."""
    times = [span for one in memories for span in dates(one.text, one.at)]
    last = max(one.at for one in memories)
    invented = []
    for text in texts:
        rest = list(text)
        for span in dates(text, last):
            days = (*((time.start, time.end) for time in times), *((one.at, one.at) for one in memories))
            if any(start < span.end and span.start <= end for start, end in days):
                rest[slice(*span.at)] = " " * (span.at[1] - span.at[0])
        invented += missing(particulars("".join(rest)), told)
    return invented


def _required(memories: Sequence[DatedText]) -> set[str]:
    """Particulars of the informative sentences, without the days on which they were said."""
    lines = condense(memories).splitlines()
    return {one for line in lines for one in particulars(line.partition(": ")[2])}


def _lost_times(memories: Sequence[DatedText], texts: Sequence[str]) -> list[str]:
    """Return times of the originals that the texts do not cover; "yesterday" may have become a date."""
    last = max(one.at for one in memories)
    kept = [(span.start, span.end) for text in texts for span in dates(text, last)]
    whole = "\n".join(texts)
    return [
        span.text
        for one in memories
        for span in dates(one.text, one.at)
        if span.text not in whole and not any(start < span.end and span.start < end for start, end in kept)
    ]


def _numbered(memories: Sequence[DatedText]) -> str:
    """Number the memories; their further lines are indented, so that none can look like two."""
    return "\n".join(
        f"[{number}] ({one.at:%Y-%m-%d}) " + "\n    ".join(one.text[:MAX_CHARACTERS].splitlines())
        for number, one in enumerate(memories, 1)
    )
