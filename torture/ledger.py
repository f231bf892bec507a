"""Log of acknowledgements, separate from the store, and the contents that it implies.

A line is written before a call, with the request, and another after it returned. Each is one appending write, so that
it exists completely or not at all even if the process is killed.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .trial import Promise


class Log:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(self, **line: Any) -> None:
        os.write(self._file, (json.dumps(line, ensure_ascii=False) + "\n").encode())

    def read(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.path.read_text("utf-8").splitlines()]


@dataclass
class Kept:
    """One acknowledged memory."""

    user: str
    texts: set[str]  # possible contents: several after an interrupted change
    may_be_gone: bool = False
    gone: bool = False


@dataclass
class Said:
    """The statement or messages of one `add`."""

    user: str
    texts: tuple[str, ...]
    done: bool = False
    has_ids: bool = False  # its memories are tracked by id
    may_be_gone: bool = False


@dataclass
class Ledger:
    """The contents of a log."""

    kept: dict[str, Kept] = field(default_factory=dict)  # by id
    said: dict[str, Said] = field(default_factory=dict)  # by slot, a word in its texts
    unknown: dict[str, dict[str, Any]] = field(default_factory=dict)  # by user: unacknowledged request
    acknowledged: int = 0

    @classmethod
    def of(cls, lines: Iterable[dict[str, Any]]) -> Ledger:
        ledger = cls()
        for line in lines:
            ledger._take(line)
        return ledger

    def _take(self, line: dict[str, Any]) -> None:
        verb, done, user = line["verb"], line["done"], line["user"]
        if done:
            self.acknowledged += 1
            self.unknown.pop(user, None)
        else:
            self.unknown[user] = line
        if verb in ("say", "talk"):
            said = self.said.setdefault(line["slot"], Said(user, tuple(line["texts"])))
            said.done, said.has_ids = done, "ids" in line
            for memory_id, text in zip(line.get("ids", ()), line["texts"], strict=False):
                self.kept.setdefault(memory_id, Kept(user, {text}))
        elif verb == "change":
            one = self.kept[line["id"]]
            one.texts = {line["text"]} if done else {*one.texts, line["text"]}
        elif verb == "drop":
            self.kept[line["id"]].may_be_gone = True
            self.kept[line["id"]].gone = done
        elif verb == "forget":
            for said in self.said.values():
                said.may_be_gone |= said.user == user
            for one in self.kept.values():
                if one.user == user:
                    one.may_be_gone, one.gone = True, done or one.gone

    def of_user(self, user: str) -> list[str]:
        return [memory_id for memory_id, one in self.kept.items() if one.user == user and not one.may_be_gone]


Row = tuple[str, str, str, str]  # user, id, content, status


def rows(path: Path) -> list[Row]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT user_id, id, content, status FROM memories").fetchall()


def compared(ledger: Ledger, there: Iterable[Row]) -> Iterator[tuple[Promise, str]]:
    """Yield differences: lost, duplicate, torn, reappeared, or with the wrong user."""
    there = list(there)
    by_id = {memory_id: (user, content) for user, memory_id, content, _ in there}
    for memory_id, one in ledger.kept.items():
        user, content = by_id.get(memory_id, ("", ""))
        if not user and not one.may_be_gone:
            yield "lost", f"{memory_id} of {one.user}, {sorted(one.texts)}, was acknowledged"
        elif user and one.gone:
            yield "false success", f"{memory_id} of {one.user} was deleted, and is there"
        elif user and user != one.user:
            yield "leak", f"{memory_id} of {one.user} belongs to {user}"
        elif user and content not in one.texts:
            yield "torn", f"{memory_id} of {one.user} says {content!r} and not one of {sorted(one.texts)}"
    often = Counter((user, content) for user, _, content, status in there if status == "active")
    for (user, content), count in often.items():
        if count > 1:
            yield "twice", f"{content!r} of {user} is there {count} times"
    present = {(user, content) for user, _, content, _ in there}
    for slot, said in ledger.said.items():
        if said.has_ids or said.may_be_gone:
            continue
        found = sum((said.user, text) in present for text in said.texts)
        if found not in (0, len(said.texts)):
            yield "torn", f"{slot} of {said.user}: {found} of {len(said.texts)} messages are there"
        elif said.done and not found:
            yield "lost", f"{slot} of {said.user} was acknowledged"
