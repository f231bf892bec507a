"""Kinds of things, with one name in both languages: whoever uses Vim and then Helix uses one editor after the other."""

from __future__ import annotations

from .lexicon import named


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
