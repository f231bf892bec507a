"""Checks of `jiyi doctor`: ✓ works, ! degraded, ✗ broken, with the next step."""

from __future__ import annotations

import asyncio
import os
import platform
import re
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel
from rich.table import Table
from rich.text import Text

from .. import __version__
from ..embed import Embedder, address_of, embed_query, resolve
from ..engine import Engine
from ..errors import JiyiError, SchemaTooOld, SettingsError
from ..folder_trust import SettingsFile, listed
from ..ids import new_id
from ..llm import resolve as resolve_llm
from ..memory import Memory
from ..reader import Passage, unused_because
from ..reader import resolve as resolve_reader
from ..settings import EngineSettings, Settings, load_settings_anywhere, settings_files
from ..settings_files import SHARED_VARIABLES
from ..store.repositories.key_rows import SELF_TEST_FAILED, SELF_TEST_PASSED
from ..write.llm.self_test import ENOUGH, SelfTest, self_test
from .session import counted, missing_file, plain

if TYPE_CHECKING:
    from ..models import JobCounts, Stats

PACKAGES = {
    "builtin": "onnxruntime",
    "openai": "openai",
    "sentence-transformers": "sentence-transformers",
}
SELF_TEST = {"她对花生过敏。": "过敏", "Her flight to Lisbon leaves on Sunday.": "when does she fly to Lisbon?"}


class State(Enum):
    WORKS = "✓"
    DEGRADED = "!"
    BROKEN = "✗"


@dataclass(frozen=True, slots=True)
class Check:
    state: State
    name: str
    finding: str
    next_step: str = ""

    def as_dict(self) -> dict[str, str]:
        state = self.state.name.lower()
        return {"state": state, "name": self.name, "finding": self.finding, "next_step": self.next_step}


async def examine(where: str | None) -> list[Check]:
    """Run all checks; a failed one does not stop the others."""
    try:
        settings, problem = load_settings_anywhere()
    except SettingsError as error:
        broken = Check(State.BROKEN, "settings", str(error), "correct it and run jiyi doctor again")
        return [broken, *_environment()]
    embedder, embedding = await _embedder(settings)
    model, tested = await _language_model(settings)
    usable = settings if embedder else settings.model_copy(update={"embedder": "builtin"})
    unchanged = usable.model_copy(update={"auto_migrate": False})
    return [
        _settings(problem),
        *_environment(),
        *embedding,
        await _reader(settings),
        model,
        *(await _cache(settings)),
        *(await _store(where, unchanged, embedder, tested)),
        *(await _engines(where, unchanged, embedder)),
        await _self_test(usable, embedder),
    ]


def _settings(problem: str | None) -> Check:
    """Report the settings files, and which of them the user trusts. A problem here is one of the current folder."""
    if problem is not None:
        step = "commands refuse to work in this folder; hooks, `jiyi mcp` and the checks below use your own settings"
        return Check(State.BROKEN, "settings", problem, step)
    files = [f"{file.path} ({_trust(file)})" for file in settings_files()]
    return Check(State.WORKS, "settings", ", ".join(files) or "no settings file")


def _trust(file: SettingsFile) -> str:
    if file.path.is_absolute() or os.environ.get("JIYI_CONFIG"):
        return "yours"
    return "trusted" if file.is_trusted else f"not trusted, and sets only {listed(file.names)}"


def _environment() -> list[Check]:
    unknown = unknown_variables(os.environ.keys())
    if not unknown:
        return []
    finding = f"unknown variables: {', '.join(unknown)}"
    return [Check(State.DEGRADED, "environment", finding, "is one misspelt? docs/settings.md lists all")]


def unknown_variables(names: Iterable[str]) -> list[str]:
    """Return unknown variables that start with JIYI_, which pydantic-settings ignores."""
    known = {"JIYI_CONFIG", *SHARED_VARIABLES}
    for name, field in Settings.model_fields.items():
        known.add(f"JIYI_{name.upper()}")
        if isinstance(field.default, BaseModel):
            known.update(f"JIYI_{name}__{inner}".upper() for inner in type(field.default).model_fields)
    return sorted(name for name in names if name.upper().startswith("JIYI_") and name.upper() not in known)


