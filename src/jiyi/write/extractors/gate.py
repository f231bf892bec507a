"""What is no memory: hearsay, jokes, stories."""

from __future__ import annotations

from .lexicon import pattern


def hearsay(text: str, language: str) -> int | None:
    """Where somebody else's word is passed on; a doctor's word about the speaker counts as the speaker's own."""
    found = pattern(language, "hearsay").search(text)
    return found.start() if found and not pattern("all", "authority").search(text) else None


def taken_back(text: str) -> bool:
    """ "Just kidding!" """
    return pattern("all", "taken back").search(text) is not None


def fiction(text: str) -> bool:
    return pattern("all", "fiction").search(text) is not None


def imagined(text: str, language: str) -> bool:
    """Whether a sentence supposes something instead of stating it."""
    return pattern(language, "imagined").search(text) is not None


def corrected(text: str, *, whole: bool = False) -> bool:
    """ "No wait, in July", 哦不对: what stands before it was a slip; with `whole`, nothing else is said."""
    found = pattern("all", "corrects").match(text)
    return found is not None and (not whole or found.end() >= len(text.rstrip(" ,.!，。！")))
