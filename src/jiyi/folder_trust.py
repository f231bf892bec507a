"""Trust in the settings files of the current folder, which may be a cloned repository: they count only after `jiyi
trust`, except for a few settings that can do no harm. Each file is read once, and what was read is what is compared."""

import json
import secrets
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from .durable import make_folder
from .errors import SettingsError
from .settings_files import JSON_NAME, TOML_NAME, config_dir, parse, read_bytes

# What a folder may set without trust: the kind of search, the number of its results, and the language of headings.
# Everything else decides what is read, written, sent or kept, and so may any setting that is added later.
FOLDER_MAY_SET = frozenset({"search.default_mode", "tools.max_results_per_search", "workspace.language"})
FOLDER_FILES = (Path(TOML_NAME), Path(JSON_NAME))
TRUSTED = "trusted.json"  # in the configuration folder: checksums by path
MAX_NAMES, MAX_NAME = 20, 60  # settings in a message, and characters of each

Trusted = dict[str, list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsFile:
    """A settings file and what it sets; nothing if it has a problem, such as that it needs trust."""

    path: Path
    settings: Mapping[str, Any]
    is_trusted: bool = False
    problem: str | None = None

    @property
    def names(self) -> list[str]:
        """Names of the settings, such as `llm.model`."""
        return [name for name, _ in _named(self.settings)]


def folder_files() -> list[SettingsFile]:
    """Read the settings files of the current folder, also those that have a problem."""
    noted = _trusted()
    return [file for path in FOLDER_FILES if (file := _folder_file(path, noted)) is not None]


def trust() -> list[SettingsFile]:
    """Trust the settings files of the current folder as they are now, and return them; raise for an invalid one."""
    noted, files = _trusted(), []
    for path in FOLDER_FILES:
        if (data := read_bytes(path)) is not None:
            files.append(SettingsFile(path=path, settings=parse(path, data), is_trusted=True))
            checksums = noted.setdefault(_place(path), [])
            if _checksum(data) not in checksums:
                checksums.append(_checksum(data))
    if files:
        _write(noted)
    return files


def revoke() -> list[Path]:
    """Trust the settings files of the current folder no longer, in none of their versions; return those that were."""
    noted = _trusted()
    revoked = [path for path in FOLDER_FILES if noted.pop(_place(path), None)]
    if revoked:
        _write(noted)
    return revoked


def listed(names: list[str]) -> str:
    """Return names for a message: a hostile file may have any number of them, of any length, in several lines."""
    shown = [" ".join(name.split()) for name in names[:MAX_NAMES]]
    shown = [name if len(name) <= MAX_NAME else f"{name[:MAX_NAME]}…" for name in shown]
    more = f" and {len(names) - MAX_NAMES:,} more" if len(names) > MAX_NAMES else ""
    return ", ".join(shown) + more or "nothing"


def _folder_file(path: Path, noted: Trusted) -> SettingsFile | None:
    try:
        data = read_bytes(path)
        if data is None or (path.name == TOML_NAME and _is_the_users_own(path)):
            return None
        settings = parse(path, data)
    except SettingsError as error:
        return SettingsFile(path=path, settings={}, problem=str(error))
    checksums = noted.get(_place(path), [])
    if _checksum(data) in checksums:
        return SettingsFile(path=path, settings=settings, is_trusted=True)
    refused = [name for name, is_allowed in _named(settings) if not is_allowed]
    if not refused:
        return SettingsFile(path=path, settings=settings)
    state = "has changed since you trusted it" if checksums else "is not trusted"
    problem = f"{path} of this folder {state}, and sets {listed(refused)}: look at it, then run `jiyi trust` here"
    return SettingsFile(path=path, settings={}, problem=f"{problem}, or name another file in JIYI_CONFIG")


def _named(settings: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Yield the name of each setting, and True if a folder may set it to this value without trust."""
    for section, held in settings.items():
        if not isinstance(held, Mapping):
            yield section, False
            continue
        for name, value in held.items():
            full = f"{section}.{name}"
            yield full, full in FOLDER_MAY_SET and isinstance(value, (str, int, float))


def _is_the_users_own(path: Path) -> bool:
    """Return True in the configuration folder itself, whose file is read anyway."""
    try:
        return path.samefile(config_dir() / path)
    except OSError:
        return False


def _place(path: Path) -> str:
    return str(path.absolute())


def _checksum(data: bytes) -> str:
    return sha256(data).hexdigest()


def _trusted() -> Trusted:
    """Return the trusted checksums by path; if the file is missing or damaged, nothing is trusted."""
    with suppress(OSError, ValueError):
        noted = json.loads((config_dir() / TRUSTED).read_text("utf-8"))
        if isinstance(noted, dict):
            return {place: checksums for place, checksums in noted.items() if isinstance(checksums, list)}
    return {}


def _write(noted: Trusted) -> None:
    path = config_dir() / TRUSTED
    new = path.with_name(f".{TRUSTED}.{secrets.token_hex(6)}")
    try:
        make_folder(path.parent)
        new.write_text(json.dumps(noted, indent=1) + "\n", "utf-8")
        new.replace(path)
    except OSError as error:
        raise SettingsError(f"{path} cannot be written: {error.strerror}") from error
