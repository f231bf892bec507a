"""Markdown notes of basic-memory, Letta and Obsidian. A note has front matter between two lines of three dashes,
observations `- [category] text #tag (context)`, relations `- kind [[Target]] (context)`, and prose."""

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from ...errors import InvalidInput
from ...models import CandidateMemory
from ..records import ImportedMemory, Kind, parse_time
from ..sources import Source, open_text

NAME = "markdown"
GENERATOR = "jiyi"  # lines of notes written by Jiyi are complete statements and get no title
TIMES = ("date", "created", "created_at", "updated", "modified")
OWN_TYPES = frozenset({"preference", "fact", "pattern", "skill", "task", "event", "lesson"})

_OBSERVATION = re.compile(r"^\s*[-*+] \[(?P<category>[^\]\[]{2,60})\](?!\() (?P<text>.+)")
_RELATION = re.compile(
    r"^\s*[-*+] (?P<kind>[^\[\]]{1,100}?) ?\[\[(?P<target>[^\]]+)\]\](?: \((?P<context>[^()]*)\))?\s*"
)
_ITEM = re.compile(r"^\s*(?:[-*+]|\d{1,3}[.)]) (?:\[[ xX]\] )?(?P<text>.+)")
_HEADING = re.compile(r"#{1,6} .+")
_TITLE = re.compile(r"(?:#{1,6} +|\*\*)(?P<text>[^*]{1,200})(?:\*\*)?[:：]?")
_CONTEXT = re.compile(r"\((?P<context>[^()]*)\)$")
_TAG = re.compile(r"(?:(?<=\s)|^)#([\w/-]+)")
_LINK = re.compile(r"\[\[(?:[^\[\]|]*\|)?([^\[\]]+)\]\]")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_FIELD = re.compile(r"^(?P<name>[\w-]+):(?: +(?P<value>.*))?")


class MarkdownReader:
    name = NAME
    kind: Kind = "memories"

    def matches(self, source: Source, first: Any) -> bool:
        return source.is_note

    def read(self, source: Source) -> Iterator[ImportedMemory]:
        with open_text(source) as stream:
            try:
                text = stream.read()
            except UnicodeDecodeError as error:
                raise InvalidInput(source.name, f"is not UTF-8 (byte {error.start:,}): convert it first") from None
        yield from read_note(text, source.relative, source.name)


def read_note(text: str, file: str, name: str) -> Iterator[ImportedMemory]:
    """Yield each observation, relation, list entry and paragraph of a note, prefixed with the note's title. `file` is
    the path inside the folder, kept in the metadata; `name` is for error messages."""
    fields, lines, first = _front_matter(text)
    title = _one(fields.get("title")) or Path(file).stem
    about: dict[str, JsonValue] = {"file": file, "title": title}
    about |= {key: value for key in ("permalink", "type") if (value := _one(fields.get(key)))}
    written = ",".join(fields.get("tags", ())).split(",")  # a list, or words separated by commas
    tags = tuple(tag.strip().lstrip("#") for tag in written if tag.strip())
    at = next((found for key in TIMES if (found := _time(_one(fields.get(key))))), None)
    prefix = "" if _one(fields.get("generator")) == GENERATOR else f"{title}: "
    seen: set[str] = set()
    for number, block in _blocks(lines, first):
        candidate = _candidate(block, title, prefix, tags, about, at)
        if candidate is not None and candidate.content not in seen:
            seen.add(candidate.content)
            yield ImportedMemory(place=f"{name}, line {number:,}", memory=candidate)


def _candidate(
    block: str, title: str, prefix: str, tags: tuple[str, ...], about: dict[str, JsonValue], at: datetime | None
) -> CandidateMemory | None:
    relation = _RELATION.fullmatch(block)
    if relation is not None:
        kind, target, context = relation["kind"].strip(), relation["target"].split("|")[0], relation["context"]
        more: dict[str, JsonValue] = {"relation": kind, "to": target}
        text = f"{title} {kind.replace('_', ' ')} {target}" + (f" ({context})" if context else "")
        return _memory(text, "fact", tags, about | more, at)
    observation = _OBSERVATION.fullmatch(block)
    if observation is None:
        item = _ITEM.fullmatch(block)
        text = _LINK.sub(r"\1", " ".join((item["text"] if item else block).split()))
        return _memory(prefix + text, "fact", tags, about, at) if text else None
    category, text = observation["category"].strip(), observation["text"].rstrip()
    context = _CONTEXT.search(text)
    more = {"category": category}
    if context is not None:
        text = text[: context.start()]
        more["context"] = context["context"]
        at = _time(context["context"]) or at
    own_tags = tuple(_TAG.findall(text))
    text = _LINK.sub(r"\1", " ".join(_TAG.sub("", text).split()))
    kind = category.lower() if category.lower() in OWN_TYPES else "fact"
    extra = () if kind == category.lower() else (category,)
    return _memory(prefix + text, kind, (*tags, *extra, *own_tags), about | more, at) if text else None


def _memory(
    text: str, kind: str, tags: tuple[str, ...], about: dict[str, JsonValue], at: datetime | None
) -> CandidateMemory:
    return CandidateMemory(
        content=text, memory_type=kind, tags=tuple(dict.fromkeys(tags)), metadata={NAME: about}, occurred_at=at
    )


def passages(text: str) -> Iterator[tuple[str | None, str]]:
    """Yield the paragraphs and list entries of a text, each with the heading above it; a line in bold is one, too."""
    section: str | None = None
    lines: list[str] = []
    for line in [*text.replace("\r\n", "\n").split("\n"), None]:
        title = _TITLE.fullmatch(line.strip()) if line is not None else None
        if line is not None and title is None:
            lines.append(line)
            continue
        for _, block in _blocks(lines, 1):
            item = _ITEM.fullmatch(block)
            yield section, " ".join((item["text"] if item else block).split())
        lines, section = [], title["text"].strip(" :：") if title else None


def _blocks(lines: list[str], first: int) -> Iterator[tuple[int, str]]:
    """Yield paragraphs and list entries with their line number, without headings, rules, tables and code."""
    block: list[str] = []
    start, fence = 0, None
    for number, line in enumerate([*lines, ""], first):
        mark = line.lstrip()[:3]
        is_code = fence is not None or mark in ("```", "~~~")
        if is_code:
            fence = mark if fence is None else None if mark == fence else fence
        if line.strip() and not is_code and not _is_markup(line):
            if block and _ITEM.fullmatch(line):
                yield start, "\n".join(block)
                block = []
            if not block:
                start = number
            block.append(line if not block else line.strip())
        elif block:
            yield start, "\n".join(block)
            block = []


def _is_markup(line: str) -> bool:
    bare = line.strip()
    return bool(_HEADING.fullmatch(bare)) or bare.startswith(("|", "<!--")) or not bare.strip("-*_= ")


Fields = dict[str, list[str]]


def _front_matter(text: str) -> tuple[Fields, list[str], int]:
    """Return the fields of the front matter, the lines after it, and the number of the first of those lines."""
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


def _time(written: str | None) -> datetime | None:
    if written is None or not _DAY.match(written):
        return None
    try:
        return parse_time(written)
    except ValueError:
        return None
