"""Find the JSON in a reply of a language model. A reply may be fenced, wrapped in prose, cut off, have extra commas,
duplicate keys or NaN. What is unambiguous is read, the rest is counted. The content is validated elsewhere."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any

from ..errors import LlmBadReply

MAX_LENGTH = 400_000  # characters of a reply
MAX_DEPTH = 32
MAX_STARTS = 256  # positions at which JSON may begin; prose can be full of braces
MAX_VALUES = 100_000  # bounds the time for one reply

_THOUGHTS = re.compile(r"\A\s*<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_FENCED = re.compile(r"```[a-zA-Z0-9_-]*[ \t]*\r?\n(.*?)(?:\r?\n[ \t]*```|\Z)", re.DOTALL)
_SPACE = re.compile(r"[ \t\r\n\ufeff\u00a0\u3000]*")
_NUMBER = re.compile(r"-?\d{1,32}(?:\.\d{1,32})?(?:[eE][+-]?\d{1,4})?(?![\w.])")
_WORD = re.compile(r"(true|false|null)(?!\w)", re.IGNORECASE)
_PYTHON_NONE = re.compile(r"None(?!\w)")
_ITEM_END = re.compile(r"\}(?=\s*,\s*\{)")
_STRINGS = json.JSONDecoder(strict=False)  # raw line breaks are allowed
_NOTHING = object()


@dataclass(frozen=True, slots=True)
class JsonReply:
    """The object in a reply. `cut_off`: it is incomplete; `damaged`: number of items that could not be read."""

    value: dict[str, Any]
    cut_off: bool = False
    damaged: int = 0


def read_object(text: str, key: str) -> JsonReply:
    """Return the object in a reply that has `key`; a bare list of objects counts as the value of `key`.

    Of several, the last one counts: models reason first and answer at the end.

    >>> read_object('Sure! ```json\\n{"memories": [{"a": 1,},]}\\n```', "memories").value
    {'memories': [{'a': 1}]}
    >>> read_object('{"memories": [{"a": 1}, {"a": 2', "memories")
    JsonReply(value={'memories': [{'a': 1}]}, cut_off=True, damaged=0)
    """
    if len(text) > MAX_LENGTH:
        raise LlmBadReply(f"the reply has {len(text):,} characters; the limit is {MAX_LENGTH:,}")
    answer = _THOUGHTS.sub("", text)
    if not answer.strip(" \t\r\n\ufeff"):
        raise LlmBadReply("the reply is empty" if not text.strip() else "the reply has reasoning but no answer")
    whole: list[JsonReply] = []
    partial: list[JsonReply] = []
    for part in (*_FENCED.findall(answer), answer):
        for found in _candidates(part, key):
            (partial if found.cut_off or found.damaged else whole).append(found)
        if whole:
            return whole[-1]
    if partial:
        return max(partial, key=lambda found: len(json.dumps(found.value)))
    raise LlmBadReply(f"the reply has no JSON object with {key!r}: it begins {_beginning(answer)!r}")


def _candidates(text: str, key: str) -> Iterator[JsonReply]:
    """Yield every object with the key in the text, from left to right, none inside another."""
    at = values = 0
    for _ in range(MAX_STARTS):
        brace = min((place for place in (text.find("{", at), text.find("[", at)) if place >= 0), default=-1)
        if brace < 0:
            return
        parser = _Parser(text, values)
        try:
            value, end = parser.value(brace, 0)
        except _Broken:
            value, end = None, 0
        values = parser.values
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            value = {key: value} if not any(key in item for item in value) else value[-1]
        if isinstance(value, dict) and key in value:
            yield JsonReply(value, cut_off=parser.cut_off, damaged=parser.damaged)
            at = end
        else:
            at = brace + 1


class _Broken(Exception):
    """The text is not JSON; `at` is the position of the error."""

    def __init__(self, at: int) -> None:
        self.at = at


class _CutOff(Exception):
    """The text ends in the middle of a value."""


class _Parser:
    """A JSON parser that allows extra commas and raw line breaks in strings. In the top object and its lists, a broken
    item is skipped and counted, and items before a cut are kept. Inside an item nothing is repaired: half an item may
    mean the opposite of the whole."""

    def __init__(self, text: str, values: int) -> None:
        self._text = text
        self.values = values  # read so far, by this and earlier parsers
        self.cut_off = False
        self.damaged = 0

    def value(self, at: int, depth: int) -> tuple[Any, int]:
        """Return the value at a position and its end."""
        try:
            return self._value(at, depth)
        except _CutOff:
            raise _Broken(len(self._text)) from None

    def _value(self, at: int, depth: int) -> tuple[Any, int]:
        at = self._skip(at)
        self.values += 1
        if self.values > MAX_VALUES:
            raise LlmBadReply(f"the reply has more than {MAX_VALUES:,} values")
        if depth > MAX_DEPTH:
            raise _Broken(at)
        first = self._peek(at)
        if first == "{":
            return self._object(at + 1, depth)
        if first == "[":
            return self._list(at + 1, depth)
        if first == '"':
            return self._string(at)
        return self._scalar(at)

    def _object(self, at: int, depth: int) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        try:
            at = self._skip(at)
            while self._peek(at) != "}":
                if self._peek(at) != '"':
                    raise _Broken(at)
                name, at = self._string(at)
                at = self._expect(":", at)
                value, at = self._value(at, depth + 1)
                if name in found and found[name] != value:
                    raise _Broken(at)  # ambiguous
                found[name] = value
                at = self._after_item("}", at)
        except _CutOff:
            if depth > 0:
                raise
            self.cut_off = True
            return found, len(self._text)
        return found, at + 1

    def _list(self, at: int, depth: int) -> tuple[list[Any], int]:
        found: list[Any] = []
        try:
            at = self._skip(at)
            while self._peek(at) != "]":
                value, at = self._item(at, depth)
                if value is not _NOTHING:
                    found.append(value)
                at = self._after_item("]", at)
        except _CutOff:
            if depth > 1:
                raise
            self.cut_off = True
            return found, len(self._text)
        return found, at + 1

    def _item(self, at: int, depth: int) -> tuple[Any, int]:
        try:
            return self._value(at, depth + 1)
        except _Broken as broken:
            if depth > 1 or self._peek(at) != "{":
                raise
            self.damaged += 1
            its_end = _ITEM_END.search(self._text, broken.at)
            if its_end is None:
                raise _CutOff from None
            return _NOTHING, its_end.end()

    def _after_item(self, closing: str, at: int) -> int:
        """Skip one or more commas, to the next item or the closing bracket."""
        at = self._skip(at)
        if self._peek(at) not in (closing, ","):
            raise _Broken(at)
        while self._peek(at) == ",":
            at = self._skip(at + 1)
        return at

    def _string(self, at: int) -> tuple[str, int]:
        try:
            found, end = _STRINGS.raw_decode(self._text, at)
        except json.JSONDecodeError as error:
            unfinished = error.msg.startswith("Unterminated") or len(self._text) - error.pos <= len("uXXXX")
            raise (_CutOff if unfinished else _Broken(at)) from None
        try:
            found.encode()
        except UnicodeEncodeError:
            raise _Broken(at) from None
        if "\x00" in found:
            raise _Broken(at)
        return found, end

    def _scalar(self, at: int) -> tuple[Any, int]:
        number = _NUMBER.match(self._text, at)
        if number:
            if number.end() == len(self._text):
                raise _CutOff  # more digits may have followed
            written = number.group()
            if written.lstrip("-").isdigit():
                return int(written), number.end()
            if isfinite(float(written)):
                return float(written), number.end()
            raise _Broken(at)
        word = _WORD.match(self._text, at)
        if word:
            return json.loads(word.group().lower()), word.end()
        none = _PYTHON_NONE.match(self._text, at)
        if none:
            return None, none.end()
        if len(self._text) - at < 5 and self._text[at:].isalpha():
            raise _CutOff
        raise _Broken(at)

    def _expect(self, mark: str, at: int) -> int:
        at = self._skip(at)
        if self._peek(at) != mark:
            raise _Broken(at)
        return at + 1

    def _skip(self, at: int) -> int:
        found = _SPACE.match(self._text, at)
        return found.end() if found else at

    def _peek(self, at: int) -> str:
        if at >= len(self._text):
            raise _CutOff
        return self._text[at]


def _beginning(text: str) -> str:
    line = " ".join(text[:200].split())
    return line if len(line) <= 60 else line[:60] + "…"
