"""Write the model of the package `jiyi-rerank` from the trained one.

    python -m bench.reranker.export_onnx --model reranker.npz --data DATA --out rerank/src/jiyi_rerank/weights

Needs `onnx`. The ranges of the activations are measured on stories of the training data."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .evaluate import ages
from .files import read_json
from .graphs import Array, Ranges, messages_graph, question_graph, saved
from .numpy_model import NumpyReranker
from .quantise import SCALE, unpack

STORIES, QUESTIONS, CANDIDATES = 60, 3, 20
SMOOTHED = 0.7  # exponent of an input's range in its smoothing
ALIGNMENT = 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("model", "data", "out"):
        parser.add_argument("--" + name, type=Path, required=True)
    options = parser.parse_args()
    with np.load(options.model) as stored:
        packed = {name: stored[name] for name in stored.files}
    kept = ("vocabulary", "words", "words" + SCALE)
    weights = unpack({name: value for name, value in packed.items() if name not in kept})
    layers = sum(name.endswith("up.bias") for name in weights)
    ranges = measured(options.model, read_json(options.data / "train.json.gz"), weights, layers)
    constants: dict[str, Array] = {}
    graphs = [build(weights, ranges, constants, layers) for build in (messages_graph, question_graph)]
    options.out.mkdir(parents=True, exist_ok=True)
    places = write_weights(options.out / "weights.bin", constants)
    saved(graphs[0], ("states", (2 * layers, "messages", 8, "longest", 64)), options.out, places)
    saved(graphs[1], ("logits", ("messages",)), options.out, places)
    (options.out / "vocabulary.txt").write_bytes(packed["vocabulary"].tobytes() + b"\n")
    np.save(options.out / "words.npy", packed["words"])
    tables = {"word_scales": packed["words" + SCALE]}
    names = ("positions", "types", "norm0.weight", "norm0.bias", "age", "rank")
    tables |= {name.replace(".", "_"): weights[name].astype(np.float16) for name in names}
    np.savez(options.out / "embeddings.npz", **tables)
    total = sum(path.stat().st_size for path in options.out.iterdir())
    print(f"{options.out}: {total / 1e6:.1f} MB")


def measured(path: Path, stories: list[Any], weights: dict[str, Any], layers: int) -> Ranges:
    """Run the numpy model on training stories and return the range of each product's inputs."""
    model = NumpyReranker(path)
    seen: dict[str, tuple[NDArray[Any], NDArray[Any]]] = {}

    def observe(name: str, x: NDArray[Any]) -> None:
        low, high = x.min(0), x.max(0)
        if name in seen:
            low, high = np.minimum(low, seen[name][0]), np.maximum(high, seen[name][1])
        seen[name] = low, high

    for number, layer in enumerate(model.layers):
        object.__setattr__(layer, "reads", Observing(layer.reads, f"{number}.reads", observe))
        for name in ("out", "up", "down"):
            object.__setattr__(layer, name, Observing(getattr(layer, name), f"{number}.{name}", observe))
    chosen = [story for story in stories if story["source"] == "everyday"]
    for story in chosen[:: max(len(chosen) // STORIES, 1)]:
        for question in story["questions"][:QUESTIONS]:
            candidates = question["hard"][:CANDIDATES]
            said = [(story["messages"][at]["speaker"], story["messages"][at]["text"]) for at in candidates]
            model.logits(question["text"], model.encode(said), ages(story, candidates))
    return ranges_of(seen, weights, layers)


class Observing:
    """A weight that shows what it is multiplied with."""

    def __init__(self, weight: NDArray[Any], name: str, observe: Any) -> None:
        self.weight, self.name, self.observe = weight, name, observe

    __array_ufunc__ = None

    def __rmatmul__(self, x: NDArray[Any]) -> NDArray[Any]:
        self.observe(self.name, x)
        return x @ self.weight


def ranges_of(seen: dict[str, tuple[NDArray[Any], NDArray[Any]]], weights: dict[str, Any], layers: int) -> Ranges:
    """Return smoothing and ranges: inputs that vary a lot are divided by a factor that the weights take over."""
    out: Ranges = {}
    for name, (low, high) in seen.items():
        number, product = name.split(".")
        smoothing = np.ones(len(low), np.float32)
        if product != "out":
            parts = ("query", "key", "value") if product == "reads" else (product,)
            weight = np.concatenate([weights[f"{number}.{part}.weight"] for part in parts])
            largest = np.maximum(np.abs(low), np.abs(high))
            smoothing = (largest**SMOOTHED / np.abs(weight).max(0) ** (1 - SMOOTHED)).astype(np.float32)
        out[name] = smoothing, float((low / smoothing).min()), float((high / smoothing).max())
    last = layers - 1
    out[f"{last}.kv"] = out[f"{last}.query"] = out[f"{last}.reads"]
    return out


def write_weights(path: Path, constants: dict[str, Array]) -> dict[str, tuple[int, int]]:
    """Write large constants to one file; return the offset and length of each."""
    places, offset = {}, 0
    with path.open("wb") as file:
        for name, value in constants.items():
            if value.nbytes < 4096:
                continue
            file.write(b"\0" * (-offset % ALIGNMENT))
            offset += -offset % ALIGNMENT
            places[name] = offset, value.nbytes
            file.write(np.ascontiguousarray(value).tobytes())
            offset += value.nbytes
    return places


if __name__ == "__main__":
    main()
