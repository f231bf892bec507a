"""Coverage-guided fuzzing (atheris) of all parsers, with the seeds and properties of `inputs`.

atheris has wheels for x86_64 only; without it the trial reports that it did not run.
"""

from __future__ import annotations

import asyncio
import importlib.util
import re
import sys
from pathlib import Path

from .trial import Trial

WHOLE = 200_000
LONGEST = 2_000  # bytes of one input
SLOWEST_S = 30
GUARDED = "memory.md"
PROTECTIONS = {
    "the escape of comments": "`jiyi.files.format` writes `<!--` as it is: a memory's text can pass for a mark",
}
_COVERED = re.compile(r"cov: (\d+)")


async def run(trial: Trial) -> None:
    if importlib.util.find_spec("atheris") is None:
        trial.notes.append("NOT RUN: atheris is not installed (`pip install atheris`; there are wheels for x86_64)")
        return
    from .readers import READERS

    whole = sum(reader.weight for reader in READERS.values())
    for name, reader in READERS.items():
        if trial.without is None or name == GUARDED:
            runs = trial.times(WHOLE * reader.weight // whole, least=200)
            await _fuzzed(trial, name, reader.seeds, runs)


async def _fuzzed(trial: Trial, name: str, seeds: tuple[str, ...], runs: int) -> None:
    folder = trial.scratch / re.sub(r"\W+", "-", name)
    corpus, found = folder / "corpus", folder / "found"
    for each in (corpus, found):
        each.mkdir(parents=True)
    for at, seed in enumerate(seeds):
        (corpus / str(at)).write_bytes(seed.encode("utf-8", "surrogatepass")[:LONGEST])
    options = [
        f"-runs={runs}",
        f"-seed={trial.seed % 2**31 or 1}",
        f"-max_len={LONGEST}",
        f"-timeout={SLOWEST_S}",
        f"-artifact_prefix={found}/",
        "-print_final_stats=1",
        str(corpus),
    ]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "torture.fuzzing", name, trial.without or "", *options),
        cwd=Path(__file__).parents[1],
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    told = (await process.communicate())[0].decode("utf-8", "replace")
    done = re.search(r"number_of_executed_units: (\d+)", told)
    trial.counts["inputs"] += int(done[1]) if done else 0
    trial.counts[f"of {name}"] += int(done[1]) if done else 0
    trial.counts["places reached"] += int((_COVERED.findall(told) or ["0"])[-1])
    if process.returncode != 0:
        given = next((file.read_bytes()[:200] for file in sorted(found.iterdir())), b"")
        why = re.findall(r"^(?:\w+(?:\.\w+)*(?:Error|Exception|Warning)\b.*|ALARM: .*|==\d+== ERROR: .*)$", told, re.M)
        trial.breaks("other", f"{name}: {(why or ['ended with ' + str(process.returncode)])[0][:160]}, given {given!r}")


def main() -> None:
    """Fuzz one reader; libFuzzer ends the process."""
    import atheris

    name, without, *options = sys.argv[1:]
    with atheris.instrument_imports(include=["jiyi"]):
        from . import readers
    if without:
        import jiyi.files.format as written

        written._COMMENT = re.compile(r"(x)(?!)")
    read = readers.READERS[name].read

    def one(data: bytes) -> None:
        try:
            read(data.decode("utf-8", "surrogateescape"))
        except readers.OWN:
            return

    atheris.Setup([sys.argv[0], *options], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
