"""Request bodies and parameters. The limits are the engine's own, stated here for OpenAPI."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal, Self

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from .. import validation
from ..areas.recalls import MAX_CONTEXT_TOKENS, MAX_TOKENS, Depth
from ..keys import MAX_KEY_USERS, Permission
from ..memory_types import Layer
from ..models import (
    MOST_FOR_ANSWER,
    CandidateMemory,
    Message,
    OnConflict,
    RelationType,
    SearchMode,
    Share,
    Status,
    Time,
    with_new_names,
)
from ..read.context import ContextLanguage, Style

MAX_ENTRIES = 2_000  # messages or candidates in one call; more is an import
MAX_STEPS = 500
MAX_INSTRUCTIONS = 4_000  # characters

Name = Annotated[str, Field(min_length=1, max_length=validation.MAX_NAME)]
Type = Annotated[str, Field(min_length=1, max_length=validation.MAX_TYPE)]
Text = Annotated[str, Field(min_length=1, max_length=validation.MAX_TEXT)]
QueryText = Annotated[str, Field(min_length=1, max_length=validation.MAX_QUERY)]
Names = Annotated[list[Name], Field(max_length=validation.MAX_TAGS)]
Limit = Annotated[int, Field(ge=1, le=validation.MAX_LIMIT)]
Actor = Annotated[str | None, Field(default=None, min_length=1, max_length=128, description="for the history")]
Version = Annotated[int | None, Field(default=None, ge=1, le=10**9)]
Epoch = Annotated[
    str | None,
    Field(
        default=None,
        max_length=validation.MAX_NAME,
        description="of `GET /v1/epoch`: nothing is saved if the user was deleted since then",
    ),
]
Object = dict[str, JsonValue]
CONDITIONS = 'conditions by key that all must hold, such as {"project": "apollo", "rating": {"gte": 4}}'


def example(**fields: Any) -> ConfigDict:
    return ConfigDict(extra="forbid", json_schema_extra={"examples": [fields]})


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid")

    old_names: ClassVar[Mapping[str, str]] = {}  # of fields, accepted for one version

    @model_validator(mode="before")
    @classmethod
    def _take_old_names(cls, data: Any) -> Any:
        return with_new_names(cls.old_names, data)


class AddBody(Body):
    """Exactly one of `text`, `messages` and `candidates`."""

    model_config = example(text="我吃素，对花生过敏", tags=["diet"])

    text: Text | None = Field(default=None, description="a statement")
    messages: Annotated[list[Message], Field(min_length=1, max_length=MAX_ENTRIES)] | None = Field(
        default=None, description="a conversation; OpenAI's names (`content`, `name`) are accepted too"
    )
    candidates: Annotated[list[CandidateMemory], Field(min_length=1, max_length=MAX_ENTRIES)] | None = Field(
        default=None, description="ready memories"
    )
    session_id: Name | None = None
    agent_id: Name | None = None
    group_id: Name | None = None
    memory_type: Type | None = Field(default=None, description="type of a statement")
    importance: Share | None = None
    tags: Names | None = None
    metadata: Object | None = None
    occurred_at: Time | None = None
    expires_at: Time | None = None
    trust: Share = Field(default=1.0, description="how far the source is trusted")
    user_names: Names | None = Field(
        default=None, description="names of the user in `messages`, besides the user's id; other names are other people"
    )
    own_only: bool = Field(default=False, description="make memories only of what the user told or is told about")
    instructions: Annotated[str | None, Field(min_length=1, max_length=MAX_INSTRUCTIONS)] = Field(
        default=None, description="for the language model: what to remember, and what never"
    )
    categories: Names | None = Field(default=None, description="tags that the language model may give")
    on_conflict: OnConflict = Field(default="error", description="what to do with a `memory_key` that is taken")
    wait: bool = Field(default=False, description="wait until extraction is done, at most `jobs.wait_timeout_s`")
    epoch: Epoch = None
    actor: Actor = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if sum(value is not None for value in (self.text, self.messages, self.candidates)) != 1:
            raise ValueError("give exactly one of text, messages and candidates")
        return self

    def content(self) -> Any:
        return self.text if self.text is not None else self.messages or self.candidates

    def fields(self) -> dict[str, Any]:
        return {name: value for name, value in self if name not in ("text", "messages", "candidates", "actor")}


class UpdateBody(Body):
    """The given fields are changed; null removes `valid_to` and `expires_at`."""

    model_config = example(content="Lives in Berlin", reason="she moved")

    content: Text | None = None
    summary: Text | None = None
    memory_type: Type | None = None
    importance: Share | None = None
    tags: Names | None = None
    metadata: Object | None = None
    occurred_at: Time | None = None
    valid_to: Time | None = None
    expires_at: Time | None = None
    status: Status | None = None
    reason: Text | None = None
    actor: Actor = None

    def changes(self) -> dict[str, Any]:
        """Return the fields to change; null counts only where it removes a value."""
        given = {name: getattr(self, name) for name in self.model_fields_set - {"reason", "actor"}}
        return {name: value for name, value in given.items() if value is not None or name in ("valid_to", "expires_at")}


class ChangedBody(UpdateBody):
    memory_id: Name
    expected_version: Version = None

    old_names = {"version": "expected_version"}

    def changes(self) -> dict[str, Any]:
        given = super().changes()
        return {"memory_id": self.memory_id, "expected_version": self.expected_version} | given


class UpdatesBody(Body):
    """All changes are made, or none."""

    model_config = example(changes=[{"memory_id": "01JD…", "content": "Lives in Berlin"}])

    changes: Annotated[list[ChangedBody], Field(min_length=1, max_length=MAX_ENTRIES)]
    reason: Text | None = None
    actor: Actor = None


class DeletesBody(Body):
    """All memories are deleted, or none."""

    model_config = example(memory_ids=["01JD…"])

    memory_ids: Annotated[list[Name], Field(min_length=1, max_length=MAX_ENTRIES)]
    with_sources: bool = Field(default=False, description="also delete their source messages")


class RestoreBody(Body):
    """Without a version, the last change is undone."""

    model_config = example(to_version=1)

    to_version: Version = None
    expected_version: Version = None
    reason: Text | None = None
    actor: Actor = None

    old_names = {"version": "to_version"}


class FilterBody(Body):
    """The filters of `search` and `context`."""

    session_id: Name | None = None
    agent_id: Name | None = None
    group_id: Name | None = None
    memory_types: Names | None = None
    layers: Annotated[list[Layer], Field(max_length=3)] | None = None
    tags: Names | None = None
    time_range: tuple[Time | None, Time | None] | None = None
    time_range_days: Annotated[int, Field(ge=1, le=100_000)] | None = None
    as_of: Time | None = None
    min_trust: Share | None = None
    metadata: Object | None = Field(default=None, description=CONDITIONS)


def filter_query(
    session_id: Name | None = None,
    agent_id: Name | None = None,
    group_id: Name | None = None,
    memory_types: Annotated[Names | None, Query(description="any of these; repeat it for several")] = None,
    layers: Annotated[list[Layer] | None, Query()] = None,
    tags: Annotated[Names | None, Query(description="any of these; repeat it for several")] = None,
    since: Annotated[Time | None, Query(description="happened then or later")] = None,
    until: Annotated[Time | None, Query(description="happened before")] = None,
    as_of: Annotated[Time | None, Query(description="valid at that time")] = None,
    status: Status = "active",
    min_trust: Annotated[float | None, Query(ge=0, le=1)] = None,
    metadata: Annotated[str | None, Query(description=f"{CONDITIONS}, as JSON", max_length=validation.MAX_JSON)] = None,
) -> dict[str, Any]:
    """The same filters, and `status`, as query parameters."""
    filters = dict(locals())
    filters["time_range"] = time_range(filters.pop("since"), filters.pop("until"))
    filters["metadata"] = None if metadata is None else validation.json_text("metadata", metadata)
    return filters


def time_range(since: datetime | None, until: datetime | None) -> tuple[datetime | None, datetime | None] | None:
    return None if since is None and until is None else (since, until)


class SearchBody(FilterBody):
    model_config = example(query="what can she eat?", limit=5, explain=True)

    query: QueryText
    search_mode: SearchMode | None = None
    keywords: Names | None = None
    min_relevance_score: Share = 0.0
    radius: Share | None = None
    limit: Limit = 5
    asked_at: Time | None = None
    explain: bool = False


class AnswerBody(FilterBody):
    model_config = example(question="what can she eat?")

    question: QueryText
    limit: Annotated[int, Field(ge=1, le=MOST_FOR_ANSWER)] = 12
    asked_at: Time | None = None


RECALL_DEPTH: Any = Field(default="normal", description='"wide" fills the token budget with weaker hits')
LEAST_RELEVANCE = "least score of a hit; default: the setting tools.proactive_search_threshold"


class ContextBody(FilterBody):
    model_config = example(query="晚饭吃什么？", max_tokens=400)

    query: QueryText
    max_tokens: Annotated[int, Field(ge=1, le=1_000_000)] = MAX_CONTEXT_TOKENS
    style: Style = "sections"
    language: ContextLanguage | None = None
    depth: Depth = RECALL_DEPTH
    min_relevance_score: Share | None = Field(default=None, description=LEAST_RELEVANCE)
    asked_at: Time | None = None


class RecallBody(Body):
    model_config = example(said="晚饭吃什么？", max_tokens=400)

    said: QueryText = Field(description="the words of the user")
    max_tokens: Annotated[int, Field(ge=1, le=1_000_000)] = MAX_TOKENS
    style: Style = "sections"
    language: ContextLanguage | None = Field(default=None, description="of the block; default: that of the words")
    session_id: Name | None = Field(default=None, description="words of this session are left out")
    skip_session: bool = Field(default=True, description="false: words of the session are not left out")
    agent_id: Name | None = None
    group_id: Name | None = None
    private: bool = Field(default=False, description="only the memories of this agent and group")
    depth: Depth = RECALL_DEPTH
    limit: Limit | None = None
    min_relevance_score: Share | None = Field(default=None, description=LEAST_RELEVANCE)
    explain: bool = Field(default=False, description="add what was left out, and why")


class ExpandBody(Body):
    model_config = example(keywords=["过敏"])

    keywords: Annotated[list[Name], Field(min_length=1, max_length=validation.MAX_TAGS)]


class Pair(Body):
    keyword: Name
    synonym: Name
    similarity: Annotated[float, Field(gt=0, le=1)] = 1.0


class SynonymsBody(Body):
    model_config = example(pairs=[{"keyword": "k8s", "synonym": "kubernetes"}])

    pairs: Annotated[list[Pair], Field(min_length=1, max_length=MAX_ENTRIES)]
    shared: bool = Field(default=False, description="for all users; needs the scope admin and a key for all users")


class TurnBody(Body):
    model_config = example(user_text="我下周三去上海", assistant_text="需要订酒店吗？", session_id="s1")

    user_text: Text
    assistant_text: Text | None = None
    session_id: Name | None = None
    agent_id: Name | None = None
    group_id: Name | None = None
    metadata: Object | None = None


class SessionEndBody(Body):
    model_config = example(session_id="s1")

    session_id: Name


class SummaryBody(Body):
    model_config = example(summary="They planned the trip to Shanghai", session_id="s1")

    summary: Text
    session_id: Name | None = None
    agent_id: Name | None = None


class SkillBody(Body):
    model_config = example(name="deep research", workflow=["web_search", "read_url", "summarize"])

    name: Name
    workflow: Annotated[list[Name | Object], Field(min_length=1, max_length=MAX_STEPS)]
    agent_id: Name | None = None
    note: Name | None = None
    metadata: Object | None = None


class RelationBody(Body):
    model_config = example(target_id="01k9zj6w9v3c7g3e1v2k8d5q4m", relation_type="supports", strength=0.7)

    target_id: Name
    relation_type: RelationType
    strength: Share = 1.0


class UndoBody(Body):
    """One of: `memory_id`, whose last change is undone; a source (`session_id`, `source_actor`, `metadata`, maybe
    `since`); or `to`, a time after which everything is undone."""

    model_config = example(session_id="s7")

    memory_id: Name | None = None
    session_id: Name | None = None
    source_actor: Name | None = Field(default=None, description="of the changes to undo, as in the history")
    metadata: Annotated[dict[Name, Text], Field(max_length=validation.MAX_TAGS)] | None = None
    since: Time | None = None
    to: Time | None = None

    old_names = {"actor": "source_actor"}


class KeyBody(Body):
    """A key for the named users, or for all; never with more permissions than the key of the request."""

    model_config = example(name="mei's phone", scopes=["read", "write"], user_ids=["mei"])

    name: Annotated[str, Field(min_length=1, max_length=64)]
    scopes: Annotated[list[Permission], Field(min_length=1, max_length=4)] = ["read", "write"]
    user_ids: Annotated[list[Name], Field(max_length=MAX_KEY_USERS)] = []
    all_users: bool = False
    expires_at: Time | None = None


RetrieveMethod = Literal["KEYWORD", "VECTOR", "HYBRID"]


class RetrieveMemoryRequest(Body):
    model_config = example(user_id="mei", query="咖啡", retrieve_method="HYBRID", top_k=10)

    user_id: Name | None = None
    query: QueryText
    retrieve_method: RetrieveMethod = "HYBRID"
    top_k: Limit = 10
    start_time: Time | None = None
    end_time: Time | None = None
    memory_sub_type: Literal["episode", "semantic_memory", "event_log"] | None = None
    group_id: Name | None = None
    radius: Share | None = Field(default=None, description="least similarity of what is found by its meaning")


class FetchMemoryRequest(Body):
    model_config = example(memory_ids=["01k9zj6w9v3c7g3e1v2k8d5q4m"])

    user_id: Name | None = None
    memory_ids: Annotated[list[Name], Field(max_length=validation.MAX_LIMIT)]


class MemorizeRequest(Body):
    model_config = example(
        new_raw_data_list=[{"role": "user", "content": "我下周三去上海"}],
        user_id_list=["mei"],
        source_type="CONVERSATION",
    )

    history_raw_data_list: Annotated[list[Message], Field(max_length=MAX_ENTRIES)] = []
    new_raw_data_list: Annotated[list[Message], Field(min_length=1, max_length=MAX_ENTRIES)]
    user_id_list: Annotated[list[Name], Field(max_length=100)] = []
    user_names: Names | None = Field(default=None, description="names of the user in the messages, of one user only")
    source_type: Literal["CONVERSATION"] = "CONVERSATION"
    group_id: Name | None = None
    session_id: Name | None = None
