"""The commands for the server and for keys to it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options as opt
from .output import plain, show
from .session import call

if TYPE_CHECKING:
    from ..keys import ApiKey

Host = Annotated[str, typer.Option("--host", metavar="ADDRESS", help="The address to listen on.")]
Port = Annotated[int, typer.Option("--port", metavar="N", min=0, max=65535, help="The port; 0: any that is free.")]
ALLOW_HOST = "A further name under which clients reach it; repeatable."
AllowHost = Annotated[list[str] | None, typer.Option("--allow-host", metavar="NAME", help=ALLOW_HOST)]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Log every request, on stderr.")]

KeyName = Annotated[str, typer.Argument(metavar="NAME", help="What the key is for, for your own eyes.")]
KeyId = Annotated[str, typer.Argument(metavar="KEY_ID", help="The id of the key, as `jiyi keys list` shows it.")]
SCOPES = "read, write, delete or admin; repeatable. Default: read and write."
Scopes = Annotated[list[str] | None, typer.Option("--scope", metavar="SCOPE", help=SCOPES)]
FOR = "A user that the key is for; repeatable."
ForUsers = Annotated[list[str] | None, typer.Option("--for", metavar="ID", help=FOR)]
ForAll = Annotated[bool, typer.Option("--all-users", help="The key is for every user.")]
Expires = Annotated[
    datetime | None,
    typer.Option("--expires-at", metavar="TIME", parser=opt.parse_time, help=f"Until when it opens ({opt.LOCAL})."),
]

app = typer.Typer(no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})


@app.callback()
def keys() -> None:
    """Make, list and withdraw keys to the server.

    Examples:
    $ jiyi keys create phone --for mei
    $ jiyi keys create 后台 --all-users --scope read --scope admin
    $ jiyi keys list
    $ jiyi keys revoke KEY_ID

    Only a hash of a key is kept. From the first one on, every request to
    `jiyi serve` must show one.
    """


def serve(
    host: Host = "127.0.0.1",
    port: Port = 8766,
    allow_host: AllowHost = None,
    verbose: Verbose = False,
    store: opt.Store = None,
) -> None:
    """Serve the memory over HTTP: REST under /v1, and a console for people.

    Examples:
    $ jiyi serve
    $ jiyi serve --port 8080 --store ./记忆.db
    $ jiyi serve --host 0.0.0.0 --allow-host memory.example.org

    Without keys it serves this machine only. With the first key
    (`jiyi keys create`) every request must show one, and it may listen on
    other addresses. Ctrl-C and SIGTERM finish what was accepted.
    """
    from ..server.logs import start_logging
    from ..server.serve import serve as serve_http

    start_logging(verbose=verbose)

    def ready(url: str, needs_key: bool) -> None:
        typer.echo(f"serving {url}  (console: {url}/  API: {url}/openapi.json)", err=True)
        if not needs_key:
            typer.echo("no keys: open to every program on this machine, to no other (`jiyi keys create`)", err=True)

    async def run(memory: Any, _: str) -> None:
        await serve_http(memory, host=host, port=port, allowed_hosts=allow_host or (), ready=ready)

    call(run, store=store)


@app.command("create")
def create(
    name: KeyName,
    scopes: Scopes = None,
    users: ForUsers = None,
    all_users: ForAll = False,
    expires_at: Expires = None,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Make a key. It is shown this once; only a hash of it is kept.

    Examples:
    $ jiyi keys create "mei's phone" --for mei
    $ jiyi keys create 后台 --all-users --scope read --scope write --scope delete --scope admin
    $ jiyi keys create report --for mei --for 林梅 --scope read --expires-at 2030-01-01
    """
    made = call(
        lambda memory, _: memory.keys.create(
            name,
            scopes=scopes or ("read", "write"),
            user_ids=users or (),
            all_users=all_users,
            expires_at=expires_at,
        ),
        store=store,
    )
    show(made, lambda key: f"{key.key}\n\nkept nowhere: note it down now. Its id is {key.id}", as_json)


@app.command("list")
def list_(store: opt.Store = None, as_json: opt.Json = False) -> None:
    """List the keys; not what they are, only what they open.

    Examples:
    $ jiyi keys list
    $ jiyi keys list --json
    """
    from .render import columns, when

    def state(key: ApiKey) -> str:
        if key.revoked_at is not None:
            return f"withdrawn {when(key.revoked_at)}"
        return "open" if key.expires_at is None else f"until {when(key.expires_at)}"

    found = call(lambda memory, _: memory.keys.list(), store=store)
    table = columns("id", "name", "may", "for", "state")
    for key in found:
        whose = "all users" if key.all_users else ", ".join(map(plain, key.user_ids))
        table.add_row(key.id, plain(key.name), ", ".join(key.scopes), whose, state(key))
    show(list(found), lambda _: table, as_json)


@app.command("revoke")
def revoke(key_id: KeyId, store: opt.Store = None, as_json: opt.Json = False) -> None:
    """Withdraw a key. A server that runs takes notice within a second.

    Examples:
    $ jiyi keys revoke KEY_ID
    $ jiyi keys revoke KEY_ID --store ./记忆.db
    """
    found = call(lambda memory, _: memory.keys.revoke(key_id), store=store)
    show(found, lambda key: f"key {key.id} ({plain(key.name)}) opens nothing any more", as_json)
