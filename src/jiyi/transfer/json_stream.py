"""Stream the values of a JSON list or a JSONL file, so that exports of any size fit into memory."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import IO, Any

from ..errors import InvalidInput

Values = Iterable[tuple[str, Any]]  # each with its place in the file

CHUNK = 1 << 16
# Decoding a truncated value fails within this distance of the end, unless it ends inside a string.
_NEAR_THE_END = 16
_UNTERMINATED = "Unterminated string"
_NUMBER_CHARACTERS = "0123456789.eE+-"
_SPACE = re.compile(r"[ \t\r\n]*")


def json_values(stream: IO[str], name: str) -> Iterator[tuple[str, Any]]:
    """Yield each value with its place: `chats.json, [17]` in a list, `chats.jsonl, line 17` in JSONL."""
    window = _Window(stream, name)
    try:
        first = window.peek()
        if first == "":
            raise InvalidInput(name, "is empty")
        if first == "[":
            yield from _elements(window, name)
        else:
            while window.peek():
                place = f"{name}, line {window.line}"
                yield place, window.value(place)
    except UnicodeDecodeError as error:
        raise InvalidInput(name, f"is not UTF-8 (after line {window.line:,}): {error.reason}") from None


def _elements(window: _Window, name: str) -> Iterator[tuple[str, Any]]:
    window.skip("[")
    at = 0
    while window.peek() != "]":
        place = f"{name}, [{at}]"
        yield place, window.value(place)
        at += 1
        following = window.peek()
        if following == ",":
            window.skip(",")
            if window.peek() == "]":
                raise InvalidInput(f"{name}, line {window.line}", "is not JSON: a comma before the end of the list")
        elif following != "]":
            what = f"{following!r} instead of a comma" if following else "the list does not end: the file is truncated"
            raise InvalidInput(f"{name}, line {window.line}", f"is not JSON: {what}")
    window.skip("]")
    if window.peek():
        raise InvalidInput(f"{name}, line {window.line}", "is not JSON: there is text after the list")


class _Window:
    """The part of the file being decoded. It grows by doubling, so each character is decoded only a few times."""

    def __init__(self, stream: IO[str], name: str) -> None:
        self._stream = stream
        self._name = name
        self._text = ""
        self._at = 0
        self._ended = False
        self._decode = json.JSONDecoder().raw_decode
        self.line = 1

    def peek(self) -> str:
        """Return the next non-space character, or "" at the end."""
        while True:
            end = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]  # it also matches ""
            self._advance_to(end)
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def skip(self, mark: str) -> None:
        self._advance_to(self._at + len(mark))

    def value(self, place: str) -> Any:
        while True:
            try:
                found, end = self._decode(self._text, self._at)
            except json.JSONDecodeError as error:
                cut = error.msg.startswith(_UNTERMINATED) or error.pos > len(self._text) - _NEAR_THE_END
                if not (cut and self._more()):
                    line = self.line + self._text.count("\n", self._at, error.pos)
                    raise InvalidInput(place, f"is not JSON (line {line:,}): {error.msg}") from None
            except (ValueError, RecursionError) as error:  # too many digits, or nested too deeply
                raise InvalidInput(place, f"cannot be read: {error}") from None
            else:
                incomplete = end == len(self._text) or (
                    isinstance(found, (int, float)) and self._text[end] in _NUMBER_CHARACTERS
                )
                if not (incomplete and self._more()):  # 12 may be the start of 123 or 12.5e-7
                    self._advance_to(end)
                    return found

    def _advance_to(self, at: int) -> None:
        self.line += self._text.count("\n", self._at, at)
        self._at = at

    def _more(self) -> bool:
        """Read another chunk and drop the decoded text."""
        if self._ended:
            return False
        rest = self._text[self._at :]
        read = self._stream.read(max(CHUNK, len(rest)))
        self._ended = not read
        self._text = rest + read
        self._at = 0
        return bool(read)
