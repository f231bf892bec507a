"""Sources of settings. Files: where the user's own lie, reading them, and parsing jiyi.toml and config.json, in which
other systems have names of their own. Environment variables without our prefix."""

import json
import os
import re
import stat
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any
from urllib.parse import quote

from .errors import SettingsError

TOML_NAME, JSON_NAME = "jiyi.toml", "config.json"
# Names accepted in `memory_system.search` of a config.json, and ours.
CONFIG_JSON_NAMES = {"text_similarity_weight": "text_weight", "time_decay_weight": "recency_weight"}
# Options of a vector store that describe what Jiyi does anyway.
FIXED = {"create-table": True, "drop-table-first": False}
VECTOR_STORE = "memory.embedding.vector-store"
MAX_TOML = 64 << 10  # bytes
MAX_JSON = 8 << 20  # bytes; other programs keep their settings in a config.json too
MAX_MESSAGE = 200  # characters of a parser's message, which may quote the file
MAX_DOTS = 500  # in a line; `tomllib` takes a minute for a key of 30,000 parts, and all memory for a longer one


def data_dir() -> Path:
    """Return the user's data directory for Jiyi."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData/Local")) / "jiyi"
    if sys.platform == "darwin":
        return Path.home() / "Library/Application Support/jiyi"
    return _xdg("XDG_DATA_HOME", ".local/share") / "jiyi"


def config_dir() -> Path:
    if sys.platform in ("win32", "darwin"):
        return data_dir()
    return _xdg("XDG_CONFIG_HOME", ".config") / "jiyi"


def _xdg(variable: str, default: str) -> Path:
    """Return the folder that a variable names. Relative ones are ignored, as its specification says: the current folder
    may be anybody's."""
    named = Path(os.environ.get(variable, ""))
    return named if named.is_absolute() else Path.home() / default


