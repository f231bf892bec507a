"""Settings and their sources. An argument wins over an environment variable, that over `jiyi.toml`, that over the
`memory_system` section of a `config.json`. Files of the current folder need trust: see `folder_trust`.
`docs/settings.md` is generated from this file by `make docs`."""

from __future__ import annotations

import os
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from .errors import SettingsError
from .folder_trust import SettingsFile, folder_files
from .settings_files import JSON_NAME, TOML_NAME, config_dir, parse, read_bytes, shared_values

Preset = Literal["measured", "two_legs", "words_and_time", "meaning_and_time"]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, defer_build=True)


class EmbeddingSettings(Section):
    """OpenAI-compatible embedding endpoint, for `embedder = "openai:MODEL"`."""

    base_url: str | None = Field(default=None, description="endpoint; default: `llm.base_url`")
    api_key: SecretStr | None = Field(default=None, description="API key; default: `llm.api_key`")
    dimension: int | None = Field(default=None, gt=0, description="vector length to request from the model")
    batch_size: int = Field(default=64, gt=0, description="maximum texts per request")


class LLMSettings(Section):
    """Language model. Without `llm.model`, none is used. Keys are shown as stars."""

    provider: str = Field(default="openai", description="provider whose default address is used: see llm.md")
    model: str | None = Field(default=None, description="model name")
    base_url: str | None = Field(default=None, description="OpenAI-compatible endpoint; default: the provider's")
    api_key: SecretStr | None = Field(default=None, description="API key")
    temperature: float = Field(default=0.3, ge=0, le=2, description="sampling temperature")
    max_tokens: int = Field(default=16384, gt=0, description="maximum tokens of a reply")
    timeout_s: float = Field(default=120.0, gt=0, description="seconds until a request is abandoned")
    retries: int = Field(default=2, ge=0, le=10, description="retries of a request that failed temporarily")
    prompt_set: Literal["production", "eval"] = Field(
        default="production", description="`production`: extract what is worth keeping; `eval`: extract everything"
    )
    prompts: Path | None = Field(default=None, description="folder with custom prompts")
    tokens_per_hour: int | None = Field(default=None, gt=0, description="token budget per user and hour")
    verify: Literal["auto", "on", "off"] = Field(
        default="auto",
        description="ask the model once more which of its memories the conversation does not support; `auto`: if the"
        " model is a small one or has failed the test of `jiyi doctor`",
    )


def _weight(description: str) -> Any:
    return Field(default=None, ge=0, allow_inf_nan=False, description=f"{description}; default: the preset's")


class SearchSettings(Section):
    """Defaults of `search` and `context`."""

    default_mode: Literal["hybrid", "keyword", "semantic"] = Field(
        default="hybrid", description="search mode if the call names none"
    )
    min_trust: float = Field(default=0.0, ge=0, le=1, description="minimum trust of results if the call names none")
    preset: Preset = Field(
        default="measured",
        description="scoring: `measured` (fitted and calibrated) or a plain formula: `two_legs`, `words_and_time`,"
        " `meaning_and_time`",
    )
    keyword_weight: float | None = _weight("weight of matching keywords")
    text_weight: float | None = _weight("weight of matching words (BM25); in config.json also `text_similarity_weight`")
    semantic_weight: float | None = _weight("weight of vector similarity")
    recency_weight: float | None = _weight("weight of recency; in config.json also `time_decay_weight`")
    importance_weight: float | None = _weight("weight of importance")
    half_life_days: float | None = Field(
        default=None, gt=0, description="age at which recency has halved; default: the preset's, usually 30"
    )
    reader: bool = Field(default=True, description="let the reader judge hits, changes and a model's memories")
    reading_tokens: int = Field(
        default=1000, ge=0, le=100_000, description="tokens of a search that the reader reads at most"
    )
    expand_with_llm: bool = Field(default=False, description="ask the language model for synonyms of query words")


class UserWishes(Section):
    instructions: str | None = Field(default=None, max_length=4000, description="what to remember, and what never")
    categories: tuple[str, ...] = Field(default=(), description="tags")


