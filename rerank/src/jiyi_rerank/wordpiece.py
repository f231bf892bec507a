"""WordPiece tokenizer (BERT, uncased) without dependencies."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

PAD, UNK, CLS, SEP = "[PAD]", "[UNK]", "[CLS]", "[SEP]"
MAX_WORD = 40
MAX_CACHED_WORDS = 50_000


class WordPiece:
    """Greedy longest-match tokenizer over a fixed vocabulary.

    >>> WordPiece(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "tea", "##s", "喜", "欢"]).encode("喜欢 Teas")
    [6, 7, 4, 5]
    """

    def __init__(self, vocabulary: Iterable[str]) -> None:
        self.ids = {token: at for at, token in enumerate(vocabulary)}
        self.unk, self.cls, self.sep = self.ids[UNK], self.ids[CLS], self.ids[SEP]
        self._words: dict[str, list[int]] = {}

    def encode(self, text: str, limit: int | None = None) -> list[int]:
        """Return the token ids of a text, at most `limit` of them."""
        found: list[int] = []
        for word in split_words(text):
            known = self._words.get(word)
            if known is None:
                known = self._pieces(word)
                if len(self._words) < MAX_CACHED_WORDS:
                    self._words[word] = known
            found += known
            if limit is not None and len(found) >= limit:
                return found[:limit]
        return found

    def _pieces(self, word: str) -> list[int]:
        if len(word) > MAX_WORD:
            return [self.unk]
        found, start = [], 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                piece = self.ids.get(prefix + word[start:end])
                if piece is not None:
                    break
            else:
                return [self.unk]
            found.append(piece)
            start = end
        return found


def split_words(text: str) -> list[str]:
    """Lowercase, strip accents, and split at spaces, punctuation and Chinese characters."""
    if not text.isascii():
        text = "".join(char for char in unicodedata.normalize("NFD", text) if unicodedata.category(char) != "Mn")
    out: list[str] = []
    word: list[str] = []
    for char in text.lower():
        if char.isalnum() and not is_han(char):
            word.append(char)
            continue
        if word:
            out.append("".join(word))
            word = []
        if not char.isspace() and char.isprintable():
            out.append(char)
    if word:
        out.append("".join(word))
    return out


def is_han(char: str) -> bool:
    return "\u3400" <= char <= "\u9fff" or "\uf900" <= char <= "\ufaff" or "\U00020000" <= char <= "\U0002fa1f"
