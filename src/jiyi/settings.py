"""One settings object. What is given as an argument wins over the environment, that over `jiyi.toml`, that over the
`memory_system` section of a `config.json`. `docs/settings.md` lists every setting; a test holds the two together."""

from __future__ import annotations

import json
import os
import sys
import tomllib
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

# Names that other systems use in the environment, and where they belong here.
OUTSIDE_NAMES: dict[str, tuple[str, str]] = {
    "LLM_PROVIDER": ("llm", "provider"),
    "LLM_MODEL": ("llm", "model"),
    "LLM_BASE_URL": ("llm", "base_url"),
    "LLM_API_KEY": ("llm", "api_key"),
    "LLM_TEMPERATURE": ("llm", "temperature"),
    "LLM_MAX_TOKENS": ("llm", "max_tokens"),
    "EMBEDDING_BASE_URL": ("embedding", "base_url"),
    "EMBEDDING_API_KEY": ("embedding", "api_key"),
    "EMBEDDING_DIMENSION": ("embedding", "dimension"),
    "MONGODB_URI": ("engines", "mongodb_uri"),
    "ELASTICSEARCH_HOSTS": ("engines", "elasticsearch_hosts"),
    "MILVUS_HOST": ("engines", "milvus_host"),
    "MILVUS_PORT": ("engines", "milvus_port"),
}


ITS_NAMES = {"text_similarity_weight": "text_weight", "time_decay_weight": "recency_weight"}  # in memory_system.search


Preset = Literal["measured", "two_legs", "words_and_time", "meaning_and_time"]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class EmbeddingSettings(Section):
    base_url: str | None = Field(default=None, description="address of an OpenAI-compatible server; default: the LLM's")
    api_key: SecretStr | None = Field(default=None, description="its key; default: the LLM's")
    dimension: int | None = Field(default=None, gt=0, description="ask the model for vectors of this length")
    batch_size: int = Field(default=64, gt=0, description="texts embedded at once")


class LLMSettings(Section):
    provider: str = Field(default="openai", description="kind of endpoint; all are spoken to in OpenAI's protocol")
    model: str | None = Field(default=None, description="name of the model")
    base_url: str | None = Field(default=None, description="address of the endpoint")
    api_key: SecretStr | None = Field(default=None, description="its key")
    temperature: float = Field(default=0.3, ge=0, le=2, description="how freely it writes")
    max_tokens: int = Field(default=16384, gt=0, description="longest reply")
    timeout_s: float = Field(default=120.0, gt=0, description="how long one reply may take")
    retries: int = Field(default=2, ge=0, le=10, description="further tries when it is busy or not reached")
    reply_format: Literal["auto", "json_schema", "json_object", "plain"] = Field(
        default="auto", description="how it is held to JSON; auto: as strictly as the server can"
    )
    prompt_set: Literal["production", "eval"] = Field(default="production", description="how much is extracted")
    prompts: Path | None = Field(default=None, description="a folder with prompts of your own")
    tokens_per_hour: int | None = Field(default=None, gt=0, description="budget of one user in one hour")
    cost_per_hour: float | None = Field(default=None, gt=0, description="the same in money, by the two prices")
    input_price: float = Field(default=0.0, ge=0, description="price of a million tokens of input")
    output_price: float = Field(default=0.0, ge=0, description="price of a million tokens of output")


def _weight(description: str) -> Any:
    """A weight that is the preset's own unless it is set."""
    return Field(default=None, ge=0, allow_inf_nan=False, description=description)


def _takes(description: str) -> Any:
    """A weight that takes away: below 0."""
    return Field(default=None, le=0, allow_inf_nan=False, description=description)


