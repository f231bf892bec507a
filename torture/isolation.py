"""Isolation: every verb, tool, command and route, called by users with similar names and with the owner's ids.

No answer contains the owner's data, the owner's ids are answered like ids that do not exist, and the owner's data is
unchanged afterwards. A verb, tool or command without a case is a failure.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import re
from contextlib import ExitStack, suppress
from pathlib import Path
from unittest.mock import patch

from jiyi import JiyiError, Memory
from jiyi.agents.tools import TOOLS as OFFERED
from jiyi.agents.tools import MemoryTools
from jiyi.settings import load_settings
from jiyi.testing import WordEmbedder

from . import isolation_cases
from .isolation_cases import BY_ID, BY_NAME, CANARY, COMMANDS, OWNER, TOOLS, Theirs
from .stores import stores
from .trial import Trial

PROTECTIONS = {
    "the user's predicate": "the filter of `list` and `count` leaves the user out",
    "the user of an id": "`memory_row`, by which a memory is found by its id, looks for any user's",
}
SESSION = "the owner's talk"
AREAS = ("jobs", "keys", "maintenance", "sessions", "synonyms", "transfer", "usage", "workspace")
MOMENT = re.compile(r"datetime\.datetime\([^)]*\)")
OUTSIDE_FROM = 0.02  # smaller trials skip the server and the command line
ON_THE_WEB, AT_THE_PROMPT = 6, 4  # names that try routes and commands


async def run(trial: Trial) -> None:
    _complete(trial)
    names = isolation_cases.lookalikes(OWNER)
    if trial.scale < 0.2:
        names = trial.chances().sample(names, max(3, round(len(names) * trial.scale)))
    outside = trial.without is None and trial.scale >= OUTSIDE_FROM
    with ExitStack() as off:
        async for kind, place in stores(trial):
            settings = load_settings(tools={"calls_per_minute": 10**6}, maintenance={"interval_hours": None})
            folder = trial.scratch / f"files {kind}"
            folder.mkdir()
            workspace = folder / "workspace"
            memory = Memory.open(place, settings=settings, embedder=WordEmbedder(), workspace=workspace)
            async with memory:
                theirs = await _owned(memory, folder)
                before = await _export(memory, folder)
                _switch_off(trial.without, off)
                for name in names:
                    await _verbs(trial, memory, kind, name, theirs)
                    await _tools(trial, memory, kind, name, theirs)
                if outside:
                    for name in names[:AT_THE_PROMPT]:
                        await asyncio.to_thread(_commands, trial, kind, place, name, theirs)
                if await _export(memory, folder) != before:
                    trial.breaks("leak", f"{kind}: data of the owner was changed")
            if outside:
                await asyncio.to_thread(_routes, trial, kind, place, names[:ON_THE_WEB], theirs)


def _complete(trial: Trial) -> None:
    """Report every verb, tool and command without a case."""
    from .surfaces import commands

    verbs = set(_public(Memory))
    for area in AREAS:
        module = importlib.import_module(f"jiyi.areas.{area}")
        verbs |= {f"{area}.{name}" for name in _public(getattr(module, area.capitalize()))}
    missing = verbs - {*BY_ID, *BY_NAME, *isolation_cases.UNSCOPED}
    missing |= {tool.name for tool in OFFERED} - {*TOOLS}
    missing |= set(commands()) - {*COMMANDS, *isolation_cases.COMMANDS_SKIPPED}
    for name in sorted(missing):
        trial.breaks("other", f"{name} has no case in torture/isolation_cases.py")


def _public(kind: type) -> list[str]:
    return [name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name))]


async def _owned(memory: Memory, folder: Path) -> Theirs:
    """Create the owner's data: a conversation, a memory with a key, synonyms, a recall."""
    said = [{"role": "user", "name": CANARY, "content": f"My {CANARY} sings in the garden."}]
    receipt = await memory.add(said, user_id=OWNER, session_id=SESSION, group_id=CANARY)
    bird = {"content": f"the {CANARY} sings", "memory_key": "bird", "metadata": {"x": CANARY}, "tags": ["bird"]}
    [kept] = (await memory.add(bird, user_id=OWNER)).memories
    await memory.update(kept.id, user_id=OWNER, content=f"the {CANARY} sings well")
    await memory.synonyms.add([("sings", CANARY)], user_id=OWNER)
    await memory.search("what sings", user_id=OWNER)
    (folder / "chat.json").write_text(json.dumps([{"role": "user", "content": "I play chess"}]), "utf-8")
    theirs = Theirs(kept.id, "bird", receipt.id, SESSION, folder / "theirs.jsonl", folder)
    await memory.transfer.export(theirs.export, user_id=OWNER)
    return theirs


