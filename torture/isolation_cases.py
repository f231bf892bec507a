"""Calls of every verb, tool and command with ids and names of another user."""

from __future__ import annotations

import unicodedata
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jiyi import InvalidInput, Memory

OWNER = "Zoë%_梅 A-1"
CANARY = "kanarienvogel"


def lookalikes(user_id: str) -> list[str]:
    """Names that databases, file systems and people confuse with this one."""
    wide = "".join(chr(ord(each) + 0xFEE0) if "!" <= each <= "~" else each for each in user_id)
    found = [
        user_id.lower(),
        user_id.upper(),
        user_id.swapcase(),
        unicodedata.normalize("NFD", user_id),
        wide,
        user_id.replace("ë", "e"),
        user_id.replace("A", "А"),  # Cyrillic
        user_id.replace(" ", "\u00a0"),
        user_id.replace("-", "\u2010"),
        user_id.replace("梅", "\U0002f8e2"),  # compatibility form
        f"{user_id} ",
        f" {user_id}",
        f"{user_id}\t",
        f"{user_id}\u200b",
        f"\ufeff{user_id}",
        f"{user_id}\u0301",
        user_id[:3],
        user_id[:-1],
        f"{user_id}1",
        "%",
        "_" * len(user_id),
        f"{user_id[:3]}%",
        user_id.replace("%", "%%"),
        user_id.replace("%_", "\\%\\_"),
        f"{user_id}'--",
        f"{user_id}' OR '1'='1",
        "*",
        ".*",
        "everybody",
        "on",
        "null",
        f"erased:{user_id}",
        f"../{user_id}",
    ]
    return [name for name in dict.fromkeys(found) if name != user_id]


@dataclass(frozen=True, slots=True)
class Theirs:
    """Ids and files of the owner, used by other users."""

    memory_id: str
    memory_key: str
    job_id: str
    session_id: str
    export: Path
    folder: Path  # for output files

    def like(self) -> Theirs:
        """Return ids of the same form that do not exist."""
        return Theirs("0" * 25 + "1", "nobodys-bird", "0" * 25 + "1", "nobody's", self.export, self.folder)


Call = Callable[[Memory, str, Theirs], Awaitable[Any]]
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
# By an id of the owner: the answer must be that of an id that does not exist.
BY_ID: dict[str, Call] = {
    "get": lambda memory, user, theirs: memory.get(theirs.memory_id, user_id=user),
    "get_many": lambda memory, user, theirs: memory.get_many([theirs.memory_id, theirs.memory_key], user_id=user),
    "update": lambda memory, user, theirs: memory.update(theirs.memory_key, user_id=user, content="mine now"),
    "update_many": lambda memory, user, theirs: memory.update_many(
        [{"memory_id": theirs.memory_id, "content": "mine now"}], user_id=user
    ),
    "delete_many": lambda memory, user, theirs: memory.delete_many([theirs.memory_id], user_id=user, with_sources=True),
    "restore": lambda memory, user, theirs: memory.restore(theirs.memory_id, user_id=user, to_version=1),
    "delete": lambda memory, user, theirs: memory.delete(theirs.memory_id, user_id=user, with_sources=True),
    "history": lambda memory, user, theirs: memory.history(theirs.memory_key, user_id=user),
    "sources": lambda memory, user, theirs: memory.sources(theirs.memory_id, user_id=user),
    "relations.list": lambda memory, user, theirs: memory.relations.list(theirs.memory_id, user_id=user),
    "relations.add": lambda memory, user, theirs: memory.relations.add(
        theirs.memory_id, theirs.memory_key, "supports", user_id=user
    ),
    "relations.remove": lambda memory, user, theirs: memory.relations.remove(
        theirs.memory_id, theirs.memory_key, user_id=user
    ),
    "maintenance.undo": lambda memory, user, theirs: memory.maintenance.undo(theirs.memory_id, user_id=user),
    "maintenance.undo_plan": lambda memory, user, theirs: memory.maintenance.undo_plan(
        session_id=theirs.session_id, user_id=user
    ),
    "jobs.status": lambda memory, user, theirs: memory.jobs.status(theirs.job_id, user_id=user),
    "jobs.wait": lambda memory, user, theirs: memory.jobs.wait(theirs.job_id, user_id=user, timeout=0.0),
    "jobs.get": lambda memory, user, theirs: memory.jobs.get(theirs.job_id, user_id=user),
    "jobs.retry": lambda memory, user, theirs: memory.jobs.retry(theirs.job_id, user_id=user),
    "jobs.cancel": lambda memory, user, theirs: memory.jobs.cancel(theirs.job_id, user_id=user),
    "sessions.end": lambda memory, user, theirs: memory.sessions.end(theirs.session_id, user_id=user),
}


