"""The arrays of the vocabulary, made of the original SentencePiece model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Field = tuple[int, int | bytes]


def vocabulary(model: bytes) -> dict[str, Array]:
    """Return pieces in the order of their texts, grouped by their first two characters, and the table of characters."""
    pieces, charsmap = _read(model)
    singles = sorted((text, number) for number, (text, _) in enumerate(pieces) if len(text) == 1)
    longer = sorted((text, number) for number, (text, _) in enumerate(pieces) if len(text) > 1)
    firsts = [at for at, (text, _) in enumerate(longer) if not at or text[:2] != longer[at - 1][0][:2]]
    ends = [*firsts[1:], len(longer)]
    groups = ["\0".join(text for text, _ in longer[at:end]).encode() for at, end in zip(firsts, ends, strict=True)]
    size = int.from_bytes(charsmap[:4], "little")
    return {
        "singles": _bytes("".join(text for text, _ in singles).encode()),
        "single_pieces": np.array([number for _, number in singles], np.int32),
        "pairs": _bytes("".join(longer[at][0][:2] for at in firsts).encode()),
        "piece_starts": np.array([*firsts, len(longer)], np.int32),
        "text_starts": np.cumsum([0, *map(len, groups)], dtype=np.int32),
        "texts": _bytes(b"".join(groups)),
        "pieces": np.array([number for _, number in longer], np.int32),
        "scores": np.array([score for _, score in pieces], np.float32),
        "trie": np.frombuffer(charsmap[4 : 4 + size], np.uint32),
        "replacements": _bytes(charsmap[4 + size :]),
    }


def _bytes(value: bytes) -> Array:
    return np.frombuffer(value, np.uint8)


def _read(model: bytes) -> tuple[list[tuple[str, float]], bytes]:
    """Return texts and scores of the pieces, and the table of characters, from a protobuf message."""
    pieces, charsmap = [], b""
    for field, value in _fields(model):
        if field == 1 and isinstance(value, bytes):  # a piece
            parts = dict(_fields(value))
            text, score = parts[1], parts.get(2, bytes(4))
            if not isinstance(text, bytes) or not isinstance(score, bytes):
                raise TypeError("a piece is not as expected")
            pieces.append((text.decode(), float(np.frombuffer(score, np.float32)[0])))
        elif field == 3 and isinstance(value, bytes):  # normalizer_spec
            found = dict(_fields(value))[2]
            charsmap = found if isinstance(found, bytes) else b""
    return pieces, charsmap


def _fields(message: bytes) -> Iterator[Field]:
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        field, wire = tag >> 3, tag & 7
        if wire == 0:
            number, at = _varint(message, at)
            yield field, number
            continue
        size, at = _varint(message, at) if wire == 2 else ({1: 8, 5: 4}[wire], at)
        yield field, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
