"""Commands that change memories: add, update, restore, delete."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import typer

from ..errors import InvalidInput
from . import options as opt
from .input import read_input
from .output import counted, plain, show, warn
from .session import call


def add(
    text: opt.Text = None,
    file: opt.File = None,
    format_: opt.Format = None,
    memory_type: opt.Type = None,
    importance: opt.Importance = None,
    tags: opt.Tags = None,
    metadata: opt.Metadata = None,
    occurred_at: opt.OccurredAt = None,
    expires_at: opt.ExpiresAt = None,
    trust: opt.Trust = 1.0,
    idempotency_key: opt.IdempotencyKey = None,
    session_id: opt.Session = None,
    agent_id: opt.Agent = None,
    group_id: opt.Group = None,
    actor: opt.Actor = "user",
    user: opt.User = None,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Add a statement, a conversation or extracted memories.

    Examples:
    $ jiyi add "我吃素，对花生过敏" --type preference --tag 饮食
    $ jiyi add "I moved to Berlin in May" --importance 0.8
    $ jiyi add --file chat.jsonl --session trip
    $ git log -1 --format=%s | jiyi add - --tag work

    A message is an object such as {"role": "user", "content": "…"}; a
    candidate is {"type": "fact", "text": "…"}. What is known already is
    not stored twice.
    """
    from .render import receipt_list

    what = read_input(text, file, format_)
    about = opt.parse_object("--metadata", metadata)
    receipt = call(
        lambda memory, user_id: memory.add(
            what,
            user_id=user_id,
            session_id=session_id,
            agent_id=agent_id,
            group_id=group_id,
            memory_type=memory_type,
            importance=importance,
            tags=tags,
            metadata=about,
            occurred_at=occurred_at,
            expires_at=expires_at,
            trust=trust,
            idempotency_key=idempotency_key,
            actor=actor,
        ),
        store=store,
        user=user,
    )
    warn(receipt.problems)
    show(receipt, receipt_list, as_json)


def update(
    memory_id: opt.MemoryId,
    content: opt.Content = None,
    summary: opt.Summary = None,
    version: opt.AtVersion = None,
    memory_type: opt.Type = None,
    importance: opt.Importance = None,
    tags: opt.NewTags = None,
    no_tags: opt.NoTags = False,
    metadata: opt.Metadata = None,
    occurred_at: opt.OccurredAt = None,
    valid_to: opt.ValidTo = None,
    expires_at: opt.NewExpiry = None,
    status: opt.NewStatus = None,
    reason: opt.Reason = None,
    actor: opt.Actor = "user",
    user: opt.User = None,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Change a memory. What it was stays in its history.

    Examples:
    $ jiyi update ID --content "我吃素，也吃鸡蛋" --reason 更正
    $ jiyi update ID --version 3 --importance 0.9 --tag health
    $ jiyi update ID --valid-to 2025-04-01 --reason "moved to Berlin"
    $ jiyi update ID --status archived
    """
    from .render import memory_card

    if tags and no_tags:
        raise InvalidInput("--no-tags", "cannot be used together with --tag")
    given: dict[str, Any] = {
        "content": content,
        "summary": summary,
        "memory_type": memory_type,
        "importance": importance,
        "tags": [] if no_tags else tags,
        "metadata": opt.parse_object("--metadata", metadata),
        "occurred_at": occurred_at,
        "status": status,
    }
    given = {name: value for name, value in given.items() if value is not None}
    for name, moment in (("valid_to", valid_to), ("expires_at", expires_at)):
        if moment is not None:
            given[name] = None if moment == "none" else opt.parse_time(moment)
    changed = call(
        lambda memory, user_id: memory.update(
            memory_id, user_id=user_id, version=version, actor=actor, reason=reason, **given
        ),
        store=store,
        user=user,
    )
    show(changed, memory_card, as_json)


def restore(
    memory_id: opt.MaybeId = None,
    version: opt.ToVersion = None,
    reason: opt.Reason = None,
    actor: opt.Actor = "user",
    backup: opt.FromBackup = None,
    force: opt.Replace = False,
    user: opt.User = None,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Restore an earlier version of a memory, or a whole store from a backup.

    Examples:
    $ jiyi restore ID
    $ jiyi restore ID --version 1 --reason 改错了
    $ jiyi restore --from memory-2026-05-07.db --store ./记忆.db --force
    """
    if (backup is None) == (memory_id is None):
        raise InvalidInput("ID", "name one memory, or a backup with --from")
    if backup is not None:
        _restore_backup(backup, store, force, as_json)
        return
    from .render import memory_card

    name = memory_id or ""
    restored = call(
        lambda memory, user_id: memory.restore(name, user_id=user_id, version=version, actor=actor, reason=reason),
        store=store,
        user=user,
    )
    show(restored, memory_card, as_json)


def _restore_backup(backup: Path, store: str | None, force: bool, as_json: bool) -> None:
    from ..transfer.backup import restore_backup
    from .render import backup_line
    from .transfer import progress

    with progress("checking") as advance:
        done = asyncio.run(restore_backup(backup, store, force=force, progress=advance))
    show(done, backup_line, as_json)


def delete(
    memory_id: opt.MaybeId = None,
    everything: opt.Everything = False,
    with_sources: opt.WithSources = False,
    yes: opt.Yes = False,
    user: opt.User = None,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Permanently delete a memory, or all data of a user.

    Examples:
    $ jiyi delete ID
    $ jiyi delete ID --with-sources
    $ jiyi delete --user 林梅 --all
    $ jiyi delete ID --user mei --yes

    The history goes too, and so do lines of profiles that came from it;
    nothing can be undone. To put a memory aside instead: jiyi update ID
    --status archived
    """
    from .render import deletion_line

    if everything == (memory_id is not None):
        raise InvalidInput("ID", "name one memory, or --all with --user")
    if everything and user is None:
        raise InvalidInput("--user", "is needed with --all: say whose memories to delete")
    if not yes:
        _confirm(memory_id, user, store)
    if memory_id is None:
        deletion = call(lambda memory, user_id: memory.delete_all(user_id), store=store, user=user)
    else:
        deletion = call(
            lambda memory, user_id: memory.delete(memory_id, user_id=user_id, with_sources=with_sources),
            store=store,
            user=user,
        )
    warn(deletion.notes)
    show(deletion, deletion_line, as_json)


def _confirm(memory_id: str | None, user: str | None, store: str | None) -> None:
    """Ask for confirmation on stderr; without a terminal, --yes is required."""
    if not sys.stdin.isatty():
        raise InvalidInput("--yes", "is needed where nobody can be asked; nothing was deleted")
    if memory_id is None:
        held = call(lambda memory, user_id: memory.stats(user_id), store=store, user=user)
        number = counted(held.memories, "active memory", "active memories")
        typer.echo(f"This deletes everything of user {user!r} for good, {number} among it.", err=True)
        agreed = _asked("Type the user id to go on: ") == user
    else:
        found = call(lambda memory, user_id: memory.get(memory_id, user_id=user_id), store=store, user=user)
        typer.echo(f"{found.memory_type}: {plain(found.summary)}", err=True)
        agreed = _asked("Delete it for good, with its history? [y/N] ").strip().lower() in ("y", "yes", "是")
    if not agreed:
        typer.echo("nothing was deleted", err=True)
        raise typer.Exit(1)


def _asked(question: str) -> str:
    """Read an answer. `typer.prompt` would write a blank to stdout even with err=True."""
    typer.echo(question, err=True, nl=False)
    return sys.stdin.readline().rstrip("\r\n")
