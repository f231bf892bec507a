"""Apply a plan to the index (create, update and archive memories) and to the files (add, change and remove lines)."""

import asyncio
import json
import logging
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from pydantic import JsonValue

from .. import validation
from ..embed import Embedder
from ..ids import new_id, time_of
from ..languages.words import language as language_of
from ..models import CandidateMemory, MemoryItem, ReceiptState, utc_now
from ..roles import told_by
from ..store.store import Store
from ..store.write_set import Addition, AgreedEntry, Change, ChangedMemory, FileWork, NewMemory, Stale
from ..write.add import MOST_COMPARED
from ..write.build import Context, stated, statement_hash
from ..write.change import embed_changes, prepare
from ..write.index import KeywordRules, embed_entries, entry_of
from ..write.parse.divide_messages import with_divisions
from ..write.reconcile import stated_facts
from . import safe
from .document import Document, Entry, Prose, bullet_text, exchanged, inserted, marked, parse, rewritten
from .format import ABOUT, Labels, Language, Note, heading_line
from .scan import FileCache, Scan, ScannedFile, read_text
from .steps import BY_HAND, Archive, Create, Mark, Plan, Remove, Rewrite, Update, Write
from .workspace import LEARNINGS, MEMORY, Workspace

logger = logging.getLogger(__name__)

BATCH = 400  # memories in one transaction


@dataclass(slots=True)
class _Batch:
    """The steps of one transaction; an edit and the copy of its conflict are in the same one."""

    changes: list[Update | Archive] = field(default_factory=list)
    creates: list[Create] = field(default_factory=list)


async def apply_to_index(
    store: Store,
    embedder: Embedder,
    rules: KeywordRules,
    workspace: str,
    plan: Plan,
    *,
    epoch: str,
    with_facts: bool,
) -> list[str]:
    """Write the changes of the files into the index. Return problems; raise `Stale` if a memory has changed, and
    `UserErased` if the user was deleted since the files were read."""
    rewritten = {step.memory_id for step in plan.of(Rewrite)}
    with_facts = with_facts and len(plan.of(Create)) <= MOST_COMPARED
    problems: dict[str, None] = {}
    for batch in _batches(plan):
        now = utc_now()
        changes, change_problem = await _changes(store, embedder, rules, plan.user_id, batch.changes)
        additions, problem = await _additions(embedder, rules, plan.user_id, epoch, batch.creates, now, with_facts)
        problems |= dict.fromkeys(filter(None, (change_problem, problem)))
        agreed = [
            AgreedEntry(
                memory_id=step.memory_id, path=step.line.path, version=step.version + 1, digests=step.note.digests()
            )
            for step in batch.changes
            if isinstance(step, Update) and step.memory_id not in rewritten and step.line.entry.memory_id
        ]
        await store.files.apply(
            FileWork(
                user_id=plan.user_id,
                epoch=epoch,
                workspace=workspace,
                at=now,
                changes=tuple(changes),
                additions=tuple(additions),
                agreed=tuple(agreed),
            )
        )
    return list(problems)


def _batches(plan: Plan) -> Iterator[_Batch]:
    copies = {step.instead_of: step for step in plan.steps if isinstance(step, Create) and step.instead_of}
    batch = _Batch()
    for step in plan.steps:
        if isinstance(step, (Update, Archive)):
            batch.changes.append(step)
            if step.memory_id in copies:
                batch.creates.append(copies[step.memory_id])
        elif isinstance(step, Create) and not step.instead_of:
            batch.creates.append(step)
        if len(batch.changes) + len(batch.creates) >= BATCH:
            yield batch
            batch = _Batch()
    if batch.changes or batch.creates:
        yield batch


async def _changes(
    store: Store, embedder: Embedder, rules: KeywordRules, user_id: str, steps: Sequence[Update | Archive]
) -> tuple[list[tuple[ChangedMemory, int]], str | None]:
    if not steps:
        return [], None
    items = {item.id: item for item in await store.memories.get(user_id, [step.memory_id for step in steps])}
    if any(step.memory_id not in items or items[step.memory_id].version != step.version for step in steps):
        raise Stale
    memories = [items[step.memory_id] for step in steps]
    changes = await asyncio.to_thread(
        lambda: [_change(memory, step, rules) for memory, step in zip(memories, steps, strict=True)]
    )
    changes, problem = await embed_changes(changes, memories, embedder)
    changes = await with_divisions(changes, memories, store=store, embedder=embedder, rules=rules)
    changed = [
        (ChangedMemory(id=step.memory_id, change=change), step.version)
        for step, change in zip(steps, changes, strict=True)
    ]
    return changed, problem


