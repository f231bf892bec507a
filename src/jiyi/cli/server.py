"""Commands that serve the memory: serve, proxy, mcp; and keys create, list, revoke."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ..errors import InvalidInput
from . import options as opt
from .session import JSON, STORE, USER, call, general, options, plain, settings_for_agent, show

if TYPE_CHECKING:
    from ..keys import ApiKey

Host = Annotated[str, typer.Option("--host", metavar="ADDRESS", help="The address to listen on.")]
Port = Annotated[int, typer.Option("--port", metavar="N", min=0, max=65535, help="The port; 0: any free one.")]
ALLOW_HOST = "A further host name that clients use; repeatable."
AllowHost = Annotated[list[str] | None, typer.Option("--allow-host", metavar="NAME", help=ALLOW_HOST)]
WORKERS = "Server processes; about one per core."
Workers = Annotated[int, typer.Option("--workers", metavar="N", min=1, max=64, help=WORKERS)]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Log every request, on stderr.")]
LogLevel = Annotated[
    Literal["debug", "info", "warning", "error"] | None,
    typer.Option("--log-level", metavar="LEVEL", help="debug, info, warning or error. Default: warning."),
]
LogFormat = Annotated[
    Literal["text", "json"], typer.Option("--log-format", metavar="text|json", help="The format of logs, on stderr.")
]
Http = Annotated[bool, typer.Option("--http", help="Serve streamable HTTP instead of stdin and stdout.")]
ReadOnly = Annotated[bool, typer.Option("--read-only", help="Offer only the tools that change nothing.")]
Lang = Annotated[
    Literal["en", "zh"], typer.Option("--lang", metavar="en|zh", help="The language of tools and answers.")
]
ChatGPT = Annotated[bool, typer.Option("--chatgpt", help="Offer search and fetch too, for ChatGPT connectors.")]
Agent = Annotated[str | None, typer.Option("--agent", metavar="NAME", help="Agent of the saved memories.")]
APART = "Save and find memories of the repository of the current folder only."
PerProject = Annotated[bool, typer.Option("--per-project", help=APART)]

To = Annotated[str, typer.Option("--to", metavar="URL", help="Base URL of the model's server.")]
KEY_ENV = "Environment variable with the key for the model's server. Default: the program's own key."
KeyEnv = Annotated[str | None, typer.Option("--key-env", metavar="NAME", help=KEY_ENV)]

KeyName = Annotated[str, typer.Argument(metavar="NAME", help="A name for the key, to recognise it.")]
KeyId = Annotated[str, typer.Argument(metavar="KEY_ID", help="The id of the key; see `jiyi keys list`.")]
SCOPES = "read, write, delete or admin; repeatable. Default: read and write."
Scopes = Annotated[list[str] | None, typer.Option("--scope", metavar="SCOPE", help=SCOPES)]
ForUsers = Annotated[
    list[str] | None, typer.Option("--for", metavar="ID", help="A user that the key is for; repeatable.")
]
ForAll = Annotated[bool, typer.Option("--all-users", help="The key is for all users.")]
EXPIRES = f"When it expires ({opt.LOCAL})."
Expires = Annotated[datetime | None, typer.Option("--expires-at", metavar="TIME", parser=opt.parse_time, help=EXPIRES)]


@general(STORE)
def serve(
    host: Host = "127.0.0.1",
    port: Port = 8766,
    allow_host: AllowHost = None,
    workers: Workers = 1,
    verbose: Verbose = False,
    log_level: LogLevel = None,
    log_format: LogFormat = "json",
) -> None:
    """Serve the memory over HTTP: a REST API under /v1, and a web console.

    Examples:
    $ jiyi serve
    $ jiyi serve --port 8080 --store ./记忆.db
    $ jiyi serve --host 0.0.0.0 --allow-host memory.example.org
    $ jiyi serve --workers 4

    Without keys it serves this machine only. Once a key exists
    (`jiyi keys create`), every request needs one, and it may listen on
    other addresses. Ctrl-C and SIGTERM finish accepted requests.
    """
    from ..http_server import start_logging
    from ..server.serve import fast_loop
    from ..server.serve import serve as serve_http

    level = log_level or ("info" if verbose else "warning")
    start_logging(level=level, lines=log_format)

    def ready(url: str, needs_key: bool) -> None:
        typer.echo(f"serving {url}  (console: {url}/  API: {url}/openapi.json)", err=True)
        if not needs_key:
            typer.echo("no keys: every program on this machine has access, others have none", err=True)

    if workers > 1:
        from ..server.workers import WorkerOptions, prepare, serve_with_workers

        worker = WorkerOptions(
            store=options().store, host=host, allowed_hosts=allow_host or (), log_level=level, log_format=log_format
        )
        prepared = call(lambda memory, _: prepare(memory, host), create=True)
        serve_with_workers(worker, workers, port=port, prepared=prepared, ready=ready)
        return
    call(
        lambda memory, _: serve_http(memory, host=host, port=port, allowed_hosts=allow_host or (), ready=ready),
        create=True,
        loop_factory=fast_loop(),
    )


@general(USER, STORE)
def proxy(
    to: To,
    key_env: KeyEnv = None,
    host: Host = "127.0.0.1",
    port: Port = 8767,
    allow_host: AllowHost = None,
    verbose: Verbose = False,
    log_level: LogLevel = None,
    log_format: LogFormat = "json",
) -> None:
    """Give memory to any program that speaks OpenAI's protocol, as a proxy.

    Examples:
    $ jiyi proxy --to http://127.0.0.1:11434/v1
    $ jiyi proxy --to https://api.openai.com/v1 --user 林梅
    $ jiyi proxy --to https://models.example.org/v1 --key-env MODELS_KEY

    Set the program's base URL to http://127.0.0.1:8767/v1. Each turn gets the
    memories that bear on it, and is stored afterwards. The program's own key
    is sent on; with --key-env, the proxy's is sent instead. Headers:
    X-Jiyi-User, X-Jiyi-Session, X-Jiyi-Agent. Once a key of Jiyi exists
    (`jiyi keys create`), every request needs one, as X-Jiyi-Key or as the
    program's key; a key for one user decides the user.
    """
    import os

    from ..http_server import start_logging
    from ..server.proxy import Upstream, serve_proxy
    from ..server.serve import fast_loop

    key = None if key_env is None else os.environ.get(key_env)
    if key_env is not None and not key:
        raise InvalidInput("--key-env", f"the environment variable {key_env} is not set")
    upstream = Upstream.parse(to, key=key)
    level = log_level or ("info" if verbose else "warning")
    start_logging(level=level, lines=log_format)

    def ready(url: str, needs_key: bool) -> None:
        typer.echo(f"base URL: {url}  (sends on to {upstream.url})", err=True)
        if not needs_key:
            typer.echo("no keys: every program on this machine has access, others have none", err=True)

    call(
        lambda memory, user_id: serve_proxy(
            memory, upstream, user_id=user_id, host=host, port=port, allowed_hosts=allow_host or (), ready=ready
        ),
        create=True,
        loop_factory=fast_loop(),
    )


@general(USER, STORE)
def mcp(
    http: Http = False,
    host: Host = "127.0.0.1",
    port: Port = 8765,
    allow_host: AllowHost = None,
    read_only: ReadOnly = False,
    chatgpt: ChatGPT = False,
    lang: Lang = "en",
    verbose: Verbose = False,
    log_level: LogLevel = None,
    log_format: LogFormat = "text",
    agent_id: Agent = None,
    per_project: PerProject = False,
) -> None:
    """Serve the memory to MCP clients: Claude, Cursor, VS Code, Codex, ChatGPT, …

    Examples:
    $ jiyi mcp
    $ jiyi mcp --user mei --store ./memory.db
    $ jiyi mcp --http --port 8765
    $ jiyi mcp --lang zh --user 林梅

    A client starts it and talks to it through stdin and stdout; with --http
    it listens at http://HOST:PORT/mcp. The user is fixed here: no client can
    name another one. Several servers may share one store.
    """
    from ..http_server import start_logging

    start_logging(
        level=log_level or ("info" if verbose else "warning"), lines=log_format
    )  # on stderr: stdout is the wire
    from ..agents.mcp.serve import serve_http, serve_stdio
    from ..agents.mcp.server import make_server
    from ..engine import runtime
    from ..warm import warm_up
    from .hook_input import repository_of

    async def run(memory: Any, user_id: str) -> None:
        server = make_server(
            memory,
            user_id=user_id,
            agent_id=agent_id,
            group_id=repository_of() if per_project else None,
            private=per_project,
            language=lang,
            read_only=read_only,
            chatgpt=chatgpt,
        )
        if not http:
            await serve_stdio(server)
            return
        await warm_up(memory)
        settings = runtime(memory).settings
        key = settings.mcp.key
        await serve_http(
            server,
            host=host,
            port=port,
            key=None if key is None else key.get_secret_value(),
            shutdown_timeout_s=settings.server.shutdown_timeout_s,
            allowed_hosts=allow_host or (),
            ready=lambda url: typer.echo(f"serving {url} for user {user_id!r}", err=True),
        )

    call(run, create=True, settings=None if http else settings_for_agent())


app = typer.Typer(no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})


@app.callback()
def keys() -> None:
    """Create, list and revoke API keys of the server.

    Examples:
    $ jiyi keys create phone --for mei
    $ jiyi keys create 后台 --all-users --scope read --scope admin
    $ jiyi keys list
    $ jiyi keys revoke KEY_ID

    Only a hash of a key is stored. Once a key exists, every request to
    `jiyi serve` needs one.
    """


@app.command("create")
@general(STORE, JSON)
def create(
    name: KeyName,
    scopes: Scopes = None,
    users: ForUsers = None,
    all_users: ForAll = False,
    expires_at: Expires = None,
) -> None:
    """Create a key. It is shown only once; only a hash of it is stored.

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
        create=True,
    )
    show(made, lambda key: f"{key.key}\n\nit is not shown again: store it now. Its id is {key.id}")


@app.command("list")
@general(STORE, JSON)
def list_() -> None:
    """List the keys with their scopes and users, without the secrets.

    Examples:
    $ jiyi keys list
    $ jiyi keys list --json
    """
    from .render import columns, when

    def state(key: ApiKey) -> str:
        if key.revoked_at is not None:
            return f"revoked {when(key.revoked_at)}"
        return "valid" if key.expires_at is None else f"until {when(key.expires_at)}"

    found = call(lambda memory, _: memory.keys.list(), reads=True)
    table = columns("id", "name", "scopes", "users", "state")
    for key in found:
        users = "all users" if key.all_users else ", ".join(map(plain, key.user_ids))
        table.add_row(key.id, plain(key.name), ", ".join(key.scopes), users, state(key))
    show(list(found), lambda _: table)


@app.command("revoke")
@general(STORE, JSON)
def revoke(key_id: KeyId) -> None:
    """Revoke a key. A running server refuses it within a second.

    Examples:
    $ jiyi keys revoke KEY_ID
    $ jiyi keys revoke KEY_ID --store ./记忆.db
    """
    found = call(lambda memory, _: memory.keys.revoke(key_id))
    show(found, lambda key: f"key {key.id} ({plain(key.name)}) is revoked")
