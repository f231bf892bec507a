"""The reader as an ONNX graph: matrices of 8-bit numbers, attention and activation as fused operators of onnxruntime.

A graph that is exported from PyTorch has ten times as many nodes and takes a quarter more time. Some columns of what
flows between layers are a hundred times as large as the others, and would set the scale of their 8-bit numbers. So each
column is divided by a number of its own, and the row of the matrix that reads it is multiplied by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Weights = Mapping[str, NDArray[Any]]
FUSED = "com.microsoft"  # domain of onnxruntime's own operators
OPSET = 17
IR_VERSION = 9
LARGEST = 63  # 7 bits: with 8, sums overflow on processors without VNNI
SMOOTHING = 0.75  # share of a column's size that moves from the numbers into the matrix
EPSILON = 1e-12  # of a normalisation, as in BERT
MAX_TOKENS = 400
TABLE_STEPS = 255
QUERY, OUT, UP, DOWN = "attention.self.query", "attention.output.dense", "intermediate.dense", "output.dense"
READ = (QUERY, OUT, UP, DOWN)  # layers of a block whose inputs are smoothed


class Graph:
    """Nodes and stored numbers of a graph in the making."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.nodes: list[Any] = []
        self.stored: list[Any] = []

    def store(self, name: str, value: Any) -> str:
        from onnx import numpy_helper

        self.stored.append(numpy_helper.from_array(np.asarray(value, order="C"), name))
        return name

    def node(self, kind: str, inputs: Sequence[str], output: str, *more: str, domain: str = "", **options: Any) -> str:
        from onnx import helper

        self.nodes.append(helper.make_node(kind, list(inputs), [output, *more], domain=domain, **options))
        return output

    def table(self, name: str, ids: str) -> str:
        """Look up rows of a table of embeddings, which is stored in 8 bits with one scale."""
        values = self.weights[f"encoder.embeddings.{name}.weight"].astype(np.float32)
        low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
        scale = (high - low) / TABLE_STEPS
        zero = round(-low / scale)
        numbers = np.clip(np.round(values / scale) + zero, 0, TABLE_STEPS).astype(np.uint8)
        rows = self.node("Gather", [self.store(name, numbers), ids], f"{name}.numbers")
        scales = [self.store(f"{name}.scale", np.float32(scale)), self.store(f"{name}.zero", np.uint8(zero))]
        return self.node("DequantizeLinear", [rows, *scales], f"{name}.rows")

    def normalised(self, given: str, place: str, output: str) -> str:
        scale = self.store(f"{output}.scale", self.weights[f"{place}.weight"].astype(np.float32))
        shift = self.store(f"{output}.shift", self.weights[f"{place}.bias"].astype(np.float32))
        return self.node("LayerNormalization", [given, scale, shift], output, axis=-1, epsilon=EPSILON)

    def smoothed(self, given: str, places: Sequence[str], largest: NDArray[Any], output: str) -> str:
        """Multiply by the matrices of some layers beside each other, in 8 bits."""
        matrix = np.concatenate([self.weights[f"{place}.weight"].astype(np.float32).T for place in places], 1)
        bias = np.concatenate([self.weights[f"{place}.bias"].astype(np.float32) for place in places])
        columns = np.maximum(largest, 1e-5) ** SMOOTHING / np.maximum(np.abs(matrix).max(1), 1e-5) ** (1 - SMOOTHING)
        columns /= np.exp(np.log(columns).mean())
        smooth = self.node(
            "Mul", [given, self.store(f"{output}.columns", (1 / columns).astype(np.float32))], f"{output}.smooth"
        )
        matrix = matrix * columns[:, None].astype(np.float32)
        scales = np.abs(matrix).max(0) / LARGEST
        inputs = [
            smooth,
            self.store(f"{output}.matrix", np.round(matrix / scales).astype(np.int8)),
            self.store(f"{output}.scales", scales.astype(np.float32)),
            self.store(f"{output}.zeros", np.zeros(len(scales), np.int8)),
            self.store(f"{output}.bias", bias),
        ]
        return self.node("DynamicQuantizeMatMul", inputs, output, domain=FUSED)

    def plain(self, given: str, place: str, output: str) -> str:
        matrix = self.store(f"{output}.matrix", self.weights[f"{place}.weight"].astype(np.float32).T)
        product = self.node("MatMul", [given, matrix], f"{output}.product")
        return self.node("Add", [product, self.store(f"{output}.bias", self.weights[f"{place}.bias"])], output)

    def block(self, given: str, number: int, largest: Mapping[str, NDArray[Any]], heads: int) -> str:
        """Attention and the two layers behind it."""
        place, mark = f"encoder.encoder.layer.{number}", f"block{number}"
        own = [f"{place}.attention.self.{name}" for name in ("query", "key", "value")]
        width = len(self.weights[f"{own[0]}.bias"])
        joined = self.smoothed(given, own, largest[f"{place}.{QUERY}"], f"{mark}.joined")
        parts = [f"{mark}.{name}" for name in ("query", "key", "value")]
        sizes = self.store(f"{mark}.sizes", np.array([width] * 3, np.int64))
        self.node("Split", [joined, sizes], parts[0], *parts[1:], axis=-1)
        read = self.node("MultiHeadAttention", parts, f"{mark}.read", domain=FUSED, num_heads=heads)
        out = self.smoothed(read, [f"{place}.{OUT}"], largest[f"{place}.{OUT}"], f"{mark}.out")
        middle = self.node("Add", [out, given], f"{mark}.middle.sum")
        middle = self.normalised(middle, f"{place}.attention.output.LayerNorm", f"{mark}.middle")
        up = self.smoothed(middle, [f"{place}.{UP}"], largest[f"{place}.{UP}"], f"{mark}.up")
        active = self.node("Gelu", [up], f"{mark}.active", domain=FUSED)
        down = self.smoothed(active, [f"{place}.{DOWN}"], largest[f"{place}.{DOWN}"], f"{mark}.down")
        last = self.node("Add", [down, middle], f"{mark}.sum")
        return self.normalised(last, f"{place}.output.LayerNorm", mark)


