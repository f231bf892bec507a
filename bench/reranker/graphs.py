"""ONNX graphs of the reranker with int8 matrix products, for the package `jiyi-rerank`.

Two graphs share one file of weights. `messages` turns embedded tokens of messages into keys and values; `question`
reads a question against them. Inputs of products are quantised with ranges that were measured beforehand, so a score
does not depend on the other messages of its batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from .quantise import Arrays

HEAD = 64
EPSILON = 1e-12
LEVELS = 64  # of weights: with more, processors without VNNI overflow where 255 · 127 · 2 exceeds 16 bits
TOP = 255  # of inputs
FUSED = "com.microsoft"
OPSETS = (("", 17), (FUSED, 1))
IR_VERSION = 9

Array = NDArray[np.generic]
Floats = NDArray[np.float32]
Ranges = dict[str, tuple[Floats, float, float]]  # smoothing per input, then lowest and highest value


class Graph:
    """Nodes and constants of a graph in the making; values are known by their names."""

    def __init__(self, name: str, constants: dict[str, Array], inputs: Sequence[onnx.ValueInfoProto]) -> None:
        self.name, self.inputs = name, inputs
        self.known = constants  # shared between graphs
        self.used: dict[str, None] = {}
        self.nodes: list[onnx.NodeProto] = []

    def add(
        self, op: str, *inputs: str, domain: str = "", outputs: int = 1, name: str = "", **attributes: object
    ) -> str:
        """Append a node; return the name of its first output. The others have its name with a number."""
        first = name or f"{op}_{len(self.nodes)}"
        names = [first, *(f"{first}.{at}" for at in range(1, outputs))]
        self.nodes.append(helper.make_node(op, list(inputs), names, domain=domain, **attributes))
        return first

    def constant(self, name: str, value: object) -> str:
        array = np.asarray(value)
        assert name not in self.known or np.array_equal(self.known[name], array), name
        self.known[name] = array
        self.used[name] = None
        return name

    def item(self, x: str, at: int) -> str:
        return self.add("Gather", x, self.constant(f"at{at}", np.int64(at)), axis=0)

    def ints(self, *values: int) -> str:
        return self.constant("ints" + "_".join(map(str, values)).replace("-", "m"), np.array(values, np.int64))


def linear(
    graph: Graph, x: str, name: str, weight: NDArray[np.float32], bias: NDArray[np.float32], scales: Ranges
) -> str:
    """Multiply rows by a weight (inputs × outputs) in int8, with ranges of the inputs measured beforehand."""
    smoothing, low, high = scales[name]  # per input; range after smoothing
    scale = np.float32(max((high - low) / TOP, 1e-6))
    zero = np.uint8(np.clip(np.rint(-low / scale), 0, TOP))
    if not np.all(smoothing == 1):
        x = graph.add("Mul", x, graph.constant(name + ".smoothing", 1 / smoothing))
        weight = weight * smoothing[:, None]
    columns = np.maximum(np.abs(weight).max(0) / LEVELS, 1e-8).astype(np.float32)
    packed = np.rint(weight / columns).clip(-LEVELS, LEVELS).astype(np.int8)
    scale_name, zero_name = graph.constant(name + ".scale", scale), graph.constant(name + ".zero", zero)
    quantised = graph.add("QuantizeLinear", x, scale_name, zero_name)
    return graph.add(
        "MatMulIntegerToFloat",
        quantised,
        graph.constant(name, packed),
        scale_name,
        graph.constant(name + ".columns", columns),
        zero_name,
        "",  # zero point of the weights: 0
        graph.constant(name + ".bias", bias.astype(np.float32)),
        domain=FUSED,
    )


def normalised(graph: Graph, x: str, added: str, name: str, weights: Arrays) -> str:
    """Add a layer's output to its input and normalise."""
    gamma, beta = (graph.constant(f"{name}.{part}", weights[f"{name}.{part}"]) for part in ("weight", "bias"))
    return graph.add("LayerNormalization", graph.add("Add", x, added), gamma, beta, epsilon=EPSILON)


def finished(graph: Graph, x: str, read: str, number: int, weights: Arrays, scales: Ranges) -> str:
    """Return a layer's output for rows and what their attention read."""

    def of(name: str, x: str) -> str:
        weight, bias = weights[f"{number}.{name}.weight"].T, weights[f"{number}.{name}.bias"]
        return linear(graph, x, f"{number}.{name}", weight, bias, scales)

    x = normalised(graph, x, of("out", read), f"{number}.norm1", weights)
    inner = graph.add("FastGelu", of("up", x), domain=FUSED)
    return normalised(graph, x, of("down", inner), f"{number}.norm2", weights)


