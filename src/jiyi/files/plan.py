"""Plan a sync: a pure function of the files, the index and the state of the last sync. For each memory its line, the
index and the last agreed state are compared. The side that differs from the agreed state has changed. If both have, a
person's edit wins over extraction, and of two persons' changes both are kept."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from ..ids import time_of
from ..roles import teller_of
from ..store.write_set import Agreed, AgreedEntry, Filed, Past, StoredMemory
from ..write.build import statement_hash
from .format import DEFAULT_TYPE, FIELDS, Labels, Note, labels_of, note_of, read_labels
from .scan import Line, Scan
from .steps import BY_HAND, Archive, Create, Mark, Plan, Remove, Rewrite, Same, Step, Update, Write
from .workspace import Workspace

BY_A_PERSON = frozenset({"add", "update", "restore"})  # extraction uses other actions
MAX_LOST = 0.2  # share of all lines; more missing lines are treated as an accident


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexState:
    """The part of the index that the plan needs."""

    agreed: Agreed
    filed: Filed
    changed: Sequence[str]  # memories whose lines differ from the agreed state
    duplicates: Mapping[int, str]  # memory with the same content, by the number of a line without an id
    changes: Mapping[str, Sequence[Past]]  # history of a memory since the agreed state


def changed_lines(scan: Scan, agreed: Agreed) -> list[str]:
    """Return the memories whose lines differ from the agreed state."""
    found: dict[str, None] = {}
    there: set[str] = set()
    for line in scan.lines:
        memory_id = line.entry.memory_id
        if memory_id is None:
            continue
        before = agreed.entries.get(memory_id)
        if memory_id in there or before is None or before.path != line.path or _line_differs(line, before.digests):
            found[memory_id] = None
        there.add(memory_id)
    found |= dict.fromkeys(memory_id for memory_id in agreed.entries if memory_id not in there)
    return list(found)


def make_plan(
    scan: Scan,
    index: IndexState,
    workspace: Workspace,
    user_id: str,
    now: datetime,
    *,
    new_id: Callable[[], str],
    confirm: bool = False,
    restore: bool = False,
    files_win: bool = False,
) -> Plan:
    planner = _Planner(scan, index, workspace, user_id, now, new_id, restore, files_win)
    planner.hold_files(confirm)
    planner.sort_lines()
    planner.create_new()
    for memory_id in planner.examined():
        planner.decide(memory_id)
    return planner.finish(confirm)


@dataclass(slots=True)
class _Planner:
    scan: Scan
    index: IndexState
    workspace: Workspace
    user_id: str
    now: datetime
    new_id: Callable[[], str]
    restore: bool
    files_win: bool  # rebuild: the files are right
    steps: list[Step] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    lines: dict[str, Line] = field(default_factory=dict)
    copies: defaultdict[str, list[Line]] = field(default_factory=lambda: defaultdict(list))  # identical lines
    new_lines: list[tuple[int, Line]] = field(default_factory=list)
    held: set[str] = field(default_factory=set)  # files that are skipped
    lost: set[str] = field(default_factory=set)  # files that had lines and are missing or empty now

    def hold_files(self, confirm: bool) -> None:
        self.problems.extend(self.scan.problems)
        self.held = {path for path, file in self.scan.files.items() if file.document is None}
        paths = {entry.path for entry in self.index.agreed.entries.values()}
        self.lost = {path for path in paths if path not in self.scan.files or self.scan.files[path].blank}
        if not confirm and not self.restore:
            self.held |= self.lost

    def sort_lines(self) -> None:
        """Find one line for each memory; a changed copy of a line is a new line."""
        for number, line in enumerate(self.scan.lines):
            memory_id = line.entry.memory_id
            if memory_id is None:
                self.new_lines.append((number, line))
                continue
            other = self.lines.setdefault(memory_id, line)
            if other is line:
                continue
            if self._moved_before_crash(memory_id, line, other):
                continue
            if line.note == other.note:
                self.problems.append(f"{_at(line)}: has the id and content of {_at(other)}: one memory")
                self.copies[memory_id].append(line)
                continue
            before = self.index.agreed.entries.get(memory_id)
            if before and _differs(other.note, before.digests) and not _differs(line.note, before.digests):
                self.lines[memory_id] = line
                self.new_lines.append((-1, other))
            else:
                self.new_lines.append((-1, line))

    def _moved_before_crash(self, memory_id: str, line: Line, other: Line) -> bool:
        """Remove the outdated one of two lines after a crash while a line moved to another file."""
        memory, before = self.index.filed.memories.get(memory_id), self.index.agreed.entries.get(memory_id)
        if memory is None or before is None:
            return False
        now = note_of(memory).digests()
        if now == dict(before.digests):
            return False
        for stale, moved in ((line, other), (other, line)):
            if not _differs(stale.note, before.digests) and not _differs(moved.note, now):
                self.lines[memory_id] = moved
                self.steps.append(Remove(memory_id=memory_id, line=stale))
                return True
        return False

    def create_new(self) -> None:
        taken: dict[tuple[str, str], Line] = {}
        for number, line in self.new_lines:
            content = (line.note.memory_type, line.note.content)
            memory = self._duplicate(number, line)
            other = taken.get(content) or (self.lines.get(memory.id) if memory else None)
            if "memory_type" in line.note.unspecified:
                self.problems.append(
                    f"{_at(line)}: skipped: its id belongs to another line, and its heading names no type"
                )
            elif other is not None:
                self.problems.append(f"{_at(line)}: skipped: same content as {_at(other)}")
            elif memory is not None and self._is_current(memory):
                self.lines[memory.id] = taken[content] = line
                self._adopt(memory, line)
            else:
                taken[content] = line
                note = replace(line.note, occurred_at=line.note.occurred_at or self._day(line))
                self.steps.append(Create(memory_id=self.new_id(), note=note, labels=Labels(), line=line))

    def _duplicate(self, number: int, line: Line) -> StoredMemory | None:
        """Return the memory with the content of this line, unless that memory's own line changes it."""
        memory = self.index.filed.memories.get(self.index.duplicates.get(number, ""))
        own = self.lines.get(memory.id) if memory else None
        if memory is None or own is None:
            return memory
        before = self._written_state(memory, own, self.index.agreed.entries.get(memory.id))
        will_be, _ = _merge(own.note, note_of(memory), self._base(memory, before))
        return memory if _content_hash(will_be) == _content_hash(line.note) else None

    def _adopt(self, memory: StoredMemory, line: Line) -> None:
        """Link a line to the memory that has its content, up to spelling."""
        stored = note_of(memory)
        note = replace(stored, content=line.note.content)
        if note != stored:
            fields = frozenset({"content"})
            self.steps.append(Update(memory_id=memory.id, version=memory.version, note=note, fields=fields, line=line))
        self.steps.append(
            Mark(memory_id=memory.id, version=memory.version, note=note, labels=labels_of(memory), line=line)
        )

    def examined(self) -> list[str]:
        marked = {step.memory_id for step in self.steps if isinstance(step, Mark)}
        if self.index.filed.complete:
            ids = [*self.lines, *self.index.agreed.entries, *self.index.filed.memories]
        else:
            filed = self.index.filed
            ids = [*self.index.changed, *filed.memories, *filed.missing]
        return [memory_id for memory_id in dict.fromkeys(ids) if memory_id not in marked | self.scan.held]

    def decide(self, memory_id: str) -> None:
        line = self.lines.get(memory_id)
        memory = self.index.filed.memories.get(memory_id)
        before = self.index.agreed.entries.get(memory_id)
        if line is None:
            self._without_line(memory_id, memory, before)
        elif memory is None:
            self._without_memory(memory_id, line, before)
        elif not self._is_current(memory):
            self._ended(memory, line, self._written_state(memory, line, before))
        elif before and not self._belongs(memory, before) and self._untouched(line, before):
            self.steps.append(Remove(memory_id=memory_id, line=line))  # its type has no lines any more
            self.gone.append(memory_id)
        else:
            self._both(memory, line, self._written_state(memory, line, before))

    def _without_line(self, memory_id: str, memory: StoredMemory | None, before: AgreedEntry | None) -> None:
        if before is not None and before.path in self.held - self.lost:
            return
        if memory_id in self.scan.mentioned:
            self.problems.append(f"memory {memory_id} is mentioned, but not in a bullet: skipped")
            return
        if memory is None or not self._is_current(memory) or not self._belongs(memory, before):
            if before is not None:
                self.gone.append(memory_id)
            return
        note = note_of(memory)
        changed = before is not None and any(
            before.digests.get(name) != note.digests()[name] for name in ("content", "memory_type")
        )
        if before is not None and not changed and not self.restore:
            self.steps.append(Archive(memory_id=memory_id, version=memory.version, path=before.path, text=note.content))
            return
        if changed and not self.restore:
            self.conflicts.append(
                f"memory {memory_id}: its line was removed while the index changed it: the line is written again"
            )
        self._write(memory, note)

    def _without_memory(self, memory_id: str, line: Line, before: AgreedEntry | None) -> None:
        erased_at, made_at = self.index.filed.erased_at, time_of(memory_id)
        erased = before is None and erased_at is not None and made_at is not None and made_at < erased_at
        if erased or (before is not None and self._untouched(line, before)):
            self.steps.append(Remove(memory_id=memory_id, line=line))
            self.gone.append(memory_id)
            return
        note = line.note
        if "memory_type" in note.unspecified:  # it is below a heading of a person
            note = replace(note, memory_type=DEFAULT_TYPE, unspecified=note.unspecified - {"memory_type"})
        keeps_id = (before is None or self.files_win) and made_at is not None
        if before is not None and not keeps_id:
            self.gone.append(memory_id)
            self.conflicts.append(f"{_at(line)}: edited while its memory was deleted; it becomes a new memory")
        own_id = memory_id if keeps_id else self.new_id()
        self.steps.append(Create(memory_id=own_id, note=note, labels=read_labels(line.entry.item), line=line))

    def _ended(self, memory: StoredMemory, line: Line, before: AgreedEntry | None) -> None:
        if before is not None and self._untouched(line, before):
            self.steps.append(Remove(memory_id=memory.id, line=line))
            self.gone.append(memory.id)
            return
        if before is not None and not self.files_win:
            self.conflicts.append(
                f"{_at(line)}: edited while its memory was archived or superseded; it is active again"
            )
        stored = note_of(memory)
        note, _ = _merge(line.note, stored, None)
        fields = frozenset(name for name in FIELDS if note.digests()[name] != stored.digests()[name])
        self.steps.append(
            Update(memory_id=memory.id, version=memory.version, note=note, fields=fields, line=line, revive=True)
        )

    def _both(self, memory: StoredMemory, line: Line, before: AgreedEntry | None) -> None:
        stored = note_of(memory)
        before = self._base(memory, before)
        note, clashes = _merge(line.note, stored, before)
        if "content" in clashes:
            self._clash(memory, stored, line, before)
        merged, in_file, in_index = note.digests(), line.note.digests(), stored.digests()
        fields = frozenset(name for name in FIELDS if merged[name] != in_index[name])
        if fields:
            self.steps.append(Update(memory_id=memory.id, version=memory.version, note=note, fields=fields, line=line))
        specified = [name for name in FIELDS if name not in line.note.unspecified]
        other_type = "memory_type" in specified and merged["memory_type"] != in_file["memory_type"]
        if other_type or any(merged[name] != in_file[name] for name in specified):
            to = self.workspace.file_for(self.user_id, note.memory_type, memory.occurred_at) if other_type else None
            if to not in self.held:
                self.steps.append(
                    Rewrite(
                        memory_id=memory.id,
                        version=memory.version,
                        note=note,
                        labels=labels_of(memory),
                        line=line,
                        to=to,
                    )
                )
        elif not fields and (before is None or before.path != line.path or dict(before.digests) != merged):
            self.steps.append(Same(memory_id=memory.id, version=memory.version, note=note, path=line.path))

    def _base(self, memory: StoredMemory, before: AgreedEntry | None) -> AgreedEntry | None:
        """Return the state to compare a line with; when the files win, that of the index."""
        if not self.files_win:
            return before
        return AgreedEntry(memory_id=memory.id, path="", version=0, digests=note_of(memory).digests())

    def _written_state(self, memory: StoredMemory, line: Line, before: AgreedEntry | None) -> AgreedEntry | None:
        """Return the agreed state of a line. A line with an earlier content of its memory was not edited: a crash came
        after it was written, before the agreed state was stored."""
        changes = self.index.changes.get(memory.id, ())
        if line.note.content not in {past.said for past in changes}:
            return before
        if before is None and any(past.actor == BY_HAND for past in changes):
            return before  # a person removed the line or changed it elsewhere, and has put it back
        digests = line.note.digests()
        if before is not None:
            digests = {**before.digests, "content": digests["content"]}
        return AgreedEntry(memory_id=memory.id, path=line.path, version=0, digests=digests)

    def _clash(self, memory: StoredMemory, stored: Note, line: Line, before: AgreedEntry | None) -> None:
        by_person = before is None or any(past.action in BY_A_PERSON for past in self.index.changes.get(memory.id, ()))
        if not by_person:
            self.conflicts.append(
                f"{_at(line)}: changed by hand and by extraction: the edit by hand wins, the history has both"
            )
            return
        copy = self.new_id()
        self.conflicts.append(f"{_at(line)}: changed by hand and in the index: both are kept, the second as {copy}")
        labels = replace(labels_of(memory), memory_key=None)
        note = replace(stored, tags=tuple(dict.fromkeys((*stored.tags, "conflict"))))
        self.steps.append(Create(memory_id=copy, note=note, labels=labels, path=line.path, instead_of=memory.id))

    def _write(self, memory: StoredMemory, note: Note) -> None:
        path = self.workspace.file_for(self.user_id, note.memory_type, memory.occurred_at)
        if path not in self.held:
            self.steps.append(
                Write(memory_id=memory.id, version=memory.version, note=note, labels=labels_of(memory), path=path)
            )

    def _untouched(self, line: Line, before: AgreedEntry) -> bool:
        """Return True if a person has not changed the line."""
        return not self.files_win and not _differs(line.note, before.digests)

    def _is_current(self, memory: StoredMemory) -> bool:
        return (
            memory.status == "active"
            and (memory.valid_to is None or memory.valid_to > self.now)
            and (memory.expires_at is None or memory.expires_at > self.now)
        )

    def _belongs(self, memory: StoredMemory, before: AgreedEntry | None) -> bool:
        """Return True if a memory has a line: the user told it and its type has lines, or a person wrote one."""
        by_hand = before is not None and before.digests.get("memory_type") == memory.memory_type
        own = teller_of(memory.data, self.user_id) is None
        return by_hand or (own and self.workspace.belongs(memory.memory_type, memory.layer))

    def _day(self, line: Line) -> datetime | None:
        """Return the day of a daily file other than today's."""
        day = self.workspace.day_of(line.path)
        return None if day is None or day.date() == self.now.date() else day

    def finish(self, confirm: bool) -> Plan:
        removed = [step for step in self.steps if isinstance(step, Archive)]
        total = len(self.index.agreed.entries)
        accident = len(removed) > 1 and len(removed) > MAX_LOST * total
        withheld = [step for step in removed if accident or step.path in self.lost] if not confirm else []
        kept = {step.memory_id for step in withheld}
        if withheld:
            self.problems.append(
                f"{len(withheld):,} of {total:,} lines are gone at once: nothing is archived."
                " Put them back, or run `jiyi workspace sync --confirm` (or `--restore` to write them again)"
            )
        return Plan(
            user_id=self.user_id,
            steps=tuple(
                each
                for step in self.steps
                if not (isinstance(step, Archive) and step.memory_id in kept)
                for each in (*self._for_copies(step), step)
            ),
            gone=tuple(dict.fromkeys(self.gone)),
            withheld=tuple(withheld),
            conflicts=tuple(self.conflicts),
            problems=tuple(self.problems),
            held_files=frozenset(self.held),
        )

    def _for_copies(self, step: Step) -> Iterator[Step]:
        """Apply a step to identical copies of its line too, so that no two lines of one id differ."""
        if isinstance(step, (Remove, Rewrite)):
            for copy in self.copies[step.memory_id]:
                if copy.path in self.held or copy.note != step.line.note:
                    continue
                stays = isinstance(step, Rewrite) and step.to is None
                yield replace(step, line=copy) if stays else Remove(memory_id=step.memory_id, line=copy)


def _line_differs(line: Line, digests: Mapping[str, str]) -> bool:
    return line.digests != digests and _differs(line.note, digests)


def _differs(note: Note, digests: Mapping[str, str]) -> bool:
    return any(value != digests.get(name) for name, value in note.digests().items() if name not in note.unspecified)


def _merge(line: Note, stored: Note, before: AgreedEntry | None) -> tuple[Note, list[str]]:
    """Merge the fields that either side changed. Return the note and the fields that both changed (the line wins)."""
    in_file, in_index = line.digests(), stored.digests()
    values, clashes = {}, []
    for name in FIELDS:
        unchanged = before is not None and before.digests.get(name) == in_file[name]
        if name in line.unspecified or in_file[name] == in_index[name] or unchanged:
            values[name] = getattr(stored, name)
        else:
            values[name] = getattr(line, name)
            if before is None or before.digests.get(name) != in_index[name]:
                clashes.append(name)
    return Note(**values), clashes


def _content_hash(note: Note) -> str:
    return statement_hash(note.content, note.memory_type, None, None)


def _at(line: Line) -> str:
    return f"{line.path}:{line.entry.line}"
