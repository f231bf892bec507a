"""How somebody wants to be answered: what is asked of the assistant for good, not for once."""

from __future__ import annotations

import re

from .clause import Claim, Clause
from .lexicon import pattern
from .values import plain_value

_POLITE = {
    "en": re.compile(r"^(?:please|kindly|just|and|also|so|ok(?:ay)?)[, ]+|[, ]+please$", re.IGNORECASE),
    "zh": re.compile("^(?:请你?|麻烦你?|拜托|你|您)|(?<=以后)请|(?<=今后)请|(?<=每次)请|(?:好吗|谢谢|哦|啊|就行|吧)$"),
}
# Of these the newest counts: an answer is in one language.
_ONE_AT_A_TIME = (
    (
        "instruction:language",
        re.compile(
            r"\b(?:answer|reply|respond|speak|write|talk)\w*\b.{0,12}\bin (?-i:[A-Z])[a-z]{3,12}\b(?! (?:format|style))"
            r"|(?:用|说|讲|改用|换成|改成)(?:简体|繁体)?(?:中文|英文|英语|汉语|普通话|日语|日文|法语|德语|韩语|粤语|西班牙语|俄语)"
            r"(?!名|版|资料)",
            re.IGNORECASE,
        ),
    ),
)


def wanted(clause: Clause) -> str:
    """What is asked for, as a wish: "The user wants the assistant to answer in Chinese"."""
    text = clause.content.strip(" .!。！")
    for _ in range(2):
        text = _POLITE[clause.language].sub("", text)
    if clause.language == "zh":
        return f"{clause.subject}希望助手{text}"
    first, _, rest = text.partition(" ")
    word = first.lower()
    if word in ("don't", "never"):
        return f"{clause.subject} wants the assistant {'not' if word[0] == 'd' else 'never'} to {rest}"
    if word == "do" and rest.startswith("not "):
        return f"{clause.subject} wants the assistant not to {rest[4:]}"
    if word == "no":
        return f"{clause.subject} wants no {rest}"
    return f"{clause.subject} wants the assistant to {word} {rest}"


def instructions(clause: Clause) -> Claim | None:
    wants_you = (
        clause.about == "self"
        and bool({clause.verb, *clause.chain} & {"want", "need", "prefer", "like", "would", "希望"})
        and ("you" in clause.rest.split()[:2] or clause.rest.startswith(("你", "您")))
    )
    if clause.doubtful or not clause.to_assistant or (clause.about != "asked" and not wants_you):
        return None
    manner = pattern(clause.language, "manner").search(clause.text)
    before = len("in the future, ") if clause.language == "en" else 0  # "From now on answer in English"
    said = clause.said.text[max(0, clause.start - before) : clause.end]
    for_good = pattern(clause.language, "for good").search(said)
    if clause.language == "en" and for_good and not manner and not pattern("en", "assistant does").search(clause.text):
        return None
    if not manner and not for_good:
        return None
    attribute = next((name for name, says in _ONE_AT_A_TIME if says.search(clause.text)), "instruction")
    return Claim(
        content=wanted(clause) if clause.about == "asked" else None,
        memory_type="preference",
        attribute=attribute,
        value=plain_value(clause.text, clause.language),
        single=attribute != "instruction",
        weight=0.93,
        importance=0.75,
    )
