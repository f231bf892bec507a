"""What a person says in a message: sentences and clauses, without code, quotations and recalled context.

Every piece keeps its place in the message, so that a memory can point at the words it came from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ...languages.normalise import fold_traditional
from ...languages.script import language
from ...text.fence import blank_context
from ...text_cache import text_cache
from .lexicon import pattern

# Longer messages are documents that were pasted in; what a person says about them stands at the beginning.
LONGEST_MESSAGE = 20_000
LONGEST_CLAUSE = 400
_NOTHING = "\x00"  # stands where something was taken out, one for each character: places stay the same


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a message."""

    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Sentence:
    clauses: tuple[Piece, ...]
    language: str  # en or zh
    asks: int  # from this clause on it is a question; len(clauses) if nothing is asked


def spoken(text: str) -> list[Sentence]:
    """The sentences of a message that its speaker says for themselves."""
    masked = _without_foreign(text[:LONGEST_MESSAGE])
    if masked is None:
        return []
    # Typographic apostrophes and double-byte spaces: one character for one.
    masked = fold_traditional(masked).translate({0x2019: "'", 0x02BC: "'", 0x3000: " ", 0xA0: " "})
    found = []
    for piece in _sentences(masked):
        tongue = _tongue(piece.text)
        if tongue:
            clauses = tuple(_clauses(piece, tongue))
            if clauses:
                found.append(Sentence(clauses, tongue, _asks(piece.text, clauses, tongue)))
    return found


def as_written(line: str, text: str) -> str:
    """With the characters of the one who wrote it: rules know simplified ones only."""
    return line.translate(_written_as(text)) if _written_as(text) else line


@text_cache(16)  # it is asked for each clause of a message
def _written_as(text: str) -> dict[int, str]:
    folded = fold_traditional(text)
    if folded == text or len(folded) != len(text):
        return {}
    return {ord(new): old for new, old in zip(folded, text, strict=True) if new != old}


def _tongue(text: str) -> str | None:
    if text.isascii():
        return "en"
    found = language(text)
    if found == "mixed":
        # An English sentence with a Chinese name in it, or the other way round: grammar tells.
        return "zh" if re.search("[我你他她的了是在不]", text) else "en"
    return found if found in ("en", "zh") else ("en" if "I" in text.split() else None)


# -- what the speaker does not say themselves -------------------------------------------------------------------------

_CODE_FENCE = re.compile(r"(?:```|~~~).*?(?:```|~~~|\Z)", re.DOTALL)
# Handed over by a program, or pasted from one: <memory>…</memory>.
_BLOCK = re.compile(r"<([a-zA-Z][\w\-]{2,30})>.*?</\1>", re.DOTALL)
# "1. no emojis 2. type hints": the figures are no part of it.
_LISTED = re.compile(r"(?:(?<=\s)|^)\d{1,2}[.)、](?=\s|[\u4e00-\u9fff])", re.MULTILINE)
_SYMBOLS = re.compile(r"[{}();=<>\[\]|\\`_$]")
_QUOTATION = re.compile(
    r'"([^"\n]{1,400})"|“([^”\n]{1,400})”|「([^」\n]{1,400})」|『([^』\n]{1,400})』|(?<!\w)\'([^\'\n]{1,200})\'(?!\w)'
)
# A quotation that speaks for itself is somebody's words; a title or a term is not.
_SPEAKS = re.compile(r"\b(?:I|I'm|I've|my|me|we|you)\b|[我你咱您]|[!?！？。]|\.\s*$")
_GOES_ON = re.compile(r"[，；]|, \w+ \w+ ")
_SAYS_BEFORE = re.compile(
    r"(?:\b(?:says?|said|saying|wrote|reads?|asked|told|replied|line|lyric|caption|went|like)\b|[说道写问喊唱]|原话|台词)"
    r"[^\w\n]{0,4}$"
)


def _without_foreign(text: str) -> str | None:
    """The text with everything blanked that is not the speaker's own words; None if nothing can be left."""
    if not any(map(str.isalnum, text)):
        return None
    if "<jiyi-memory>" in text:
        text = blank_context(text)
    if "</" in text:
        text = _blanked(text, [block.span() for block in _BLOCK.finditer(text)])
    if "```" in text or "~~~" in text:
        text = _blanked(text, [fence.span() for fence in _CODE_FENCE.finditer(text)])
    if ":" in text or "：" in text:
        given = pattern("all", "given text").search(text)
        if given:
            # The text that was handed over ends with its paragraph.
            end = text.find("\n\n", given.end())
            text = _blanked(text, [(given.end(), len(text) if end < 0 else end)])
    text = _blanked(text, [mark.span() for mark in _LISTED.finditer(text)])
    text = _blanked(text, [quoted.span() for quoted in _QUOTATION.finditer(text) if _is_speech(text, quoted)])
    if "\n" in text or _SYMBOLS.search(text):
        place, lines = 0, []
        for line in text.split("\n"):
            if line and (pattern("all", "not prose").match(line) or len(_SYMBOLS.findall(line)) * 12 > len(line) + 12):
                lines.append((place, place + len(line)))
            place += len(line) + 1
        text = _blanked(text, lines)
    return text