async def _export(memory: Memory, folder: Path) -> str:
    await memory.transfer.export(folder / "now.jsonl", user_id=OWNER, overwrite=True)
    return (folder / "now.jsonl").read_text("utf-8")


async def _verbs(trial: Trial, memory: Memory, kind: str, user: str, theirs: Theirs) -> None:
    for name, call in {**BY_NAME, **BY_ID}.items():
        trial.counts["calls of verbs"] += 1
        told = await _told(call, memory, user, theirs)
        what = f"{kind}: {name} by {user!r}"
        if CANARY in told:
            trial.breaks("leak", f"{what} shows {told[:120]!r}")
        if name in BY_ID:
            nobody = await _told(call, memory, user, theirs.like())
            if _bare(told, theirs) != _bare(nobody, theirs.like()):
                trial.breaks("leak", f"{what} answers {told[:80]!r}, and {nobody[:80]!r} for an unknown id")


async def _told(call: isolation_cases.Call, memory: Memory, user: str, theirs: Theirs) -> str:
    try:
        return repr(await call(memory, user, theirs))
    except JiyiError as error:
        return f"{type(error).__name__}: {error}"
    except Exception as error:  # noqa: BLE001 - compared with the answer for an unknown id
        return f"not Jiyi's own {type(error).__name__}: {error}"


def _bare(told: str, theirs: Theirs) -> str:
    for value in (theirs.memory_id, theirs.memory_key, theirs.job_id, theirs.session_id):
        told = told.replace(value, "…")
    return MOMENT.sub("then", told)


async def _tools(trial: Trial, memory: Memory, kind: str, user: str, theirs: Theirs) -> None:
    tools = MemoryTools(memory, user_id=user, agent_id="a", session_id="s")
    for name, given in TOOLS.items():
        trial.counts["calls of tools"] += 1
        result = await tools.call(name, given(theirs))
        if CANARY in result.text + repr(result.data):
            trial.breaks("leak", f"{kind}: the tool {name} of {user!r} shows {result.text[:120]!r}")


def _commands(trial: Trial, kind: str, place: str | Path, user: str, theirs: Theirs) -> None:
    from .surfaces import commanded

    for name, arguments in COMMANDS.items():
        trial.counts["commands"] += 1
        told = commanded([*name.split(), *arguments(theirs), "--user", user, "--store", str(place), "--json"])
        if CANARY in told:
            trial.breaks("leak", f"{kind}: jiyi {name} of {user!r} shows {told[:120]!r}")


def _routes(trial: Trial, kind: str, place: str | Path, names: list[str], theirs: Theirs) -> None:
    from .surfaces import routed

    for user, name, problem in routed(trial, place, names, theirs):
        trial.breaks("leak", f"{kind}: {name} with a key of {user!r} {problem}")


def _switch_off(what: str | None, off: ExitStack) -> None:
    if what == "the user's predicate":
        from jiyi.store.repositories.memories import conditions

        for module in ("memories", "link_rows"):
            off.enter_context(
                patch(f"jiyi.store.repositories.{module}.conditions", lambda where: conditions(where)[1:])
            )
    elif what == "the user of an id":
        from sqlalchemy import or_, select

        from jiyi.store.repositories import memories
        from jiyi.store.schema.tables import MemoryRow

        def anybodys(session, user_id, name):  # type: ignore[no-untyped-def]
            named = select(MemoryRow.__table__).where(or_(MemoryRow.id == name, MemoryRow.memory_key == name))
            with suppress(IndexError):
                return session.execute(named).all()[0]
            return rightly(session, user_id, name)

        rightly = memories.memory_row
        off.enter_context(patch("jiyi.store.repositories.memories.memory_row", anybodys))
