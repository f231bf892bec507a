"""Schemas of the replies, and lenient models that read them.

Text, type, messages and quote of a memory must be valid. Optional fields (importance, keywords, a date) fall back to
their default when they are of the wrong type.
"""

from __future__ import annotations

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

_NUMBER = re.compile(r"\[?\s*(?:#|m|message\s*|消息\s*)?(\d{1,6})\s*\]?", re.IGNORECASE)


def _numbers(value: Any) -> Any:
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
Numbers = Annotated[list[Annotated[int, Field(ge=1, strict=True)]], BeforeValidator(_numbers), Field(min_length=1)]
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
    when: OptionalWords = None
    importance: Annotated[float, Field(ge=0, le=1), _or_default(0.5)] = 0.5
    keywords: Annotated[list[Words], Field(max_length=20), _or_default(list)] = []


class ProposedEpisode(ReplyModel):
    participant: Words
    title: Annotated[str, Field(min_length=1, max_length=MAX_TITLE)]
    content: Annotated[str, Field(min_length=1, max_length=MAX_EPISODE)]
    messages: Numbers


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


_DETERMINER = re.compile(
    r"(?:an?|the|my|our|some|any|his|her|their|this|that|these|those|to|of|about|very|really|quite|more|also|lots of"
    r"|a lot of)\s+",
    re.IGNORECASE,
)
# Where the thing itself is over and its circumstances begin.
_AFTER = re.compile(
    r"\s*(?:[,;!?()\"“”]|(?<!\bDr)(?<!\bMr)(?<!\bMs)(?<!\bMrs)(?<!\bSt)(?<!\bProf)[.:](?!\w))|\s+(?:because|since|but|so|when|while|which|who|that|as|until|after|before|though|although|if"
    r"|for|with|by|every|on|at|these days|nowadays|now|right now|anymore|any more|any longer|too|as well|instead|again"
    r"|a lot|very much|so much|more than|over|than|lately|recently|and (?:i|we|my|it|he|she|they)|last|next|this|today"
    r"|yesterday|tomorrow|tonight|in \d{4}|in (?:january|february|march|april|may|june|july|august|september|october"
    r"|november|december)|ago|year|where|is|are|was)\b",
    re.IGNORECASE,
)
_CHINESE_AFTER = re.compile(
    r"[，。！？；、,!?~～…（）()]|\.(?!\w)|因为|所以|但|不过|而且|的时候|之后|以后|之前|已经|可是|好几年|很多年"
    r"|[一二三四五六七八九十两\d]{1,3}多?(?:年|个月|天|周)了"
)
_CHINESE_BEFORE = re.compile(r"^(?:一[个只条台辆套份名位家种款部本]|了|过|的|是|着|得|很|那种|这种)")
_CHINESE_TAIL = re.compile(r"(?:了|呢|啊|吧|的|哦|哈|呀|啦|哟|嘛|噢|喔|而已|来着|什么的|之类的|等等|一下){1,4}$")
LONGEST = 48


def plain_value(text: str, language: str) -> str:
    """The thing itself.

    >>> plain_value("a really big dog, because we can", "en"), plain_value("一只大狗了", "zh")
    ('big dog', '大狗')
    """
    text = text[:200].strip()
    if language == "zh":
        end = _CHINESE_AFTER.search(text)
        text = text[: end.start()] if end and end.start() else text
        return _CHINESE_TAIL.sub("", _CHINESE_BEFORE.sub("", text)).strip()[:LONGEST]
    while found := _DETERMINER.match(text):
        text = text[found.end() :]
    end = _AFTER.search(text)
    if end and end.start():
        text = text[: end.start()]
    return text.strip(" '\"*_-")[:LONGEST].strip()