async def _language_model(settings: Settings) -> tuple[Check, SelfTest | None]:
    """Look at the language model, and test one that is configured."""
    llm = settings.llm
    if not (llm.model or llm.base_url or llm.api_key):
        return Check(State.WORKS, "LLM", "not configured (optional)"), None
    key = "with a key" if llm.api_key else "without a key"
    try:
        model = resolve_llm(settings.model_copy(update={"llm": llm.model_copy(update={"retries": 0})}))
    except JiyiError as error:
        step = "see docs/llm.md, or unset llm.model"
        return Check(State.BROKEN, "LLM", f"{llm.model} cannot be used: {error}", step), None
    if model is None:
        finding = f"no model named, so none is asked; {hidden(llm.base_url or llm.provider)}, {key}"
        return Check(State.WORKS, "LLM", finding), None
    where = f"messages go to {llm.model} at {model.address}, {key}"
    try:
        tested = await self_test(model)
    except JiyiError as error:
        step = "is the server running? Messages are stored meanwhile, and read later"
        return Check(State.DEGRADED, "LLM", f"{where}; the test failed: {hidden(str(error))}", step), None
    finally:
        await model.close()
    finding = f"{where}; {tested.right} of {tested.items} sentences of the test were read correctly"
    if tested.passed:
        return Check(State.WORKS, "LLM", finding), tested
    verified = {"off": "set llm.verify = auto"}.get(llm.verify, "it is asked a second time about its memories")
    return Check(
        State.DEGRADED, "LLM", f"{finding}, fewer than {ENOUGH}", f"{verified}; a larger model makes fewer mistakes"
    ), tested


def hidden(url: str) -> str:
    """Replace the password in a URL."""
    return re.sub(r"(://[^:/@\s]*):[^@\s]*@", r"\1:***@", url)


async def _embedder(settings: Settings) -> tuple[Embedder | None, list[Check]]:
    """Return the embedder, and its check: the first sentence includes the time to load the model."""
    start = time.perf_counter()
    try:
        embedder = resolve(settings)
        vector = await embed_query(embedder, "记忆 means memory")
        loaded = time.perf_counter()
        await embed_query(embedder, "她住在柏林")
    except JiyiError as error:
        step = "until then, search uses words only"
        return None, [Check(State.BROKEN, "embedder", f"{settings.embedder}: {hidden(str(error))}", step)]
    once = (time.perf_counter() - loaded) * 1000
    times = f"{loaded - start:.1f} s to load, {once:.0f} ms per sentence"
    finding = f"{embedder.id}, {address_of(embedder)}, {len(vector)} dimensions; {times}"
    return embedder, [Check(State.WORKS, "embedder", finding)]


async def _reader(settings: Settings) -> Check:
    """Read two sentences. Without the reader everything works, so none is never a fault."""
    reader = resolve_reader(settings, None)
    if reader is None:
        return Check(State.WORKS, "reader", unused_because(settings))
    start = time.perf_counter()
    await asyncio.to_thread(reader.answers, "where does she live?", [Passage("我住在柏林"), Passage("In Berlin")])
    return Check(State.WORKS, "reader", f"{reader.id}; {time.perf_counter() - start:.1f} s to load")


async def _cache(settings: Settings) -> list[Check]:
    """Check Redis, if it is configured."""
    url = settings.cache.redis_url
    if url is None:
        return []
    from ..cache.redis import RedisCache

    try:
        cache = RedisCache(url.get_secret_value())
    except JiyiError as error:
        return [Check(State.BROKEN, "cache", str(error), "or unset JIYI_CACHE__REDIS_URL")]
    problem = await cache.ping()
    await cache.close()
    shown = hidden(url.get_secret_value())
    if problem is None:
        return [Check(State.WORKS, "cache", shown)]
    step = "is the server running? Searches work without it, more slowly"
    return [Check(State.DEGRADED, "cache", f"{shown}: {problem}", step)]


async def _engines(where: str | None, settings: Settings, embedder: Embedder | None) -> list[Check]:
    """Ask each external engine, and compare its position with the change feed."""
    found = []
    try:
        engines = Engine.build(where, settings=settings, embedder=embedder)
        if engines.engines is None:
            return []
        await engines.start()
        try:
            problems = await engines.engines.problems()
            states = {state.name: state for state in await engines.engines.states()}
        finally:
            await engines.close()
    except JiyiError as error:
        return [Check(State.BROKEN, "engines", hidden(str(error)), "see docs/scaling.md")]
    for name, answer in problems.items():
        state = states.get(name)
        lag = "not fed yet" if state is None else f"up to {state.lag:,} changes behind, {state.loading:,} users to load"
        problem = answer or (state.problem if state is not None else None)
        if problem is not None:
            step = (
                "is the server running, with room and the right key? Searches use the store, and the engine catches up"
            )
            found.append(Check(State.DEGRADED, name, f"{hidden(problem)}; {lag}", step))
        elif state is not None and state.erasing:
            step = "run jiyi worker"
            found.append(Check(State.DEGRADED, name, f"{state.erasing:,} users are not erased yet; {lag}", step))
        else:
            found.append(Check(State.WORKS, name, lag))
    return found


