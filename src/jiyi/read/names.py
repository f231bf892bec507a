"""Questions for a name: "What's my wife's name?", 我儿子叫什么？ The models know what a sentence is about, but not that
it names somebody in passing, as "My wife Elena is an architect" does. So what names the one who is asked for is found
by its words, in both languages. A person is called the same in both."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from ..languages.words import language
from ..models import MemoryItem
from ..roles import subject_text
from .hits import BEGINNING
from .rank import RankedHit

# Each line is one relation.
_RELATIONS = """\
wife|spouse|老婆|妻子|太太|媳妇
husband|spouse|老公|丈夫|先生
girlfriend|女朋友|女友
boyfriend|男朋友|男友
fiancée?|未婚妻|未婚夫
son|boy|kid|child|儿子|孩子
daughter|girl|kid|child|女儿|孩子
baby|newborn|宝宝|孩子
mother|mum|mom|妈妈|母亲
father|dad|爸爸|父亲
sister|姐姐|妹妹
brother|哥哥|弟弟
grandmother|grandma|奶奶|外婆|姥姥
grandfather|grandpa|爷爷|外公|姥爷
aunt|阿姨|姑姑|姨妈
uncle|叔叔|舅舅
cousin|表哥|表弟|表姐|表妹|堂哥|堂弟|堂姐|堂妹
niece|侄女|外甥女
nephew|侄子|外甥
boss|manager|supervisor|老板|领导|上司|经理
colleague|coworker|co-worker|同事
best friend|闺蜜|好朋友|最好的朋友
flatmate|roommate|housemate|室友
neighbou?r|邻居
landlord|landlady|房东
teacher|老师
doctor|gp|医生
dentist|牙医
dog|puppy|狗|狗狗|小狗
cat|kitten|猫|猫咪|小猫""".splitlines()
OWN = "name"  # the speaker's own
LONGEST = 400  # characters of a text that is about one person

_ASKED = re.compile(
    r"\bwhat(?:'s| is| was|s) (?:my|our) (?:(?:full|first|last) )?(?:(?P<of>[\w -]{2,30}?)(?:'s|s'|s)? )?name\b"
    r"|\bwhat(?:'s| is|s) the name of (?:my|our) (?P<the>[\w -]{2,30}?)[?.!]*$"
    r"|\bwhat(?:'s| is|s) (?:my|our) (?P<called>[\w -]{2,30}?) called\b"
    r"|\bwho(?:'s| is|s) (?:my|our) (?P<who>[\w -]{2,30}?)[?.!]*$"
    r"|(?P<zh>[\u4e00-\u9fff]{1,12}?)(?:的名字)?(?:叫(?:什么|啥)|是谁|名字是(?:什么|啥))",
    re.IGNORECASE,
)
_NO_NAME = (
    r"(?!I\b|I'|Mon|Tues|Wed|Thurs|Fri|Satur|Sun|January|February|March|April|August|September|October|November|December"
    r"|(?:German|French|Italian|Spanish|British|English|American|Canadian|Chinese|Japanese|Korean|Indian|Russian|Polish"
    r"|Dutch|Irish|Scottish|Welsh|Swedish|Danish|Norwegian|Finnish|Greek|Turkish|Austrian|Swiss|Mexican|Brazilian"
    r"|Ukrainian|Romanian|Hungarian|Bulgarian|Croatian|Serbian|Portuguese|Czech|Slovak|Vietnamese|Thai|Egyptian|Iranian"
    r"|Nigerian|Kenyan|Australian|European|Asian|African|Pakistani|Israeli|Argentinian|Colombian|Filipino|Indonesian"
    r"|Malaysian|Taiwanese|Catholic|Christian|Muslim|Jewish|Buddhist|OK|TV)\b)"
)
_NAME = rf"\b{_NO_NAME}[A-ZÀ-Þ][\w'’-]{{1,40}}"
_SURNAMES = (
    "王李张刘陈杨黄赵周吴徐孙马朱胡郭何林高罗郑梁谢宋唐许韩冯邓曹彭曾肖田董潘袁蔡蒋余杜叶程魏苏吕丁任卢姚沈钟姜崔谭陆"
)
_CALLED = "叫(?![我你您他她它咱了过个点车醒]|外卖|滴滴|快递|救护)"  # named; not: told, ordered, sent for
_ZH_NAME = (
    r"(?:(?!小[学区时孩朋]|阿姨)[小阿][\u4e00-\u9fff]|(?![常天刚往偶慢好渐人时处仅明多])(?P<two>[\u4e00-\u9fff])(?P=two)"
    rf"|[A-Z][\w'-]{{1,40}}|[{_SURNAMES}][\u4e00-\u9fff]{{1,2}}(?=[是在的，,。！!、今上住喜也都跟和]|$))"
)
_OWN = (
    rf"\b(?:[Mm]y (?:full |first |nick)?name(?:'s| is)|[Cc]all me|[Pp]eople call me|I go by) {_NAME}"
    rf"|(?:\bI'm|\bI am|^[Tt]his is) {_NAME}(?: {_NAME})?(?=[.!]*$|,|,? (?:and|from)\b)"
    rf"|我(?:的名字)?{_CALLED}|[叫喊称呼]我[\u4e00-\u9fffA-Za-z]"
    rf"|(?:^|[，。！])我是[{_SURNAMES}][\u4e00-\u9fff]{{1,2}}(?=[，。,]|$)"
)


@dataclass(frozen=True, slots=True)
class NameQuestion:
    """A person or thing whose name a question asks for."""

    who: str  # a pattern of words, or OWN
    is_relation: bool = False
    of: str = ""  # whose relation it is, if somebody is named

    def is_answered_by(self, text: str, speaker: str = "") -> bool:
        """Return True if a text names the one who is asked for."""
        if self.of and self.of not in f"{speaker} {text}".lower():
            return False
        pattern = _OWN if self.who == OWN else _naming(self.who)  # compiled once, if it is needed
        return re.search(pattern, text) is not None

    def is_about_another(self, text: str) -> bool:
        """Return True if a text names somebody else, and does not mention the one who is asked for."""
        if not self.is_relation or len(text) > LONGEST or re.search(self.who, text, re.IGNORECASE):
            return False
        own = set(self.who.split("|"))
        others = ("|".join(word for word in relation.split("|") if word not in own) for relation in _RELATIONS)
        return any(_naming(other).search(text) for other in others if other)


def name_question(text: str) -> NameQuestion | None:
    """Return what a question asks the name of; None if it asks for something else.

    >>> name_question("What's my wife's name?").is_answered_by("My wife Elena is an architect.")
    True
    """
    asked = _ASKED.search(text.replace("’", "'"))
    if asked is None:
        return None
    said = next((group for group in asked.groups() if group), "").strip().lower()
    *owners, said = re.split(r"的|'s ", re.split("我们?家?", said)[-1])
    if not said:
        return NameQuestion(OWN)
    of = owners[-1] if owners and owners[-1] and not _relation(owners[-1]) else ""
    if words := _relation(said):
        return NameQuestion(words, is_relation=True, of=of)
    return None if "是谁" in asked[0] else NameQuestion(re.escape(said), of=of)


def _relation(word: str) -> str:
    """Return all words for the relations that a word may mean."""
    plain = re.sub(r"^(?:(?:little|big|older|younger|elder|new|old) |[大小二])", "", word)
    return "|".join(relation for relation in _RELATIONS if re.fullmatch(relation, plain))


@cache
def _naming(who: str) -> re.Pattern[str]:
    """Return a pattern of texts that name somebody."""
    return re.compile(
        rf"(?:\b(?i:{who})(?:'s name)?(?:,| is| was|'s)?(?: (?i:called|named))? {_NAME}"
        rf"|\b(?i:{who})(?: is|'s|,)? (?i:called|named) \w"
        rf"|\b(?i:{who})\b[^.!?\n]{{0,40}}?\b(?:her|his|its|their|whose) name(?:'s| is) \w"
        rf"|{_NAME},?(?: is)? (?:my|our|\w+'s) (?i:{who})\b"
        rf"|(?:{who})(?:的名字|名字)?[，,是]?(?:{_CALLED}|名叫)|(?:{who})是?{_ZH_NAME})"
    )


def by_name(asked: NameQuestion, ranked: Sequence[RankedHit], found: Mapping[str, MemoryItem]) -> list[RankedHit]:
    """Raise what names the one whose name is asked for, and lower what names somebody else."""
    hits = []
    for one in ranked:
        memories = [found[member] for member in {one.id, *one.members} & found.keys()]
        said = [(memory.content[:BEGINNING], str(memory.data.get("speaker") or "")) for memory in memories]
        if any(asked.is_answered_by(*some) for some in said) and not one.outdated:
            hits.append(one.naming())
        else:
            hits.append(one.without_name() if any(asked.is_about_another(text) for text, _ in said) else one)
    return hits


_WORD = re.compile(r"(?<![A-Za-zÀ-ɏ])[A-Z][A-Za-zÀ-ɏ]+")  # also between Chinese characters


def unnamed(text: str, found: Mapping[str, MemoryItem]) -> frozenset[str]:
    """Return the memories in another language that neither name a person of the query whom other memories are about nor
    come from that person: Ben is called Ben in both languages."""
    names = {*_WORD.findall(text)}
    if not names:
        return frozenset()
    about = {memory_id: subject_text(memory.data) or "" for memory_id, memory in found.items()}
    names.intersection_update(_WORD.findall(" ".join(about.values())))
    if not names:
        return frozenset()
    own = language(text)
    return frozenset(
        memory_id
        for memory_id, memory in found.items()
        if {own, language(memory.content)} == {"zh", "en"}
        and names.isdisjoint(
            _WORD.findall(f"{memory.data.get('speaker')} {about[memory_id]} {memory.content[:BEGINNING]}")
        )
    )
