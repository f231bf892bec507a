"""The model: keys and values of messages, and logits of a question against them, by onnxruntime on one thread."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .inputs import message_ids
from .wordpiece import WordPiece

Floats = NDArray[np.float32]

MESSAGE_POSITION = 64  # of a message's first token: independent of the question's length
BATCH = 16
EPSILON = 1e-12
MASKED = np.float32(-1e9)


@dataclass(frozen=True, slots=True)
class Message:
    """Keys and values of a message as int8 (layer · 2, head, token, width), with a scale per token and head."""

    states: NDArray[np.int8]
    scales: NDArray[np.float16]

    @property
    def length(self) -> int:
        return int(self.states.shape[2])

    @property
    def nbytes(self) -> int:
        return self.states.nbytes + self.scales.nbytes


class Model:
    def __init__(self, folder: Path | None = None) -> None:
        folder = folder or Path(str(files(__package__) / "weights"))
        self.pieces = WordPiece((folder / "vocabulary.txt").read_text(encoding="utf-8").rstrip("\n").split("\n"))
        self._words: NDArray[np.int8] = np.load(folder / "words.npy", mmap_mode="r")
        with np.load(folder / "embeddings.npz") as stored:
            self._tables = {name: stored[name].astype(np.float32) for name in stored.files}
        self._messages, self._question = (_session(folder / f"{name}.onnx") for name in ("messages", "question"))

    def encode(self, messages: Sequence[tuple[str, str]]) -> list[Message]:
        """Return the states of (speaker, text) messages."""
        ids = [message_ids(self.pieces, speaker, text) for speaker, text in messages]
        order = sorted(range(len(ids)), key=lambda at: len(ids[at]))
        found: dict[int, Message] = {}
        for start in range(0, len(order), BATCH):
            part = order[start : start + BATCH]
            found.update(zip(part, self._encode([ids[at] for at in part]), strict=True))
        return [found[at] for at in range(len(ids))]

    def _encode(self, ids: list[list[int]]) -> list[Message]:
        lengths = np.array([len(row) for row in ids])
        known = np.arange(lengths.max())[None] < lengths[:, None]
        rows = np.flatnonzero(known)
        places = np.zeros(known.size, np.int64)
        places[rows] = np.arange(len(rows))
        positions = rows % known.shape[1] + MESSAGE_POSITION
        inputs = {
            "x": self._embedded(np.concatenate(ids), positions, 1),
            "places": places.reshape(known.shape),
            "rows": rows,
            "mask": np.where(known, np.float32(0), MASKED)[:, None, None, :],
        }
        states: Floats = self._messages.run(None, inputs)[0]  # layer · 2, message, head, token, width
        scales = (np.abs(states).max(-1) / 127 + 1e-8).astype(np.float16)
        states /= scales[..., None]
        packed = np.rint(states, out=states).astype(np.int8)
        return [
            Message(packed[:, at, :, :length].copy(), scales[:, at, :, :length].copy())
            for at, length in enumerate(lengths)
        ]

    def logits(self, ids: list[int], messages: Sequence[Message], ages: Sequence[tuple[int, int]]) -> Floats:
        """Return the logit of each message for the ids of a question; `ages` are buckets of `inputs.py`."""
        x = self._embedded(np.array(ids), np.arange(len(ids)), 0)
        age, rank = np.array(ages).T
        states, scales, mask = _gathered(messages)
        inputs = {
            "x": x,
            "first": x[0] + self._tables["age"][age] + self._tables["rank"][rank],
            "states": states,
            "scales": scales,
            "mask": mask,
        }
        logits: Floats = self._question.run(None, inputs)[0]
        return logits

    def _embedded(self, ids: NDArray[np.int64], positions: NDArray[np.int64], kind: int) -> Floats:
        tables = self._tables
        x: Floats = (
            self._words[ids] * tables["word_scales"][ids] + tables["positions"][positions] + tables["types"][kind]
        )
        x -= x.mean(-1, keepdims=True)
        x /= np.sqrt((x * x).mean(-1, keepdims=True) + EPSILON)
        x *= tables["norm0_weight"]
        x += tables["norm0_bias"]
        return x


def _gathered(messages: Sequence[Message]) -> tuple[NDArray[np.int8], Floats, Floats]:
    """Return padded states and scales of messages, and the mask of the padding."""
    longest = max(message.length for message in messages)
    both, heads, _, width = messages[0].states.shape
    states = np.zeros((both, len(messages), heads, longest, width), np.int8)
    scales = np.zeros((both, len(messages), heads, 1, longest), np.float32)
    mask = np.full((len(messages), 1, 1, longest), MASKED, np.float32)
    for at, message in enumerate(messages):
        states[:, at, :, : message.length] = message.states
        scales[:, at, :, 0, : message.length] = message.scales
        mask[at, ..., : message.length] = 0
    return states, scales, mask


def _session(path: Path) -> Any:
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # it would write a device id to the home folder, and upload events
    import onnxruntime as ort

    ort.disable_telemetry_events()
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    # Higher levels would join additions and normalisations to an operator that is four times as slow.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
