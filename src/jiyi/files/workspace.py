"""The layout of a workspace: DIR/context/memory.md and learnings.md of one user, or DIR/<user>/context/… of several.
DIR/.jiyi/workspace.json marks a workspace; without it, the disk may not be mounted."""

import json
import logging
import os
import re
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Literal
from urllib.parse import unquote_to_bytes

from ..durable import make_folder
from ..errors import InvalidInput, WorkspaceError
from ..ids import new_id
from ..memory_types import Layer, layer_of
from . import safe

MARKER = ".jiyi/workspace.json"
MEMORY, LEARNINGS, DAILY = "context/memory.md", "context/learnings.md", "context/daily"
LAYERS: tuple[Layer, ...] = ("semantic", "procedural")
DAILY_TYPES = ("episode", "event")
_PLAIN = re.compile(r"[a-z0-9_\-\u4e00-\u9fff][a-z0-9_.\-\u4e00-\u9fff]*")
_NOT_KEPT = re.compile(r"[^a-z0-9_\-\u4e00-\u9fff]")
_MAX_NAME = 180  # bytes
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\.md")
_RESERVED = re.compile(r"(?:context|con|prn|aux|nul|com\d|lpt\d)(?:\..*)?|.*\.")

Language = Literal["auto", "zh", "en"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """A folder of files that people edit."""

    root: Path
    id: str
    user: str | None  # None: several users, each in an own folder
    language: Language = "auto"  # of headings
    daily_notes: bool = False
    place: str | None = None  # path when it was last opened

    def belongs(self, memory_type: str, layer: Layer | None = None) -> bool:
        """Return True if memories of this type have lines."""
        return (layer or layer_of(memory_type)) in LAYERS or (self.daily_notes and memory_type in DAILY_TYPES)

    def user_folder(self, user_id: str) -> str:
        """Return the user's folder relative to the root, with a slash at the end; "" for the root."""
        if self.user is None:
            return folder_name(user_id) + "/"
        if user_id != self.user:
            raise InvalidInput("user_id", f"this workspace is {self.user!r}'s, not {user_id!r}'s")
        return ""

    def name_folder(self, user_id: str) -> None:
        """Write the user id into a file if it is too long for a folder name."""
        name = self.root / self.user_folder(user_id) / "user"
        if self.user_folder(user_id).startswith("~") and not os.path.lexists(name):
            safe.replace_file(name, user_id.encode(), expected=None)

    def covers(self, user_id: str) -> bool:
        return self.user is None or self.user == user_id

    def file_for(self, user_id: str, memory_type: str, occurred_at: datetime) -> str:
        """Return the file for a new line of this type."""
        if self.daily_notes and memory_type in DAILY_TYPES:
            return f"{self.user_folder(user_id)}{DAILY}/{occurred_at.astimezone(UTC).date().isoformat()}.md"
        return self.user_folder(user_id) + (LEARNINGS if layer_of(memory_type) == "procedural" else MEMORY)

    def files(self, user_id: str) -> list[str]:
        """Return the files of a user, existing or not."""
        found = [self.user_folder(user_id) + MEMORY, self.user_folder(user_id) + LEARNINGS]
        if self.daily_notes:
            folder = self.root / self.user_folder(user_id) / DAILY
            names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
            found += [f"{self.user_folder(user_id)}{DAILY}/{name}" for name in names if _DAY.fullmatch(name)]
        return found

    def day_of(self, path: str) -> datetime | None:
        """Return the day of a daily file; None for other files."""
        folder, _, name = path.rpartition("/")
        if not self.daily_notes or not folder.endswith(DAILY) or not _DAY.fullmatch(name):
            return None
        try:
            return datetime.fromisoformat(name.removesuffix(".md")).replace(tzinfo=UTC)
        except ValueError:
            return None  # not a valid date

    def users(self) -> list[str]:
        """Return the users with a folder."""
        if self.user is not None:
            return [self.user]
        names = (entry.name for entry in os.scandir(self.root) if entry.is_dir(follow_symlinks=False))
        found = (user_of(self.root, name) for name in names if (self.root / name / "context").is_dir())
        return sorted(user for user in found if user is not None)

    def owner(self, path: Path) -> str | None:
        """Return the user of a synced file; None for other files."""
        try:
            parts = path.relative_to(self.root).parts
        except ValueError:
            return None
        if path.suffix != ".md" or path.name.startswith("."):
            return None
        if self.user is not None:
            return self.user if parts[0] == "context" else None
        return user_of(self.root, parts[0]) if len(parts) > 2 and parts[1] == "context" else None

    def lock_path(self, user_id: str) -> Path:
        return self.root / ".jiyi" / f"{sha256(user_id.encode()).hexdigest()[:16]}.lock"

    def check(self) -> None:
        """Raise if the workspace is missing or has been replaced by another."""
        if open_workspace(self.root).id != self.id:
            raise WorkspaceError(f"{self.root} is now another workspace: open it again")


def folder_name(user_id: str) -> str:
    """Return the folder name of a user; names that differ only in case or composition stay distinct everywhere."""
    if _PLAIN.fullmatch(user_id) and not _RESERVED.fullmatch(user_id):
        name = user_id
    else:
        name = _NOT_KEPT.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), user_id)
        if _RESERVED.fullmatch(name):
            name = f"%{ord(name[0]):02X}{name[1:]}"
    return name if len(name.encode()) <= _MAX_NAME else "~" + sha256(user_id.encode()).hexdigest()[:32]


