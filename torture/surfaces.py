"""Call the command line and the server from outside, for the isolation trial."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from .isolation_cases import CANARY, OWNER, Theirs
from .trial import Trial


def commands() -> list[str]:
    """All commands with a --user option."""
    import typer

    from jiyi.cli.app import app

    def walk(command, path):  # type: ignore[no-untyped-def]
        if hasattr(command, "commands"):
            for name, inner in command.commands.items():
                yield from walk(inner, [*path, name])
        elif any(param.name == "user" for param in command.params):
            yield " ".join(path)

    return list(walk(typer.main.get_command(app), []))


def commanded(arguments: list[str]) -> str:
    """Run a command; return its output and error."""
    from typer.testing import CliRunner

    from jiyi.cli.app import app

    done = CliRunner().invoke(app, arguments)
    return f"{done.output} {done.exception!r}"


def routed(trial: Trial, place: str | Path, names: list[str], theirs: Theirs) -> Iterator[tuple[str, str, str]]:
    """Call every route with a key of each name and the owner's ids and name; yield problems."""
    from rest import running
    from test_server_isolation import ALL, BODIES, NAMES, NOBODYS, _about_a_user, ask

    ids = {
        "memory_id": theirs.memory_id,
        "memory_key": theirs.memory_key,
        "job_id": theirs.job_id,
        "import_id": "0" * 26,
        "key_id": "0" * 26,
    }
    like = {**ids, "memory_id": "0" * 25 + "1", "memory_key": "fish", "job_id": "0" * 25 + "1"}
    generous = {"burst": 10**6, "requests_per_minute": 10**6, "upload_dir": theirs.folder / "spool"}
    with running(place, server=generous) as server, ExitStack() as clients:
        for user in names:
            web = clients.enter_context(server.client(server.key(user, scopes=ALL)))
            for name in NAMES:
                trial.counts["requests"] += 1
                told = ask(web, name, ids)
                if CANARY in told[1]:
                    yield user, name, f"tells {told[1][:120]!r}"
                if re.search(r"\{\w+\}", f"{name} {BODIES.get(name)}") and told != ask(web, name, like):
                    yield user, name, f"answers {told} otherwise than for an id that nobody has"
                if name not in NOBODYS and _about_a_user(name):
                    trial.counts["requests"] += 1
                    status, text = ask(web, name, ids, user_id=OWNER)
                    if status not in (403, 404) or CANARY in text:
                        yield user, name, f"answers {status} for the owner's name"
