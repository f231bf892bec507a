"""Sentence boundaries in any language. A full stop ends a sentence only where it is no part of a number, an
abbreviation, an initial, a list number or an address. Text in quotes or brackets is not divided. Every look at the text
around a mark is bounded: linear time."""

import re
from collections.abc import Iterator

from .en.words import END_UNLESS_NUMBER, MAY_END, NEVER_END, STOP_WORDS, TIME_OF_DAY
from .words import language

# Marks that end a sentence wherever they stand: Chinese, Arabic, Devanagari, Armenian, Burmese, Khmer, Ethiopic.
_ALWAYS_ENDS = "。！？；｡؟۔।॥։။។።"
_ENDS = f".!?…{_ALWAYS_ENDS}"
_CLOSERS = "\"'”’」』）)】]》〉»*_`"
# A run of marks with the closing quotes behind it.
_MARKS = re.compile(rf"[{re.escape(_ENDS)}]+[{re.escape(_CLOSERS)}]*")
_EMOJI = r"[\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff]"
_TRAILING_EMOJI = re.compile(rf"[ \t]{{0,4}}(?:{_EMOJI}[\u200d\ufe0f\U0001f3fb-\U0001f3ff]*)+")
_LINE = re.compile(r"[^\r\n\u2028\u2029]+")
_BULLET = re.compile(r"[ \t]{0,40}(?:[-*+•·▪◦–—>]{1,3}[ \t]{1,8}|[•·▪◦])?")
_LIST_NUMBER = re.compile(
    r"(?:\(?[0-9]{1,2}[.)）、]|[（(][一二三四五六七八九十]{1,2}[)）]|[一二三四五六七八九十]{1,2}、)[ \t]*(?=\S)"
)
_QUOTES = {"“": "”", "「": "」", "『": "』", "（": "）", "(": ")", "【": "】", "[": "]", "《": "》", '"': '"'}
_LONGEST_QUOTE = 300
_WORD_BEFORE = re.compile(r"(?:\A|[\s\"'“‘(（,/-])((?:[^\W_]|\.)+)\Z")
_INITIALS = re.compile(r"[a-z](?:\.[a-z]){0,5}")
_WORD_AFTER = re.compile(r"[\"'“‘「(（\[*_]{0,3}((?:[^\W_]|['’])+)")
_LONGEST_WORD = 24