class ExtractionSettings(Section):
    """Extraction of memories from messages."""

    enabled: bool = Field(default=True, description="extract memories; off: store messages verbatim only")
    fallback: bool = Field(
        default=True, description="use the built-in extractor when the language model fails permanently"
    )
    instructions: str | None = Field(
        default=None, max_length=4000, description="for the language model: what to remember, and what never"
    )
    categories: tuple[str, ...] = Field(
        default=(),
        description="the tags that the language model may give, as a JSON list: `diet`, or `diet: food and allergies`",
    )
    users: dict[str, UserWishes] = Field(
        default={}, description="by user id: further `instructions` and `categories` of this user"
    )
    min_importance: float = Field(default=0.3, ge=0, le=1, description="drop memories of less importance")
    min_confidence: float = Field(
        default=0.3, ge=0, le=1, description="drop memories of less confidence, but none of a language model"
    )
    max_keywords_per_memory: int = Field(default=5, ge=1, le=50, description="maximum keywords of a memory")
    min_keyword_weight: float = Field(
        default=0.3, ge=0, le=1, description="drop keywords of less weight; the best one always stays"
    )
    enable_synonym_expansion: bool = Field(default=True, description="expand queries with synonyms")


class JobSettings(Section):
    """Background jobs."""

    in_process: bool = Field(default=True, description="run jobs in this process; off: only `jiyi worker` runs them")
    concurrency: int = Field(default=4, ge=1, le=64, description="jobs that a worker runs at once")
    lease_s: float = Field(
        default=60.0, gt=0, le=3600, description="seconds without a heartbeat until a job is given to another worker"
    )
    max_attempts: int = Field(default=6, ge=1, description="attempts until a job has failed")
    retry_delay_s: float = Field(
        default=2.0, gt=0, description="seconds before the first retry; then doubled, up to 150 times"
    )
    wait_timeout_s: float = Field(default=60.0, ge=0, description="maximum seconds that `add(wait=True)` waits")


class CacheSettings(Section):
    """Cache of search results and query vectors."""

    max_searches: int = Field(default=1000, ge=0, description="search results cached in the process; 0: none")
    ttl_s: float = Field(
        default=600.0, gt=0, le=3600, description="seconds until a cached result expires; writes invalidate at once"
    )
    redis_url: SecretStr | None = Field(
        default=None, description="Redis that shares cached results between processes: redis://HOST:6379/0"
    )
    max_query_vectors: int = Field(default=1000, ge=0, description="query vectors cached in this process; 0: none")


class RecallSettings(Section):
    """Log of what searches returned."""

    enabled: bool = Field(default=True, description="record the results of searches")
    max_per_user: int = Field(default=1000, ge=1, description="records kept per user; the oldest are deleted")


class PostgresSettings(Section):
    """PostgreSQL store."""

    pool_size: int = Field(default=10, ge=1, description="connections of a process")
    pool_timeout_s: float = Field(default=30.0, gt=0, description="maximum seconds to wait for a free connection")
    statement_timeout_s: float = Field(
        default=120.0, gt=0, description="seconds until a statement without an answer is abandoned"
    )
    vector_index_above: int = Field(
        default=200_000,
        ge=0,
        description="memories above which a user gets an HNSW index instead of vectors in RAM; 0: nobody",
    )


class EngineSettings(Section):
    """External engines, which follow the change feed: see scaling.md."""

    milvus_url: SecretStr | None = Field(
        default=None,
        description="Milvus for vectors: `http://USER:PASSWORD@HOST:19530`, `https://KEY@HOST` or a file",
    )
    elasticsearch_url: SecretStr | None = Field(
        default=None,
        description="OpenSearch or Elasticsearch for words: `http://USER:PASSWORD@HOST:9200`; several with commas",
    )
    elasticsearch_api_key: SecretStr | None = Field(default=None, description="API key, as Elasticsearch encodes it")
    elasticsearch_bearer: SecretStr | None = Field(default=None, description="bearer token, instead of an API key")
    mongodb_url: SecretStr | None = Field(default=None, description="MongoDB for documents: `mongodb://HOST/DATABASE`")
    ca_file: Path | None = Field(default=None, description="authorities that sign the servers' certificates")
    cert_file: Path | None = Field(default=None, description="certificate of this client; for MongoDB with its key")
    key_file: Path | None = Field(default=None, description="key of that certificate")
    shards: int = Field(default=1, ge=1, le=1024, description="shards of a new index for words")
    replicas: int = Field(default=0, ge=0, le=10, description="copies of each shard, and of a new collection")
    refresh_interval: str = Field(
        default="1s",
        pattern=r"^(-1|[0-9]+(ms|s|m))$",
        description="time until other programs see new words",
    )
    content_analyzer: Literal["standard", "cjk"] = Field(
        default="cjk", description="analyzer of `content`, which other programs search"
    )
    prefix: str = Field(default="jiyi", pattern=r"^[a-z][a-z0-9_]{0,39}$", description="begins the names of indexes")
    vectors: Literal["builtin", "milvus"] = Field(default="builtin", description="where searches look for vectors")
    words: Literal["builtin", "elasticsearch"] = Field(default="builtin", description="where searches look for words")
    above: int = Field(default=0, ge=0, description="memories above which a user is searched in the engines")
    timeout_s: float = Field(default=10.0, gt=0, le=20, description="seconds until a write is abandoned")
    search_timeout_s: float = Field(
        default=3.0, gt=0, le=20, description="seconds until a search does without an engine"
    )


