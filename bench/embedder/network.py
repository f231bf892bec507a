"""The sentence encoder's network as an ONNX graph.

Inputs are the texts' pieces one after the other: their rows of the embedding table, their numbers, and the number of
the text that each belongs to. A text's windows of words end at its first and last piece, so that a batch gives the
vectors of its texts alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Array = NDArray[Any]

CHUNKS = 17  # parts of the embedding table with a scale of their own; piece i is in part i % 17
WIDTH = 512
BRANCH = 256
BRANCHES = ((2, 0), (3, 1), (5, 2))  # words of a window, and how many of them are before the word itself
BEFORE, AFTER = 2, 2  # of the longest window
OPSET, IR = 17, 8  # read by onnxruntime 1.20 and later


class Graph:
    """Nodes and constants of a graph that is being built; a method returns the name of its output."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def add(self, kind: str, *inputs: str, output: str = "", **options: Any) -> str:
        output = output or f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], **options))
        return output

    def constant(self, value: Any, kind: Any = np.float32) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, kind), name))
        return name

    def weights(self, value: Array) -> str:
        """Add a matrix as bytes with a scale: its values lie on a grid of at most 256 steps."""
        matrix = value.astype(np.float64)
        steps = np.unique(matrix)
        scale = float(np.diff(steps).min())
        for _ in range(3):  # the smallest step is off by rounding; the whole range gives it exactly
            numbers = np.round(steps / scale)
            scale = float(steps @ numbers / (numbers @ numbers))
        zero = round(-float(steps[0]) / scale)
        numbers = np.round(matrix / scale) + zero
        if numbers.max() > 255 or np.abs((numbers - zero) * scale - matrix).max() > 1e-6 * np.abs(matrix).max():
            raise ValueError("the matrix is not quantised to a byte")
        stored = [self.constant(numbers, np.uint8), self.constant(scale), self.constant(zero, np.uint8)]
        return self.add("DequantizeLinear", *stored)

    def linear(self, value: str, weights: Array, bias: Array | None = None) -> str:
        product = self.add("MatMul", value, self.weights(weights))
        return product if bias is None else self.add("Add", product, self.constant(bias))

    def normed(self, value: str, gain: Array, bias: Array, epsilon: float) -> str:
        constants = self.constant(gain), self.constant(bias)
        return self.add("LayerNormalization", value, *constants, axis=-1, epsilon=epsilon)


def network(weights: Mapping[str, Array]) -> onnx.ModelProto:
    """Return the network with the weights of the original package."""
    graph, epsilon = Graph(), float(weights["eps"])
    embedded = _dequantised(graph, weights)
    windows, same = _windows(graph)
    branches = [
        _branch(graph, state, windows, weights, branch)
        for state, branch in zip(_projected(graph, embedded, weights, epsilon), BRANCHES, strict=True)
    ]
    features = graph.add("Concat", embedded, *branches, axis=1)
    features = graph.normed(features, weights["ln_g"], weights["ln_b"], epsilon)
    _dense(graph, _mean(graph, features, same, weights), weights)
    inputs = [
        helper.make_tensor_value_info("rows", TensorProto.UINT8, ["pieces", WIDTH]),
        helper.make_tensor_value_info("pieces", TensorProto.INT64, ["pieces"]),
        helper.make_tensor_value_info("texts", TensorProto.INT64, ["pieces"]),
    ]
    output = helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["count", WIDTH])
    made = helper.make_graph(graph.nodes, "use-multilingual-3", inputs, [output], graph.constants)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR)
    onnx.checker.check_model(model, full_check=True)
    return model


def _dequantised(graph: Graph, weights: Mapping[str, Array]) -> str:
    """Turn bytes of the embedding table into numbers: each part of the table has a scale and a lowest value."""
    part = graph.add("Mod", "pieces", graph.constant(CHUNKS, np.int64))
    scale = graph.add("Gather", graph.constant(weights["scale"][:, None]), part, axis=0)
    lowest = graph.add("Gather", graph.constant(weights["lo"][:, None]), part, axis=0)
    return graph.add("Add", graph.add("Mul", graph.add("Cast", "rows", to=TensorProto.FLOAT), scale), lowest)


