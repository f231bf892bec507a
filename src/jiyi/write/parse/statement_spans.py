"""Division of a message into statements: spans that a person understands alone.

A statement is a sentence with the fragments that need it, a short list with its lead-in, a pasted block, or a passage
of an assistant. Spans are in order, do not overlap, and together contain every letter and digit of the message.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise

from ...languages import cue, sentences
from ...languages.sentences import list_mark
from ...languages.words import width
from ...roles import is_person
from ..extract import is_dependent
from ..own_words import pasted_lines

Span = tuple[int, int]

MAX_JOINED = 300  # width of a statement that a fragment joins
MAX_GREETING = 20  # width of a fragment that joins the statement behind it
MAX_ITEM = 80  # width of a list item that is no statement alone
MAX_HEADING = 40  # width of a line without a stop that introduces a list
MAX_LEAD_IN = 160  # width of a line that introduces a list
MAX_LIST = 450  # width of a list that is one statement
MAX_RUN_ON = 180  # width of a sentence that is not divided between clauses
MIN_CLAUSE = 45  # width of a clause that stands alone
MAX_PASSAGE = 600  # characters of a passage of an assistant
PROSE, PASTED, RECORD = range(3)
MIN_RECORDS = 3  # lines of a log or of code that make a block

_LINE = re.compile(r"[^\r\n\u2028\u2029]+")
_STAMP = r"\s*\[?(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\d\d:\d\d:\d\d\b)"
_STAMPED = re.compile(rf"^{_STAMP}")
_RECORD = re.compile(
    rf"^(?:{_STAMP}|Traceback \(|\s*(?:at |File \"|\.\.\. )\S"
    r"|\s*(?:TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|CRITICAL)[:\]] "
    r"|.*[{};]\s*$|\s{2,}\S.*[=(]|\s*(?:def|class|import|return) |\s*[\w.]+(?:Error|Exception)\b)"
)
_INNER = re.compile(r"[\"“「『(（\[`][^\"”」』)）\]`\n]{0,200}[\"”」』)）\]`]|(?<!\w)\w{1,40}://\S+")
_LEADS_IN = (":", "：")
_ASKS = ("?", "？")


def statement_spans(text: str, role: str = "user") -> list[Span]:
    """Return the start and end of each statement of a message.

    >>> text = "I live in Rome. It is loud. My dog is called Rex."
    >>> [text[start:end] for start, end in statement_spans(text)]
    ['I live in Rome. It is loud.', 'My dog is called Rex.']
    """
    if not is_person(role):
        return _passages(text, sentences(text))
    blocks = _blocks(text)
    prose = [span for span in sentences(text) if not any(start < span[1] and span[0] < end for start, end in blocks)]
    joined = _with_fragments(text, _with_lists(text, prose, blocks), blocks)
    alone = set(prose)
    parts = [part for span in joined for part in (_clauses(text, span) if span in alone else (span,))]
    return _with_headings(text, sorted([*blocks, *parts]), blocks)


# -- blocks -----------------------------------------------------------------------------------------------------------


def _blocks(text: str) -> list[Span]:
    """Return pasted text: lines that are marked as foreign, and runs of lines of a log or of code."""
    lines = list(_line_spans(text))
    marked = {start for start, _ in pasted_lines(text)}
    kinds = [PASTED if start in marked else PROSE for start, _ in lines]
    for is_record, group in groupby(
        range(len(lines)), key=lambda at: _RECORD.match(text[slice(*lines[at])]) is not None
    ):
        numbers = list(group)
        for number in numbers if is_record and len(numbers) >= MIN_RECORDS else ():
            kinds[number] = RECORD if _STAMPED.match(text[slice(*lines[number])]) else kinds[number] or PASTED
    blocks: list[Span] = []
    for (start, end), kind, before in zip(lines, kinds, [PROSE, *kinds], strict=False):
        if kind != PROSE and kind == before:
            blocks[-1] = blocks[-1][0], end
        elif kind != PROSE:
            blocks.append((start, end))
    return [span for span in blocks if any(map(str.isalnum, text[slice(*span)]))]


def _with_headings(text: str, spans: Iterable[Span], blocks: Sequence[Span]) -> list[Span]:
    """Join a block with the heading on the line above it."""
    joined: list[Span] = []
    is_block = set(blocks)
    for start, end in spans:
        before = joined[-1] if joined and (start, end) in is_block and joined[-1] not in is_block else None
        is_heading = before and width(text[slice(*before)]) <= MAX_HEADING and _introduces(text, before)
        if before and is_heading and text[before[1] : start].count("\n") == 1:
            joined[-1] = before[0], end
        else:
            joined.append((start, end))
    return joined


def _line_spans(text: str) -> Iterator[Span]:
    for line in _LINE.finditer(text):
        if line[0].strip():
            yield line.start(), line.start() + len(line[0].rstrip())


# -- sentences --------------------------------------------------------------------------------------------------------


def _clauses(text: str, span: Span) -> Iterator[Span]:
    """Divide a long sentence where another thought of the speaker's begins, outside of quotes, brackets and URLs."""
    start, end = span
    sentence = text[start:end]
    if width(sentence) <= MAX_RUN_ON:
        yield span
        return
    inner = [found.span() for found in _INNER.finditer(sentence)]
    begin = 0
    for cut in cue("next_thought").finditer(sentence):
        at = bisect_left(inner, (cut.end(), 0)) - 1
        inside = at >= 0 and cut.end() <= inner[at][1]
        long_enough = _is_clause(sentence, begin, cut.start()) and _is_clause(sentence, cut.end(), len(sentence))
        if long_enough and not inside:
            yield start + begin, start + cut.start()
            begin = cut.end()
    yield start + begin, end


