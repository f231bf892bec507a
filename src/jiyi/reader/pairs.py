"""Pairs of texts as the reader's networks read them. Training and the package build them with these functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import Passage

ANSWERS, CHANGES, SUPPORTS = range(3)  # judgements, each with a mark of its own at the beginning of a pair
QUESTION_TOKENS, STATEMENT_TOKENS, BEFORE_TOKENS = 60, 110, 32
MEMORY_TOKENS, MESSAGES_TOKENS = 60, 190
MAX_CHARACTERS = 2000  # of a text; more tokens than are read
MARKS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[unused1]", "[unused2]", "[unused3]")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts, and one that stands before the second."""

    first: str
    second: str
    before: str = ""
    first_tokens: int = QUESTION_TOKENS
    second_tokens: int = STATEMENT_TOKENS


def said(passage: Passage) -> str:
    return f"{passage.speaker}: {passage.text}" if passage.speaker else passage.text


def answers(question: str, passage: Passage) -> Pair:
    return Pair(question, said(passage), passage.before)


def changes(newer: Passage, older: Passage) -> Pair:
    return Pair(said(newer), said(older), first_tokens=STATEMENT_TOKENS)


def supports(messages: str, memory: str) -> Pair:
    return Pair(memory, messages, first_tokens=MEMORY_TOKENS, second_tokens=MESSAGES_TOKENS)


def read_vocabulary(path: Path) -> dict[str, int]:
    names = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    return {name: at for at, name in enumerate(names)}


def new_tokenizer(vocabulary: Mapping[str, int]) -> Any:
    """Return a tokenizer of the package `tokenizers` for a vocabulary of word pieces."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer

    tokenizer = Tokenizer(WordPiece(dict(vocabulary), unk_token="[UNK]"))  # noqa: S106
    tokenizer.normalizer = BertNormalizer(lowercase=True, strip_accents=True, handle_chinese_chars=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    return tokenizer


def token_ids(tokenizer: Any, text: str) -> list[int]:
    ids: list[int] = tokenizer.encode(text[:MAX_CHARACTERS], add_special_tokens=False).ids
    return ids


def pair_ids(
    tokenizer: Any, judgement: int, pair: Pair, known: dict[str, list[int]] | None = None
) -> tuple[list[int], int]:
    """Return [CLS] mark first [SEP] second [SEP] (before [SEP]), and the length of the segment with the first text.
    `known` holds the ids of texts that were seen before, and gets those of others."""

    def encoded(text: str) -> list[int]:
        if known is None:
            return token_ids(tokenizer, text)
        if text not in known:
            known[text] = token_ids(tokenizer, text)
        return known[text]

    cls, sep, mark = (tokenizer.token_to_id(name) for name in ("[CLS]", "[SEP]", f"[unused{judgement + 1}]"))
    first = [cls, mark, *encoded(pair.first)[: pair.first_tokens], sep]
    second = [*encoded(pair.second)[: pair.second_tokens], sep]
    if pair.before:
        second += [*encoded(pair.before)[:BEFORE_TOKENS], sep]
    return first + second, len(first)