def _windows(graph: Graph) -> tuple[str, str]:
    """Return the places of each piece's neighbours, and a matrix of texts × pieces that tells which belong together.

    A neighbour in another text is the place behind the last piece, where a row of zeros is.
    """
    zero, one = graph.constant([0], np.int64), graph.constant([1], np.int64)
    count = graph.add("Shape", "pieces")
    first, scalar = graph.constant(0, np.int64), graph.constant(1, np.int64)
    places = graph.add("Range", first, graph.add("Squeeze", count, zero), scalar)
    shifts = graph.constant(np.arange(-BEFORE, AFTER + 1)[None], np.int64)
    near = graph.add("Add", graph.add("Unsqueeze", places, one), shifts)
    inside = graph.add("Max", graph.add("Min", near, graph.add("Sub", count, one)), zero)
    alike = graph.add("Equal", graph.add("Gather", "texts", inside, axis=0), graph.add("Unsqueeze", "texts", one))
    valid = graph.add("And", alike, graph.add("Equal", inside, near))
    windows = graph.add("Where", valid, near, count)

    last = graph.add("ReduceMax", "texts", keepdims=0)
    numbers = graph.add("Range", first, graph.add("Add", last, scalar), scalar)
    same = graph.add("Equal", graph.add("Unsqueeze", numbers, one), graph.add("Unsqueeze", "texts", zero))
    return windows, graph.add("Cast", same, to=TensorProto.FLOAT)


def _projected(graph: Graph, embedded: str, weights: Mapping[str, Array], epsilon: float) -> list[str]:
    """Add the first layer of each branch; they are normed together."""
    sizes = [size for size, _ in BRANCHES]
    states = [graph.linear(embedded, weights[f"proj{size}"], weights[f"proj_b{size}"]) for size in sizes]
    gain, bias = (np.concatenate([weights[f"{name}{size}"] for size in sizes]) for name in ("ln_g", "ln_b"))
    state = graph.normed(graph.add("Concat", *states, axis=1), gain, bias, epsilon)
    outputs = [f"branch_{size}" for size in sizes]
    graph.nodes.append(helper.make_node("Split", [state], outputs, axis=1))
    return outputs


def _branch(graph: Graph, state: str, windows: str, weights: Mapping[str, Array], branch: tuple[int, int]) -> str:
    """Add a branch that reads windows of so many words, twice."""
    size, before = branch
    one, zeros = graph.constant([1], np.int64), graph.constant(np.zeros((1, BRANCH)))
    start, end = (graph.constant([BEFORE - before + at], np.int64) for at in (0, size))
    window = graph.add("Slice", windows, start, end, one)
    shape = graph.constant([-1, size * BRANCH], np.int64)
    for layer in ("1", "2"):
        gathered = graph.add("Gather", graph.add("Concat", state, zeros, axis=0), window, axis=0)
        gathered = graph.add("Reshape", gathered, shape)
        read = graph.linear(gathered, weights[f"w{layer}_{size}"], weights[f"b{layer}_{size}"])
        state = graph.add("Add", graph.add("Relu", read), state)
    return state


def _mean(graph: Graph, features: str, same: str, weights: Mapping[str, Array]) -> str:
    """Sum each text's features, divided by the root of their number; project the sums, which are fewer."""
    counts = graph.add("ReduceSum", same, graph.constant([1], np.int64), keepdims=1)
    sums = graph.linear(graph.add("MatMul", same, features), weights["cnn_W"])
    sums = graph.add("Add", sums, graph.add("Mul", counts, graph.constant(weights["cnn_b"])))
    return graph.add("Div", sums, graph.add("Sqrt", counts))


def _dense(graph: Graph, mean: str, weights: Mapping[str, Array]) -> None:
    inner = graph.linear(graph.add("Relu", graph.linear(mean, weights["d0"])), weights["d1"])
    state = graph.add("Relu", graph.add("Add", graph.linear(mean, weights["p1"]), inner))
    inner = graph.linear(graph.add("Relu", graph.linear(state, weights["d2"])), weights["d3"])
    vectors = graph.add("Tanh", graph.add("Add", graph.linear(state, weights["p3"]), inner))
    graph.add("LpNormalization", vectors, output="vectors", axis=-1, p=2)
