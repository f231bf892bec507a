"""What stands in a user's files now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from .. import validation
from ..errors import InvalidInput
from . import safe
from .document import CannotParse, Document, Entry, parse
from .format import ANY_ID, Note, read_note
from .layout import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A bullet and where it stands."""

    path: str
    entry: Entry
    note: Note
    digests: Mapping[str, str]
    problem: str | None = None  # why it cannot be taken


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedFile:
    path: str
    checksum: str | None = None  # None: there is no such file
    document: Document | None = None
    lines: tuple[Line, ...] = ()
    mentioned: frozenset[str] = frozenset()  # ids that stand anywhere in it
    problem: str | None = None  # why it is left alone
    modified_at: float = 0.0

    @property
    def blank(self) -> bool:
        """Missing, or without anything in it."""
        return self.document is not None and not self.document.text.strip("\ufeff \t\r\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    files: Mapping[str, ScannedFile]
    lines: tuple[Line, ...]
    mentioned: frozenset[str]  # ids that stand anywhere, also where they are no bullet of ours
    held: frozenset[str]  # memories whose line cannot be taken as it is
    problems: tuple[str, ...]


class Remembered:
    """Files as they were when they were last read or written, so that an unchanged one need not be parsed again."""

    MOST = 64

    def __init__(self) -> None:
        self._files: dict[str, ScannedFile] = {}

    def get(self, path: str) -> ScannedFile | None:
        return self._files.get(path)

    def keep(self, file: ScannedFile) -> None:
        self._files.pop(file.path, None)
        self._files[file.path] = file
        if len(self._files) > self.MOST:
            del self._files[next(iter(self._files))]


def scan(workspace: Workspace, user_id: str, remembered: Remembered) -> Scan:
    """Read and parse all of a user's files. What cannot be read or parsed is left alone and named."""
    home = workspace.home(user_id)
    told = []
    for folder in ("context", "context/daily"):
        try:
            told += safe.clean(workspace.root / home / folder)
        except OSError as error:
            told.append(f"{home}{folder}: what a crash left there cannot be removed: {error.strerror}")
    files = {path: scan_file(workspace.root, path, remembered) for path in workspace.files(user_id)}
    lines: list[Line] = []
    held: set[str] = set()
    mentioned: set[str] = set()
    for path, file in files.items():
        if file.problem:
            told.append(f"{path}: left alone, because {file.problem}")
        mentioned |= file.mentioned
        for line in file.lines:
            entry = line.entry
            if line.problem and entry.memory_id:
                held.add(entry.memory_id)
            if line.problem:
                told.append(f"{path}:{entry.line}: left alone, because {line.problem}")
            else:
                lines.append(line)
            for name in sorted(line.note.unsaid - {"memory_type"}):
                told.append(f"{path}:{entry.line}: its {name} cannot be read and is left as it was")
    return Scan(
        files=files,
        lines=tuple(lines),
        mentioned=frozenset(mentioned),
        held=frozenset(held),
        problems=tuple(told),
    )


def read_text(path: str, checksum: str, text: str, before: ScannedFile | None = None) -> ScannedFile:
    """Raises `CannotParse`. `before`: another state of the file; lines that stand in it are not read again."""
    document = parse(text, before.document if before else None)
    known = {line.entry.text: line for line in before.lines} if before else {}
    return ScannedFile(
        path=path,
        checksum=checksum,
        document=document,
        lines=tuple(_line(path, entry, known.get(entry.text)) for entry in document.entries),
        mentioned=frozenset(ANY_ID.findall(text)),
    )


def _line(path: str, entry: Entry, known: Line | None) -> Line:
    if known is not None and known.entry.memory_type == entry.memory_type:
        return known if known.entry is entry else replace(known, entry=entry)
    note = read_note(entry.item, entry.memory_type)
    problem = None
    try:
        validation.text("its text", note.content)
        if "memory_type" not in note.unsaid:
            validation.memory_type("its type", note.memory_type)
    except InvalidInput as error:
        problem = str(error)
    return Line(path=path, entry=entry, note=note, digests=note.digests(), problem=problem)


def scan_file(root: Path, path: str, remembered: Remembered) -> ScannedFile:
    checksum, modified_at = None, 0.0
    try:
        where = safe.check_path(root, path)
        data = safe.read(where)
        if data is None:
            return ScannedFile(path=path, document=Document(()))
        checksum, modified_at = safe.checksum(data), where.stat().st_mtime
        found = remembered.get(path)
        if found is None or found.checksum != checksum:
            if b"\x00" in data:
                raise CannotParse("it is not text: it holds NUL bytes")
            found = read_text(path, checksum, data.decode(), found)
        remembered.keep(found)
        return replace(found, modified_at=modified_at)
    except safe.Refused as error:
        problem = f"it {error}"
    except UnicodeDecodeError as error:
        problem = f"it is not UTF-8 (byte {error.start:,})"
    except OSError as error:
        problem = f"it cannot be read: {error.strerror}"
    except CannotParse as error:
        problem = str(error)
    return ScannedFile(path=path, checksum=checksum, problem=problem, modified_at=modified_at)
