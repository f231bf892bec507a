"""Commands that read: search, get, list, history, stats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

import typer

from . import options as opt
from .session import ALL_USERS, JSON, STORE, call, counted, general, options, plain, show, warn

if TYPE_CHECKING:
    from ..memory import Memory
    from ..metrics import Metrics
    from ..models import Revision, SearchResult, Stats
    from ..read.profile import Profile


@general()
def search(
    query: opt.Query,
    search_mode: opt.Mode = None,
    limit: opt.Hits = 5,
    explain: opt.Explain = False,
    in_full: opt.InFull = False,
    min_relevance_score: opt.MinScore = 0.0,
    min_trust: opt.MinTrust = None,
    metadata: opt.Conditions = None,
    keywords: opt.Keywords = None,
    memory_types: opt.Types = None,
    layers: opt.Layers = None,
    tags: opt.AnyTags = None,
    since: opt.Since = None,
    until: opt.Until = None,
    time_range_days: opt.Days = None,
    as_of: opt.AsOf = None,
    asked_at: opt.AskedAt = None,
    session_id: opt.Session = None,
    agent_id: opt.Agent = None,
    group_id: opt.Group = None,
) -> None:
    """Search memories by words and by meaning, in Chinese and English.

    Examples:
    $ jiyi search 过敏
    $ jiyi search "does she have any allergies?" --explain
    $ jiyi search 出差 --type task --since 2025-05-01 --until 2025-06-01
    $ jiyi search "where does Mei live" --as-of 2023-01-01
    """
    arguments = _filters({name: value for name, value in locals().items() if name != "in_full"})
    arguments["explain"] = explain or in_full
    from .render import explanations, hits_table

    async def run(memory: Memory, user_id: str) -> tuple[SearchResult, str]:
        found = await memory.search(user_id=user_id, **arguments)
        return found, "" if found.hits else await _why_nothing(memory, user_id, found)

    found, nothing = call(run)  # a search notes what it recalled, so it may migrate
    warn(found.degraded)
    if nothing:
        typer.echo(plain(nothing), err=True)
    if options().as_json or not nothing:
        show(found, partial(explanations, in_full=in_full) if arguments["explain"] else hits_table)


def _filters(given: dict[str, Any]) -> dict[str, Any]:
    """Replace `since` and `until` by the argument `time_range` of the engine, and parse `metadata`."""
    given["metadata"] = opt.parse_object("--metadata", given["metadata"])
    since, until = given.pop("since"), given.pop("until")
    return given if since is None and until is None else {**given, "time_range": (since, until)}


async def _why_nothing(memory: Memory, user_id: str, found: SearchResult) -> str:
    if found.searched:
        problem = " — but a part of the search failed, see above" if found.degraded else ""
        return f"nothing matched among {counted(found.searched, 'memory', 'memories')}{problem}"
    held = await memory.stats(user_id)
    if held.memories:
        return f"user {user_id!r} has {counted(held.memories, 'memory', 'memories')}; none passes the filters"
    waiting = len(await memory.jobs.list(user_id=user_id, state="accepted"))
    if waiting:
        jobs = counted(waiting, "job", "jobs")
        return f"{jobs} of user {user_id!r} will make the first memories: `jiyi worker --once` runs them now"
    return f"nothing is stored for user {user_id!r} in {held.store}"


@general()
def ask(
    question: opt.Query,
    limit: opt.Hits = 12,
    memory_types: opt.Types = None,
    tags: opt.AnyTags = None,
    as_of: opt.AsOf = None,
    session_id: opt.Session = None,
    agent_id: opt.Agent = None,
    group_id: opt.Group = None,
) -> None:
    """Answer a question from memories, with the ids it rests on.

    Examples:
    $ jiyi ask "what can't she eat?"
    $ jiyi ask 她住在哪里 --json

    It needs a language model (llm.model). Exit code 1 if it is not known.
    """
    arguments = dict(locals())
    told = call(lambda memory, user_id: memory.answer(user_id=user_id, **arguments))
    warn(told.degraded)
    lines = [told.text, *(f"  {memory_id}" for memory_id in told.memory_ids)] if told.text else ["not known"]
    show(told, lambda _: plain("\n".join(lines)))
    raise typer.Exit(0 if told.known else 1)


@general()
def get(memory_id: opt.MemoryId) -> None:
    """Show one memory in full.

    Examples:
    $ jiyi get 01jv3k8m2n4p5q6r7s8t9v0w1x
    $ jiyi get 饮食偏好 --user mei --json
    """
    from .render import memory_card

    show(call(lambda memory, user_id: memory.get(memory_id, user_id=user_id), reads=True), memory_card)


@general()
def list_(
    limit: opt.PageSize = 20,
    cursor: opt.Cursor = None,
    memory_types: opt.Types = None,
    layers: opt.Layers = None,
    tags: opt.AnyTags = None,
    since: opt.Since = None,
    until: opt.Until = None,
    as_of: opt.AsOf = None,
    status: opt.Status = "active",
    min_trust: opt.MinTrust = None,
    metadata: opt.Conditions = None,
    session_id: opt.Session = None,
    agent_id: opt.Agent = None,
    group_id: opt.Group = None,
) -> None:
    """List memories, newest first.

    Messages are listed with `--type message`.

    Examples:
    $ jiyi list --type preference --tag 饮食
    $ jiyi list --type message --session monday
    $ jiyi list --limit 50 --since 2025-05-01
    $ jiyi list --status archived --json
    """
    filters = _filters(dict(locals()))
    from .render import memories_table

    page = call(lambda memory, user_id: memory.list(user_id=user_id, **filters), reads=True)
    if not page.items:
        typer.echo("no memories", err=True)
    if options().as_json or page.items:
        show(page, memories_table)
    if page.next_cursor is not None:
        typer.echo(f"more: add --cursor {page.next_cursor}", err=True)


@general()
def profile(limit: opt.PageSize = 100, cursor: opt.Cursor = None, group_id: opt.Group = None) -> None:
    """Show what is known of the user, or of one of their groups.

    Examples:
    $ jiyi profile
    $ jiyi profile --user 林梅 --json
    $ jiyi profile --group team

    Attributes stand first, as attribute → value.
    """
    arguments = dict(locals())
    page = call(lambda memory, user_id: memory.usage.profile(user_id=user_id, **arguments), reads=True)
    if not page.items:
        typer.echo("no memories", err=True)
    if options().as_json or page.items:
        show(page, lambda shown: plain("\n".join(_profile(shown))))
    if page.next_cursor is not None:
        typer.echo(f"more: add --cursor {page.next_cursor}", err=True)


def _profile(page: Profile) -> Iterator[str]:
    for subject, lines in groupby(page.lines, key=lambda line: line.subject):
        yield subject
        for line in lines:
            yield f"  {line.attribute} → {line.value}" if line.attribute else f"  - {line.text}"


@general()
def history(memory_id: opt.MemoryId) -> None:
    """Show every change of a memory: time, actor, reason, before → after.

    Examples:
    $ jiyi history 01jv3k8m2n4p5q6r7s8t9v0w1x
    $ jiyi history 饮食偏好 --user mei
    """
    from .render import timeline

    async def read(memory: Memory, user_id: str) -> Sequence[Revision]:
        return await memory.history((await memory.get(memory_id, user_id=user_id)).id, user_id=user_id)

    show(call(read, reads=True), timeline)


@general(ALL_USERS, STORE, JSON)
def stats() -> None:
    """Show statistics of the store.

    Examples:
    $ jiyi stats
    $ jiyi stats --user 林梅 --json

    Of a server (--store http://…) it also shows how relevant the best hits
    were since it started.
    """
    from rich.console import Group

    from .render import metrics_plot, stats_table

    async def both(memory: Memory, user_id: str | None) -> tuple[Stats, Metrics]:
        return await memory.stats(user_id), await memory.usage.metrics(user_id)

    held, measured = call(both, reads=True)
    more = {"archived", "by_importance", "average_importance", "added_by_day", "relevance", "best_relevance"}
    figures = {**held.model_dump(mode="json"), **measured.model_dump(mode="json", include=more)}
    show(figures, lambda _: Group(stats_table(held, options().user), metrics_plot(measured)))
