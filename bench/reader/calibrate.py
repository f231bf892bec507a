"""Make probabilities of a reader's judgements about changes and support, on the records that training left out.

    python -m bench.reader.calibrate --reader DIR --id NAME

Writes `reader.json`, which a folder of networks needs, and prints what ends and what stays at several lines."""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from math import log
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jiyi.reader import USER, Passage
from jiyi.reader.onnx_reader import OnnxReader

from .held_out import auc, records
from .lists import ENDS, LABELS

TRAINING = Path(__file__).parents[1] / "data" / "reader"
SCALES = np.linspace(0.3, 1.5, 121)
LINES = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97)
LEAST = 1e-9  # of a probability
ODDS = 3.0  # of a memory that a model proposes: the records hold more false ones than any model makes
RELIED_ON = 0.6  # confidence
STEPS = 50

Floats = NDArray[np.float64]


def network_of(record: Any) -> str:
    return "en" if record["lang"] == "en" else "zh"


def judged_changes(reader: OnnxReader) -> dict[str, tuple[Floats, Floats]]:
    """Return, by network, the logarithms of the probabilities and the labels of pairs of statements."""
    found: dict[str, Any] = defaultdict(lambda: ([], []))
    for record in records(TRAINING / "changes.jsonl.gz")[::8]:

        def by(name: str, own: str = record["speaker"]) -> str:
            return USER if name == own else name

        older = [Passage(one["said"], by(one["by"])) for one in record["older"]]
        verdicts = reader.changes(Passage(record["newer"], by(record["newer_by"])), older)
        for one, verdict in zip(record["older"], verdicts, strict=True):
            if verdict is not None:
                shares = (verdict.ends, verdict.repeats, verdict.stands)
                found[network_of(record)][0].append([log(max(share, LEAST)) for share in shares])
                found[network_of(record)][1].append(LABELS.index(one["label"]))
    return {name: (np.array(logits), np.array(labels)) for name, (logits, labels) in found.items()}


def judged_support(reader: OnnxReader) -> dict[str, tuple[Floats, Floats]]:
    """Return, by network, the logits and the labels of messages with memories."""
    found: dict[str, Any] = defaultdict(lambda: ([], []))
    for record in records(TRAINING / "grounding.jsonl.gz")[::8]:
        parted = [message.partition(": ") for message in record["messages"]]
        messages = [Passage(text, speaker) for speaker, _, text in parted]
        for label in ("true", "false"):
            for memory in record[label]:
                chance = reader.supports(messages, memory)
                if chance is not None:
                    found[network_of(record)][0].append(log(max(chance, LEAST) / max(1 - chance, LEAST)))
                    found[network_of(record)][1].append(float(label == "true"))
    return {name: (np.array(logits), np.array(labels)) for name, (logits, labels) in found.items()}


def shares_at(scale: float, logits: Floats) -> Floats:
    powers = np.exp(scale * logits)
    shares: Floats = powers / powers.sum(1, keepdims=True)
    return shares


def best_scale(logits: Floats, labels: Floats) -> float:
    """Return the scale at which the labels are likeliest."""
    rows = np.arange(len(labels))
    return float(max(SCALES, key=lambda scale: np.log(shares_at(scale, logits)[rows, labels.astype(int)]).sum()))


def best_line(logits: Floats, labels: Floats) -> tuple[float, float]:
    """Return scale and shift of a logistic regression, by Newton's method."""
    inputs = np.stack([logits, np.ones_like(logits)], 1)
    counts = np.where(labels == 1, ODDS / labels.sum(), 1 / (1 - labels).sum())
    weights = np.zeros(2)
    for _ in range(STEPS):
        chances = 1 / (1 + np.exp(-inputs @ weights))
        curve = (inputs * (counts * chances * (1 - chances))[:, None]).T @ inputs
        weights -= np.linalg.solve(curve, inputs.T @ (counts * (chances - labels)))
    return float(weights[0]), float(weights[1])


def show(name: str, shares: Floats, labels: Floats) -> None:
    ends, stands = shares[labels == ENDS, ENDS], shares[labels != ENDS, ENDS]
    print(f"{name} changes: AUC {auc(ends, stands):.3f} of {len(ends)} that end and {len(stands)} others")
    for line in LINES:
        print(f"  {line:.2f}: ends {100 * (ends >= line).mean():4.1f} %, keeps {100 * (stands < line).mean():5.2f} %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reader", type=Path, required=True, help="folder with the reader's networks")
    parser.add_argument("--id", required=True, help="name and version of the model")
    options = parser.parse_args()
    place = options.reader / "reader.json"
    plain = {name: {"changes": 1.0, "supports": [1.0, 0.0]} for name in ("en", "zh")}
    place.write_text(json.dumps({"id": options.id, "calibration": plain}, indent=2) + "\n", encoding="utf-8")
    reader = OnnxReader(options.reader)
    changes, support = judged_changes(reader), judged_support(reader)
    found = {}
    for name in sorted(changes):
        scale, line = best_scale(*changes[name]), best_line(*support[name])
        show(name, shares_at(scale, changes[name][0]), changes[name][1])
        logits, labels = support[name]
        relied = 1 / (1 + np.exp(-line[0] * logits - line[1])) >= RELIED_ON
        true, false = (100 * relied[labels == label].mean() for label in (1, 0))
        print(f"{name} supports: AUC {auc(logits[labels == 1], logits[labels == 0]):.3f} of {len(labels)}")
        print(f"  relied on: {true:.0f} % of the true, {false:.0f} % of the false")
        found[name] = {"changes": round(scale, 3), "supports": [round(number, 3) for number in line]}
    place.write_text(json.dumps({"id": options.id, "calibration": found}, indent=2) + "\n", encoding="utf-8")
    print(f"wrote {place}: {found}")


if __name__ == "__main__":
    main()
