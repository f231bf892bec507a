"""The text of bullets and headings: one bullet is one memory, a heading names the type of those below it.

    - 我吃素，对花生过敏 <!-- jiyi:01k9zq4f3rw5m8v2c7t6n1d0ab importance=0.8 tags=饮食,健康 -->

The comment is invisible in a Markdown viewer and moves with the line. Fields that it leaves out have their default.
What `item_text` writes, `read_item` reads back.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any, Literal
from urllib.parse import unquote

from .. import validation
from ..ids import time_of
from ..store.write_set import STATED, StoredMemory

DEFAULT_IMPORTANCE = 0.5
SAME_TIME = timedelta(seconds=1)  # a memory that occurred when its id was made needs no `at=`
FIELDS = ("content", "memory_type", "importance", "tags", "occurred_at", "expires_at")

_MARK = re.compile(r"<!--[ \t]*jiyi:(?P<id>[0-9a-z]{26})(?P<meta>(?:[ \t]+[^\s=<>]+=[^\s<>]*)*)[ \t]*-->")
ANY_ID = re.compile(r"jiyi:([0-9a-z]{26})")
_COMMENT = re.compile(r"<(\\*)!--")
_ESCAPED = re.compile(r"<\\(\\*)!--")
_UNSAFE = re.compile(r"[\s%,=<>\x00-\x1f\x7f]|--|-$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """The fields of a memory in a file. `unspecified`: fields that the line lacks or that are invalid."""

    content: str
    memory_type: str
    importance: float = DEFAULT_IMPORTANCE
    tags: tuple[str, ...] = ()
    occurred_at: datetime | None = None  # None: when its id was made
    expires_at: datetime | None = None
    unspecified: frozenset[str] = frozenset()

    def digests(self) -> dict[str, str]:
        """Return a short digest of each field, to detect changes."""
        return {
            "content": _digest(self.content),
            "memory_type": self.memory_type,
            "importance": f"{self.importance:g}",
            "tags": _digest("\n".join(self.tags)) if self.tags else "",
            "occurred_at": _format_time(self.occurred_at),
            "expires_at": _format_time(self.expires_at),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """Key, agent, group, session, data and metadata of a memory, written so that it can be restored from the files
    alone. Data and metadata are JSON."""

    memory_key: str | None = None
    agent_id: str | None = None
    group_id: str | None = None
    session_id: str | None = None
    data: str | None = None
    metadata: str | None = None


NO_LABELS = Labels()
_LABEL_NAMES = {
    "key": "memory_key",
    "agent": "agent_id",
    "group": "group_id",
    "session": "session_id",
    "data": "data",
    "meta": "metadata",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A bullet as it is in a file."""

    memory_id: str | None
    content: str
    pairs: tuple[tuple[str, str], ...] = ()

    @property
    def meta(self) -> dict[str, str]:
        return dict(self.pairs)


def canonical(content: str) -> str:
    """Strip white space around a text and at the ends of its lines: a bullet cannot hold it."""
    if "\n" not in content and "\r" not in content:
        return content.strip(" \t")
    lines = re.split(r"\r\n|\r|\n", content)
    return "\n".join(line.rstrip(" \t") for line in lines).strip(" \t\n")


def note_of(memory: StoredMemory) -> Note:
    """Return the fields of a stored memory as they are in a file."""
    made_at = time_of(memory.id)
    own_time = made_at is None or abs(memory.occurred_at - made_at) >= SAME_TIME
    return Note(
        content=canonical(memory.content),
        memory_type=memory.memory_type,
        importance=round(memory.importance, 2),
        tags=memory.tags,
        occurred_at=_to_seconds(memory.occurred_at) if own_time else None,
        expires_at=None if memory.expires_at is None else _to_seconds(memory.expires_at),
    )


def labels_of(memory: StoredMemory) -> Labels:
    return Labels(
        memory_key=memory.memory_key if memory.memory_key != memory.id else None,
        agent_id=memory.agent_id,
        group_id=memory.group_id,
        session_id=memory.session_id,
        data=_as_json(memory.data) if memory.source == STATED else None,  # that of other memories comes from their text
        metadata=_as_json(memory.metadata),
    )


def _as_json(value: Mapping[str, Any]) -> str | None:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) if value else None


def mark(memory_id: str, note: Note, labels: Labels = NO_LABELS, more: Mapping[str, str] | None = None) -> str:
    """Return the comment at the end of a line. `more`: fields in it that are not ours."""
    fields: dict[str, str] = {}
    if note.importance != DEFAULT_IMPORTANCE:
        fields["importance"] = f"{note.importance:g}"
    if note.tags:
        fields["tags"] = ",".join(map(quoted, note.tags))
    if note.occurred_at is not None:
        fields["at"] = _format_time(note.occurred_at)
    if note.expires_at is not None:
        fields["until"] = _format_time(note.expires_at)
    for name, attribute in _LABEL_NAMES.items():
        value = getattr(labels, attribute)
        if value is not None:
            fields[name] = quoted(value)
    fields |= {name: value for name, value in (more or {}).items() if name not in _OWN_FIELDS}
    return " ".join((f"<!-- jiyi:{memory_id}", *(f"{name}={value}" for name, value in fields.items()), "-->"))


def item_text(bullet: str, width: int, content: str, comment: str, eol: str) -> str:
    """Return the lines of a bullet without the last line end. `width`: indentation of the later lines."""
    first, *rest = (_COMMENT.sub(r"<\\\1!--", line) for line in content.split("\n"))
    indent = " " * width
    return eol.join((f"{bullet}{first} {comment}", *(indent + line if line else "" for line in rest)))


def has_mark(line: str) -> bool:
    return "jiyi:" in line and _MARK.search(line) is not None


