"""From a conversation to drafts: segment → extract, in parallel → evaluate."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from ..ids import new_id
from ..scope import Scope
from ..store.contract import StoredMessage, UnitPart
from ..text.fence import blank_context
from ..text.summary import summarise
from .accept import INSTRUCTIONS
from .drafts import Draft, Extracted, Extractor, Said, Unit
from .evaluate import evaluate
from .segment import Limits, segment

if TYPE_CHECKING:
    from ..settings import ExtractionSettings
    from ..store.contract import NewMessage

UNIT_GAP = timedelta(hours=1)  # a longer pause starts a new unit
UNIT_MESSAGES = 40  # maximum messages of a unit
HISTORY_MESSAGES = 12  # earlier messages given to extractors


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    units: tuple[UnitPart, ...] = ()
    drafts: tuple[Draft, ...] = ()
    problems: tuple[str, ...] = ()


async def derive(
    new: Sequence[NewMessage],
    before: Sequence[StoredMessage],
    place: Scope,
    extractors: Sequence[Extractor],
    settings: ExtractionSettings,
) -> Derived:
    """`before`: what was said in the same place already, oldest first."""
    said, earlier = _said(new), _said(before)
    if not said:
        return Derived()
    open_unit, unit_id = _open_unit(before)
    limits = Limits(gap=UNIT_GAP, messages=UNIT_MESSAGES)
    stretches = segment(said, open_unit, limits)
    units = []
    for stretch in stretches:
        history = earlier[-HISTORY_MESSAGES:]
        units.append(
            Unit(
                id=unit_id if stretch.grows and unit_id else new_id(),
                messages=stretch.messages,
                history=tuple(history),
                user_id=place.user_id,
                session_id=place.session_id,
                group_id=place.group_id,
            )
        )
        earlier.extend(stretch.messages)
    found = [
        some if isinstance(some, Extracted) else Extracted(drafts=tuple(some))
        for some in await asyncio.gather(*(extract(unit) for extract in extractors for unit in units))
    ]
    drafts, problems = evaluate([draft for some in found for draft in some.drafts], [*said, *earlier], settings)
    problems += [problem for some in found for problem in some.problems]
    in_a_unit = {message.id for message in new if isinstance(message, StoredMessage) and message.unit_id}
    parts = [_part(unit, in_a_unit) for unit in units]
    return Derived(units=tuple(filter(None, parts)), drafts=tuple(drafts), problems=tuple(problems))


def _said(messages: Sequence[NewMessage]) -> list[Said]:
    """Return the messages that contain text. Recalled text is blanked, not cut out, so that spans stay valid."""
    told = [(message, blank_context(message.text)) for message in messages if message.role not in INSTRUCTIONS]
    return [
        Said(id=message.id, role=message.role, speaker=message.speaker, text=text, sent_at=message.sent_at)
        for message, text in told
        if text.strip()
    ]


def _open_unit(before: Sequence[StoredMessage]) -> tuple[list[Said], str | None]:
    """The unit that the last message belongs to, as far as it is among those given."""
    last = next((message.unit_id for message in reversed(before) if message.unit_id is not None), None)
    return _said([message for message in before if last is not None and message.unit_id == last]), last


def _part(unit: Unit, in_a_unit: set[str]) -> UnitPart | None:
    messages = [message for message in unit.messages if message.id not in in_a_unit]
    if not messages:
        return None
    return UnitPart(
        id=unit.id,
        message_ids=tuple(message.id for message in messages),
        subject=None,
        summary=summarise(" / ".join(message.text for message in messages)),
        participants=tuple(dict.fromkeys(message.speaker or message.role for message in messages)),
        started_at=min(message.sent_at for message in messages),
        ended_at=max(message.sent_at for message in messages),
    )
