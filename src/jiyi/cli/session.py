"""A run of a command: its general options, the memory that they name, and output through Rich or as JSON."""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

import typer
from typer.models import ArgumentInfo, OptionInfo

from ..errors import InvalidInput, MemoryKeyTaken, NotFound
from . import plain_text

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from rich.console import Console, RenderableType

    from ..memory import Memory
    from ..settings import Settings

T = TypeVar("T")
V = TypeVar("V")
Command = Callable[..., None]
plain = plain_text.plain


class GeneralOption(NamedTuple):
    name: str
    annotation: Any
    default: Any


def _general(*names: str, metavar: str | None = None, help: str) -> Any:  # noqa: A002 - Typer's name
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel="General")


STORE_HELP = "Path or URL of the store. Default: JIYI_URL, the settings file, or your data directory."
User = Annotated[str | None, _general("--user", "-u", metavar="ID", help="The user. Default: JIYI_USER or 'default'.")]
OneUser = Annotated[str | None, _general("--user", "-u", metavar="ID", help="Only this user. Default: all users.")]
Store = Annotated[str | None, _general("--store", metavar="PATH_OR_URL", help=STORE_HELP)]
Json = Annotated[bool, _general("--json", help="Print JSON on stdout, and nothing else.")]
USER = GeneralOption("user", User, None)
ALL_USERS = GeneralOption("user", OneUser, None)
STORE = GeneralOption("store", Store, None)
JSON = GeneralOption("as_json", Json, False)


# A server that is away: seconds until a command says so, which are 10 and 10 in a program.
RETRY_S = 0.5
CONNECT_S = 2.0


@dataclass(frozen=True, slots=True)
class Run:
    """The general options of the running command."""

    user: str | None = None
    store: str | None = None
    as_json: bool = False
    all_users: bool = False


_running: ContextVar[Run] = ContextVar("running", default=Run())  # noqa: B039 - never changed


def options() -> Run:
    return _running.get()


def general(*added: GeneralOption) -> Callable[[Command], Command]:
    """Add general options to a command, by default all three; `call` and `show` use their values."""
    added = added or (USER, STORE, JSON)

    def decorate(command: Command) -> Command:
        @wraps(command)
        def run(**given: Any) -> None:
            values = {option.name: given.pop(option.name) for option in added}
            _running.set(Run(**values, all_users=ALL_USERS in added))
            try:
                command(**given)
            except (InvalidInput, MemoryKeyTaken) as error:
                raise with_option_names(error, run.__signature__.parameters) from error  # type: ignore[attr-defined]

        signature = inspect.signature(command, eval_str=True)
        more = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
            for name, annotation, default in added
        ]
        run.__signature__ = signature.replace(  # type: ignore[attr-defined]  # Typer reads it
            parameters=[*signature.parameters.values(), *more]
        )
        return run

    return decorate


OTHER_NAMES = {  # of arguments of the engine that a command has under another name, or in two options
    "overwrite": "--force",
    "user_id": "--user",
    "where": "--store",
    "what": "input",
    "time_range": "--since and --until",
}
_MENTIONED = re.compile(
    r"`(?P<quoted>\w+)`|\b(?P<name>[a-z]+(?:_[a-z]+)*)=(?P<value>'\w+'|True)|\b[a-z]+(?:_[a-z]+)+\b"
)


def with_option_names(
    error: InvalidInput | MemoryKeyTaken, parameters: Mapping[str, inspect.Parameter]
) -> InvalidInput | MemoryKeyTaken:
    """Return the error with the options of the command in place of the arguments of the engine: `--force` for
    `overwrite=True`."""
    names = {name: option for name, one in parameters.items() if (option := _option_name(name, one))}
    names = {**OTHER_NAMES, **names}

    def mentioned(found: re.Match[str]) -> str:
        name = found["quoted"] or found["name"] or found[0]
        if name not in names:
            return found[0]
        value = (found["value"] or "").strip("'")
        return names[name] if value in ("", "True") else f"{names[name]} {value}"

    if isinstance(error, MemoryKeyTaken):
        return MemoryKeyTaken(_MENTIONED.sub(mentioned, str(error)), memory_keys=error.memory_keys)
    name, rest = re.fullmatch(r"(\w*)(.*)", error.argument, re.DOTALL).groups()  # type: ignore[union-attr]
    return InvalidInput(names.get(name, name) + rest, _MENTIONED.sub(mentioned, error.problem))