class SearchSettings(Section):
    default_mode: Literal["hybrid", "keyword", "semantic"] = Field(
        default="hybrid", description="when none is asked for"
    )
    min_trust: float = Field(default=0.0, ge=0, le=1, description="leave out what is trusted less, unless asked for")
    preset: Preset = Field(
        default="measured",
        description="how memories are scored: `measured`, or a plain formula: `two_legs`, `words_and_time`,"
        " `meaning_and_time`; each has weights of its own, and those below change some of them",
    )
    keyword_weight: float | None = _weight("weight of matching keywords")
    text_weight: float | None = _weight(
        "weight of the text's words (BM25); in config.json also `text_similarity_weight`"
    )
    semantic_weight: float | None = _weight("weight of similar meaning (cosine), also of the messages before and after")
    dialogue_text_weight: float | None = _weight("for a query that is a dialogue: the words of all its turns")
    dialogue_semantic_weight: float | None = _weight("for a query that is a dialogue: the nearest turn's meaning")
    last_text_weight: float | None = _weight("for a query that is a dialogue: its last turn's words")
    last_semantic_weight: float | None = _weight("for a query that is a dialogue: its last turn's meaning")
    whole_semantic_weight: float | None = _weight("for a query that is a dialogue: the meaning of the whole")
    episode_weight: float | None = _weight("weight of the words of the whole conversation that a message belongs to")
    before_weight: float | None = _weight("weight of the words of the message before")
    gist_weight: float | None = _weight("weight of the meaning of what was worked out of a message")
    held_weight: float | None = _weight("weight of holding most of the query's words, rare ones counting more")
    phrase_weight: float | None = _weight("weight of holding a phrase that the query has in quotation marks")
    speaker_weight: float | None = _weight("weight of being said by somebody whom the query names")
    time_weight: float | None = _weight("weight of having happened when the query says")
    assistant_weight: float | None = _takes("weight (below 0) of being said by the assistant, unless that is asked for")
    asks_weight: float | None = _takes("weight (below 0) of being a question: it asks, it does not tell")
    over_weight: float | None = _takes("weight (below 0) of saying what is no longer so, when that is asked for")
    succeeds_weight: float | None = _weight("weight of speaking in the place of what is no longer so")
    derived_weight: float | None = _takes("weight (below 0) of being worked out of messages that are there themselves")
    recency_weight: float | None = _weight("weight of being recent; in config.json also `time_decay_weight`")
    importance_weight: float | None = _weight("weight of importance")
    uses_weight: float | None = _weight("weight of having been recalled often and lately")
    priority_weight: float | None = _weight("weight of the type's priority")
    half_life_days: float | None = Field(
        default=None, gt=0, description="age at which half of what recency gives is gone; 30 unless the preset differs"
    )
    expand_with_llm: bool = Field(default=False, description="ask the language model for synonyms of a query's words")
    expand_timeout_s: float = Field(default=3.0, gt=0, description="how long a search waits for them")
    type_priorities: dict[str, float] = Field(
        default={"preference": 1.0, "profile": 1.0, "fact": 0.5, "skill": 0.5, "command_output": 0.5},
        description="priority of a memory type, 0 to 1; types that are not named have 0",
    )


class ExtractionSettings(Section):
    enabled: bool = Field(default=True, description="work memories out of conversations; off: keep messages verbatim")
    fall_back: bool = Field(
        default=True, description="when a language model fails for good, the built-in extractor does without it"
    )
    min_importance: float = Field(default=0.3, ge=0, le=1, description="less important finds are dropped")
    min_confidence: float = Field(default=0.3, ge=0, le=1, description="less certain finds are dropped")
    unit_gap_minutes: float = Field(default=60, gt=0, description="a longer pause in a conversation begins a new unit")
    unit_messages: int = Field(default=40, ge=1, le=500, description="most messages of one unit")
    history_messages: int = Field(default=12, ge=0, le=200, description="earlier messages that help to understand")
    max_keywords_per_memory: int = Field(default=5, ge=1, le=50, description="keywords kept for a memory")
    min_keyword_weight: float = Field(
        default=0.3, ge=0, le=1, description="lighter keywords are dropped, but for the best"
    )
    enable_synonym_expansion: bool = Field(default=True, description="search for synonyms too")


class JobSettings(Section):
    in_process: bool = Field(default=True, description="do jobs where they were made; off: `jiyi worker` does")
    concurrency: int = Field(default=4, ge=1, le=64, description="jobs that one worker does at once")
    lease_s: float = Field(
        default=60.0, gt=0, le=3600, description="a worker not heard of for this long has lost its job"
    )
    max_attempts: int = Field(default=6, ge=1, description="a job that failed so often has failed")
    retry_after_s: float = Field(default=2.0, gt=0, description="pause before the second attempt; then twice as long")
    longest_pause_s: float = Field(default=300.0, gt=0, le=3600, description="longest pause between attempts")
    wait_s: float = Field(default=60.0, ge=0, description="how long `add` with `wait=True` waits for its job")


class CacheSettings(Section):
    answers: int = Field(default=1000, ge=0, description="answers to searches kept in this process; 0: none")
    seconds: float = Field(default=600.0, gt=0, le=3600, description="the longest that an answer is used again")
    redis_url: SecretStr | None = Field(
        default=None, description="address of a Redis that shares answers between processes: redis://HOST:6379/0"
    )
    query_vectors: int = Field(default=1000, ge=0, description="vectors of queries kept in this process; 0: none")


class RecallSettings(Section):
    record: bool = Field(default=True, description="note what searches return, and when")
    keep: int = Field(default=1000, ge=1, description="recalls kept of each user; older ones go")


