"""The text of a model's reply, read from its bytes while they pass."""

import json
from typing import Any

from ..agents.chat import text_of_reply
from ..agents.openai import text_of_event
from ..errors import InvalidInput
from ..validation import MAX_TEXT

MAX_BYTES = 8 * 1024 * 1024  # of a reply, or of one event; a longer one is passed on but not read


class ObservedReply:
    """Collects the text of a reply, streamed (server-sent events) or not."""

    def __init__(self, *, streamed: bool) -> None:
        self._streamed = streamed
        self._unread = bytearray()
        self._parts: list[str] = []
        self._length = 0  # of all parts
        self._too_long = False

    def feed(self, data: bytes) -> None:
        if self._too_long:
            return
        if self._streamed:
            *lines, data = data.split(b"\n")  # only the new bytes: an endless line would be searched again and again
            for line in lines:
                self._read_line(bytes(self._unread + line))
                self._unread.clear()
        self._unread += data
        if len(self._unread) > MAX_BYTES:
            self._too_long = True
            self._unread.clear()

    def text(self) -> str:
        """Return the text so far, as long as a message can be."""
        if self._streamed:
            return "".join(self._parts)[:MAX_TEXT]
        return "" if self._too_long else _text_of(_parsed(bytes(self._unread)))[:MAX_TEXT]

    def _read_line(self, line: bytes) -> None:
        if line.startswith(b"data:"):
            event = _parsed(line[5:].strip())
            if isinstance(event, dict) and self._length < MAX_TEXT:
                self._parts.append(text_of_event(event))
                self._length += len(self._parts[-1])


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _text_of(reply: Any) -> str:
    if isinstance(reply, dict) and isinstance(reply.get("output"), list):  # Responses
        messages = [one for one in reply["output"] if isinstance(one, dict) and one.get("type") == "message"]
        return "".join(_text_of(message) for message in messages)
    try:
        return text_of_reply(reply)
    except (InvalidInput, AttributeError, IndexError, KeyError, TypeError):  # a tool call, or no reply at all
        return ""
