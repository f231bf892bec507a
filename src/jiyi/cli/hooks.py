"""Commands for coding agents: context and observe. With a running server `quick` does their work."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InvalidInput, JiyiError
from . import options as opt
from .hook_input import HookInput, read_stdin, repository_of
from .session import STORE, USER, call, general, missing_file, options, plain, settings_for_agent

if TYPE_CHECKING:
    from ..memory import Memory

Query = Annotated[str | None, typer.Argument(metavar="QUERY", help="The user's words.", show_default=False)]
HOOK = "Read the JSON that a coding agent sends to its hooks from stdin; never fail."
Hook = Annotated[bool, typer.Option("--hook", help=HOOK)]
PER_PROJECT = "Store and recall for the repository of the current folder only, as a group of its name."
PerProject = Annotated[bool, typer.Option("--per-project", help=PER_PROJECT)]
Said = Annotated[str | None, typer.Argument(metavar="TEXT", help="The user's message.", show_default=False)]
Answer = Annotated[str | None, typer.Argument(metavar="ANSWER", help="The agent's answer.", show_default=False)]


@general(USER, STORE)
def context(
    query: Query = None,
    hook: Hook = False,
    per_project: PerProject = False,
    session_id: opt.Session = None,
    agent_id: opt.Agent = None,
) -> None:
    """Print what the memory has to say on a request, as a block for a prompt.

    Examples:
    $ jiyi context "book a table for us"
    $ jiyi context 帮我写周报 --user 林梅
    $ jiyi context --hook

    It has the best memories, weak ones marked, and wishes and limits that
    may bear on the words; what the session said itself is left out. It asks the server on
    this machine if one is running (`jiyi serve`), otherwise the store.
    """
    given = _hook_input() if hook else None
    asked = given.prompt if given is not None else query
    if not asked:
        if hook:
            return
        raise InvalidInput("QUERY", "is missing")
    session = session_id or (given.session_id if given is not None else None)

    async def recalled(memory: Memory, user_id: str) -> str:
        from ..agents.recall import recall

        scope: dict[str, Any] = {"user_id": user_id, "session_id": session, "agent_id": agent_id}
        if per_project:
            scope |= {"group_id": repository_of(given and given.folder), "private": True}
        return (await recall(memory, asked, **scope)).block

    block = plain(_run(recalled, hook=hook, create=False) or "")
    typer.echo(block if given is None else given.answer(block))


@general(USER, STORE)
def observe(
    text: Said = None,
    answer: Answer = None,
    hook: Hook = False,
    per_project: PerProject = False,
    session_id: opt.Session = None,
    agent_id: opt.Agent = None,
) -> None:
    """Store a turn of a conversation.

    Examples:
    $ jiyi observe "I prefer tabs" "Noted."
    $ jiyi observe 我下周三去上海 --session s1
    $ jiyi observe --hook

    It asks the server on this machine if one is running (`jiyi serve`),
    otherwise it opens the store.
    """
    session = session_id
    given = _hook_input() if hook else None
    if hook:
        turn = given.turn if given is not None else []
        session = session or (given.session_id if given is not None else None)
    else:
        pairs = (("user", text), ("assistant", answer))
        turn = [{"role": role, "content": said} for role, said in pairs if said]
        if not text:
            raise InvalidInput("TEXT", "is missing")
    if not turn:
        return
    scope = {"session_id": session, "agent_id": agent_id}
    if per_project:
        scope["group_id"] = repository_of(given and given.folder)
    _run(
        lambda memory, user_id: memory.add(turn, user_id=user_id, **scope, wait=False, actor="observe"),
        hook=hook,
        create=True,
    )


def _hook_input() -> HookInput | None:
    try:
        return HookInput.parse(read_stdin())
    except ValueError as error:
        typer.echo(f"jiyi: not the input of a hook: {error}", err=True)
        return None


def _run(verb: Any, *, hook: bool, create: bool) -> Any:
    """Call the store. A hook reports a failing memory on stderr and lets the agent go on."""
    if not hook:
        return call(verb, create=create)
    logging.basicConfig(level=logging.ERROR)
    try:
        settings = settings_for_agent()
        if not create and missing_file(options().store or settings.url) is not None:
            return None  # nothing is stored yet
        return call(verb, create=create, settings=settings)
    except JiyiError as error:
        typer.echo(f"jiyi: {plain(' '.join(str(error).split()))}", err=True)
        return None