class PostgresSettings(Section):
    pool_size: int = Field(default=10, ge=1, description="connections that a process keeps to the server")
    pool_timeout_s: float = Field(default=30.0, gt=0, description="how long to wait for a free connection")
    statement_timeout_s: float = Field(
        default=120.0, gt=0, description="when a statement without an answer is given up: the server is out of reach"
    )
    vector_index_above: int = Field(
        default=200_000,
        ge=0,
        description="upkeep gives users with more memories an HNSW index; their vectors stay out of RAM; 0: nobody",
    )


class ToolSettings(Section):
    enable_proactive_search: bool = Field(default=True, description="search without being asked, each turn")
    proactive_search_threshold: float = Field(default=0.7, ge=0, le=1, description="from this relevance on")
    max_results_per_search: int = Field(default=5, ge=1, le=20, description="hits a tool returns by default")
    min_relevance_score: float = Field(
        default=0.6, ge=0, le=1, description="a tool leaves out what is below this, unless the model asks for it"
    )
    relevance_floor: float = Field(
        default=0.4, ge=0, le=1, description="below this nothing is told to a model, even if it asks"
    )
    calls_per_minute: int = Field(default=30, ge=1, description="tool calls of one agent, in the long run")
    burst: int = Field(default=15, ge=1, description="tool calls of one agent, at once")


class MCPSettings(Section):
    key: SecretStr | None = Field(default=None, description="clients of `jiyi mcp --http` must show it")


class ServerSettings(Section):
    allow_hosts: tuple[str, ...] = Field(default=(), description="further names under which clients reach the server")
    body_mb: float = Field(default=16.0, gt=0, description="largest body of a request")
    upload_mb: float = Field(default=512.0, gt=0, description="largest chat file to import")
    json_depth: int = Field(default=64, ge=4, le=150, description="how deep the JSON of a request may be nested")
    requests_per_minute: int = Field(default=6000, ge=1, description="requests with one key, in the long run")
    burst: int = Field(default=400, ge=1, description="requests with one key, at once")
    most_at_once: int = Field(default=200, ge=1, description="requests that are worked on at once; more are put off")
    timeout_s: float = Field(default=60.0, gt=0, description="how long one request may take")
    receive_s: float = Field(default=20.0, gt=0, description="how long a client may pause while it sends")
    stop_s: float = Field(default=30.0, gt=0, description="how long open requests may take when the server is stopped")
    spool: Path | None = Field(default=None, description="a folder for uploaded files until they are imported")
    failed_jobs_s: float = Field(default=900.0, ge=0, description="how long a failed job makes the server unready")


class WorkspaceSettings(Section):
    path: Path | None = Field(default=None, description="the folder with memory.md and learnings.md; default: none")
    user: str | None = Field(
        default=None, description="whose files lie there; default: of several users, each in a folder of their own"
    )
    language: Literal["auto", "zh", "en"] = Field(
        default="auto", description="of headings in new files; auto: that of the memories"
    )
    daily_notes: bool = Field(default=False, description="keep episodes and events in a file for each day")


class ClientSettings(Section):
    key: SecretStr | None = Field(default=None, description="the key that is shown to a server")
    timeout_s: float = Field(default=60.0, gt=0, description="how long to wait for a server's answer")
    retry_s: float = Field(default=10.0, ge=0, description="how long to go on asking a server that is busy or away")
    connections: int = Field(default=20, ge=1, description="to one server, at once")


class TypePolicy(Section):
    keep: bool = Field(default=False, description="never compress memories of this type")
    half_life_days: float | None = Field(default=None, gt=0, description="their own half-life, for ranking only")
    ttl_days: float | None = Field(default=None, gt=0, description="archive them when they are older, used or not")
    compress_after_days: float | None = Field(default=None, ge=0, description="instead of keep.compress_after_days")


LASTING: dict[str, TypePolicy] = {name: TypePolicy(keep=True) for name in ("skill", "lesson", "profile")}


class KeepSettings(Section):
    every_hours: float | None = Field(
        default=24.0, gt=0, description="how often `jiyi worker` looks after memories; none: never by itself"
    )
    compress: bool = Field(default=True, description="upkeep compresses what is old and seldom used")
    compress_after_days: float = Field(default=30.0, ge=0, description="not heard of for this long: may be compressed")
    compress_again_after_days: float = Field(
        default=90.0, ge=0, description="what was compressed may be again; then after three times as long"
    )
    compress_below_uses: int = Field(
        default=5, ge=0, description="what was recalled so often stays as it is, unless not for as long as that"
    )
    compress_below_importance: float = Field(default=0.9, ge=0, le=1, description="what is so important stays as it is")
    smallest_group: int = Field(default=3, ge=2, le=100, description="so many memories become fewer; less stay")
    longest: int = Field(
        default=450,
        ge=100,
        le=20_000,
        description="letters of one compressed memory, three times as many each time it is compressed again; a Chinese"
        " character counts as three",
    )
    types: dict[str, TypePolicy] = Field(
        default={}, description="by memory type: keep, half_life_days, ttl_days, compress_after_days"
    )

    def policy(self, memory_type: str) -> TypePolicy:
        """A type's own, or the usual one; skills, lessons and profiles are kept unless it is said otherwise."""
        return self.types.get(memory_type) or LASTING.get(memory_type) or TypePolicy()


