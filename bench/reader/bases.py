"""Base models: read ONNX weights from their jars, and pack them as int8 with float16 scales per row."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

Arrays = dict[str, NDArray[np.float32]]
SCALE = "#scale"
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


def pack(arrays: Arrays) -> dict[str, NDArray[np.generic]]:
    out: dict[str, NDArray[np.generic]] = {}
    for name, value in arrays.items():
        if value.ndim < 2 or value.size < 10_000:
            out[name] = value.astype(np.float16)
            continue
        scale = (np.abs(value).max(1, keepdims=True) / 127 + 1e-8).astype(np.float16)
        out[name] = np.rint(value / scale.astype(np.float32)).clip(-127, 127).astype(np.int8)
        out[name + SCALE] = scale
    return out
