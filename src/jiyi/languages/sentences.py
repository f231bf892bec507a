"""Sentences, in both languages."""

import re

_SENTENCE = re.compile(r"[^.!?。！？；\n]*[.!?。！？；\n]+|[^.!?。！？；\n]+")


def sentences(text: str) -> list[str]:
    """The sentences of a text, each with the marks that end it.

    >>> sentences("你好吗？I am fine. And you?")
    ['你好吗？', 'I am fine.', 'And you?']
    """
    found = (match.group().strip() for match in _SENTENCE.finditer(text))
    return [sentence for sentence in found if any(map(str.isalnum, sentence))]


def share_of_questions(text: str) -> float:
    """How much of a text asks: 0 for none of its sentences, 1 for all."""
    found = sentences(text)
    return sum("?" in sentence or "？" in sentence for sentence in found) / len(found) if found else 0.0
