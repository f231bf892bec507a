"""Words and patterns of a language, from `tables/lexicon.*.txt`: lists to read and to extend, apart from the code."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from ...text_cache import text_cache


def read_table(name: str) -> str:
    return files(__package__).joinpath("tables").joinpath(name).read_text(encoding="utf-8")


@cache
def _sections(language: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    rows: list[str] = []
    for line in map(str.strip, read_table(f"lexicon.{language}.txt").splitlines()):
        if line.startswith("[[") and line.endswith("]]"):
            rows = found.setdefault(line[2:-2], [])
        elif line and not line.startswith("# "):
            rows.append(line)
    return found


@cache
def words(language: str, name: str) -> frozenset[str]:
    """The words of a list; an underscore stands for a space."""
    return frozenset(word.replace("_", " ") for row in _sections(language)[name] for word in row.split())


@cache
def named(language: str, name: str) -> dict[str, str]:
    """A list whose rows have a name: from each word to the name of its row."""
    rows = (row.partition(":") for row in _sections(language)[name])
    return {word.replace("_", " "): key.strip() for key, _, listed in rows for word in listed.split()}


@cache
def pattern(language: str, name: str) -> re.Pattern[str]:
    """A list of regular expressions, one on each line, any of which may match."""
    return re.compile("|".join(_sections(language)[name]), re.IGNORECASE)


@text_cache(32)
def message_has(text: str, language: str, name: str) -> bool:
    """Whether a pattern matches anywhere in a message. Asked for each of its clauses, and looked for once: otherwise a
    long message would take the square of its length."""
    return pattern(language, name).search(text) is not None


@cache
def starts(language: str, name: str) -> tuple[str, ...]:
    """The words of a list in the form that `str.startswith` takes."""
    return tuple(sorted(words(language, name)))


@cache
def any_word(language: str, name: str) -> re.Pattern[str]:
    """Matches the longest of the words of a list."""
    return one_of(words(language, name))


def one_of(listed: Iterable[str]) -> re.Pattern[str]:
    """Matches the longest of the words."""
    return re.compile("|".join(map(re.escape, sorted(listed, key=len, reverse=True))))
