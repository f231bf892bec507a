"""Messages cut into statements: a sentence together with the following ones that make sense only with it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..languages import sentences
from .classify import Classification, classify

WORTH = 0.45  # salience from which a statement becomes a memory
MAX_STATEMENTS = 200  # of one message
LONGEST = 600  # characters of a statement; a longer one is text that was pasted

_DEPENDENT = re.compile(
    r"^\W*(?:(?:he|she|it|they|him|her|them|this|that|these|those|there|then|so|but|and|or|well|because|also|which"
    r"|though|although|however|instead|otherwise|actually|it's|its|that's|he's|she's|they're|there's|just kidding|jk"
    r"|not really|sorry|no wait|i mean|wait)\b|[他她它]|这[个次样里是]?|那[个次样里是]?|所以|但|不过|然后|而且|其实"
    "|因为|而|还有|开玩笑|不对|不是|就是|除了)",
    re.IGNORECASE,
)
_WORDS = re.compile(r"[^\W\d_]+|\d+")
_HAN = re.compile(r"[\u4e00-\u9fff]")
_PRONOUN = re.compile(r"\b(?:he|she|him|her|his|they|them|their|there|it)\b|[他她它]", re.IGNORECASE)
_NAME = re.compile(r"\b[A-Z][a-z]+")


@dataclass(frozen=True, slots=True)
class Statement:
    """A part of a message, `start` to `end`, and what the classifier says of it."""

    text: str
    start: int
    end: int
    found: Classification
    dependent: bool  # it refers to what was said before it


def is_dependent(sentence: str) -> bool:
    """Return True if a sentence needs the one before it to be understood."""
    short = len(_HAN.findall(sentence)) + 2 * len(_WORDS.findall(_HAN.sub(" ", sentence))) <= 6
    return (
        short or bool(_DEPENDENT.match(sentence)) or bool(_PRONOUN.search(sentence) and not _NAME.search(sentence[1:]))
    )


def statements(text: str, role: str) -> list[Statement]:
    """Cut a message into statements and classify each."""
    parts: list[tuple[int, int, bool]] = []
    for start, end in sentences(text):
        dependent = is_dependent(text[start:end])
        if parts and dependent and end - parts[-1][0] <= LONGEST and not text[start:end].endswith(("?", "？")):
            before = text[parts[-1][0] : parts[-1][1]]
            if not before.endswith(("?", "？")) and classify(before, role).salience >= WORTH:
                parts[-1] = (parts[-1][0], end, parts[-1][2])
                continue
        parts.append((start, end, dependent))
        if len(parts) > MAX_STATEMENTS:
            break
    return [
        Statement(text[start:end], start, end, classify(text[start:end], role), dependent)
        for start, end, dependent in parts
    ]
