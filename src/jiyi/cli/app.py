"""The command table, exit codes, and the commands about the installation: demo, doctor, version."""

from copy import copy
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .. import __version__
from ..errors import IdempotencyConflict, InvalidInput, JiyiError, MemoryKeyTaken, NotFound, UserErased, VersionConflict
from ..settings_files import own_program
from . import edit, hooks, jobs, maintenance, search, server, synonyms, transfer, workspace
from . import options as opt
from .install import install
from .session import JSON, STORE, err, general, options, plain, show


@general(JSON)
def demo(lang: opt.Lang = "en") -> None:
    """Show how a bilingual conversation becomes searchable memories.

    Examples:
    $ jiyi demo
    $ jiyi demo --lang zh

    It runs offline, in a temporary store; your memories are not touched.
    """
    from asyncio import run

    from .demo import play

    played = run(play(lang, quiet=options().as_json))
    if options().as_json:
        show(played, str)


@general(STORE, JSON)
def doctor() -> None:
    """Check the configuration, the store and the search.

    Examples:
    $ jiyi doctor
    $ jiyi doctor --store ./记忆.db --json

    Secrets are never shown. Exit code 1 if something does not work.
    """
    from asyncio import run

    from .doctor import State, examine, report

    with err().status("examining …"):
        checks = run(examine(options().store))
    healthy = all(check.state is not State.BROKEN for check in checks)
    found = {"healthy": healthy, "checks": [check.as_dict() for check in checks]}
    show(found, lambda _: report(checks, healthy))
    raise typer.Exit(0 if healthy else 1)


@general(JSON)
def trust(
    revoke: Annotated[bool, typer.Option("--revoke", help="Trust them no longer.")] = False,
) -> None:
    """Trust the jiyi.toml and config.json of the current folder.

    Examples:
    $ jiyi trust             # 看过文件内容之后再信任
    $ jiyi trust --revoke

    Look at the files first: they can decide where memories, messages and keys
    go, and the lines of a workspace in the folder count as your own words. A
    file that changes or moves has to be trusted again.
    """
    from .. import folder_trust

    if revoke:
        gone = [str(path.absolute()) for path in folder_trust.revoke()]
        said = "\n".join(f"no longer trusted: {path}" for path in gone) or "nothing in this folder was trusted"
        show({"no_longer_trusted": gone}, lambda _: plain(said))
        return
    files = {str(file.path.absolute()): file.names for file in folder_trust.trust()}
    lines = [f"trusted: {path}, which sets {folder_trust.listed(names)}" for path, names in files.items()]
    show({"trusted": files}, lambda _: plain("\n".join(lines)) or "no files here")


@general(JSON)
def version() -> None:
    """Show the versions of Jiyi and its main dependencies.

    Examples:
    $ jiyi version
    $ jiyi version --json    # 报告问题时请附上
    """
    from .doctor import versions

    show(versions(), lambda found: "\n".join(f"{name:<9} {number}" for name, number in found.items()))


OTHER_ERROR = 1
CONFLICTS = (VersionConflict, IdempotencyConflict, MemoryKeyTaken, UserErased)
EXIT_CODES: dict[type[JiyiError], int] = {InvalidInput: 2, NotFound: 3, **dict.fromkeys(CONFLICTS, 4)}


# Names of commands in other programs.
INSTEAD = {
    "edit": "update",
    "change": "update",
    "modify": "update",
    "remember": "add",
    "find": "search",
    "recall": "search",
    "query": "search",
    "ls": "list",
    "show": "get",
    "cat": "get",
    "remove": "delete",
    "rm": "delete",
    "forget": "delete",
    "server": "serve",
}


UsageError: Any = typer.BadParameter.__mro__[1]  # of the parser; Typer exports only its subclass


