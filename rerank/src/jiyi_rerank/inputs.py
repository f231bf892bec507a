"""Token ids of questions and messages, and the age buckets that go with them."""

from __future__ import annotations

from math import log2

from .wordpiece import WordPiece

QUESTION_TOKENS, MESSAGE_TOKENS, PREVIOUS_TOKENS = 62, 120, 32
UNKNOWN_AGE = 15
NEWER = "now: "


def question_ids(pieces: WordPiece, text: str) -> list[int]:
    """Return [CLS] question [SEP]; of a text that is too long, the end counts."""
    return [pieces.cls, *pieces.encode(text)[-(QUESTION_TOKENS - 2) :], pieces.sep]


def newer_ids(pieces: WordPiece, text: str) -> list[int]:
    """Return the ids of a newer message, to be scored against the older ones that it may replace."""
    return [pieces.cls, *pieces.encode(f"{NEWER}{text}")[: QUESTION_TOKENS - 2], pieces.sep]


def message_ids(pieces: WordPiece, speaker: str, text: str, previous: str = "") -> list[int]:
    """Return speaker: message [SEP] previous message [SEP]."""
    said = f"{speaker}: {text}" if speaker else text
    before = [*pieces.encode(previous, PREVIOUS_TOKENS), pieces.sep] if previous else []
    return [*pieces.encode(said, MESSAGE_TOKENS), pieces.sep, *before]


def age_bucket(days: float) -> int:
    return min(int(log2(1 + max(days, 0.0)) * 1.4), UNKNOWN_AGE - 1)


def rank_buckets(times: list[float]) -> list[int]:
    """Return the recency of each candidate among its list: 0 = newest, 14 = oldest."""
    order = sorted(range(len(times)), key=lambda at: -times[at])
    ranks = [0] * len(times)
    for place, at in enumerate(order):
        ranks[at] = round(place * (UNKNOWN_AGE - 1) / max(len(times) - 1, 1))
    return ranks
