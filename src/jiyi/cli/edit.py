"""Commands that change memories: add, update, restore, delete."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import typer

from ..errors import InvalidInput
from . import options as opt
from .session import JSON, STORE, User, call, counted, general, options, plain, progress, show, warn

if TYPE_CHECKING:
    from ..memory import Memory
    from ..models import Deletion, MemoryItem, Relation, RelationType

FORMATS = ("text", "json", "jsonl")
LEAST_CHINESE = 2 * 3  # width that three Chinese characters add: most words have fewer


@general()
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
    user_names: opt.UserNames = None,
    idempotency_key: opt.IdempotencyKey = None,
    on_conflict: opt.OnConflict = "error",
    session_id: opt.Session = None,
    agent_id: opt.Agent = None,
    group_id: opt.Group = None,
    actor: opt.Actor = "user",
) -> None:
    """Add a statement, a conversation or extracted memories.

    Examples:
    $ jiyi add "我吃素，对花生过敏" --type preference --tag 饮食
    $ jiyi add "I moved to Berlin in May" --importance 0.8
    $ jiyi add --file chat.jsonl --session trip
    $ jiyi add "I moved to Berlin" "I work at a bakery"
    $ git log -1 --format=%s | jiyi add --tag work

    Without TEXT it reads stdin, a statement per line. A message is an object
    such as {"role": "user", "content": "…"}; a candidate is {"type": "fact",
    "text": "…"}. Known statements are not stored twice. Without --type a
    statement has the type that its words would have in a conversation.
    """
    fields: dict[str, Any] = dict(locals())  # the other arguments are those of `Memory.add`
    what = _read_input(fields.pop("text"), fields.pop("file"), fields.pop("format_"))
    if memory_type is None:
        what = _with_types(what)
    fields["metadata"] = opt.parse_object("--metadata", metadata)
    from .render import receipt_list

    receipt = call(lambda memory, user_id: memory.add(what, user_id=user_id, **fields), create=True)
    warn(problem.replace("what[", "input[") for problem in receipt.problems)
    show(receipt, receipt_list)


def _with_types(what: Any) -> Any:
    """Return statements as candidates of the types that their words have in a conversation."""
    from ..write.extract import statement_type

    if not isinstance(what, list):
        return what
    return [{"content": one, "memory_type": statement_type(one)} if isinstance(one, str) else one for one in what]


def _read_input(words: list[str] | None, file: Path | None, form: str | None) -> Any:
    """Return the statement in the arguments, or the contents of a file or stdin (`-`)."""
    if words and file is not None:
        raise InvalidInput("--file", "cannot be used together with TEXT")
    if words == ["-"]:
        if sys.stdin.isatty():
            typer.echo("reading stdin, one statement per line; end with Ctrl-D", err=True)
        return _parse(sys.stdin.buffer.read(), form or "text", "stdin")
    if words:
        if form is not None:
            raise InvalidInput("--format", "is for --file and stdin")
        return _statements(words)
    if file is None:
        piped = b"" if sys.stdin.isatty() else sys.stdin.buffer.read()
        if not piped.strip():
            raise InvalidInput("TEXT", "is missing: give a text, --file, or pipe it into stdin")
        return _parse(piped, form or "text", "stdin")
    by_name = {".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl"}.get(file.suffix.lower(), "text")
    return _parse(opt.read_file("--file", file), form or by_name, str(file))


def _statements(words: list[str]) -> list[str]:
    """Return the statements in the arguments: each of them, or all together if they are single words."""
    if not all(word.strip() for word in words):
        raise InvalidInput("TEXT", "is empty")
    phrases = sum(map(_is_phrase, words))
    if len(words) > 1 and 0 < phrases < len(words):
        raise InvalidInput("TEXT", "is it one statement or several? Put quotes around each whole statement")
    return words if phrases else [" ".join(words)]


def _is_phrase(text: str) -> bool:
    """Return True for more than one word: with a space, or some Chinese characters."""
    from ..languages.words import width

    return len(text.split()) > 1 or width(text) - len(text) >= LEAST_CHINESE


def _parse(data: bytes, form: str, name: str) -> Any:
    """Parse text (one statement per non-empty line), JSON or JSONL (messages or candidates)."""
    if form not in FORMATS:
        raise InvalidInput("--format", f"must be one of {', '.join(FORMATS)}, not {form!r}")
    text = opt.decode(name, data)
    if form == "json":
        return _loads(text, name)
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if form == "jsonl":
        return [_loads(line, f"{name}, line {number}") for number, line in lines]
    return [line.strip() for _, line in lines]


def _loads(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(name, f"is not JSON: {error}") from None


@general()
def update(
    memory_id: opt.MemoryId,
    content: opt.Content = None,
    summary: opt.Summary = None,
    expected_version: opt.AtVersion = None,
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
) -> None:
    """Change a memory. Earlier versions stay in its history.

    Examples:
    $ jiyi update ID --content "我吃素，也吃鸡蛋" --reason 更正
    $ jiyi update ID --expected-version 3 --importance 0.9 --tag health
    $ jiyi update ID --valid-to 2025-04-01 --reason "moved to Berlin"
    $ jiyi update ID --status archived
    """
    given: dict[str, Any] = {name: value for name, value in locals().items() if value is not None}
    del given["memory_id"], given["no_tags"]
    if no_tags and tags:
        raise InvalidInput("--no-tags", "cannot be used together with --tag")
    if no_tags:
        given["tags"] = []
    if metadata is not None:
        given["metadata"] = opt.parse_object("--metadata", metadata)
    for name in ("valid_to", "expires_at"):
        if name in given:
            given[name] = None if given[name] == "none" else opt.parse_time(given[name])
    from .render import memory_card

    show(call(lambda memory, user_id: memory.update(memory_id, user_id=user_id, **given)), memory_card)


@general()
def restore(
    memory_id: opt.MaybeId = None,
    to_version: opt.ToVersion = None,
    reason: opt.Reason = None,
    actor: opt.Actor = "user",
    backup: opt.FromBackup = None,
    force: opt.Replace = False,
) -> None:
    """Restore an earlier version of a memory, or a whole store from a backup.

    Examples:
    $ jiyi restore ID
    $ jiyi restore ID --to-version 1 --reason 改错了
    $ jiyi restore --from memory-2026-05-07.db --store ./记忆.db --force
    """
    if (backup is None) == (memory_id is None):
        raise InvalidInput("ID", "name one memory, or a backup with --from")
    from .render import memory_card, restored_line

    if backup is not None:
        from asyncio import run

        from ..transfer.backup import restore_backup

        with progress("checking") as advance:
            done = run(restore_backup(backup, options().store, force=force, progress=advance))
        show(done, restored_line)
        return
    fields: dict[str, Any] = {"to_version": to_version, "actor": actor, "reason": reason}
    show(call(lambda memory, user_id: memory.restore(memory_id or "", user_id=user_id, **fields)), memory_card)


@general(STORE, JSON)
def delete(
    memory_id: opt.MaybeId = None,
    everything: opt.Everything = False,
    with_sources: opt.WithSources = False,
    yes: opt.Yes = False,
    user: User = None,
) -> None:
    """Permanently delete a memory, or all data of a user.

    Examples:
    $ jiyi delete ID
    $ jiyi delete ID --with-sources
    $ jiyi delete --user 林梅 --all
    $ jiyi delete ID --user mei --yes

    The history is deleted too, and so are lines of profiles derived from
    it. This cannot be undone. To archive a memory instead: jiyi update ID
    --status archived
    """
    from .render import deletion_line

    if everything == (memory_id is not None):
        raise InvalidInput("ID", "name one memory, or --all with --user")
    if everything and user is None:
        raise InvalidInput("--user", "is needed with --all: name the user whose data to delete")
    if not yes:
        _confirm(memory_id, user)
    if memory_id is None:
        deletion = call(lambda memory, user_id: memory.delete_all(user_id), user=user)
        again: Sequence[MemoryItem] = ()
    else:

        async def remove(memory: Memory, user_id: str) -> tuple[Deletion, Sequence[MemoryItem]]:
            done = await memory.delete(memory_id, user_id=user_id, with_sources=with_sources)
            return done, await memory.get_many(done.restored, user_id=user_id) if done.restored else ()

        deletion, again = call(remove, user=user)
    warn(deletion.notes)
    show(deletion, lambda done: deletion_line(done, again))


def _confirm(memory_id: str | None, user: str | None) -> None:
    """Ask for confirmation on stderr; without a terminal, --yes is required."""
    if not sys.stdin.isatty():
        raise InvalidInput("--yes", "is needed without a terminal; nothing was deleted")
    if memory_id is None:
        held = call(lambda memory, user_id: memory.stats(user_id), user=user)
        number = counted(held.memories, "active memory", "active memories")
        typer.echo(f"This permanently deletes all data of user {user!r}, including {number}.", err=True)
        agreed = ask("Type the user id to continue: ") == user
    else:
        found = call(lambda memory, user_id: memory.get(memory_id, user_id=user_id), user=user)
        typer.echo(f"{found.memory_type}: {plain(found.summary)}", err=True)
        agreed = ask("Delete it permanently, with its history? [y/N] ").strip().lower() in ("y", "yes", "是")
    if not agreed:
        typer.echo("nothing was deleted", err=True)
        raise typer.Exit(1)


def ask(question: str) -> str:
    """Read an answer. `typer.prompt` would write a blank to stdout even with err=True."""
    typer.echo(question, err=True, nl=False)
    return sys.stdin.readline().rstrip("\r\n")


relations = typer.Typer(no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})


@relations.callback()
def relations_of_memories() -> None:
    """List and change relations: what supports, contradicts or refines a memory.

    Examples:
    $ jiyi relations list 01k9zq4f3rw5
    $ jiyi relations add 01k9zq4f3rw5 01k9zq6x5n7b supports --strength 0.7
    $ jiyi relations remove 01k9zq4f3rw5 01k9zq6x5n7b --user 林梅
    """


async def _ids(memory: Memory, user_id: str, *names: str) -> list[str]:
    return [(await memory.get(name, user_id=user_id)).id for name in names]


@relations.command("list")
@general()
def list_relations(memory_id: opt.MemoryId) -> None:
    """List the relations of a memory, in both directions.

    Examples:
    $ jiyi relations list 01k9zq4f3rw5
    $ jiyi relations list 01k9zq4f3rw5 --user 林梅 --json
    """

    async def read(memory: Memory, user_id: str) -> Sequence[Relation]:
        return await memory.relations.list(*await _ids(memory, user_id, memory_id), user_id=user_id)

    show(list(call(read, reads=True)), _relation_lines)


@relations.command("add")
@general()
def add_relation(
    memory_id: opt.MemoryId, target_id: opt.TargetId, relation_type: opt.RelationName, strength: opt.Strength = 1.0
) -> None:
    """Store that a memory supports, contradicts or refines another one.

    Examples:
    $ jiyi relations add 01k9zq4f3rw5 01k9zq6x5n7b supports
    $ jiyi relations add 01k9zq4f3rw5 01k9zq6x5n7b refines --strength 0.7 --user 林梅
    """

    async def write(memory: Memory, user_id: str) -> Relation:
        one, other = await _ids(memory, user_id, memory_id, target_id)
        kind = cast("RelationType", relation_type)
        return await memory.relations.add(one, other, kind, user_id=user_id, strength=strength)

    show(call(write), lambda made: _relation_lines([made]))


@relations.command("remove")
@general()
def remove_relations(memory_id: opt.MemoryId, target_id: opt.TargetId) -> None:
    """Remove the relations from one memory to another.

    Examples:
    $ jiyi relations remove 01k9zq4f3rw5 01k9zq6x5n7b
    $ jiyi relations remove 01k9zq4f3rw5 01k9zq6x5n7b --user 林梅
    """

    async def write(memory: Memory, user_id: str) -> int:
        return await memory.relations.remove(*await _ids(memory, user_id, memory_id, target_id), user_id=user_id)

    removed = call(write)
    show({"removed": removed}, lambda _: f"{counted(removed, 'relation', 'relations')} removed")


def _relation_lines(found: Sequence[Relation]) -> str:
    return "\n".join(f"{one.memory_id} {one.relation_type} {one.target_id} ({one.strength:.2f})" for one in found)