class Commands(TyperGroup):
    """Prints an error of Jiyi, or of the parser, as one line on stderr. Any other exception is a bug and keeps its
    traceback."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            _without_types(command, ctx)
        return command

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _without_types(self, ctx)
        super().format_help(ctx, formatter)

    def make_context(self, *args: Any, **more: Any) -> Any:
        try:
            return super().make_context(*args, **more)
        except UsageError as error:
            raise _usage_problem(error) from error

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] in INSTEAD and self.get_command(ctx, args[0]) is None:
            use = INSTEAD[args[0]]
            raise InvalidInput(args[0], f"is not a command; use jiyi {use} (jiyi {use} --help shows examples)")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            with own_program():
                return super().invoke(ctx)
        except UsageError as error:
            raise _usage_problem(error) from error
        except JiyiError as error:
            typer.secho(f"error: {plain(' '.join(str(error).split()))}", err=True, fg="red")
            code = next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), OTHER_ERROR)
            raise typer.Exit(code) from error


def _usage_problem(error: Any) -> Exception:
    """Print an error of the parser in the style of the others, and return the end of the program."""
    if type(error).__name__ == "NoArgsIsHelpError":  # it prints the help
        return error  # type: ignore[no-any-return]
    message, param = error.format_message(), getattr(error, "param", None)
    if param is not None:
        name = param.metavar or param.name if param.param_type_name == "argument" else param.opts[0]
        message = f"{name}: {error.message or 'is missing'}"
    path = error.ctx.command_path if error.ctx else "jiyi"
    said = plain(" ".join(message.split())).rstrip(".")
    typer.secho(f"error: {said} ({path} --help shows examples)", err=True, fg="red")
    return typer.Exit(error.exit_code)


def _without_types(command: Any, ctx: Any) -> None:
    """Leave out "<bool>" and "<str>" in the help, which say nothing beside the names of flags and arguments."""
    for param in (*command.params, command.get_help_option(ctx)):
        if param is not None and (param.param_type_name == "argument" or param.is_flag):
            param.display_type_rich = lambda ctx: ""
    for inner in getattr(command, "commands", {}).values():
        _without_types(inner, ctx)


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
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version and exit.")
    ] = False,
) -> None:
    """Long-term memory for AI agents · 记忆

    $ jiyi demo                        show how it works, in a temporary store
    $ jiyi add "我吃素，对花生过敏"    add a memory
    $ jiyi search "any allergies?"     search, in Chinese or English

    Every command takes --json and --help. Exit codes: 0 done, 1 failed,
    2 wrong arguments, 3 not found, 4 conflict with an earlier change.
    """


for panel, commands in {
    "Start": (demo,),
    "Add and search": (edit.add, transfer.import_, search.search, search.ask, search.get, search.list_, search.profile),
    "Change and delete": (
        edit.update,
        search.history,
        edit.restore,
        maintenance.undo,
        maintenance.compress,
        edit.delete,
    ),
    "Connect": (server.serve, server.proxy, server.mcp, install, hooks.context, hooks.observe),
    "Maintain": (
        search.stats,
        jobs.worker,
        maintenance.maintain,
        maintenance.reindex,
        maintenance.verify,
        maintenance.rebuild,
        maintenance.vacuum,
        transfer.export,
        transfer.backup,
        maintenance.migrate,
        transfer.migrate_store,
        doctor,
        trust,
        version,
    ),
}.items():
    for command in commands:
        app.command(command.__name__.rstrip("_").replace("_", "-"), rich_help_panel=panel)(command)
app.add_typer(workspace.app, name="workspace", rich_help_panel="Connect")
app.add_typer(jobs.app, name="jobs", rich_help_panel="Maintain")
app.add_typer(synonyms.app, name="synonyms", rich_help_panel="Maintain")
app.add_typer(edit.relations, name="relations", rich_help_panel="Maintain")
app.add_typer(server.app, name="keys", rich_help_panel="Connect")


def app_for(named: list[str]) -> typer.Typer:
    """Return the application with only the command that is named, if it is: building all takes longer than most run."""
    commands = [one for one in app.registered_commands if one.name in named]
    groups = [one for one in app.registered_groups if one.name in named]
    if not commands and not groups:
        return app
    only = copy(app)
    only.registered_commands, only.registered_groups = commands, groups
    return only
