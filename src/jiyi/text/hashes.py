"""Hashes for equal texts, similar texts and search terms."""

from __future__ import annotations

import re
from functools import cache
from hashlib import blake2b
from typing import TYPE_CHECKING

from ..languages.normalise import normalise
from ..languages.script import HAN
from ..languages.tokens import tokens
from ..languages.words import LETTER
from ..text_cache import text_cache

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

# Marks that shape a sentence. Not among them: ? + # % $ = < > / and the minus of a number, which change what is said.
_MARK = r"(?:[.,;:!'\"()\[\]{}*~`^|。、「」『』《》〈〉【】〔〕“”‘’„«»‹›–—·•・¡]|-(?!\d))"
# One mark inside a word belongs to it: v2.1 is not v21. Any other stands for a pause.
_PAUSE = rf"(?<!{LETTER}){_MARK}+|{_MARK}+(?!{LETTER})"
# Some write "用 Rust 写", some "用Rust写".
_SCRIPT_GAP = rf"(?<=[{HAN}]) (?={LETTER})|(?<={LETTER}) (?=[{HAN}])"

_BITS = (1 << 64) - 1
_BLOCK = 1 << 16


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    # Classes this wide take milliseconds to compile: not at import.
    return re.compile(_PAUSE), re.compile(_SCRIPT_GAP)


def content_hash(text: str) -> str:
    """Return 32 hex digits, equal for texts that differ only in case, width, script variant, spacing or sentence marks.

    >>> content_hash("我吃素。") == content_hash("我吃素")
    True
    >>> content_hash("C") == content_hash("C++")
    False
    """
    pause, script_gap = _patterns()
    whole = normalise(text)
    said = script_gap.sub("", " ".join(pause.sub(" ", whole).split()))
    # "!!!" and "???" say nothing, but not the same nothing.
    return blake2b(_encoded(said or whole), digest_size=16).hexdigest()


def near_hash(text: str) -> int:
    """Return a signed SimHash: texts that share most of their terms differ in few bits."""
    terms = tokens(text)
    return simhash(terms) if terms else term_hash(normalise(text))


def simhash(terms: Sequence[str]) -> int:
    """Return the `near_hash` of a text from its search terms."""
    import numpy as np

    ones = np.zeros(64, dtype=np.int64)
    # In blocks, because 64 bytes for each term of a huge text would be a lot of memory.
    for start in range(0, len(terms), _BLOCK):
        hashes = np.fromiter(map(term_hash, terms[start : start + _BLOCK]), dtype=np.int64)
        ones += np.unpackbits(hashes.view(np.uint8)).reshape(-1, 64).sum(axis=0, dtype=np.int64)
    return int(np.packbits(ones > len(terms) // 2).view(np.int64)[0])


def hamming(a: int, b: int) -> int:
    """Return the number of bits in which two hashes differ."""
    return ((a ^ b) & _BITS).bit_count()


@text_cache(1 << 15)
def term_hash(term: str) -> int:
    """Return a signed 64-bit hash of a search term."""
    return int.from_bytes(blake2b(_encoded(term), digest_size=8).digest(), "big", signed=True)


def term_counts(terms: Iterable[str]) -> tuple[NDArray[np.int64], NDArray[np.uint16]]:
    """Return the distinct hashes of the terms, sorted, and their counts (65535 at most)."""
    import numpy as np

    every = np.fromiter(map(term_hash, terms), dtype=np.int64)
    hashes, counts = np.unique(every, return_counts=True)
    return hashes, np.minimum(counts, 65535).astype(np.uint16)


def _encoded(text: str) -> bytes:
    return text.encode(errors="surrogatepass")
