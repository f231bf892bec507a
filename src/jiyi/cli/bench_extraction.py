"""`jiyi bench extraction`: what is remembered of written conversations, and what should have been."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from .bench_parts import bars, table
from .output import counted, emit, out, plain

if TYPE_CHECKING:
    from rich.table import Table

    from ..evaluate.extraction_results import ExtractionResult
    from ..settings import Settings


def extraction(data: list[Path], settings: Settings, *, show: bool, as_json: bool) -> None:
    from ..evaluate.corpus import load_corpus
    from ..evaluate.extraction import measure_memory
    from ..evaluate.extraction_results import summarise_extraction
    from ..memory import Memory

    corpus = load_corpus(data)

    async def measure() -> ExtractionResult:
        with tempfile.TemporaryDirectory(prefix="jiyi-bench-") as folder, bars() as progress:
            async with Memory.open(Path(folder) / "memory.db", settings=settings) as memory:
                return summarise_extraction(await measure_memory(corpus, memory, progress))

    result = asyncio.run(measure())
    if as_json:
        emit(_dumped(result))
        return
    console = out()
    console.print(_figures(result))
    console.print(_facts(result), soft_wrap=True)
    if show:
        console.print(_shown(result), soft_wrap=True)


def _figures(result: ExtractionResult) -> Table:
    shown = table("language", "type", "made", "right", "precision", "expected", "found", "recall", "F1")
    for row in result.rows:
        shares = [row.precision, row.recall, row.f1]
        precision, recall, f1 = ("–" if share is None else f"{100 * share:.1f}" for share in shares)
        shown.add_row(
            row.language, row.memory_type, str(row.made), str(row.right), precision, str(row.expected), str(row.found),
            recall, f1, style="bold" if row.memory_type == "all" else "",
        )  # fmt: skip
    return shown


def _facts(result: ExtractionResult) -> str:
    lines = [counted(result.conversations, "conversation", "conversations")]
    lines += [
        f"{row.language}: {row.remembered} of {counted(row.things, 'thing', 'things')} that must not be remembered were"
        for row in result.never
    ]
    if result.checks:
        wrong = counted(len(result.slips), "slip", "slips")
        lines.append(f"what holds at a moment: {counted(result.checks, 'check', 'checks')}, {wrong}")
    return "\n".join(lines)


def _shown(result: ExtractionResult) -> str:
    """Every mistake, for those who look for its cause."""
    lines = ["", "MISSED"]
    for miss in result.missed:
        wanted = " + ".join("/".join(group[:4]) for group in miss.expected.must_contain)
        about = f" [{miss.expected.date}]" if miss.expected.date else ""
        lines.append(f"{miss.conversation} {'|'.join(miss.expected.type)}: {wanted}{about}  ← {miss.text}")
    lines += ["", "FALSE"]
    for false in result.false:
        came_from = ",".join(map(str, false.found.messages))
        lines.append(
            f"{false.conversation} {false.verdict} {false.found.memory_type}: {false.found.content}  ← [{came_from}]"
        )
    lines += ["", "AT A MOMENT"]
    lines += [f"{slip.conversation} {slip.at:%Y-%m-%d %H:%M}: {slip.problem}" for slip in result.slips]
    return "\n".join(map(plain, lines))


def _dumped(result: ExtractionResult) -> dict[str, object]:
    rows = [{**asdict(row), "precision": row.precision, "recall": row.recall, "f1": row.f1} for row in result.rows]
    missed = [
        {
            "conversation": miss.conversation,
            "type": miss.expected.type,
            "must_contain": miss.expected.must_contain,
            "date": miss.expected.date,
            "text": miss.text,
        }
        for miss in result.missed
    ]
    false = [
        {
            "conversation": entry.conversation,
            "verdict": entry.verdict,
            "type": entry.found.memory_type,
            "content": entry.found.content,
            "from": entry.found.messages,
        }
        for entry in result.false
    ]
    slips = [{**asdict(slip), "at": slip.at.isoformat()} for slip in result.slips]
    return {
        "conversations": result.conversations,
        "rows": rows,
        "never": [asdict(row) for row in result.never],
        "checks": result.checks,
        "slips": slips,
        "missed": missed,
        "false": false,
    }
