"""The records of an export: one value for each row, whatever the database. Terms and hashes are left out because they
follow from the text. Vectors are kept because embedding is slow or costs money."""

from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from typing import Annotated, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, TypeAdapter

from ... import validation
from ...memory_types import Layer
from ...models import Status, Time
from ..schema.columns import VECTOR
from ..schema.tables import ID, NAME

EXPORT = "jiyi-export"
VERSION = 1  # of the format; an export of a newer one is refused


def _storable(value: str) -> str:
    """Text that every database can hold."""
    if "\x00" in value:
        raise ValueError("contains a NUL character")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("is not valid Unicode") from None
    return value


def _object(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return validation.json_object("object", value)


def _numbers(value: str) -> str:
    try:
        found = decoded(value)
    except (NotBase64, ValueError):
        raise ValueError("is no vector: float32 numbers, little-endian, in base64") from None
    if not len(found) or not np.isfinite(found).all():
        raise ValueError("is no vector: it is empty, or some values are not finite")
    return value


def _data(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return validation.memory_data("data", value)


def _content(value: str) -> str:
    return validation.content("text", value)


def _tags(values: list[str]) -> list[str]:
    return list(validation.tags("tags", values))


Text = Annotated[str, AfterValidator(_storable)]
Name = Annotated[Text, Field(min_length=1, max_length=NAME)]
Id = Annotated[Text, Field(min_length=1, max_length=ID)]
Short = Annotated[Text, Field(min_length=1, max_length=16)]
Kind = Annotated[Text, Field(min_length=1, max_length=64)]
Hash = Annotated[Text, Field(max_length=64)]
Object = Annotated[dict[str, JsonValue], AfterValidator(_object)]
Data = Annotated[dict[str, JsonValue], AfterValidator(_data)]
Content = Annotated[str, AfterValidator(_content)]
Tags = Annotated[list[str], AfterValidator(_tags)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Weight = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, lt=2**31)]
Version = Annotated[int, Field(ge=0, le=10**9)]  # with room to count on
Numbers = Annotated[str, AfterValidator(_numbers)]


class Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Record(Part):
    """One line."""

    user_id: Name


class SynonymRecord(Record):
    kind: Literal["synonym"] = "synonym"
    user_id: Annotated[Text, Field(max_length=NAME)]  # the empty one is everybody
    keyword: Name
    synonym: Name
    similarity: Share


class UnitRecord(Record):
    kind: Literal["unit"] = "unit"
    id: Id
    session_id: Name | None
    group_id: Name | None
    subject: Text | None
    summary: Text
    narrative: Text
    participants: list[Text]
    started_at: Time
    ended_at: Time
    created_at: Time


class MessageRecord(Record):
    kind: Literal["message"] = "message"
    id: Id
    external_id: Name | None
    session_id: Name | None
    agent_id: Name | None
    group_id: Name | None
    unit_id: Id | None
    role: Kind
    speaker: Name | None
    text: Content
    sent_at: Time
    dedupe_hash: Hash | None
    created_at: Time


class SourceRecord(Part):
    message_id: Id
    span_start: Count | None
    span_end: Count | None


class KeywordRecord(Part):
    keyword: Name
    weight: Weight
    source: Short


class VectorRecord(Part):
    part: Count
    model: Annotated[Text, Field(max_length=128)]
    vector: Numbers


class RevisionRecord(Part):
    version: Version
    action: Short
    actor: Name
    reason: Text | None
    before: Object | None
    changed_at: Time


class MemoryRecord(Record):
    kind: Literal["memory"] = "memory"
    id: Id
    memory_key: Name
    agent_id: Name | None
    group_id: Name | None
    session_id: Name | None
    memory_type: Kind
    layer: Layer
    content: Content
    summary: Text
    data: Data
    metadata: Object
    importance: Share
    confidence: Share
    tags: Tags
    dedupe_hash: Hash | None
    slot: Annotated[Text, Field(max_length=32)] | None
    status: Status
    version: Version
    occurred_at: Time
    valid_from: Time
    valid_to: Time | None
    superseded_by: Id | None
    expires_at: Time | None
    access_count: Count
    last_accessed_at: Time | None
    source: Kind
    trust: Share
    created_at: Time
    updated_at: Time
    keywords: list[KeywordRecord]
    sources: list[SourceRecord]
    vectors: list[VectorRecord]
    revisions: list[RevisionRecord]


class RelationRecord(Record):
    kind: Literal["relation"] = "relation"
    memory_id: Id
    target_id: Id
    relation_type: Short
    strength: Share
    created_at: Time


class RecallRecord(Record):
    kind: Literal["recall"] = "recall"
    id: Id
    query: Text
    memory_ids: list[Id]
    recalled_at: Time
    session_id: Name | None = None
    agent_id: Name | None = None


class JobRecord(Record):
    """A job, done or not, without its lease."""

    kind: Literal["job"] = "job"
    id: Id
    job: Annotated[Text, Field(max_length=32)]
    state: Short
    idempotency_key: Name | None
    request_hash: Hash | None
    created: Count
    problems: list[Text]
    attempts: Count
    session_id: Name | None
    payload: Object | None
    not_before: Time | None
    created_at: Time
    updated_at: Time
    memory_ids: list[Id]


Line = (
    SynonymRecord
    | UnitRecord
    | MessageRecord
    | MemoryRecord
    | RelationRecord
    | RecallRecord
    | JobRecord
)  # fmt: skip
LINE: TypeAdapter[Line] = TypeAdapter(Annotated[Line, Field(discriminator="kind")], config=ConfigDict(defer_build=True))
R = TypeVar("R", bound=Record)


def encoded(vector: NDArray[np.float32]) -> str:
    return b64encode(np.ascontiguousarray(vector, dtype=VECTOR).tobytes()).decode()


def decoded(vector: str) -> NDArray[np.float32]:
    return np.frombuffer(b64decode(vector, validate=True), dtype=VECTOR)


def unit_vector(vector: str) -> NDArray[np.float32]:
    """Return a vector of length 1, or 0 for a text without words: a foreign one must not outweigh all others."""
    found = decoded(vector).astype(np.float64)
    length = float(np.linalg.norm(found))
    return decoded(vector) if length == 0 or abs(length - 1) < 1e-3 else (found / length).astype(VECTOR)
