"""The `/memories` folder of Claude's memory tool, over a user's workspace. Lines of `memory.md` and `learnings.md` are
memories. Any other file is one memory of the type `file`, whose key is its path. Removed lines and files are archived,
not deleted."""

import asyncio
import inspect
import os
import re
import shutil
import stat
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from .. import validation
from ..errors import InvalidInput, JiyiError, NotFound, WorkspaceError
from ..files import safe
from ..files.document import BOM, CannotParse, Document, Prose, inserted, parse
from ..files.format import heading_line
from ..files.plan import MAX_LOST
from ..files.sync import locked
from ..files.workspace import LEARNINGS, Workspace
from ..languages.words import language as language_of
from ..memory import Memory
from ..models import CandidateMemory

ROOT = "/memories"
COMMANDS = ("view", "create", "str_replace", "insert", "delete", "rename")
FILE = "file"  # memory type of a file
ACTOR = "claude"
LEVELS = 2  # folder levels in a listing
MAX_DEPTH, MAX_NAME = 8, 100
SNIPPET = 2  # lines shown before and after a change
SHOWN = 5  # files named in a message
MAX_LINES = 999_999
_LIST_ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
_MARKUP = ("<!--", "#", "|", ">", "```", "~~~", "---", BOM)
_FORBIDDEN = frozenset('\\:*?"<>|')


