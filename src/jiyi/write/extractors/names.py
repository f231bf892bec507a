"""Who somebody is in the third person, and the names of attributes, the same in both languages."""

from __future__ import annotations

from ..drafts import Said, Unit
from .lexicon import named, starts, words
from .voice_english import possessive

_NAMELESS = {"en": {"assistant": "The assistant"}, "zh": {"assistant": "助手"}}
_USER = {"en": "The user", "zh": "用户"}


def label(said: Said, language: str) -> str:
    """The speaker: by name, or as the user."""
    return said.speaker or _NAMELESS[language].get(said.role) or _USER[language]


def group_label(unit: Unit, speaker: str, language: str) -> str:
    """Who "we" are."""
    people = {said.speaker for said in (*unit.history, *unit.messages) if said.speaker and said.role != "assistant"}
    if len(people) > 1:
        return "大家" if language == "zh" else "The group"
    return f"{speaker}等人" if language == "zh" else f"{speaker} and others"


def kin_label(speaker: str, noun: str, language: str) -> str:
    """Somebody who belongs to the speaker: "Mei's sister", 小美的女儿."""
    if language == "zh":
        return f"{speaker}的{_FULL.get(noun, noun)}"
    return f"{possessive(speaker)} {noun}"


def is_kin(noun: str, language: str) -> bool:
    """Whether a noun is a being (a wife, a dog) and not a property (a name, a birthday)."""
    if language == "zh":
        return noun not in words("zh", "no beings") and noun.endswith(starts("zh", "kin"))
    return bool(noun) and noun.rsplit(maxsplit=1)[-1] in words("en", "kin") and not noun.startswith("favo")


_FULL = {
    "妈": "妈妈",
    "爸": "爸爸",
    "哥": "哥哥",
    "姐": "姐姐",
    "弟": "弟弟",
    "妹": "妹妹",
    "闺女": "女儿",
    "老妈": "妈妈",
    "老爸": "爸爸",
}


_OF_ANOTHER = frozenset(("work", "office", "business", "company", "school", "second", "other", "backup", "old", "home"))


def property_name(noun: str) -> str:
    """
    >>> property_name("phone number"), property_name("生日"), property_name("favourite color")
    ('phone number', 'birthday', 'favourite:colour')
    >>> property_name("new email"), property_name("work email")  # which is another one
    ('email', 'work email')
    """
    known = named("all", "properties")
    noun = noun.strip().lower()
    for prefix in ("favourite ", "favorite ", "最喜欢的", "最爱的"):
        if noun.startswith(prefix):
            kind = noun[len(prefix) :]
            return f"favourite:{known.get(kind, kind)}"
    first, last = (noun.split() or [""])[0], (noun.split() or [""])[-1]
    if first != last and first in _OF_ANOTHER:
        return f"{first} {known.get(last, last)}"
    return known.get(noun) or known.get(last) or noun
