"""A folder of Markdown notes, as basic-memory, Letta and Obsidian keep them: front matter between two lines of three
dashes, observations `- [category] text #tag (context)`, relations `- kind [[Target]] (context)`, and prose."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from pydantic import JsonValue

from ...errors import InvalidInput
from ...models import CandidateMemory
from ..chats.moments import moment
from .found import Found

SOURCE = "markdown"
SUFFIX = ".md"
OURS = "jiyi"  # a note that Jiyi wrote has sentences that are complete in themselves
TIMES = ("date", "created", "created_at", "updated", "modified")
OWN_TYPES = frozenset({"preference", "fact", "pattern", "skill", "task", "event", "lesson"})

_OBSERVATION = re.compile(r"\s*[-*+] \[(?P<category>[^\]\[]{2,60})\](?!\() (?P<text>.+)")
_RELATION = re.compile(
    r"\s*[-*+] (?P<kind>[^\[\]]{1,100}?) ?\[\[(?P<target>[^\]]+)\]\](?: \((?P<context>[^()]*)\))?\s*"
)
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)]) (?:\[[ xX]\] )?(?P<text>.+)")
_HEADING = re.compile(r"#{1,6} .+")
_CONTEXT = re.compile(r"\((?P<context>[^()]*)\)$")
_TAG = re.compile(r"(?:(?<=\s)|^)#([\w/-]+)")
_LINK = re.compile(r"\[\[(?:[^\[\]|]*\|)?([^\[\]]+)\]\]")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_FIELD = re.compile(r"(?P<name>[\w-]+):(?: +(?P<value>.*))?")


def notes_in(path: Path) -> list[Path]:
    """The notes of a folder, or the one; what is hidden (`.obsidian`, `.git`) is no note."""
    if path.is_file():
        return [path] if path.suffix.lower() == SUFFIX else []
    found = (file for file in path.rglob(f"*{SUFFIX}") if file.is_file())
    return sorted(file for file in found if not any(part.startswith(".") for part in file.relative_to(path).parts))


def read_note(path: Path, called: str) -> Iterator[Found]:
    """What one note says: each observation, relation, list entry and paragraph."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(str(path), f"is not UTF-8 (byte {error.start:,}): convert it first") from None
    except OSError as error:
        raise InvalidInput(str(path), f"cannot be read: {error.strerror}") from error
    yield from found_in(text, called, str(path))


def found_in(text: str, called: str, name: str) -> Iterator[Found]:
    """`called`: the note's path inside its folder, by which its memories say where they came from. What a note says, it
    says of its title, which stands before each statement."""
    fields, lines, first = _front(text)
    title = _one(fields.get("title")) or Path(called).stem
    about: dict[str, JsonValue] = {"file": called, "title": title}
    about |= {key: value for key in ("permalink", "type") if (value := _one(fields.get(key)))}
    tags = tuple(tag.lstrip("#") for tag in _many(fields.get("tags")))
    at = next((found for key in TIMES if (found := _time(_one(fields.get(key))))), None)
    before = "" if _one(fields.get("generator")) == OURS else f"{title}: "
    seen: set[str] = set()
    for number, block in _blocks(lines, first):
        candidate = _candidate(block, title, before, tags, about, at)
        if candidate is not None and candidate.text not in seen:
            seen.add(candidate.text)
            yield Found(place=f"{name}, line {number:,}", memory=candidate)


def _candidate(
    block: str, title: str, before: str, tags: tuple[str, ...], about: dict[str, JsonValue], at: datetime | None
) -> CandidateMemory | None:
    relation = _RELATION.fullmatch(block)
    if relation is not None:
        kind, target, context = relation["kind"].strip(), relation["target"].split("|")[0], relation["context"]
        more: dict[str, JsonValue] = {"relation": kind, "to": target}
        said = f"{title} {kind.replace('_', ' ')} {target}" + (f" ({context})" if context else "")
        return _memory(said, "fact", tags, about | more, at)
    observation = _OBSERVATION.fullmatch(block)
    if observation is None:
        item = _ITEM.fullmatch(block)
        said = _LINK.sub(r"\1", " ".join((item["text"] if item else block).split()))
        return _memory(before + said, "fact", tags, about, at) if said else None
    category, said = observation["category"].strip(), observation["text"].rstrip()
    context = _CONTEXT.search(said)
    more = {"category": category}
    if context is not None:
        said = said[: context.start()]
        more["context"] = context["context"]
        at = _time(context["context"]) or at
    own = tuple(_TAG.findall(said))
    said = _LINK.sub(r"\1", " ".join(_TAG.sub("", said).split()))
    kind = category.lower() if category.lower() in OWN_TYPES else "fact"
    extra = () if kind == category.lower() else (category,)
    return _memory(before + said, kind, (*tags, *extra, *own), about | more, at) if said else None


def _memory(
    text: str, kind: str, tags: tuple[str, ...], about: dict[str, JsonValue], at: datetime | None
) -> CandidateMemory:
    return CandidateMemory(
        text=text, type=kind, tags=tuple(dict.fromkeys(tags)), metadata={SOURCE: about}, occurred_at=at
    )


def _blocks(lines: list[str], first: int) -> Iterator[tuple[int, str]]:
    """Paragraphs and entries of lists, with the line they begin at. Headings, rules, tables and code are none."""
    block: list[str] = []
    start, fence = 0, None
    for number, line in enumerate([*lines, ""], first):
        mark = line.lstrip()[:3]
        is_code = fence is not None or mark in ("```", "~~~")
        if is_code:
            fence = mark if fence is None else None if mark == fence else fence
        if line.strip() and not is_code and not _is_no_text(line):
            if block and _ITEM.fullmatch(line):
                yield start, "\n".join(block)
                block = []
            if not block:
                start = number
            block.append(line if not block else line.strip())
        elif block:
            yield start, "\n".join(block)
            block = []


def _is_no_text(line: str) -> bool:
    bare = line.strip()
    return bool(_HEADING.fullmatch(bare)) or bare.startswith(("|", "<!--")) or not bare.strip("-*_= ")


# -- front matter ---------------------------------------------------------------------------------------------------

Fields = dict[str, list[str]]


def _front(text: str) -> tuple[Fields, list[str], int]:
    """The fields before the text, as far as they are names, values and lists; and the lines after them."""
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != "---":
        return {}, lines, 1
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), None)
    if end is None:
        return {}, lines, 1
    fields: Fields = {}
    last: list[str] = []
    for line in lines[1:end]:
        field = _FIELD.fullmatch(line)
        if field is not None:
            last = fields.setdefault(field["name"].lower(), [])
            last.extend(_values(field["value"] or ""))
        elif line.lstrip().startswith("- "):
            last.append(_bare(line.lstrip()[2:]))
    return fields, lines[end + 1 :], end + 2


def _values(value: str) -> list[str]:
    value = value.strip()
    if value.startswith("[") and value.endswith("]"):
        return [bare for part in value[1:-1].split(",") if (bare := _bare(part))]
    return [_bare(value)] if value else []


def _bare(value: str) -> str:
    value = value.strip()
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    return value[1:-1] if quoted else value


def _one(values: list[str] | None) -> str | None:
    return values[0] if values and values[0].strip() else None


def _many(values: list[str] | None) -> list[str]:
    """Tags: a list, or words with commas between them."""
    return [tag.strip() for value in values or () for tag in value.split(",") if tag.strip()]


def _time(written: str | None) -> datetime | None:
    if written is None or not _DAY.match(written):
        return None
    try:
        return moment(written)
    except ValueError:
        return None
