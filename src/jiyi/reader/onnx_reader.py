"""The reader whose networks come with the package: one for English, one for Chinese and texts that mix both.

A folder holds, for each network, `reader-en.onnx` and `reader-en.vocab.txt`, and `reader.json` with the name of the
version and the scale and shift that turn logits into probabilities."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..embed.onnx_session import new_session
from ..forks import new_lock
from ..languages.words import language
from . import Passage, Verdict, pairs
from .pairs import Pair

Trunk = Literal["en", "zh"]
OUTPUTS = {pairs.ANSWERS: slice(0, 1), pairs.CHANGES: slice(1, 4), pairs.SUPPORTS: slice(4, 5)}


@dataclass(frozen=True, slots=True)
class Calibration:
    """Numbers that turn logits of one network into probabilities: `scale · logit + shift`, then sigmoid or softmax."""

    changes: float = 1.0  # scale
    supports: tuple[float, float] = (1.0, 0.0)  # scale, shift


class OnnxReader:
    """Judges pairs with the networks of a folder. They are loaded at first use, once per process, and run in the thread
    that calls."""

    def __init__(self, folder: Path) -> None:
        given = json.loads((folder / "reader.json").read_text(encoding="utf-8"))
        self.id = str(given["id"])
        self._folder = folder
        self._calibrations: dict[str, Calibration] = {
            name: Calibration(float(values["changes"]), tuple(map(float, values["supports"])))  # type: ignore[arg-type]
            for name, values in given["calibration"].items()
        }
        self._networks: dict[Trunk, _Network] = {}
        self._lock = new_lock()

    def answers(self, question: str, passages: Sequence[Passage]) -> list[float | None]:
        found: list[float | None] = []
        for passage in passages:
            trunk = None if _are_two_languages(question, passage.text) else _trunk(question, passage.text)
            pair = pairs.answers(question, passage)
            found.append(None if trunk is None else float(self._logits(trunk, pairs.ANSWERS, pair)[0]))
        return found

    def changes(self, newer: Passage, older: Sequence[Passage]) -> list[Verdict | None]:
        return [self._change(newer, one) for one in older]

    def _change(self, newer: Passage, older: Passage) -> Verdict | None:
        trunk = _trunk(newer.text, older.text)
        if trunk is None:
            return None
        logits = self._logits(trunk, pairs.CHANGES, pairs.changes(newer, older)) * self._calibrations[trunk].changes
        shares = np.exp(logits - logits.max())
        ends, repeats, stands = map(float, shares / shares.sum())
        return Verdict(ends, repeats, stands)

    def supports(self, messages: Sequence[Passage], memory: str) -> float | None:
        said = "\n".join(map(pairs.said, messages))
        trunk = _trunk(said, memory)
        if trunk is None:
            return None
        scale, shift = self._calibrations[trunk].supports
        logit = float(self._logits(trunk, pairs.SUPPORTS, pairs.supports(said, memory))[0])
        return 1 / (1 + exp(-scale * logit - shift))

    def _logits(self, trunk: Trunk, judgement: int, pair: Pair) -> NDArray[np.float32]:
        return self._network(trunk).logits(judgement, pair)[OUTPUTS[judgement]]

    def _network(self, trunk: Trunk) -> _Network:
        with self._lock:
            if trunk not in self._networks:
                self._networks[trunk] = _Network(self._folder, f"reader-{trunk}")
            return self._networks[trunk]


class _Network:
    def __init__(self, folder: Path, name: str) -> None:
        self._tokenizer = pairs.new_tokenizer(pairs.read_vocabulary(folder / f"{name}.vocab.txt"))
        self._session: Any = new_session(folder / f"{name}.onnx", is_deep=True)

    def logits(self, judgement: int, pair: Pair) -> NDArray[np.float32]:
        """Run one pair by itself: pairs that run together would share the scale of their 8-bit numbers, and so change
        each other's result."""
        ids, first = pairs.pair_ids(self._tokenizer, judgement, pair)
        types = np.zeros((1, len(ids)), np.int64)
        types[0, first:] = 1
        [logits] = self._session.run(None, {"ids": np.array([ids], np.int64), "types": types})
        found: NDArray[np.float32] = logits[0]
        return found


def _are_two_languages(first: str, second: str) -> bool:
    """Return True for a pair of an English and a Chinese text: whether one answers the other, similarity tells better
    than the network for both does."""
    return {language(first), language(second)} == {"en", "zh"}


def _trunk(first: str, second: str) -> Trunk | None:
    """Return the network for two texts; None if one of them is in a language that neither knows."""
    found = {language(first), language(second)} if second.strip() else {language(first)}
    if "other" in found:
        return None
    return "en" if found == {"en"} else "zh"
