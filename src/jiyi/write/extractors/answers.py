"""Answers that are no sentences: "95 dollars an hour", said when somebody asked for the rate."""

from __future__ import annotations

import re

from .clause import Claim, Clause
from .lexicon import pattern
from .values import plain_value

ANSWER = "answer:"


def answers(clause: Clause) -> Claim | None:
    """What was asked belongs to the memory: without it the answer says nothing."""
    if not clause.answers or clause.verb or len(clause.text) > 120 or clause.joint or clause.sentence:
        return None
    often = pattern(clause.language, "how often").search(clause.text)
    numbered = pattern(clause.language, "numbers").search(clause.text)
    if not (often or numbered or clause.times or _names_something(clause)):
        return None
    ahead = any(span.start > clause.at for span in clause.times)
    return Claim(
        memory_type="pattern" if often else "event" if ahead else "fact",
        attribute=f"{ANSWER}{clause.answers.lower()[:40]}",
        value=plain_value(clause.text, clause.language),
        content=told(clause),
        weight=0.6,
        importance=0.5,
        confidence=0.7,
    )


# "Where do you live?" – "Berlin."
_ASKS_FOR = re.compile(
    r"\b(?:what|where|which|who|whose|when|how (?:many|much|long|old|often))\b|\bor\b.*\?"
    r"|什么|哪|谁|怎么称呼|多少|几|多[大久长高重]|还是",
    re.IGNORECASE,
)
_SAYS_NOTHING = re.compile(
    r"^(?:yes|no|nope|yeah|not|none|nothing|sure|ok|okay|i|it|that|maybe|both|neither|well|hm+|thanks|good|fine|great|haha)\b"
    r"|^(?:好|不|没|嗯|对|是|行|随便|都|还|哈|谢|无|可以|算了|这|那|挺|很)",
    re.IGNORECASE,
)


def _names_something(clause: Clause) -> bool:
    asked = _ASKS_FOR.search(clause.answers) is not None
    return asked and clause.sentence == 0 and len(clause.said.text) <= 60 and not _SAYS_NOTHING.match(clause.text)


def told(clause: Clause) -> str:
    answer = clause.content[:1].lower() + clause.content[1:] if clause.text[:2].istitle() else clause.content
    if clause.language == "zh":
        return f"被问到“{clause.answers}”时，{clause.speaker}回答：{answer}"
    return f"Asked “{clause.answers}”, {clause.speaker} answered: {answer}"