def user_of(root: Path, name: str) -> str | None:
    """Return the user of a folder; None if it is not a user's."""
    if name.startswith("."):
        return None
    try:
        if name.startswith("~"):
            found = (safe.read(root / name / "user") or b"").decode()
        else:
            found = unquote_to_bytes(name).decode()
    except (UnicodeDecodeError, safe.Refused, OSError):
        return None
    return found if found and folder_name(found) == name else None


def open_workspace(root: Path) -> Workspace:
    """Open the workspace in a folder; raise `WorkspaceError` if there is none."""
    marker = root / MARKER
    try:
        data = safe.read(marker)
        if data is None:
            raise WorkspaceError(
                f"{root} is not a workspace, or its disk is not mounted: {MARKER} is missing."
                f" `jiyi workspace init {root}` creates one"
            )
        found = json.loads(data)
        options = {name: found[name] for name in ("language", "daily_notes", "place") if name in found}
        return Workspace(root=root, id=str(found["id"]), user=found["user"], **options)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise WorkspaceError(f"{marker} cannot be read: {error}") from error


def has_notes(root: Path) -> bool:
    """Return True if the folder is a workspace, or has files of one."""
    names = (root.glob(f"{folder}{file}") for folder in ("", "*/") for file in (MEMORY, LEARNINGS, f"{DAILY}/*.md"))
    return os.path.lexists(root / MARKER) or any(any(found) for found in names)


def init_workspace(
    root: Path, *, user: str | None, language: Language = "auto", daily_notes: bool = False
) -> Workspace:
    """Create a workspace, or open the existing one with its settings."""
    try:
        make_folder(root)
        root = root.resolve()
        if os.path.lexists(root / MARKER):
            before = safe.checksum(safe.read(root / MARKER) or b"")
            found = open_workspace(root)
            if user is not None and found.user != user:
                owner = "several users" if found.user is None else repr(found.user)
                raise InvalidInput("workspace", f"{root} belongs to {owner}: choose another folder for {user!r}")
            return found if found.place == str(root) else _moved(found, before)
        made = Workspace(root=root, id=new_id(), user=user, language=language, daily_notes=daily_notes, place=str(root))
        safe.replace_file(root / MARKER, _marker(made), expected=None)
        safe.replace_file(root / ".jiyi" / ".gitignore", b"*\n", expected=None)
    except safe.Changed:
        return open_workspace(root)  # another process was faster
    except OSError as error:
        raise WorkspaceError(f"no workspace can be created in {root}: {error.strerror}") from error
    return made


def _moved(found: Workspace, before: str) -> Workspace:
    """Store the new path of a workspace; a copy gets an id of its own, since its sync state differs."""
    place = str(found.root)
    made = replace(found, place=place, id=new_id()) if _is_copy(found) else replace(found, place=place)
    if made.id != found.id:
        logger.warning("%s is a copy of %s and becomes a separate workspace", place, found.place)
    safe.replace_file(found.root / MARKER, _marker(made), expected=before)
    return made


def _is_copy(found: Workspace) -> bool:
    if found.place is None:
        return False
    other = Path(found.place)
    try:
        return open_workspace(other).id == found.id and not (other / MARKER).samefile(found.root / MARKER)
    except (OSError, WorkspaceError):
        return False


def _marker(workspace: Workspace) -> bytes:
    kept = {name: value for name, value in asdict(workspace).items() if name != "root"}
    return json.dumps(kept, ensure_ascii=False, indent=2).encode() + b"\n"