def _change(memory: MemoryItem, step: Update | Archive, rules: KeywordRules) -> Change:
    if isinstance(step, Archive):
        reason = f"its line was removed from {step.path}"
        return prepare(memory, {"status": "archived"}, rules, action="archive", actor=BY_HAND, reason=reason)
    note = step.note
    given: dict[str, Any] = {name: getattr(note, name) for name in step.fields}
    if "tags" in given:
        given["tags"] = list(note.tags)
    if "occurred_at" in given:
        given["occurred_at"] = note.occurred_at or time_of(memory.id) or memory.occurred_at
    if not step.revive:
        return prepare(memory, given, rules, action="update", actor=BY_HAND, reason=step.line.path)
    given |= {"status": "active", "valid_to": None, "superseded_by": None, "expires_at": note.expires_at}
    reason = f"its line was restored in {step.line.path}"
    change = prepare(memory, given, rules, action="restore", actor=BY_HAND, reason=reason)
    own_key = memory.memory_key if memory.memory_key != memory.id else None
    text, by = change.values.get("content", memory.content), told_by(memory.data, memory.user_id)
    content_hash = statement_hash(text, note.memory_type, memory.agent_id, memory.group_id, own_key, memory.trust, by)
    return replace(change, dedupe_hash=content_hash)


async def _additions(
    embedder: Embedder,
    rules: KeywordRules,
    user_id: str,
    epoch: str,
    steps: Sequence[Create],
    now: datetime,
    with_facts: bool,
) -> tuple[list[Addition], str | None]:
    if not steps:
        return [], None

    def build() -> list[tuple[Context, NewMemory]]:
        return [_new(user_id, step, now, rules, with_facts) for step in steps]

    made = await asyncio.to_thread(build)
    texts = [memory.content for _, memory in made]
    entries, problem = await embed_entries([memory.index for _, memory in made], texts, embedder)
    by_labels: defaultdict[tuple[str | None, ...], list[NewMemory]] = defaultdict(list)
    for (context, memory), entry in zip(made, entries, strict=True):
        by_labels[context.agent_id, context.group_id, context.session_id].append(replace(memory, index=entry))
    additions = [
        Addition(
            id=new_id(),
            user_id=user_id,
            epoch=epoch,
            agent_id=agent_id,
            group_id=group_id,
            session_id=session_id,
            actor=BY_HAND,
            at=now,
            state=ReceiptState.INDEXED,
            model=embedder.id,
            memories=tuple(memories),
        )
        for (agent_id, group_id, session_id), memories in by_labels.items()
    ]
    return additions, problem


def _new(user_id: str, step: Create, now: datetime, rules: KeywordRules, with_facts: bool) -> tuple[Context, NewMemory]:
    """Build a memory from a line. Its slot is stored, so that a later fact can supersede it. It supersedes none itself:
    a person keeps both lines."""
    note, labels = step.note, step.labels
    context = Context(
        user_id=user_id,
        session_id=labels.session_id,
        agent_id=labels.agent_id,
        group_id=labels.group_id,
        memory_type=None,
        importance=None,
        tags=(),
        metadata={},
        occurred_at=None,
        expires_at=None,
    )
    made_at = min(time_of(step.memory_id) or now, now)
    candidate = CandidateMemory(
        content=note.content,
        memory_type=note.memory_type,
        memory_key=labels.memory_key,
        importance=note.importance,
        tags=note.tags,
        data=_object("data", labels.data),
        metadata=_object("metadata", labels.metadata),
        occurred_at=note.occurred_at or made_at,
        expires_at=note.expires_at,
    )
    memory = stated(candidate, context, now)
    proposed = stated_facts(memory, context) if with_facts else None
    entry = entry_of(memory, rules)
    return context, replace(
        memory,
        id=step.memory_id,
        memory_key=labels.memory_key or step.memory_id,
        slot=proposed.slot if proposed else None,
        reason=f"a line of {step.line.path}" if step.line else f"conflicting content of {step.instead_of}",
        created_at=made_at,
        index=entry,
    )


def _object(name: str, text: str | None) -> dict[str, JsonValue] | None:
    """Read an object that a line holds as JSON; None if it is damaged."""
    try:
        return None if text is None else validation.json_object(name, json.loads(text))
    except (ValueError, RecursionError) as error:
        logger.warning("the %s in a line cannot be read and is left out: %s", name, error)
        return None


TITLES: dict[str, dict[Language, str]] = {
    MEMORY: {"en": "Memory", "zh": "记忆"},
    LEARNINGS: {"en": "Learnings", "zh": "经验"},
    "": {"en": "Daily notes", "zh": "每日记录"},
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
    """Replace the files that the plan changes; report those that cannot be written. Raise `Changed` if a file has
    changed since it was read."""
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
