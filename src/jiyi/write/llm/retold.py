"""The wording of a memory: to whom it attributes words, and whether they say anything. "Mei said thanks" says no more
than the message itself."""

import re
from collections.abc import Iterable, Sequence

from ...languages.terms import builtin_synonyms, tokens
from ...roles import is_person
from ..classify import classify
from ..drafts import Said
from .cues import ASSISTANT, FILLERS, FIRST_PERSON, YOU
from .grounding import Ungrounded, Unsupported, contains
from .spoken import clauses, content_words
from .transcript import USER_LABELS

UNSURE = 0.3  # salience below which words are not worth remembering
COPIED = 4  # content words of a clause that are no coincidence
ANSWERS = ("smalltalk", "nonanswer")  # of an assistant, whose advice looks like a request
EMPTY_KINDS = ("smalltalk", "joke", "nonanswer", "question", "request")

# Greetings and thanks to the assistant say nothing about a person.
_SMALL_TALK = re.compile(
    r"\b(?:thank|greet|welcom)\w*\b[^.]{0,20}\bassistant\b|\bsa(?:id|ys) (?:hello|hi|goodbye|good (?:morning|night)) to"
    r"|\bassistant (?:congratulat|wish|prais|compliment|greet|welcom)\w*\b"
    r"|(?:感谢|谢谢|谢过|问候)了?(?:助手|助理|AI)|[向跟和]助[手理](?:问好|道谢|道别|打招呼|致谢)"
    r"|助[手理][^，。]{0,8}(?:祝|恭喜|佩服|夸|称赞)|助[手理]说[^，。]{0,12}值得佩服",
    re.IGNORECASE,
)
# A mention without content: "Mei mentioned her allergies".
_MENTION = re.compile(
    r"\b(?:mention(?:ed|s)|discuss(?:ed|es)|talked about|(?:asked|asks|inquired) about) (?!that\b)"
    r"|^\w{1,30} (?:told|tells) (?:the )?\w{1,30} about "
    r"|\b(?:start(?:ed|s)|had|has) an? (?:conversation|chat|discussion)\b"
    r"|\b(?:shared|described|expressed) (?:her|his|their|its|some) "
    r"|(?:提到|谈到|聊到|聊|讨论|询问|分享|描述)了?[^，。]{0,12}(?:情况|习惯|计划|安排|问题|偏好|经历|爱好|日程)。?$",
    re.IGNORECASE,
)
_ADVICE = re.compile(
    r"\bassistant (?:\w+ )?(?:suggest|recommend|advis|said|says|told|gave|explain|propos|propose|remind|warn)\w*\b"
    r"|助[手理](?:建议|推荐|提醒|说|告诉|给出|介绍|解释)",
    re.IGNORECASE,
)
_SAYS = re.compile(
    r"^(?P<who>.{1,60}?)\s*(?:[（(][^（）()]{0,40}[)）]\s*)*"
    r"(?:说道?|表示|称|告诉\w{1,8}[，:：]"
    r"|(?:said|says|stated|noted|(?:tells|told|informs|informed) (?:the )?\w{1,30})(?: that)?\b)"
    r"[:：,，]?\s*(?P<words>.+)$",
    re.DOTALL,
)

_ADVISED = re.compile(
    r"(?:the )?assistant (?:\w+ )?(?:suggest|recommend|advis|said|says|told|gave|explain|propos|remind|warn)\w*"
    r"|助[手理](?:建议|推荐|提醒|说|告诉|给出|介绍|解释)|[(（][^()（）]*[)）]",
    re.IGNORECASE,
)

_HE_SAYS = re.compile(r"(?:he|she|his|her)\b|[他她]", re.IGNORECASE)
_HIM = re.compile(r"\b(?:he|she|him|his|her|he['’]s|she['’]s)\b|(?<![吉其])他|她", re.IGNORECASE)
_SAYS_SO = re.compile(r"\b(?:said|says|told me|tells me|reckons|thinks)\b|说|告诉我", re.IGNORECASE)


def is_small_talk(text: str) -> bool:
    """
    >>> is_small_talk("Mei thanked the assistant for asking."), is_small_talk("林梅感谢了助手")
    (True, True)
    """
    return _SMALL_TALK.search(text) is not None


