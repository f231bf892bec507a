"""`python -m bench.grounding`: proposals of an imaginary language model, true and false ones; which are stored?"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from jiyi.write.drafts import Said, Unit
from jiyi.write.llm.extract import Checker
from jiyi.write.llm.transcript import transcript

from .console import run

FILE = Path(__file__).parent / "data" / "grounding.txt"
AT = datetime(2025, 3, 10, 9, tzinfo=UTC)
ASSISTANTS = ("Assistant", "助手")


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposal for a conversation; `fault` is None if it is true. `cut` is its true part, which may be stored."""

    unit: Unit
    quote: str
    text: str
    fault: str | None
    cut: str | None = None

    def is_wrong(self, stored: str | None) -> bool:
        """Return True if this must not be stored, or if a true proposal is lost."""
        return stored is None if self.fault is None else stored not in (None, self.cut)

    def stored(self) -> tuple[str | None, str | None]:
        """Return the text that is stored, or the reason why there is none."""
        talk = transcript(self.unit)
        if talk is None:
            return None, "nobody says anything"
        speaker = next(said.speaker for said in self.unit.messages if said.role == "user")
        numbers = [at for at, said in enumerate(self.unit.messages, 1) if self.quote in said.text]
        given = {"messages": numbers, "quote": self.quote, "type": "fact", "text": self.text, "subject": speaker}
        drafts, rejected = Checker(talk, (), {"extractor": "llm"}).memories([given])
        return (drafts[0].content, None) if drafts else (None, rejected[0].reason)


@dataclass(slots=True)
class _Talk:
    messages: list[Said] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


def load(path: Path = FILE) -> Iterator[Proposal]:
    talk = _Talk()
    for line in [*path.read_text(encoding="utf-8").splitlines(), ""]:
        if line.startswith("> "):
            name, _, text = line[2:].partition(": ")
            at = len(talk.messages)
            role, speaker = ("assistant", None) if name in ASSISTANTS else ("user", name)
            sent_at = AT + timedelta(seconds=40 * at)
            talk.messages.append(Said(id=f"m{at}", role=role, speaker=speaker, text=text, sent_at=sent_at))
        elif line.startswith(("+ ", "- ")):
            talk.lines.append(line)
        elif not line:
            unit = Unit(id="u", messages=tuple(talk.messages), user_id="u")
            for one in talk.lines:
                proposed, _, cut = one[2:].partition(" => ")
                *fault, quote, text = (part.strip() for part in proposed.split(" | "))
                yield Proposal(unit, quote, text, fault[0] if fault else None, cut.strip() or None)
            talk = _Talk()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.grounding", description=__doc__)
    parser.add_argument("--data", type=Path, default=FILE, metavar="FILE", help="proposals; by default our own")
    parser.add_argument("--show", action="store_true", help="print each wrong decision")
    given = parser.parse_args(arguments)
    return run(lambda: _run(given))


def _run(given: argparse.Namespace) -> None:
    counted: Counter[tuple[str, bool]] = Counter()
    for one in load(given.data):
        stored, reason = one.stored()
        outcome = "refused" if stored is None else "cut" if stored == one.cut else "stored"
        counted[one.fault or "true", outcome] += 1
        if given.show and one.is_wrong(stored):
            print(f"{one.fault or 'true'}: {one.quote} | {one.text} -> {stored or reason}")
    for kind in sorted({kind for kind, _ in counted}):
        numbers = {outcome: counted[kind, outcome] for outcome in ("stored", "cut", "refused")}
        shown = ", ".join(f"{number:3d} {outcome}" for outcome, number in numbers.items())
        print(f"{kind:14s}{sum(numbers.values()):4d} proposed, {shown}")
    false = sum(number for (kind, outcome), number in counted.items() if outcome == "stored" and kind != "true")
    print(f"false ones stored: {false} of {sum(n for (kind, _), n in counted.items() if kind != 'true')}")


if __name__ == "__main__":
    sys.exit(main())
