"""Combine the reranker's score with what is known about a candidate besides its text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# In units of the logit; chosen by cross-validation on everyday-train and the first half of everyday-dev.
OLDER = -0.3  # the oldest of several candidates that are about as good
ABOUT_AS_GOOD = 1.0  # distance to the best candidate
BY_ASSISTANT = -0.4
BY_ASSISTANT_ASKED = 1.0  # the question is about what the assistant said
ASKS = -0.5  # the candidate is a question itself

ABOUT_ASSISTANT = re.compile(
    r"\b(did|had|have|were|that) you\b|\byou (tell|told|suggest|recommend|gave|give|said|put|had|mention|advise)"
    r"|(你|您|助手|AI).{0,4}(说|推荐|建议|给|教|告诉|提)|建议|推荐",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Candidate:
    text: str
    similarity: float  # cosine by the built-in embedder
    by_assistant: bool
    at: float | None  # any unit of time


def combined(
    question: str, logits: NDArray[np.float32], candidates: Sequence[Candidate], fusion: NDArray[np.float32]
) -> NDArray[np.float64]:
    """Return the probability of each candidate; `fusion` comes with the model (`NumpyReranker.fusion`)."""
    similarity = np.array([candidate.similarity for candidate in candidates])
    scores = fusion[0] * logits + fusion[1] * similarity + fusion[2]
    assistant = BY_ASSISTANT_ASKED if ABOUT_ASSISTANT.search(question) else BY_ASSISTANT
    scores = scores + assistant * np.array([candidate.by_assistant for candidate in candidates])
    scores = scores + ASKS * np.array([candidate.text.rstrip().endswith(("?", "？")) for candidate in candidates])
    near = [
        at for at in np.flatnonzero(scores > scores.max() - ABOUT_AS_GOOD).tolist() if candidates[at].at is not None
    ]
    for place, at in enumerate(sorted(near, key=lambda at: -(candidates[at].at or 0.0))):
        scores[at] += OLDER * place / max(len(near) - 1, 1)
    probabilities: NDArray[np.float64] = 1 / (1 + np.exp(-scores))
    return probabilities
