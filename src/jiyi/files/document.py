"""A Markdown file as a list of parts that together are the file, byte for byte. Memories are the bullets under a
heading that names a type, those with an id, and all in a file that says so. Everything else stays as it is: prose,
other headings, front matter, comments, tables, code. `parse(text).text == text` for any text."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from .format import ABOUT, DEFAULT_TYPE, Heading, Item, Labels, Note, has_mark, item_text, mark, read_heading, read_item

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
_BULLET = re.compile(r"^(?P<indent>[ \t]*)(?P<mark>[-*+])(?P<space>[ \t]+)(?=[^ \t])")
_RULE = re.compile(r"^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$")
_FENCE = re.compile(r" {0,3}(?P<fence>`{3,}(?=[^`]*$)|~{3,})")
_NO_TITLE = re.compile(r"^(?: {4}|\t|[ ]*(?:[|>]|(?:[-*+]|\d+[.)])(?:\s|$)))")  # not a title
_SPECIAL = re.compile(r"^[ \t]*[-#*+`~<>=|]")  # start of a line that may not be prose
_UNDERLINE = re.compile(r"^ {0,3}(?P<line>=+|-+)[ \t]*$")
_RAW = re.compile(r" {0,3}<(?P<tag>pre|script|style|textarea)(?:[\s>]|$)", re.IGNORECASE)
_CONFLICT = re.compile(r"(?:<{7}|>{7}|\|{7})(?: |$)")
_FIELD = re.compile(r"^[\w\"'-]+[ \t]*:")
BOM = "\ufeff"


class CannotParse(ValueError):
    """The file is ambiguous, and is skipped."""


@dataclass(frozen=True, slots=True)
class Prose:
    """A line that is not a memory."""

    text: str

    @property
    def blank(self) -> bool:
        return not self.text.strip(" \t\r\n")


@dataclass(frozen=True, slots=True)
class Inside(Prose):
    """A line inside a block, such as code, after which nothing can be inserted."""


@dataclass(frozen=True, slots=True)
class HeadingLine(Prose):
    heading: Heading


@dataclass(frozen=True, slots=True)
class Entry:
    """A bullet with all its lines."""

    text: str
    bullet: str
    item: Item
    memory_type: str | None  # from its heading
    line: int  # number of its first line
    lines: int

    @property
    def memory_id(self) -> str | None:
        return self.item.memory_id


Part = Prose | Entry


@dataclass(frozen=True, slots=True)
class Document:
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts)

    @property
    def entries(self) -> list[Entry]:
        return [part for part in self.parts if isinstance(part, Entry)]

    @property
    def headings(self) -> list[Heading]:
        return [part.heading for part in self.parts if isinstance(part, HeadingLine)]

    @property
    def eol(self) -> str:
        """Return the line end of the first line; a lone CR only if there is no other. A CR and the LF of a following
        blank line would be read as one line end."""
        lone = ""
        for part in self.parts:
            found = _eol(part.text)
            if "\n" in found:
                return found
            lone = lone or found
        return lone or "\n"


def parse(text: str, before: Document | None = None) -> Document:
    """Parse a file; raise `CannotParse` if it is ambiguous what is a bullet. `before` is another version of the file,
    whose one-line bullets are reused."""
    known = {entry.text: entry for entry in before.entries if entry.lines == 1} if before else {}
    default_type = DEFAULT_TYPE if any(about in text for about in ABOUT.values()) else None
    lines = _LINE.findall(text.removeprefix(BOM))
    parts: list[Part] = [Prose(BOM)] if text.startswith(BOM) else []
    at = _front_matter(lines)
    parts.extend(Prose(line) for line in lines[:at])
    section: Heading | None = None
    while at < len(lines):
        again = _reused(known.get(lines[at]), lines, at, section)
        if again is not None:
            parts.append(again)
            at += 1
            continue
        if not _SPECIAL.match(lines[at]):
            parts.append(Prose(lines[at]))
            at += 1
            continue
        bare = _bare(lines[at])
        if _CONFLICT.match(bare):
            raise CannotParse(f"line {at + 1} is a merge conflict marker: {bare[:20]}")
        found = _entry(lines, at, bare, section.memory_type if section else None, default_type)
        end = None if found else _block_end(lines, at, bare)
        heading = None if found or end else read_heading(bare) or _underlined(parts, bare)
        if heading is not None:
            section = section if _inside(section, heading) else heading
            parts.append(HeadingLine(lines[at], heading))
        elif found is not None:
            parts.append(found)
            end = at + found.lines
        else:
            last = end or at + 1
            parts.extend(Inside(line) for line in lines[at : last - 1])
            parts.append(Prose(lines[last - 1]))
        at = end or at + 1
    return Document(tuple(parts))


def _front_matter(lines: Sequence[str]) -> int:
    """Return the line after the front matter; 0 if there is none."""
    if not lines or _bare(lines[0]).rstrip() != "---":
        return 0
    for at, line in enumerate(lines[1:], 1):
        if _bare(line).rstrip() in ("---", "..."):
            return at + 1
    if len(lines) > 1 and _FIELD.match(lines[1]):
        raise CannotParse("its front matter is not closed")
    return 0


def _block_end(lines: Sequence[str], at: int, bare: str) -> int | None:
    """Return the end of a block of code, a comment or raw HTML; None if none begins here."""
    fence = _FENCE.match(bare)
    if fence:
        close = re.compile(rf" {{0,3}}{re.escape(fence['fence'])}{re.escape(fence['fence'][0])}*[ \t]*$")
        return _end(lines, at, lambda line: close.match(line) is not None, "the code block")
    stripped = bare.lstrip(" ")
    if stripped.startswith("<!--") and len(bare) - len(stripped) < 4:
        if "-->" in stripped[2:]:
            return at + 1
        return _end(lines, at, lambda line: "-->" in line, "the comment")
    raw = _RAW.match(bare)
    if raw:
        close_tag = f"</{raw['tag']}>".lower()
        if close_tag in bare.lower():
            return at + 1
        return _end(lines, at, lambda line: close_tag in line.lower(), f"<{raw['tag']}>")
    return None


def _end(lines: Sequence[str], at: int, closes: Callable[[str], bool], what: str) -> int:
    for later in range(at + 1, len(lines)):
        if closes(_bare(lines[later])):
            return later + 1
    raise CannotParse(f"{what} that begins in line {at + 1} is not closed")


def _underlined(parts: Sequence[Part], bare: str) -> Heading | None:
    """Read a heading that is a line of text with a line of = or - below it."""
    found = _UNDERLINE.match(bare)
    before = parts[-1] if parts else None
    if not found or type(before) is not Prose or before.blank or _NO_TITLE.match(before.text):
        return None
    return read_heading(("# " if found["line"][0] == "=" else "## ") + _bare(before.text).strip())


def _inside(section: Heading | None, heading: Heading) -> bool:
    """Return True for a lower heading without a type, which only divides the section."""
    return section is not None and heading.memory_type is None and heading.level > section.level


def _reused(known: Entry | None, lines: Sequence[str], at: int, section: Heading | None) -> Entry | None:
    """Return a bullet that was parsed before, if its heading and the next line allow that."""
    memory_type = section.memory_type if section else None
    if known is None or not _alone(lines, at) or (known.memory_id is None and memory_type is None):
        return None
    if known.line == at + 1 and known.memory_type == memory_type:
        return known
    return Entry(known.text, known.bullet, known.item, memory_type, at + 1, 1)


def _alone(lines: Sequence[str], at: int) -> bool:
    return at + 1 == len(lines) or lines[at + 1][0] not in " \t\r\n"


def _entry(lines: Sequence[str], at: int, bare: str, memory_type: str | None, default_type: str | None) -> Entry | None:
    bullet = _bullet(bare)
    if bullet is None:
        return None
    end = at + 1 if _alone(lines, at) else _item_end(lines, at, bullet)
    width = _width(bullet)
    item = read_item([bare[len(bullet) :], *(_inner(_bare(line), width) for line in lines[at + 1 : end])])
    if item.memory_id is None:
        memory_type = memory_type or default_type
    if not item.content.strip() or (item.memory_id is None and memory_type is None):
        return None
    return Entry("".join(lines[at:end]), bullet, item, memory_type, at + 1, end - at)


def _bullet(bare: str) -> str | None:
    """Return the bullet of a line, up to its text."""
    found = _BULLET.match(bare)
    if not found or (bare[0] in "-* " and _RULE.match(bare)):
        return None
    if found["indent"] and len(found["indent"].expandtabs(4)) > 3 and not has_mark(bare):
        return None
    return found[0]


def _item_end(lines: Sequence[str], at: int, bullet: str) -> int:
    """Return the end of a bullet: it holds the lines indented below it, up to one with an id."""
    end = at + 1
    indent = len(bullet[: len(bullet) - len(bullet.lstrip(" \t"))].expandtabs(4))
    for later in range(at + 1, len(lines)):
        line = _bare(lines[later])
        if not line.strip(" \t"):
            continue
        space = line[: len(line) - len(line.lstrip(" \t"))].expandtabs(4)
        if len(space) < indent + 2 or (_BULLET.match(line) and has_mark(line)):
            break
        end = later + 1
    return end


def _inner(line: str, width: int) -> str:
    if line.startswith("\t"):
        return line[1:]
    spaces = len(line) - len(line.lstrip(" "))
    return line[min(spaces, width) :]


def _width(bullet: str) -> int:
    """Return the column in which the text begins."""
    return len(bullet.expandtabs(4)) if "\t" in bullet else len(bullet)


def _bare(line: str) -> str:
    return line.rstrip("\r\n")


def _eol(text: str) -> str:
    found = re.search(r"\r\n|\r|\n", text)
    return found[0] if found else ""


def bullet_text(bullet: str, memory_id: str, note: Note, labels: Labels, eol: str) -> str:
    """Return a new bullet without the last line end."""
    return item_text(bullet, _width(bullet), note.content, mark(memory_id, note, labels), eol)


def rewritten(entry: Entry, memory_id: str, note: Note, labels: Labels, eol: str) -> Entry:
    """Return a bullet with new content or fields; its shape and last line end stay."""
    comment = mark(memory_id, note, labels, entry.item.meta)
    text = item_text(entry.bullet, _width(entry.bullet), note.content, comment, eol)
    return replace(entry, text=text + _last_end(entry.text), item=Item(memory_id=memory_id, content=note.content))


def marked(entry: Entry, memory_id: str, note: Note, labels: Labels) -> Entry:
    """Return a bullet with an id at the end of its first line."""
    first, *rest = _LINE.findall(entry.text)
    bare = _bare(first)
    text = bare.rstrip(" \t") + " " + mark(memory_id, note, labels) + first[len(bare) :] + "".join(rest)
    return replace(entry, text=text, item=replace(entry.item, memory_id=memory_id))


def exchanged(document: Document, new: Mapping[int, Entry | None]) -> Document:
    """Replace entries by their line number; None removes one."""
    found = (new.get(part.line, part) if isinstance(part, Entry) else part for part in document.parts)
    return Document(tuple(part for part in found if part is not None))


def inserted(document: Document, bullets: Sequence[str], memory_type: str, heading: str) -> Document:
    """Insert bullets at the end of the first section of this type; add the section if there is none."""
    start = _section_of(document, memory_type)
    if start is None:
        document = _with_heading(document, heading)
        start = _section_of(document, memory_type)
    if start is None:
        raise ValueError(f"{heading!r} does not name {memory_type}")
    parts, eol = document.parts, document.eol
    end = _section_end(parts, start)
    entries = [at for at in range(start + 1, end) if isinstance(parts[at], Entry)]
    lead = ""
    if entries:
        at = _hanging_end(parts, entries[-1] + 1, end)
    else:
        at = max(at for at in range(start, end) if not _is_blank(parts[at])) + 1
        if at < end:
            at += 1
        else:
            lead = eol
    text = lead + eol.join(bullets)
    closed = not parts[at - 1].text or parts[at - 1].text.endswith(("\r", "\n"))
    trail = eol if at == end < len(parts) else ""
    new = Prose(text + eol + trail) if closed else Prose(eol + text)
    return Document((*parts[:at], new, *parts[at:]))


def _hanging_end(parts: Sequence[Part], at: int, end: int) -> int:
    """Skip lines that belong to a bullet: unindented ones right below it, and indented ones after blank lines. They
    would belong to a bullet that is inserted between."""
    while at < end:
        following = next((later for later in range(at, end) if not _is_blank(parts[later])), end)
        if following > at and (following == end or not parts[following].text.startswith(("  ", "\t"))):
            break
        at = following + 1
    return at


def _section_of(document: Document, memory_type: str) -> int | None:
    for at, part in enumerate(document.parts):
        if isinstance(part, HeadingLine) and part.heading.memory_type == memory_type:
            return at
    return None


def _section_end(parts: Sequence[Part], start: int) -> int:
    """Return the start of the next heading; an underlined one starts with its title."""
    end = next((at for at in range(start + 1, len(parts)) if isinstance(parts[at], HeadingLine)), len(parts))
    return end - 1 if end < len(parts) and _UNDERLINE.match(_bare(parts[end].text)) else end


def _with_heading(document: Document, line: str) -> Document:
    text, eol = document.text.removeprefix(BOM), document.eol
    heading = read_heading(line)
    if heading is None:
        raise ValueError(f"{line!r} is not a heading")
    lead = "" if not text else eol if text.endswith(("\r", "\n")) else eol * 2
    return Document((*document.parts, Prose(lead), HeadingLine(line + eol, heading)))


def _is_blank(part: Part) -> bool:
    return isinstance(part, Prose) and part.blank and not isinstance(part, Inside)


def _last_end(text: str) -> str:
    return text[len(text.rstrip("\r\n")) :]
