"""The verbs that keep a memory in order as time goes by."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from .. import validation
from ..errors import InvalidInput
from ..keep import undo as undoing
from ..keep.plans import Compressed, CompressPlan, Undone, UndoPlan, Upkept
from ..keep.upkeep import Progress
from ..models import utc_now
from ..store.contract import LeaseLost
from ..store.undo import Undoing
from .parts import Parts


class Keeping(Parts):
    async def compress_plan(self, *, user_id: str) -> CompressPlan:
        """What `compress` would do now: which old, seldom used memories become which one to three. Nothing is changed.

        plan = await memory.compress_plan(user_id="mei")
        await memory.compress(user_id="mei", plan=plan)
        """
        whose = validation.name("user_id", user_id)
        await self._accesses.flush()  # what was recalled a moment ago is not unused
        return await self._compressor().plan(whose, utc_now())

    async def compress(self, *, user_id: str, plan: CompressPlan | None = None, actor: str = "compress") -> Compressed:
        """Let few memories take the place of many that are old and seldom used; names, numbers and dates are kept.

        With a plan, exactly that is done; what was changed since it was made stays as it is. The originals are
        archived, and `undo` of a new memory brings them back.
        """
        whose = validation.name("user_id", user_id)
        who = validation.name("actor", actor)
        if plan is not None and plan.user_id != whose:
            raise InvalidInput("plan", f"was made for another user than {whose!r}")
        plan = plan or await self.compress_plan(user_id=whose)
        return await self._compressor().apply(plan, now=utc_now(), actor=who)

    async def upkeep(
        self, *, user_id: str | None = None, dry_run: bool = False, progress: Progress | None = None
    ) -> Upkept:
        """Look after the memories of one user, or of all: archive what has run out, compress what is old and unused.

        `jiyi worker` does it by itself, every `maintenance.interval_hours`. Two processes never do it at the same
        time: who comes second gets a note in `problems`. With `dry_run` nothing is changed, only counted.
        """
        whose = validation.optional_name("user_id", user_id)
        await self._accesses.flush()  # what was recalled a moment ago is not unused
        if dry_run:
            return await self._upkeep().look(whose, progress)
        if whose is not None:
            return await self._upkeep().of(whose)
        try:
            done = await self._upkeep().round(forced=True, progress=progress)
        except LeaseLost:  # this process stood still for so long that another one has taken over
            done = None
        at_it = ("another process is at it",)
        return done or Upkept(users=0, expired=0, compressed=0, made=0, problems=at_it)

    async def undo_plan(
        self,
        memory_id: str | None = None,
        *,
        user_id: str,
        session_id: str | None = None,
        actor: str | None = None,
        metadata: Mapping[str, str] | None = None,
        since: datetime | None = None,
        to: datetime | None = None,
    ) -> UndoPlan:
        """What `undo` would do with the same arguments. Nothing is changed."""
        what = Undoing(
            user_id=validation.name("user_id", user_id),
            memory_id=validation.optional_name("memory_id", memory_id),
            session_id=validation.optional_name("session_id", session_id),
            actor=validation.optional_name("actor", actor),
            metadata={} if metadata is None else _names("metadata", metadata),
            since=validation.optional_time("since", since),
            after=validation.optional_time("to", to),
        )
        source = what.session_id or what.actor or what.metadata
        if (what.memory_id is not None) + (what.after is not None) + bool(source) != 1:
            problem = "say what: a memory_id, or to which time, or a source (session_id, actor or metadata)"
            raise InvalidInput("undo", problem)
        if what.since is not None and not source:
            raise InvalidInput("since", "goes with a source: session_id, actor or metadata")
        return await undoing.plan(what, utc_now(), self._store)

    async def undo(
        self,
        memory_id: str | None = None,
        *,
        user_id: str,
        session_id: str | None = None,
        actor: str | None = None,
        metadata: Mapping[str, str] | None = None,
        since: datetime | None = None,
        to: datetime | None = None,
        plan: UndoPlan | None = None,
        by: str = "user",
    ) -> Undone:
        """Take back the last change of a memory; or what came from a source: a session, an actor, whatever carries some
        metadata; or everything after a moment. Nothing is deleted: an undo is in the history and can itself be undone.

            await memory.undo(session_id="s7", user_id="mei")
            await memory.undo(to=datetime(2026, 3, 2, tzinfo=UTC), user_id="mei")
        """
        who = validation.name("by", by)
        if plan is None:
            plan = await self.undo_plan(
                memory_id,
                user_id=user_id,
                session_id=session_id,
                actor=actor,
                metadata=metadata,
                since=since,
                to=to,
            )
        elif plan.user_id != validation.name("user_id", user_id):
            raise InvalidInput("plan", f"was made for another user than {user_id!r}")
        return await undoing.apply(plan, actor=who, store=self._store, embedder=self._embedder, rules=self._rules)


def _names(argument: str, values: Mapping[str, str]) -> dict[str, str]:
    return {
        validation.name(argument, name): validation.text(f"{argument}.{name}", value) for name, value in values.items()
    }
