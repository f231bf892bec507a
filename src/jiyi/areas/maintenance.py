"""Maintenance: compress, expire, undo, reindex, verify, rebuild, vacuum."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from .. import validation
from ..engine import Engine
from ..engines import Engines
from ..engines.verify import EngineReport
from ..errors import InvalidInput, SettingsError
from ..keep import undo as undoing
from ..keep.compress import Compressor, CompressPlan, CompressReport
from ..keep.maintain import Maintainer, MaintenanceReport, Progress
from ..keep.undo import UndoPlan, UndoReport
from ..keep.verify import VerifyReport
from ..models import utc_now
from ..scope import accept_old_arguments
from ..store.repositories.revisions import Undoing
from ..store.write_set import LeaseLost
from ..transfer.export import no_progress
from ..write.reindex import Progress as ReindexProgress
from ..write.reindex import reindex_embeddings


@accept_old_arguments
class Maintenance:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def compress_plan(self, *, user_id: str) -> CompressPlan:
        """Plan which old, rarely used memories `compress` would replace by a few. Nothing is changed.

        plan = await memory.maintenance.compress_plan(user_id="mei")
        await memory.maintenance.compress(user_id="mei", plan=plan)
        """
        user_id = validation.name("user_id", user_id)
        await self._engine.accesses.flush()  # a memory recalled a moment ago is not unused
        return await _compressor(self._engine).plan(user_id, utc_now())

    async def compress(
        self, *, user_id: str, plan: CompressPlan | None = None, actor: str = "compress"
    ) -> CompressReport:
        """Replace old, rarely used memories by a few that keep their names, numbers and dates.

        With a plan, exactly that is done, except for memories changed since. The originals are archived, and `undo` of
        a new memory brings them back.
        """
        user_id, actor = validation.name("user_id", user_id), validation.name("actor", actor)
        if plan is not None and plan.user_id != user_id:
            raise InvalidInput("plan", f"was made for another user than {user_id!r}")
        plan = plan or await self.compress_plan(user_id=user_id)
        return await _compressor(self._engine).apply(plan, now=utc_now(), actor=actor)

    async def run(
        self, *, user_id: str | None = None, dry_run: bool = False, progress: Progress | None = None
    ) -> MaintenanceReport:
        """Archive expired memories and compress old, unused ones, for one user or for all.

        `jiyi worker` does this by itself, every `maintenance.interval_hours`. Only one process does it at a time;
        another one gets a note in `problems`. `dry_run` only counts what there is to do.
        """
        user_id = validation.optional_name("user_id", user_id)
        await self._engine.accesses.flush()  # a memory recalled a moment ago is not unused
        if dry_run:
            return await maintainer_of(self._engine).preview(user_id, progress)
        if user_id is not None:
            return await maintainer_of(self._engine).run_user(user_id)
        try:
            done = await maintainer_of(self._engine).run_all(forced=True, progress=progress)
        except LeaseLost:  # this process was suspended for so long that another one has taken over
            done = None
        busy = ("another process is at it",)
        return done or MaintenanceReport(users=0, expired=0, compressed=0, made=0, problems=busy)

    async def undo_plan(
        self,
        memory_id: str | None = None,
        *,
        user_id: str,
        session_id: str | None = None,
        source_actor: str | None = None,
        metadata: Mapping[str, str] | None = None,
        since: datetime | None = None,
        to: datetime | None = None,
    ) -> UndoPlan:
        """Plan what `undo` would do with the same arguments. Nothing is changed."""
        what = Undoing(
            user_id=validation.name("user_id", user_id),
            memory_id=validation.optional_name("memory_id", memory_id),
            session_id=validation.optional_name("session_id", session_id),
            actor=validation.optional_name("source_actor", source_actor),
            metadata={} if metadata is None else _names("metadata", metadata),
            since=validation.optional_time("since", since),
            after=validation.optional_time("to", to),
        )
        source = what.session_id or what.actor or what.metadata
        if (what.memory_id is not None) + (what.after is not None) + bool(source) != 1:
            problem = "name one memory_id, a time `to`, or a source: session_id, source_actor or `metadata`"
            raise InvalidInput("undo", problem)
        if what.since is not None and not source:
            raise InvalidInput("since", "needs a source: session_id, source_actor or `metadata`")
        return await undoing.plan(what, utc_now(), self._engine.store)

    async def undo(
        self,
        memory_id: str | None = None,
        *,
        user_id: str,
        session_id: str | None = None,
        source_actor: str | None = None,
        metadata: Mapping[str, str] | None = None,
        since: datetime | None = None,
        to: datetime | None = None,
        plan: UndoPlan | None = None,
        actor: str = "user",
    ) -> UndoReport:
        """Undo the last change of a memory, everything from a source (a session, an actor, some metadata), or
        everything after a time. Nothing is deleted: an undo is part of the history and can itself be undone, and
        `actor` is who undoes.

            await memory.maintenance.undo(session_id="s7", user_id="mei")
            await memory.maintenance.undo(to=datetime(2026, 3, 2, tzinfo=UTC), user_id="mei")
        """
        validation.name("actor", actor)
        if plan is None:
            plan = await self.undo_plan(
                memory_id,
                user_id=user_id,
                session_id=session_id,
                source_actor=source_actor,
                metadata=metadata,
                since=since,
                to=to,
            )
        elif plan.user_id != validation.name("user_id", user_id):
            raise InvalidInput("plan", f"was made for another user than {user_id!r}")
        engine = self._engine
        return await undoing.apply(plan, actor=actor, store=engine.store, embedder=engine.embedder, rules=engine.rules)

    async def reindex(self, *, progress: ReindexProgress | None = None) -> int:
        """Embed every memory that has no vector of the current embedder. It can be interrupted and resumed."""
        return await reindex_embeddings(self._engine.store, self._engine.embedder, progress)

    async def verify(
        self,
        *,
        user_id: str | None = None,
        repair: bool = False,
        vectors: bool = False,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> VerifyReport:
        """Compare the index with the memories, for one user or for all, and repair it if asked.

        `vectors` embeds every text again to compare, which is slow. Others can read and write meanwhile.

            found = await memory.maintenance.verify(repair=True)
        """
        from ..keep.verify import verify

        return await verify(
            self._engine.store,
            self._engine.embedder,
            self._engine.rules,
            validation.optional_name("user_id", user_id),
            repair=repair,
            vectors=vectors,
            progress=progress or no_progress,
        )

    async def verify_engines(
        self,
        *,
        full: bool = False,
        repair: bool = False,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> Sequence[EngineReport]:
        """Compare the documents of the external engines with the memories: which there are, their digests, and all that
        is stored of a sample of them, or with `full` of each. `repair` writes what differs anew, and nothing else.

            found = await memory.maintenance.verify_engines(repair=True)
        """
        return tuple(await _engines(self._engine).verify(full=full, repair=repair, progress=progress))

    async def rebuild(self, engine: str, *, progress: Callable[[str, int, int], None] | None = None) -> EngineReport:
        """Load an external engine anew beside its present documents, and switch. An interrupted rebuild is continued.

        await memory.maintenance.rebuild("milvus")
        """
        return await _engines(self._engine).rebuild(validation.name("engine", engine), progress)

    async def vacuum(self) -> Sequence[str]:
        """Rewrite the database without deleted data. Writers wait meanwhile. Returns notes on what is left."""
        return tuple(await self._engine.store.database.vacuum())


def _engines(engine: Engine) -> Engines:
    if engine.engines is None:
        raise SettingsError("engines: none is set up (docs/scaling.md)")
    return engine.engines


def maintainer_of(engine: Engine) -> Maintainer:
    return Maintainer(
        engine.store, engine.index, _compressor(engine), engine.rules, engine.settings.maintenance, engine.meter
    )


def _compressor(engine: Engine) -> Compressor:
    return Compressor(
        store=engine.store,
        embedder=engine.embedder,
        rules=engine.rules,
        settings=engine.settings.maintenance,
        llm=engine.llm,
    )


def _names(argument: str, values: Mapping[str, str]) -> dict[str, str]:
    return {
        validation.name(argument, name): validation.text(f"{argument}.{name}", value) for name, value in values.items()
    }
