"""English number words as they are written in front of a unit."""

from __future__ import annotations

_UNTIL_TWENTY = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen twenty
"""
_WORDS = {word: value for value, word in enumerate(_UNTIL_TWENTY.split())} | {
    "a": 1, "an": 1, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
# Inside of a regular expression.
ENGLISH_NUMBER = "[0-9]{1,4}|an?|" + "|".join(word for word in _WORDS if word not in ("zero", "a", "an"))


def english_number(written: str) -> int:
    """Return the value of 12, twelve or "a"."""
    return int(written) if written.isdecimal() else _WORDS[written.lower()]
