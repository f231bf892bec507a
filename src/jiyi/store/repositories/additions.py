"""Writing one `add`: messages, memories, index entries, history, change feed and job, in one transaction."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import SimpleNamespace

from sqlalchemy import and_, bindparam, select, update
from sqlalchemy.orm import Session

from ...errors import ConnectionLost, MemoryKeyTaken, UserErased
from ...models import MemoryItem, Receipt, ReceiptState, utc_now
from ...scope import Scope
from ..database import Inserts, Repository, Values, chunks, reads, values_of
from ..schema.tables import (
    SOURCES,
    JobMemoryRow,
    JobRow,
    MemorySourceRow,
    MessageRow,
    RelationRow,
    UnitMessageRow,
    UnitRow,
)
from ..write_set import (
    NOT_INDEXED,
    OBSERVED,
    Addition,
    Change,
    Effects,
    Lease,
    NewMemory,
    SlotEntry,
    Stale,
    StoredMessage,
)
from . import job_queue as jobs
from .dependencies import Dependencies, cited_messages, look_up, same_texts, slots
from .index_entries import without_vector
from .memories import item, items, known_by_hash, memory_rows
from .messages import delivered, newest
from .revisions import apply_changes, divide, insert_memory, retire_expired, scope_of, source_values


def save(session: Session, addition: Addition) -> Receipt:
    """Write one `add` and its job."""
    user_id = addition.user_id
    if addition.idempotency_key is not None:
        earlier = jobs.earlier_receipt(session, user_id, addition.idempotency_key, addition.request_hash)
        if earlier is not None:
            return earlier
    saved = _write(session, addition)
    state, problems = _state(addition, saved.problems, len(saved.unembedded))
    job: Values = {
        "user_id": user_id,
        "id": addition.id,
        "kind": addition.kind,
        "state": state.value,
        "idempotency_key": addition.idempotency_key,
        "request_hash": addition.request_hash if addition.idempotency_key is not None else None,
        "created": len(saved.created),
        "problems": problems,
        "attempts": 0 if addition.payload and addition.leased_by is None else 1,
        "leased_by": addition.leased_by,
        "leased_until": addition.leased_until,
        "created_at": addition.at,
        "updated_at": addition.at,
        "session_id": addition.session_id,
        "payload": addition.payload,
        "not_before": addition.at if addition.payload else None,
    }
    inserts = Inserts()
    inserts.add(JobRow, [job])
    inserts.add(JobMemoryRow, _job_memories(user_id, addition.id, [one.id for one in saved.memories], first=0))
    inserts.run(session)
    return jobs.to_receipt(SimpleNamespace(**job), saved.memories, saved.ended)


def complete(session: Session, lease: Lease, addition: Addition) -> bool:
    """Write the result of a job, if the worker still holds its lease. Return True if no work is left."""
    job = jobs.held(session, lease, utc_now())
    saved = _write(session, addition)
    before: dict[str, int] = {}  # positions of memories that it has led to so far: of an observed turn none
    if job.kind != OBSERVED:
        mine = and_(JobMemoryRow.user_id == job.user_id, JobMemoryRow.job_id == job.id)
        before = dict(session.execute(select(JobMemoryRow.memory_id, JobMemoryRow.position).where(mine)).all())
    new = [memory.id for memory in saved.memories if memory.id not in before]
    inserts = Inserts()
    inserts.add(JobMemoryRow, _job_memories(job.user_id, job.id, new, first=max(before.values(), default=-1) + 1))
    inserts.run(session)
    unembedded = saved.unembedded
    if before:
        unembedded = {*without_vector(session, addition.user_id, [*before, *new], addition.model)}
    state, problems = _state(addition, saved.problems, len(unembedded))
    if addition.payload is not None:
        jobs.go_on(session, job, utc_now(), addition.payload, problems, created=len(saved.created))
        return False
    jobs.finish(session, job, utc_now(), state, problems, created=len(saved.created))
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Saved:
    memories: list[MemoryItem]  # new and known ones, in the order given
    created: set[str]
    unembedded: set[str]  # known ones without a vector of the model
    problems: list[str]
    ended: list[MemoryItem]  # older memories that new ones supersede


def _write(session: Session, addition: Addition) -> _Saved:
    found = look_up(session, addition)
    if found.expired:
        retire_expired(session, addition.user_id, sorted(found.expired), addition.at)
        found = look_up(session, addition)
    _check(addition, found)
    fresh = _fresh(addition, found)
    inserts = Inserts()
    _add_messages(inserts, addition)
    _add_units(session, inserts, addition, found.units)
    memories = add_memories(inserts, addition, list(fresh.values()))
    created = {memory.id for memory in memories}
    effects, problems = _resolvable(addition.effects, found.versions.keys() | created)
    superseded: list[str] = []
    if effects.changes:
        there = memory_rows(session, addition.user_id, [one.id for one in effects.changes])
        changes = [(there[one.id], one.change) for one in effects.changes]
        apply_changes(session, addition.user_id, changes, inserts)
        superseded = [one.id for one in effects.changes if one.change.values.get("superseded_by")]
    divide(session, addition.user_id, effects.divisions, inserts, actor=addition.actor, at=addition.at)
    _add_evidence(inserts, addition, effects, found)
    inserts.run(session)
    known = [*found.known.values(), *addition.met]
    there_already = items(session, addition.user_id, known) if known else []
    by_id = {memory.id: memory for memory in [*memories, *there_already]}
    ids = {found.known.get(new.dedupe_hash) or fresh[new.dedupe_hash].id: None for new in addition.memories}
    ids |= dict.fromkeys(memory_id for memory_id in addition.met if memory_id in by_id)
    return _Saved(
        memories=[by_id[memory_id] for memory_id in ids],
        created=created,
        unembedded=(ids.keys() - created) - found.embedded,
        problems=problems,
        ended=items(session, addition.user_id, superseded) if superseded else [],
    )


def _state(addition: Addition, dropped: Sequence[str], unembedded: int) -> tuple[ReceiptState, list[str]]:
    """Return the state and problems of the receipt: known memories may lack a vector."""
    state, problems = addition.state, [*addition.problems, *dropped]
    if state is ReceiptState.INDEXED and unembedded:
        state = ReceiptState.EXTRACTED
        problems.append(f"{unembedded} known before, but not found by meaning yet: run `jiyi reindex --embeddings`")
    return state, problems


def _job_memories(user_id: str, job_id: str, ids: Sequence[str], *, first: int) -> list[Values]:
    return [
        {"user_id": user_id, "job_id": job_id, "position": position, "memory_id": memory_id}
        for position, memory_id in enumerate(ids, start=first)
    ]


def _check(addition: Addition, found: Dependencies) -> None:
    """Raise `UserErased` if the user was deleted since the addition began, and `Stale` if something that it was derived
    from has changed."""
    if found.epoch != addition.epoch:
        raise UserErased(user_id=addition.user_id)
    effects = addition.effects
    unchanged = {
        "follows": addition.follows is None or addition.follows.message_id == found.last_message,
        "cited": found.messages == cited_messages(addition),
        "messages": not found.delivered,
        "slots": found.slots == effects.slots,
        "versions": all(found.versions.get(name) == version for name, version in effects.versions.items()),
        "changes": all(
            one.id in found.versions and one.version in (None, found.versions[one.id]) for one in effects.changes
        ),
        # A memory without an index entry was known when this was derived; one with a slot was new.
        "known": all((new.dedupe_hash in found.known) or new.index is not NOT_INDEXED for new in addition.memories),
        "new": not any(
            new.slot is not None and new.dedupe_hash in found.known and new.index is not NOT_INDEXED
            for new in addition.memories
        ),
    }
    if not all(unchanged.values()):
        raise Stale


def _fresh(addition: Addition, found: Dependencies) -> dict[str, NewMemory]:
    """Return the new memories by dedupe hash, the first of equal ones, in the order given."""
    fresh: dict[str, NewMemory] = {}
    for new in addition.memories:
        if new.dedupe_hash not in found.known:
            fresh.setdefault(new.dedupe_hash, new)
    keys = Counter(new.memory_key for new in fresh.values() if new.memory_key != new.id)
    taken = sorted(key for key, number in keys.items() if number > 1 or key in found.taken_keys)
    if taken:
        raise MemoryKeyTaken(memory_keys=tuple(taken))
    saved = found.versions.keys() | {new.id for new in fresh.values()}
    return {
        said: replace(new, superseded_by=None) if new.superseded_by not in saved else new for said, new in fresh.items()
    }


def _resolvable(effects: Effects, saved: set[str]) -> tuple[Effects, list[str]]:
    """Drop relations, evidence and successors that refer to memories which are not saved. Such a reference is lost, the
    messages are not."""
    relations = [one for one in effects.relations if {one.memory_id, one.target_id} <= saved]
    evidence = {name: some for name, some in effects.evidence.items() if name in saved}
    changes = []
    for one in effects.changes:
        successor = one.change.values.get("superseded_by")
        if successor is not None and successor not in saved:
            one = replace(one, change=replace(one.change, values={**one.change.values, "superseded_by": None}))  # noqa: PLW2901
        changes.append(one)
    dropped = {
        "relation": len(effects.relations) - len(relations),
        "source": len(effects.evidence) - len(evidence),
    }
    problems = [
        f"{number} {name if number == 1 else name + 's'} dropped: the memory was not saved"
        for name, number in dropped.items()
        if number
    ]
    return replace(effects, relations=tuple(relations), evidence=evidence, changes=tuple(changes)), problems


def _add_messages(inserts: Inserts, addition: Addition) -> None:
    scope = scope_of(addition)
    inserts.add(MessageRow, (values_of(one, **scope, created_at=addition.at) for one in addition.messages))


_GROW = (
    update(UnitRow.__table__)
    .where(UnitRow.user_id == bindparam("whose"), UnitRow.id == bindparam("unit"))
    .values(participants=bindparam("people"), started_at=bindparam("start"), ended_at=bindparam("end"))
)


def _add_units(
    session: Session, inserts: Inserts, addition: Addition, there: Mapping[str, tuple[list[str], datetime, datetime]]
) -> None:
    """Start units or extend existing ones. Memories of messages that were stored before name the unit from now on."""
    new: dict[str, Values] = {}
    grown: dict[str, Values] = {}
    for part in addition.units:
        values = new.get(part.id)
        if values is None and part.id not in there:
            new[part.id] = values_of(
                part,
                user_id=addition.user_id,
                session_id=addition.session_id,
                group_id=addition.group_id,
                narrative="",
                participants=list(part.participants),
                created_at=addition.at,
            )
            del new[part.id]["message_ids"]
        elif values is not None:
            values["participants"] = list(dict.fromkeys((*values["participants"], *part.participants)))
            values["started_at"] = min(values["started_at"], part.started_at)
            values["ended_at"] = max(values["ended_at"], part.ended_at)
        else:
            people, start, end = there[part.id]
            before = grown.get(part.id, {"people": people, "start": start, "end": end})
            grown[part.id] = {
                "whose": addition.user_id,
                "unit": part.id,
                "people": list(dict.fromkeys((*before["people"], *part.participants))),
                "start": min(before["start"], part.started_at),
                "end": max(before["end"], part.ended_at),
            }
    inserts.add(UnitRow, new.values())
    if grown:
        session.execute(_GROW, list(grown.values()))
    inserts.add(
        UnitMessageRow,
        (
            {"user_id": addition.user_id, "message_id": message, "unit_id": part.id}
            for part in addition.units
            for message in part.message_ids
        ),
    )
    inserts.tell(addition.user_id, dict.fromkeys(part.id for part in addition.units), SOURCES, addition.at)
    new_messages = {message.id for message in addition.messages}
    stored = [one for part in addition.units for one in part.message_ids if one not in new_messages]
    for some in chunks(stored):
        mine = and_(MemorySourceRow.user_id == addition.user_id, MemorySourceRow.message_id.in_(some))
        named = session.scalars(select(MemorySourceRow.memory_id).where(mine).distinct())
        inserts.tell(addition.user_id, named, SOURCES, addition.at)


def add_memories(inserts: Inserts, addition: Addition, new: Sequence[NewMemory]) -> list[MemoryItem]:
    """Add memories with their index entries, sources, history and feed entries."""
    names = {
        **addition.external_ids,
        **{message.id: message.external_id or message.id for message in addition.messages},
    }
    added = Change(values={}, action="add", actor=addition.actor, reason=None, at=addition.at)
    rows = [insert_memory(inserts, scope_of(addition), memory, added) for memory in new]
    return [
        item(
            value,
            keywords=[keyword for keyword, _, _ in memory.index.keywords],
            source_ids=[names.get(source.message_id, source.message_id) for source in memory.sources],
        )
        for value, memory in zip(rows, new, strict=True)
    ]


def _add_evidence(inserts: Inserts, addition: Addition, effects: Effects, found: Dependencies) -> None:
    """Add further sources and relations, unless they exist."""
    wanted = {(memory_id, source.message_id): source for memory_id, some in effects.evidence.items() for source in some}
    own = {(memory.id, source.message_id) for memory in addition.memories for source in memory.sources}
    new = {key: source for key, source in wanted.items() if key not in found.sources | own}
    inserts.add(
        MemorySourceRow, (source_values(addition.user_id, memory_id, source) for (memory_id, _), source in new.items())
    )
    inserts.tell(addition.user_id, dict.fromkeys(memory_id for memory_id, _ in new), SOURCES, addition.at)
    relations = {(one.memory_id, one.target_id, one.relation_type): one for one in effects.relations}
    inserts.add(
        RelationRow,
        (
            values_of(one, user_id=addition.user_id, created_at=addition.at)
            for key, one in relations.items()
            if key not in found.relations
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The state that an `add` reads before anything is derived."""

    epoch: str
    receipt: Receipt | None  # of an earlier `add` with the same key
    delivered: list[StoredMessage]  # messages with one of the hashes
    tail: list[StoredMessage] | None  # newest messages of the scope
    looked_up: dict[str, str | None]  # ids of current memories by dedupe hash