def _is_clause(sentence: str, start: int, end: int) -> bool:
    """Return True if a part stands alone. A width is at least the number of characters, which costs nothing to know."""
    return end - start >= MIN_CLAUSE or width(sentence[start:end]) >= MIN_CLAUSE


def _with_lists(text: str, parts: Sequence[Span], blocks: Sequence[Span]) -> list[Span]:
    """Join short list items with each other and with the line that introduces them."""
    line_starts = {start for start, _ in _line_spans(text)}
    items = {
        mark
        for start in line_starts
        if (mark := list_mark(text, start)) > start and not any(first <= start < last for first, last in blocks)
    }
    joined: list[Span] = []
    in_list = False
    for start, end in parts:
        is_item = start in items and width(text[start:end]) <= MAX_ITEM
        before = joined[-1] if joined and _adjacent(joined[-1], start, blocks) else None
        if is_item and before and width(text[before[0] : end]) <= MAX_LIST and (in_list or _introduces(text, before)):
            joined[-1] = before[0], end
            in_list = True
        elif in_list and start not in line_starts and start not in items and before:
            joined[-1] = before[0], end  # a further sentence of the last item
        else:
            joined.append((start, end))
            in_list = is_item
    return joined


def _introduces(text: str, span: Span) -> bool:
    """Return True for a line that ends with a colon, and for a heading: a short line of words without a stop."""
    line = text[slice(*span)].rstrip()
    is_heading = line[-1].isalnum() and width(line) <= MAX_HEADING and text.startswith("\n", span[1])
    return is_heading or (line.endswith(_LEADS_IN) and width(line) <= MAX_LEAD_IN)


def _adjacent(before: Span, start: int, blocks: Sequence[Span]) -> bool:
    return not any(before[1] <= first < start for first, _ in blocks)


def _with_fragments(text: str, parts: Sequence[Span], blocks: Sequence[Span]) -> list[Span]:
    """Join what means nothing alone with the statement before it, or at the beginning with the one behind it."""
    joined: list[Span] = []
    waiting = False  # the last statement is a fragment without anything before it
    for start, end in parts:
        part = text[start:end]
        needs = _needs_neighbour(part)
        before = joined[-1] if joined and _adjacent(joined[-1], start, blocks) else None
        if before and (needs or waiting) and _fits(text, before, start, end):
            joined[-1] = before[0], end
            waiting = waiting and needs
        else:
            joined.append((start, end))
            waiting = needs and len(joined) == 1 and width(part) <= MAX_GREETING
    return joined


def _needs_neighbour(part: str) -> bool:
    if part.endswith(_ASKS) or "\n" in part:
        return False
    return cue("no_subject").match(part) is not None or is_dependent(part)


def _fits(text: str, before: Span, start: int, end: int) -> bool:
    """Return True if two spans of one paragraph may be one statement; a question is one alone."""
    if text[slice(*before)].rstrip().endswith(_ASKS):
        return False
    gap = text[before[1] : start]
    return gap.count("\n") < 2 and width(text[before[0] : end]) <= MAX_JOINED


# -- passages ---------------------------------------------------------------------------------------------------------


def _passages(text: str, parts: Iterable[Span]) -> list[Span]:
    """Join sentences to passages, and cut those that are longer than a passage between words."""
    short = [piece for span in parts for piece in _cut(text, span)]
    passages: list[Span] = []
    for start, end in short:
        if passages and end - passages[-1][0] <= MAX_PASSAGE:
            passages[-1] = passages[-1][0], end
        else:
            passages.append((start, end))
    return passages


def _cut(text: str, span: Span) -> list[Span]:
    start, end = span
    cuts = [start]
    while end - cuts[-1] > MAX_PASSAGE:
        room = cuts[-1] + MAX_PASSAGE
        space = max(text.rfind(mark, cuts[-1] + MAX_PASSAGE // 2, room) for mark in " ，,、")
        cuts.append(space + 1 if space > 0 else room)
    return list(pairwise([*cuts, end]))
