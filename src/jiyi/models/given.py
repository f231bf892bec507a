"""Values that callers give: messages and candidates, with times in UTC and constructors that take old names."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

from ..errors import InvalidInput
from ..memory_types import type_name

Status = Literal["active", "archived"]


def in_utc(at: datetime) -> datetime:
    if at.utcoffset() is None:
        raise ValueError("has no time zone; use datetime.now(UTC) or .replace(tzinfo=…)")
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise ValueError("is out of range in UTC") from None


Time = Annotated[datetime, AfterValidator(in_utc)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]


class Unset(Enum):
    """Type of `UNSET`, which leaves a value unchanged where None would remove it."""

    UNSET = "unset"


UNSET: Final = Unset.UNSET


class Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)  # validators are slow to build


def invalid_input(place: str, error: ValidationError) -> InvalidInput:
    """Return the first of pydantic's problems as an error that names the field, in a value at `place`."""
    first = error.errors(include_url=False)[0]
    field = "".join(f".{part}" if isinstance(part, str) else f"[{part}]" for part in first["loc"])
    return InvalidInput((place + field).removeprefix("."), first["msg"].removeprefix("Value error, "))


if TYPE_CHECKING:
    Given = Value  # a metaclass would hide the fields from type checkers
else:

    class _Constructor(type(BaseModel)):
        def __call__(cls, **given: Any) -> Any:
            for old, new in cls.old_names.items():
                given = with_new_name(old, new, given, cls.__name__)
            try:
                return super().__call__(**given)
            except ValidationError as error:
                raise invalid_input("", error) from None

    class Given(Value, metaclass=_Constructor):
        """A value that callers make: its constructor raises `InvalidInput` and takes old names."""


def with_new_name(old: str, new: str, given: Mapping[str, Any], place: str) -> Mapping[str, Any]:
    """Return arguments or fields with a new name in place of an old one, and warn if the old one was used."""
    if old not in given:
        return given
    if given.get(new) is not None:
        raise InvalidInput(place, f"has {new!r} and {old!r}, its old name: leave {old!r} out")
    told = f"{place}: {old!r} is now {new!r}; the next version does not know the old name"
    warnings.warn(told, DeprecationWarning, stacklevel=3)
    return {new if name == old else name: value for name, value in given.items() if name != new}


def with_new_names(names: Mapping[str, str], data: Any) -> Any:
    """Return the fields of a foreign value with new names in place of old ones."""
    if not isinstance(data, dict):
        return data
    for old in (old for old, new in names.items() if old in data and new in data):
        raise ValueError(f"has {names[old]!r} and {old!r}, its old name: leave {old!r} out")
    return {names.get(name, name): value for name, value in data.items()}


# Names of a message's time in other formats. An unknown one would silently become the current time.
IMAGE_TEXTS = ("alt", "alt_text", "caption", "description", "title")
SENT_AT_ALIASES = ("timestamp", "created_at", "create_time")


class Message(Given):
    """A message. OpenAI's field names `content` and `name` are accepted too."""

    old_names: ClassVar[Mapping[str, str]] = {}

    model_config = ConfigDict(frozen=True, extra="ignore")

    text: str
    role: str = Field(default="user", max_length=64)
    speaker: str | None = Field(default=None, max_length=256)
    sent_at: Time | None = None
    id: str | None = Field(default=None, max_length=256, description="the caller's id, returned in `source_ids`")

    @model_validator(mode="before")
    @classmethod
    def _take_openai_names(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        names = {"content": "text", "name": "speaker"}
        taken = {names.get(key, key): value for key, value in data.items() if value is not None or key not in names}
        if taken.get("sent_at") is None:
            taken["sent_at"] = next((data[name] for name in SENT_AT_ALIASES if data.get(name) is not None), None)
        if isinstance(taken.get("text"), list):
            taken["text"] = "\n".join(text for part in taken["text"] if (text := _text_of_part(part)))
        return taken


def _text_of_part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict):
        text = part.get("text", part.get("refusal"))
        if isinstance(text, str):
            return text
        return next((told for name in IMAGE_TEXTS if isinstance(told := part.get(name), str)), "")
    raise ValueError("each part of the content must be text or an object")


# Names of a candidate's fields in other formats.
CANDIDATE_ALIASES = {"structured_data": "data", "importance_score": "importance"}


class CandidateMemory(Given):
    """A memory extracted by the caller. As an object it may also have the names `text` and `type`, and those of other
    formats: `structured_data` for data and `importance_score` for importance."""

    old_names: ClassVar[Mapping[str, str]] = {"text": "content", "type": "memory_type"}  # accepted for one version

    content: str
    memory_type: Annotated[str, AfterValidator(type_name)] | None = Field(default=None, max_length=64)
    source_session_id: str | None = Field(
        default=None, max_length=256, description="stored as `session_id` and in `metadata`"
    )
    summary: str | None = None
    memory_key: str | None = Field(default=None, max_length=256)
    importance: Share | None = None
    confidence: Share | None = None
    trust: Share | None = Field(default=None, description="trust in its source, compared with `min_trust`")
    tags: tuple[str, ...] = ()
    data: dict[str, JsonValue] | None = None
    metadata: dict[str, JsonValue] | None = None
    status: Status = Field(default="active", description="archived memories are not searched")
    occurred_at: Time | None = None
    valid_from: Time | None = None
    valid_to: Time | None = None
    expires_at: Time | None = None

    @model_validator(mode="before")
    @classmethod
    def _take_other_names(cls, data: Any) -> Any:
        free = {other: name for other, name in CANDIDATE_ALIASES.items() if isinstance(data, dict) and name not in data}
        data = {free.get(key, key): value for key, value in data.items()} if free else data
        return with_new_names(cls.old_names, data)
