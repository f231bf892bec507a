"""The trials in the order they run: module name and description."""

from __future__ import annotations

TRIALS: dict[str, str] = {
    "inputs": "bad input to everything that reads: files, imports, replies, queries, filters",
    "fuzzing": "coverage-guided fuzzing of the same parsers",
    "kills": "kill -9 at random moments",
    "engine_kills": "kill -9 of external engines and of the process that feeds them",
    "writes": "kill -9 at every call that writes, of every verb",
    "io_errors": "each of these calls fails, disks are full, read-only or locked, and the clock jumps",
    "power": "power cuts: what was not flushed is lost, torn or reordered",
    "concurrency": "sixteen processes at once, on both databases",
    "soak": "two hours of mixed load on 100,000 memories",
    "endpoints": "language models and embedders that misbehave in every way",
    "model": "the whole public face against a dictionary, with crashes, moves and undo",
    "isolation": "every verb, tool, command and route with foreign ids and names that look alike",
    "poisoning": "orders hidden in memories, as a web page or a mail would bring them",
    "attacker": "foreign roles, forged imports, long runs, lost files, bombs, slow clients, look-alikes of the fence",
    "stalls": "requests of 200 kB of every kind while somebody else asks, and SIGTERM during each",
    "mutants": "mistakes put into the code that writes, reads, stores and authorises: do the tests notice?",
}