class MemoryFolder:
    """The six commands of the memory tool for one user. `run` takes the input of the model."""

    def __init__(self, memory: Memory, *, user_id: str) -> None:
        self._memory = memory
        self._user_id = validation.name("user_id", user_id)
        self._lock = asyncio.Lock()

    async def run(self, command: Mapping[str, Any]) -> str:
        """Run a command; the message of an error is meant for the model."""
        name = command.get("command")
        if name not in COMMANDS:
            raise InvalidInput("command", f"must be one of {', '.join(COMMANDS)}")
        act: Callable[..., Awaitable[str]] = getattr(self, name)
        given: dict[str, Any] = {}
        for argument, parameter in inspect.signature(act).parameters.items():
            if command.get(argument) is not None:
                given[argument] = command[argument]
            elif parameter.default is parameter.empty:
                raise InvalidInput(argument, f"is needed for {name}")
        async with self._lock:
            return await act(**given)

    async def view(self, path: str, view_range: list[int] | None = None) -> str:
        """Return a file with line numbers, or the listing of a folder."""
        notes = await self._sync()
        where = self._at(path)
        if where == self._at(ROOT):
            where.mkdir(parents=True, exist_ok=True, mode=0o700)
        if where.is_dir():
            return await asyncio.to_thread(_listing, where, path.rstrip("/")) + notes
        lines = (await self._read(path)).split("\n")
        if len(lines) > MAX_LINES:
            raise WorkspaceError(f"File {path} exceeds maximum line limit of {MAX_LINES:,} lines.")
        first, last = _range(view_range, len(lines))
        return f"Here's the content of {path} with line numbers:\n" + _numbered(lines[first - 1 : last], first)

    async def create(self, path: str, file_text: str) -> str:
        await self._sync()
        where = self._at(path)
        if _exists(where):
            raise WorkspaceError(f"Error: File {path} already exists")
        note = await self._write(path, where, _text("file_text", file_text))
        return f"File created successfully at: {path}" + note + await self._sync()

    async def str_replace(self, path: str, old_str: str, new_str: str = "") -> str:
        await self._sync()
        before = await self._read(path)
        places = _places(before, _text("old_str", old_str))
        if not places:
            raise WorkspaceError(
                f"No replacement was performed, old_str `{old_str}` did not appear verbatim in {path}."
            )
        if len(places) > 1:
            lines = ", ".join(str(before.count("\n", 0, place) + 1) for place in places)
            raise WorkspaceError(
                f"No replacement was performed. Multiple occurrences of old_str `{old_str}` in lines: {lines}."
                " Please ensure it is unique"
            )
        after = before[: places[0]] + _text("new_str", new_str) + before[places[0] + len(old_str) :]
        note = await self._write(path, self._at(path), after, before)
        problems = note + await self._sync(gone=path)
        changed = before.count("\n", 0, places[0]) + 1
        first = max(changed - SNIPPET, 1)
        around = after.split("\n")[first - 1 : changed + SNIPPET]
        return (
            "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
            + _numbered(around, first)
            + problems
        )

    async def insert(self, path: str, insert_line: int, insert_text: str) -> str:
        await self._sync()
        before = await self._read(path)
        lines = before.split("\n")
        count = len(lines) - (lines[-1] == "")
        if type(insert_line) is not int or not 0 <= insert_line <= count:
            raise WorkspaceError(
                f"Error: Invalid `insert_line` parameter: {insert_line}. It should be within the range of lines of the"
                f" file: [0, {count}]"
            )
        lines.insert(insert_line, _text("insert_text", insert_text).removesuffix("\n"))
        after = "\n".join(lines)
        after = after if after.endswith("\n") else after + "\n"
        note = await self._write(path, self._at(path), after, before)
        return f"The file {path} has been edited." + note + await self._sync()

    async def delete(self, path: str) -> str:
        await self._sync()
        where = self._at(path)
        if where == self._at(ROOT):
            raise WorkspaceError(f"Cannot delete the {ROOT} directory itself")
        self._check_removable(path, where)
        if _exists(where):
            await asyncio.to_thread(shutil.rmtree if where.is_dir() else os.unlink, where)
        elif not any(_is_in(note.memory_key, path) for note in await self._stored()):
            raise WorkspaceError(f"Error: The path {path} does not exist")
        return f"Successfully deleted {path}" + await self._sync(gone=path)

    async def rename(self, old_path: str, new_path: str) -> str:
        await self._sync()
        old, new = self._at(old_path), self._at(new_path)
        if self._at(ROOT) in (old, new):
            raise WorkspaceError(f"Cannot rename the {ROOT} directory itself")
        self._check_removable(old_path, old)
        if not _exists(old):
            raise WorkspaceError(f"Error: The path {old_path} does not exist")
        if _exists(new):
            raise WorkspaceError(f"Error: The destination {new_path} already exists")
        if old in new.parents:
            raise WorkspaceError(f"Error: {new_path} lies inside {old_path}")
        await asyncio.to_thread(_move, old, new)
        return f"Successfully renamed {old_path} to {new_path}" + await self._sync(gone=old_path)

    @property
    def _workspace(self) -> Workspace:
        return self._memory.workspace.files.workspace

    def _at(self, path: str) -> Path:
        """Resolve a path of the model inside the user's folder."""
        if not isinstance(path, str) or (path != ROOT and not path.startswith(ROOT + "/")):
            raise WorkspaceError(f"Error: a path must begin with {ROOT}, not {str(path)[:80]!r}")
        inside = path.removeprefix(ROOT).removeprefix("/").removesuffix("/")
        parts = inside.split("/") if inside else []
        for part in parts:
            if not _is_name(part):
                raise WorkspaceError(f"Error: {part[:80]!r} is not a valid name of a file or folder in {ROOT}")
        if len(parts) > MAX_DEPTH or len(path) > validation.MAX_NAME:
            raise WorkspaceError(f"Error: a path has at most {MAX_DEPTH} parts and {validation.MAX_NAME} characters")
        try:
            return safe.check_path(self._workspace.root, "/".join([self._home, *parts]))
        except safe.Refused as error:
            raise WorkspaceError(f"Error: The path {path} {error}") from error

    @property
    def _home(self) -> str:
        return f"{self._workspace.user_folder(self._user_id)}context"

    def _line_files(self) -> set[Path]:
        """Return the files whose lines are memories."""
        return {self._workspace.root / path for path in self._workspace.files(self._user_id)}

    def _check_removable(self, path: str, where: Path) -> None:
        own = self._line_files()
        if where in own or any(where in one.parents and _exists(one) for one in own):
            raise WorkspaceError(f"Error: {path} cannot be removed: remove lines in it instead")

    async def _read(self, path: str) -> str:
        where = self._at(path)
        try:
            data = await asyncio.to_thread(safe.read, where)
            if data is None:
                raise WorkspaceError(f"The path {path} does not exist. Please provide a valid path.")
            return data.decode()
        except (safe.Refused, UnicodeDecodeError, IsADirectoryError) as error:
            raise WorkspaceError(f"The path {path} is not a file with text in it.") from error

    async def _write(self, path: str, where: Path, text: str, before: str | None = None) -> str:
        """Write a file that has the content `before`. Return a note for the model."""
        note = ""
        if where in self._line_files():
            text = text if before is not None or text.endswith("\n") else text + "\n"
            memory_type = "lesson" if where.name == Path(LEARNINGS).name else "fact"
            text, moved = _in_section(before or "", text, memory_type)
            if moved:
                note = f"\nNote: {moved} lines were moved below the heading of their memory type"
        expected = None if before is None else safe.checksum(before.encode())
        try:
            async with locked(self._workspace, self._user_id):  # a sync removes temporary files
                await asyncio.to_thread(safe.replace_file, where, text.encode(), expected=expected)
        except safe.Changed as error:
            raise WorkspaceError(f"{path} has changed: view it again") from error
        except OSError as error:
            raise WorkspaceError(f"{path} could not be written: {error.strerror}") from error
        return note

    async def _sync(self, gone: str | None = None) -> str:
        """Sync files and memories; `gone` was removed on purpose. Return notes for the model."""
        notes: list[str] = []
        for done in await self._memory.workspace.sync(user_id=self._user_id):
            notes += [*done.conflicts, *done.problems]
            if done.withheld:
                notes.append(
                    f"{done.withheld} memories are kept although their lines are gone: too many were removed at once"
                )
        notes += await self._sync_files(gone)
        return "".join(f"\nNote: {problem}" for problem in notes)

    async def _sync_files(self, gone: str | None) -> list[str]:
        found = await asyncio.to_thread(self._files)
        known = {memory.memory_key: memory for memory in await self._stored()}
        problems: list[str] = []
        texts: dict[str, str] = {}
        for key in found:
            try:
                whole = (await self._read(key)).strip()
                texts[key] = whole[: validation.MAX_TEXT]
                if texts[key] and (key not in known or known[key].content != texts[key]):
                    await self._store(key, texts[key])
                    problems += [f"{key}: only its beginning is searchable"] * (len(whole) > len(texts[key]))
            except (JiyiError, OSError) as error:
                texts[key] = "?"  # exists, but is unreadable
                problems.append(f"{key}: {error}")
        there = {key for key, text in texts.items() if text}
        new = {texts[key] for key in there - known.keys()}
        missing = known.keys() - there
        meant = {key for key in missing if known[key].content in new or (gone is not None and _is_in(key, gone))}
        lost = missing - meant
        if lost and (not there or (len(lost) > 1 and len(lost) > MAX_LOST * len(known))):
            problems.append(
                f"{len(lost)} of {len(known)} files are gone at once and are kept as memories:"
                f" {', '.join(sorted(lost)[:SHOWN])}{' …' * (len(lost) > SHOWN)}. Delete them if that was intended"
            )
            missing = meant
        for key in sorted(missing):
            await self._memory.update(key, user_id=self._user_id, status="archived", actor=ACTOR, reason="file is gone")
        return problems

    def _files(self) -> list[str]:
        """Return the paths, in the tool, of all files whose lines are not memories."""
        home, own = self._workspace.root / self._home, self._line_files()
        found = []
        for folder, folders, names in os.walk(home):
            folders[:] = sorted(name for name in folders if _is_name(name))
            for name in sorted(names):
                where = Path(folder) / name
                if _is_name(name) and where not in own and stat.S_ISREG(where.lstat().st_mode):
                    found.append(f"{ROOT}/{where.relative_to(home).as_posix()}")
        return found

    async def _stored(self) -> list[Any]:
        found: list[Any] = []
        cursor = None
        while True:
            page = await self._memory.list(user_id=self._user_id, memory_types=[FILE], limit=1000, cursor=cursor)
            found += page.items
            if (cursor := page.next_cursor) is None:
                return found

    async def _store(self, key: str, text: str) -> None:
        try:
            there = await self._memory.get(key, user_id=self._user_id)
        except NotFound:
            candidate = CandidateMemory(content=text, memory_type=FILE, memory_key=key)
            await self._memory.add(candidate, user_id=self._user_id, actor=ACTOR)
        else:
            await self._memory.update(
                there.id, user_id=self._user_id, content=text, status="active", actor=ACTOR, reason="file was edited"
            )


