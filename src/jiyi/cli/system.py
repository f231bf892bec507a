"""Commands about the installation: demo, doctor, version."""

from __future__ import annotations

import asyncio

import typer

from . import options as opt
from .output import emit, err, show


def demo(
    lang: opt.Lang = "en",
    as_json: opt.Json = False,
) -> None:
    """Show how a bilingual conversation becomes searchable memories.

    Examples:
    $ jiyi demo
    $ jiyi demo --lang zh

    It runs offline, in a temporary store; your memories are not touched.
    """
    from .demo import play

    played = asyncio.run(play(lang, quiet=as_json))
    if as_json:
        emit(played)


def doctor(store: opt.Store = None, as_json: opt.Json = False) -> None:
    """Check the configuration, the store and the search.

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
    """Show the versions of Jiyi and its main dependencies.

    Examples:
    $ jiyi version
    $ jiyi version --json    # 报告问题时请附上
    """
    from .doctor import versions

    show(versions(), lambda found: "\n".join(f"{name:<9} {number}" for name, number in found.items()), as_json)