class EngineSettings(Section):
    mongodb_uri: str | None = Field(default=None, description="MongoDB (not used yet)")
    elasticsearch_hosts: str | None = Field(default=None, description="Elasticsearch (not used yet)")
    milvus_host: str | None = Field(default=None, description="Milvus (not used yet)")
    milvus_port: int = Field(default=19530, description="Milvus (not used yet)")


class Settings(BaseSettings):
    model_config = SettingsConfigDict(
        env_prefix="JIYI_", env_nested_delimiter="__", extra="forbid", frozen=True, populate_by_name=True
    )

    url: str | None = Field(
        default=None, description="where memories live: a path or a URL; default: a file of the user's"
    )
    user: str = Field(default="default", description="the user that the command line works for")
    embedder: str = Field(default="builtin", description="`builtin`, `openai:MODEL` or `sentence-transformers:MODEL`")
    busy_timeout_s: float = Field(default=30.0, gt=0, description="how long to wait for another process's write")
    cache_mb: int = Field(default=512, ge=0, description="RAM for the memories of users searched lately")
    postgres: PostgresSettings = PostgresSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    llm: LLMSettings = LLMSettings()
    search: SearchSettings = SearchSettings()
    extraction: ExtractionSettings = ExtractionSettings()
    jobs: JobSettings = JobSettings()
    cache: CacheSettings = CacheSettings()
    recalls: RecallSettings = RecallSettings()
    keep: KeepSettings = KeepSettings()
    tools: ToolSettings = ToolSettings()
    mcp: MCPSettings = MCPSettings()
    server: ServerSettings = ServerSettings()
    client: ClientSettings = ClientSettings()
    workspace: WorkspaceSettings = WorkspaceSettings()
    engines: EngineSettings = EngineSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        outside = InitSettingsSource(settings_cls, _from_outside_names())
        files: list[PydanticBaseSettingsSource] = []
        for path in config_files():
            found = _toml(path) if path.suffix == ".toml" else _memory_system(path)
            files.append(InitSettingsSource(settings_cls, found))
        return (init_settings, env_settings, outside, *files)


def load_settings(**given: Any) -> Settings:
    """The settings from all sources, or a `SettingsError` that names what is wrong."""
    try:
        return Settings(**given)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors())
        files = ", ".join(map(str, config_files()))
        raise SettingsError(f"settings: {problems}" + (f" (files read: {files})" if files else "")) from None
    except ValueError as error:
        raise SettingsError(f"settings: {error}") from error


def config_files() -> list[Path]:
    """The files that are read, the strongest first: `$JIYI_CONFIG` alone, or those of this folder and the user's."""
    chosen = os.environ.get("JIYI_CONFIG")
    if chosen:
        if not Path(chosen).is_file():
            raise SettingsError(f"JIYI_CONFIG names {chosen}, which is no file")
        return [Path(chosen)]
    places = (Path("jiyi.toml"), config_dir() / "jiyi.toml", Path("config.json"))
    return [path for path in places if _is_file(path)]


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a folder that may not be looked into
        return False


def _from_outside_names() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for variable, (section, name) in OUTSIDE_NAMES.items():
        if os.environ.get(variable):
            found.setdefault(section, {})[name] = os.environ[variable]
    return found


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path} cannot be read as TOML: {error}") from error


def _memory_system(path: Path) -> dict[str, Any]:
    """Many programs have a config.json; only the section that is meant for a memory system is ours."""
    try:
        whole = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path} cannot be read as JSON: {error}") from error
    section = whole.get("memory_system", {}) if isinstance(whole, dict) else {}
    if not isinstance(section, dict):
        raise SettingsError(f"{path}: memory_system is not an object")
    if isinstance(section.get("search"), dict):
        search = {ITS_NAMES.get(name, name): value for name, value in section["search"].items()}
        section = {**section, "search": search}
    return section


def data_dir() -> Path:
    """Where this system keeps a program's data for the present user."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData/Local")) / "jiyi"
    if sys.platform == "darwin":
        return Path.home() / "Library/Application Support/jiyi"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "jiyi"


def config_dir() -> Path:
    if sys.platform in ("win32", "darwin"):
        return data_dir()
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "jiyi"