class ToolSettings(Section):
    """Memory tools of agents."""

    enable_proactive_search: bool = Field(default=True, description="recall memories for each message of the user")
    proactive_search_threshold: float = Field(
        default=0.0, ge=0, le=1, description="minimum relevance of recalled memories"
    )
    max_results_per_search: int = Field(default=16, ge=1, le=20, description="memories per search of a tool")
    recall_timeout_s: float = Field(
        default=1.5, gt=0, description="longest wait for memories in a turn; then the agent goes on without them"
    )
    calls_per_minute: int = Field(
        default=30, ge=1, description="tool calls per agent and minute; half of them may come at once"
    )


class MCPSettings(Section):
    """MCP server."""

    key: SecretStr | None = Field(default=None, description="key that clients of `jiyi mcp --http` must send")


class ServerSettings(Section):
    """REST server, `jiyi serve`."""

    allow_hosts: tuple[str, ...] = Field(
        default=(), description="further host names of the server, as a JSON list; also `--allow-host`"
    )
    max_body_mb: float = Field(default=16.0, gt=0, description="maximum size of a request body in MiB")
    max_upload_mb: float = Field(default=512.0, gt=0, description="maximum size of an uploaded file in MiB")
    requests_per_minute: int = Field(default=6000, ge=1, description="sustained requests per key and minute")
    burst: int = Field(default=400, ge=1, description="requests per key at once")
    max_concurrent: int = Field(default=200, ge=1, description="requests handled at once; more are answered with 503")
    timeout_s: float = Field(default=60.0, gt=0, description="maximum seconds of a request")
    receive_timeout_s: float = Field(default=20.0, gt=0, description="maximum seconds between parts of a request")
    shutdown_timeout_s: float = Field(
        default=3.0, gt=0, description="seconds that open requests get at shutdown; the process ends 1.5 s later"
    )
    upload_dir: Path | None = Field(
        default=None, description="folder for uploaded files, in the data directory unless absolute; default: `imports`"
    )


class WorkspaceSettings(Section):
    """Workspace: memory.md and learnings.md. All but `path` count when a workspace is created."""

    path: Path | None = Field(default=None, description="workspace folder")
    user: str | None = Field(default=None, description="the only user of the workspace; default: one folder per user")
    language: Literal["auto", "zh", "en"] = Field(
        default="auto", description="language of headings; `auto`: that of the memories"
    )
    daily_notes: bool = Field(default=False, description="write episodes and events to one file per day")


class ClientSettings(Section):
    """Client of a Jiyi server."""

    key: SecretStr | None = Field(default=None, description="API key")
    timeout_s: float = Field(default=60.0, gt=0, description="seconds until a request is abandoned")
    connect_timeout_s: float = Field(default=10.0, gt=0, description="seconds until a server counts as unreachable")
    retry_timeout_s: float = Field(
        default=10.0, ge=0, description="seconds to keep retrying while the server is busy or unreachable; 0: never"
    )


class TypePolicy(Section):
    never_compress: bool = Field(default=False, description="never compress memories of this type")
    half_life_days: float | None = Field(default=None, gt=0, description="half-life for ranking")
    ttl_days: float | None = Field(default=None, gt=0, description="age at which they are archived")
    compress_after_days: float | None = Field(default=None, ge=0, description="overrides the general setting")


LASTING: dict[str, TypePolicy] = {name: TypePolicy(never_compress=True) for name in ("skill", "lesson", "profile")}


class MaintenanceSettings(Section):
    """Maintenance: `jiyi maintain`, `jiyi worker`."""

    interval_hours: float | None = Field(
        default=24.0, gt=0, description="hours between maintenance runs of `jiyi worker`; none: never"
    )
    compress: bool = Field(default=True, description="compress old, rarely used memories")
    compress_after_days: float = Field(default=30.0, ge=0, description="days without use until compression")
    compress_again_after_days: float = Field(
        default=90.0, ge=0, description="days until a compressed memory is compressed again; triples each time"
    )
    compress_below_uses: int = Field(
        default=5, ge=0, description="memories recalled this often are compressed only after the second period"
    )
    types: dict[str, TypePolicy] = Field(
        default={},
        description="by memory type: `never_compress`, `half_life_days`, `ttl_days`, `compress_after_days`",
    )

    def policy(self, memory_type: str) -> TypePolicy:
        """Return the policy of a type; skills, lessons and profiles are not compressed by default."""
        return self.types.get(memory_type) or LASTING.get(memory_type) or TypePolicy()


