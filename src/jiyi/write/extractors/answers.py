"""Answers that are no sentences: "95 dollars an hour", said when somebody asked for the rate."""

from __future__ import annotations

import re
from dataclasses import replace

from .clause import Claim, Clause
from .kinds import kind_called, kind_of
from .lexicon import pattern
from .values import plain_value

ANSWER = "answer:"
EXAM = re.compile("托福|雅思|托业|四级|六级|GRE|GMAT|TOEFL|IELTS|SAT|GPA", re.IGNORECASE)


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


_USED = re.compile(r"用|\buse\b|\busing\b", re.IGNORECASE)
_WHAT_IS_USED = re.compile("用(?:的是|的)?(?:什么|啥|哪种|哪个|哪款)(?P<kind>[\u4e00-\u9fff]{1,6}?)(?:啊|呢|的)?[？?]$")
_WHERE = re.compile(
    r"^where (?:do|will|are|would) you (?:live|stay|living|staying|based|move|moving)\b|住(?:在)?(?:哪|什么地方)",
    re.IGNORECASE,
)


def as_fact(claim: Claim, clause: Clause) -> Claim:
    """An answer under the attribute that was asked for: what is told later in a sentence of its own ends it.

    "Which editor do you use?" – "Helix" is told like "I use Helix"."""
    if not claim.attribute.startswith(ANSWER) or claim.memory_type == "event":
        return claim
    attribute = _asked_for(clause.answers, claim.value)
    return replace(claim, attribute=attribute, single=True) if attribute else claim


def _asked_for(question: str, value: str) -> str | None:
    if _USED.search(question) and (kind := kind_of(value)):
        return f"uses:{kind}"
    if what := _WHAT_IS_USED.search(question):
        return f"uses:{kind_called(what['kind']) or what['kind']}"
    if _WHERE.search(question) and not value[:1].isdigit():
        return "home"
    taken = EXAM.search(question)
    return f"score:{taken[0].lower()}" if taken and value[:1].isdigit() else None


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
