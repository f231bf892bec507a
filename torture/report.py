"""`python -m torture.report [FOLDER]`: print a report of the trials; `--to FILE` writes it to a file.

The figures come from the JSON files of the runs; the findings are kept by hand in `found.md`.
"""

from __future__ import annotations

import argparse
import importlib
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from .__main__ import OUT
from .trials import TRIALS

HERE = Path(__file__).parent
PROMISES = {  # names of the promises in `trial.broken`
    "lost": "acknowledged memories lost",
    "twice": "duplicates",
    "leak": "leaks from one user to another",
    "false success": "false successes",
    "torn": "states half written",
    "other": "other promises broken",
}


INJECTED = {  # headline figures: trial and counts
    "processes killed at random moments": ("kills", ("kills",)),
    "processes killed that feed external engines, and engines": (
        "engine_kills",
        ("kills", "kills of milvus", "kills of opensearch", "kills of ferretdb"),
    ),
    "processes killed at a call that writes": ("writes", ("kills at a call",)),
    "calls that failed, were cut short, or found the disk full": (
        "io_errors",
        ("EIO at a call", "FULL_DISK at a call", "HALF at a call"),
    ),
    "power cuts": ("power", ("power cuts",)),
    "operations of sixteen processes at once": ("concurrency", ("operations on sqlite", "operations on postgres")),
    "faults of language models and embedders": ("endpoints", ("faults of an LLM", "faults of embeddings")),
    "kinds of them": ("endpoints", ("kinds of faults of an LLM", "kinds of faults of embeddings")),
    "bad inputs": ("inputs", ("inputs", "inputs that grow")),
    "inputs of coverage-guided fuzzing": ("fuzzing", ("inputs",)),
    "mistakes put into the code": ("mutants", ("mutants",)),
}


@dataclass(frozen=True, slots=True)
class Result:
    """Result of one run of one trial."""

    name: str
    seed: int
    scale: float
    without: str | None
    counts: dict[str, int]
    broken: list[str]
    notes: list[str]
    seconds: float
    ended_at: str

    @classmethod
    def of(cls, told: dict[str, Any]) -> Self:
        return cls(**{name: told[name] for name in cls.__slots__})


def read(folder: Path) -> list[Result]:
    found = [Result.of(json.loads(path.read_text("utf-8"))) for path in sorted(folder.glob("*.json"))]
    order = {name: at for at, name in enumerate(TRIALS)}
    return sorted(found, key=lambda result: (order.get(result.name, len(order)), result.without or ""))


def page(results: list[Result], found: str) -> str:
    whole = [result for result in results if result.without is None]
    off = [result for result in results if result.without is not None]
    parts = [
        HEAD,
        "## In short\n",
        *_injected(whole),
        "",
        *_broken(whole),
        "\n## What was done\n",
        *_table(whole),
        *_missing(whole),
        "\n## Promises with their protection switched off\n",
        OFF,
        *_switched_off(off),
        "\n## What was found and fixed\n",
        found.strip(),
        "",
        TAIL,
    ]
    return "\n".join(parts)


def _injected(results: list[Result]) -> list[str]:
    counts = {result.name: result.counts for result in results}
    lines = ["| done | |", "|---|--:|"]
    for told, (trial, names) in INJECTED.items():
        found = sum(counts.get(trial, {}).get(name, 0) for name in names)
        lines += [f"| {told} | {found:,} |"] if found else []
    return lines


def _broken(results: list[Result]) -> list[str]:
    counted = Counter(each.partition(":")[0] for result in results for each in result.broken)
    lines = ["| broken | |", "|---|--:|"]
    lines += [f"| {told} | **{counted[promise]}** |" for promise, told in PROMISES.items()]
    lines += [f"| trials | {len(results)} |"]
    return lines


def _table(results: list[Result]) -> list[str]:
    lines = ["| trial | what it does | counted | scale | seed | minutes | broken |", "|---|---|---|--:|--:|--:|--:|"]
    for result in results:
        counted = ", ".join(f"{count:,} {what}" for what, count in result.counts.items())
        lines.append(
            f"| `{result.name}` | {TRIALS.get(result.name, '')} | {counted} | {result.scale:g} | {result.seed} "
            f"| {result.seconds / 60:.1f} | {len(result.broken)} |"
        )
    for result in results:
        lines += [f"\n`{result.name}`, ended {result.ended_at}:\n"] if result.notes or result.broken else []
        lines += [f"- {_cell(note)}" for note in result.notes]
        lines += [f"- **broken** {_cell(each)}" for each in result.broken]
    return lines


def _missing(results: list[Result]) -> list[str]:
    """Trials without a result."""
    names = ", ".join(f"`{name}`" for name in TRIALS if name not in {result.name for result in results})
    smaller = ", ".join(f"`{result.name}`" for result in results if result.scale < 1)
    lines = [f"\nNot among these results: {names}."] if names else []
    return lines + ([f"\nAt less than its whole size, as the column says: {smaller}."] if smaller else [])


def _switched_off(results: list[Result]) -> list[str]:
    if not results:
        return ["No run of this kind is among the results."]
    lines = ["| trial | without | how it is switched off | broken then | the first of them |", "|---|---|---|--:|---|"]
    for result in results:
        how = getattr(importlib.import_module(f"torture.{result.name}"), "PROTECTIONS", {}).get(result.without, "")
        first = _cell(result.broken[0]) if result.broken else "**nothing was noticed**"
        lines.append(f"| `{result.name}` | {result.without} | {how} | {len(result.broken)} | {first} |")
    return lines


def _cell(text: str) -> str:
    """Escape text from a run for a Markdown table."""
    short = text if len(text) <= 200 else text[:200] + "…"
    return "".join(
        f"\\{each}" if each in "|<>`*_[]\\" else each if each.isprintable() else ascii(each)[1:-1] for each in short
    )


HEAD = """# Reliability trials

Each trial injects faults into Jiyi and counts broken promises. `python -m torture.report` made this report from the
results of the runs.

<!-- not run -->
```sh
make torture                            # every trial, at a hundredth of its size: minutes
make torture SCALE=1                    # full size: hours
make torture TRIAL=isolation SCALE=1    # one of them
.venv/bin/python -m torture isolation --seed 4711   # repeat a run: every trial prints its seed
.venv/bin/python -m torture isolation --without "the user's predicate"    # must fail
.venv/bin/python -m torture.report torture/out --to report.md
```

A slice of every trial runs in `make test`.
"""

OFF = """A trial that cannot fail proves nothing, so each was run once with a protection switched off and had to fail.
"""

TAIL = """## Limits

The trials ran on one machine, with its file systems and its PostgreSQL. Hardware that lies about what it has written
to disk is only modelled. A count of zero means that no case above broke a promise, not that none can; if you find one,
please send its seed.
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m torture.report", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=OUT, help="with the JSON files of the runs")
    parser.add_argument("--to", type=Path, help="write the report to this file")
    given = parser.parse_args()
    text = page(read(given.folder), (HERE / "found.md").read_text("utf-8"))
    if given.to is None:
        print(text)
    else:
        given.to.write_text(text, "utf-8")
        print(f"{given.to} written")


if __name__ == "__main__":
    main()