async def _exported(memory: Memory, user: str, theirs: Theirs) -> str:
    await memory.transfer.export(theirs.folder / "mine.jsonl", user_id=user, overwrite=True)
    return (theirs.folder / "mine.jsonl").read_text("utf-8")


async def _answered(memory: Memory, user: str, theirs: Theirs) -> Any:
    try:
        return await memory.answer("what sings", user_id=user)
    except InvalidInput as error:  # there is no model to answer
        return str(error)


async def _listed(memory: Memory, user: str, theirs: Theirs) -> list[Any]:
    """List memories, then messages, of the owner's session after a cursor."""
    return [
        await memory.list(user_id=user, session_id=theirs.session_id, memory_types=types, cursor="z" * 26)
        for types in (None, ["message"])
    ]


async def _messages(memory: Memory, user: str, theirs: Theirs) -> list[Any]:
    """List all messages, those of the owner's session, and those after a cursor."""
    return [
        await memory.messages(user_id=user),
        await memory.messages(user_id=user, session_id=theirs.session_id),
        await memory.messages(user_id=user, cursor="z" * 26),
    ]


# By name: no data of the owner may be in the answer.
BY_NAME: dict[str, Call] = {
    "add": lambda memory, user, theirs: memory.add("plays chess", user_id=user, session_id=theirs.session_id),
    "sessions.add_summary": lambda memory, user, theirs: memory.sessions.add_summary("spoke of chess", user_id=user),
    "observe": lambda memory, user, theirs: memory.observe("hello", "hi", user_id=user, session_id=theirs.session_id),
    "sessions.record_skill": lambda memory, user, theirs: memory.sessions.record_skill("chess", ["open"], user_id=user),
    "search": lambda memory, user, theirs: memory.search("what sings", user_id=user, session_id=theirs.session_id),
    "context": lambda memory, user, theirs: memory.context("what sings", user_id=user),
    "recall": lambda memory, user, theirs: memory.recall(user, said="what sings", explain=True),
    "answer": _answered,
    "list": _listed,
    "messages": _messages,
    "count": lambda memory, user, theirs: memory.count(user_id=user, session_id=theirs.session_id, tags=["bird"]),
    "sessions.observe": lambda memory, user, theirs: memory.sessions.observe(
        [{"role": "user", "content": "hello"}], user_id=user, session_id=theirs.session_id
    ),
    "usage.changes": lambda memory, user, theirs: memory.usage.changes(user_id=user),
    "usage.subjects": lambda memory, user, theirs: memory.usage.subjects(user_id=user),
    "usage.units": lambda memory, user, theirs: memory.usage.units(user_id=user, session_id=theirs.session_id),
    "usage.profile": lambda memory, user, theirs: memory.usage.profile(user_id=user),
    "usage.mentions": lambda memory, user, theirs: memory.usage.mentions("Zoë", user_id=user),
    "usage.review": lambda memory, user, theirs: memory.usage.review(user_id=user),
    "usage.groups": lambda memory, user, theirs: memory.usage.groups(user_id=user),
    "timeline": lambda memory, user, theirs: memory.timeline(user_id=user, memory_types=["message", "fact"]),
    "usage.most_used": lambda memory, user, theirs: memory.usage.most_used(user_id=user),
    "usage.recalls": lambda memory, user, theirs: memory.usage.recalls(user_id=user),
    "stats": lambda memory, user, theirs: memory.stats(user),
    "usage.metrics": lambda memory, user, theirs: memory.usage.metrics(user),
    "jobs.epoch": lambda memory, user, theirs: memory.jobs.epoch(user_id=user),
    "jobs.list": lambda memory, user, theirs: memory.jobs.list(user_id=user),
    "maintenance.verify": lambda memory, user, theirs: memory.maintenance.verify(user_id=user),
    "synonyms.list": lambda memory, user, theirs: memory.synonyms.list(user_id=user),
    "synonyms.add": lambda memory, user, theirs: memory.synonyms.add([("a", "b")], user_id=user),
    "synonyms.remove": lambda memory, user, theirs: memory.synonyms.remove("sings", user_id=user),
    "synonyms.expand": lambda memory, user, theirs: memory.synonyms.expand(["sings"], user_id=user),
    "maintenance.compress_plan": lambda memory, user, theirs: memory.maintenance.compress_plan(user_id=user),
    "maintenance.compress": lambda memory, user, theirs: memory.maintenance.compress(user_id=user),
    "maintenance.run": lambda memory, user, theirs: memory.maintenance.run(user_id=user),
    "workspace.sync": lambda memory, user, theirs: memory.workspace.sync(user_id=user),
    "workspace.status": lambda memory, user, theirs: memory.workspace.status(user_id=user),
    "workspace.verify": lambda memory, user, theirs: memory.workspace.verify(user_id=user),
    "workspace.rebuild": lambda memory, user, theirs: memory.workspace.rebuild(user_id=user),
    "transfer.import_chats": lambda memory, user, theirs: memory.transfer.import_chats(
        theirs.folder / "chat.json", user_id=user
    ),
    "transfer.import_memories": lambda memory, user, theirs: memory.transfer.import_memories(
        theirs.export, user_id=user
    ),
    "transfer.export": _exported,
    "delete_all": lambda memory, user, theirs: memory.delete_all(user),
}