def part(weights: Arrays, number: int, names: Sequence[str]) -> tuple[Floats, Floats]:
    weight = np.concatenate([weights[f"{number}.{name}.weight"] for name in names]).T
    return weight, np.concatenate([weights[f"{number}.{name}.bias"] for name in names])


def messages_graph(weights: Arrays, scales: Ranges, constants: dict[str, Array], layers: int) -> Graph:
    """Build the graph that turns messages into keys and values.

    Inputs: `x`, embedded tokens of all messages one after the other; `places`, for each message and position, the row
    of x (any, where the message is shorter); `rows`, the flat place of each row; `mask`, 0 or a very low number.
    Output: states (layer · 2, message, head, position, width), keys and values in turn."""
    graph = Graph(
        "messages",
        constants,
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 512]),
            helper.make_tensor_value_info("places", TensorProto.INT64, ["messages", "longest"]),
            helper.make_tensor_value_info("rows", TensorProto.INT64, ["rows"]),
            helper.make_tensor_value_info("mask", TensorProto.FLOAT, ["messages", 1, 1, "longest"]),
        ],
    )
    x, heads = "x", weights["0.out.bias"].shape[0] // HEAD
    kept: list[str] = []
    for number in range(layers):
        last = number == layers - 1
        names = ("key", "value") if last else ("query", "key", "value")
        own = linear(graph, x, f"{number}.{'kv' if last else 'reads'}", *part(weights, number, names), scales)
        padded = graph.add("Gather", own, "places", axis=0)
        split = graph.add("Reshape", padded, graph.ints(0, 0, len(names), heads, HEAD))
        turned = graph.add("Transpose", split, perm=[2, 0, 3, 1, 4])
        sides = [
            graph.add("Gather", turned, graph.constant(f"at{at}", np.int64(at)), axis=0) for at in range(len(names))
        ]
        k, v = sides[-2:]
        kept += [graph.add("Unsqueeze", side, graph.ints(0)) for side in (k, v)]
        if last:
            break
        likely = graph.add("FusedMatMul", sides[0], k, domain=FUSED, transB=1, alpha=HEAD**-0.5)
        likely = graph.add("Softmax", graph.add("Add", likely, "mask"), axis=-1)
        read = graph.add("Transpose", graph.add("MatMul", likely, v), perm=[0, 2, 1, 3])
        read = graph.add("Reshape", read, graph.ints(-1, heads * HEAD))
        x = finished(graph, x, graph.add("Gather", read, "rows", axis=0), number, weights, scales)
    graph.add("Concat", *kept, axis=0, name="states")
    return graph


