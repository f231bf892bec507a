"""Schemas of the replies, and lenient models that read them. Text, type, messages and quote of a memory must be valid.
Optional fields (importance, keywords, a date) fall back to their default when they are of the wrong type."""

import re
from collections.abc import Callable
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, WrapValidator

from ..similar import JudgedAction

MAX_MEMORY = 600
MAX_EPISODE = 4_000
MAX_TITLE = 200
MAX_QUOTE = 1_000
MAX_WORDS = 200

TYPES = ("preference", "fact", "event", "task", "pattern", "skill")

_NUMBER = re.compile(r"^\[?\s*(?:#|m|k|message\s*|消息\s*)?(\d{1,6})\s*\]?", re.IGNORECASE)


def numbers(value: Any) -> Any:
    """Read message numbers: [2], 2, "2", "[2]" and ["#2"] all mean message 2."""
    values = value if isinstance(value, list) else [value]
    found = []
    for one in values:
        written = _NUMBER.fullmatch(one.strip()) if isinstance(one, str) else None
        found.append(int(written.group(1)) if written else one)
    return found


def _or_default(default: Any) -> Any:
    """Replace an invalid value by the default."""

    def validate(value: Any, handler: Callable[[Any], Any], info: ValidationInfo) -> Any:
        try:
            return handler(value)
        except ValueError:
            return default() if callable(default) else default

    return WrapValidator(validate)


Words = Annotated[str, Field(min_length=1, max_length=MAX_WORDS)]
Numbers = Annotated[list[Annotated[int, Field(ge=1, strict=True)]], BeforeValidator(numbers), Field(min_length=1)]
OptionalWords = Annotated[Words | None, _or_default(None)]


class ReplyModel(BaseModel):
    """Base of the models; unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", str_strip_whitespace=True)


class ProposedMemory(ReplyModel):
    messages: Numbers
    quote: Annotated[str, Field(min_length=1, max_length=MAX_QUOTE)]
    type: Literal["preference", "fact", "event", "task", "pattern", "skill"]
    text: Annotated[str, Field(min_length=1, max_length=MAX_MEMORY)]
    subject: OptionalWords = None
    attribute: OptionalWords = None
    value: OptionalWords = None
    ended: Annotated[bool, _or_default(False)] = False
    replaces: OptionalWords = None
    ends: Annotated[Numbers | None, _or_default(None)] = None
    repeats: Annotated[Numbers | None, _or_default(None)] = None
    merges: Annotated[Numbers | None, _or_default(None)] = None
    when: OptionalWords = None
    importance: Annotated[float, Field(ge=0, le=1), _or_default(0.5)] = 0.5
    keywords: Annotated[list[Words], Field(max_length=20), _or_default(list)] = []
    tags: Annotated[list[Words], Field(max_length=20), _or_default(list)] = []


class ProposedEpisode(ReplyModel):
    participant: Words
    title: Annotated[str, Field(min_length=1, max_length=MAX_TITLE)]
    content: Annotated[str, Field(min_length=1, max_length=MAX_EPISODE)]
    messages: Numbers


class ProposedAnswer(ReplyModel):
    answer: Annotated[str, Field(min_length=1, max_length=MAX_EPISODE)] | None
    memories: Annotated[list[Annotated[int, Field(ge=1, strict=True)]], BeforeValidator(numbers)] = []


class ProposedJudgement(ReplyModel):
    pair: int
    action: JudgedAction
    reason: Annotated[str, Field(min_length=1, max_length=MAX_MEMORY)]
    merged: Annotated[Annotated[str, Field(min_length=1, max_length=2 * MAX_MEMORY)] | None, _or_default(None)] = None


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
        ends=_NUMBERS,
        repeats=_NUMBERS,
        merges=_NUMBERS,
        when=_TEXT_OR_NULL,
        importance={"type": "number"},
        keywords={"type": "array", "items": _TEXT},
        tags={"type": "array", "items": _TEXT},
    ),
)
EPISODES = _list_of("episodes", _object(participant=_TEXT, title=_TEXT, content=_TEXT, messages=_NUMBERS))
ANSWER = _object(answer=_TEXT_OR_NULL, memories=_NUMBERS)
VERDICTS = _object(unsupported=_NUMBERS)
JUDGEMENTS = _list_of(
    "judgements",
    _object(
        pair={"type": "integer"},
        action={"type": "string", "enum": list(get_args(JudgedAction))},
        reason=_TEXT,
        merged=_TEXT_OR_NULL,
    ),
)
