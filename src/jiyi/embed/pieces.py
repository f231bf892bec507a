"""The pieces of words that the built-in embedder reads: SentencePiece's unigram model, read as far as a text needs it.

`tokenizers` would take 0.4 s of CPU and 100 MB of each new process to read 128,000 pieces, and joins neighbouring
unknown characters, which changes vectors. Here pieces are grouped by their first two characters, and a group is read
when a text first needs it.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

UNKNOWN, FIRST, LAST = 0, 1, 2  # pieces
UNKNOWN_PENALTY = 10.0  # below the lowest score of a piece
SPACE = "\u2581"  # begins each word

_ASCII = re.compile(rb"[\x00-\x7f]+(?![\x80-\xff])")  # no sign that follows changes its last character
_SPACES = re.compile(" +")
_WHITE = bytes.maketrans(b"\t\n\x0c\r", b"    ")


class Pieces:
    """Divides texts into numbered pieces."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._normalizer = Normalizer(arrays["trie"], arrays["replacements"].tobytes())
        singles, pairs = (arrays[name].tobytes().decode() for name in ("singles", "pairs"))
        self._singles = dict(zip(singles, arrays["single_pieces"].tolist(), strict=True))
        self._groups = {pairs[at : at + 2]: at // 2 for at in range(0, len(pairs), 2)}
        self._piece_starts, self._text_starts = arrays["piece_starts"], arrays["text_starts"]
        self._texts, self._pieces = arrays["texts"], arrays["pieces"]
        self._scores = memoryview(arrays["scores"].data)
        self._unknown_score = float(arrays["scores"].min()) - UNKNOWN_PENALTY
        self._read: dict[str, tuple[Callable[[str], int | None], int]] = {}

    def of(self, text: str) -> list[int]:
        """Return the numbers of a text's pieces, between those that mark its beginning and its end."""
        pieces = [FIRST]
        for word in self._normalizer.words(text):
            pieces += self._of_word(word)
        if len(pieces) == 1:
            pieces.append(UNKNOWN)
        pieces.append(LAST)
        return pieces

    def _of_word(self, word: str) -> list[int]:
        """Return the pieces with the highest sum of scores; of equals, the earliest start counts."""
        size, scores, unknown = len(word), self._scores, self._unknown_score
        best = [0.0] + [-1e38] * size
        start_of, piece_of = [0] * (size + 1), [UNKNOWN] * (size + 1)
        for start in range(size):
            base = best[start]
            piece = self._singles.get(word[start])
            score = base + (unknown if piece is None else scores[piece])
            if score > best[start + 1]:
                best[start + 1], start_of[start + 1], piece_of[start + 1] = score, start, piece or UNKNOWN
            pair = word[start : start + 2]
            if pair not in self._groups:
                continue
            find, longest = self._read.get(pair) or self._group(pair)
            for end in range(start + 2, min(start + longest, size) + 1):
                piece = find(word[start:end])
                if piece is not None and base + scores[piece] > best[end]:
                    best[end], start_of[end], piece_of[end] = base + scores[piece], start, piece
        pieces = []
        while size > 0:
            pieces.append(piece_of[size])
            size = start_of[size]
        return pieces[::-1]

    def _group(self, pair: str) -> tuple[Callable[[str], int | None], int]:
        """Read the pieces that begin with two characters, and the length of the longest."""
        at = self._groups[pair]
        texts = self._texts[self._text_starts[at] : self._text_starts[at + 1]].tobytes().decode().split("\0")
        pieces = self._pieces[self._piece_starts[at] : self._piece_starts[at + 1]].tolist()
        self._read[pair] = dict(zip(texts, pieces, strict=True)).get, max(map(len, texts))
        return self._read[pair]


class Normalizer:
    """Replaces characters as SentencePiece does: by the longest key of a table, which is a double-array trie.

    The table is NFKC of an old version of Unicode with a few changes, hence not `unicodedata`.
    """

    def __init__(self, trie: NDArray[np.uint32], replacements: bytes) -> None:
        self._trie = memoryview(trie.data)
        self._replacements = replacements

    def words(self, text: str) -> list[str]:
        """Return the normalized words of a text, each of which begins with the sign for a space."""
        data = text.encode("utf-8", "replace")  # half of a surrogate pair is a question mark
        parts = []
        at = 0
        while at < len(data):
            ascii_only = _ASCII.match(data, at)
            if ascii_only:
                parts.append(ascii_only[0].translate(_WHITE))
                at = ascii_only.end()
            else:
                replaced, at = self._replaced(data, at)
                parts.append(replaced)
        normalized = _SPACES.sub(" ", b"".join(parts).decode()).strip(" ")
        normalized = SPACE + normalized.replace(" ", SPACE)
        return [SPACE + word for word in normalized.rstrip(SPACE).split(SPACE)[1:]]

    def _replaced(self, data: bytes, start: int) -> tuple[bytes, int]:
        """Return what replaces the longest key at a place, and where it ends; without one, a character stays itself."""
        trie = self._trie
        unit = trie[0]
        node = (unit >> 10) << ((unit & 0x200) >> 6)
        at, end, found = start, 0, 0
        while at < len(data):
            node ^= data[at]
            unit = trie[node]
            if unit & 0x800000FF != data[at]:
                break
            node ^= (unit >> 10) << ((unit & 0x200) >> 6)
            at += 1
            if unit & 0x100:
                end, found = at, trie[node] & 0x7FFFFFFF
        if end:
            return self._replacements[found : self._replacements.index(0, found)], end
        end = start + 1
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end += 1
        return data[start:end], end