async def _store(
    where: str | None, settings: Settings, embedder: Embedder | None, tested: SelfTest | None
) -> list[Check]:
    try:
        if (file := missing_file(where or settings.url)) is not None:
            folder = next(folder for folder in file.parents if folder.exists())
            if not os.access(folder, os.W_OK):
                return [Check(State.BROKEN, "store", f"{folder} is not writable", "check --store and JIYI_URL")]
            return [Check(State.WORKS, "store", f"none yet at {file}; jiyi add creates it")]
        async with Memory.open(where, settings=settings, embedder=embedder) as memory:
            held = await memory.stats()
            jobs = await memory.jobs.counts()
            if tested is not None:  # what `llm.verify = auto` goes by
                action = SELF_TEST_PASSED if tested.passed else SELF_TEST_FAILED
                detail = f"{tested.right} of {tested.items}"
                await memory.keys.log(action, target=tested.model, detail=detail)
            await memory.delete_all(f"jiyi-doctor-{new_id()}")  # a write without an effect
    except SchemaTooOld as error:
        return [Check(State.BROKEN, "store", hidden(str(error)), "jiyi migrate --check shows what it would do")]
    except JiyiError as error:
        step = "check --store, JIYI_URL and the permissions of the file"
        return [Check(State.BROKEN, "store", hidden(str(error)), step)]
    holds = f"{counted(held.memories, 'memory', 'memories')} of {counted(held.users, 'user', 'users')}"
    checks = [
        Check(State.WORKS, "store", f"{hidden(held.store)}: {holds}, {held.size_bytes / 1e6:.1f} MB"),
        Check(State.WORKS, "database", f"SQLite {sqlite3.sqlite_version}, schema {held.schema_version}, writable"),
    ]
    checks += _jobs(jobs)
    return checks + (_vectors(held) if embedder is not None else [])


def _jobs(counts: JobCounts) -> list[Check]:
    if failed := counts.by_state.get("failed", 0):
        finding = f"{counted(failed, 'job has', 'jobs have')} failed, the last at {counts.failed_at:%Y-%m-%d %H:%M} UTC"
        return [Check(State.DEGRADED, "jobs", finding, "jiyi jobs list --state failed says why; jiyi jobs retry JOB")]
    waiting = counts.by_state.get("accepted", 0)
    return [Check(State.WORKS, "jobs", f"{counted(waiting, 'job waits', 'jobs wait')}, none has failed")]


def _vectors(held: Stats) -> list[Check]:
    missing = held.coverage.memories - held.coverage.embedded
    if not missing:
        return []
    others = [model for model in held.coverage.models if model != held.embedder]
    whose = f" but of {', '.join(others)}" if others else ""
    finding = f"{missing:,} of {held.coverage.memories:,} memories have no vector of {held.embedder}{whose}"
    return [Check(State.DEGRADED, "vectors", finding, "run jiyi reindex --embeddings")]


async def _self_test(settings: Settings, embedder: Embedder | None) -> Check:
    """Search once in each language, in a temporary store without external engines."""
    settings = settings.model_copy(update={"engines": EngineSettings()})
    with tempfile.TemporaryDirectory(prefix="jiyi-doctor-") as folder:
        try:
            async with Memory.open(Path(folder) / "memory.db", settings=settings, embedder=embedder) as memory:
                await memory.add(list(SELF_TEST), user_id="doctor")
                start = time.perf_counter()
                answers = [await memory.search(query, user_id="doctor", limit=1) for query in SELF_TEST.values()]
                took = (time.perf_counter() - start) * 1000 / len(answers)
        except JiyiError as error:
            return Check(State.BROKEN, "search", hidden(str(error)), "please report this, with jiyi version --json")
    missed = [
        found.query
        for text, found in zip(SELF_TEST, answers, strict=True)
        if not found.hits or found.hits[0].summary != text
    ]
    if missed:
        found = f"did not find {', '.join(missed)}"
        return Check(State.BROKEN, "search", found, "please report this, with jiyi version --json")
    return Check(State.WORKS, "search", f"works in Chinese and English, {took:.0f} ms per search")


def report(checks: list[Check], healthy: bool) -> Table:
    colours = {State.WORKS: "green", State.DEGRADED: "yellow", State.BROKEN: "red"}
    grid = Table(box=None, show_header=False, pad_edge=False)
    for no_wrap in (True, True, False):
        grid.add_column(no_wrap=no_wrap, overflow="fold")
    for check in checks:
        step = (f"\n→ {check.next_step}", "dim") if check.next_step else ""
        text = Text.assemble(plain(check.finding), step)
        grid.add_row(Text(check.state.value, style=colours[check.state]), check.name, text)
    degraded = any(check.state is State.DEGRADED for check in checks)
    grid.add_row("", "", "")
    verdict = "a check failed" if not healthy else "works, with warnings" if degraded else "all checks passed"
    grid.add_row("", "", Text(verdict, style="bold"))
    return grid


def versions() -> dict[str, str]:
    settings, _ = load_settings_anywhere()
    package = PACKAGES.get(settings.embedder.partition(":")[0], "")
    try:
        embedder = f"{settings.embedder} ({package} {metadata.version(package)})"
    except (metadata.PackageNotFoundError, ValueError):
        embedder = f"{settings.embedder} (not installed)"
    return {
        "jiyi": __version__,
        "python": f"{platform.python_version()} ({sys.implementation.name}, {platform.system()} {platform.machine()})",
        "sqlite": sqlite3.sqlite_version,
        "embedder": embedder,
    }