def is_advice(text: str) -> bool:
    """Return True if a memory says that the assistant said it.

    >>> is_advice("The assistant suggested a walk."), is_advice("助手建议散步。"), is_advice("Mei likes walks.")
    (True, True, False)
    """
    return _ADVICE.search(text) is not None


def is_mention(text: str) -> bool:
    """
    >>> is_mention("Mei mentioned her allergies."), is_mention("Mei mentioned that she is ill")
    (True, False)
    """
    return _MENTION.search(text) is not None


def check_wording(text: str, quote: str, where: Said, speakers: Sequence[str], names: Iterable[str]) -> None:
    """Raise if a text says nothing, or attributes the words of `where` to another one than their speakers."""
    names = [*names]
    who, words = attributed_to(text, names), attributed_words(text, names)
    if who is not None and not _is_speaker(who, where, speakers):
        raise Ungrounded("attributed to another speaker", who)
    if words and _HE_SAYS.match(words) and _HIM.search(quote) and not FIRST_PERSON.search(quote):
        raise Ungrounded("said of another person", words)  # "Max says his name is Boris" for "his name is Boris"
    if is_small_talk(text):
        raise Unsupported("small talk")
    if words and contains(words, where.text) and says_nothing(words, EMPTY_KINDS if is_person(where.role) else ANSWERS):
        raise Ungrounded("small talk")
    if is_mention(text):
        raise Unsupported("a mention without content")


def check_attributions(text: str, said: Sequence[tuple[str, str]]) -> None:
    """Raise if a text attributes a clause to one speaker that only another one said. `said`: speakers and messages."""
    names = dict.fromkeys(name for name, _ in said)
    for sentence in re.split(r"[.!?。！？](?!\d)|\n", text):
        for name in names:
            found = re.search(
                rf"{re.escape(name)}[还又也]?(?:说道?|表示|\s(?:said|says)(?: that)?\b)(?P<words>.*)", sentence
            )
            for clause in clauses(found["words"]) if found else ():
                if any(other in clause.text for other in names if other != name):
                    break
                by = {who for who, message in said if contains(clause.text, message)}
                if by and name not in by and len(content_words(clause.text)) >= COPIED:
                    raise Ungrounded("attributed to another speaker", clause.text)


def _is_speaker(who: str, where: Said, speakers: Sequence[str]) -> bool:
    if ASSISTANT.fullmatch(who):
        return not is_person(where.role) or YOU.search(where.text) is not None
    if _SAYS_SO.search(where.text) and is_person(where.role):
        return True  # it reports what others say
    names = {name.casefold() for name in speakers} | ({"user"} if USER_LABELS[0] in speakers else set())
    return is_person(where.role) and who.casefold() in names


def attributed_words(text: str, names: Iterable[str]) -> str | None:
    """Return the words that a text attributes to one of these people and nothing else.

    >>> attributed_words("周建国（2025年2月25日）说哦哟幸亏问了。", ["周建国"])
    '哦哟幸亏问了'
    """
    found = _SAYS.match(text.strip()) if attributed_to(text, names) else None
    return found["words"].strip(" 。.!！\"“”「」'") if found else None


def attributed_to(text: str, names: Iterable[str]) -> str | None:
    """Return the person, or the assistant, who says the words of a text.

    >>> attributed_to("Mei said that she is ill.", ["Mei", "Tom"]), attributed_to("助手说好的。", ["小美"])
    ('Mei', '助手')
    """
    found = _SAYS.match(text.strip())
    who = found["who"].strip() if found else ""
    return who if ASSISTANT.fullmatch(who) or who.casefold() in {name.casefold() for name in names} else None


def share_said(text: str, said: Iterable[str], names: Iterable[str]) -> float:
    """Return the share of a text's words, without names and words that say that somebody said it, that were said."""
    told = content_words(_ADVISED.sub(" ", text)) - FILLERS - content_words(" ".join(names))
    there = content_words(" ".join(said))
    known = {word for word in told if word in there or any(set(tokens(one)) & there for one in builtin_synonyms(word))}
    return len(known) / len(told) if told else 1.0


def says_nothing(words: str, kinds: Sequence[str] = EMPTY_KINDS) -> bool:
    """Return True for words that are not worth remembering by themselves."""
    found = classify(words)
    return found.kind in kinds and found.salience < UNSURE
