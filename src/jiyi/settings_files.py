"""Reading the configuration files: jiyi.toml and config.json, in which other systems have names of their own."""

import json
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import quote

from .errors import SettingsError

# Names accepted in `memory_system.search` of a config.json, and ours.
CONFIG_JSON_NAMES = {"text_similarity_weight": "text_weight", "time_decay_weight": "recency_weight"}
# Options of a vector store that describe what Jiyi does anyway.
FIXED = {"create-table": True, "drop-table-first": False}
VECTOR_STORE = "memory.embedding.vector-store"


def read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path} cannot be read as TOML: {error}") from error


def read_config_json(path: Path) -> dict[str, Any]:
    """Return the settings in `memory_system` and `memory.embedding.vector-store`; the rest of a config.json belongs to
    other programs."""
    try:
        whole = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path} cannot be read as JSON: {error}") from error
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
    return {**found, **section, "embedding": {**found["embedding"], **section.get("embedding", {})}}


def _vector_store(section: dict[str, Any], where: str) -> dict[str, Any]:
    """Return the URL and the dimension of a PostgreSQL vector store. Its table is not used: Jiyi creates its own."""
    rest = dict(section)
    for name, value in FIXED.items():
        if rest.pop(name, value) != value:
            raise SettingsError(f"{where}.{name} must be {json.dumps(value)}: Jiyi creates its tables and drops none")
    rest.pop("table", None)
    dimension = rest.pop("dimension", None)
    host, port, user, password, database = (
        rest.pop(name, None) for name in ("host", "port", "user", "password", "database")
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
