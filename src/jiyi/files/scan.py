"""Read a user's files: the first step of a sync."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from .. import validation
from ..errors import InvalidInput
from . import safe
from .document import CannotParse, Document, Entry, parse
from .format import ANY_ID, Note, read_note
from .workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A bullet and its file."""

    path: str
    entry: Entry
    note: Note
    digests: Mapping[str, str]
    problem: str | None = None  # why it is skipped


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedFile:
    path: str
    checksum: str | None = None  # None: the file does not exist
    document: Document | None = None
    lines: tuple[Line, ...] = ()
    mentioned: frozenset[str] = frozenset()  # all ids in its text
    problem: str | None = None  # why it is skipped
    modified_at: float = 0.0

    @property
    def blank(self) -> bool:
        """Return True if the file is missing or empty."""
        return self.document is not None and not self.document.text.strip("\ufeff \t\r\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    files: Mapping[str, ScannedFile]
    lines: tuple[Line, ...]
    mentioned: frozenset[str]  # all ids in the files, bullets or not
    held: frozenset[str]  # memories whose line is skipped
    problems: tuple[str, ...]


class FileCache(dict[str, ScannedFile]):
    """Parsed files by path; an unchanged file is not parsed again."""

    MAX_FILES = 64

    def put(self, file: ScannedFile) -> None:
        self.pop(file.path, None)
        self[file.path] = file
        if len(self) > self.MAX_FILES:
            del self[next(iter(self))]


def scan(workspace: Workspace, user_id: str, cache: FileCache) -> Scan:
    """Read and parse a user's files; report files and lines that are skipped."""
    folder_of_user = workspace.user_folder(user_id)
    problems = []
    for folder in ("context", "context/daily"):
        try:
            problems += safe.clean(workspace.root / folder_of_user / folder)
        except OSError as error:
            problems.append(f"{folder_of_user}{folder}: temporary files cannot be removed: {error.strerror}")
    files = {path: scan_file(workspace.root, path, cache) for path in workspace.files(user_id)}
    lines: list[Line] = []
    held: set[str] = set()
    for path, file in files.items():
        if file.problem:
            problems.append(f"{path}: skipped: {file.problem}")
        for line in file.lines:
            entry = line.entry
            if line.problem and entry.memory_id:
                held.add(entry.memory_id)
            if line.problem:
                problems.append(f"{path}:{entry.line}: skipped: {line.problem}")
            else:
                lines.append(line)
            for name in sorted(line.note.unspecified - {"memory_type"}):
                problems.append(f"{path}:{entry.line}: its {name} cannot be read and is not changed")
    return Scan(
        files=files,
        lines=tuple(lines),
        mentioned=frozenset[str]().union(*(file.mentioned for file in files.values())),
        held=frozenset(held),
        problems=tuple(problems),
    )


def read_text(path: str, checksum: str, text: str, before: ScannedFile | None = None) -> ScannedFile:
    """Parse the text of a file; lines that are in `before`, another version of it, are reused."""
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
        if "memory_type" not in note.unspecified:
            validation.memory_type("its type", note.memory_type)
    except InvalidInput as error:
        problem = str(error)
    return Line(path=path, entry=entry, note=note, digests=note.digests(), problem=problem)


def scan_file(root: Path, path: str, cache: FileCache) -> ScannedFile:
    checksum, modified_at = None, 0.0
    try:
        where = safe.check_path(root, path)
        data = safe.read(where)
        if data is None:
            return ScannedFile(path=path, document=Document(()))
        checksum, modified_at = safe.checksum(data), where.stat().st_mtime
        found = cache.get(path)
        if found is None or found.checksum != checksum:
            if b"\x00" in data:
                raise CannotParse("it is not text: it has NUL bytes")
            found = read_text(path, checksum, data.decode(), found)
        cache.put(found)
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
