"""What a model may ask for. User and scope are no arguments: the host binds them.

Models write what they have seen elsewhere, so the usual other names of an argument are taken, and so are numbers as
text, a list as text, and null, "" or [] for "not given". What cannot be understood is an error that says why.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from ... import validation
from ...languages.dates import dates
from ...models import utc_now

MOST_HITS = 20
_IDS = {"id": "memory_key", "memory_id": "memory_key", "key": "memory_key"}
_TEXTS = {"text": "content", "memory": "content"}
_TYPES = {"type": "memory_type", "category": "memory_type"}
_FILTERS = {"types": "memory_types", "memory_type": "memory_types", "type": "memory_types"}
_LIMITS = {"top_k": "limit", "k": "limit", "n": "limit", "page_size": "limit", "max_results": "limit"}


def said(en: str, zh: str, **constraints: Any) -> Any:
    """A field with its description in both languages; `schema.py` picks one."""
    return Field(description=en, json_schema_extra={"zh": zh}, **constraints)


# -- lenient types ----------------------------------------------------------------------------------------------------


def _several(value: object) -> object:
    """A list also as JSON text, or as text with commas."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("["):
        try:
            return json.loads(value)
        except ValueError:
            pass
    return [part.strip() for part in value.replace("，", ",").replace("、", ",").split(",") if part.strip()]


def _whole(value: object) -> object:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return value
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _up_to_most(value: object) -> object:
    """More than can be had is no mistake worth a call."""
    value = _whole(value)
    return min(max(value, 1), MOST_HITS) if isinstance(value, int) and not isinstance(value, bool) else value


def _moment(value: object, *, end: bool = False) -> datetime | None:
    """A moment from ISO 8601 or from words such as "last May" or 上周五; of a span its start or its end."""
    if value is None or value == "":
        return None
    if isinstance(value, datetime):
        found, day = value, False
    elif not isinstance(value, str):
        raise PydanticCustomError("time", "must be a time such as 2026-05-01 or 2026-05-01T09:30:00Z")
    else:
        try:
            found, day = datetime.fromisoformat(value), len(value.strip()) == 10
        except ValueError:
            spans = dates(value, utc_now())
            if not spans:
                raise PydanticCustomError("time", "is no time; write 2026-05-01 or 2026-05-01T09:30:00Z") from None
            found, day = (spans[-1].end if end else spans[0].start), False
    if found.utcoffset() is None:
        found = found.replace(tzinfo=UTC)
    try:
        return (found + timedelta(days=1) if day and end else found).astimezone(UTC)
    except OverflowError:
        raise PydanticCustomError("time", "is out of range") from None


def _span(value: object) -> object:
    if isinstance(value, str):
        value = json.loads(value) if value.lstrip().startswith(("[", "{")) else [value, value]
    if isinstance(value, Mapping):
        named = dict(value)
        value = [
            next((named[name] for name in names if name in named), None)
            for names in (("start", "from", "after"), ("end", "to", "before"))
        ]
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise PydanticCustomError("span", "must be two times, [start, end]; null leaves a side open")
    start, end = _moment(value[0]), _moment(value[1], end=True)
    if start and end and start >= end:
        raise PydanticCustomError("span", "ends before it starts")
    return start, end


def _names(**more: Any) -> Any:
    return {"type": "array", "items": {"type": "string"}, **more}


Names = Annotated[list[str], BeforeValidator(_several), WithJsonSchema(_names())]
Whole = Annotated[int, BeforeValidator(_whole)]
Limit = Annotated[int, BeforeValidator(_up_to_most), Field(ge=1, le=MOST_HITS)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Moment = Annotated[datetime, BeforeValidator(_moment), WithJsonSchema({"type": "string"})]
TimeRange = Annotated[
    tuple[datetime | None, datetime | None],
    BeforeValidator(_span),
    WithJsonSchema({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}}),
]
Key = Annotated[str, Field(max_length=validation.MAX_NAME)]


# -- what each tool takes ---------------------------------------------------------------------------------------------


class ToolInput(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    other_names: ClassVar[dict[str, str]] = {}

    @model_validator(mode="before")
    @classmethod
    def _understand(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        given = {name: value for name, value in data.items() if not _absent(value)}
        for other, name in cls.other_names.items():
            if other in given and other not in cls.model_fields and name not in given:
                given[name] = given.pop(other)
        return given


def _absent(value: object) -> bool:
    return value is None or (isinstance(value, (str, list, dict)) and not value)


class SearchMemoriesInput(ToolInput):
    other_names = {"q": "query", "text": "query", "question": "query", "mode": "search_mode", **_FILTERS, **_LIMITS}

    query: str = said(
        "What to look for: a question, a description or keywords, in the user's language.",
        "要查找的内容：问题、描述或关键词，使用用户的语言。",
        max_length=validation.MAX_QUERY,
    )
    search_mode: Literal["semantic", "keyword", "hybrid"] | None = said(
        "semantic: by meaning; keyword: by exact words; hybrid (the default): both.",
        "semantic：按语义；keyword：按关键词；hybrid（默认）：两者结合。",
        default=None,
    )
    keywords: Names | None = said(
        "Words that the memory should contain exactly, such as names or identifiers.",
        "记忆中应当出现的确切词语，例如人名、产品名或标识符。",
        default=None,
    )
    memory_types: Names | None = said(
        "Only these types, e.g. preference, fact, pattern, skill, task, profile, episode, event, message.",
        "只查这些类型，例如 preference、fact、pattern、skill、task、profile、episode、event、message。",
        default=None,
    )
    time_range: TimeRange | None = said(
        '[start, end] of when it happened, e.g. ["2026-05-01", "2026-05-31"]; null leaves a side open.',
        '事情发生的时间范围 [开始, 结束]，例如 ["2026-05-01", "2026-05-31"]；null 表示不限。',
        default=None,
    )
    time_range_days: Annotated[Whole, Field(ge=1, le=100_000)] | None = said(
        "Only the last so many days; use this or time_range.", "只查最近多少天；与 time_range 二选一。", default=None
    )
    limit: Limit | None = said("How many memories at most, 1 to 20.", "最多返回几条，1 到 20。", default=None)
    min_relevance_score: Share | None = said(
        "Leave out memories below this relevance, 0 to 1; usually 0.6.",
        "低于该相关度（0 到 1，通常 0.6）的记忆不返回。",
        default=None,
    )

    @model_validator(mode="after")
    def _one_way_to_say_when(self) -> SearchMemoriesInput:
        if self.time_range is not None and self.time_range_days is not None:
            raise PydanticCustomError("span", "time_range and time_range_days cannot be used together; use one")
        return self


class GetMemoryDetailInput(ToolInput):
    other_names = _IDS

    memory_key: Key = said("The key of the memory, as a search shows it.", "记忆的键，即搜索结果中显示的键。")
    offset: Annotated[Whole, Field(ge=0)] = said(
        "For a long memory: from which character on.", "内容较长时：从第几个字符开始。", default=0
    )


class SaveMemoryInput(ToolInput):
    other_names = {**_TEXTS, **_TYPES}

    content: str = said(
        "One statement that makes sense on its own later: who, what, when. No relative dates.",
        "一条以后单独看也能看懂的陈述：谁、什么、何时。不要用相对日期。",
        max_length=validation.MAX_TEXT,
    )
    memory_type: Annotated[str, Field(max_length=validation.MAX_TYPE)] | None = said(
        "preference, fact (the default), pattern, skill, task, event, …",
        "preference、fact（默认）、pattern、skill、task、event 等。",
        default=None,
    )
    importance: Share | None = said(
        "How much it matters, 0 to 1; 0.5 if unsure.", "重要程度，0 到 1；不确定时为 0.5。", default=None
    )
    tags: Names | None = said("A few words to file it under.", "几个归类用的标签。", default=None)
    occurred_at: Moment | None = said(
        "When it happened, e.g. 2026-05-01, if not now.", "发生的时间，例如 2026-05-01；默认为现在。", default=None
    )


class UpdateMemoryInput(ToolInput):
    other_names = {**_IDS, **_TEXTS, **_TYPES}

    memory_key: Key = said("The key of the memory to change.", "要修改的记忆的键。")
    content: Annotated[str, Field(max_length=validation.MAX_TEXT)] | None = said(
        "The whole new text.", "新的完整内容。", default=None
    )
    memory_type: Annotated[str, Field(max_length=validation.MAX_TYPE)] | None = said(
        "Its new type.", "新的类型。", default=None
    )
    importance: Share | None = said("Its new importance, 0 to 1.", "新的重要程度，0 到 1。", default=None)
    tags: Names | None = said("All of its new tags.", "新的全部标签。", default=None)
    reason: Annotated[str, Field(max_length=validation.MAX_TEXT)] | None = said(
        "Why it changes, for its history.", "修改的原因，记入历史。", default=None
    )


class ForgetMemoryInput(ToolInput):
    other_names = _IDS

    memory_key: Key = said("The key of the memory to forget.", "要忘记的记忆的键。")
    permanently: bool = said(
        "true: erase it for ever, only if the user asks for that. false: put it away; it can be restored.",
        "true：彻底删除，仅在用户明确要求时使用。false：收起，可以恢复。",
        default=False,
    )
    reason: Annotated[str, Field(max_length=validation.MAX_TEXT)] | None = said(
        "Why, for its history.", "原因，记入历史。", default=None
    )


class ListMemoriesInput(ToolInput):
    other_names = {**_FILTERS, **_LIMITS, "next_cursor": "cursor", "page": "cursor"}

    memory_types: Names | None = said("Only these types.", "只列出这些类型。", default=None)
    tags: Names | None = said("Only those with one of these tags.", "只列出带有其中任一标签的记忆。", default=None)
    limit: Limit | None = said("How many at most, 1 to 20.", "最多几条，1 到 20。", default=None)
    cursor: Key | None = said(
        "From the answer before, for the next page.", "上一次回答给出的游标，用于翻页。", default=None
    )
