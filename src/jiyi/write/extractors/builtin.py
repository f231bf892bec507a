"""From a unit to its drafts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..drafts import Draft, Unit
from .changes import changes
from .clause import Claim, Clause
from .decisions import decisions
from .episodes import episodes
from .events import events
from .facts import facts
from .instructions import instructions
from .moments import main_time
from .patterns import patterns
from .preferences import preferences
from .profiles import profiles
from .reading import clauses_of
from .skills import skills
from .tasks import tasks

VERSION = "builtin-1"

# A kind of memory is a function from a clause to what it claims. Where two are equally sure, the first one counts.
CLAIMS: tuple[Callable[[Clause], Claim | None], ...] = (
    instructions,
    facts,
    changes,
    preferences,
    decisions,
    tasks,
    patterns,
    skills,
    events,
)
# And these are made of a whole unit and what was found in it.
SUMMARIES: tuple[Callable[[Unit, list[Clause], list[Draft]], list[Draft]], ...] = (episodes, profiles)

# Below this a claim is a guess.
SURE_ENOUGH = 0.5


def drafts_of(unit: Unit) -> list[Draft]:
    """The memories that a stretch of conversation holds, each with the words it comes from."""
    read = clauses_of(unit)
    found: dict[tuple[str, str], Draft] = {}
    for clause in read:
        draft = _draft(clause)
        if draft:
            # Said twice in one conversation is one memory with two places.
            key = (draft.memory_type, draft.content.lower())
            known = found.get(key)
            found[key] = replace(known, evidence=known.evidence + draft.evidence) if known else draft
    drafts = list(found.values())
    for summary in SUMMARIES:
        drafts += summary(unit, read, drafts)
    return drafts


def _draft(clause: Clause) -> Draft | None:
    claims = [claim for claim in (kind(clause) for kind in CLAIMS) if claim]
    best = max(claims, key=lambda claim: claim.weight, default=None)
    if best is None or best.weight < SURE_ENOUGH:
        return None
    occurred_at = main_time(clause.times, clause.at)
    # What began or ended at a time holds from then on; what is only planned holds from when it was said.
    ahead = occurred_at > clause.at
    return Draft(
        memory_type=best.memory_type,
        content=best.content or clause.content,
        evidence=(clause.evidence(),),
        occurred_at=occurred_at if best.memory_type in ("event", "task") or not ahead else clause.at,
        valid_from=clause.at if ahead else None,
        subject=best.subject or clause.subject,
        attribute=best.attribute,
        value=best.value,
        single=best.single,
        ended=best.ended,
        replaces=best.replaces,
        importance=round(min(1.0, best.importance + (0.15 if clause.marked else 0.0)), 2),
        confidence=best.confidence,
        data={"extractor": VERSION},
    )
