"""Bad input: any file, import, model reply, query or filter is read or refused with one of Jiyi's errors, in time
proportional to its length.

Inputs are mutated seeds (`mutate.py`), text from hypothesis, and one piece repeated.
"""

from __future__ import annotations

import contextlib
import time
import traceback
from collections.abc import Callable, Iterator
from unittest.mock import patch

import hypothesis
from hypothesis import strategies as st

from .mutate import NASTY, mutated
from .readers import OWN, READERS, Reader
from .trial import Trial

WHOLE = 50_000
BY_MUTATION, BY_HYPOTHESIS = 0.8, 0.2
SLOWEST = 60  # times the duration of a valid text of 10,000 characters
GROWN = 4_000, 16_000  # characters
GROWTH = 12  # bound for four times the length: linear is 4, quadratic 16
WORTH_MEASURING_S = 0.2
PROTECTIONS = {
    "the limit of nesting": "`jiyi.llm.json_reply.MAX_DEPTH` is a million: deep JSON ends in Python's own error",
    "the escape of comments": "`jiyi.files.format` writes `<!--` as it is: a memory's text can pass for a mark",
}

GUARDED = {"the limit of nesting": "a model's reply", "the escape of comments": "memory.md"}


async def run(trial: Trial) -> None:
    with _switched_off(trial.without):
        share = sum(reader.weight for reader in READERS.values())
        for name, reader in READERS.items():
            if trial.without is not None and name != GUARDED[trial.without]:
                continue
            most = trial.times(-(-WHOLE * reader.weight // share), least=20)
            slowest = _Slowest(trial, name, reader)
            _by_mutation(trial, name, reader, round(most * BY_MUTATION), slowest)
            _by_hypothesis(trial, name, reader, round(most * BY_HYPOTHESIS), slowest)
            if trial.without is None:
                _by_growth(trial, name, reader)


@contextlib.contextmanager
def _switched_off(what: str | None) -> Iterator[None]:
    with contextlib.ExitStack() as off:
        if what == "the limit of nesting":
            off.enter_context(patch("jiyi.llm.json_reply.MAX_DEPTH", 10**6))
        elif what == "the escape of comments":
            import re

            off.enter_context(patch("jiyi.files.format._COMMENT", re.compile(r"(x)(?!)")))
        yield


class _Slowest:
    """Time limit of a reader, relative to reading a valid text on this machine."""

    def __init__(self, trial: Trial, name: str, reader: Reader) -> None:
        self._trial, self._name, self._read = trial, name, reader.read
        good = (max(reader.seeds, key=len) * 200)[:10_000]
        self._unit_s = max(0.002, min(_timed(self._read, good) for _ in range(3)))

    def take(self, text: str) -> str | None:
        """Read a text; return the problem, or None."""
        self._trial.counts["inputs"] += 1
        self._trial.counts[f"of {self._name}"] += 1
        began = time.thread_time()
        problem = _problem(self._read, text)
        took_s = time.thread_time() - began
        most_s = self._unit_s * SLOWEST * max(1.0, len(text) / 10_000)
        if problem is None and took_s > most_s:
            problem = f"took {took_s / self._unit_s:.0f} times as long as a good text"
        return problem


def _problem(read: Callable[[str], None], text: str) -> str | None:
    try:
        read(text)
    except OWN:
        return None
    except Exception as error:  # noqa: BLE001 - finding those is what this is for
        at = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {str(error)[:80]} at {at.filename.rpartition('/')[2]}:{at.lineno}"
    return None


def _timed(read: Callable[[str], None], text: str) -> float:
    began = time.thread_time()
    with contextlib.suppress(Exception):
        read(text)
    return time.thread_time() - began


def _tell(trial: Trial, name: str, problem: str, text: str) -> None:
    """Report each kind of problem once."""
    if not any(f"{name}: {problem[:60]}" in each for each in trial.broken):
        trial.breaks("other", f"{name}: {problem}, given {text[:200]!r}")


def _by_mutation(trial: Trial, name: str, reader: Reader, most: int, slowest: _Slowest) -> None:
    chances = trial.chances(name)
    for _ in range(most):
        text = mutated(reader.seeds, chances)
        if problem := slowest.take(text):
            _tell(trial, name, problem, text)


def _by_hypothesis(trial: Trial, name: str, reader: Reader, most: int, slowest: _Slowest) -> None:
    """Join pieces of seeds and random text; hypothesis shrinks failures."""
    pieces = sorted({*NASTY, *(piece for seed in reader.seeds for piece in seed.split())})
    texts = st.lists(st.sampled_from(pieces) | st.text(max_size=20), max_size=20).map(" ".join) | st.text(max_size=200)
    found: list[tuple[str, str]] = []

    @hypothesis.seed(trial.seed)
    @hypothesis.settings(
        max_examples=max(1, most),
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.generate, hypothesis.Phase.shrink],
    )
    @hypothesis.given(texts)
    def each(text: str) -> None:
        problem = slowest.take(text)
        if problem is not None:
            found.append((problem, text))
            raise AssertionError(problem)

    with contextlib.suppress(AssertionError, hypothesis.errors.Flaky):
        each()
    if found:
        _tell(trial, name, *min(found, key=lambda one: len(one[1])))


def _by_growth(trial: Trial, name: str, reader: Reader) -> None:
    """Repeat one piece: four times as many may take only a fixed multiple of the time."""
    chances = trial.chances(name, "growth")
    pieces = [
        *NASTY,
        *(seed[at : at + chances.randint(1, 30)] for seed in reader.seeds for at in range(0, len(seed), 17)),
    ]
    for piece in chances.sample(pieces, min(len(pieces), trial.times(60, least=2))):
        if not piece:
            continue
        short, long = (piece * (size // len(piece) + 1) for size in GROWN)
        trial.counts["inputs that grow"] += 1
        if (problem := _problem(reader.read, long)) is not None:
            _tell(trial, name, problem, f"{piece!r} × {len(long) // len(piece)}")
        took_s = _timed(reader.read, long)
        if took_s > WORTH_MEASURING_S and took_s > GROWTH * max(1e-4, _timed(reader.read, short)):
            trial.breaks("other", f"{name}: four times as much of {piece!r} takes {took_s:.2f} s, which is too long")
