"""Tasks: plans, duties, goals, appointments, promises."""

from __future__ import annotations

from dataclasses import replace

from .chinese import begins_with_verb
from .clause import PERSONS, Claim, Clause
from .instructions import wanted
from .lexicon import named, starts, words
from .rules import claim_by_table
from .values import plain_value


def tasks(clause: Clause) -> Claim | None:
    if clause.doubtful or clause.past or clause.ended:
        return _reminder(clause)
    found = claim_by_table("tasks", clause)
    if found and _worth_noting(found, clause):
        return _stated(found, clause)
    # A plain "want" may be a mood, "plan" is none.
    sure = named("all", "intends")
    sureness = max((float(sure.get(verb, "0")) for verb in clause.chain), default=0.0)
    if "can" in clause.chain and not clause.to_assistant and clause.about == "self" and clause.language == "en":
        # "I can bake the cake", said among friends
        sureness = 0.55
    elif clause.verb == "负责" and not clause.to_assistant and begins_with_verb(clause.rest):
        # 我负责订营地
        sureness = 0.7
    settled = False
    if clause.future:
        sureness = max(sureness, 0.6)
    elif not sureness and not clause.habitual and any(span.start > clause.at for span in clause.times):
        # "I'm flying to Rome next week", "I start on Monday": it is settled, because it lies ahead.
        sureness, settled = 0.75, True
    if (
        not sureness
        or not (
            clause.about in PERSONS or (clause.about == "thing" and any(span.end > clause.at for span in clause.times))
        )
        or clause.negated
    ):
        return None
    timed = any(span.end > clause.at for span in clause.times)
    if _is_talk(clause, timed):
        return None
    value = plain_value(clause.rest, clause.language)
    if not value and not timed and clause.language == "en":
        return None
    return Claim(
        memory_type="event" if settled else "task",
        attribute="plan",
        value=f"{clause.verb} {value}".strip() if clause.language == "en" else f"{clause.verb}{value}",
        weight=min(0.95, sureness + (0.15 if timed else 0.0) + 0.12),
        importance=min(1.0, 0.5 + 0.3 * (sureness - 0.5) + (0.1 if timed else 0.0)),
        confidence=0.7 if {"think", "consider", "wish", "dream"} & set(clause.chain) else 0.9,
    )


def _reminder(clause: Clause) -> Claim | None:
    """Only what is said outright counts in a clause that looks like the past."""
    found = claim_by_table("tasks", clause)
    return _stated(found, clause) if found and found.attribute in ("reminder", "deadline") else None


def _stated(found: Claim, clause: Clause) -> Claim:
    return replace(found, content=wanted(clause)) if clause.about == "asked" else found


def _worth_noting(found: Claim, clause: Clause) -> bool:
    if found.attribute not in ("plan", "appointment"):
        return True
    return not (clause.language == "en" and clause.verb == "have" and not any(s.end > clause.at for s in clause.times))


def _is_talk(clause: Clause, timed: bool) -> bool:
    if clause.language == "zh":
        said = clause.verb + clause.rest
        return (said.startswith(starts("zh", "talk")) and not timed) or len(said) < 2
    if timed:
        # Nobody has to remember that somebody wanted to ask something today.
        return clause.verb in words("en", "thoughts") or clause.verb in ("ask", "let")
    return clause.verb in words("en", "talk")
