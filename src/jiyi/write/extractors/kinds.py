"""Kinds of things, with one name in both languages: whoever uses Vim and then Helix uses one editor after the other."""

from __future__ import annotations

import re
from functools import cache

from .lexicon import named, one_of

# "I use Helix now": and nothing else.
NOW = re.compile(r"\b(?:now|these days|nowadays)\b|现在|如今|目前|[改换]", re.IGNORECASE)


def kind_of(thing: str) -> str | None:
    """
    >>> kind_of("Neovim"), kind_of("微信"), kind_of("the blue one")
    ('editor', 'chat', None)
    """
    known = named("all", "kinds")
    words = thing.lower()
    found = known.get(words)
    if found or not words:
        return found
    # "Helix editor", "Python 3.12", "iPhone 15", 华为Mate 60
    first = words.split()[0]
    if len(words.split()) > 4:
        return None
    return known.get(first) or next(
        (known[first[:size]] for size in (4, 3, 2) if first[:size] in known and not first[:size].isascii()), None
    )


def chinese_things(text: str) -> list[str]:
    """Things of a known kind that are named in Chinese.

    >>> chinese_things("把钉钉换成飞书")
    ['钉钉', '飞书']
    """
    return [] if text.isascii() else _chinese_names().findall(text)


@cache
def _chinese_names() -> re.Pattern[str]:
    return one_of(word for word in named("all", "kinds") if not word.isascii())


def kind_called(text: str) -> str | None:
    """The kind whose name stands in a text.

    >>> kind_called("数据库又换成了TiDB"), kind_called("my new laptop"), kind_called("a walk")
    ('database', 'computer', None)
    """
    found = _kind_names().search(text.lower())
    return named("all", "kind names")[found[0]] if found else None


@cache
def _kind_names() -> re.Pattern[str]:
    names = named("all", "kind names")
    latin = "|".join(re.escape(name) for name in names if name.isascii())
    return re.compile(rf"\b(?:{latin})\b|{one_of(name for name in names if not name.isascii()).pattern}")