class Settings(BaseSettings):
    model_config = SettingsConfigDict(
        env_prefix="JIYI_", env_nested_delimiter="__", extra="forbid", frozen=True, populate_by_name=True
    )

    url: str | None = Field(
        default=None,
        description="path, `sqlite:///PATH`, `postgresql://USER@HOST/DATABASE` or `http(s)://` of a Jiyi server;"
        " default: `memory.db` in the data directory",
    )
    user: str = Field(default="default", description="user of the command line")
    user_names: tuple[str, ...] = Field(
        default=(), description="names that mean the user in messages, besides the user's id, as a JSON list; exact"
    )
    embedder: str = Field(default="builtin", description="`builtin`, `openai:MODEL` or `sentence-transformers:MODEL`")
    auto_migrate: bool | None = Field(
        default=None,
        description="create and migrate the tables on opening; default: a file always, PostgreSQL only if it is empty",
    )
    busy_timeout_s: float = Field(default=30.0, gt=0, description="maximum seconds to wait for another writer")
    cache_mb: int = Field(default=512, ge=0, description="RAM in MiB for the indexes of recently searched users")
    postgres: PostgresSettings = PostgresSettings()
    engines: EngineSettings = EngineSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    llm: LLMSettings = LLMSettings()
    search: SearchSettings = SearchSettings()
    extraction: ExtractionSettings = ExtractionSettings()
    jobs: JobSettings = JobSettings()
    cache: CacheSettings = CacheSettings()
    recalls: RecallSettings = RecallSettings()
    maintenance: MaintenanceSettings = MaintenanceSettings()
    tools: ToolSettings = ToolSettings()
    mcp: MCPSettings = MCPSettings()
    server: ServerSettings = ServerSettings()
    client: ClientSettings = ClientSettings()
    workspace: WorkspaceSettings = WorkspaceSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        shared = InitSettingsSource(settings_cls, shared_values())
        files = (InitSettingsSource(settings_cls, dict(file.settings)) for file in settings_files())
        return (init_settings, env_settings, shared, *files)


def load_settings(**given: Any) -> Settings:
    """Load the settings from all sources, or raise a `SettingsError` that names each invalid one."""
    try:
        return Settings(**given)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors())
        files = ", ".join(str(file.path) for file in settings_files())
        raise SettingsError(f"settings: {problems}" + (f" (files read: {files})" if files else "")) from None
    except ValueError as error:
        raise SettingsError(f"settings: {error}") from error


def load_settings_anywhere() -> tuple[Settings, str | None]:
    """Load the settings for a program that a coding agent starts in whatever folder it works in.

    If they cannot be used as they are, leave out the files of the folder that the user does not trust, and return the
    problem too.
    """
    try:
        return load_settings(), None
    except SettingsError as error:
        before = _without_untrusted.set(True)
        try:
            return load_settings(), str(error)
        finally:
            _without_untrusted.reset(before)


_without_untrusted: ContextVar[bool] = ContextVar("without_untrusted", default=False)


def settings_files() -> list[SettingsFile]:
    """Read the settings files that count, the strongest first; `$JIYI_CONFIG` replaces all others.

    Raise if a file of the current folder needs the user's trust, or cannot be read.
    """
    if chosen := os.environ.get("JIYI_CONFIG"):
        named = _own_file(Path(chosen))
        if named is None:
            raise SettingsError(f"JIYI_CONFIG: {chosen} is not a file")
        return [named]
    here = [file for file in folder_files() if file.is_trusted or not _without_untrusted.get()]
    if problems := "; ".join(file.problem for file in here if file.problem):
        raise SettingsError(problems)
    found = {file.path.name: file for file in here}
    files = (found.get(TOML_NAME), _own_file(config_dir() / TOML_NAME), found.get(JSON_NAME))
    return [file for file in files if file is not None]


def _own_file(path: Path) -> SettingsFile | None:
    data = read_bytes(path)
    return None if data is None else SettingsFile(path=path, settings=parse(path, data), is_trusted=True)
