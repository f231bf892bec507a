"""The built-in extractor: memories out of a conversation, without a model and without a key.

A message is cut into clauses, a clause is read (who, what, negated, ended, intended), and one small module for each
kind of memory says what it makes of it. The surest claim on a clause becomes a draft. `docs/extraction.md` tells how,
`docs/extending.md` how to add a kind.
"""

from __future__ import annotations

from ..drafts import Draft, Unit

__all__ = ["builtin_drafts"]


def builtin_drafts(unit: Unit) -> list[Draft]:
    """The memories that a stretch of conversation holds, each with the words it comes from."""
    # The tables are read when they are first needed, not at import.
    from .builtin import drafts_of

    return drafts_of(unit)