def _option_name(name: str, parameter: inspect.Parameter) -> str | None:
    """Return the name of a parameter on the command line: of an option the first, of an argument that in the help."""
    [info] = getattr(parameter.annotation, "__metadata__", (None,))
    if isinstance(info, ArgumentInfo):
        return str(info.metavar)
    if not isinstance(info, OptionInfo):
        return None
    names = [one for one in (info.default, *(info.param_decls or ())) if isinstance(one, str) and one.startswith("-")]
    return names[0] if names else None  # Typer takes the first of `Option("--limit", "-n")` for a default at first


def call(
    verb: Callable[[Memory, Any], Awaitable[T]],
    *,
    user: str | None = None,
    workspace: Path | None = None,
    create: bool = False,
    reads: bool = False,
    settings: Settings | None = None,
    loop_factory: Callable[[], AbstractEventLoop] | None = None,
) -> T:
    """Open the memory, call a function with it and the user, and close it. Only with `create` may a store be created,
    and one that only `reads` does not migrate it.

    The user is `user`, that of the options, or that of the settings; None if the command is for all users. Ctrl-C
    cancels the work and closes the database in order.
    """
    from asyncio import Runner

    from ..memory import Memory
    from ..settings import load_settings

    settings = settings or load_settings()
    given = options()
    who = given.user if user is None else user
    if who is None and not given.all_users:
        who = settings.user

    where = given.store or settings.url
    if not create:
        need_store(where)
    if str(where or "").lower().startswith(("http://", "https://")):
        settings = _not_waiting(settings)
    if reads:
        settings = settings.model_copy(update={"auto_migrate": False})

    async def work() -> T:
        async with Memory.open(given.store, settings=settings, workspace=workspace) as memory:
            return await verb(memory, who)

    with Runner(loop_factory=loop_factory) as runner:
        return runner.run(work())


def _not_waiting(settings: Settings) -> Settings:
    """Do not wait long for a server that is away, unless the settings say how long: a person sits there."""
    client = settings.client
    patience = {"retry_timeout_s": RETRY_S, "connect_timeout_s": CONNECT_S}
    patience = {name: value for name, value in patience.items() if name not in client.model_fields_set}
    return settings.model_copy(update={"client": client.model_copy(update=patience)})


def settings_for_agent() -> Settings:
    """Load the settings for a command that a coding agent starts: an untrusted folder does not stop it."""
    from ..settings import load_settings_anywhere

    settings, problem = load_settings_anywhere()
    if problem is not None:
        typer.echo(f"jiyi: settings of this folder are left out: {plain(' '.join(problem.split()))}", err=True)
    return settings


def need_store(where: str | None) -> None:
    if (file := missing_file(where)) is not None:
        raise NotFound(f"there is no store at {file}: check --store, or create one with jiyi add")


def missing_file(where: str | None) -> Path | None:
    """Return the file of a store that does not exist yet; None if it exists or is no file."""
    from ..store import POSTGRES, file_of

    if str(where or "").partition("://")[0].lower() in (*POSTGRES, "http", "https"):
        return None
    file = file_of(where)
    return None if file.exists() else file


def counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def out() -> Console:
    """Return the console on stdout; markup is off, so that brackets in memories stay."""
    from rich.console import Console

    return Console(markup=False, highlight=False, emoji=False)


def err() -> Console:
    from rich.console import Console

    return Console(stderr=True, markup=False, highlight=False, emoji=False)


def show(value: V, picture: Callable[[V], RenderableType]) -> None:
    """Print a value as text, or with --json as JSON, in ASCII if stdout is not UTF-8."""
    if options().as_json:
        ascii_only = not (sys.stdout.encoding or "").lower().startswith("utf")
        typer.echo(json.dumps(_dumped(value), ensure_ascii=ascii_only, indent=2))
    else:
        out().print(picture(value))


def _dumped(value: Any) -> Any:
    """Convert models inside a value to JSON values."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, dict):
        return {name: _dumped(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_dumped(entry) for entry in value]
    return value


def warn(problems: Iterable[str]) -> None:
    """Print warnings in yellow on stderr."""
    for problem in problems:
        typer.secho(f"! {plain(problem)}", err=True, fg="yellow")


@contextmanager
def progress(first: str) -> Iterator[Callable[[str, int, int], None]]:
    """Show a progress bar on stderr if it is a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = err()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(first, total=None)
        yield lambda what, done, whole: bar.update(task, description=what, completed=done, total=whole or None)
