"""A shorter telling by a language model. What it says is foreign input: it may leave out no name, number or date of the
originals, and bring none of its own; otherwise it is not taken, and the originals' own words are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..errors import LlmBadReply
from ..languages.dates import dates
from ..languages.script import language
from ..llm.client import Llm
from ..llm.prompts import PromptLanguage
from ..llm.reading import read_object
from ..write.drafts import Said
from ..write.llm.grounds import Grounds, Unsupported, tongues_of, well_formed
from ..write.llm.transcript import Transcript
from .extract import Told, extract
from .particulars import missing, particulars

MOST_TEXTS = 24  # however many pieces it says it in
LONGEST_SHOWN = 2_000  # characters of one memory
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

    memories: list[_Text] = Field(min_length=1, max_length=MOST_TEXTS)


async def shorten(told: Sequence[Told], llm: Llm, *, user_id: str) -> tuple[tuple[str, ...], str]:
    """→ its texts, and who made them; an `LlmError` that says why if they cannot be taken"""
    tongue: PromptLanguage = "en" if language(" ".join(one.text for one in told)) in ("en", "other") else "zh"
    prompt = llm.prompts.get("compress", tongue)
    reply = await llm.ask(prompt.question(SCHEMA, memories=_shown(told)), user_id=user_id)
    read = read_object(reply.text, "memories")
    if reply.cut_off or read.cut_off or read.damaged:
        raise LlmBadReply("the compressed memories were cut off")
    try:
        found = _Texts.model_validate(read.value)
    except ValidationError as error:
        raise LlmBadReply(f"the compressed memories have the wrong shape: {error.errors()[0]['msg']}") from None
    texts = tuple(one.content.strip() for one in found.memories)
    check(texts, told, tongue)
    return texts, f"{llm.id} {prompt.version}"


def check(texts: Sequence[str], told: Sequence[Told], tongue: PromptLanguage) -> None:
    """Nothing lost, nothing made up, and shorter than before."""
    said = tuple(Said(id=one.id, role="user", speaker=None, text=one.text, sent_at=one.at) for one in told)
    talk = Transcript(language=tongue, messages=said, participants=(), conversation="", earlier="", notes=())
    grounds = Grounds(talk)
    try:
        for text in texts:
            well_formed(text, tongues_of(said), as_spoken=True)
            grounds.supported(text, said)
    except Unsupported as error:
        raise LlmBadReply(f"a compressed memory is not taken: {error}") from None
    lost = [*missing(_wanted(told), "\n".join(texts)), *_lost_times(told, texts)]
    if lost:
        raise LlmBadReply(f"the compressed memories leave out {', '.join(lost[:5])}")
    if sum(map(len, texts)) > max(sum(len(one.text) for one in told), 40):
        raise LlmBadReply("the compressed memories are longer than what they stand for")


def _wanted(told: Sequence[Told]) -> set[str]:
    """The particulars of what is worth keeping; the days on which it was said are not among them."""
    lines = extract(told).splitlines()
    return {one for line in lines for one in particulars(line.partition(": ")[2])}


def _lost_times(told: Sequence[Told], texts: Sequence[str]) -> list[str]:
    """Times that were spoken of and are not any more, in whatever words: "yesterday" may have become a date."""
    last = max(one.at for one in told)
    kept = [(span.start, span.end) for text in texts for span in dates(text, last)]
    whole = "\n".join(texts)
    return [
        span.text
        for one in told
        for span in dates(one.text, one.at)
        if span.text not in whole and not any(start < span.end and span.start < end for start, end in kept)
    ]


def _shown(told: Sequence[Told]) -> str:
    """Numbered lines; further lines are indented, so that no memory can look like two."""
    return "\n".join(
        f"[{number}] ({one.at:%Y-%m-%d}) " + "\n    ".join(one.text[:LONGEST_SHOWN].splitlines())
        for number, one in enumerate(told, 1)
    )
