"""What says that something told before is over, by its name: "Mochi died", 日语不学了. Whether it was told before, is
looked up later."""

from __future__ import annotations

import re

from ..drafts import Over
from .clause import Claim, Clause
from .facts import INTENDED
from .lexicon import named, pattern

LONGEST = 200


def over(clause: Clause, *, if_known: bool) -> Over | None:
    """The words, if they say so. Who names something says it shortly."""
    words = clause.said.text[clause.start : clause.end]
    if clause.doubtful or clause.future or clause.about == "asked" or set(clause.chain) & INTENDED:
        return None
    if len(words) > LONGEST or not pattern(clause.language, "over").search(words):
        return None
    return Over(words=words, speaker=clause.speaker, if_known=if_known)


def partly_over(clause: Clause) -> Claim | None:
    """A clause that no rule knows: it may mean something that was told before."""
    if clause.said.role == "assistant" or over(clause, if_known=True) is None:
        return None
    return Claim(
        memory_type="event",
        attribute="over",
        value=clause.text,
        weight=0.5,
        importance=0.5,
        confidence=0.8,
        if_known=True,
    )


_DOES = re.compile(
    r"^(?:[a-z]+ )(?:an? |the |my |some |one |two |\d+ )*|^[吃喝学用去养练打玩看做抽骑开坐穿读跑上弹写]"
    r"(?:[一两二三四五六七八九十半几\d]+[杯碗支根片粒节顿个次瓶罐盘局场本]?)?"
)


def done_again(habit: str) -> list[str]:
    """What a habit is about, and what that is one of: "drink an americano" is about an americano, and about coffee.

    >>> done_again("drink an americano"), done_again("喝一杯美式")
    (['americano', 'coffee'], ['美式', '咖啡'])
    """
    habit = habit.lower()
    whole = [
        of for one, of in named("all", "is a").items() if re.search(rf"\b{one}\b" if one.isascii() else one, habit)
    ]
    return [_DOES.sub("", habit), *dict.fromkeys(whole)]


def by_name(value: str) -> list[str]:
    """Things of a kind that is known: 钉钉 in 钉钉沟通.

    >>> by_name("钉钉沟通"), by_name("everything in Obsidian")
    (['钉钉'], ['obsidian'])
    """
    kinds = named("all", "kinds")
    words = [word for word in re.findall(r"[a-z][a-z0-9+#.]+", value.lower()) if word in kinds]
    return words + [word for word in kinds if not word.isascii() and word in value]


_HOW_MANY = re.compile(
    r"^(?:an?|one|two|three|four|five|six|\d+|some) |^[一两二三四五六七八九十几\d]+[只条个匹头缸窝群对]", re.IGNORECASE
)


def uncounted(value: str) -> str:
    """
    >>> uncounted("two hamsters"), uncounted("两只仓鼠")
    ('hamsters', '仓鼠')
    """
    return _HOW_MANY.sub("", value)


_PARTED = (
    r"\b{noun} (?:and i|and me) (?:broke up|split|separated|divorced|are over)|\b(?:broke up|split up) with my {noun}",
    r"\b{noun} (?:and|und) \w+ (?:broke up|split up|divorced)|\b(?:broke up|split up) with {noun}\b",
    r"\b{noun} (?:has |just |sadly |recently )*(?:died|passed away|passed|ran away|went missing)",
    r"\b(?:gave|sold|rehomed|lost) (?:away )?(?:my|our|the) {noun}",
    "[和跟与][^，。]{0,4}{noun}[^，。]{0,4}(?:分手|离婚|分开|掰了|吹了)|{noun}[^，。]{0,3}[和跟]我(?:分手|离婚|分开)",
    "{noun}[^，。把给]{0,6}(?:送人|走丢|跑丢|去世|过世|病逝|没了|死了|卖了)|把{noun}(?:送人|卖|送走)",
)


def parted(said: str, noun: str) -> bool:
    """Whether a being that is only called what it is to the speaker is gone.

    >>> parted("My boyfriend and I broke up", "boyfriend"), parted("我男朋友把烟戒了", "男朋友")
    (True, False)
    """
    return any(re.search(cue.replace("{noun}", re.escape(noun)), said, re.IGNORECASE) is not None for cue in _PARTED)


def one_of_these(said: str) -> list[str]:
    """What is one of the things that are named: an americano is a coffee."""
    words = said.lower()
    return [one for one, of in named("all", "is a").items() if of in words]
