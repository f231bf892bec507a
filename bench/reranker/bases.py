"""Base models: read ONNX weights from their jars, trim and extend the vocabulary, store them as int8."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from jiyi_rerank.wordpiece import CLS, PAD, SEP, UNK, WordPiece

from .quantise import Arrays, pack

MASK = "[MASK]"
LINEAR = {
    "attention.self.query": "query",
    "attention.self.key": "key",
    "attention.self.value": "value",
    "attention.output.dense": "out",
    "intermediate.dense": "up",
    "output.dense": "down",
}
NORMS = {"attention.output.LayerNorm": "norm1", "output.LayerNorm": "norm2"}


def read_jar(jar: Path) -> tuple[Arrays, list[str]]:
    """Return the weights (our names) and the vocabulary of a BERT model in a jar."""
    with zipfile.ZipFile(jar) as archive:
        names = archive.namelist()
        model = onnx.load_from_string(archive.read(next(n for n in names if n.endswith(".onnx"))))
        tokenizer = json.loads(archive.read(next(n for n in names if n.endswith("tokenizer.json"))))
    vocabulary = tokenizer["model"]["vocab"]
    return _named(model), sorted(vocabulary, key=lambda token: int(vocabulary[token]))


def _named(model: onnx.ModelProto) -> Arrays:
    raw = {item.name: numpy_helper.to_array(item) for item in model.graph.initializer}
    embeddings = "embeddings."
    out: Arrays = {
        "words": raw[embeddings + "word_embeddings.weight"],
        "positions": raw[embeddings + "position_embeddings.weight"],
        "types": raw[embeddings + "token_type_embeddings.weight"],
        "norm0.weight": raw[embeddings + "LayerNorm.weight"],
        "norm0.bias": raw[embeddings + "LayerNorm.bias"],
    }
    # Linear weights are anonymous and transposed; the name of the MatMul node says which layer they belong to.
    for node in model.graph.node:
        weights = [name for name in node.input if name in raw]
        if node.op_type != "MatMul" or not weights:
            continue
        layer, part = re.match(r"/encoder/layer\.(\d+)/(.+)/MatMul", node.name).groups()
        out[f"{layer}.{LINEAR[part.replace('/', '.')]}.weight"] = raw[weights[0]].T
    for name, value in raw.items():
        if found := re.match(r"encoder\.layer\.(\d+)\.(.+)\.(weight|bias)$", name):
            layer, part, kind = found.groups()
            out[f"{layer}.{(LINEAR | NORMS)[part]}.{kind}"] = value
    return {name: np.asarray(value, np.float32) for name, value in out.items()}


def extended(
    weights: Arrays, vocabulary: list[str], other: Arrays, other_vocabulary: list[str], added: int
) -> tuple[Arrays, list[str]]:
    """Drop tokens that cannot occur, and add the most frequent English pieces of another vocabulary.

    New rows start as the other model's row, mapped by the linear map that fits the tokens both have."""
    kept = [at for at, token in enumerate(vocabulary) if usable(token)]
    names = [vocabulary[at] for at in kept]
    known, old_row = set(names), {token: at for at, token in enumerate(vocabulary)}
    english = [(at, token) for at, token in enumerate(other_vocabulary) if re.fullmatch(r"(##)?[a-z]{2,}", token)]
    shared = [(at, token) for at, token in english if token in known]
    new = [(at, token) for at, token in english if token not in known][:added]
    both = weights["words"][[old_row[token] for _, token in shared]]
    projection = fitted(other["words"][[at for at, _ in shared]], both)
    mapped = np.c_[other["words"][[at for at, _ in new]], np.ones(len(new))] @ projection
    pieces = WordPiece(vocabulary)
    spellings = [pieces.encode(token.removeprefix("##")) or [pieces.unk] for _, token in new]
    spelled = np.stack([weights["words"][spelling].mean(0) for spelling in spellings])
    started = (mapped + spelled) / 2
    # Averages are shorter than trained rows; LayerNorm would then see mostly the position.
    length = np.linalg.norm(both, axis=1).mean()
    started *= length / np.linalg.norm(started, axis=1, keepdims=True)
    rows = np.concatenate([weights["words"][kept], started]).astype(np.float32)
    return weights | {"words": rows}, names + [token for _, token in new]


def usable(token: str) -> bool:
    """Return False for tokens that the tokenizer never produces: continued Chinese characters, Japanese, Korean."""
    if token in (PAD, UNK, CLS, SEP, MASK):
        return True
    body = token.removeprefix("##")
    if body.isascii():
        return body == body.lower() and not token.startswith("[unused")
    return token == body == body.lower() and len(body) == 1 and not "\u3040" <= body <= "\u30ff"


def fitted(source: NDArray[np.float32], target: NDArray[np.float32], ridge: float = 1.0) -> NDArray[np.float64]:
    """Return the ridge regression from source rows (with a constant) to target rows."""
    design = np.c_[source, np.ones(len(source))].astype(np.float64)
    return np.linalg.solve(design.T @ design + ridge * np.eye(design.shape[1]), design.T @ target)


def save(path: Path, weights: Arrays, vocabulary: list[str]) -> None:
    np.savez(path, **pack(weights))
    path.with_suffix(".vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
