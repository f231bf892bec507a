"""Compare an engine's documents with the memories: numbers and digests, user by user."""

from __future__ import annotations

from ..models import Value
from ..store.store import Store
from .base import user_key
from .outbox import Outbox, Progress

MOST_SHOWN = 20


class EngineReport(Value):
    """The difference of an engine and the store."""

    engine: str
    users: int
    documents: int  # that should be there
    missing: int
    extra: int  # of memories that are gone, or of unknown users
    different: int  # other contents
    behind: int  # users with changes that the engine does not have yet
    examples: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        return not (self.missing or self.extra or self.different)


async def verify(store: Store, outbox: Outbox, progress: Progress | None = None) -> EngineReport:
    """Compare every user. A user whose changes are not all applied counts as behind, and so do differences of it."""
    engine = outbox.engine
    await engine.open()
    users = await store.memories.users()
    counts = {"missing": 0, "extra": 0, "different": 0}
    documents = behind = 0
    examples: list[str] = []
    for at, user_id in enumerate(users):
        state = (await store.projections.user(user_id)).get(engine.name)
        if state is None or not state.ready or (state.applied or 0) < await store.projections.tip(user_id):
            behind += 1
        wanted: dict[str, str] = {}
        last = ""
        while page := await store.projected.page(user_id, last, outbox.model, engine.parts):
            wanted |= {memory.id: digest for memory in page if (digest := engine.digest(memory)) is not None}
            last = page[-1].id
        found = await engine.digests(user_id)
        documents += len(wanted)
        for what, ids in (
            ("missing", wanted.keys() - found.keys()),
            ("extra", found.keys() - wanted.keys()),
            ("different", {one for one in wanted.keys() & found.keys() if wanted[one] != found[one]}),
        ):
            counts[what] += len(ids)
            examples += [f"{what}: {one} of {user_id}" for one in sorted(ids)]
        if progress is not None:
            progress(f"verifying {engine.name}", at + 1, len(users))
    unknown = await engine.user_keys() - set(map(user_key, users))
    counts["extra"] += len(unknown)
    examples += [f"extra: documents of an unknown user, key {key}" for key in sorted(unknown)]
    return EngineReport(
        engine=engine.name,
        users=len(users),
        documents=documents,
        behind=behind,
        examples=tuple(examples[:MOST_SHOWN]),
        **counts,
    )
