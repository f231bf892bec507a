"""What says that something told before is over, by its name: "Mochi died", 日语不学了. Whether it was told before, is
looked up later."""

from __future__ import annotations

import re

from ..drafts import Over
from .clause import Claim, Clause
from .english_tokens import VERBS, lemma
from .facts import INTENDED
from .kinds import chinese_things
from .lexicon import named, pattern, words

LONGEST = 200


def over(clause: Clause, *, if_known: bool) -> Over | None:
    """The words, if they say so. Who names something says it shortly."""
    words = clause.said.text[clause.start : clause.end]
    if _ONLY_OVER.fullmatch(words):
        words = _said_before(clause) + words
    if clause.doubtful or clause.future or clause.about == "asked" or set(clause.chain) & INTENDED:
        return None
    if len(words) > LONGEST or not pattern(clause.language, "over").search(words):
        return None
    if pattern(clause.language, "only this time").search(words):
        return None
    return Over(words=words, speaker=clause.speaker, if_known=if_known)


# Anki欠了三千张……删了。: of what, stands before it.
_ONLY_OVER = re.compile(
    "(?:就|全|都|已经|果断|直接|后来|干脆)*(?:不[用吃喝学练玩看去要养]|[删卸停退扔卖弃戒])(?:掉)?(?:了|啦)[。！!~，,]*"
)
_STOPS = re.compile("[。！？!?\n]")


def _said_before(clause: Clause) -> str:
    """The sentence before, in the same message."""
    before = clause.said.text[: clause.start].rstrip("。！!…，,~ ")
    return _STOPS.split(before)[-1] + "，" if before else ""


def partly_over(clause: Clause) -> Claim | None:
    """A clause that no rule knows: it may mean something that was told before."""
    said = None if clause.said.role == "assistant" else over(clause, if_known=True)
    if said is None:
        return None
    alone = _ONLY_OVER.fullmatch(clause.said.text[clause.start : clause.end])
    return Claim(
        memory_type="event",
        attribute="over",
        value=clause.text,
        content=said.words.rstrip("。！!~，,") if alone else None,
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
    >>> done_again("tutor chemistry")  # "no more tutoring"
    ['chemistry', 'tutoring']
    """
    habit = habit.lower()
    verb = habit.partition(" ")[0]
    says_it = verb.isascii() and len(verb) > 3 and verb not in words("en", "light verbs")
    doing = [f"{verb.removesuffix('e')}ing"] if says_it else []
    whole = [
        of for one, of in named("all", "is a").items() if re.search(rf"\b{one}\b" if one.isascii() else one, habit)
    ]
    return [_DOES.sub("", habit), *doing, *dict.fromkeys(whole)]


def by_name(value: str) -> list[str]:
    """Things of a kind that is known: 钉钉 in 钉钉沟通.

    >>> by_name("钉钉沟通"), by_name("everything in Obsidian")
    (['钉钉'], ['obsidian'])
    """
    kinds = named("all", "kinds")
    words = [word for word in re.findall(r"[a-z][a-z0-9+#.]+", value.lower()) if word in kinds]
    return words + chinese_things(value)


_PARTS_OF_NAMES = tuple("群号店卡课馆版班队券粉厅厂院街路区县市省站")
_NEXT_WORD = re.compile(r"(?:'s)? +([a-z]+)")


def goes_on_with_noun(rest: str) -> bool:
    """Whether what stands before this belongs to something that is named here.

    >>> [goes_on_with_noun(rest) for rest in (" marathon is off", " died", "的演唱会取消了", "停了", "")]
    [True, False, True, False, False]
    """
    if found := _NEXT_WORD.match(rest):
        base, form = lemma(found[1])
        return found[1] not in words("en", "no nouns") and not (base in VERBS and form in ("s", "past", "ing"))
    if (rest.startswith("的") and len(rest) > 2) or rest.startswith(_PARTS_OF_NAMES):
        return True
    if not rest or rest.isascii() or pattern("zh", "over").match(rest):
        return False
    from rjieba import tag

    word, kind = tag(rest[:12])[0]
    return kind.startswith(("n", "vn", "an")) and word[0] not in "不没妈爸"


def does_away(rest: str) -> bool:
    """Whether what stands before this does something to something else.

    >>> [does_away(rest) for rest in (" deleted my page", "把我的页面删了", " died", "停了")]
    [True, True, False, False]
    """
    return any(pattern(language, "does away with").match(rest) for language in ("en", "zh"))


def leaves(said: str) -> bool:
    """Whether somebody is no longer somewhere.

    >>> leaves("no longer in berlin"), leaves("我从腾讯离职了"), leaves("i don't like berlin any more")
    (True, True, False)
    """
    return any(pattern(language, "leaves").search(said) for language in ("en", "zh"))


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
    "{noun}(?![粮砂窝绳盆罐毛笼])[^，。把给的]{0,6}(?:送人|走丢|跑丢|去世|过世|病逝|没了|死了|卖了)|把{noun}(?:送人|卖|送走)",
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
