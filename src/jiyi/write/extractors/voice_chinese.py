"""Puts a Chinese clause into the third person: 我对花生过敏 becomes 小美对花生过敏."""

from __future__ import annotations

import re

_FIRST = re.compile(r"我自己|我们俩|我们|咱们|咱俩|我俩|自我|我|咱|俺")
_YOU = re.compile(r"您|你")


def third_person(text: str, name: str, group: str, you: str | None, *, dropped: bool = False) -> str:
    """The clause as somebody else would tell it. `dropped` says that it leaves out its subject."""

    def told(found: re.Match[str]) -> str:
        word = found[0]
        if word == "自我":
            return word
        if word == "我自己":
            return name + "自己"
        if word in ("我", "咱", "俺"):
            return name
        return group

    changed = _FIRST.sub(told, text)
    if you:
        changed = _YOU.sub(you, changed)
    return name + changed if dropped else changed