def sentences(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each sentence, without the spaces and list marks around it.

    >>> text = "I'm 34. I live in Rome, at 1.80 m. 你好吗？很好。"
    >>> [text[start:end] for start, end in sentences(text)]
    ["I'm 34.", 'I live in Rome, at 1.80 m.', '你好吗？', '很好。']
    """
    lines = list(_LINE.finditer(text))
    numbered = _numbered(text, lines)
    return [span for line in lines for span in _in_line(text, line.start(), line.end(), numbered)]


def list_mark(text: str, start: int) -> int:
    """Return where the text of a list item begins, or the start of the line if it is none."""
    bullet = _after_bullet(text, start)
    number = _LIST_NUMBER.match(text, bullet)
    return number.end() if number else bullet if text[start:bullet].strip() else start


def split_sentences(text: str) -> list[str]:
    """Return the sentences that contain a letter or digit."""
    return [text[start:end] for start, end in sentences(text) if any(map(str.isalnum, text[start:end]))]


def question_share(text: str) -> float:
    """Return the share of sentences with a question mark, from 0 to 1."""
    if "?" not in text and "？" not in text:
        return 0.0
    found = split_sentences(text)
    return sum("?" in sentence or "？" in sentence for sentence in found) / len(found) if found else 0.0


def _numbered(text: str, lines: list[re.Match[str]]) -> bool:
    """Return True if the lines are a numbered list. A single number before a full stop may be an age or a year."""
    marks = [mark[0] for line in lines if (mark := _LIST_NUMBER.match(text, _after_bullet(text, line.start())))]
    return len(marks) > 1 or any(mark.lstrip("(（").startswith(("1.", "1)", "1、", "一")) for mark in marks)


def _after_bullet(text: str, start: int) -> int:
    bullet = _BULLET.match(text, start)
    return bullet.end() if bullet else start


def _in_line(text: str, low: int, high: int, numbered: bool) -> Iterator[tuple[int, int]]:
    low = _after_bullet(text, low)
    if numbered and (mark := _LIST_NUMBER.match(text, low, high)):
        low = mark.end()
    quoted = _quoted(text, low, high)
    known_language = ""
    start = low
    for marks in _MARKS.finditer(text, low, high):
        if marks.start() < start or _is_inside(marks.start(), quoted):
            continue
        if not known_language:
            known_language = language(text[low:high][:1000])
        if _ends_sentence(text, start, marks, high, known_language):
            emoji = _TRAILING_EMOJI.match(text, marks.end(), high)
            end = emoji.end() if emoji else marks.end()
            yield from _trimmed(text, start, end)
            start = end
    yield from _trimmed(text, start, high)


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if any(char.isalnum() or ord(char) >= 0x2600 for char in text[start:end]):
        yield start, end


def _quoted(text: str, low: int, high: int) -> list[tuple[int, int]]:
    """Return the outermost quotes and brackets that close within the line and are not too long, in order."""
    found: list[tuple[int, int]] = []
    opened, closer = -1, ""
    for at in range(low, high):
        char = text[at]
        if opened >= 0:
            if char == closer:
                found.append((opened, at))
                opened = -1
            elif at - opened > _LONGEST_QUOTE:
                opened = -1
        elif char in _QUOTES:
            opened, closer = at, _QUOTES[char]
    found.reverse()
    return found


def _is_inside(at: int, quoted: list[tuple[int, int]]) -> bool:
    # Marks come in order, so quotes that end before one are not needed again. A mark right before the closing quote
    # ends the sentence together with it.
    while quoted and quoted[-1][1] <= at:
        quoted.pop()
    return bool(quoted) and quoted[-1][0] < at and at + 1 < quoted[-1][1]


def _ends_sentence(text: str, start: int, marks: re.Match[str], high: int, known_language: str) -> bool:
    end = marks.end()
    if end >= high:
        return True
    run = marks[0].rstrip(_CLOSERS)
    closed = len(run) < len(marks[0])
    following = text[end]
    if run[-1] in _ALWAYS_ENDS:
        # He asked “去吗？”, and went on: a comma goes on.
        return following not in ",，、:："
    spaced = following.isspace()
    word = _WORD_AFTER.match(text[end : end + _LONGEST_WORD + 2].lstrip())
    follower = word[1] if word else ""
    if not spaced:
        # After "ok." comes Chinese text, after "Nice!" a capital; otherwise it is an address, a number or a name.
        wide = ord(following) >= 0x2E80
        return wide or (run[-1] in "!?" and following.isupper())
    if closed and follower[:1].islower():
        return False
    if "…" in run or ".." in run:
        return bool(follower) and not follower[0].islower() and follower.split("'")[0] != "I"
    return run != "." or _full_stop_ends(text, start, marks.start(), follower, known_language)


def _full_stop_ends(text: str, start: int, at: int, follower: str, known_language: str) -> bool:
    found = _WORD_BEFORE.search(text[max(start, at - _LONGEST_WORD) : at])
    word = found[1].lower() if found else ""
    first = follower[:1]
    is_function_word = follower.replace("’", "'").split("'")[0].lower() in STOP_WORDS
    if word.isdecimal():
        # "Am 3. Mai": many languages write ordinals with a full stop.
        ordinal = known_language == "other" and int(word[:4]) <= 31 and first.isupper() and not is_function_word
        return not ordinal
    if word in NEVER_END or word in END_UNLESS_NUMBER:
        return word in END_UNLESS_NUMBER and not first.isdigit()
    if word in TIME_OF_DAY:
        # "At 3 p.m. I will call."
        return not first.islower() and not (is_function_word and text.count(" ", start, min(at, start + 60)) < 3)
    if word in MAY_END:
        return not first.islower()
    if _INITIALS.fullmatch(word) and word != "i":
        # John F. Kennedy, the U.S. Army; but "in the U.S. My wife".
        return is_function_word or (len(word) == 1 and not first.isupper())
    return True
