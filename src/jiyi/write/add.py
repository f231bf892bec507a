"""One `add`: read what is stored, derive memories without a lock, and write everything in one transaction.

Deriving has a budget of CPU time. What is not derived by then is stored all the same, and the receipt says so.
"""

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from pydantic import JsonValue

from .. import threads
from ..embed import Embedder
from ..errors import InvalidInput, MemoryKeyTaken, StoreError, StoreUnavailable
from ..ids import new_id
from ..index.search_index import SearchIndex
from ..metrics import Meter
from ..models import OnConflict, Receipt, ReceiptState, utc_now
from ..reader import Reader
from ..scope import Scope
from ..settings import ExtractionSettings
from ..store.repositories.additions import Start
from ..store.repositories.change_feed import NEVER
from ..store.store import Store
from ..store.upkeep.message_words import DELETED
from ..store.write_set import NO_EFFECTS, Addition, Effects, NewMemory, NewMessage, Stale, StoredMessage, UnitPart
from .accept import Accepted, identify, looked_back, message_hashes
from .build import CONTEXT, Context, derived, is_own, request_hash, stated, teller_data, verbatim
from .changes import end_what_changed
from .derive import HISTORY_MESSAGES, UNIT_MESSAGES, derive
from .drafts import COMPARED, Draft, Extractor
from .index import KeywordRules, embed_entries, index_entries
from .known import TakenKeys, join_named, known_memories, taken_keys, with_rows
from .parse.divide_messages import with_ended_messages
from .parts import names_told
from .reconcile import Proposed, Reconciled, end_named, fact_told, keep_rest, settle, stated_facts
from .repeats import merge_equal, merge_repeated
from .saved import new_summaries, to_judge
from .similar import Judge

TRIES = 100  # another writer was faster each time, so all together make progress
MOST_COMPARED = 200  # statements in one call; more are an import of ready memories
MOST_COPIED = 8_000_000  # characters of metadata that one call stores
DEADLINE_S = 60.0  # for extractors; then the messages are stored, and a job tries again
DEADLINE_PER_MESSAGE_S = 1.0
READING_S = 8.0  # CPU time for the statements in all messages of one call
COMPARING_S = 8.0  # CPU time for comparing them with what is stored
REACH = max(UNIT_MESSAGES, HISTORY_MESSAGES)  # earlier messages that extraction reads

