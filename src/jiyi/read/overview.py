"""Overviews of a user's memories: what has changed, people and things they name, and memories that need a look."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import takewhile
from typing import Any, Literal

from pydantic import Field

from .. import threads
from ..languages.names import known_names_in, names_in
from ..languages.terms import content_hash
from ..languages.words import normalise
from ..models import UNSURE, MemoryItem, Value, utc_now
from ..roles import subject_text, teller_of
from ..store.repositories.overview_rows import TOLD, LoggedChange, Told

ChangeKind = Literal["learned", "changed", "ended", "forgotten", "restored"]
ChangeSource = Literal["chat", "file", "agent", "model", "person", "jiyi"]
SubjectKind = Literal["user", "person", "place", "organisation", "project", "thing"]
ReviewReason = Literal["conflict", "ended", "repeated", "untrusted", "unsure"]

CLEAR = 0.9  # probability below which an ending needs a look
REVIEWED = "reviewed"  # key in the metadata of a memory that a person has accepted

_KINDS: dict[str, ChangeKind] = {
    "add": "learned", "update": "changed", "merge": "changed", "supersede": "ended",
    "archive": "forgotten", "delete": "forgotten", "restore": "restored",
}  # fmt: skip
_OWN_ACTORS = ("jiyi", "system", "maintenance", "compress", "verify")
_FILE_ACTORS = ("file", "workspace", "import")
_PEOPLE = ("user", "console")
_SUBJECT_OF: dict[str, SubjectKind] = {
    "home": "place", "hometown": "place", "employer": "organisation", "school": "organisation", "team": "organisation",
    "partner": "person", "manager": "person", "car": "thing", "computer": "thing", "editor": "thing",
}  # fmt: skip
_SECRETS = ("password",)  # attributes whose values are no names
# What follows the value of an attribute in its sentence.
_AFTER_VALUE = re.compile(r" (?:in|as|on|since|for) | (?:and|but) (?=[a-z])|[,;，；]")


class ChangeEntry(Value):
    """A line of the change log."""

    memory_id: str
    version: int = Field(description="0 for a deleted memory")
    kind: ChangeKind
    action: str
    actor: str
    source: ChangeSource
    reason: str | None
    changed_at: datetime
    text: str | None = Field(description="current text; null if it was deleted")
    before: str | None = Field(description="text before the change, if that changed it")
    memory_type: str | None
    can_undo: bool = Field(description="it is the last change of the memory")


class ChangePage(Value):
    """A page of the change log; pass `next_cursor` to get the next one."""

    items: tuple[ChangeEntry, ...]
    next_cursor: str | None


class Subject(Value):
    """A person, place, organisation, project or thing that memories name."""

    name: str
    kind: SubjectKind
    aliases: tuple[str, ...] = Field(default=(), description="other names that were merged into it")
    facts: int = Field(description="current memories about it")
    mentions: int = Field(description="memories and messages that name it, with ended ones")
    first_at: datetime
    last_at: datetime


class ReviewItem(Value):
    """Memories that need a look: one, or several that disagree or repeat each other, newest first; or one that may have
    ended another, and that one."""

    why: ReviewReason
    memories: tuple[MemoryItem, ...]


class UserSize(Value):
    """A user with the number of memories and messages."""

    user_id: str
    memories: int
    messages: int


def to_entry(change: LoggedChange) -> ChangeEntry:
    memory, before = change.memory or {}, (change.before or {}).get("content")
    ended = change.action == "update" and change.before is not None and _ends(change)
    return ChangeEntry(
        memory_id=change.memory_id,
        version=change.version,
        kind="ended" if ended else _KINDS.get(change.action, "changed"),
        action=change.action,
        actor=change.actor,
        source=_source(change, memory),
        reason=change.reason,
        changed_at=change.changed_at,
        text=memory.get("content"),
        before=before if before is not None and before != memory.get("content") else None,
        memory_type=memory.get("memory_type"),
        can_undo=bool(memory) and change.version == memory["version"] and not _undone(change, memory),
    )


def _ends(change: LoggedChange) -> bool:
    return (change.reason or "").startswith("ended")


def _undone(change: LoggedChange, memory: Mapping[str, Any]) -> bool:
    return change.action == "add" and memory["status"] == "archived"


def _source(change: LoggedChange, memory: Mapping[str, Any]) -> ChangeSource:
    actor = change.actor.partition(" (key ")[0]
    if actor.startswith(_FILE_ACTORS):
        return "file"
    if actor in _OWN_ACTORS or not memory:
        return "jiyi"
    if change.action == "add" and memory["data"].get("extractor"):
        return "model" if memory["data"]["extractor"] == "llm" else "chat"
    if actor in _PEOPLE and not memory.get("agent_id"):
        return "person"
    return "agent"


@dataclass(slots=True)
class _Found:
    name: str
    kind: SubjectKind
    facts: int = 0
    at: list[datetime] = field(default_factory=list)
    names: set[str] = field(default_factory=set)


def subject_names(told: Told, user_id: str) -> dict[str, SubjectKind]:
    """Return the names in a memory: its subject, the value of some attributes, and names in its text."""
    found: dict[str, SubjectKind] = {}
    named = names_in(told.content)
    subject, attribute, value = (told.data.get(name) for name in ("subject", "attribute", "value"))
    if isinstance(subject, str) and subject:
        other = subject.removeprefix("user:").strip() if subject.startswith("user:") else subject
        last = _last_name(other)
        of_user = teller_of(told.data, user_id) is None and not told.data.get("owner")
        own = of_user and subject in ("user", told.data.get("speaker"))
        found[user_id if own else last or other] = "user" if own else "person"
        if attribute == "name" and isinstance(value, str) and not own:  # "my daughter is called Mia"
            found = {value: named.get(value, "person")}
    if isinstance(attribute, str) and isinstance(value, str):
        if attribute in _SUBJECT_OF:
            found.setdefault(_AFTER_VALUE.split(value.strip())[0], _SUBJECT_OF[attribute])
        elif attribute in _SECRETS:
            named = {name: kind for name, kind in named.items() if name not in value}
    return {name: kind for name, kind in {**named, **found}.items() if name}


def _last_name(text: str) -> str:
    """Return the capitalised words at the end of a text: "sister Ana" is Ana."""
    words = takewhile(lambda word: len(word) > 1 and word[0].isupper(), reversed(text.split()))
    return " ".join(reversed(list(words)))


def subjects_of(memories: Iterable[Told], aliases: Mapping[str, str], user_id: str) -> list[Subject]:
    """Return the people and things that memories name, the user first, then the most mentioned ones. `aliases` lead
    from one normalised name to another. A name that one memory shows to be one is found in the others, too."""
    found: dict[str, _Found] = {}
    now = utc_now()
    named: list[tuple[Told, dict[str, SubjectKind]]] = []
    for told in filter(_by_a_person, memories):
        threads.check()
        named.append((told, subject_names(told, user_id)))
    known = {normalise(name): kind for _, names in named for name, kind in names.items() if kind != "user"}
    for told, names in named:
        threads.check()
        holds = (told.valid_to is None or told.valid_to > now) and not says_end(told.data)
        mains = {aliases.get(normalise(name), normalise(name)) for name in names}
        for name in known_names_in(told.content, known):
            if aliases.get(normalise(name), normalise(name)) not in mains:
                names.setdefault(name, known[normalise(name)])
        for name, kind in names.items():
            main = aliases.get(normalise(name), normalise(name))
            one = found.setdefault(main, _Found(name, kind))
            if normalise(name) == main:
                one.name = name
            if one.kind == "thing":
                one.kind = kind
            one.names.add(name)
            one.facts += holds and told.memory_type != "message"
            one.at.append(told.occurred_at)
    listed = [
        Subject(
            name=one.name,
            kind=one.kind,
            aliases=tuple(sorted(one.names - {one.name})),
            facts=one.facts,
            mentions=len(one.at),
            first_at=min(one.at),
            last_at=max(one.at),
        )
        for one in found.values()
    ]
    return sorted(listed, key=lambda one: (one.kind != "user", -one.mentions, one.name))


def mentioning(memories: Iterable[Told], names: Sequence[str], user_id: str) -> list[str]:
    """Return the ids of the memories that name somebody or something by one of these names."""
    wanted = {normalise(name) for name in names}
    found = []
    for told in filter(_by_a_person, memories):
        threads.check()
        named = (*subject_names(told, user_id), *known_names_in(told.content, wanted))
        if wanted & {normalise(name) for name in named}:
            found.append(told.id)
    return found


def _by_a_person(told: Told) -> bool:
    """Return False for a message of an assistant: it names whatever it talks about."""
    return told.memory_type != "message" or told.data.get("role") != "assistant"


def says_end(data: Mapping[str, Any]) -> bool:
    """Return True if a memory says that something is over."""
    return data.get("ended") is True or data.get("kind") == "end"


def to_review(
    memories: Sequence[Told],
    contradictions: Sequence[tuple[str, str]],
    endings: Sequence[tuple[str, str]] = (),
) -> list[tuple[ReviewReason, list[str]]]:
    """Return the ids of memories that need a look, with the reason, conflicts first."""
    now = utc_now()
    open_ = [
        one for one in memories if (one.valid_to is None or one.valid_to > now) and not one.metadata.get(REVIEWED)
    ]  # newest first
    by_id = {one.id: one for one in open_}
    found: list[tuple[ReviewReason, list[str]]] = []
    seen: set[str] = set()

    def add(why: ReviewReason, ids: Sequence[str]) -> None:
        if not seen.intersection(ids):
            seen.update(ids)
            found.append((why, list(ids)))

    for pair in [pair for pair in contradictions if all(name in by_id for name in pair)]:
        add("conflict", sorted(pair, reverse=True))
    for pair in endings:
        add("ended", pair)
    slots: dict[tuple[str, str], dict[str, str]] = {}
    texts: dict[tuple[str, int], list[str]] = {}  # long ones by their beginning and length
    for one in open_:
        threads.check()
        attribute, value = one.data.get("attribute"), one.data.get("value")
        if one.data.get("single") and isinstance(attribute, str) and isinstance(value, str) and not says_end(one.data):
            slots.setdefault((str(subject_text(one.data)), attribute), {}).setdefault(normalise(value), one.id)
        texts.setdefault((content_hash(one.content), max(one.length, TOLD)), []).append(one.id)
    for values in slots.values():
        if len(values) > 1:
            add("conflict", list(values.values()))
    for ids in texts.values():
        if len(ids) > 1:
            add("repeated", ids)
    for one in [one for one in open_ if one.trust < UNSURE]:
        add("untrusted", [one.id])
    for one in sorted([one for one in open_ if one.confidence < UNSURE], key=lambda told: told.confidence):
        add("unsure", [one.id])
    return found
