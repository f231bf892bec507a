"""The value of an attribute, without the words around it."""

import re

_DETERMINER = re.compile(
    r"(?:an?|the|my|our|some|any|his|her|their|this|that|these|those|to|of|about|very|really|quite|more|also|lots of"
    r"|a lot of)\s+",
    re.IGNORECASE,
)
# Where the thing itself is over and its circumstances begin.
_AFTER = re.compile(
    r"(?<!\s)\s*(?:[,;!?()\"“”]|(?<!\bDr)(?<!\bMr)(?<!\bMs)(?<!\bMrs)(?<!\bSt)(?<!\bProf)[.:](?!\w))|(?<!\s)\s+(?:because|since|but|so|when|while|which|who|that|as|until|after|before|though|although|if"
    r"|for|with|by|every|on|at|these days|nowadays|now|right now|anymore|any more|any longer|too|as well|instead|again"
    r"|a lot|very much|so much|more than|over|than|lately|recently|and (?:i|we|my|it|he|she|they)|last|next|this|today"
    r"|yesterday|tomorrow|tonight|in \d{4}|in (?:january|february|march|april|may|june|july|august|september|october"
    r"|november|december)|ago|year|where|is|are|was)\b",
    re.IGNORECASE,
)
_CHINESE_AFTER = re.compile(
    r"[，。！？；、,!?~～…（）()]|\.(?!\w)|因为|所以|但|不过|而且|的时候|之后|以后|之前|已经|可是|好几年|很多年"
    r"|[一二三四五六七八九十两\d]{1,3}多?(?:年|个月|天|周)了"
)
_CHINESE_BEFORE = re.compile(r"^(?:一[个只条台辆套份名位家种款部本]|了|过|的|是|着|得|很|那种|这种)")
_CHINESE_TAIL = re.compile(r"(?:了|呢|啊|吧|的|哦|哈|呀|啦|哟|嘛|噢|喔|而已|来着|什么的|之类的|等等|一下){1,4}$")
LONGEST = 48


def plain_value(text: str, language: str) -> str:
    """The thing itself.

    >>> plain_value("a really big dog, because we can", "en"), plain_value("一只大狗了", "zh")
    ('big dog', '大狗')
    """
    text = text[:200].strip()
    if language == "zh":
        end = _CHINESE_AFTER.search(text)
        text = text[: end.start()] if end and end.start() else text
        return _CHINESE_TAIL.sub("", _CHINESE_BEFORE.sub("", text)).strip()[:LONGEST]
    while found := _DETERMINER.match(text):
        text = text[found.end() :]
    end = _AFTER.search(text)
    if end and end.start():
        text = text[: end.start()]
    return text.strip(" '\"*_-")[:LONGEST].strip()
