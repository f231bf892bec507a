"""Texts of the pairs that the reader reads. Training and the package build them alike."""

from __future__ import annotations

from dataclasses import dataclass

QUESTION_TOKENS, STATEMENT_TOKENS, BEFORE_TOKENS = 60, 110, 32
MEMORY_TOKENS, MESSAGES_TOKENS = 60, 190
USER = "user"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts, and one that stands before the second."""

    first: str
    second: str
    before: str = ""
    first_tokens: int = QUESTION_TOKENS
    second_tokens: int = STATEMENT_TOKENS


def said(speaker: str, text: str) -> str:
    return f"{speaker}: {text}" if speaker else text


def answers(question: str, speaker: str, statement: str, before: str = "") -> Pair:
    return Pair(question, said(speaker, statement), before)


def changes(newer_by: str, newer: str, older_by: str, older: str) -> Pair:
    return Pair(said(newer_by, newer), said(older_by, older), first_tokens=STATEMENT_TOKENS)


def supports(messages: str, memory: str) -> Pair:
    return Pair(memory, messages, first_tokens=MEMORY_TOKENS, second_tokens=MESSAGES_TOKENS)
