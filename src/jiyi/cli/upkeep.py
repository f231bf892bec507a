"""The commands around the memories: demo, reindex, doctor, version."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from ..errors import InvalidInput
from . import options as opt
from .output import emit, err, show, warn
from .run import call


def demo(
    lang: opt.Lang = "en",
    as_json: opt.Json = False,
) -> None:
    """Watch a bilingual conversation become memories that can be found.

    Examples:
    $ jiyi demo
    $ jiyi demo --lang zh

    It runs offline, in a temporary store; your memories are not touched.
    """
    from .demo import play

    played = asyncio.run(play(lang, quiet=as_json))
    if as_json:
        emit(played)


def reindex(
    embeddings: opt.Embeddings = False,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Make memories findable again after a change of the embedding model.

    Examples:
    $ jiyi reindex --embeddings
    $ jiyi reindex --embeddings --store ./记忆.db

    It can be stopped with Ctrl-C and goes on from there the next time.
    """
    if not embeddings:
        raise InvalidInput("--embeddings", "say what to index anew: jiyi reindex --embeddings")
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err()) as bar:
        task = bar.add_task("embedding", total=None)
        embedded = call(
            lambda memory, _: memory.maintenance.reindex(
                progress=lambda done, whole: bar.update(task, completed=done, total=whole)
            ),
            store=store,
        )
    said = f"{embedded:,} memories embedded" if embedded else "every memory has its vector already"
    show({"embedded": embedded}, lambda _: said, as_json)


REPAIR = "Set right what is wrong."
DEEP = "Embed every text again and compare; takes as long as embedding does."
Repair = Annotated[bool, typer.Option("--repair", help=REPAIR)]
Deep = Annotated[bool, typer.Option("--vectors", help=DEEP)]


def verify(
    repair: Repair = False,
    vectors: Deep = False,
    user: opt.OneUser = None,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Compare what memories are found by with what it should be.

    Examples:
    $ jiyi verify
    $ jiyi verify --repair
    $ jiyi verify --user 林梅 --vectors

    Exit code 1 if something is wrong and was not set right. Others can read
    and write meanwhile.
    """
    from .importing import progress
    from .render import verification

    with progress("verifying") as advance:
        found = call(
            lambda memory, _: memory.maintenance.verify(user_id=user, repair=repair, vectors=vectors, progress=advance),
            store=store,
        )
    show(found, verification, as_json)
    raise typer.Exit(0 if found.sound else 1)


def vacuum(store: opt.Store = None, as_json: opt.Json = False) -> None:
    """Rewrite the database without what was deleted.

    Examples:
    $ jiyi vacuum
    $ jiyi vacuum --store ./记忆.db

    On SQLite scraps of deleted text can lie in unused corners of a large
    file; on PostgreSQL deleted rows keep their bytes until then. Others wait
    meanwhile. It says what it could not reach, and what would.
    """
    with err().status("rewriting …"):
        left = call(lambda memory, _: memory.maintenance.vacuum(), store=store)
    warn(left)
    show({"left": list(left)}, lambda _: "rewritten" + (", but not everything was reached" if left else ""), as_json)


Source = Annotated[str, typer.Argument(metavar="FROM", help="The store that is copied: a file or a URL.")]
Target = Annotated[str, typer.Argument(metavar="TO", help="An empty one, or one that this command began to fill.")]


def migrate_store(source: Source, target: Target, as_json: opt.Json = False) -> None:
    """Copy everything of all users into another store, and compare the two.

    Examples:
    $ jiyi migrate-store memory.db postgresql://localhost/jiyi
    $ jiyi migrate-store postgresql://localhost/jiyi ./备份.db

    Stop whoever writes first. It can be stopped with Ctrl-C, or by a crash,
    and goes on from there the next time.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from ..transfer.backup import migrate_store as migrate

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err()) as bar:
        task = bar.add_task("copying", total=None)
        moved = asyncio.run(
            migrate(
                source,
                target,
                progress=lambda what, done, whole: bar.update(task, description=what, completed=done, total=whole),
            )
        )
    whole = sum(moved.rows.values())
    said = (
        f"{whole:,} rows of {len(moved.rows)} tables are equal in both stores; {moved.copied:,} were copied this time"
    )
    show(moved, lambda _: said, as_json)


def doctor(store: opt.Store = None, as_json: opt.Json = False) -> None:
    """Say what is configured, what works, and what is degraded.

    Examples:
    $ jiyi doctor
    $ jiyi doctor --store ./记忆.db --json

    Secrets are never shown. Exit code 1 if something does not work.
    """
    from .doctor import State, examine, report

    with err().status("examining …"):
        checks = asyncio.run(examine(store))
    healthy = all(check.state is not State.BROKEN for check in checks)
    found = {"healthy": healthy, "checks": [check.as_dict() for check in checks]}
    show(found, lambda _: report(checks, healthy), as_json)
    raise typer.Exit(0 if healthy else 1)


def version(as_json: opt.Json = False) -> None:
    """Show the versions of Jiyi and of what it stands on.

    Examples:
    $ jiyi version
    $ jiyi version --json    # 报告问题时请附上
    """
    from .doctor import versions

    show(versions(), lambda found: "\n".join(f"{name:<9} {number}" for name, number in found.items()), as_json)
