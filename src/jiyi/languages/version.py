"""Which functions a memory's words were worked out by."""

from __future__ import annotations

# Raise it with every change of the functions of this package that gives a text other terms, keywords or hashes than
# before: memories with a lower number are then indexed anew, in the background. 0: it is not known.
WORDS_VERSION = 1