def write_graph(
    weights: Weights, largest: Mapping[str, NDArray[Any]], heads: int, judgements: Sequence[str], path: Path
) -> None:
    """Write a reader that reads one pair at a time. `weights` has the names of `ReaderNetwork`, `largest` the size of
    each column that the layers in `READ` take, by the layer's name."""
    import onnx
    from onnx import TensorProto, helper

    graph = Graph(weights)
    words, types = graph.table("word_embeddings", "ids"), graph.table("token_type_embeddings", "types")
    positions = weights["encoder.embeddings.position_embeddings.weight"][:MAX_TOKENS].astype(np.float32)
    zero = graph.store("zero", np.zeros(1, np.int64))
    length = graph.node("Shape", ["ids"], "length", start=1, end=2)
    places = graph.node("Slice", [graph.store("positions", positions), zero, length, zero], "places")
    state = graph.node("Add", [graph.node("Add", [words, types], "typed"), places], "placed")
    state = graph.normalised(state, "encoder.embeddings.LayerNorm", "begin")
    blocks = 1 + max(int(name.split(".")[3]) for name in weights if name.startswith("encoder.encoder.layer."))
    for number in range(blocks):
        state = graph.block(state, number, largest, heads)
    first = graph.node("Gather", [state, graph.store("first", np.array(0, np.int64))], "state", axis=1)
    logits = []
    for name in judgements:
        pooled = graph.node("Tanh", [graph.plain(first, f"pool.{name}", f"{name}.sum")], f"{name}.pool")
        logits.append(graph.plain(pooled, f"head.{name}", name))
    graph.node("Concat", logits, "logits", axis=1)
    pair = [helper.make_tensor_value_info(name, TensorProto.INT64, [1, "tokens"]) for name in ("ids", "types")]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, None])]
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(FUSED, 1)]
    made = helper.make_graph(graph.nodes, "reader", pair, outputs, graph.stored)
    onnx.save(helper.make_model(made, opset_imports=opsets, ir_version=IR_VERSION), str(path))
