"""Reranker inference in numpy: the probability that a message answers, or bears on, a question.

Messages never read the question, so their keys and values are computed once per message and can be cached; a question
is then read against them in one batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jiyi_rerank.inputs import UNKNOWN_AGE, message_ids, question_ids
from jiyi_rerank.wordpiece import WordPiece

from .quantise import SCALE, unpack

Floats = NDArray[np.float32]
HEAD = 64  # width of an attention head
MESSAGE_POSITION = 64
EPSILON = 1e-12


@dataclass(frozen=True, slots=True)
class Message:
    """Keys and values of one message for each layer that reads it, as int8 with a scale per token and head.

    `states` has the axes layer, key or value, head, token, width; about 4 kB per token."""

    states: NDArray[np.int8]
    scales: NDArray[np.float16]

    @property
    def length(self) -> int:
        return int(self.states.shape[3])

    @property
    def nbytes(self) -> int:
        return self.states.nbytes + self.scales.nbytes


@dataclass(frozen=True, slots=True)
class Layer:
    reads: Floats  # query, key and value weights side by side
    reads_bias: Floats
    out: Floats
    out_bias: Floats
    norm1: tuple[Floats, Floats]
    up: Floats
    up_bias: Floats
    down: Floats
    down_bias: Floats
    norm2: tuple[Floats, Floats]

    def finish(self, x: Floats, read: Floats) -> Floats:
        """Return a layer's output for rows and what their attention read."""
        x = normalised(x + (read @ self.out + self.out_bias), self.norm1)
        return normalised(x + (gelu(x @ self.up + self.up_bias) @ self.down + self.down_bias), self.norm2)


class NumpyReranker:
    def __init__(self, path: Path) -> None:
        with np.load(path) as stored:
            kept = ("vocabulary", "words", "words" + SCALE)
            vocabulary, self.words, self.word_scales = (stored[name] for name in kept)  # half of the weights: stay int8
            weights = unpack({name: stored[name] for name in stored.files if name not in kept})
        self.pieces = WordPiece(vocabulary.tobytes().decode().split("\n"))
        self.positions, self.types = weights["positions"], weights["types"]
        self.norm0 = (weights["norm0.weight"], weights["norm0.bias"])
        self.age, self.rank = weights["age"], weights["rank"]
        self.pool, self.pool_bias = _transposed(weights["pool.weight"]), weights["pool.bias"]
        self.score, self.score_bias = weights["score.weight"][0], weights["score.bias"][0]
        self.scale, self.shift = weights["calibration"]
        self.fusion = weights["fusion"]  # weights of score and similarity, shift
        self.separate = int(weights["separate"])
        self.layers = [_layer(weights, number) for number in range(sum(name.endswith("up.bias") for name in weights))]
        self.heads = self.words.shape[1] // HEAD

    def encode(self, messages: Sequence[tuple[str, str]]) -> list[Message]:
        """Return the states of (speaker, text) messages."""
        ids = [message_ids(self.pieces, speaker, text) for speaker, text in messages]
        order = sorted(range(len(ids)), key=lambda at: len(ids[at]))
        out: list[Message | None] = [None] * len(ids)
        for start in range(0, len(order), 16):
            part = order[start : start + 16]
            for at, message in zip(part, self._encode([ids[at] for at in part]), strict=True):
                out[at] = message
        return [message for message in out if message is not None]

    def _encode(self, ids: list[list[int]]) -> list[Message]:
        lengths = [len(row) for row in ids]
        longest = max(lengths)
        known = np.arange(longest)[None] < np.array(lengths)[:, None]
        x = self._embedded(np.concatenate(ids), np.concatenate([np.arange(n) for n in lengths]) + MESSAGE_POSITION, 1)
        mask = np.where(known, 0, -np.inf).astype(np.float32)[:, None, None, :]
        kept: list[Floats] = []
        for number, layer in enumerate(self.layers):
            last = number == len(self.layers) - 1
            own = np.zeros((len(ids), longest, x.shape[1] * 3), np.float32)
            own[known] = x @ layer.reads + layer.reads_bias
            q, k, v = self._split(own)
            if number >= self.separate:
                kept.append(np.stack([k, v], 1))
            if not last:
                x = layer.finish(
                    x, attention(q, k, v, mask).transpose(0, 2, 1, 3).reshape(len(ids), longest, -1)[known]
                )
        states = np.stack(kept, 1)  # message, layer, key or value, head, token, width
        return [_packed(states[at, :, :, :, :length]) for at, length in enumerate(lengths)]

    def probabilities(
        self,
        question: str,
        messages: Sequence[Message],
        *,
        ages: Sequence[tuple[int, int]] | None = None,
        similarities: Sequence[float] | None = None,
    ) -> Floats:
        """Return the probability that each message answers, or bears on, the question.

        `ages` are (age, recency) buckets of inputs.py, `similarities` cosines of the built-in embedder; both help."""
        if not messages:
            return np.zeros(0, np.float32)
        logits = self.logits(question, messages, ages)
        if similarities is None:
            logits = self.scale * logits + self.shift
        else:
            logits = self.fusion[0] * logits + self.fusion[1] * np.array(similarities, np.float32) + self.fusion[2]
        calibrated: Floats = 1 / (1 + np.exp(-logits))
        return calibrated

    def logits(
        self, question: str, messages: Sequence[Message], ages: Sequence[tuple[int, int]] | None = None
    ) -> Floats:
        """Return the uncalibrated scores of messages."""
        ids = np.array(question_ids(self.pieces, question))
        x = self._embedded(ids, np.arange(len(ids)), 0)
        for layer in self.layers[: self.separate]:
            q, k, v = self._split((x @ layer.reads + layer.reads_bias)[None])
            x = layer.finish(x, attention(q, k, v).transpose(0, 2, 1, 3).reshape(x.shape))
        buckets = np.array(ages if ages is not None else [(UNKNOWN_AGE, UNKNOWN_AGE)] * len(messages))
        first = x[0] + self.age[buckets[:, 0]] + self.rank[buckets[:, 1]]
        rows = self._read(x, first, messages)
        scores: Floats = np.tanh(rows @ self.pool + self.pool_bias) @ self.score + self.score_bias
        return scores

    def _read(self, x: Floats, first: Floats, messages: Sequence[Message]) -> Floats:
        """Let a question (its rows, and its first row for each message) read messages; return its final first rows."""
        count, size, width = len(messages), *x.shape
        states, mask = self._gathered(messages)
        mask = np.concatenate([np.zeros((count, size), np.float32), mask], 1)[:, None, None, :]
        rows = np.repeat(x[None], count, 0)
        rows[:, 0] = first
        for number, layer in enumerate(self.layers[self.separate :]):
            if number:
                own = (rows.reshape(count * size, width) @ layer.reads + layer.reads_bias).reshape(count, size, -1)
            else:  # all rows but the first are still the same for every message
                own = np.repeat((x @ layer.reads + layer.reads_bias)[None], count, 0)
                own[:, 0] = first @ layer.reads + layer.reads_bias
            q, k, v = self._split(own)
            k, v = (np.concatenate([part, states[number, side]], 2) for side, part in enumerate((k, v)))
            if number == len(self.layers) - self.separate - 1:  # only the first row is scored
                q, rows = q[:, :, :1], rows[:, :1]
            found = attention(q, k, v, mask).transpose(0, 2, 1, 3).reshape(-1, width)
            rows = layer.finish(rows.reshape(found.shape), found).reshape(rows.shape)
        last: Floats = rows[:, 0]
        return last

    def _gathered(self, messages: Sequence[Message]) -> tuple[Floats, Floats]:
        """Return padded states (layer, key or value, message, head, token, width) and the mask of the padding."""
        longest = max(message.length for message in messages)
        joint = len(self.layers) - self.separate
        states = np.zeros((joint, 2, len(messages), self.heads, longest, HEAD), np.float32)
        mask = np.full((len(messages), longest), -np.inf, np.float32)
        for at, message in enumerate(messages):
            own = states[:, :, at, :, : message.length]
            own[...] = message.states
            own *= message.scales.astype(np.float32)
            mask[at, : message.length] = 0
        return states, mask

    def _embedded(self, ids: NDArray[np.int64], positions: NDArray[np.int64], kind: int) -> Floats:
        words = self.words[ids] * self.word_scales[ids].astype(np.float32)
        return normalised(words + self.positions[positions] + self.types[kind], self.norm0)

    def _split(self, own: Floats) -> tuple[Floats, Floats, Floats]:
        """Split rows (text, token, 3 · width) into query, key and value (text, head, token, 64)."""
        parts = own.reshape(own.shape[0], own.shape[1], 3, self.heads, HEAD).transpose(2, 0, 3, 1, 4)
        return parts[0], parts[1], parts[2]


