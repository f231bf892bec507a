"""From the index into the files: lines are added, changed and taken out; every other byte stays."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..languages.script import language as language_of
from . import safe
from .document import Document, Entry, Prose, bullet_text, exchanged, inserted, marked, parse, rewritten
from .format import Home, Note
from .headings import Language, heading_line
from .layout import LEARNINGS, MEMORY, Workspace
from .scan import Remembered, Scan, ScannedFile, read_text
from .steps import Drop, Mark, Plan, Rewrite, Take, Write

TITLES: dict[str, dict[Language, str]] = {
    MEMORY: {"en": "Memory", "zh": "记忆"},
    LEARNINGS: {"en": "Learnings", "zh": "经验"},
    "": {"en": "Notes of the day", "zh": "每日记录"},
}
ABOUT: dict[Language, str] = {
    "en": "<!-- A bullet is a memory: edit, add, move or remove it. Everything else in this file stays as it is. -->",
    "zh": "<!-- 每个列表项是一条记忆，可以修改、添加、移动或删除；文件里的其他内容都会保持原样。 -->",
}


@dataclass(slots=True)
class Written:
    checksums: dict[str, str] = field(default_factory=dict)  # of all files as they are now
    failed: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Edits:
    """What happens to one file."""

    entries: dict[int, Entry | None] = field(default_factory=dict)  # by line: in place of what stands there
    new: dict[str, list[tuple[str, Note, Home]]] = field(default_factory=lambda: defaultdict(list))  # by type
    receives: bool = False  # a line from another file


def write_files(workspace: Workspace, plan: Plan, scan: Scan, remembered: Remembered) -> Written:
    """Replace the files that the plan changes. A file that cannot be written is named, and the others go on. Raises
    `Changed` if a person was faster."""
    written = Written({path: file.checksum for path, file in scan.files.items() if file.checksum})
    edits = _edits(plan, scan)
    for path in sorted(edits, key=lambda path: not edits[path].receives):
        if plan.held_files and path in plan.held_files:
            written.failed.add(path)
            continue
        file = scan.files.get(path) or ScannedFile(path=path, document=Document(()))
        try:
            workspace.name_folder(plan.user_id)
            text = _edited(workspace, file, edits[path])
            data = text.encode()
            checksum = safe.checksum(data)
            after = read_text(path, checksum, text, file)
            _check(file, after, edits[path])
            safe.replace_file(safe.check_path(workspace.root, path), data, expected=file.checksum)
            written.checksums[path] = checksum
            remembered.keep(after)
        except (OSError, safe.Refused, Unsafe) as error:
            written.failed.add(path)
            told = (error.strerror or str(error)) if isinstance(error, OSError) else f"it {error}"
            written.problems.append(f"{path} could not be written: {told}")
    return written


class Unsafe(ValueError):
    """What would be written does not read back as it should."""


def _edits(plan: Plan, scan: Scan) -> dict[str, _Edits]:
    found: defaultdict[str, _Edits] = defaultdict(_Edits)
    for step in plan.steps:
        if isinstance(step, Drop):
            found[step.line.path].entries[step.line.entry.line] = None
        elif isinstance(step, Write) or (isinstance(step, Take) and step.line is None):
            found[step.path].new[step.note.memory_type].append((step.memory_id, step.note, step.home))
        elif isinstance(step, Rewrite) and step.to is not None:
            found[step.line.path].entries[step.line.entry.line] = None
            found[step.to].new[step.note.memory_type].append((step.memory_id, step.note, step.home))
            found[step.to].receives |= step.to != step.line.path
        elif isinstance(step, (Take, Mark, Rewrite)):
            entry = _in_place(step, scan)
            if entry is not None and step.line is not None:
                found[step.line.path].entries[step.line.entry.line] = entry
    return found


def _in_place(step: Take | Mark | Rewrite, scan: Scan) -> Entry | None:
    """The line as it will be; None if it stays."""
    if step.line is None:
        return None
    entry = step.line.entry
    document = scan.files[step.line.path].document
    eol = document.eol if document else "\n"
    if isinstance(step, Rewrite):
        return rewritten(entry, step.memory_id, step.note, step.home, eol)
    if entry.memory_id is None:
        return marked(entry, step.memory_id, step.note, step.home)
    return None if entry.memory_id == step.memory_id else rewritten(entry, step.memory_id, step.note, step.home, eol)


def _edited(workspace: Workspace, file: ScannedFile, edits: _Edits) -> str:
    before = file.document or Document(())
    new = [note for notes in edits.new.values() for _, note, _ in notes]
    language = _language(workspace, before, new)
    document = before if before.text else _beginning(file.path, language)
    document = exchanged(document, edits.entries)
    for memory_type, notes in edits.new.items():
        bullets = [bullet_text("- ", memory_id, note, home, document.eol) for memory_id, note, home in notes]
        document = inserted(document, bullets, memory_type, heading_line(memory_type, language))
    return document.text


def _beginning(path: str, language: Language) -> Document:
    title = next(title for ending, title in TITLES.items() if path.endswith(ending))[language]
    return parse(f"# {title}\n\n{ABOUT[language]}\n")


def _language(workspace: Workspace, document: Document, notes: Sequence[Note]) -> Language:
    """That of the headings that are there; or as the workspace says; or that of the memories."""
    for heading in document.headings:
        if heading.language:
            return heading.language
    if workspace.language != "auto":
        return workspace.language
    chinese = sum(language_of(note.content) == "zh" for note in notes)
    return "zh" if chinese * 2 > len(notes) else "en"


def _check(before: ScannedFile, after: ScannedFile, edits: _Edits) -> None:
    """What is written must read back as it was meant, and hold every line that is not ours. If it does not, the file
    stays as it is: better late than damaged."""
    wanted: dict[str, Note] = {}
    for memory_type, notes in edits.new.items():
        wanted |= {memory_id: note for memory_id, note, _ in notes if note.memory_type == memory_type}
    read = {line.entry.memory_id: line for line in after.lines if line.entry.memory_id}
    for memory_id, note in wanted.items():
        if memory_id not in read or read[memory_id].digests != note.digests():
            raise Unsafe(f"would not hold memory {memory_id} as it is")
    for line in before.lines:
        expected = edits.entries.get(line.entry.line, line.entry)
        if expected is None or expected.memory_id is None:
            continue
        found = read.get(expected.memory_id)
        if found is None or found.entry.item.content != expected.item.content:
            raise Unsafe(f"would not hold memory {expected.memory_id} as it is")
    lines = iter(_foreign(after))
    for text in _foreign(before):
        if not any(text == other for other in lines):
            raise Unsafe(f"would lose a line that is not ours: {text[:40]!r}")


def _foreign(file: ScannedFile) -> list[str]:
    parts = file.document.parts if file.document else ()
    return [part.text.rstrip("\r\n") for part in parts if isinstance(part, Prose) and not part.blank]
