"""Arguments of the tools, and their JSON schemas. The user and the scope are no arguments: the host sets them. Models
write arguments as they have seen them elsewhere, so common aliases are accepted, and so are numbers and lists as text,
and null, "" or [] for an argument that is not given. Anything else is an error with the reason."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from ... import validation
from ...languages.dates import dates
from ...models import utc_now
from ...scope import MetadataCondition

ToolLanguage = Literal["en", "zh"]
# OpenAI's strict mode allows these keywords only.
_STRICT = frozenset({"type", "description", "enum", "items", "anyOf", "const", "minimum", "maximum"})
_ANNOTATIONS = frozenset({"title", "zh", "hidden", "default", "maxLength"})
MAX_HITS = 20
_IDS = {"id": "memory_key", "memory_id": "memory_key", "key": "memory_key"}
_TEXTS = {"text": "content", "memory": "content"}
_TYPES = {"type": "memory_type", "category": "memory_type"}
_FILTERS = {"types": "memory_types", "memory_type": "memory_types", "type": "memory_types"}
_LIMITS = {"top_k": "limit", "k": "limit", "n": "limit", "page_size": "limit", "max_results": "limit"}


def field(en: str = "", zh: str = "", **constraints: Any) -> Any:
    """Declare an argument with its description in both languages; a name that says it all needs none."""
    return Field(description=en, json_schema_extra={"zh": zh}, **constraints)


def hidden(**constraints: Any) -> Any:
    """Declare an argument that is accepted but not in the schema: each one costs prompt tokens in every request."""
    return Field(default=None, json_schema_extra={"hidden": True}, **constraints)


def _list(value: object) -> object:
    """Accept a list as JSON text, or as text with commas."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("["):
        try:
            return json.loads(value)
        except ValueError:
            pass
    return [part.strip() for part in value.replace("，", ",").replace("、", ",").split(",") if part.strip()]


def _conditions(value: object) -> object:
    """Accept conditions on metadata as JSON text."""
    try:
        given = json.loads(value) if isinstance(value, str) else value
        MetadataCondition.parse_all("metadata", given)
    except ValueError as error:
        raise PydanticCustomError("conditions", "{problem}", {"problem": str(error)}) from None
    return given


def _whole(value: object) -> object:
    """Accept an integer as text or as a float."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return value
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _clamp(value: object) -> object:
    """Reduce a limit that is too high instead of failing the call."""
    value = _whole(value)
    return min(max(value, 1), MAX_HITS) if isinstance(value, int) and not isinstance(value, bool) else value


def _moment(value: object, *, end: bool = False) -> datetime | None:
    """Read a time from ISO 8601 or from words such as "last May" or 上周五; of a span, its start or its end."""
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
                raise PydanticCustomError("time", "is not a time; write 2026-05-01 or 2026-05-01T09:30:00Z") from None
            found, day = (spans[-1].end if end else spans[0].start), False
    if found.utcoffset() is None:
        found = found.replace(tzinfo=UTC)
    try:
        return (found + timedelta(days=1) if day and end else found).astimezone(UTC)
    except OverflowError:
        raise PydanticCustomError("time", "is out of range") from None


def _span(value: object) -> object:
    """Read [start, end] from a list, an object, JSON text, or words for a time."""
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


Names = Annotated[list[str], BeforeValidator(_list), WithJsonSchema({"type": "array", "items": {"type": "string"}})]
Whole = Annotated[int, Field(ge=0, le=100_000), BeforeValidator(_whole)]
Limit = Annotated[int, Field(ge=1, le=MAX_HITS), BeforeValidator(_clamp)]
Conditions = Annotated[dict[str, JsonValue], BeforeValidator(_conditions)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Moment = Annotated[datetime, BeforeValidator(_moment), WithJsonSchema({"type": "string"})]
TimeRange = Annotated[
    tuple[datetime | None, datetime | None],
    BeforeValidator(_span),
    WithJsonSchema({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}}),
]
Key = Annotated[str, Field(max_length=validation.MAX_NAME)]


class ToolInput(BaseModel):
    """Base of the inputs: applies aliases and drops empty values before validation."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    aliases: ClassVar[dict[str, str]] = {}

    @model_validator(mode="before")
    @classmethod
    def _normalise(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        given = {name: value for name, value in data.items() if value not in (None, "", [], {})}
        for other, name in cls.aliases.items():
            if other in given and other not in cls.model_fields and name not in given:
                given[name] = given.pop(other)
        return given


class SearchMemoriesInput(ToolInput):
    aliases = {"q": "query", "text": "query", "question": "query", "mode": "search_mode", **_FILTERS, **_LIMITS}

    query: str = field(
        "A question, a description or keywords, in the user's language.",
        "问题、描述或关键词，使用用户的语言。",
        max_length=validation.MAX_QUERY,
    )
    search_mode: Literal["semantic", "keyword", "hybrid"] | None = field(
        "By meaning, by words, or by both (hybrid).", "按语义、按词语，或两者（hybrid）。", default=None
    )
    keywords: Names | None = field("Only memories with one of these words.", "只查含有其中一个词的记忆。", default=None)
    metadata: Conditions | None = hidden()
    memory_types: Names | None = field(
        "E.g. preference, fact, task, skill, event, message.",
        "例如 preference、fact、task、skill、event、message。",
        default=None,
    )
    time_range: TimeRange | None = field(
        '[start, end], e.g. ["2026-05-01", null].', '[开始, 结束]，例如 ["2026-05-01", null]。', default=None
    )
    time_range_days: Whole | None = hidden()
    limit: Limit | None = field(default=None)
    min_relevance_score: Share | None = field("0 to 1.", "0 到 1。", default=None)

    @model_validator(mode="after")
    def _one_time_filter(self) -> Self:
        if self.time_range is not None and self.time_range_days is not None:
            raise PydanticCustomError("span", "time_range and time_range_days cannot be used together; use one")
        return self


class GetMemoryDetailInput(ToolInput):
    aliases = _IDS

    memory_key: Key = field()
    offset: Whole = field(default=0)


class SaveMemoryInput(ToolInput):
    aliases = {**_TEXTS, **_TYPES}

    content: str = field(
        "One statement that is clear on its own: who, what, absolute dates.",
        "一条单独看也清楚的陈述：谁、什么、绝对日期。",
        max_length=validation.MAX_TEXT,
    )
    memory_type: Annotated[str, Field(max_length=validation.MAX_TYPE)] | None = field(
        "fact (default), preference, task, skill, event, …",
        "fact（默认）、preference、task、skill、event 等。",
        default=None,
    )
    importance: Share | None = hidden()
    tags: Names | None = hidden()
    occurred_at: Moment | None = field("Date, if not today.", "发生日期，默认今天。", default=None)


class UpdateMemoryInput(ToolInput):
    aliases = {**_IDS, **_TEXTS, **_TYPES}

    memory_key: Key = field()
    content: Annotated[str, Field(max_length=validation.MAX_TEXT)] | None = field(
        "The complete new text.", "新的完整内容。", default=None
    )
    memory_type: Annotated[str, Field(max_length=validation.MAX_TYPE)] | None = hidden()
    importance: Share | None = hidden()
    tags: Names | None = hidden()
    reason: Annotated[str, Field(max_length=validation.MAX_TEXT)] | None = hidden()


class ForgetMemoryInput(ToolInput):
    aliases = _IDS

    memory_key: Key = field()
    permanently: bool = field(
        "Erase it; only if the user asks for that. Otherwise it is archived.",
        "彻底删除，仅在用户明确要求时使用；否则只归档。",
        default=False,
    )
    reason: Annotated[str, Field(max_length=validation.MAX_TEXT)] | None = hidden()


class ListMemoriesInput(ToolInput):
    aliases = {**_FILTERS, **_LIMITS, "next_cursor": "cursor", "page": "cursor"}

    memory_types: Names | None = hidden()
    tags: Names | None = hidden()
    metadata: Conditions | None = hidden()
    limit: Limit | None = hidden()
    cursor: Key | None = field(default=None)


def json_schema(model: type[ToolInput], language: ToolLanguage, *, strict: bool = False) -> dict[str, Any]:
    """Return the JSON schema of an input; a strict one requires every property, and null stands for a default."""
    whole = model.model_json_schema()
    offered = {name: field for name, field in whole["properties"].items() if not field.get("hidden")}
    properties = {name: _property(field, language, strict) for name, field in offered.items()}
    required = list(whole.get("required", []))
    if strict:
        for name in properties.keys() - set(required):
            properties[name] = _nullable(properties[name])
        required = list(properties)
    closed = {"additionalProperties": False} if strict else {}
    return {"type": "object", "properties": properties, "required": required, **closed}


def _property(field: dict[str, Any], language: ToolLanguage, strict: bool) -> dict[str, Any]:
    text = field.get("zh") if language == "zh" else field.get("description")
    described = {"description": text} if text else {}
    shape = {name: value for name, value in field.items() if name != "description"}
    if not strict and "anyOf" in field and "default" in field and field["default"] is None:
        # An optional argument need not be null either; most models read a plain type best.
        [shape] = [kind for kind in field["anyOf"] if kind != {"type": "null"}]
    cleaned = _clean(shape, strict)
    if not strict and field.get("default") is not None:
        cleaned["default"] = field["default"]
    return {**cleaned, **described}


def _clean(shape: dict[str, Any], strict: bool) -> dict[str, Any]:
    kept = {name: value for name, value in shape.items() if (name in _STRICT if strict else name not in _ANNOTATIONS)}
    if "items" in kept:
        kept["items"] = _clean(kept["items"], strict)
    if "anyOf" in kept:
        kept["anyOf"] = [_clean(kind, strict) for kind in kept["anyOf"]]
    return kept


def _nullable(field: dict[str, Any]) -> dict[str, Any]:
    if {"type": "null"} in field.get("anyOf", ()):
        return field
    shape = {name: value for name, value in field.items() if name != "description"}
    described = {"description": field["description"]} if "description" in field else {}
    return {"anyOf": [shape, {"type": "null"}], **described}
