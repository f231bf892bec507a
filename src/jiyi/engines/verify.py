"""Compare an engine's documents with the memories, user by user: which are there, their digests, and hashes of what is
stored of all of them or of a sample."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence

from ..models import Value
from ..store.store import Store
from .base import user_key
from .outbox import Outbox, Progress

MOST_SHOWN = 20
SAMPLE = 1000  # documents whose stored contents are hashed, unless all are
SAMPLE_OF_USER = 50
REPAIR_AT_ONCE = 500


class EngineReport(Value):
    """The difference of an engine and the store."""

    engine: str
    users: int
    documents: int  # that should be there
    hashed: int  # of which everything that is stored was compared
    missing: int
    extra: int  # of memories that are gone, or of unknown users
    different: int  # other contents
    repaired: int
    foreign: int  # documents of other programs, which stay
    behind: int  # users with changes that the engine does not have yet
    examples: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        return self.missing + self.extra + self.different == self.repaired

    @property
    def summary(self) -> str:
        counts = f"{self.missing:,} missing, {self.extra:,} extra, {self.different:,} different"
        return f"{counts} of {self.documents:,} documents, {self.hashed:,} compared whole"


class Verification:
    """One comparison of an engine with the store. With `repair`, what differs is written anew and nothing else."""

    def __init__(self, store: Store, outbox: Outbox, *, full: bool, repair: bool) -> None:
        self._store = store
        self._outbox = outbox
        self._engine = outbox.engine
        self._full = full
        self._repair = repair
        self._counts = dict.fromkeys(("documents", "hashed", "missing", "extra", "different", "repaired", "behind"), 0)
        self._examples: list[str] = []

    async def run(self, users: Sequence[str], progress: Progress | None) -> None:
        for at, user_id in enumerate(users):
            await self._verify(user_id)
            if progress is not None:
                progress(f"verifying {self._engine.name}", at + 1, len(users))

    async def find_unknown(self) -> None:
        """Find the documents of users who do not exist."""
        there = await self._engine.user_keys()
        waiting = await self._store.projections.unfinished(self._outbox.name)  # to be erased
        known = set(map(user_key, [*waiting, *await self._store.memories.users()]))
        unknown = sorted(there - known)
        self._counts["extra"] += len(unknown)
        self._examples += [f"extra: documents of an unknown user, key {key}" for key in unknown]
        if unknown and self._repair:
            await self._engine.delete_keys(unknown)
            self._counts["repaired"] += len(unknown)

    async def report(self, users: int) -> EngineReport:
        return EngineReport(
            engine=self._engine.name,
            users=users,
            foreign=await self._engine.foreign(),
            examples=tuple(self._examples[:MOST_SHOWN]),
            **self._counts,
        )

    async def _verify(self, user_id: str) -> None:
        engine = self._engine
        state = (await self._store.projections.user(user_id)).get(self._outbox.name)
        if state is None or not state.ready:
            self._counts["behind"] += 1
            return
        wanted = await self._digests(user_id)
        found = await engine.digests(user_id)
        sample = None if self._full else self._sample(wanted.keys() & found.keys())
        hashed = {} if sample is not None and not sample else await engine.hashes(user_id, sample)
        pending = await self._pending(user_id, state.applied or 0)
        self._counts["behind"] += bool(pending)
        self._counts["documents"] += len(wanted)
        self._counts["hashed"] += len(hashed)
        both = wanted.keys() & found.keys()
        differences = {
            "missing": wanted.keys() - found.keys() - pending,
            "extra": found.keys() - wanted.keys() - pending,
            "different": {
                one for one in both if not wanted[one] == found[one] == hashed.get(one, wanted[one])
            } - pending,
        }  # fmt: skip
        for what, ids in differences.items():
            self._counts[what] += len(ids)
            self._examples += [f"{what}: {one} of {user_id}" for one in sorted(ids)]
        if self._repair:
            await self._write(user_id, sorted(set().union(*differences.values())))

    async def _digests(self, user_id: str) -> Mapping[str, str]:
        """Return the digests that a user's documents should have."""
        wanted: dict[str, str] = {}
        last = ""
        while page := await self._store.projected.page(user_id, last, self._outbox.model, self._engine.parts):
            wanted |= {one.id: digest for one in page if (digest := self._engine.digest(one)) is not None}
            last = page[-1].id
        return wanted

    async def _pending(self, user_id: str, applied: int) -> set[str]:
        """Return the memories and units that changed after what the engine has, and those that have parts of them."""
        found: set[str] = set()
        while changes := await self._outbox.changes(user_id, applied):
            documents, deleted = await self._outbox.current(user_id, changes)
            found.update(deleted, (document.id for document in documents))
            applied = changes[-1][0]
        return found

    def _sample(self, ids: Iterable[str]) -> list[str]:
        some = sorted(ids)
        return random.sample(some, max(0, min(len(some), SAMPLE_OF_USER, SAMPLE - self._counts["hashed"])))

    async def _write(self, user_id: str, ids: Sequence[str]) -> None:
        for start in range(0, len(ids), REPAIR_AT_ONCE):
            await self._write_current(user_id, ids[start : start + REPAIR_AT_ONCE])
        await self._engine.refresh()
        self._counts["repaired"] += len(ids)

    async def _write_current(self, user_id: str, ids: Sequence[str]) -> None:
        """Write memories and units as they are. If one changes meanwhile, the process that feeds the engine may have
        written it before; then it is written again."""
        before: object = None
        while True:
            documents = await self._outbox.get(user_id, ids)
            now = {document.id: self._engine.digest(document) for document in documents}
            if now == before:
                return
            await self._engine.write(user_id, [], ids)  # a document may have more parts than it should
            await self._engine.write(user_id, documents, [])
            before = now


async def verify(
    store: Store, outbox: Outbox, *, full: bool = False, repair: bool = False, progress: Progress | None = None
) -> EngineReport:
    """Compare every user, and everything that is stored of a sample of the documents, or of all. Memories whose changes
    the engine does not have yet are left out."""
    await outbox.open()
    users = await store.memories.users()
    verification = Verification(store, outbox, full=full, repair=repair)
    await verification.run(random.sample(users, len(users)), progress)
    await verification.find_unknown()
    return await verification.report(len(users))


async def verify_some(store: Store, outbox: Outbox, users: int) -> EngineReport:
    """Compare some users, chosen at random."""
    await outbox.open()
    known = await store.memories.users()
    some = random.sample(known, min(users, len(known)))
    verification = Verification(store, outbox, full=False, repair=False)
    await verification.run(some, None)
    return await verification.report(len(some))