def _in_section(before: str, after: str, memory_type: str) -> tuple[str, int]:
    """Move new lines that no heading gives a type into the section of a type: elsewhere they would not be memories.
    Return the text and the number of lines moved."""
    known = set(before.splitlines())
    try:
        parts = parse(after).parts
    except CannotParse:  # the sync reports it
        return after, 0
    loose = [
        at
        for at, part in enumerate(parts)
        if type(part) is Prose
        and not part.blank
        and not part.text.lstrip().startswith(_MARKUP)
        and part.text.rstrip("\r\n") not in known
    ]
    if not loose:
        return after, 0
    rest = Document(tuple(part for at, part in enumerate(parts) if at not in loose))
    bullets = [f"- {_LIST_ITEM.sub('', parts[at].text, count=1).strip()}" for at in loose]
    language: Literal["zh", "en"] = "zh" if language_of(after) == "zh" else "en"
    return inserted(rest, bullets, memory_type, heading_line(memory_type, language)).text, len(loose)


def _is_in(key: str, path: str) -> bool:
    """Return True if the key is this file or lies in this folder."""
    return key == path.rstrip("/") or key.startswith(path.rstrip("/") + "/")


def _exists(path: Path) -> bool:
    """Return True for anything at the path, a dangling link included."""
    return os.path.lexists(path)


