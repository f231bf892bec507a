"""The values of a JSON file one after the other: the elements of a list, or objects line by line (JSONL).

An export has hundreds of megabytes; only the conversation at hand is in memory.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import IO, Any

from ...errors import InvalidInput

CHUNK = 1 << 16
# After a cut in the middle, decoding fails this near to the end, unless it stands in a string.
_NEAR_THE_END = 16
_UNTERMINATED = "Unterminated string"
_OF_NUMBERS = "0123456789.eE+-"
_SPACE = re.compile(r"[ \t\r\n]*")


def json_values(stream: IO[str], name: str) -> Iterator[tuple[str, Any]]:
    """Each value with its place: `chats.json, [17]` in a list, `chats.jsonl, line 17` where values stand in a row."""
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
            what = f"{following!r} in place of a comma" if following else "the list does not end: the file is cut short"
            raise InvalidInput(f"{name}, line {window.line}", f"is not JSON: {what}")
    window.skip("]")
    if window.peek():
        raise InvalidInput(f"{name}, line {window.line}", "is not JSON: something follows after the list")


class _Window:
    """The part of the file that is being decoded. It grows by doubling, so each character is read few times."""

    def __init__(self, stream: IO[str], name: str) -> None:
        self._stream = stream
        self._name = name
        self._text = ""
        self._at = 0
        self._ended = False
        self._decode = json.JSONDecoder().raw_decode
        self.line = 1

    def peek(self) -> str:
        """The next character that is no space, or nothing at the end."""
        while True:
            end = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]  # it matches nothing, too
            self._go_to(end)
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def skip(self, mark: str) -> None:
        self._go_to(self._at + len(mark))

    def value(self, place: str) -> Any:
        while True:
            try:
                found, end = self._decode(self._text, self._at)
            except json.JSONDecodeError as error:
                cut = error.msg.startswith(_UNTERMINATED) or error.pos > len(self._text) - _NEAR_THE_END
                if not (cut and self._more()):
                    line = self.line + self._text.count("\n", self._at, error.pos)
                    raise InvalidInput(place, f"is not JSON (line {line:,}): {error.msg}") from None
            except (ValueError, RecursionError) as error:  # a number of 5,000 digits, lists in lists in lists …
                raise InvalidInput(place, f"cannot be read: {error}") from None
            else:
                goes_on = end == len(self._text) or (isinstance(found, (int, float)) and self._text[end] in _OF_NUMBERS)
                if not (goes_on and self._more()):  # 12 may be the beginning of 123, or of 12.5e-7
                    self._go_to(end)
                    return found

    def _go_to(self, at: int) -> None:
        self.line += self._text.count("\n", self._at, at)
        self._at = at

    def _more(self) -> bool:
        """Read on; what was used is let go."""
        if self._ended:
            return False
        rest = self._text[self._at :]
        read = self._stream.read(max(CHUNK, len(rest)))
        self._ended = not read
        self._text = rest + read
        self._at = 0
        return bool(read)
