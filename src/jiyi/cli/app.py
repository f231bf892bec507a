"""Command table and exit codes."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .. import __version__
from ..errors import IdempotencyConflict, InvalidInput, JiyiError, NotFound, VersionConflict
from . import edit, jobs, maintenance, mcp, search, server, synonyms, system, transfer, workspace

OTHER_ERROR = 1
EXIT_CODES: dict[type[JiyiError], int] = {InvalidInput: 2, NotFound: 3, VersionConflict: 4, IdempotencyConflict: 4}


class Commands(TyperGroup):
    """One line on stderr for an error that Jiyi knows. Any other exception is a bug and keeps its traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except JiyiError as error:
            from .output import plain

            typer.secho(f"error: {plain(' '.join(str(error).split()))}", err=True, fg="red")
            code = next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), OTHER_ERROR)
            raise typer.Exit(code) from error


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # they would print secrets that stand in local variables
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"jiyi {__version__}")
        raise typer.Exit


@app.callback()
def jiyi(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Show Jiyi's version and leave.")
    ] = False,
) -> None:
    """Long-term memory for AI agents · 记忆

    $ jiyi demo                        see it work, in a store of its own
    $ jiyi add "我吃素，对花生过敏"    remember something
    $ jiyi search "any allergies?"     find it again, in either language

    Every command takes --json and --help. Exit codes: 0 done, 1 failed,
    2 wrong arguments, 3 not found, 4 conflict with an earlier change.
    """


for panel, commands in {
    "Start": (system.demo,),
    "Remember and find": (edit.add, transfer.import_, search.search, search.get, search.list_),
    "Change and forget": (
        edit.update,
        search.history,
        edit.restore,
        maintenance.undo,
        maintenance.compress,
        edit.delete,
    ),
    "Connect": (server.serve, mcp.mcp),
    "Look after it": (
        search.stats,
        jobs.worker,
        maintenance.maintain,
        maintenance.reindex,
        maintenance.verify,
        maintenance.vacuum,
        transfer.export,
        transfer.backup,
        transfer.migrate_store,
        system.doctor,
        system.version,
    ),
}.items():
    for command in commands:
        app.command(command.__name__.rstrip("_").replace("_", "-"), rich_help_panel=panel)(command)
app.add_typer(workspace.app, name="workspace", rich_help_panel="Connect")
app.add_typer(jobs.app, name="jobs", rich_help_panel="Look after it")
app.add_typer(synonyms.app, name="synonyms", rich_help_panel="Look after it")
app.add_typer(server.app, name="keys", rich_help_panel="Connect")