def _packed(states: Floats) -> Message:
    scales = (np.abs(states).max(-1, keepdims=True) / 127 + 1e-8).astype(np.float16)
    return Message(np.rint(states / scales).clip(-127, 127).astype(np.int8), scales)


def attention(q: Floats, k: Floats, v: Floats, mask: Floats | None = None) -> Floats:
    weights: Floats = q @ k.swapaxes(-1, -2)
    weights *= np.float32(HEAD**-0.5)
    if mask is not None:
        weights += mask
    weights -= weights.max(-1, keepdims=True)
    np.exp(weights, out=weights)
    weights /= weights.sum(-1, keepdims=True)
    read: Floats = weights @ v
    return read


def gelu(x: Floats) -> Floats:
    """Tanh approximation, as in training."""
    inner = x * x
    inner *= np.float32(0.044715 * 0.7978845608)
    inner += np.float32(0.7978845608)
    inner *= x
    np.tanh(inner, out=inner)
    inner += 1
    inner *= x
    inner *= np.float32(0.5)
    return inner


def normalised(x: Floats, norm: tuple[Floats, Floats]) -> Floats:
    x = x - x.mean(-1, keepdims=True)
    x /= np.sqrt(np.einsum("ij,ij->i", x, x)[:, None] / x.shape[1] + EPSILON)
    x *= norm[0]
    x += norm[1]
    return x


def _transposed(weight: Floats) -> Floats:
    return np.ascontiguousarray(weight.T)


def _layer(weights: dict[str, Floats], number: int) -> Layer:
    def of(name: str) -> Floats:
        return weights[f"{number}.{name}"]

    parts = ("query", "key", "value")
    return Layer(
        reads=_transposed(np.concatenate([of(f"{part}.weight") for part in parts])),
        reads_bias=np.concatenate([of(f"{part}.bias") for part in parts]),
        out=_transposed(of("out.weight")),
        out_bias=of("out.bias"),
        norm1=(of("norm1.weight"), of("norm1.bias")),
        up=_transposed(of("up.weight")),
        up_bias=of("up.bias"),
        down=_transposed(of("down.weight")),
        down_bias=of("down.bias"),
        norm2=(of("norm2.weight"), of("norm2.bias")),
    )
