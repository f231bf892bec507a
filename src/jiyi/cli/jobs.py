"""Commands about background jobs: jobs list, show, retry, cancel; and worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .server import LogFormat, LogLevel
from .session import ALL_USERS, JSON, STORE, call, counted, err, general, options, plain, show

if TYPE_CHECKING:
    from ..memory import Memory

app = typer.Typer(no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})

JobId = Annotated[str, typer.Argument(metavar="JOB", help="The job's id, which is that of its receipt.")]
STATE = "Only jobs in this state: accepted, extracted, indexed or failed."
State = Annotated[str | None, typer.Option("--state", metavar="STATE", help=STATE)]
Most = Annotated[int, typer.Option("--limit", "-n", metavar="N", help="Maximum number of jobs.")]
StatusPort = Annotated[
    int | None, typer.Option("--status-port", metavar="N", min=0, max=65535, help="Serve health and metrics here.")
]
StatusHost = Annotated[str, typer.Option("--status-host", metavar="ADDRESS", help="The address of --status-port.")]
Once = Annotated[bool, typer.Option("--once", help="Do the waiting jobs, then exit.")]


@app.callback()
def jobs() -> None:
    """List and control the background jobs of `add`.

    Examples:
    $ jiyi jobs list --state failed
    $ jiyi jobs show JOB --user 林梅
    $ jiyi jobs retry JOB
    $ jiyi jobs cancel JOB

    With a language model, memories are extracted by a job after the
    messages are stored. A failed job says why; its messages are kept.
    """


@app.command("list")
@general(ALL_USERS, STORE, JSON)
def list_(state: State = None, limit: Most = 20) -> None:
    """List jobs, newest first.

    Examples:
    $ jiyi jobs list --state failed
    $ jiyi jobs list --user 林梅 --json
    """
    found = call(lambda memory, user_id: memory.jobs.list(user_id=user_id, state=state, limit=limit), reads=True)
    if not found and not options().as_json:
        err().print("no jobs")
        return
    from .render import columns, when

    table = columns("state", "attempts", "created", "user", "job")
    for job in found:
        name = "\n".join((job.id, *map(plain, job.problems)))
        table.add_row(job.state, str(job.attempts), when(job.created_at), plain(job.user_id), name)
    show(list(found), lambda _: table)


@app.command("show")
@general()
def show_(job_id: JobId) -> None:
    """Show one job.

    Examples:
    $ jiyi jobs show JOB
    $ jiyi jobs show JOB --user 林梅 --json
    """
    from .render import job_card

    show(call(lambda memory, user_id: memory.jobs.get(job_id, user_id=user_id), reads=True), job_card)


@app.command("retry")
@general()
def retry(job_id: JobId) -> None:
    """Retry a failed job, or one that waits for its next attempt, now.

    Examples:
    $ jiyi jobs retry JOB
    $ jiyi jobs retry JOB --user 林梅
    """
    found = call(lambda memory, user_id: memory.jobs.retry(job_id, user_id=user_id))
    show(found, lambda job: f"job {job.id} is {job.state} and will be retried")


@app.command("cancel")
@general()
def cancel(job_id: JobId) -> None:
    """Cancel an unfinished job. Its messages are kept.

    Examples:
    $ jiyi jobs cancel JOB
    $ jiyi jobs cancel JOB --user 林梅
    """
    found = call(lambda memory, user_id: memory.jobs.cancel(job_id, user_id=user_id))
    show(found, lambda job: f"job {job.id} is cancelled")


@general(STORE, JSON)
def worker(
    once: Once = False,
    status_port: StatusPort = None,
    status_host: StatusHost = "127.0.0.1",
    log_level: LogLevel = None,
    log_format: LogFormat = "json",
) -> None:
    """Run background jobs for all users.

    Examples:
    $ jiyi worker
    $ jiyi worker --once --store ./记忆.db
    $ jiyi worker --status-port 9100 --log-level info

    With --status-port it serves /livez, /readyz and /metrics there.

    Needed only where the processes that add do not run jobs themselves
    (`jobs.in_process = false`). Any number of workers can share a store;
    a job whose worker is stopped or killed is done by another one.
    """
    if not once:
        err().print("waiting for jobs; Ctrl-C stops")
    from ..http_server import serving_status, start_logging
    from ..warm import warm_up

    start_logging(level=log_level or "warning", lines=log_format)

    async def work(memory: Memory, _: object) -> int:
        if status_port is None:
            return await memory.jobs.work(until_idle=once)
        await warm_up(memory)
        async with serving_status(memory, status_host, status_port) as url:
            err().print(f"status at {url}/metrics")
            return await memory.jobs.work(until_idle=once)

    done = call(work, create=True)
    show({"done": done}, lambda _: f"{counted(done, 'job', 'jobs')} done")