# Not about a user, or about all of them: access to these is decided by the process, or by keys.
UNSCOPED = {
    *("open", "close", "health", "users"),
    *("jobs.counts", "jobs.work", "maintenance.reindex", "maintenance.vacuum", "sessions.flush", "transfer.backup"),
    *("keys.audit", "keys.check", "keys.create", "keys.exist", "keys.list", "keys.log", "keys.revoke"),
    *("maintenance.rebuild", "maintenance.verify_engines", "usage.sizes"),
    *("usage.observed", "usage.prometheus", "workspace.files", "workspace.watch"),
}
TOOLS: dict[str, Callable[[Theirs], dict[str, Any]]] = {
    "search_memories": lambda theirs: {"query": "what sings", "min_relevance_score": 0},
    "get_memory_detail": lambda theirs: {"memory_key": theirs.memory_key},
    "save_memory": lambda theirs: {"content": "plays chess"},
    "update_memory": lambda theirs: {"memory_key": theirs.memory_id, "content": "mine now"},
    "forget_memory": lambda theirs: {"memory_key": theirs.memory_id, "permanently": True},
    "list_memories": lambda theirs: {"limit": 20},
}
COMMANDS: dict[str, Callable[[Theirs], list[str]]] = {
    "get": lambda theirs: [theirs.memory_id],
    "update": lambda theirs: [theirs.memory_id, "--text", "mine now"],
    "history": lambda theirs: [theirs.memory_key],
    "restore": lambda theirs: [theirs.memory_id],
    "undo": lambda theirs: [theirs.memory_id, "--yes"],
    "delete": lambda theirs: [theirs.memory_id, "--yes"],
    "relations list": lambda theirs: [theirs.memory_id],
    "relations add": lambda theirs: [theirs.memory_id, theirs.memory_key, "supports"],
    "relations remove": lambda theirs: [theirs.memory_id, theirs.memory_key],
    "jobs show": lambda theirs: [theirs.job_id],
    "jobs retry": lambda theirs: [theirs.job_id],
    "jobs cancel": lambda theirs: [theirs.job_id],
    "list": lambda theirs: ["--limit", "50"],
    "profile": lambda theirs: [],
    "stats": lambda theirs: [],
    "jobs list": lambda theirs: [],
    "synonyms list": lambda theirs: [],
    "synonyms add": lambda theirs: ["a", "b"],
    "verify": lambda theirs: [],
    "compress": lambda theirs: ["--dry-run"],
}
# Commands that need the real embedder, import files, or run forever; their verbs are tried directly.
COMMANDS_SKIPPED = {
    *("add", "import", "search", "mcp", "maintain", "export", "synonyms import", "synonyms remove"),
    *("ask", "context", "observe", "proxy"),
    *("workspace init", "workspace sync", "workspace status", "workspace verify", "workspace rebuild"),
}
