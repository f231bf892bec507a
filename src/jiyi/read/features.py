"""Features of a query and its candidates, as the relevance model takes them.

The model is fitted by `bench/relevance.py` on exactly these functions.
"""

from __future__ import annotations

import re

import numpy as np

from ..index.query import Evidence, Floats
from ..languages.en.questions import CUES as ENGLISH_CUES
from ..languages.script import language
from ..languages.tokens import non_overlapping, tokens
from ..languages.zh.questions import CUES as CHINESE_CUES

CANDIDATE_FEATURES = (
    "cosine",
    "previous_cosine",
    "next_cosine",
    "episode_cosine",
    "coverage",
    "previous_coverage",
    "rarest_word",
    "proper_words",
    "bm25",
    "speaker",
    "assistant",
    "previous_assistant",
    "asks",
    "previous_asks",
    "length",
    "age",
)
CUES = tuple(ENGLISH_CUES)
QUERY_FEATURES = (*CUES, "chinese", "words", "has_proper_words", "names_a_speaker", "dialogue")

# A capital inside a sentence, letters inside Chinese text, digits.
_PROPER = re.compile(r"(?<=[\w,;:\u4e00-\u9fff] )[A-Z][\w'-]*|(?<=[\u4e00-\u9fff])[A-Za-z][\w'-]*|\d+")


def proper_words(query: str) -> tuple[str, ...]:
    """Return the terms of names, codes and numbers in a query.

    >>> proper_words("Where did Tom park the Golf?")
    ('tom', 'golf')
    """
    return tuple(dict.fromkeys(term for found in _PROPER.findall(query) for term in non_overlapping(tokens(found))))


def query_features(query: str, words: tuple[str, ...], *, named: bool, dialogue: bool) -> Floats:
    """Describe the query itself; `words` are its terms without overlaps."""
    last = query.strip().splitlines()[-1] if dialogue else query
    cues = [float(bool(ENGLISH_CUES[name].search(last) or CHINESE_CUES[name].search(last))) for name in ENGLISH_CUES]
    others = (language(last) == "zh", min(len(words), 30) / 10, bool(proper_words(last)), named, dialogue)
    return np.array([*cues, *map(float, others)], np.float32)


def candidate_features(evidence: Evidence) -> Floats:
    """Return one row per candidate, in the order of `CANDIDATE_FEATURES`."""
    return np.stack([evidence.columns[name] for name in CANDIDATE_FEATURES], axis=1).astype(np.float32)
