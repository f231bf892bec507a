"""The parts of a message that are its speaker's own unmarked prose.

Only these change or end what is remembered of the speaker. Words that somebody passes on are marked, and markup has a
grammar: blocks (fences, `>`, indentation, rows of tables, mails), tags, quotation marks, and labels, which end with a
colon and introduce what follows them: "Bob:", "Lyrics:", "proofread:". A label introduces own words only if it says so
("Update:", "As I said:"; `own_label` of a language), or if it names a thing of the speaker's ("my new address: …").

What is wrongly taken for foreign is kept as a quote; what is wrongly taken for own would end a true memory. So in doubt
words are foreign.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import groupby, pairwise

from ..languages import cue, sentences
from ..languages.base import word_set
from ..text_cache import text_cache

Span = tuple[int, int]

_LINE = re.compile(r"[^\n\u2028\u2029]*(?:[\n\u2028\u2029]|\Z)")
# Without one of these, only a request can mark a text. A tab or four spaces mark an indented line.
_MARK = re.compile(
    r"[\n\u2028\u2029\t\"'`’‘‚“”„«»‹›＂「『《〈〝｢<&\[【|｜>＞→:：﹕~♪♫🎵🎶\\#$;]|    |//|/\*|--|[—―]|\d:\d\d"
)

# -- blocks -----------------------------------------------------------------------------------------------------------

_FENCE = re.compile(r"\s{0,40}(?P<mark>`{3,40}|~{3,40}|\"{3}|'{3})")
_RULES = "-=_*~—–+·•"
_DIVIDER = re.compile(r"\s{0,40}[-=—–~+]{3,200}\s{0,40}\S")  # ----- Original Message -----
_MAIL = re.compile(
    r"[\s*]{0,9}(?:(?P<sure>from|subject|发件人|主题|主旨|寄件者)"
    r"|to|cc|bcc|date|sent|reply-to|收件人|抄送|日期|发送时间|收件者)[\s*]{0,9}[:：]",
    re.IGNORECASE,
)
_HEADING = re.compile(r" {0,3}#{1,6}\s")
_MARKED_LINE = re.compile(r" {0,3}[>＞|｜]|[^\s>]{1,30}>(?=\s)|\t| {4}|//|/\*|\$ (?=[a-z])")
_ROW = re.compile(r"^\S{1,30};(?=\S)|\S[ \t]*\t[ \t]*\S|\S\s[|｜]\s\S|[|｜].*[|｜]")
_SIGNED = re.compile(r"(?:^|(?<=\s))(?:[—―–]{1,2}|--)\s?(?P<name>\S[^—―–\n]{0,60})$")
_ATTRIBUTION = re.compile(
    r"[《「]?(?:[A-Z][\w.'’-]{0,40}(?:,? (?:(?:de|von|van|of|the) )?[A-Z][\w.'’-]{0,40}){0,4}|[\u4e00-\u9fff·]{2,12})"
    r"[》」]?"
)

# -- marks within paragraphs ------------------------------------------------------------------------------------------

_TAG = re.compile(
    r"(?<![A-Za-z0-9])(?:<|&lt;)(?P<name>[A-Za-z][\w:.-]{0,40})(?:\s[^<>]{0,300}?)?(?P<empty>/?)(?:>|&gt;)"
)
_CLOSING_TAG = re.compile(r"(?:<|&lt;)/[A-Za-z][\w:.-]{0,40}\s{0,40}(?:>|&gt;)")
_VOID = word_set("area base br col embed hr img input link meta param source track wbr")
_PAIRS = re.compile(r"<!--|\[(?P<bb>[A-Za-z]{1,12})(?:=[^\]\n]{0,80})?\](?!\()|\\begin\{(?P<tex>\w{1,20})\}")
_ELIDED = r"(?!(?:cause|cos|cuz|em|til|till|tis|twas|n|round|bout|\d\ds?)\b)"  # 'cause, '90s
_NOTES = "♪♫🎵🎶"
_APOSTROPHES = "'’"
_OPENER = re.compile(
    r"(?<![A-Za-z0-9])[\"＂]|[“„«»‹›「『《〈〝｢]|(?:(?<=\s)|^)”(?=\S)|‚"
    rf"|(?:(?<![^\s(\[{{—–:：,，.。\u4e00-\u9fff])|^)['’]{_ELIDED}(?=[^\s'’])|‘{_ELIDED}"
    rf"|(?<![A-Za-z0-9`])`+|~~(?=\S)|[{_NOTES}]+",
    re.MULTILINE | re.IGNORECASE,
)
_CLOSERS = {
    "“": ("”", "“"), "„": ("“", "”", '"'), "«": ("»",), "»": ("«",), "‹": ("›",), "›": ("‹",), "「": ("」",),
    "『": ("』",), "《": ("》",), "〈": ("〉",), "〝": ("〞", "〟"), "｢": ("｣",), "‚": ("‘", "’"), "``": ("''", "``"),
}  # fmt: skip
_SINGLE = re.compile(r"(?<=\S)['’](?![^\W\d_])")  # closes: no letter follows, as in "don't"

# -- labels -----------------------------------------------------------------------------------------------------------

_COLON = re.compile(r"(?<![:/\d])(?:[：﹕]|:(?=\s|$|[\"'“‘「『A-Z]|[*_]{1,2}\s|[^\x00-\x7f])(?!//))|(?<=\d):(?=\s|$)")
_STAMP = re.compile(
    r"\s{0,40}[\[(（【]?(?:\d{1,4}[-/.年]\d{1,2}[-/.月]\d{1,4}日?[,T ]{0,2})?"
    r"\d{1,2}:\d{2}(?::\d{2})?(?: ?[AaPp]\.?[Mm]\.?)?(?!\d)"
)
_SENDER = re.compile(  # "Bob Smith  10:32 AM" above what Bob wrote
    r"\s{0,40}(?:@?[A-Z][\w.'’-]{0,40}(?: [A-Z][\w.'’-]{0,40}){0,2}|[\u4e00-\u9fff]{1,6})[\s,，·|(\[]{1,4}"
    r"(?:[\w,./年月日 -]{1,24}[\s,T]{1,2})?\d{1,2}:\d{2}(?::\d{2})?(?: ?[AaPp]\.?[Mm]\.?)?[)\]]?\s{0,40}$"
)
_BRACKETS = re.compile(
    r"\s{0,40}(?:《[^》\n]{1,30}》(?=\s{0,40}$)|\[[^\]\n]{2,40}\](?!\()|【[^】\n]{1,20}】|〔[^〕\n]{1,20}〕)"
)
_ARROW = re.compile(r"\s{0,40}\S{1,30}\s?(?:->|=>|→|⇒)\s|[^\n.!?。！？]{1,60}>{2,}\s")
_DASHED = re.compile(
    r"\s{0,40}(?:[A-Z][\w.'’-]{0,40}(?: [A-Z][\w.'’-]{0,40})?|[\u4e00-\u9fff]{1,4}) ?[-–—]{1,2} ?(?=\S)"
)
_SALUTATION = re.compile(r"\s{0,40}\S[^\n.!?。！？]{0,40}[,，]\s{0,40}$")
_LETTER = re.compile(r"[^\W\d_]")
_CLAUSE = re.compile(r"[,，;；]|(?:[^\W_]{1,40}\W{1,9}){4}|[\u4e00-\u9fff]{7}")  # longer than a name or a title
OWN, INTRODUCED, MARKED = range(3)  # of a character: introduced by a clause of the speaker's, or marked as foreign
LONGEST_LABEL = 200  # characters before a colon that are read
MAX_READ = 40_000  # characters of a text; what follows them is not taken for own words


def own_words(text: str) -> tuple[Span, ...]:
    """Return the spans of a text that are its speaker's own unmarked prose.

    >>> text = 'Bob said "I live in Rome" and I moved to Bonn. Translate: I quit my job.'
    >>> [text[start:end] for start, end in own_words(text)]
    ['Bob said ', ' and I moved to Bonn. Translate:']
    """
    degrees = _degrees(text)
    if degrees is None:
        return ((0, len(text)),) if text else ()
    edges = [0, *(at for at, (one, other) in enumerate(pairwise(degrees), 1) if (one == OWN) != (other == OWN))]
    return tuple(span for span in pairwise((*edges, len(degrees))) if degrees[span[0]] == OWN)


@text_cache(256)
def _degrees(text: str) -> bytes | None:
    """Return the degree of each character; None if all are own."""
    text = text[:MAX_READ]
    if _MARK.search(text) is None and cue("text_request").search(text) is None:
        return None
    foreign = _Foreign(text)
    foreign.mark()
    return bytes(foreign.degrees)


def pasted_lines(text: str) -> list[Span]:
    """Return the lines of blocks: fenced, quoted, indented, rows of tables, mails, documents and elements."""
    if _MARK.search(text[:MAX_READ]) is None:
        return []
    foreign = _Foreign(text[:MAX_READ])
    foreign.mark_blocks()
    lines = (line.span() for line in _LINE.finditer(text[:MAX_READ]) if line[0].strip())
    return [span for span in lines if _is_foreign(text, foreign.degrees, *span)]


def _is_foreign(text: str, degrees: bytearray, start: int, end: int) -> bool:
    marks = zip(text[start:end], degrees[start:end], strict=True)
    return all(degree == MARKED or char.isspace() for char, degree in marks)


def divide(text: str, start: int, end: int) -> tuple[str, str]:
    """Return the own words in a part of a text, and the foreign ones."""
    own = [(max(start, first), min(end, last)) for first, last in own_words(text) if first < end and last > start]
    edges = [start, *(edge for span in own for edge in span), end]
    parts = [text[first:last] for first, last in pairwise(edges)]
    return "".join(parts[1::2]), "".join(parts[::2])


def is_marked(text: str, start: int, end: int) -> bool:
    """Return True if a part of a text has foreign words that more than a clause before a colon marks as such."""
    degrees = _degrees(text)
    return degrees is not None and (end > len(degrees) or MARKED in degrees[start:end])


def is_own(text: str, at: int) -> bool:
    """Return True if the character at a position is part of own words."""
    return any(start <= at < end for start, end in own_words(text))


class _Foreign:
    """Marks the characters of a text that are not own."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.degrees = bytearray(len(text))
        self._lines = [line.span() for line in _LINE.finditer(text) if line.end() > line.start()]
        self._blank = [not text[start:end].strip() for start, end in self._lines]
        self._paragraphs: list[Span] = []  # of each line; blank lines separate them
        for _, group in groupby(range(len(self._lines)), key=self._blank.__getitem__):
            numbers = [*group]
            self._paragraphs += [(self._lines[numbers[0]][0], self._lines[numbers[-1]][1])] * len(numbers)

    def mark(self) -> None:
        self.mark_blocks()
        self._mark_quotes()
        self._mark_introduced()

    def mark_blocks(self) -> None:
        self._mark_marked_lines()
        self._mark_documents()
        self._mark_tags()

    def _set(self, start: int, end: int, degree: int = MARKED) -> None:
        if end > start:
            self.degrees[start:end] = bytes((degree,)) * (end - start)

    def _line(self, number: int) -> str:
        start, end = self._lines[number]
        return self._text[start:end].rstrip("\r\n\u2028\u2029")

    # -- blocks -------------------------------------------------------------------------------------------------------

    def _mark_marked_lines(self) -> None:
        """Mark fenced blocks, and lines that are marked one by one: quoted, indented, commented, rows of tables."""
        opened: tuple[int, str] | None = None
        for number, (start, end) in enumerate(self._lines):
            line = self._line(number)
            fence = _FENCE.match(line)
            if opened is not None:
                if fence and fence["mark"].startswith(opened[1]) and not line[fence.end() :].strip():
                    self._set(opened[0], end)
                    opened = None
            elif fence and line.count(fence["mark"]) == 1:
                opened = start, fence["mark"]
            elif _MARKED_LINE.match(line) or _ROW.search(line):
                self._set(start, end)
        if opened is not None:
            self._set(opened[0], len(self._text))

    def _mark_documents(self) -> None:
        """Mark what follows a heading, the header of a mail or a divider, to the end, and what is between two rules."""
        rules, headers = [], 0
        for number, (start, _) in enumerate(self._lines):
            line = self._line(number)
            if self.degrees[start]:
                continue
            if _is_rule(line):
                rules.append(number)
                continue
            mail = _MAIL.match(line)
            headers = headers + 1 if mail else 0
            if _HEADING.match(line) or _DIVIDER.match(line) or (mail and (mail["sure"] or headers > 1)):
                self._set(self._lines[number - max(headers - 1, 0)][0], len(self._text))
                break
            signed = _SIGNED.search(line)
            if signed and _ATTRIBUTION.fullmatch(signed["name"].strip()):
                self._mark_signed(number, signed.start())
        if len(rules) == 2:
            self._set(self._lines[rules[0]][0], self._lines[rules[1]][1])
        elif rules:
            self._set(self._lines[rules[0]][0], len(self._text))

    def _mark_signed(self, number: int, at: int) -> None:
        """Mark the paragraph before "— Oscar Wilde". Within a line of Chinese, the dash may be one of the sentence."""
        if at and self._text[self._lines[number][0] + at - 1].strip():
            return
        self._set(self._paragraphs[number][0], self._lines[number][1])

    # -- marks within paragraphs --------------------------------------------------------------------------------------

    def _mark_tags(self) -> None:
        """Mark elements; one that is not closed goes on to the end of its paragraph."""
        unclosed = set[str]()
        for pattern in (_TAG, _PAIRS):
            at = 0
            while found := pattern.search(self._text, at):
                at = found.end()
                if self.degrees[found.start()] or (
                    pattern is _TAG and (found["name"].lower() in _VOID or found["empty"])
                ):
                    continue
                closer = _closing_tag(found)
                end = None if closer in unclosed else re.compile(closer, re.IGNORECASE).search(self._text, at)
                if end is None:
                    unclosed.add(closer)
                    if pattern is _PAIRS and found["bb"]:
                        continue  # a word in brackets
                at = end.end() if end else self._paragraph_at(found.start())[1]
                self._set(found.start(), at)
        at = 0
        for closing in _CLOSING_TAG.finditer(self._text):  # of an element whose beginning is not there
            if not self.degrees[closing.start()]:
                self._set(max(at, self._paragraph_at(closing.start())[0]), closing.end())
                at = closing.end()

    def _line_at(self, at: int) -> int:
        return bisect_right(self._lines, (at, len(self._text))) - 1

    def _paragraph_at(self, at: int) -> Span:
        return self._paragraphs[self._line_at(at)]

    def _mark_quotes(self) -> None:
        """Mark what stands in quotation marks, in code and between notes."""
        at = 0
        unclosed: dict[str, int] = {}  # marks that nothing closes before this position
        while found := _OPENER.search(self._text, at):
            start, at, mark = found.start(), found.end(), found[0]
            if self.degrees[start] or (mark in _APOSTROPHES and start < unclosed.get(mark, 0)):
                continue
            line = self._line_at(start)
            limit = self._paragraphs[line][1] if mark in _APOSTROPHES else len(self._text)
            end = self._quote_end(mark, at, limit) if start >= unclosed.get(mark, 0) else None
            if end is None:
                unclosed[mark] = limit
                if mark in _APOSTROPHES:
                    continue
            at = max(at, self._line_end(line) if end is None else end)
            self._set(start, at)

    def _quote_end(self, mark: str, at: int, limit: int) -> int | None:
        """Return where a quote ends; None if it is not closed."""
        if mark in "'’‘":
            closer = _SINGLE.search(self._text, at + 1, limit)
            return closer.end() if closer else None
        closers = _CLOSERS.get(mark, (mark[:1],) if mark[0] in _NOTES else (mark,))
        found = [(self._text.find(one, at, limit), len(one)) for one in closers]
        return next((place + length for place, length in found if place >= 0), None)

    def _line_end(self, number: int) -> int:
        return self._lines[number][0] + len(self._line(number))

    # -- labels -------------------------------------------------------------------------------------------------------

    def _mark_introduced(self) -> None:
        """Mark what labels introduce."""
        dashed = [number for number in range(len(self._lines)) if _DASHED.match(self._line(number))]
        for number in dashed if len(dashed) > 1 else ():
            self._set(*self._lines[number])
        for number, (start, end) in enumerate(self._lines):
            if self._blank[number] or all(self.degrees[start:end]):
                continue
            line = self._line(number)
            bracketed = _BRACKETS.match(line)
            if _STAMP.match(line) or bracketed or _ARROW.match(line) or _SENDER.match(line):
                alone = bracketed is not None and not line[bracketed.end() :].strip()
                self._introduce(number, end if alone else start)
            else:
                self._mark_labelled(number, line)

    def _mark_labelled(self, number: int, line: str) -> None:
        """Mark what follows a label or a request to work on a text in a line."""
        if _COLON.search(line) is None and cue("text_request").search(line) is None:
            return
        first = self._lines[number][0]
        for begin, end in sentences(line):
            start = at = begin
            while colon := _COLON.search(line, at, end):
                at = colon.end()
                label = line[max(start, colon.start() - LONGEST_LABEL) : colon.start()]
                if self.degrees[first + colon.start()] or not _LETTER.search(label):
                    continue
                if not cue("own_label").search(label) and not _is_own_value(label, line[at:end]):
                    whole = not line[:start].strip(" \t-*•·")
                    degree = INTRODUCED if _CLAUSE.search(label.strip()) else MARKED
                    self._introduce(number, first + at, whole_paragraph=whole, degree=degree)
                    return
                start = at
            request = cue("text_request").match(line[begin:end])
            if request:
                self._introduce(number, first + begin + request.end())
                return

    def _introduce(self, number: int, at: int, *, whole_paragraph: bool = True, degree: int = MARKED) -> None:
        """Mark the text after a label: the rest of the paragraph, or the next one. A text that a blank line sets apart
        from its label, and a letter, may have several paragraphs."""
        if self._text[at : self._line_end(number)].strip():
            end = self._paragraphs[number][1] if whole_paragraph else self._line_end(number)
        else:
            following = number + 1
            if following == len(self._lines):
                return
            several = self._blank[following] or _SALUTATION.match(self._line(following))
            end = len(self._text) if several else self._paragraphs[following][1]
            degree = MARKED
        self._set(at, end, max(degree, *self.degrees[at:end]))


def _is_rule(line: str) -> bool:
    """Return True for a line of one mark, such as ----- or * * *."""
    marks = "".join(line.split())
    return len(marks) > 2 and marks[0] in _RULES and not marks.strip(marks[0])


def _closing_tag(opening: re.Match[str]) -> str:
    """Return a pattern of what closes an element."""
    groups = opening.groupdict()
    if opening[0] == "<!--":
        return "-->"
    if groups.get("bb"):
        return rf"\[/{groups['bb']}\]"
    if groups.get("tex"):
        return rf"\\end\{{{groups['tex']}\}}"
    return rf"(?:<|&lt;)/{re.escape(groups['name'])}\s*(?:>|&gt;)"


def _is_own_value(label: str, value: str) -> bool:
    """Return True for "my new address: 5 Rose St": a thing of the speaker's, and no words of a speaker behind it."""
    return cue("own_thing").match(label) is not None and cue("first_person").search(value) is None
