"""What has to happen so that files and index agree: a pure function of both and of what they last agreed on.

For each memory there are three states: its line, the index, and what both last agreed on. Who differs from that has
changed; if both have, a person's edit wins over what extraction made, and beside another person's change both are kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from ..ids import time_of
from ..store.contract import Agreed, AgreedEntry, Filed, FiledMemory, Past
from ..write.hashes import statement_hash
from .format import FIELDS, Home, Note, home_of, note_of, read_home
from .layout import Workspace
from .scan import Line, Scan
from .steps import BY_HAND, Archive, Drop, Edit, Mark, Plan, Rewrite, Same, Step, Take, Write

BY_A_PERSON = frozenset({"add", "update", "restore"})  # what extraction does has other names
MOST_LOST = 0.2  # of all lines; more than that is taken for an accident


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the index knows, as far as it has to be looked at."""

    agreed: Agreed
    filed: Filed
    suspects: Sequence[str]  # memories whose lines are not what was last agreed on
    twins: Mapping[int, str]  # by the number of a line without an id: the memory that says this already
    changes: Mapping[str, Sequence[Past]]  # what was done to a memory since it was last agreed on


def suspects(scan: Scan, agreed: Agreed) -> list[str]:
    """The memories whose lines are not what was last agreed on."""
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
    known: Known,
    workspace: Workspace,
    user_id: str,
    now: datetime,
    *,
    new_id: Callable[[], str],
    confirm: bool = False,
    restore: bool = False,
    files_win: bool = False,
) -> Plan:
    planning = _Planning(scan, known, workspace, user_id, now, new_id, restore, files_win)
    planning.hold_files(confirm)
    planning.sort_lines()
    planning.take_newcomers()
    for memory_id in planning.examined():
        planning.decide(memory_id)
    return planning.finish(confirm)