def _is_speech(text: str, quoted: re.Match[str]) -> bool:
    inside = next(filter(None, quoted.groups()), "")
    if len(inside) > 8 and _GOES_ON.search(inside):
        return True
    return bool(_SPEAKS.search(inside) or _SAYS_BEFORE.search(text[max(0, quoted.start() - 24) : quoted.start()]))


def _blanked(text: str, spans: list[tuple[int, int]]) -> str:
    parts: list[str] = []
    end = 0
    for start, stop in spans:
        parts += (text[end:start], _NOTHING * (stop - start))
        end = stop
    return "".join((*parts, text[end:])) if parts else text


# -- sentences --------------------------------------------------------------------------------------------------------

# A full stop ends a sentence only before a space; 3.5 and example.org go on. Marks may stand in a row: "really?!".
_SENTENCE_END = re.compile(
    r"[。！？；!?;~～…\n\x00]+[\"'”’」』)）]?|\.+[\"'”’)]?(?=\s|$|[\u4e00-\u9fff])|[\U0001f300-\U0001faff]+"
)
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:mr|mrs|ms|dr|prof|st|no|vs|etc|e\.g|i\.e|a\.m|p\.m|approx|inc|ltd|co|[a-z])$", re.I
)


def _sentences(text: str) -> Iterator[Piece]:
    start = 0
    for end in _SENTENCE_END.finditer(text):
        if end[0] == "." and _ABBREVIATION.search(text, max(start, end.start() - 8), end.start()):
            rest = text[end.end() : end.end() + 2].strip()
            # "at 7 p.m. I ran" is two sentences or one; a capital letter after a.m. or etc. decides.
            if not (rest[:1].isupper() and text[end.start() - 1] in "mcM"):
                continue
        yield from _trimmed(text, start, end.end())
        start = end.end()
    yield from _trimmed(text, start, len(text))


def _trimmed(text: str, start: int, end: int) -> Iterator[Piece]:
    while start < end and (text[start].isspace() or text[start] in "-*•·#>_\x00,，、)）]"):
        start += 1
    while start < end and (text[end - 1].isspace() or text[end - 1] == _NOTHING):
        end -= 1
    if end - start > 1:
        yield Piece(text[start:end], start)


# -- clauses ----------------------------------------------------------------------------------------------------------


# "Anna and I moved", "Helen Marsh, our manager": nothing is said yet.
_ONLY_A_NAME = re.compile(r"(?:[A-Z][a-z]+|(?i:my|our) [a-z\-]+)(?: [A-Z][a-z]+)?")


def _clauses(sentence: Piece, tongue: str) -> Iterator[Piece]:
    text = sentence.text
    start = 0
    places = [cut.span() for cut in pattern(tongue, "clause ends").finditer(text)]
    if tongue == "en" and (" and " in text or " but " in text):
        places = sorted({*places, *(cut.span() for cut in pattern("en", "verb after and").finditer(text))})
    for end, following in [*places, (len(text), len(text))]:
        if end < start or (end < len(text) and tongue == "en" and _ONLY_A_NAME.fullmatch(text, start, end)):
            continue
        piece = text[start:end].strip()
        if any(map(str.isalnum, piece)) and len(piece) <= LONGEST_CLAUSE:
            yield Piece(piece, sentence.start + start + (len(text[start:end]) - len(text[start:end].lstrip())))
        start = following


# -- questions --------------------------------------------------------------------------------------------------------

# 回不回, 吃完没: asks by its form.
_A_NOT_A = re.compile(
    r"(?<!不知道)(?<!不管)(?<!无论)(?:(?![时动])([\u4e00-\u9fff])[不没]\1|(?:[了完好到过]|有[^，。]{0,6})没有?$)(?!容易)"
)
_PARTICLE = re.compile(r"(?:吗|么|呢)[。.！!]*$|(?:什么|怎么样|怎么办|多少|几点|哪里|哪儿|谁)[。.！!]*$")


def _asks(sentence: str, clauses: tuple[Piece, ...], tongue: str) -> int:
    """The clause from which on a sentence is a question: "I'm vegan, what can I eat?" states something first."""
    asked = "?" in sentence[-4:] or "？" in sentence[-4:]
    if tongue == "zh":
        if not asked and not _PARTICLE.search(sentence):
            starts = [i for i, clause in enumerate(clauses) if _A_NOT_A.search(clause.text)]
            return starts[0] if starts else len(clauses)
        starts = [i for i, clause in enumerate(clauses) if pattern("zh", "asks").search(clause.text)]
        # A bare question mark asks about the last clause.
        return starts[0] if starts else len(clauses) - 1
    if not asked:
        starts = [i for i, clause in enumerate(clauses) if pattern("en", "inverted").match(clause.text)]
        return starts[0] if starts else len(clauses)
    starts = [i for i, clause in enumerate(clauses) if pattern("en", "asks").match(clause.text)]
    return starts[0] if starts else 0
