"""How a memory is written as a bullet, and read back.

    - 我吃素，对花生过敏 <!-- jiyi:01k9zq4f3rw5m8v2c7t6n1d0ab importance=0.8 tags=饮食,健康 -->

The comment is invisible in a Markdown viewer and goes along when the line is moved. What is not said in it has its
default. Whatever `note_text` writes, `read_item` reads back to the same note.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from urllib.parse import unquote

from .. import validation
from ..errors import InvalidInput
from ..ids import time_of
from ..store.contract import FiledMemory

DEFAULT_IMPORTANCE = 0.5
SAME_MOMENT = timedelta(seconds=1)  # an id knows when it was made; what happened then needs no time of its own
FIELDS = ("content", "memory_type", "importance", "tags", "occurred_at", "expires_at")

_MARK = re.compile(r"<!--[ \t]*jiyi:(?P<id>[0-9a-z]{26})(?P<meta>(?:[ \t]+[^\s=<>]+=[^\s<>]*)*)[ \t]*-->")
ANY_ID = re.compile(r"jiyi:([0-9a-z]{26})")
_COMMENT = re.compile(r"<(\\*)!--")
_ESCAPED = re.compile(r"<\\(\\*)!--")
_UNSAFE = re.compile(r"[\s%,=<>\x00-\x1f\x7f]|--|-$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What file and index must agree on. What a line leaves open, or says wrongly, stands in `unsaid`."""

    content: str
    memory_type: str
    importance: float = DEFAULT_IMPORTANCE
    tags: tuple[str, ...] = ()
    occurred_at: datetime | None = None  # None: when its id was made
    expires_at: datetime | None = None
    unsaid: frozenset[str] = frozenset()

    def digests(self) -> dict[str, str]:
        """Each field, shortened to what tells whether it has changed."""
        return {
            "content": _digest(self.content),
            "memory_type": self.memory_type,
            "importance": f"{self.importance:g}",
            "tags": _digest("\n".join(self.tags)) if self.tags else "",
            "occurred_at": _moment(self.occurred_at),
            "expires_at": _moment(self.expires_at),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """Where a memory belongs besides its user; written down so that the files alone can bring it back."""

    memory_key: str | None = None
    agent_id: str | None = None
    group_id: str | None = None
    session_id: str | None = None


NO_HOME = Home()
_HOME_NAMES = {"key": "memory_key", "agent": "agent_id", "group": "group_id", "session": "session_id"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A bullet as it stands in a file."""

    memory_id: str | None
    content: str
    pairs: tuple[tuple[str, str], ...] = ()

    @property
    def meta(self) -> dict[str, str]:
        return dict(self.pairs)


def canonical(content: str) -> str:
    """A text as a bullet can hold it: without white space around it and at the ends of its lines."""
    if "\n" not in content and "\r" not in content:
        return content.strip(" \t")
    lines = re.split(r"\r\n|\r|\n", content)
    return "\n".join(line.rstrip(" \t") for line in lines).strip(" \t\n")


def note_of(memory: FiledMemory) -> Note:
    """What a stored memory is in a file."""
    made_at = time_of(memory.id)
    own_time = made_at is None or abs(memory.occurred_at - made_at) >= SAME_MOMENT
    return Note(
        content=canonical(memory.content),
        memory_type=memory.memory_type,
        importance=round(memory.importance, 2),
        tags=memory.tags,
        occurred_at=_whole_seconds(memory.occurred_at) if own_time else None,
        expires_at=None if memory.expires_at is None else _whole_seconds(memory.expires_at),
    )


def home_of(memory: FiledMemory) -> Home:
    return Home(
        memory_key=memory.memory_key if memory.memory_key != memory.id else None,
        agent_id=memory.agent_id,
        group_id=memory.group_id,
        session_id=memory.session_id,
    )


# -- writing --------------------------------------------------------------------------------------------------------


def mark(memory_id: str, note: Note, home: Home = NO_HOME, more: Mapping[str, str] | None = None) -> str:
    """The comment at the end of the line. `more`: what stood in it and is not ours."""
    said: dict[str, str] = {}
    if note.importance != DEFAULT_IMPORTANCE:
        said["importance"] = f"{note.importance:g}"
    if note.tags:
        said["tags"] = ",".join(map(quoted, note.tags))
    if note.occurred_at is not None:
        said["at"] = _moment(note.occurred_at)
    if note.expires_at is not None:
        said["until"] = _moment(note.expires_at)
    for name, attribute in _HOME_NAMES.items():
        value = getattr(home, attribute)
        if value is not None:
            said[name] = quoted(value)
    said |= {name: value for name, value in (more or {}).items() if name not in _OURS}
    return " ".join((f"<!-- jiyi:{memory_id}", *(f"{name}={value}" for name, value in said.items()), "-->"))


def item_text(bullet: str, width: int, content: str, comment: str, eol: str) -> str:
    """The lines of a bullet, without the last line's end. `width`: how far the later ones are indented."""
    first, *rest = (_COMMENT.sub(r"<\\\1!--", line) for line in content.split("\n"))
    indent = " " * width
    return eol.join((f"{bullet}{first} {comment}", *(indent + line if line else "" for line in rest)))


# -- reading --------------------------------------------------------------------------------------------------------


def has_mark(line: str) -> bool:
    return "jiyi:" in line and _MARK.search(line) is not None


def read_item(lines: list[str]) -> Item:
    """From the lines of a bullet, without bullet and indentation. The mark stands in the first line; where an editor
    has wrapped that line, in a later one. What was typed behind it belongs to the text."""
    memory_id, pairs = None, dict[str, str]()
    texts = list(lines)
    for at, line in enumerate(lines):
        found = list(_MARK.finditer(line)) if "jiyi:" in line else []
        if found:
            last = found[-1]
            memory_id = last["id"]
            pairs = dict(pair.split("=", 1) for pair in last["meta"].split()) if last["meta"] else {}
            before, after = line[: last.start()].rstrip(" \t"), line[last.end() :]
            texts[at] = f"{before} {after.strip()}" if before.strip() and after.strip() else before or after
            break
    content = canonical("\n".join(_ESCAPED.sub(r"<\1!--", text) for text in texts))
    return Item(memory_id=memory_id, content=content, pairs=tuple(pairs.items()))


def read_note(item: Item, memory_type: str | None) -> Note:
    """What a line says of its memory; `memory_type` as its heading says, if one does."""
    meta = item.meta
    unsaid = set() if memory_type is not None else {"memory_type"}
    importance, occurred_at, expires_at = DEFAULT_IMPORTANCE, None, None
    try:
        importance = round(float(meta.get("importance", DEFAULT_IMPORTANCE)), 2)
        if not 0 <= importance <= 1:
            raise ValueError(importance)
    except ValueError:
        unsaid.add("importance")
    try:
        occurred_at = _read_moment(meta.get("at"))
    except ValueError:
        unsaid.add("occurred_at")
    try:
        expires_at = _read_moment(meta.get("until"))
    except ValueError:
        unsaid.add("expires_at")
    tags: tuple[str, ...] = ()
    try:
        if meta.get("tags"):
            tags = validation.tags("tags", filter(str.strip, map(unquote, meta["tags"].split(","))))
    except InvalidInput:
        unsaid.add("tags")
    return Note(
        content=item.content,
        memory_type=memory_type or "",
        importance=importance,
        tags=tags,
        occurred_at=occurred_at,
        expires_at=expires_at,
        unsaid=frozenset(unsaid),
    )


def read_home(item: Item) -> Home:
    return Home(
        **{attribute: unquote(item.meta[name]) for name, attribute in _HOME_NAMES.items() if item.meta.get(name)}
    )


_OURS = frozenset({"importance", "tags", "at", "until", *_HOME_NAMES})


def quoted(value: str) -> str:
    """Without what would end the value, the list or the comment."""
    return _UNSAFE.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), value)


def _whole_seconds(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(microsecond=0)


def _moment(at: datetime | None) -> str:
    return "" if at is None else _whole_seconds(at).isoformat().replace("+00:00", "Z").removesuffix("T00:00:00Z")


def _read_moment(text: str | None) -> datetime | None:
    if not text:
        return None
    found = datetime.fromisoformat(text)
    try:
        return _whole_seconds(found if found.tzinfo else found.replace(tzinfo=UTC))
    except OverflowError as error:
        raise ValueError(text) from error


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=10).hexdigest()
