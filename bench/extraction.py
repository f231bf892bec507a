"""`python -m bench.extraction`: precision and recall of extracted memories on annotated conversations."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.table import Table

from jiyi import Memory
from jiyi.settings import load_settings

from .console import plural, print_json, printable, progress_bars, run, stdout, table
from .extraction_corpus import load_corpus
from .extraction_scoring import COUNTED, Judged, Missed, MomentError, Outcome, measure_memory

ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    language: str
    memory_type: str
    made: int
    right: int
    expected: int
    found: int

    @property
    def precision(self) -> float | None:
        return self.right / self.made if self.made else None

    @property
    def recall(self) -> float | None:
        return self.found / self.expected if self.expected else None

    @property
    def f1(self) -> float | None:
        if self.precision is None or self.recall is None:
            return None
        return 2 * self.precision * self.recall / (self.precision + self.recall) if self.right and self.found else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Never:
    """Forbidden memories and the number of those that were made."""

    language: str
    forbidden: int
    made: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionReport:
    conversations: int
    rows: tuple[Row, ...]
    never: tuple[Never, ...]
    checks: int | None  # of memories at a given time; None: not checked
    moment_errors: tuple[MomentError, ...]
    missed: tuple[Missed, ...]
    false: tuple[Judged, ...]


def summarise(outcomes: Sequence[Outcome]) -> ExtractionReport:
    checked = [one for one in outcomes if one.moment_errors is not None]
    return ExtractionReport(
        conversations=len(outcomes),
        rows=tuple(_rows(outcomes)),
        never=tuple(_never(outcomes)),
        checks=sum(len(at.expect) + len(at.absent) for one in checked for at in one.conversation.as_of)
        if checked
        else None,
        moment_errors=tuple(error for one in checked for error in one.moment_errors or ()),
        missed=tuple(entry for one in outcomes for entry in one.missed),
        false=tuple(entry for one in outcomes for entry in one.judged if entry.verdict in ("forbidden", "wrong")),
    )


def _languages(outcomes: Sequence[Outcome]) -> list[str]:
    return [*sorted({one.conversation.language for one in outcomes}), ALL]


def _rows(outcomes: Sequence[Outcome]) -> Iterator[Row]:
    """Count a memory under its own type, an expected one under the first of its types."""
    for language in _languages(outcomes):
        here = [one for one in outcomes if language in (ALL, one.conversation.language)]
        for memory_type in (*COUNTED, ALL):
            made = [entry for one in here for entry in one.judged if memory_type in (ALL, entry.found.memory_type)]
            expected = [
                entry for one in here for entry in one.conversation.expected if memory_type in (ALL, entry.type[0])
            ]
            missed = [entry for one in here for entry in one.missed if memory_type in (ALL, entry.expected.type[0])]
            if made or expected:
                yield Row(
                    language=language,
                    memory_type=memory_type,
                    made=len(made),
                    right=sum(entry.verdict in ("expected", "also fine") for entry in made),
                    expected=len(expected),
                    found=len(expected) - len(missed),
                )


def _never(outcomes: Sequence[Outcome]) -> Iterator[Never]:
    for language in _languages(outcomes):
        here = [one for one in outcomes if language in (ALL, one.conversation.language)]
        yield Never(
            language=language,
            forbidden=sum(len(one.conversation.never) for one in here),
            made=sum(len(one.forbidden) for one in here),
        )


# -- output ---------------------------------------------------------------------------------------------------------


def print_report(report: ExtractionReport, *, mistakes: bool) -> None:
    console = stdout()
    console.print(_table(report))
    console.print(_notes(report), soft_wrap=True)
    if mistakes:
        console.print(_mistakes(report), soft_wrap=True)


def _table(report: ExtractionReport) -> Table:
    shown = table("language", "type", "made", "right", "precision", "expected", "found", "recall", "F1")
    for row in report.rows:
        shares = [row.precision, row.recall, row.f1]
        precision, recall, f1 = ("–" if share is None else f"{100 * share:.1f}" for share in shares)
        shown.add_row(
            row.language, row.memory_type, str(row.made), str(row.right), precision, str(row.expected), str(row.found),
            recall, f1, style="bold" if row.memory_type == ALL else "",
        )  # fmt: skip
    return shown


def _notes(report: ExtractionReport) -> str:
    lines = [plural(report.conversations, "conversation")]
    lines += [f"{row.language}: {row.made} of {row.forbidden} forbidden memories were made" for row in report.never]
    if report.checks:
        errors = plural(len(report.moment_errors), "error")
        lines.append(f"memories at a given time: {plural(report.checks, 'check')}, {errors}")
    return "\n".join(lines)


def _mistakes(report: ExtractionReport) -> str:
    lines = ["", "MISSED"]
    for miss in report.missed:
        wanted = " + ".join("/".join(group[:4]) for group in miss.expected.must_contain)
        day = f" [{miss.expected.date}]" if miss.expected.date else ""
        lines.append(f"{miss.conversation} {'|'.join(miss.expected.type)}: {wanted}{day}  ← {miss.text}")
    lines += ["", "FALSE"]
    for false in report.false:
        sources = ",".join(map(str, false.found.messages))
        lines.append(
            f"{false.conversation} {false.verdict} {false.found.memory_type}: {false.found.content}  ← [{sources}]"
        )
    lines += ["", "AT A GIVEN TIME"]
    lines += [f"{error.conversation} {error.at:%Y-%m-%d %H:%M}: {error.problem}" for error in report.moment_errors]
    return "\n".join(map(printable, lines))


def as_json(report: ExtractionReport) -> dict[str, object]:
    return {
        "conversations": report.conversations,
        "rows": [
            {**asdict(row), "precision": row.precision, "recall": row.recall, "f1": row.f1} for row in report.rows
        ],
        "never": [asdict(row) for row in report.never],
        "checks": report.checks,
        "moment_errors": [{**asdict(error), "at": error.at.isoformat()} for error in report.moment_errors],
        "missed": [
            {
                "conversation": miss.conversation,
                "type": miss.expected.type,
                "must_contain": miss.expected.must_contain,
                "date": miss.expected.date,
                "text": miss.text,
            }
            for miss in report.missed
        ],
        "false": [
            {
                "conversation": false.conversation,
                "verdict": false.verdict,
                "type": false.found.memory_type,
                "content": false.found.content,
                "from": false.found.messages,
            }
            for false in report.false
        ],
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.extraction", description=__doc__)
    add = parser.add_argument
    add("--data", action="append", required=True, type=Path, metavar="FILE|DIR", help="annotated conversations")
    add("--embedder", metavar="NAME", help="builtin, openai:MODEL or sentence-transformers:MODEL (default: settings)")
    add("--show", action="store_true", help="also list missed and false memories")
    add("--json", action="store_true", help="print JSON")
    given = parser.parse_args(arguments)
    return run(lambda: _run(given))


def _run(given: argparse.Namespace) -> None:
    settings = load_settings(**({} if given.embedder is None else {"embedder": given.embedder}))
    corpus = load_corpus(given.data)

    async def measure() -> list[Outcome]:
        with tempfile.TemporaryDirectory(prefix="jiyi-bench-") as folder, progress_bars() as report:
            async with Memory.open(Path(folder) / "memory.db", settings=settings) as memory:
                return await measure_memory(corpus, memory, report)

    result = summarise(asyncio.run(measure()))
    if given.json:
        print_json(as_json(result))
    else:
        print_report(result, mistakes=given.show)


if __name__ == "__main__":
    sys.exit(main())