UNCOMPARED = "earlier memories were not ended: comparing took more than {:g} s of CPU time"
UNREAD = (
    "messages are kept verbatim only, and earlier memories were not ended: comparing took more than {:g} s of CPU time"
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """Parts of the write pipeline."""

    store: Store
    index: SearchIndex
    embedder: Embedder
    keyword_rules: KeywordRules
    settings: ExtractionSettings
    extractors: tuple[Extractor, ...]  # run inside `add`, unless there is a slow one
    own_extractors: tuple[Extractor, ...] = ()  # of the program and of packages: run beside these or the slow one
    slow_extractor: Extractor | None  # of a language model: run by a worker after `add`
    judge: Judge | None = None  # of similar memories; run by the worker, too
    reader: Reader | None = None  # judges what new statements end
    meter: Meter = field(default_factory=Meter)


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """Derived memories, units and effects of an `add`, without the verbatim messages."""

    memories: tuple[NewMemory, ...] = ()
    met: tuple[str, ...] = ()
    effects: Effects = NO_EFFECTS
    units: tuple[UnitPart, ...] = ()
    external_ids: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    new: frozenset[str] = frozenset()  # dedupe hashes that were looked up and are not stored
    repeats: Mapping[str, str] = field(default_factory=dict)  # stored memories with the same words, by new id


async def add(
    accepted: Accepted,
    context: Context,
    *,
    idempotency_key: str | None,
    user_names: Sequence[str],
    on_conflict: OnConflict,
    actor: str,
    flow: Flow,
) -> Receipt:
    """Add messages or statements. With a language model, a job for it is written with the messages. `user_names`: names
    of the user besides those of the request. Raise `UserErased` if the user is deleted meanwhile."""
    check_arguments(accepted, context)
    at = utc_now()
    size = sum(len(text) for text in accepted.texts())
    request = None
    if idempotency_key is not None:
        request = idempotency_key, await threads.run(size, request_hash, accepted.values(), context)
    context = context.with_names(user_names)
    hashes, stateds = await threads.run(size, _prepared, accepted, context, at)
    for _ in range(TRIES):
        keys = await taken_keys(accepted.candidates, context, at, on_conflict=on_conflict, actor=actor, flow=flow)
        if len(keys.rest) < len(accepted.candidates):
            _, stateds = await threads.run(size, _prepared, replace(accepted, candidates=keys.rest), context, at)
        start = await flow.store.additions.start(
            context.place,
            request=request,
            message_hashes=list(filter(None, hashes)),
            tail=looked_back(hashes),
            memory_hashes=[memory.dedupe_hash for memory in stateds],
            now=at,
        )
        if start.receipt is not None:  # checked again inside the transaction; here it saves the work
            return start.receipt
        if context.epoch is None:
            context = replace(context, epoch=start.epoch)
        identified = (*(request or (None, "")), actor)
        addition = await _derive_addition(accepted, hashes, stateds, start, context, at, flow, identified)
        try:
            receipt = await flow.store.additions.save(_with_keys(addition, keys))
        except Stale:
            continue
        except MemoryKeyTaken:
            if on_conflict == "error":
                raise
            continue  # another writer has just taken it
        await flow.index.keep_up(context.user_id, len(addition.memories))
        return with_rows(receipt, accepted.candidates, keys.rows, at)
    raise StoreUnavailable(f"others keep writing into this session of user {context.user_id!r}: try again")


def check_arguments(accepted: Accepted, context: Context) -> None:
    """Raise `InvalidInput` for arguments that do not fit messages."""
    if accepted.messages and context.memory_type is not None:
        raise InvalidInput("memory_type", "is for statements; messages are kept verbatim, as type message")
    copied = len(accepted.messages) * len(repr(context.metadata))
    if copied > MOST_COPIED:
        raise InvalidInput(
            "metadata", f"is stored with each message, {copied:,} characters; the limit is {MOST_COPIED:,}"
        )


async def begun(context: Context, store: Store) -> Context:
    """Return the context with the erasure epoch of its user, the current one if it has none."""
    return context if context.epoch is not None else replace(context, epoch=await store.erasures.epoch(context.user_id))


def _with_keys(addition: Addition, keys: TakenKeys) -> Addition:
    """Add the changes of memories whose keys candidates have; they win over what was derived."""
    effects, own = addition.effects, {one.id for one in keys.changes}
    changes = (*(one for one in effects.changes if one.id not in own), *keys.changes)
    met = (*addition.met, *(row.memory_id for row in keys.rows))
    return replace(addition, met=met, effects=replace(effects, changes=changes))


def _prepared(accepted: Accepted, context: Context, at: datetime) -> tuple[list[str | None], list[NewMemory]]:
    """Return the hashes of messages, and the memories of statements."""
    stateds = merge_equal([stated(candidate, context, at) for candidate in accepted.candidates])
    return message_hashes(accepted.messages, context.place), stateds


async def _derive_addition(
    accepted: Accepted,
    hashes: Sequence[str | None],
    stateds: Sequence[NewMemory],
    start: Start,
    context: Context,
    at: datetime,
    flow: Flow,
    request: tuple[str | None, str, str],
) -> Addition:
    messages, follows = await identify(accepted.messages, hashes, context.occurred_at or at, start)
    idempotency_key, request_hash, actor = request
    addition = await derived_addition(messages, stateds, context, at, flow, actor=actor, start=start)
    return replace(
        addition,
        idempotency_key=idempotency_key,
        request_hash=request_hash,
        problems=(*accepted.problems, *addition.problems),
        follows=follows,
    )


async def derived_addition(
    messages: Sequence[NewMessage],
    stateds: Sequence[NewMemory],
    context: Context,
    at: datetime,
    flow: Flow,
    *,
    actor: str,
    start: Start | None = None,
) -> Addition:
    """Derive what is written for messages, new and stored ones, and for statements."""
    size = sum(len(message.text) for message in messages)
    verbatims = await threads.run(size, _verbatims, messages, context)
    repeated = [one.id for one in messages if isinstance(one, StoredMessage) and one.id in verbatims]
    asked = [verbatims[message_id].dedupe_hash for message_id in repeated]
    known = await flow.store.memories.known(context.user_id, asked, at) if asked else {}
    fresh = [one for one in messages if one.id in verbatims and verbatims[one.id].dedupe_hash not in known]
    later = bool(fresh) and flow.settings.enabled and flow.slow_extractor is not None
    try:
        async with asyncio.timeout(DEADLINE_S + DEADLINE_PER_MESSAGE_S * len(fresh)):
            run = (*flow.extractors, *flow.own_extractors)
            made = await make(() if later else fresh, stateds, context, run, at, flow, start=start)
    except StoreError:
        raise
    except Exception as error:  # any failure of an extractor: the messages are stored, and a job tries again
        logger.warning("extraction failed, the messages are stored", exc_info=True)
        made = Made(memories=tuple(stateds), problems=(f"extraction failed: {type(error).__name__}: {error}",))
        later = bool(fresh)
    memories, problem = await index(list(verbatims.values()), known, made, context.user_id, at, flow)
    memories, effects, unread = await end_what_changed(memories, made.effects, context.place, at, flow)
    memories, effects, met = await merge_repeated(memories, made.repeats, effects, context.place, at, flow)
    memories, effects = await divided(memories, effects, messages, context.place, at, flow)
    done = ReceiptState.EXTRACTED if problem else ReceiptState.INDEXED
    saved = to_judge(memories, made.repeats) if flow.judge is not None and flow.settings.enabled else []
    reads = flow.slow_extractor is not None and flow.settings.enabled
    summaries: list[JsonValue] = [one.id for one in new_summaries(memories, made.repeats)] if reads else []
    return Addition(
        id=new_id(),
        user_id=context.user_id,
        epoch=context.epoch or NEVER,
        session_id=context.session_id,
        agent_id=context.agent_id,
        group_id=context.group_id,
        actor=actor,
        at=at,
        state=ReceiptState.ACCEPTED if later else done,
        problems=(*made.problems, *([problem] if problem else []), *unread),
        model=flow.embedder.id,
        messages=tuple(message for message in messages if not isinstance(message, StoredMessage)),
        memories=memories,
        external_ids={**made.external_ids, **{one.id: one.external_id or one.id for one in messages}},
        units=made.units,
        met=(*made.met, *met),
        effects=effects,
        payload=job_payload(fresh, context, actor, saved, summaries) if later or saved or summaries else None,
    )


def _verbatims(messages: Sequence[NewMessage], context: Context) -> dict[str, NewMemory]:
    """Return the verbatim memories, by the id of their message; none for a message that is stored without words that
    were deleted, because nothing of it comes back."""
    there = [one for one in messages if not (isinstance(one, StoredMessage) and DELETED in one.text)]
    return {message.id: memory for message in there if (memory := verbatim(message, context))}


def job_payload(
    messages: Sequence[NewMessage],
    context: Context,
    actor: str,
    saved: Sequence[JsonValue] = (),
    summaries: Sequence[JsonValue] = (),
) -> dict[str, JsonValue]:
    """Return what a worker needs: the messages or summaries to extract from, or the saved texts to judge."""
    return {
        "messages": [message.id for message in messages],
        "saved": [*saved],
        "summaries": [*summaries],
        "actor": actor,
        "context": CONTEXT.dump_python(context, mode="json", exclude={"epoch"}),  # the job goes with its user
    }


async def make(
    messages: Sequence[NewMessage],
    stated: Sequence[NewMemory],
    context: Context,
    extractors: Sequence[Extractor],
    at: datetime,
    flow: Flow,
    *,
    start: Start | None = None,
) -> Made:
    """Derive memories from new messages, and reconcile them and the statements with what is stored. `start`: what has
    been read."""
    place = context.place
    made = Made()
    drafts: list[Proposed] = []
    compared = flow.settings.enabled and len(stated) <= MOST_COMPARED
    size = sum(min(len(one.content), COMPARED) for one in stated)
    with threads.Budget(READING_S):
        if messages and flow.settings.enabled:
            made, drafts = await _read(messages, context, extractors, at, flow, start.tail if start else None)
        proposed = [*(await threads.run(size, _stated, stated, context) if compared else _plain(stated)), *drafts]
    if not proposed:
        return made
    with threads.Budget(COMPARING_S):
        looked_up = start.looked_up if start else {}
        settled = await _settle(proposed, drafts, stated, place, at, flow, looked_up)
        settled = await join_named(settled, proposed, place, at, flow)
    names = merge_equal(list(names_told(settled.over, context)))
    return replace(
        made,
        memories=(*settled.memories, *names),
        met=settled.met,
        effects=settled.effects,
        problems=(*made.problems, *settled.problems),
        new=settled.new,
        repeats=settled.repeats,
    )


async def _read(
    messages: Sequence[NewMessage],
    context: Context,
    extractors: Sequence[Extractor],
    at: datetime,
    flow: Flow,
    tail: Sequence[StoredMessage] | None,
) -> tuple[Made, list[Proposed]]:
    """Return the units of new messages, and the memories that extractors find in them."""
    place = context.place
    ids = {message.id for message in messages}
    if tail is None or any(isinstance(message, StoredMessage) for message in messages):
        tail = await flow.store.messages.tail(place, REACH + len(ids), before=max(ids))
    before = [message for message in tail if message.id not in ids][-REACH:]
    asks_model = flow.slow_extractor is not None and flow.slow_extractor in extractors
    known = partial(known_memories, place=place, at=at, flow=flow) if asks_model else None
    found = await derive(messages, before, context, extractors, flow.settings, known)
    made = Made(
        units=found.units,
        external_ids={message.id: message.external_id or message.id for message in [*before, *messages]},
        problems=found.problems,
    )
    said = {message.id: message for message in [*before, *messages]}
    size = sum(len(draft.content) for draft in found.drafts)
    return made, await threads.run(size, _proposed, found.drafts, said, context)


def _proposed(drafts: Sequence[Draft], said: Mapping[str, NewMessage], context: Context) -> list[Proposed]:
    """Propose the memories of drafts."""
    found = []
    for draft in drafts:
        by = said[draft.source.message_id]
        if context.own_only and not is_own(draft, by.role, by.speaker, context):
            continue
        memory = derived(draft, context, teller_data(by.role, by.speaker, context))
        told_at = max(said[source.message_id].sent_at for source in memory.sources)
        fact = fact_told(memory, context)
        proposed = Proposed(memory=memory, facts=(fact,) if fact else (), told_at=told_at)
        found.append(replace(proposed, ends=draft.ends, repeats=draft.repeats, merges=draft.merges))
    return found


async def _settle(
    proposed: Sequence[Proposed],
    drafts: Sequence[Proposed],
    stated: Sequence[NewMemory],
    place: Scope,
    at: datetime,
    flow: Flow,
    looked_up: Mapping[str, str | None],
) -> Reconciled:
    """Reconcile what is proposed with what is stored; a reader, if there is one, judges later what else has ended. When
    the time is used up, statements are stored as they are, and nothing is derived from messages."""
    ends, store = {one.memory.id: one.ends for one in proposed if one.ends}, flow.store
    try:
        settled = await end_named(await settle(proposed, place, at, store, looked_up), ends, place, at, store)
    except threads.OutOfTime:
        problem = (UNREAD if drafts else UNCOMPARED).format(COMPARING_S)
        return Reconciled(memories=tuple(stated), met=(), effects=NO_EFFECTS, problems=(problem,))
    facts = [fact for one in proposed for fact in one.facts]
    try:
        return await keep_rest(settled, facts, place, store)
    except threads.OutOfTime:
        return replace(settled, problems=(*settled.problems, UNCOMPARED.format(COMPARING_S)))


async def divided(
    memories: Sequence[NewMemory],
    effects: Effects,
    messages: Sequence[NewMessage],
    place: Scope,
    at: datetime,
    flow: Flow,
) -> tuple[tuple[NewMemory, ...], Effects]:
    """Divide the messages of which something ends."""
    store, embedder, rules = flow.store, flow.embedder, flow.keyword_rules
    return await with_ended_messages(
        memories, effects, messages, place, at, store=store, embedder=embedder, rules=rules
    )


def _plain(stated: Sequence[NewMemory]) -> list[Proposed]:
    return [Proposed(memory=memory, told_at=memory.occurred_at, stated=True) for memory in stated]


def _stated(stated: Sequence[NewMemory], context: Context) -> list[Proposed]:
    """Propose statements with their attributes; one that has ended already supersedes nothing."""
    current = [memory for memory in stated if memory.valid_to is None and memory.status == "active"]
    found = {memory.id: stated_facts(memory, context) for memory in current}
    return [found.get(plain.memory.id, plain) for plain in _plain(stated)]


async def index(
    verbatims: Sequence[NewMemory], known: Collection[str], made: Made, user_id: str, at: datetime, flow: Flow
) -> tuple[tuple[NewMemory, ...], str | None]:
    """Add index entries to memories that are not stored yet; `known` are the hashes of stored verbatims. Returns the
    memories and the problem, if any."""
    memories = (*verbatims, *made.memories)
    asked = [memory.dedupe_hash for memory in made.memories if memory.dedupe_hash not in made.new]
    there = {*known, *(await flow.store.memories.known(user_id, asked, at) if asked else ())}
    new = [memory for memory in memories if memory.dedupe_hash not in there]
    texts = [(one.content, one.summary, one.tags, one.data, one.memory_type) for one in new]
    size = sum(len(one.content) for one in new)
    entries, times = await threads.run(size, index_entries, texts, flow.keyword_rules)
    for seconds in times:
        flow.meter.observe("keyword_extraction_seconds", seconds)
    entries, problem = await embed_entries(entries, [text[0] for text in texts], flow.embedder)
    found = {memory.id: entry for memory, entry in zip(new, entries, strict=True)}
    indexed = tuple(replace(memory, index=found[memory.id]) if memory.id in found else memory for memory in memories)
    return indexed, problem
