"""The commands about what goes on after `add`: jobs list, show, retry, cancel; and worker."""

from __future__ import annotations

from typing import Annotated

import typer

from . import options as opt
from .output import counted, err, plain, show
from .session import call

app = typer.Typer(no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})

JobId = Annotated[str, typer.Argument(metavar="JOB", help="The job's id, which is its receipt's.")]
State = Annotated[
    str | None, typer.Option("--state", metavar="STATE", help="Only accepted, extracted, indexed or failed ones.")
]
Most = Annotated[int, typer.Option("--limit", "-n", metavar="N", help="At most this many.")]
Once = Annotated[bool, typer.Option("--once", help="Do what there is, then leave.")]


@app.callback()
def jobs() -> None:
    """See and steer what goes on after `add` has accepted something.

    Examples:
    $ jiyi jobs list --state failed
    $ jiyi jobs show JOB --user 林梅
    $ jiyi jobs retry JOB
    $ jiyi jobs cancel JOB

    With a language model, memories are worked out after the messages are
    safe. A job that failed says why; its messages are kept.
    """


@app.command("list")
def list_(
    state: State = None,
    limit: Most = 20,
    user: opt.OneUser = None,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """List jobs, newest first.

    Examples:
    $ jiyi jobs list --state failed
    $ jiyi jobs list --user 林梅 --json
    """
    found = call(lambda memory, _: memory.jobs.list(user_id=user, state=state, limit=limit), store=store)
    if not found and not as_json:
        err().print("no such jobs")
        return
    from .render import columns, when

    table = columns("state", "tries", "when", "user", "job")
    for job in found:
        name = "\n".join((job.id, *map(plain, job.problems)))
        table.add_row(job.state, str(job.attempts), when(job.created_at), plain(job.user_id), name)
    show(list(found), lambda _: table, as_json)


@app.command("show")
def show_(job_id: JobId, user: opt.User = None, store: opt.Store = None, as_json: opt.Json = False) -> None:
    """Show one job.

    Examples:
    $ jiyi jobs show JOB
    $ jiyi jobs show JOB --user 林梅 --json
    """
    found = call(lambda memory, user_id: memory.jobs.get(job_id, user_id=user_id), store=store, user=user)
    from .render import job_card

    show(found, job_card, as_json)


@app.command("retry")
def retry(job_id: JobId, user: opt.User = None, store: opt.Store = None, as_json: opt.Json = False) -> None:
    """Try a failed job again, or one that waits for its next attempt at once.

    Examples:
    $ jiyi jobs retry JOB
    $ jiyi jobs retry JOB --user 林梅
    """
    found = call(lambda memory, user_id: memory.jobs.retry(job_id, user_id=user_id), store=store, user=user)
    show(found, lambda job: f"job {job.id} is {job.state} and will be tried again", as_json)


@app.command("cancel")
def cancel(job_id: JobId, user: opt.User = None, store: opt.Store = None, as_json: opt.Json = False) -> None:
    """End a job that is not done. Its messages are kept.

    Examples:
    $ jiyi jobs cancel JOB
    $ jiyi jobs cancel JOB --user 林梅
    """
    found = call(lambda memory, user_id: memory.jobs.cancel(job_id, user_id=user_id), store=store, user=user)
    show(found, lambda job: f"job {job.id} will not be done", as_json)


def worker(once: Once = False, store: opt.Store = None, as_json: opt.Json = False) -> None:
    """Work memories out of what was accepted, for all users.

    Examples:
    $ jiyi worker
    $ jiyi worker --once --store ./记忆.db

    Needed only where the programs that add do not do it themselves
    (`jobs.in_process = false`). Any number of workers can share a store;
    one that is stopped or killed loses nothing.
    """
    if not once:
        err().print("waiting for jobs; Ctrl-C stops")
    done = call(lambda memory, _: memory.jobs.work(until_idle=once), store=store)
    show({"done": done}, lambda _: f"{counted(done, 'job', 'jobs')} done", as_json)
