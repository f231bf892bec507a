"""Answers that are no sentences: "95 dollars an hour", said when somebody asked for the rate."""

from __future__ import annotations

from .clause import Claim, Clause
from .lexicon import pattern
from .values import plain_value


def answers(clause: Clause) -> Claim | None:
    """What was asked belongs to the memory: without it the answer says nothing."""
    if not clause.answers or clause.verb or len(clause.text) > 120:
        return None
    often = pattern(clause.language, "how often").search(clause.text)
    numbered = pattern(clause.language, "numbers").search(clause.text)
    if not (often or numbered or clause.times):
        return None
    ahead = any(span.start > clause.at for span in clause.times)
    return Claim(
        memory_type="pattern" if often else "event" if ahead else "fact",
        attribute=f"answer:{clause.answers.lower()[:40]}",
        value=plain_value(clause.text, clause.language),
        content=told(clause),
        weight=0.6,
        importance=0.5,
        confidence=0.7,
    )


def told(clause: Clause) -> str:
    answer = clause.content[:1].lower() + clause.content[1:] if clause.text[:2].istitle() else clause.content
    if clause.language == "zh":
        return f"被问到“{clause.answers}”时，{clause.speaker}回答：{answer}"
    return f"Asked “{clause.answers}”, {clause.speaker} answered: {answer}"