def read_item(lines: list[str]) -> Item:
    """Read the lines of a bullet, without bullet and indentation. The comment is in the first line, or in a later one
    if an editor has wrapped the line. Text behind it is content."""
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
    """Read the fields of a memory from its line; `memory_type` comes from the heading."""
    meta = item.meta
    unspecified = set() if memory_type is not None else {"memory_type"}
    read: dict[str, Any] = {}
    for name, key, parse in (
        ("importance", "importance", _read_importance),
        ("tags", "tags", _read_tags),
        ("occurred_at", "at", _read_time),
        ("expires_at", "until", _read_time),
    ):
        try:
            if meta.get(key) or (key == "importance" and key in meta):  # an empty list or time is none
                read[name] = parse(meta[key])
        except ValueError:
            unspecified.add(name)
    return Note(content=item.content, memory_type=memory_type or "", unspecified=frozenset(unspecified), **read)


def _read_importance(text: str) -> float:
    importance = round(float(text), 2)
    if not 0 <= importance <= 1:
        raise ValueError(text)
    return importance


def _read_tags(text: str) -> tuple[str, ...]:
    return validation.tags("tags", filter(str.strip, map(unquote, text.split(","))))


def read_labels(item: Item) -> Labels:
    return Labels(
        **{attribute: unquote(item.meta[name]) for name, attribute in _LABEL_NAMES.items() if item.meta.get(name)}
    )


_OWN_FIELDS = frozenset({"importance", "tags", "at", "until", *_LABEL_NAMES})


def quoted(value: str) -> str:
    """Percent-encode characters that would end the value, the list or the comment."""
    return _UNSAFE.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), value)


def _to_seconds(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(microsecond=0)


def _format_time(at: datetime | None) -> str:
    return "" if at is None else _to_seconds(at).isoformat().replace("+00:00", "Z").removesuffix("T00:00:00Z")


def _read_time(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    try:
        return _to_seconds(found if found.tzinfo else found.replace(tzinfo=UTC))
    except OverflowError as error:
        raise ValueError(text) from error


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=10).hexdigest()


Language = Literal["zh", "en"]

# Headings that name a type; the first name of each is the one that is written.
NAMES: dict[str, dict[Language, tuple[str, ...]]] = {
    "preference": {"en": ("Preferences", "Preference", "Likes and dislikes"), "zh": ("偏好", "喜好", "偏好设置")},
    "fact": {"en": ("Facts", "Fact"), "zh": ("事实", "事实信息")},
    "pattern": {"en": ("Patterns", "Pattern", "Habits"), "zh": ("模式", "规律", "习惯")},
    "profile": {"en": ("Profile", "About me"), "zh": ("画像", "个人资料", "关于我")},
    "group_profile": {"en": ("Group profile",), "zh": ("群组画像",)},
    "skill": {"en": ("Skills", "Skill"), "zh": ("技能",)},
    "lesson": {
        "en": ("Lessons", "Lesson", "Lessons learned", "Best practices"),
        "zh": ("经验", "经验教训", "最佳实践"),
    },
    "error_handling": {"en": ("Error handling", "Errors"), "zh": ("错误处理", "错误处理经验")},
    "episode": {"en": ("Episodes", "Episode"), "zh": ("情景", "经历")},
    "event": {"en": ("Events", "Event"), "zh": ("事件",)},
}
# The note at the beginning of a new file.
ABOUT: dict[Language, str] = {
    "en": "<!-- A bullet is a memory: edit, add, move or remove it. Everything else in this file stays as it is. -->",
    "zh": "<!-- 每个列表项是一条记忆，可以修改、添加、移动或删除；文件里的其他内容都会保持原样。 -->",
}
DEFAULT_TYPE = "fact"  # of a new bullet in such a file below a heading of a person's own
_TYPES = {
    name.casefold(): (memory_type, language)
    for memory_type, by_language in NAMES.items()
    for language, names in by_language.items()
    for name in names
}
_HEADING = re.compile(r" {0,3}(?P<marks>#{1,6})(?=[ \t]|$)")
_TYPE_COMMENT = re.compile(r"<!--[ \t]*jiyi:type=(?P<type>[^\s<>]+)[ \t]*-->")
_LETTERS = re.compile(r"[^\W_]")


@dataclass(frozen=True, slots=True)
class Heading:
    level: int
    title: str
    memory_type: str | None
    language: Language | None = None


def read_heading(line: str) -> Heading | None:
    found = _HEADING.match(line)
    if not found:
        return None
    title = _title(line[found.end() :])
    level = len(found["marks"])
    named = _TYPE_COMMENT.findall(title)
    if named:
        return Heading(level, title, unquote(named[-1]))
    known = _TYPES.get(_bare(title).casefold())
    return Heading(level, title, known[0], known[1]) if known else Heading(level, title, None)


def _title(rest: str) -> str:
    """Strip spaces and closing marks. A regular expression for this is quadratic in the number of spaces."""
    title = rest.strip(" \t")
    closing = title.rstrip("#")
    return closing.rstrip(" \t") if not closing or closing[-1] in " \t" else title


def _bare(title: str) -> str:
    """Strip leading and trailing non-letters."""
    first = _LETTERS.search(title)
    if first is None:
        return ""
    end = len(title)
    while not _LETTERS.match(title[end - 1]):
        end -= 1
    return title[first.start() : end]


def heading_line(memory_type: str, language: Language) -> str:
    """Return the heading of a type."""
    names = NAMES.get(memory_type)
    if names:
        return f"## {names[language][0]}"
    return f"## {' '.join(memory_type.split())} <!-- jiyi:type={quoted(memory_type)} -->"
