"""The trials by name, in the order in which they run: name → module, and what it does in a line."""

from __future__ import annotations

TRIALS: dict[str, str] = {
    "inputs": "bad input to everything that reads: files, imports, replies, queries, filters",
    "endpoints": "language models and embedders that misbehave in every way",
    "mutants": "mistakes put into the code that stores, does jobs, reconciles and authorises: do the tests notice?",
}
