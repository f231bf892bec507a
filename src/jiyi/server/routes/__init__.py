"""The routes of the REST API."""

from . import jobs, keys, memories, memunits
from . import maintenance as keeping
from . import search as finding
from . import server as about
from . import sessions as working
from . import synonyms as words
from . import transfer as chats

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
