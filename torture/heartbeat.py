"""`python -m torture.heartbeat URL …`: ask servers every 20 ms whether they answer, in a process of its own.

A line on stdin asks for the longest time in seconds that each URL took since the line before, which the answer on
stdout gives as a JSON list. A request without an answer counts for as long as it waits.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
from time import monotonic, sleep
from typing import Self
from urllib.parse import urlsplit

EVERY_S = 0.02


class Pulse(threading.Thread):
    """Asks one server."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self._url = urlsplit(url)
        self._longest = 0.0
        self._asked_at: float | None = None

    def run(self) -> None:
        link = http.client.HTTPConnection(self._url.netloc)
        while True:
            self._asked_at = monotonic()
            try:
                link.request("GET", self._url.path)
                link.getresponse().read()
            except (OSError, http.client.HTTPException):
                link.close()
                self._asked_at = None  # it ends, or is not there yet
                sleep(EVERY_S)
                continue
            took, self._asked_at = monotonic() - self._asked_at, None
            self._longest = max(self._longest, took)
            sleep(max(0.0, EVERY_S - took))

    def longest(self) -> float:
        asked_at, longest = self._asked_at, self._longest
        self._longest = 0.0
        return max(longest, 0.0 if asked_at is None else monotonic() - asked_at)


class Heartbeat:
    """The process, as the trial sees it."""

    def __init__(self, *urls: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "torture.heartbeat", *urls], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def longest(self) -> list[float]:
        """Return the longest time that each URL took since the last call."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        found: list[float] = json.loads(self._process.stdout.readline())
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()


def main() -> None:
    pulses = [Pulse(url) for url in sys.argv[1:]]
    for pulse in pulses:
        pulse.start()
    for _ in sys.stdin:
        print(json.dumps([pulse.longest() for pulse in pulses]), flush=True)


if __name__ == "__main__":
    main()
