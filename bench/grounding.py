"""`python -m bench.grounding`: an imaginary model proposes true and false memories. Which are stored?"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from jiyi.roles import is_person
from jiyi.write.drafts import Draft, Said, Unit
from jiyi.write.llm.proposals import Proposals
from jiyi.write.llm.transcript import transcript

from .console import run

FILE = Path(__file__).parent / "data" / "reader" / "grounding.jsonl.gz"
ASSISTANTS = ("assistant", "助手")
USERS = ("user", "用户")


@dataclass(frozen=True, slots=True)
class Snippet:
    """Messages with memories that they support and that they do not."""

    unit: Unit
    true: tuple[str, ...]
    false: tuple[str, ...]

    def proposals(self) -> list[dict[str, Any]]:
        """Propose all memories, each with the message of a person that shares most words with it as its quote."""
        told = [(at, said) for at, said in enumerate(self.unit.messages, 1) if is_person(said.role)]
        return [self._proposal(text, told) for text in (*self.true, *self.false)]

    @staticmethod
    def _proposal(text: str, told: Sequence[tuple[int, Said]]) -> dict[str, Any]:
        at, said = max(told, key=lambda one: len(_words(one[1].text) & _words(text)))
        return {"messages": [at], "quote": said.text[:900], "type": "fact", "text": text}


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z0-9']+|[\u4e00-\u9fff]", text.lower()))


def load(path: Path = FILE) -> Iterator[Snippet]:
    """Read records `{"at", "messages": ["name: text"], "true": [text], "false": [text]}`, one in each line."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        for record in map(json.loads, filter(str.strip, lines)):
            at = datetime.fromisoformat(record["at"]).replace(hour=9, tzinfo=UTC)
            messages = tuple(_said(number, line, at) for number, line in enumerate(record["messages"]))
            if any(is_person(said.role) for said in messages):
                unit = Unit(id="u", messages=messages, user_id="u")
                yield Snippet(unit, tuple(record["true"]), tuple(record["false"]))


def _said(number: int, line: str, at: datetime) -> Said:
    name, colon, text = line.partition(": ")
    role = "assistant" if name.lower() in ASSISTANTS else "user"
    speaker = name if colon and name.lower() not in (*ASSISTANTS, *USERS) else None
    sent_at = at + timedelta(minutes=number)
    return Said(id=f"m{number}", role=role, speaker=speaker, text=text if colon else line, sent_at=sent_at)


def stored(snippet: Snippet) -> list[Draft]:
    """Return the memories of a snippet that are stored."""
    talk = transcript(snippet.unit)
    return [] if talk is None else Proposals(talk, {"extractor": "llm"}).memories(snippet.proposals())[0]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.grounding", description=__doc__)
    parser.add_argument("--data", type=Path, default=FILE, metavar="FILE", help="snippets; by default our own")
    given = parser.parse_args(arguments)
    return run(lambda: _run(given))


def _run(given: argparse.Namespace) -> None:
    counted: Counter[tuple[bool, bool]] = Counter()
    for snippet in load(given.data):
        texts = {draft.content for draft in stored(snippet)}
        counted.update((True, text in texts) for text in snippet.true)
        counted.update((False, text in texts) for text in snippet.false)
    for true in (True, False):
        number = counted[true, True] + counted[true, False]
        share = 100 * counted[true, True] / number
        print(f"{'true' if true else 'false':6s}{number:6d} proposed, {share:5.1f} % stored")


if __name__ == "__main__":
    sys.exit(main())
