"""`python -m bench.grounding`: an imaginary model proposes true and false memories, and verifies them nine times of ten
rightly. Which are stored, and which with a confidence of 0.6 or more?"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from jiyi.errors import LlmBadReply
from jiyi.llm import LLMRequest, Reply
from jiyi.llm.client import LLMClient
from jiyi.models import UNSURE
from jiyi.roles import is_person
from jiyi.settings import LLMSettings
from jiyi.write.drafts import Said, Unit
from jiyi.write.llm import SupportCheck, llm_drafts

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


class Imaginary:
    """A model that proposes all memories of a snippet and, asked once more, judges nine of ten of them rightly."""

    id = "bench:imaginary"

    def __init__(self, snippet: Snippet, random: Random, accuracy: float) -> None:
        self._snippet = snippet
        self._random = random
        self._accuracy = accuracy

    async def reply(self, request: LLMRequest) -> Reply:
        answer: dict[str, Any] = {request.task: []}
        if request.task == "memories":
            answer = {"memories": self._snippet.proposals()}
        elif request.task == "verify":
            notes = re.findall(r"^\[(\d+)\] (.*)$", request.user.rpartition("\n\n")[0], re.MULTILINE)
            false = {" ".join(text.split()) for text in self._snippet.false}
            listed = {int(number): text for number, text in notes if not text.startswith("(")}  # messages have a time
            answer = {"unsupported": [n for n, text in listed.items() if (text in false) == self._is_right()]}
        return Reply(text=json.dumps(answer), cut_off=False, usage=None)

    def _is_right(self) -> bool:
        return self._random.random() < self._accuracy

    async def close(self) -> None:
        """Nothing is open."""


async def stored(snippet: Snippet, random: Random, accuracy: float | None) -> dict[str, float]:
    """Return the memories of a snippet that are stored, with their confidence."""

    async def verifies() -> bool:
        return accuracy is not None

    llm = LLMClient(Imaginary(snippet, random, accuracy or 0.0), LLMSettings())
    try:
        found = await llm_drafts(snippet.unit, llm, SupportCheck(verify=verifies))
    except LlmBadReply:  # nothing is stored
        return {}
    return {draft.content: draft.confidence for draft in found.drafts}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.grounding", description=__doc__)
    parser.add_argument("--data", type=Path, default=FILE, metavar="FILE", help="snippets; by default our own")
    parser.add_argument("--accuracy", type=float, default=0.9, help="share of its memories that it verifies rightly")
    parser.add_argument("--unverified", action="store_true", help="do not ask it once more")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    return run(lambda: asyncio.run(_run(given)))


async def _run(given: argparse.Namespace) -> None:
    random, accuracy = Random(given.seed), None if given.unverified else given.accuracy
    counted: Counter[tuple[bool, str]] = Counter()
    for snippet in load(given.data):
        found = await stored(snippet, random, accuracy)
        for label, texts in ((True, snippet.true), (False, snippet.false)):
            known = [found[text] for text in texts if text in found]
            counted[label, "proposed"] += len(texts)
            counted[label, "stored"] += len(known)
            counted[label, "sure"] += sum(confidence >= UNSURE for confidence in known)
    for label in (True, False):
        number = counted[label, "proposed"]
        share, sure = (100 * counted[label, name] / max(number, 1) for name in ("stored", "sure"))
        name = "true" if label else "false"
        print(
            f"{name:6s}{number:6d} proposed, {share:5.1f} % stored, {sure:5.1f} % with a confidence of {UNSURE} or more"
        )


if __name__ == "__main__":
    sys.exit(main())
