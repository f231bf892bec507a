"""The shapes that a model is asked for, and what is made of a reply that has them only nearly.

What a memory stands on (its text, its type, its messages, its quote) must be right. What only adorns it (importance,
keywords, a date) falls back to nothing when it is of the wrong type.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, WrapValidator

from ..alike import JudgedAction

LONGEST_MEMORY = 600
LONGEST_MERGED = 1_200
LONGEST_EPISODE = 4_000
LONGEST_TITLE = 200
LONGEST_QUOTE = 1_000
LONGEST_WORDS = 200

TYPES = ("preference", "fact", "event", "task", "pattern", "skill")

_NUMBER = re.compile(r"\[?\s*(?:#|m|message\s*|消息\s*)?(\d{1,6})\s*\]?", re.IGNORECASE)


def _numbers(value: Any) -> Any:
    """[2], 2, "2", "[2]" and ["#2"] all mean the second message."""
    values = value if isinstance(value, list) else [value]
    found = []
    for one in values:
        written = _NUMBER.fullmatch(one.strip()) if isinstance(one, str) else None
        found.append(int(written.group(1)) if written else one)
    return found


def _or_nothing(nothing: Any) -> Any:
    """A field whose wrong value is taken for none."""

    def validate(value: Any, handler: Callable[[Any], Any], info: ValidationInfo) -> Any:
        try:
            return handler(value)
        except ValueError:
            return nothing() if callable(nothing) else nothing

    return WrapValidator(validate)


Words = Annotated[str, Field(min_length=1, max_length=LONGEST_WORDS)]
Numbers = Annotated[list[Annotated[int, Field(ge=1, strict=True)]], BeforeValidator(_numbers), Field(min_length=1)]
MaybeWords = Annotated[Words | None, _or_nothing(None)]


class Asked(BaseModel):
    """Fields that were not asked for are of no interest."""

    model_config = ConfigDict(frozen=True, extra="ignore", str_strip_whitespace=True)


class ProposedMemory(Asked):
    messages: Numbers
    quote: Annotated[str, Field(min_length=1, max_length=LONGEST_QUOTE)]
    type: Literal["preference", "fact", "event", "task", "pattern", "skill"]
    text: Annotated[str, Field(min_length=1, max_length=LONGEST_MEMORY)]
    subject: MaybeWords = None
    attribute: MaybeWords = None
    value: MaybeWords = None
    ended: Annotated[bool, _or_nothing(False)] = False
    replaces: MaybeWords = None
    when: MaybeWords = None
    importance: Annotated[float, Field(ge=0, le=1), _or_nothing(0.5)] = 0.5
    keywords: Annotated[list[Words], Field(max_length=20), _or_nothing(list)] = []


class ProposedEpisode(Asked):
    participant: Words
    title: Annotated[str, Field(min_length=1, max_length=LONGEST_TITLE)]
    content: Annotated[str, Field(min_length=1, max_length=LONGEST_EPISODE)]
    messages: Numbers


class ProposedJudgement(Asked):
    pair: int
    action: JudgedAction
    reason: Annotated[str, Field(min_length=1, max_length=LONGEST_MEMORY)]
    merged: Annotated[Annotated[str, Field(min_length=1, max_length=2 * LONGEST_MEMORY)] | None, _or_nothing(None)] = (
        None
    )


# -- what servers are told, in the subset of JSON schema that all of them know -----------------------------------------

_TEXT: dict[str, Any] = {"type": "string"}
_TEXT_OR_NULL: dict[str, Any] = {"type": ["string", "null"]}
_NUMBERS: dict[str, Any] = {"type": "array", "items": {"type": "integer"}}


def _object(**fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def _list_of(key: str, item: dict[str, Any]) -> dict[str, Any]:
    return _object(**{key: {"type": "array", "items": item}})


MEMORIES = _list_of(
    "memories",
    _object(
        messages=_NUMBERS,
        quote=_TEXT,
        type={"type": "string", "enum": list(TYPES)},
        text=_TEXT,
        subject=_TEXT,
        attribute=_TEXT,
        value=_TEXT_OR_NULL,
        ended={"type": "boolean"},
        replaces=_TEXT_OR_NULL,
        when=_TEXT_OR_NULL,
        importance={"type": "number"},
        keywords={"type": "array", "items": _TEXT},
    ),
)
EPISODES = _list_of("episodes", _object(participant=_TEXT, title=_TEXT, content=_TEXT, messages=_NUMBERS))
JUDGEMENTS = _list_of(
    "judgements",
    _object(
        pair={"type": "integer"},
        action={"type": "string", "enum": list(get_args(JudgedAction))},
        reason=_TEXT,
        merged=_TEXT_OR_NULL,
    ),
)