class Additions(Repository):
    """Saving what one `add` leads to."""

    @reads
    def start(
        self,
        session: Session,
        place: Scope,
        *,
        request: tuple[str, str] | None,
        message_hashes: Sequence[str],
        tail: int,
        memory_hashes: Sequence[str],
        now: datetime,
    ) -> Start:
        """Read what an `add` starts from, at once: `request` is its idempotency key and the hash of its arguments,
        `tail` the number of newest messages to read."""
        user_id = place.user_id
        # First: what is read before a deletion belongs to the epoch before.
        epoch, same = same_texts(session, user_id, memory_hashes, now)
        known = {text_hash: memory_id for text_hash, memory_id, is_known, _ in same if is_known}
        return Start(
            epoch=epoch,
            receipt=None if request is None else jobs.earlier_receipt(session, user_id, *request),
            delivered=delivered(session, user_id, message_hashes),
            tail=newest(session, place, tail) if tail else None,
            looked_up={one: known.get(one) for one in memory_hashes},
        )

    @reads
    def snapshot(
        self, session: Session, user_id: str, hashes: Sequence[str], wanted: Sequence[str], now: datetime
    ) -> tuple[dict[str, str], list[SlotEntry]]:
        """Return the ids of current memories by dedupe hash, and the memories in some slots."""
        return known_by_hash(session, user_id, hashes, now), slots(session, user_id, wanted)

    async def save(self, addition: Addition) -> Receipt:
        """Write an `add`. If the connection breaks during the commit, look whether it was kept before writing again."""
        try:
            receipt = await self._database.write([addition.user_id], lambda session: save(session, addition))
        except ConnectionLost:
            receipt = await self._database.write([addition.user_id], lambda session: _save_again(session, addition))
        await self._database.count_rows(len(addition.memories))
        return receipt

    async def complete(self, lease: Lease, addition: Addition) -> bool:
        done = await self._database.write([lease.user_id], lambda session: complete(session, lease, addition))
        await self._database.count_rows(len(addition.memories))
        return done


def _save_again(session: Session, addition: Addition) -> Receipt:
    return jobs.receipt_by_id(session, addition.user_id, addition.id) or save(session, addition)
