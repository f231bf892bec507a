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
    "forked": "forks while threads add, search and embed, as with gunicorn's preload and Celery",
    "concurrency": "sixteen processes at once, on both databases",
    "growth": "one process grows from 0 to 20,000 messages, with searches after 1, 500 and 5,000",
    "erasure": "users are deleted during imports, uploads, adds, jobs and syncs of other processes",
    "soak": "two hours of mixed load on 100,000 memories",
    "users": "half an hour with ever more users: memory levels off",
    "endpoints": "language models and embedders that misbehave in every way",
    "model": "the whole public face against a dictionary, with crashes, moves and undo",
    "isolation": "every verb, tool, command and route with foreign ids and names that look alike",
    "standing": "allergies and wishes that are imported, edited, restored or committed late, by any process",
    "mem0_calls": "calls of mem0's API that delete and change, with any mixture of right and wrong arguments",
    "poisoning": "orders hidden in memories, as a web page or a mail would bring them",
    "foreign_words": "pasted text and speakers with the user's name: they end nothing and wish nothing for the user",
    "attacker": "foreign roles, forged imports, long runs, lost files, bombs, slow clients, look-alikes of the fence",
    "folder": "a hostile folder: every setting, in every kind of settings file, with every command and hook",
    "stalls": "requests of 200 kB of every kind while somebody else asks, and SIGTERM during each",
    "mutants": "mistakes put into the code that writes, reads, stores and authorises: do the tests notice?",
}
