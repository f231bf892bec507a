"""Chinese numerals as they are written in front of a unit."""

from __future__ import annotations

# Inside of a regular expression. 半 (half) and 几 (a few) are amounts of their own, see the rules.
CHINESE_NUMBER = "[0-9]{1,4}|[一二两三四五六七八九十百]{1,5}"

_DIGITS = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_SCALES = {"十": 10, "百": 100}


def chinese_number(written: str) -> int:
    """Return the value of 12, 十二, 二十 or 一百零五.

    >>> chinese_number("二十三")
    23
    """
    if written.isdecimal():
        return int(written)
    total = digit = 0
    for char in written:
        if scale := _SCALES.get(char):
            total += (digit or 1) * scale
            digit = 0
        else:
            digit = _DIGITS[char]
    return total + digit


def chinese_year(written: str) -> int:
    """Return the value of 2023 or 二〇二三, digit by digit."""
    return int("".join(str(_DIGITS.get(char, char)) for char in written))
