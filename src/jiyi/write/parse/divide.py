"""Division of a message's row when one of its statements is edited, archived, ended or deleted: the others follow as
rows of their own, so that no reader gets the old words from the message as a whole."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ...ids import identity
from ...languages import LANGUAGES, sentences
from ...languages.terms import tokens
from ...languages.words import width
from ...models.shown_dates import WHEN, WITH_DATES
from ...store.repositories.messages import Quotation, RepeatedMessage
from ...store.write_set import REST_OF, Division, NewMemory, Source
from ...text.fence import blank_context
from ..build import part_row
from ..extract import times_in
from ..index import KeywordRules, entry_of
from ..when import when_data
from .statement_spans import Span, statement_spans

MAX_DIVIDED = 30_000  # characters of a message that is divided because a part of it has ended: as much as is read
LEAST_LEFT = 12  # width of a part of a statement that is worth a row
REPEATED = 0.6  # share of a statement's words in a memory that repeats it
ECHOED = 0.75  # share of a memory's words in a sentence that repeats it
FEWEST_WORDS = 2  # of a memory whose repetitions are looked for
_STOP_WORDS = frozenset().union(*(language.stop_words for language in LANGUAGES))
_OPENING = re.compile(r"[\W_]*(?:(?:and|but|so)\b[\W_]*)?")
_LAST_WORD = re.compile(r"\b(?:and|but|so)$")
_JOINS = " \t\r\n,;:–—-，；：、\u3000"  # what joins a statement to the next one


def division(repeated: RepeatedMessage, rules: KeywordRules) -> Division | None:
    """Return what is left of a row without the words of some memories; None if it does not repeat them."""
    text = blank_context(repeated.message.text)
    whole = span_of(repeated.by, text)
    taken = _quoted(repeated, repeated.some, text, whole)
    if not taken:
        return None
    rows = statements_left(repeated, taken, rules)
    return Division(memory_id=repeated.row.id, version=repeated.row.version, left=rows)


def division_at_end(repeated: RepeatedMessage, rules: KeywordRules) -> Division | None:
    """Return the statements of a row, each by itself, because some memories have ended: their words answer questions
    about the past, and the others questions about the present. None if the row states nothing else."""
    text = blank_context(repeated.message.text)
    if len(text) > MAX_DIVIDED:
        return None
    whole = span_of(repeated.by, text)
    over = [*repeated.some, *(one for one in repeated.others if one.memory.valid_to is not None)]
    rests = [span_of(one.by, text) for one in repeated.others if one.memory.data.get(REST_OF)]
    spans = _quoted(repeated, over, text, whole)
    ended = [part for span in spans for part in left_of(text, span, rests)]
    if not ended or not left_of(text, whole, ended):
        return None
    rows = statements_left(repeated, ended, rules)
    past = (statement_row(repeated, text, span, rules) for span in apart(ended))
    reason = "a statement of it has ended"
    return Division(memory_id=repeated.row.id, version=repeated.row.version, left=(*past, *rows), reason=reason)


def _quoted(repeated: RepeatedMessage, memories: Iterable[Quotation], text: str, whole: Span) -> list[Span]:
    """Return the spans of a row that some memories repeat."""
    statements = [span for span in statement_spans(text, repeated.message.role) if _overlap(span, whole)]
    found = (span for one in memories for span in quoted_spans(one, text, statements))
    return [(max(start, whole[0]), min(end, whole[1])) for start, end in found if _overlap((start, end), whole)]


def apart(spans: Iterable[Span]) -> list[Span]:
    """Return spans in order, those that overlap as one."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start < found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


def statements_left(repeated: RepeatedMessage, taken: Sequence[Span], rules: KeywordRules) -> tuple[NewMemory, ...]:
    """Return rows for the statements of a row without some spans, and without those that other memories have."""
    text = blank_context(repeated.message.text)
    whole = span_of(repeated.by, text)
    taken = [*taken, *(span_of(one.by, text) for one in repeated.others if _is_verbatim(one))]
    statements = [span for span in statement_spans(text, repeated.message.role) if _overlap(span, whole)]
    left = [part for span in statements for part in left_of(text, span, taken)]
    return tuple(statement_row(repeated, text, span, rules) for span in left)


def echoes(text: str, contents: Sequence[str]) -> list[Span]:
    """Return the sentences of a text that repeat one of some memories."""
    wanted = [words for content in contents if len(words := _content_words(content)) >= FEWEST_WORDS]
    found = []
    for start, end in sentences(text) if wanted else ():
        own = _content_words(text[start:end])
        if any(len(own & words) >= ECHOED * len(words) for words in wanted):
            found.append((start, end))
    return found


def _content_words(text: str) -> set[str]:
    """Return the words of a text that say something, and its Chinese characters one by one."""
    found = tokens(text)
    return {word for word in found if (len(word) == 1) == (width(word[0]) > 1) or word.isdigit()} - _STOP_WORDS


def span_of(by: Source, text: str) -> Span:
    """Return the span that a source names; that of the whole text if it names none."""
    return by.start or 0, len(text) if by.end is None else by.end


def quoted_spans(one: Quotation, text: str, statements: Sequence[Span]) -> list[Span]:
    """Return the spans of a message that a memory repeats: the one that it names, or the statements with its words."""
    if one.by.start is not None:
        return [span_of(one.by, text)]
    words = set(tokens(one.memory.content))
    return [span for span in statements if _shared(text[slice(*span)], words) >= REPEATED]


def _shared(statement: str, words: set[str]) -> float:
    own = set(tokens(statement))
    return len(own & words) / len(own) if own else 0.0


def _is_verbatim(one: Quotation) -> bool:
    """Return True for a memory in the words of its message, which needs no other row."""
    return one.by.start is not None and str(one.memory.data.get("extractor", "")).startswith("builtin")


def left_of(text: str, span: Span, taken: Iterable[Span]) -> list[Span]:
    """Return the parts of a statement that are not taken, without those that say nothing."""
    overlapping = sorted(one for one in taken if _overlap(one, span))
    if not overlapping:
        return [span]
    left = []
    begin = span[0]
    for start, end in [*overlapping, (span[1], span[1])]:
        if start > begin:
            left.append(_trimmed(text, begin, start))
        begin = max(begin, end)
    return [(start, end) for start, end in left if width(text[start:end]) >= LEAST_LEFT]


def _trimmed(text: str, start: int, end: int) -> Span:
    """Return the span without what joins it to its neighbours: "and", "but", "so", commas and dashes."""
    opening = _OPENING.match(text, start, end)
    start = opening.end() if opening else start
    left = text[start:end].rstrip(_JOINS)
    if last := _LAST_WORD.search(left[-4:]):
        left = left[: -len(last[0])].rstrip(_JOINS)
    return start, start + len(left)


def _overlap(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def statement_row(repeated: RepeatedMessage, text: str, span: Span, rules: KeywordRules) -> NewMemory:
    """Return the row of one statement of a message."""
    row, content = repeated.row, text[slice(*span)]
    data = {name: value for name, value in row.data.items() if name not in (WHEN, WITH_DATES)}
    data |= when_data(times_in(content, repeated.message.sent_at))
    part = part_row(
        row,
        content,
        data,
        identity("a statement of", row.dedupe_hash, str(span)),
        source=row.source,
        reason="another statement of the message was changed",
        sources=(replace(repeated.by, start=span[0], end=span[1]),),
        created_at=row.created_at,
    )
    return replace(part, index=entry_of(part, rules))
