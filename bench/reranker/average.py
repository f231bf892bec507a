"""Average the weights of models trained from the same base with different seeds, and print the figures of the result.

python -m bench.reranker.average --data DIR --models A.npz B.npz … --out FILE"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from jiyi_rerank.wordpiece import WordPiece

from .files import read_json, read_vocabulary
from .model import Reranker
from .quantise import Arrays, pack, unpack
from .scoring import report, scored
from .train import CUDA, configured, loaded


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--models", type=Path, nargs="+", required=True)
    parser.add_argument("--set", nargs="*", default=[], dest="settings")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    weights = mean([unpack(np.load(path)) for path in options.models])
    np.savez(options.out, **pack(weights))
    config = configured(options.settings)
    # What is measured is what is shipped: the weights after rounding to int8.
    model: Reranker = loaded(unpack(np.load(options.out)), config).to(CUDA)
    validation = read_json(options.data / "validation.json.gz")
    pieces = WordPiece(read_vocabulary(options.data / "base.vocab.txt"))
    rows = scored(model, pieces, validation, config.previous)
    print(report(rows, options.out.stem))
    options.out.with_suffix(".json").write_text(json.dumps({"rows": [row.as_list() for row in rows]}))


def mean(models: list[Arrays]) -> Arrays:
    return {name: np.mean([model[name] for model in models], 0) for name in models[0]}


if __name__ == "__main__":
    main()
