"""Apply a plan to the files: add, change and remove lines; every other byte stays."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..languages.script import language as language_of
from . import safe
from .document import Document, Entry, Prose, bullet_text, exchanged, inserted, marked, parse, rewritten
from .format import Labels, Language, Note, heading_line
from .scan import FileCache, Scan, ScannedFile, read_text
from .steps import Create, Mark, Plan, Remove, Rewrite, Write
from .workspace import LEARNINGS, MEMORY, Workspace

TITLES: dict[str, dict[Language, str]] = {
    MEMORY: {"en": "Memory", "zh": "记忆"},
    LEARNINGS: {"en": "Learnings", "zh": "经验"},
    "": {"en": "Daily notes", "zh": "每日记录"},
}
ABOUT: dict[Language, str] = {
    "en": "<!-- A bullet is a memory: edit, add, move or remove it. Everything else in this file stays as it is. -->",
    "zh": "<!-- 每个列表项是一条记忆，可以修改、添加、移动或删除；文件里的其他内容都会保持原样。 -->",
}


@dataclass(slots=True)
class Written:
    checksums: dict[str, str] = field(default_factory=dict)  # of all files after the sync
    failed: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Edits:
    """The edits of one file."""

    entries: dict[int, Entry | None] = field(default_factory=dict)  # by line number; None removes the line
    new: dict[str, list[tuple[str, Note, Labels]]] = field(default_factory=lambda: defaultdict(list))  # by type
    receives: bool = False  # a line moves here from another file


def apply_to_files(workspace: Workspace, plan: Plan, scan: Scan, cache: FileCache) -> Written:
    """Replace the files that the plan changes; report those that cannot be written.

    Raise `Changed` if a file has changed since it was read.
    """
    written = Written({path: file.checksum for path, file in scan.files.items() if file.checksum})
    edits = _edits(plan, scan)
    for path in sorted(edits, key=lambda path: not edits[path].receives):
        if plan.held_files and path in plan.held_files:
            written.failed.add(path)
            continue
        file = scan.files.get(path) or ScannedFile(path=path, document=Document(()))
        try:
            workspace.name_folder(plan.user_id)
            text = _new_text(workspace, file, edits[path])
            data = text.encode()
            checksum = safe.checksum(data)
            after = read_text(path, checksum, text, file)
            _check(file, after, edits[path])
            safe.replace_file(safe.check_path(workspace.root, path), data, expected=file.checksum)
            written.checksums[path] = checksum
            cache.put(after)
        except (OSError, safe.Refused, Unsafe) as error:
            written.failed.add(path)
            reason = (error.strerror or str(error)) if isinstance(error, OSError) else f"it {error}"
            written.problems.append(f"{path} could not be written: {reason}")
    return written


class Unsafe(ValueError):
    """The new text would not read back as intended."""


def _edits(plan: Plan, scan: Scan) -> dict[str, _Edits]:
    found: defaultdict[str, _Edits] = defaultdict(_Edits)
    for step in plan.steps:
        if isinstance(step, Remove):
            found[step.line.path].entries[step.line.entry.line] = None
        elif isinstance(step, Write) or (isinstance(step, Create) and step.line is None):
            found[step.path].new[step.note.memory_type].append((step.memory_id, step.note, step.labels))
        elif isinstance(step, Rewrite) and step.to is not None:
            found[step.line.path].entries[step.line.entry.line] = None
            found[step.to].new[step.note.memory_type].append((step.memory_id, step.note, step.labels))
            found[step.to].receives |= step.to != step.line.path
        elif isinstance(step, (Create, Mark, Rewrite)):
            entry = _new_entry(step, scan)
            if entry is not None and step.line is not None:
                found[step.line.path].entries[step.line.entry.line] = entry
    return found


def _new_entry(step: Create | Mark | Rewrite, scan: Scan) -> Entry | None:
    """Return the new version of a line; None if it stays."""
    if step.line is None:
        return None
    entry = step.line.entry
    document = scan.files[step.line.path].document
    eol = document.eol if document else "\n"
    if isinstance(step, Rewrite):
        return rewritten(entry, step.memory_id, step.note, step.labels, eol)
    if entry.memory_id is None:
        return marked(entry, step.memory_id, step.note, step.labels)
    return None if entry.memory_id == step.memory_id else rewritten(entry, step.memory_id, step.note, step.labels, eol)


def _new_text(workspace: Workspace, file: ScannedFile, edits: _Edits) -> str:
    before = file.document or Document(())
    new = [note for notes in edits.new.values() for _, note, _ in notes]
    language = _language(workspace, before, new)
    document = before if before.text else _new_document(file.path, language)
    document = exchanged(document, edits.entries)
    for memory_type, notes in edits.new.items():
        bullets = [bullet_text("- ", memory_id, note, labels, document.eol) for memory_id, note, labels in notes]
        document = inserted(document, bullets, memory_type, heading_line(memory_type, language))
    return document.text


def _new_document(path: str, language: Language) -> Document:
    title = next(title for ending, title in TITLES.items() if path.endswith(ending))[language]
    return parse(f"# {title}\n\n{ABOUT[language]}\n")


def _language(workspace: Workspace, document: Document, notes: Sequence[Note]) -> Language:
    """Return the language of the existing headings, else of the workspace, else of the memories."""
    for heading in document.headings:
        if heading.language:
            return heading.language
    if workspace.language != "auto":
        return workspace.language
    chinese = sum(language_of(note.content) == "zh" for note in notes)
    return "zh" if chinese * 2 > len(notes) else "en"


def _check(before: ScannedFile, after: ScannedFile, edits: _Edits) -> None:
    """Raise `Unsafe` if the new text does not read back as intended or loses a line that is not a memory."""
    wanted: dict[str, Note] = {}
    for memory_type, notes in edits.new.items():
        wanted |= {memory_id: note for memory_id, note, _ in notes if note.memory_type == memory_type}
    read = {line.entry.memory_id: line for line in after.lines if line.entry.memory_id}
    for memory_id, note in wanted.items():
        if memory_id not in read or read[memory_id].digests != note.digests():
            raise Unsafe(f"would not hold memory {memory_id} unchanged")
    for line in before.lines:
        expected = edits.entries.get(line.entry.line, line.entry)
        if expected is None or expected.memory_id is None:
            continue
        found = read.get(expected.memory_id)
        if found is None or found.entry.item.content != expected.item.content:
            raise Unsafe(f"would not hold memory {expected.memory_id} unchanged")
    lines = iter(_other_lines(after))
    for text in _other_lines(before):
        if not any(text == other for other in lines):
            raise Unsafe(f"would lose the line {text[:40]!r}")


def _other_lines(file: ScannedFile) -> list[str]:
    parts = file.document.parts if file.document else ()
    return [part.text.rstrip("\r\n") for part in parts if isinstance(part, Prose) and not part.blank]