def question_graph(weights: Arrays, scales: Ranges, constants: dict[str, Array], layers: int) -> Graph:
    """Build the graph that reads a question against messages.

    Inputs: `x`, the embedded question; `first`, its first row for each message (with the message's age); `states` and
    `scales`, keys and values of messages as int8 with a scale per token; `mask`, 0 or a very low number. Output:
    `logits`.
    """
    graph = Graph(
        "question",
        constants,
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["tokens", 512]),
            helper.make_tensor_value_info("first", TensorProto.FLOAT, ["messages", 512]),
            helper.make_tensor_value_info("states", TensorProto.INT8, [2 * layers, "messages", 8, "longest", HEAD]),
            helper.make_tensor_value_info("scales", TensorProto.FLOAT, [2 * layers, "messages", 8, 1, "longest"]),
            helper.make_tensor_value_info("mask", TensorProto.FLOAT, ["messages", 1, 1, "longest"]),
        ],
    )
    heads = weights["0.out.bias"].shape[0] // HEAD
    width = heads * HEAD
    count = graph.add("Shape", "first", start=0, end=1)
    others = graph.add("Unsqueeze", graph.add("Slice", "x", graph.ints(1), graph.ints(2**31)), graph.ints(0))

    def for_each(first: str, others: str, size: int) -> str:
        """Join the first row of each message with the rows that are still the same for all."""
        shape = graph.add("Concat", count, graph.ints(1, 1), axis=0)
        repeated = graph.add("Expand", others, shape)
        return graph.add("Concat", graph.add("Reshape", first, graph.ints(-1, 1, size)), repeated, axis=1)

    rows = for_each("first", others, width)
    for number in range(layers):
        last = number == layers - 1
        reads = f"{number}.reads"
        if number == 0:
            weight, bias = part(weights, number, ("query", "key", "value"))
            own = for_each(
                linear(graph, "first", reads, weight, bias, scales),
                linear(graph, others, reads, weight, bias, scales),
                3 * width,
            )
        elif last:
            own = linear(graph, rows, f"{number}.kv", *part(weights, number, ("key", "value")), scales)
        else:
            own = linear(graph, rows, reads, *part(weights, number, ("query", "key", "value")), scales)
        names = 2 if last else 3
        split = graph.add("Reshape", own, graph.ints(0, 0, names, heads, HEAD))
        turned = graph.add("Transpose", split, perm=[2, 0, 3, 1, 4])
        sides = [graph.item(turned, at) for at in range(names)]
        if last:  # only the first row is scored
            rows = graph.add("Slice", rows, graph.ints(0), graph.ints(1), graph.ints(1))
            q = linear(graph, rows, f"{number}.query", *part(weights, number, ("query",)), scales)
            sides.insert(0, graph.add("Reshape", q, graph.ints(0, heads, 1, HEAD)))
        q, k, v = sides
        read = attention(graph, q, k, v, 2 * number)
        read = graph.add("Reshape", graph.add("Transpose", read, perm=[0, 2, 1, 3]), graph.ints(0, -1, width))
        rows = finished(graph, rows, read, number, weights, scales)
    pool = graph.constant("pool", weights["pool.weight"].T.astype(np.float32))
    state = graph.add("MatMul", graph.add("Reshape", rows, graph.ints(-1, width)), pool)
    state = graph.add("Tanh", graph.add("Add", state, graph.constant("pool.bias", weights["pool.bias"])))
    score = graph.add("MatMul", state, graph.constant("score", weights["score.weight"][0]))
    graph.add("Add", score, graph.constant("score.bias", weights["score.bias"]), name="logits")
    return graph


def attention(graph: Graph, q: str, k: str, v: str, at: int) -> str:
    """Let rows read themselves and the states of a message; scales of int8 states go to the weights, which are few."""
    keys, values = (graph.add("Cast", graph.item("states", place), to=TensorProto.FLOAT) for place in (at, at + 1))
    own = graph.add("FusedMatMul", q, k, domain=FUSED, transB=1, alpha=HEAD**-0.5)
    said = graph.add("FusedMatMul", q, keys, domain=FUSED, transB=1, alpha=HEAD**-0.5)
    said = graph.add("Add", graph.add("Mul", said, graph.item("scales", at)), "mask")
    likely = graph.add("Softmax", graph.add("Concat", own, said, axis=-1), axis=-1)
    tokens = graph.add("Shape", k, start=2, end=3)
    own = graph.add("Slice", likely, graph.ints(0), tokens, graph.ints(3))
    said = graph.add("Slice", likely, tokens, graph.ints(2**31), graph.ints(3))
    said = graph.add("Mul", said, graph.item("scales", at + 1))
    return graph.add("Add", graph.add("MatMul", own, v), graph.add("MatMul", said, values))


def saved(
    graph: Graph, output: tuple[str, Sequence[int | str]], folder: Path, places: Mapping[str, tuple[int, int]]
) -> None:
    """Write a graph whose large constants are in weights.bin."""
    tensors = []
    for name in graph.used:
        value = graph.known[name]
        tensor = onnx.numpy_helper.from_array(value, name)
        if name in places:
            tensor.ClearField("raw_data")
            tensor.data_location = TensorProto.EXTERNAL
            offset, length = places[name]
            for key, item in (("location", "weights.bin"), ("offset", offset), ("length", length)):
                tensor.external_data.add(key=key, value=str(item))
        tensors.append(tensor)
    info = helper.make_tensor_value_info(output[0], TensorProto.FLOAT, list(output[1]))
    made = helper.make_graph(graph.nodes, graph.name, list(graph.inputs), [info], tensors)
    model = helper.make_model(
        made, opset_imports=[helper.make_opsetid(*each) for each in OPSETS], ir_version=IR_VERSION
    )
    (folder / f"{graph.name}.onnx").write_bytes(model.SerializeToString(deterministic=True))
