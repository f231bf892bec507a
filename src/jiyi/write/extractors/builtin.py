"""From a unit to its drafts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..drafts import Draft, Unit
from .answers import answers, as_fact
from .asides import partings, relations
from .changes import changes
from .clause import Claim, Clause
from .decisions import decisions
from .episodes import episodes
from .events import events
from .facts import facts
from .gather import SURE, gathered
from .instructions import instructions
from .kinds import kind_of
from .moments import main_time
from .over import over, partly_over
from .patterns import patterns
from .preferences import preferences
from .profiles import profiles
from .reading import clauses_of
from .skills import skills
from .slots import slotted
from .statements import statements
from .substance import substance
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
    answers,
    statements,
)
# What a clause tells on the way, besides.
ASIDES: tuple[Callable[[Clause], list[Claim]], ...] = (relations, partings)
# And these are made of a whole unit and what was found in it.
SUMMARIES: tuple[Callable[[Unit, list[Clause], list[Draft]], list[Draft]], ...] = (episodes, profiles)

# Below this a claim is a guess.
SURE_ENOUGH = 0.5


def drafts_of(unit: Unit) -> list[Draft]:
    """The memories that a stretch of conversation holds, each with the words it comes from."""
    read = clauses_of(unit)
    found: dict[tuple[str, str], Draft] = {}
    told: set[tuple[str, str]] = set()  # of whom which of the things that change on a day
    for clause, best in gathered((clause, _best(clause)) for clause in read):
        claim = _at_home(clause, best and as_fact(best, clause), told) or partly_over(clause)
        own = [claim] if claim else []
        asides = [aside for kind in ASIDES for aside in kind(clause) if not (claim and claim.value == aside.value)]
        for draft in (
            *(_draft(clause, one) for one in own),
            *(_from_then_on(clause, one) for one in _settled(clause, claim, told)),
            *(_draft(replace(clause, times=()), one) for one in asides),
        ):
            # Said twice in one conversation is one memory with two places.
            key = (draft.memory_type, draft.content.lower())
            known = found.get(key)
            found[key] = replace(known, evidence=known.evidence + draft.evidence) if known else draft
    drafts = list(found.values())
    for summary in SUMMARIES:
        drafts += summary(unit, read, drafts)
    return drafts


def _at_home(clause: Clause, claim: Claim | None, told: set[tuple[str, str]]) -> Claim | None:
    """Whoever rents a flat lives there; but "I moved to Lisbon. I rent a flat in Alfama" is no second move."""
    if claim is None:
        return None
    whose = claim.subject or clause.subject
    if claim.attribute == "home:rented":
        claim = replace(claim, attribute="rents" if (whose, "home") in told else "home")
    if claim.attribute in _CHANGES_ON_A_DAY:
        told.add((whose, claim.attribute))
    return claim


def _best(clause: Clause) -> Claim | None:
    """One clause gives one memory: what the surest of the kinds makes of it."""
    if clause.doubtful:
        return None
    claims = [claim for claim in (kind(clause) for kind in CLAIMS) if claim]
    best = max(claims, key=lambda claim: claim.weight, default=None)
    if best is not None:
        best = slotted(clause, best)
    if best is None or best.weight < SURE_ENOUGH:
        return None
    if clause.said.role == "assistant" and best.memory_type not in ("task", "event"):
        return None
    return best if _says_something(clause, best) else None


# What the surest rows know needs no more words; for the rest, and for plans and doings, a few must carry something.
SURE_BY_ITSELF = 0.8
GENERAL = 0.7  # more, where only the most general rows know what it may mean
LEAST = {"en": 0.9, "zh": 1.5}


def _says_something(clause: Clause, claim: Claim) -> bool:
    """ "I need an example", 我想静静, 明天继续 have the form of a plan, and no content."""
    known = claim.attribute.startswith("uses:") and kind_of(claim.value) is not None
    plain = known or claim.memory_type == "pattern" or claim.attribute.startswith("likes:")
    if plain or (claim.weight >= SURE_BY_ITSELF and claim.memory_type not in ("task", "event")):
        return True
    least = LEAST[clause.language] + (GENERAL if claim.weight < SURE else 0.0)
    return bool(claim.content) or substance(clause) >= least


# Of these there is one at a time, and the day on which it changes is known beforehand.
_CHANGES_ON_A_DAY = frozenset(("home", "job", "employer", "works as", "diet", "relationship"))


def _settled(clause: Clause, claim: Claim | None, told: set[tuple[str, str]]) -> list[Claim]:
    """ "I'm joining Kestrel as a manager on April 8", 4月8号去云帆当经理: no wish, and it ends what was."""
    if claim is None or clause.chain or clause.negated or main_time(clause.times, clause.at) <= clause.at:
        return []
    fact = facts(clause)
    if fact is None or not (fact.single or fact.ended) or fact.attribute not in _CHANGES_ON_A_DAY:
        return []
    # 签了一家公司，18号入职: it begins then, and is no other.
    begins = not fact.value and not fact.ended and (clause.subject, fact.attribute) in told
    return [] if begins else [fact]


def _from_then_on(clause: Clause, claim: Claim) -> Draft:
    begins = main_time(clause.times, clause.at)
    draft = _draft(replace(clause, times=()), claim)
    # Whoever leaves a place has no other there, whatever it was called.
    return replace(draft, occurred_at=begins, valid_from=begins, value=None if draft.ended else draft.value)


def _draft(clause: Clause, claim: Claim) -> Draft:
    occurred_at = main_time(clause.times, clause.at)
    # What began or ended at a time holds from then on; what is only planned holds from when it was said.
    ahead = occurred_at > clause.at
    return Draft(
        # What is to become so on a day is something that will happen.
        memory_type="event" if ahead and claim.memory_type == "fact" and not clause.negated else claim.memory_type,
        content=claim.content or clause.content,
        evidence=(clause.evidence(),),
        occurred_at=occurred_at,
        valid_from=clause.at if ahead else None,
        subject=claim.subject or clause.subject,
        attribute=claim.attribute,
        value=claim.value or None,
        single=claim.single and not ahead,
        ended=claim.ended and not ahead,
        replaces=claim.replaces,
        over=None if ahead else over(clause, if_known=claim.if_known),
        importance=round(min(1.0, claim.importance + (0.15 if clause.marked else 0.0)), 2),
        confidence=claim.confidence,
        data={"extractor": VERSION},
    )
