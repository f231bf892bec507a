"""Commands that read: search, get, list, history, stats."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from . import options as opt
from .output import counted, emit, out, plain, show, warn
from .session import call

if TYPE_CHECKING:
    from ..memory import Memory
    from ..metrics import Metrics
    from ..models import SearchResult, Stats


def search(
    query: opt.Query,
    search_mode: opt.Mode = None,
    limit: opt.Hits = 5,
    explain: opt.Explain = False,
    min_relevance_score: opt.MinScore = 0.0,
    min_trust: opt.MinTrust = None,
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
    user: opt.User = None,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Find memories by words and by meaning, in Chinese and English alike.

    Examples:
    $ jiyi search 过敏
    $ jiyi search "does she have any allergies?" --explain
    $ jiyi search 出差 --type task --since 2025-05-01 --until 2025-06-01
    $ jiyi search "where does Mei live" --as-of 2023-01-01
    """
    from .render import explanations, hits_table

    async def run(memory: Memory, user_id: str) -> tuple[SearchResult, str]:
        found = await memory.search(
            query,
            user_id=user_id,
            search_mode=search_mode,  # type: ignore[arg-type]  # the engine checks it
            keywords=keywords,
            memory_types=memory_types,
            layers=layers,  # type: ignore[arg-type]
            tags=tags,
            time_range=opt.time_range(since, until),
            time_range_days=time_range_days,
            session_id=session_id,
            agent_id=agent_id,
            group_id=group_id,
            min_relevance_score=min_relevance_score,
            min_trust=min_trust,
            limit=limit,
            as_of=as_of,
            asked_at=asked_at,
            explain=explain,
        )
        return found, "" if found.hits else await _why_nothing(memory, user_id, found)

    found, nothing = call(run, store=store, user=user)
    warn(found.degraded)
    if nothing:
        typer.echo(plain(nothing), err=True)
    if as_json or not nothing:
        show(found, explanations if explain else hits_table, as_json)


async def _why_nothing(memory: Memory, user_id: str, found: SearchResult) -> str:
    if found.searched:
        problem = " — but a part of the search failed, see above" if found.degraded else ""
        return f"nothing matched among {counted(found.searched, 'memory', 'memories')}{problem}"
    held = await memory.stats(user_id)
    if held.memories:
        return f"user {user_id!r} has {counted(held.memories, 'memory', 'memories')}; none passes the filters"
    return f"nothing is stored for user {user_id!r} in {held.store}"


def get(
    memory_id: opt.MemoryId,
    user: opt.User = None,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Show one memory in full.

    Examples:
    $ jiyi get 01jv3k8m2n4p5q6r7s8t9v0w1x
    $ jiyi get 饮食偏好 --user mei --json
    """
    from .render import memory_card

    found = call(lambda memory, user_id: memory.get(memory_id, user_id=user_id), store=store, user=user)
    show(found, memory_card, as_json)


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
    session_id: opt.Session = None,
    agent_id: opt.Agent = None,
    group_id: opt.Group = None,
    user: opt.User = None,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """List memories, the newest first.

    Examples:
    $ jiyi list --type preference --tag 饮食
    $ jiyi list --limit 50 --since 2025-05-01
    $ jiyi list --status archived --json
    """
    from .render import memories_table

    page = call(
        lambda memory, user_id: memory.list(
            user_id=user_id,
            session_id=session_id,
            agent_id=agent_id,
            group_id=group_id,
            memory_types=memory_types,
            layers=layers,  # type: ignore[arg-type]  # the engine checks it
            tags=tags,
            time_range=opt.time_range(since, until),
            as_of=as_of,
            status=status,  # type: ignore[arg-type]
            min_trust=min_trust,
            limit=limit,
            cursor=cursor,
        ),
        store=store,
        user=user,
    )
    if not page.items:
        typer.echo("no memories here", err=True)
    if as_json or page.items:
        show(page, memories_table, as_json)
    if page.next_cursor is not None:
        typer.echo(f"more: add --cursor {page.next_cursor}", err=True)


def history(
    memory_id: opt.MemoryId,
    user: opt.User = None,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Show every change of a memory: who, when, why, before → after.

    Examples:
    $ jiyi history 01jv3k8m2n4p5q6r7s8t9v0w1x
    $ jiyi history 饮食偏好 --user mei
    """
    from .render import timeline

    changes = call(lambda memory, user_id: memory.history(memory_id, user_id=user_id), store=store, user=user)
    show(changes, timeline, as_json)


def stats(
    user: opt.OneUser = None,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Count what is stored.

    Examples:
    $ jiyi stats
    $ jiyi stats --user 林梅 --json
    """
    from .render import metrics_plot, stats_table

    async def both(memory: Memory, _: str) -> tuple[Stats, Metrics]:
        return await memory.stats(user), await memory.usage.metrics(user)

    held, measured = call(both, store=store)
    if as_json:
        more = {"archived", "by_importance", "average_importance", "added_by_day"}
        emit({**held.model_dump(mode="json"), **measured.model_dump(mode="json", include=more)})
    else:
        out().print(stats_table(held, user))
        out().print(metrics_plot(measured))
