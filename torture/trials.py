"""The trials by name, in the order in which they run: name → module, and what it does in a line."""

from __future__ import annotations

TRIALS: dict[str, str] = {
    "inputs": "bad input to everything that reads: files, imports, replies, queries, filters",
}
