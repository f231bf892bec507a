"""The rest of a memory from a message when the attribute that it states has ended: its other sentences and clauses,
as memories of their own."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby

from pydantic import JsonValue

from ...models.shown_dates import WHEN
from ...roles import told_by
from ...scope import Scope
from ...store.repositories.messages import Quotation
from ...store.write_set import EXTRACTED, REST_OF, NewMemory, Source
from ..build import part_row, statement_hash
from ..extract import times_in
from ..index import KeywordRules, entry_of
from ..parts import Part, parts_of
from ..reconcile import part_fact
from ..slots import slot_values
from ..when import when_data

_ABOUT = frozenset({"subject", "owner", "attribute", "value", "single", "ended", "replaces"})


def rests_of(quotation: Quotation, text: str, sent_at: datetime, place: Scope, rules: KeywordRules) -> list[NewMemory]:
    """Return the rest of a memory that quotes a message with this text."""
    attribute, by = quotation.memory.data.get("attribute"), quotation.by
    if attribute is None or by.start is None or by.end is None:
        return []
    said = text[by.start : by.end]
    parts = parts_of(said)
    over = [part for part in parts if any(value.slot == attribute for value in slot_values(part.text))]
    if not over:
        return []
    return [
        _rest(quotation, by.start, run, run[0].text + said[run[0].end : run[-1].end], sent_at, place, rules)
        for is_over, group in groupby(parts, key=over.__contains__)
        if not is_over and (run := list(group))
    ]


def _rest(
    quotation: Quotation,
    offset: int,
    run: Sequence[Part],
    text: str,
    sent_at: datetime,
    place: Scope,
    rules: KeywordRules,
) -> NewMemory:
    old = quotation.memory
    data = {name: value for name, value in old.data.items() if name not in (*_ABOUT, WHEN)}
    data |= {REST_OF: old.id, **dict(_about(run)), **when_data(times_in(text, sent_at))}
    said = statement_hash(
        text,
        old.memory_type,
        place.agent_id,
        place.group_id,
        trust=old.trust,
        by=told_by(data, place.user_id),
    )
    quoted = Source(message_id=quotation.by.message_id, start=offset + run[0].start, end=offset + run[-1].end)
    reason = "another part of the memory has ended"
    part = part_row(old, text, data, said, source=EXTRACTED, reason=reason, sources=(quoted,))
    fact = part_fact(run[0], part, place) if len(run) == 1 else None
    return replace(part, slot=fact.slot if fact else None, index=entry_of(part, rules))


def _about(run: Sequence[Part]) -> Iterator[tuple[str, JsonValue]]:
    """Yield the attribute of a rest that states one, as data."""
    value = run[0].value if len(run) == 1 else None
    if value is None or value.ended:
        return
    yield "attribute", value.slot
    yield "value", value.value
    yield "single", True
    if value.subject is not None:
        yield "subject", value.subject
