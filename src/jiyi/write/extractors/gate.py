"""What is no memory: hearsay, jokes, stories."""

from __future__ import annotations

from .lexicon import pattern


def hearsay(text: str, language: str) -> bool:
    """Whether somebody else's word is passed on; a doctor's word about the speaker counts as the speaker's own."""
    return pattern(language, "hearsay").search(text) is not None and not pattern("all", "authority").search(text)


def taken_back(text: str) -> bool:
    """ "Just kidding!" """
    return pattern("all", "taken back").search(text) is not None


def fiction(text: str) -> bool:
    return pattern("all", "fiction").search(text) is not None


def imagined(text: str, language: str) -> bool:
    """Whether a sentence supposes something instead of stating it."""
    return pattern(language, "imagined").search(text) is not None