@dataclass(slots=True)
class _Planning:
    scan: Scan
    known: Known
    workspace: Workspace
    user_id: str
    now: datetime
    new_id: Callable[[], str]
    restore: bool
    files_win: bool  # whatever the index says
    steps: list[Step] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    lines: dict[str, Line] = field(default_factory=dict)
    copies: defaultdict[str, list[Line]] = field(default_factory=lambda: defaultdict(list))  # word for word
    newcomers: list[tuple[int, Line]] = field(default_factory=list)
    held: set[str] = field(default_factory=set)  # files
    lost: set[str] = field(default_factory=set)  # files that were there and are missing or empty

    def hold_files(self, confirm: bool) -> None:
        self.problems.extend(self.scan.problems)
        self.held = {path for path, file in self.scan.files.items() if file.document is None}
        paths = {entry.path for entry in self.known.agreed.entries.values()}
        self.lost = {path for path in paths if path not in self.scan.files or self.scan.files[path].blank}
        if not confirm and not self.restore:
            self.held |= self.lost

    def sort_lines(self) -> None:
        """One line for each memory; a copy of a line is a line of its own."""
        for number, line in enumerate(self.scan.lines):
            memory_id = line.entry.memory_id
            if memory_id is None:
                self.newcomers.append((number, line))
                continue
            other = self.lines.setdefault(memory_id, line)
            if other is line:
                continue
            if self._left_by_crash(memory_id, line, other):
                continue
            if line.note == other.note:
                self.problems.append(f"{_at(line)}: the same as {_at(other)}, with the same id: one memory")
                self.copies[memory_id].append(line)
                continue
            before = self.known.agreed.entries.get(memory_id)
            if before and _differs(other.note, before.digests) and not _differs(line.note, before.digests):
                self.lines[memory_id] = line
                self.newcomers.append((-1, other))
            else:
                self.newcomers.append((-1, line))

    def _left_by_crash(self, memory_id: str, line: Line, other: Line) -> bool:
        """A line that was to move to another file stands in both: the one that is no longer true goes."""
        memory, before = self.known.filed.memories.get(memory_id), self.known.agreed.entries.get(memory_id)
        if memory is None or before is None:
            return False
        now = note_of(memory).digests()
        if now == dict(before.digests):
            return False
        for stale, moved in ((line, other), (other, line)):
            if not _differs(stale.note, before.digests) and not _differs(moved.note, now):
                self.lines[memory_id] = moved
                self.steps.append(Drop(memory_id=memory_id, line=stale))
                return True
        return False

    def take_newcomers(self) -> None:
        taken: dict[tuple[str, str], Line] = {}
        for number, line in self.newcomers:
            said = (line.note.memory_type, line.note.content)
            memory = self._twin(number, line)
            other = taken.get(said) or (self.lines.get(memory.id) if memory else None)
            if "memory_type" in line.note.unsaid:
                self.problems.append(
                    f"{_at(line)}: its id is another line's, and its heading names no type; left alone"
                )
            elif other is not None:
                self.problems.append(f"{_at(line)}: says the same as {_at(other)}; left alone")
            elif memory is not None and self._holds(memory):
                self.lines[memory.id] = taken[said] = line
                self._adopt(memory, line)
            else:
                taken[said] = line
                note = replace(line.note, occurred_at=line.note.occurred_at or self._day(line))
                self.steps.append(Take(memory_id=self.new_id(), note=note, home=Home(), line=line))

    def _twin(self, number: int, line: Line) -> FiledMemory | None:
        """The memory that says what this line does, and goes on saying it: its own line may have been changed."""
        memory = self.known.filed.memories.get(self.known.twins.get(number, ""))
        own = self.lines.get(memory.id) if memory else None
        if memory is None or own is None:
            return memory
        before = self._as_we_wrote_it(memory, own, self.known.agreed.entries.get(memory.id))
        will_be, _ = _merged(own.note, note_of(memory), self._base(memory, before))
        return memory if _said(will_be) == _said(line.note) else None

    def _adopt(self, memory: FiledMemory, line: Line) -> None:
        """The memory says this already, but for how it is spelled."""
        stored = note_of(memory)
        note = replace(stored, content=line.note.content)
        if note != stored:
            fields = frozenset({"content"})
            self.steps.append(Edit(memory_id=memory.id, version=memory.version, note=note, fields=fields, line=line))
        self.steps.append(Mark(memory_id=memory.id, version=memory.version, note=note, home=home_of(memory), line=line))

    def examined(self) -> list[str]:
        marked = {step.memory_id for step in self.steps if isinstance(step, Mark)}
        if self.known.filed.complete:
            ids = [*self.lines, *self.known.agreed.entries, *self.known.filed.memories]
        else:
            filed = self.known.filed
            ids = [*self.known.suspects, *filed.memories, *filed.missing]
        return [memory_id for memory_id in dict.fromkeys(ids) if memory_id not in marked | self.scan.held]

    def decide(self, memory_id: str) -> None:
        line = self.lines.get(memory_id)
        memory = self.known.filed.memories.get(memory_id)
        before = self.known.agreed.entries.get(memory_id)
        if line is None:
            self._without_line(memory_id, memory, before)
        elif memory is None:
            self._without_memory(memory_id, line, before)
        elif not self._holds(memory):
            self._over(memory, line, self._as_we_wrote_it(memory, line, before))
        elif before and not self._belongs(memory, before) and self._untouched(line, before):
            self.steps.append(Drop(memory_id=memory_id, line=line))  # it has become what has no lines
            self.gone.append(memory_id)
        else:
            self._both(memory, line, self._as_we_wrote_it(memory, line, before))

    # -- the four cases -------------------------------------------------------------------------------------------

    def _without_line(self, memory_id: str, memory: FiledMemory | None, before: AgreedEntry | None) -> None:
        if before is not None and before.path in self.held - self.lost:
            return
        if memory_id in self.scan.mentioned:
            self.problems.append(
                f"memory {memory_id} is mentioned, but its line is no bullet: nothing is done about it"
            )
            return
        if memory is None or not self._holds(memory) or not self._belongs(memory, before):
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
            self.conflicts.append(f"memory {memory_id} lost its line while the index changed it: the line is back")
        self._write(memory, note)

    def _without_memory(self, memory_id: str, line: Line, before: AgreedEntry | None) -> None:
        erased_at, made_at = self.known.filed.erased_at, time_of(memory_id)
        erased = before is None and erased_at is not None and made_at is not None and made_at < erased_at
        if erased or (before is not None and self._untouched(line, before)):
            self.steps.append(Drop(memory_id=memory_id, line=line))
            self.gone.append(memory_id)
        elif "memory_type" in line.note.unsaid:
            self.problems.append(f"{_at(line)}: no memory has this id, and its heading names no type; left alone")
        elif (before is None or self.files_win) and made_at is not None:
            self.steps.append(Take(memory_id=memory_id, note=line.note, home=read_home(line.entry.item), line=line))
        else:
            if before is not None:
                self.gone.append(memory_id)
                self.conflicts.append(f"{_at(line)}: edited while its memory was deleted; it is a new memory now")
            self.steps.append(Take(memory_id=self.new_id(), note=line.note, home=read_home(line.entry.item), line=line))

    def _over(self, memory: FiledMemory, line: Line, before: AgreedEntry | None) -> None:
        if before is not None and self._untouched(line, before):
            self.steps.append(Drop(memory_id=memory.id, line=line))
            self.gone.append(memory.id)
            return
        if before is not None and not self.files_win:
            self.conflicts.append(f"{_at(line)}: edited while its memory was archived or ended; it holds again")
        stored = note_of(memory)
        note, _ = _merged(line.note, stored, None)
        fields = frozenset(name for name in FIELDS if note.digests()[name] != stored.digests()[name])
        self.steps.append(
            Edit(memory_id=memory.id, version=memory.version, note=note, fields=fields, line=line, revive=True)
        )

    def _both(self, memory: FiledMemory, line: Line, before: AgreedEntry | None) -> None:
        stored = note_of(memory)
        before = self._base(memory, before)
        note, clashes = _merged(line.note, stored, before)
        if "content" in clashes:
            self._clash(memory, stored, line, before)
        merged, in_file, in_index = note.digests(), line.note.digests(), stored.digests()
        fields = frozenset(name for name in FIELDS if merged[name] != in_index[name])
        if fields:
            self.steps.append(Edit(memory_id=memory.id, version=memory.version, note=note, fields=fields, line=line))
        said = [name for name in FIELDS if name not in line.note.unsaid]
        other_type = "memory_type" in said and merged["memory_type"] != in_file["memory_type"]
        if other_type or any(merged[name] != in_file[name] for name in said):
            to = self.workspace.file_for(self.user_id, note.memory_type, memory.occurred_at) if other_type else None
            if to not in self.held:
                self.steps.append(
                    Rewrite(
                        memory_id=memory.id,
                        version=memory.version,
                        note=note,
                        home=home_of(memory),
                        line=line,
                        to=to,
                    )
                )
        elif not fields and (before is None or before.path != line.path or dict(before.digests) != merged):
            self.steps.append(Same(memory_id=memory.id, version=memory.version, note=note, path=line.path))

    def _base(self, memory: FiledMemory, before: AgreedEntry | None) -> AgreedEntry | None:
        """What a line is compared with to see what a person has changed; where the files win, that is all of it."""
        if not self.files_win:
            return before
        return AgreedEntry(memory_id=memory.id, path="", version=0, digests=note_of(memory).digests())

    def _as_we_wrote_it(self, memory: FiledMemory, line: Line, before: AgreedEntry | None) -> AgreedEntry | None:
        """A line that says what its memory said a while ago was changed by no person: it was written, and a crash came
        before that was noted."""
        changes = self.known.changes.get(memory.id, ())
        if line.note.content not in {past.said for past in changes}:
            return before
        if before is None and any(past.actor == BY_HAND for past in changes):
            return before  # whoever took the line away, or changed it in another folder, has put it there
        digests = line.note.digests()
        if before is not None:
            digests = {**before.digests, "content": digests["content"]}
        return AgreedEntry(memory_id=memory.id, path=line.path, version=0, digests=digests)

    def _clash(self, memory: FiledMemory, stored: Note, line: Line, before: AgreedEntry | None) -> None:
        by_person = before is None or any(past.action in BY_A_PERSON for past in self.known.changes.get(memory.id, ()))
        if not by_person:
            self.conflicts.append(
                f"{_at(line)}: changed by hand and by extraction: the hand wins, the history has both"
            )
            return
        copy = self.new_id()
        self.conflicts.append(f"{_at(line)}: changed by hand and in the index: both are kept, the other one as {copy}")
        home = replace(home_of(memory), memory_key=None)
        note = replace(stored, tags=tuple(dict.fromkeys((*stored.tags, "conflict"))))
        self.steps.append(Take(memory_id=copy, note=note, home=home, path=line.path, instead_of=memory.id))

    # -- small parts ----------------------------------------------------------------------------------------------

    def _write(self, memory: FiledMemory, note: Note) -> None:
        path = self.workspace.file_for(self.user_id, note.memory_type, memory.occurred_at)
        if path not in self.held:
            self.steps.append(
                Write(memory_id=memory.id, version=memory.version, note=note, home=home_of(memory), path=path)
            )

    def _untouched(self, line: Line, before: AgreedEntry) -> bool:
        """The index may have its way with the line."""
        return not self.files_win and not _differs(line.note, before.digests)

    def _holds(self, memory: FiledMemory) -> bool:
        return (
            memory.status == "active"
            and (memory.valid_to is None or memory.valid_to > self.now)
            and (memory.expires_at is None or memory.expires_at > self.now)
        )

    def _belongs(self, memory: FiledMemory, before: AgreedEntry | None) -> bool:
        """Whether it should have a line: by its type, or because a person has written one for it."""
        by_hand = before is not None and before.digests.get("memory_type") == memory.memory_type
        return by_hand or self.workspace.belongs(memory.memory_type, memory.layer)

    def _day(self, line: Line) -> datetime | None:
        """What is written into the notes of another day happened then."""
        day = self.workspace.day_of(line.path)
        return None if day is None or day.date() == self.now.date() else day

    def finish(self, confirm: bool) -> Plan:
        removed = [step for step in self.steps if isinstance(step, Archive)]
        whole = len(self.known.agreed.entries)
        accident = len(removed) > 1 and len(removed) > MOST_LOST * whole
        withheld = [step for step in removed if accident or step.path in self.lost] if not confirm else []
        kept = {step.memory_id for step in withheld}
        if withheld:
            self.problems.append(
                f"{len(withheld):,} of {whole:,} lines are gone at once: nothing is archived."
                " Bring them back, or say so: `jiyi workspace sync --confirm` (or `--restore` to write them anew)"
            )
        return Plan(
            user_id=self.user_id,
            steps=tuple(
                each
                for step in self.steps
                if not (isinstance(step, Archive) and step.memory_id in kept)
                for each in (*self._of_copies(step), step)
            ),
            gone=tuple(dict.fromkeys(self.gone)),
            withheld=tuple(withheld),
            conflicts=tuple(self.conflicts),
            problems=tuple(self.problems),
            held_files=frozenset(self.held),
        )

    def _of_copies(self, step: Step) -> Iterator[Step]:
        """A copy goes the way of its line: if it went on saying what is over, there would be two lines of one id that
        say different things."""
        if isinstance(step, (Drop, Rewrite)):
            for copy in self.copies[step.memory_id]:
                if copy.path in self.held or copy.note != step.line.note:
                    continue
                stays = isinstance(step, Rewrite) and step.to is None
                yield replace(step, line=copy) if stays else Drop(memory_id=step.memory_id, line=copy)


def _line_differs(line: Line, digests: Mapping[str, str]) -> bool:
    return line.digests != digests and _differs(line.note, digests)


def _differs(note: Note, digests: Mapping[str, str]) -> bool:
    return any(value != digests.get(name) for name, value in note.digests().items() if name not in note.unsaid)


def _merged(line: Note, stored: Note, before: AgreedEntry | None) -> tuple[Note, list[str]]:
    """Each field as the one has it who changed it. → with the fields that both changed; there the line counts"""
    in_file, in_index = line.digests(), stored.digests()
    values, clashes = {}, []
    for name in FIELDS:
        unchanged = before is not None and before.digests.get(name) == in_file[name]
        if name in line.unsaid or in_file[name] == in_index[name] or unchanged:
            values[name] = getattr(stored, name)
        else:
            values[name] = getattr(line, name)
            if before is None or before.digests.get(name) != in_index[name]:
                clashes.append(name)
    return Note(**values), clashes


def _said(note: Note) -> str:
    return statement_hash(note.content, note.memory_type, None, None)


def _at(line: Line) -> str:
    return f"{line.path}:{line.entry.line}"