def read_bytes(path: Path) -> bytes | None:
    """Return the content of a settings file; None if there is no regular file of that name."""
    if not _is_file(path):
        return None
    limit = MAX_TOML if path.suffix == ".toml" else MAX_JSON
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):  # it has just become a pipe or a device
                return None
            data = file.read(limit + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > limit:
        raise SettingsError(f"{path} has more than {limit >> 10:,} KiB")
    return data


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # e.g. a directory without search permission
        return False


def parse(path: Path, data: bytes) -> dict[str, Any]:
    """Return the settings in the content of a file, by its name as TOML or as JSON."""
    kind = "TOML" if path.suffix == ".toml" else "JSON"
    try:
        return _parse_toml(data) if kind == "TOML" else _parse_config_json(path, data)
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{path} cannot be read as {kind}: {str(error)[:MAX_MESSAGE]}") from error


def _parse_toml(data: bytes) -> dict[str, Any]:
    if any(line.count(b".") > MAX_DOTS for line in data.split(b"\n")):
        raise ValueError(f"a line has more than {MAX_DOTS} dots")
    return tomllib.loads(data.decode("utf-8"))


def _parse_config_json(path: Path, data: bytes) -> dict[str, Any]:
    """Return the settings in `memory_system` and `memory.embedding.vector-store`; the rest of a config.json belongs to
    other programs."""
    whole = json.loads(data.decode("utf-8"))
    whole = whole if isinstance(whole, dict) else {}
    section = whole.get("memory_system", {})
    if not isinstance(section, dict):
        raise SettingsError(f"{path}: memory_system is not an object")
    if isinstance(section.get("search"), dict):
        search = {CONFIG_JSON_NAMES.get(name, name): value for name, value in section["search"].items()}
        section = {**section, "search": search}
    store: Any = whole
    for name in VECTOR_STORE.split("."):
        store = store.get(name) if isinstance(store, dict) else None
    if store is None:
        return section
    if not isinstance(store, dict):
        raise SettingsError(f"{path}: {VECTOR_STORE} is not an object")
    found = _vector_store(store, f"{path}: {VECTOR_STORE}")
    embedding = section.get("embedding", {})
    if isinstance(embedding, dict):  # anything else is named when the settings are validated
        embedding = {**found["embedding"], **embedding}
    return {**found, **section, "embedding": embedding}


def _vector_store(section: dict[str, Any], where: str) -> dict[str, Any]:
    """Return the URL and the dimension of a PostgreSQL vector store. Its table is not used: Jiyi creates its own."""
    rest = dict(section)
    for name, value in FIXED.items():
        if rest.pop(name, value) != value:
            raise SettingsError(f"{where}.{name} must be {json.dumps(value)}: Jiyi creates its tables and drops none")
    rest.pop("table", None)
    dimension = rest.pop("dimension", None)
    host, port, user, password, database = (
        _filled(rest.pop(name, None), f"{where}.{name}") for name in ("host", "port", "user", "password", "database")
    )
    if rest:
        raise SettingsError(f"{where}.{min(rest)} is not known")
    if not host or not database:
        raise SettingsError(f"{where} needs a host and a database")
    login = "" if user is None else quote(str(user), safe="")
    login += "" if password is None else f":{quote(str(password), safe='')}"
    address = f"{login}@{host}" if login else host
    url = f"postgresql://{address}:{port or 5432}/{quote(str(database), safe='')}"
    return {"url": url, "embedding": {} if dimension is None else {"dimension": dimension}}


_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def _filled(value: Any, where: str) -> Any:
    """Replace `${NAME}` by environment variables, in a program of Jiyi: elsewhere they are that program's."""
    if not isinstance(value, str) or not _VARIABLE.search(value):
        return value
    if not _is_own_program.get():
        raise SettingsError(f"{where} names an environment variable, which counts in `jiyi` commands only")

    def filled(found: re.Match[str]) -> str:
        if found[1] not in os.environ:
            raise SettingsError(f"{where}: the environment variable {found[1]} is not set")
        return os.environ[found[1]]

    return _VARIABLE.sub(filled, value)


# Variables that other programs use too, and the settings they set. They count in programs of Jiyi only: inside another
# program they name that program's own model, and nobody has asked to send texts there.
SHARED_VARIABLES: dict[str, tuple[str, str]] = {
    "LLM_PROVIDER": ("llm", "provider"),
    "LLM_MODEL": ("llm", "model"),
    "LLM_BASE_URL": ("llm", "base_url"),
    "LLM_API_KEY": ("llm", "api_key"),
    "LLM_TEMPERATURE": ("llm", "temperature"),
    "LLM_MAX_TOKENS": ("llm", "max_tokens"),
    "EMBEDDING_BASE_URL": ("embedding", "base_url"),
    "EMBEDDING_API_KEY": ("embedding", "api_key"),
    "EMBEDDING_DIMENSION": ("embedding", "dimension"),
    "MONGODB_URI": ("engines", "mongodb_url"),
    "ELASTICSEARCH_HOSTS": ("engines", "elasticsearch_url"),
}

_is_own_program: ContextVar[bool] = ContextVar("is_own_program", default=False)


@contextmanager
def own_program() -> Iterator[None]:
    """Run a program of Jiyi: `jiyi serve`, `jiyi worker`, and the other commands."""
    before = _is_own_program.set(True)
    try:
        yield
    finally:
        _is_own_program.reset(before)


def shared_values() -> dict[str, dict[str, str]]:
    """Return the settings that shared variables set in this program, by section."""
    found: dict[str, dict[str, str]] = {}
    for variable, (section, name) in SHARED_VARIABLES.items():
        if _is_own_program.get() and os.environ.get(variable):
            found.setdefault(section, {})[name] = os.environ[variable]
    if _is_own_program.get() and (host := os.environ.get("MILVUS_HOST")):
        port = os.environ.get("MILVUS_PORT") or "19530"
        found.setdefault("engines", {})["milvus_url"] = f"{host if '://' in host else f'http://{host}'}:{port}"
    return found
