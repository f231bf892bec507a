"""One `add`: looked at, worked out without holding anything, and written if all is still as it was."""

from __future__ import annotations

import logging
from datetime import datetime

from ..errors import StoreError, StoreUnavailable
from ..ids import new_id
from ..models import Receipt, ReceiptState, utc_now
from ..store.contract import Addition, Stale, StoredMessage
from .accept import Accepted
from .build import Context, stated, verbatim
from .flow import Flow, Made, index, make
from .hashes import identity
from .identify import identify
from .later import payload

logger = logging.getLogger(__name__)

TRIES = 100  # each time somebody else was faster, so that all in all it goes on


async def add(accepted: Accepted, context: Context, *, idempotency_key: str | None, actor: str, flow: Flow) -> Receipt:
    """With a language model, what it finds comes later: a job is written with the messages."""
    request_hash = identity(repr(accepted), repr(context))
    if idempotency_key is not None:  # looked at again inside the transaction; here it saves the work
        earlier = await flow.store.additions.receipt(context.user_id, idempotency_key, request_hash)
        if earlier is not None:
            return earlier
    at = utc_now()
    for _ in range(TRIES):
        addition = await _work_out(accepted, context, at, flow, (idempotency_key, request_hash, actor))
        try:
            return await flow.store.additions.save(addition)
        except Stale:
            continue
    raise StoreUnavailable(f"others keep writing into this session of user {context.user_id!r}: try again")


async def _work_out(
    accepted: Accepted, context: Context, at: datetime, flow: Flow, request: tuple[str | None, str, str]
) -> Addition:
    messages, follows = await identify(accepted.messages, context.place, context.occurred_at or at, flow.store)
    verbatims = {message.id: memory for message in messages if (memory := verbatim(message, context))}
    known = await flow.store.memories.known(context.user_id, [memory.dedupe_hash for memory in verbatims.values()], at)
    fresh = [one for one in messages if one.id in verbatims and verbatims[one.id].dedupe_hash not in known]
    later = bool(fresh) and flow.settings.enabled and flow.slow_extractor is not None
    stateds = [stated(candidate, context, at) for candidate in accepted.candidates]
    try:
        made = await make(() if later else fresh, stateds, context, flow.extractors, at, flow)
    except StoreError:
        raise
    except Exception as error:  # whatever an extractor raises: what was said is stored, and a job tries again
        logger.warning("extraction failed, the messages are stored", exc_info=True)
        made = Made(memories=tuple(stateds), problems=(f"extraction failed: {type(error).__name__}: {error}",))
        later = bool(fresh)
    memories, effects, problem = await index(list(verbatims.values()), known, made, context.user_id, at, flow)
    done = ReceiptState.EXTRACTED if problem else ReceiptState.INDEXED
    idempotency_key, request_hash, actor = request
    return Addition(
        id=new_id(),
        user_id=context.user_id,
        session_id=context.session_id,
        agent_id=context.agent_id,
        group_id=context.group_id,
        idempotency_key=idempotency_key,
        request_hash=request_hash,
        actor=actor,
        at=at,
        state=ReceiptState.ACCEPTED if later else done,
        problems=(*accepted.problems, *made.problems, *([problem] if problem else [])),
        model=flow.embedder.id,
        messages=tuple(message for message in messages if not isinstance(message, StoredMessage)),
        memories=memories,
        external_ids={**made.external_ids, **{one.id: one.external_id or one.id for one in messages}},
        follows=follows,
        units=made.units,
        met=made.met,
        effects=effects,
        payload=payload([message.id for message in fresh], context, actor) if later else None,
    )
