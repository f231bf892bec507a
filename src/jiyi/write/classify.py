"""Kind and salience of a sentence, from a linear model on words, word pairs and a few surface features.

Lexical features reach the accuracy of the sentence embedding on stories that were not trained on (see
`python -m bench.sentences evaluate`), so no embedder is needed and the result depends on text and role only. Sentences
in languages without training data are judged by their surface features. The weights are in `classify.npz`, fitted by
`bench/sentences.py`.
"""

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from io import BytesIO
from itertools import pairwise
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ..languages import as_user
from ..text_cache import text_cache

# The first nine are worth remembering when a person says them.
KINDS = (
    "fact", "preference", "plan", "event", "decision", "instruction", "change", "end", "correction",
    "question", "request", "smalltalk", "joke", "quote", "knowledge", "answer", "nonanswer",
)  # fmt: skip
SALIENT = KINDS[:9]
ABOUT = ("self", "other", "none")

WORD_FEATURES = 1 << 13
MAX_CHARACTERS = 600  # the kind of a long text shows in its beginning

_WORD = re.compile(r"[a-zà-öø-ÿ][a-zà-öø-ÿ']*|\d+|[\u3040-\u30ff\u4e00-\u9fff]|[^\w\s]")
_LATIN = re.compile(r"[a-zà-öø-ÿ']+")
_HAN = re.compile(r"[\u4e00-\u9fff]")
_CUES = tuple(
    re.compile(pattern)
    for pattern in (
        r"[?？]",
        r"[?？][\s\"'”」)）]?$",
        r"[!！]",
        r"\d",
        r"\b(?:i|i'm|im|my|me|mine|i've|ive|i'll|myself|ich|mein|meine|je|mon|ma)\b|[我咱俺]|本人",
        r"\b(?:you|your|u)\b|[你您]",
        r"\b(?:we|our|us|we're)\b|我们|咱们",
        r"\b(?:he|she|his|her|they|their|he's|she's)\b|[他她]",
        r"[\"“”「」『』]",
        r"[\U0001f300-\U0001faff]",
        r"\b(?:haha|hahaha|lol|lmao|jk|kidding|rofl)\b|哈哈|开玩笑|笑死|[hx]{3}|www",
        r"^(?:what|when|where|who|how|why|which|can|could|do|does|did|is|are|will|would|should)\b",
        r"吗|呢[?？。]?$|什么|怎么|哪|几点|多少|为什么|谁",
        r"\b(?:not|no|never|don't|dont|can't|cant|won't|isn't|didn't|anymore|longer)\b|[不没别]",
        r"^(?:please|pls|帮我|请|麻烦|给我|remind|write|make|give|tell|help|draft|translate)",
        r"https?:|```",
    )
)
FEATURES = WORD_FEATURES + len(_CUES) + 8
SMALL_TALK = 0.96  # least probability; bare keywords come close to it


@dataclass(frozen=True, slots=True)
class Classification:
    """Probabilities of a sentence's kinds and of whom it is about, in the order of `KINDS` and `ABOUT`."""

    kinds: tuple[float, ...]
    about: tuple[float, ...]

    @property
    def kind(self) -> str:
        return KINDS[max(range(len(KINDS)), key=self.kinds.__getitem__)]

    @property
    def salience(self) -> float:
        """Probability that the sentence is worth remembering."""
        return min(1.0, sum(self.kinds[: len(SALIENT)]))

    def probability(self, *kinds: str) -> float:
        return sum(self.kinds[KINDS.index(kind)] for kind in kinds)


@text_cache(256)
def classify(text: str, role: str = "user") -> Classification:
    """Classify a sentence or a short message.

    >>> classify("I'm allergic to peanuts.").kind, classify("哈哈哈").kind
    ('fact', 'smalltalk')
    """
    weights, bias = _weights()
    columns, values = features(text, role)
    scores = values @ weights.take(columns, axis=0) + bias
    kinds, about = _softmax(scores[: len(KINDS)]), _softmax(scores[len(KINDS) :])
    return Classification(tuple(kinds.tolist()), tuple(about.tolist()))


def is_small_talk(text: str) -> bool:
    """Return True for words that surely say and want nothing, such as "thanks!" or 嗯嗯."""
    return classify(text).probability("smalltalk") >= SMALL_TALK


def features(text: str, role: str) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Columns and values of the features that are not zero."""
    text = as_user(text[:MAX_CHARACTERS])
    lower = text.lower().replace("’", "'")
    words = ["0" if word.isdigit() else word for word in _WORD.findall(lower)]
    grams = {*words, *(f"{one} {other}" for one, other in pairwise(words))}
    if words:
        grams |= {f"^{words[0]}", f"{words[-1]}$"}
    columns = sorted({crc32(gram.encode()) % WORD_FEATURES for gram in grams})
    length = len(_LATIN.findall(lower)) + len(_HAN.findall(lower))
    surface = [
        role == "user",
        role == "assistant",
        min(length, 40) / 20,
        length <= 3,
        length <= 6,
        bool(_HAN.search(text)),
        len(text) >= MAX_CHARACTERS,
        any(word[:1].isupper() for word in text.split()[1:]),
        *(cue.search(lower) is not None for cue in _CUES),
    ]
    found = [(WORD_FEATURES + at, float(value)) for at, value in enumerate(surface) if value]
    scale = 3 / (1 + len(columns) ** 0.5)
    return (
        np.array([*columns, *(at for at, _ in found)], np.int64),
        np.array([*([scale] * len(columns)), *(value for _, value in found)], np.float32),
    )


def _softmax(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    # Called directly: the methods `max` and `sum` take longer than the work on so few values.
    shares: NDArray[np.float32] = np.exp(scores - np.maximum.reduce(scores))
    shares /= np.add.reduce(shares)
    return shares


@cache
def _weights() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    with np.load(BytesIO(files(__package__).joinpath("classify.npz").read_bytes())) as stored:
        return stored["weights"].astype(np.float32), stored["bias"]  # stored in half the size
