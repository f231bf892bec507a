"""The routes, a file for each kind of thing."""

from . import about, chats, finding, jobs, keeping, keys, memories, memunits, words, working

ROUTERS = (
    memories.router,
    finding.router,
    words.router,
    working.router,
    jobs.router,
    chats.router,
    memunits.router,
    keeping.router,
    about.router,
    keys.router,
)