def _is_name(part: str) -> bool:
    """Return True for a portable name; hidden files are neither shown nor created."""
    return (
        bool(part.strip())
        and not part.startswith(".")
        and len(part) <= MAX_NAME
        and part.isprintable()
        and not _FORBIDDEN & set(part)
    )


def _text(argument: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidInput(argument, f"must be text, not {type(value).__name__}")
    if not value.isprintable() and ("\x00" in value or any("\ud800" <= letter <= "\udfff" for letter in value)):
        raise InvalidInput(argument, "has characters that a text file cannot hold")
    return value


def _places(text: str, part: str) -> list[int]:
    if not part:
        raise InvalidInput("old_str", "is empty")
    places, at = [], text.find(part)
    while at >= 0:
        places.append(at)
        at = text.find(part, at + 1)
    return places


def _range(given: list[int] | None, count: int) -> tuple[int, int]:
    if given is None:
        return 1, count
    if not isinstance(given, list) or len(given) != 2 or not all(type(one) is int for one in given):
        raise InvalidInput("view_range", "must be two line numbers; -1 as the second means the end")
    first, last = given[0], count if given[1] == -1 else given[1]
    if not 1 <= first <= count or last < first:
        raise InvalidInput("view_range", f"must lie within the lines of the file: [1, {count}]")
    return first, last


def _numbered(lines: list[str], first: int) -> str:
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines, first))


def _listing(folder: Path, path: str) -> str:
    lines = [f"{_size(folder)}\t{path}"]
    for entry in sorted(folder.rglob("*")):
        parts = entry.relative_to(folder).parts
        if len(parts) <= LEVELS and all(map(_is_name, parts)) and not entry.is_symlink():
            lines.append(f"{_size(entry)}\t{path}/{'/'.join(parts)}" + "/" * entry.is_dir())
    header = f"Here're the files and directories up to {LEVELS} levels deep in {path}, excluding hidden items:"
    return "\n".join([header, *lines])


def _size(path: Path) -> str:
    """Format a size like `du -h`."""
    size = float(path.lstat().st_size)
    for unit in "BKM":
        if size < 1024:
            return f"{size:.0f}{unit}" if unit == "B" or size == int(size) else f"{size:.1f}{unit}"
        size /= 1024
    return f"{size:.1f}G"


def _move(old: Path, new: Path) -> None:
    new.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    old.rename(new)
