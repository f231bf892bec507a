"""Single-valued attributes and endings that English and Chinese sentences state.

A slot's value is the whole phrase. A later statement of the same subject and slot supersedes the earlier one; an
ending names a value, or ends whatever holds. Sentences about the past, wishes and conditions state no slot.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from .own_words import is_own
from .values import is_value


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotValue:
    """An attribute that a sentence states or ends. `ended` without a value ends whatever holds."""

    subject: str | None  # None: the speaker
    slot: str
    value: str | None
    ended: bool = False
    replaces: str | None = None
    at: tuple[int, int] = (0, 0)

    @property
    def is_relative(self) -> bool:
        """Return True if the subject is a relative of the speaker ("my sister"), not a person by name."""
        return self.subject is not None and not self.subject[:1].isupper()


_PERSON = (
    r"husband|wife|partner|girlfriend|boyfriend|fiancée?|son|daughter|kid|child|baby|mother|mum|mom|father|dad|sister"
    r"|brother|grandmother|grandma|grandfather|grandpa|aunt|uncle|cousin|niece|nephew|boss|manager|colleague|flatmate"
    r"|roommate|neighbou?r|friend|best friend|dog|cat|puppy|teacher|doctor|landlord|ex"
)
_KIN = (
    "(?:老公|老婆|丈夫|妻子|男朋友|女朋友|男友|女友|对象|儿子|女儿|孩子|宝宝|妈妈?|爸爸?|父亲|母亲|姐姐?|妹妹?|哥哥?|弟弟?"
    "|奶奶|爷爷|外婆|外公|姥姥|姥爷|婆婆|公公|舅舅|姑姑|阿姨|叔叔|同事|室友|邻居|朋友|闺蜜|领导|老板|老师|狗|猫|家)"
)
_SURNAMES = (
    "王李张刘陈杨黄赵周吴徐孙马朱胡郭何林高罗郑梁谢宋唐许韩冯邓曹彭曾肖田董潘袁蔡蒋余杜叶程魏苏吕丁任卢姚沈钟姜崔谭陆"
)
_ZH_NAME = (
    r"(?:(?!小[学区时孩]|阿姨)[小阿][\u4e00-\u9fff]|(?P<twice>[\u4e00-\u9fff])(?P=twice)"
    rf"|(?!周[末一二三四五六日])[{_SURNAMES}][\u4e00-\u9fff]{{1,2}}?)(?=一起|都|现在|目前|[住在搬今是喜养]|$)"
)
_ZH_MENTIONED = re.compile(rf"^我们?[和跟与同](?:我的?)?(?P<who>{_KIN})(?P<name>{_ZH_NAME})(?:一起|都)*")
_NO_NAME = (
    r"(?:The|That|This|What|Who|It|She|He|We|They|You|Which|Where|There|Today|Tomorrow|Also|And|But|So|Now|Then|My|Our"
    r"|January|February|March|April|May|June|July|August|September|October|November|December"
    r"|Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)\b"
)
_CALLED = "叫(?![我你您他她它咱了过个点车醒]|外卖|滴滴|快递|救护)"  # named; not: told, ordered, sent for
_PART = re.compile(r"\{(I|we|my|wo|with|is|zis|called|v|zv)\}")
_PARTS = {
    "I": rf"(?P<who>\b(?i:I|the user|user|(?:my|our) (?:{_PERSON}))(?: [A-Z]\w+)?|\b(?!{_NO_NAME})[A-Z][a-z]+)",
    "we": r"\b(?i:we)",
    "my": rf"(?P<who>\b(?i:my|our)|\b(?i:(?:my|our) (?:{_PERSON}))'s|\b[A-Z][a-z]+'s)",
    "wo": (
        rf"(?P<who>我(?:的)?{_KIN}(?:的)?|(?<![他她你您])(?:我们?|本人|用户)"
        r"|[\u4e00-\u9fff]{2,3}?(?=今年|现在|的生日|的电话)|小[\u4e00-\u9fff])"
    ),
    "with": (
        rf"(?:们?[和跟与同](?:我的?)?{_KIN}{{1,2}}"
        rf"(?:[小阿][\u4e00-\u9fff]|(?P<two>[\u4e00-\u9fff])(?P=two)|[{_SURNAMES}][\u4e00-\u9fff]{{1,2}}?)?(?:一起|都)*)?"
    ),
    "is": (
        r"(?: (?:is|was changed to|went up to|goes up to|went down to|has changed to|changed to|is now|=|:|will be)|:)"
        r"(?: now| currently)?"
    ),
    "zis": rf"(?:现在|已经|改成了?|换成了?|变成了?|涨到了?|降到了?|调到了?|是|{_CALLED}|：|:|为|有)+",
    "called": _CALLED,
    "v": r"(?P<v>(?:[^,.;:!?()\n]|[.,:](?=\d)|(?<=\b[A-Z])\.)+)",
    "zv": r"(?P<v>[^，。！？,!?；;：\n（(]+)",
}
# The sentence is about the past, a wish, a condition or somebody else's opinion.
_NOT_NOW = re.compile(
    r"\b(?:used to|formerly|back when|back then|until|years ago|as a (?:kid|child)|when i was|if|would|wish|want to"
    r"|might|maybe|perhaps|planning to|plan to|going to|hope to|thinking (?:of|about)|almost|nearly|before i|was going"
    r"|dreamed?)\b"
    "|以前|之前|曾经|当年|小时候|那时候?|原来|要是|如果|假如|希望|想要?|打算|准备|可能|也许|差点|梦到|梦见|过去|从前",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"(?<!\s)\s+(?:and (?:i|my|we|he|she|it|now|the|have|love|like)|but|because|so|since|when|while|now|these days"
    r"|right now|at the moment|any ?more|today|last (?:week|month|year|night|\w+day)|yesterday|this (?:week|month|year)"
    r"|recently|with (?:my|our)|tho|though|which|where|until|from|as an?|instead)\b.*$",
    re.IGNORECASE | re.DOTALL,
)
_ZH_TAIL = re.compile(r"(?:了|啦|呢|哦|啊|哈|吧|的|呀|现在|这边|那边|工作|上班){1,8}$")
_PREDICATE = re.compile(r"[\u4e00-\u9fff]的[了啦。！.!\s]*$")  # 我的车是红色的 says what it is like
_OWN_CLAUSE = re.compile(r"(?<=[，,；;])(?=(?:现在|目前)(?:[在住是开用]))")  # a later clause of the speaker's
_LEADING = re.compile(r"^(?:now|currently|just|actually|about|around|现在|已经|是|在|到|了|目前)\s*", re.IGNORECASE)


def slot_values(text: str) -> list[SlotValue]:
    """Find the single-valued attributes that a sentence states, changes or ends.

    >>> [(one.slot, one.value) for one in slot_values("My rent went up to $4,800.")]
    [('rent', '$4,800')]
    """
    if len(text) > 400 or text.rstrip().endswith(("?", "？")):
        return []
    plain = _OWN_CLAUSE.sub("我", text.replace("’", "'")) if text.startswith("我") else text.replace("’", "'")
    lower = plain.lower()
    ended = {one.slot: one for one in _matches(plain, lower, ended=True)}
    stated = {one.slot: one for one in _matches(plain, lower, ended=False)}
    if (ended or stated) and _NOT_NOW.search(plain):
        return [one for one in ended.values() if one.value]
    return [*stated.values(), *(one for slot, one in ended.items() if slot not in stated)]


def _matches(text: str, lower: str, *, ended: bool) -> Iterator[SlotValue]:
    seen: set[str] = set()
    for slot, words, pattern in _patterns(ended=ended):
        for word in words:
            if word in lower:
                break
        else:
            continue
        found = next((one for one in pattern.finditer(text) if is_own(text, one.start())), None)
        if found is None:
            continue
        groups = found.groupdict()
        name = slot.replace("{k}", (groups.get("k") or "").lower())
        value = _cleaned(groups.get("v") or "")
        if name in seen or (not value and not ended) or (not ended and _negated(found)):
            continue
        if not ended and (_PREDICATE.search(groups["v"]) or not is_value(name, value, text)):
            continue
        seen.add(name)
        yield SlotValue(
            subject=_subject(groups.get("who")),
            slot=name,
            value=value or None,
            ended=ended,
            replaces=_cleaned(groups.get("old") or "") or None,
            at=found.span(),
        )


def _negated(found: re.Match[str]) -> bool:
    said = found.group()
    return bool(
        re.search(
            r"\b(?:not|never|no longer|don't|doesn't|isn't|ain't)\b|不|没", said[: len(said) - len(found.group("v"))]
        )
    )


def _cleaned(value: str) -> str:
    value = _TAIL.sub("", value.strip())
    while (shorter := _LEADING.sub("", _ZH_TAIL.sub("", value.strip()))) != value:
        value = shorter
    return value.strip(" \"'“”「」.")


def _subject(who: str | None) -> str | None:
    """None for the speaker; a person by name or by relation."""
    if (
        who is None
        or who.lower() in ("i", "me", "my", "our", "we", "im", "user", "the user")
        or who in ("我", "我的", "我们", "本人", "用户")
    ):
        return None
    who = re.sub(r"'s$|的$", "", who)
    if named := re.search(r"^(?i:my|our) .* ([A-Z]\w+)$", who):
        return named[1]  # later sentences call her by her name
    return (
        re.sub(r"^(?:my|our) ", "", who, flags=re.IGNORECASE)
        if who[:1].isascii()
        else who.removeprefix("我").removeprefix("的")
    )


@cache
def _patterns(*, ended: bool) -> list[tuple[str, list[str], re.Pattern[str]]]:
    """Read the table; its format is described there."""
    lines = files(__package__).joinpath("slots.txt").read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    return [
        (slot.removeprefix("end "), words.split("|"), re.compile(_PART.sub(lambda part: _PARTS[part[1]], pattern)))
        for slot, words, pattern in rows
        if slot.startswith("end ") == ended
    ]


_ONE = r"[A-ZÀ-ÖØ-Þ][a-zà-öø-ÿ]+(?:['’-][A-ZÀ-ÖØ-Þ][a-zà-öø-ÿ]+)*"
_NAMES = rf"(?:(?:Dr|Mrs?|Ms|Prof)\.? )?{_ONE}(?:(?:, | and ){_ONE})*"
_RELATION = rf"(?:[Mm]y|[Oo]ur) (?:\w+ )?(?:{_PERSON}|children)s?"
_WHO = re.compile(rf"(?P<who>{_RELATION}) (?P<name>(?!{_NO_NAME}){_NAMES})")
_SEVERAL = re.compile(rf" (?:(?:{_PERSON})s|children)$")
_WITH = re.compile(rf" (?:together )?with {_RELATION} {_NAMES}(?:(?:,|,? and) {_RELATION} {_NAMES})*(?=\W*$)")
_ZH_WHO = re.compile(rf"(?<![他她你您])我的?(?!家)(?P<who>{_KIN})(?P<name>{_ZH_NAME})")


def introduced(text: str) -> list[tuple[str, tuple[int, int]]]:
    """Divide a sentence that introduces people by name into what it says, without those it only mentions, and who they
    are; each with its position. Empty if there is nobody.

    >>> [part for part, _ in introduced("I live in Hamburg with my wife Petra and our son Ben.")]
    ['I live in Hamburg.', 'My wife is called Petra', 'Our son is called Ben']
    >>> [part for part, _ in introduced("我和老婆小丽住在汉堡")]
    ['我住在汉堡', '我老婆叫小丽']
    """
    told = [
        (f"{one['who'].capitalize()} {'are' if _SEVERAL.search(one['who']) else 'is'} called {one['name']}", one.span())
        for one in _WHO.finditer(text)
    ]
    in_chinese = [*filter(None, [_ZH_MENTIONED.match(text)]), *_ZH_WHO.finditer(text)]
    told += [(f"我{one['who']}叫{one['name']}", one.span()) for one in in_chinese]
    if not told or any(text.strip(" .。") == one for one, _ in told):
        return []
    said = _WITH.sub("", _ZH_MENTIONED.sub("我", text))
    return [(said, (0, len(text))), *told]


_SELF = re.compile(r"^(?:(?:[Hh]i|[Hh]ello|[Hh]ey)\W+)?(?:I['’]m|I am|[Mm]y name is) (?P<name>[A-Z][\w'’-]+)(?=,)")
_SELF_CLAUSE = re.compile(
    r"(?:, and |, | and )(?P<own>\d{1,3}(?: years old)?(?=\W|$)|(?:married|single|divorced)\b(?! \w)"
    r"|(?:an?|from|living|based|working) (?:(?!, | and (?:\d|an? |from |living |based |working |married)).)+)"
)
_ZH_SELF = re.compile(r"^(?:(?:你好|大家好|嗨)[，！。])?我(?:叫|是)(?P<name>[^，。！？、\s]{2,4})(?=，)")
_ZH_SELF_CLAUSE = re.compile(
    r"，(?P<own>(?:今年)?\d{1,3}岁|(?:来自|住在?)[^，。]+|在[^，。]+(?:上班|工作)|[^，。我]{0,8}(?:员|师|生|经理|总监|护士|会计))(?=[，。！]|$)"
)


def self_introduced(text: str) -> list[tuple[str, tuple[int, int]]]:
    """Divide a sentence in which somebody introduces themselves; each part with its position. Empty for others.

    >>> [part for part, _ in self_introduced("Hi, I'm Lena, 34, a nurse from Graz.")]
    ["I'm called Lena", "I'm 34", "I'm a nurse from Graz"]
    >>> [part for part, _ in self_introduced("我叫陈晨，29岁，产品经理。")]
    ['我叫陈晨', '我29岁', '我是产品经理']
    """
    for opening, clause, verb in ((_SELF, _SELF_CLAUSE, "I'm "), (_ZH_SELF, _ZH_SELF_CLAUSE, "我")):
        found = opening.match(text)
        if found is None or not is_value("name", found["name"], text):
            continue
        called = "我叫" if verb == "我" else "I'm called "
        parts, end = [(called + found["name"], found.span())], found.end()
        while more := clause.match(text, end):
            own = more["own"].rstrip(" .!。！")
            is_a = verb == "我" and not re.search("岁$|^(?:来自|[住在])", own)
            parts.append((f"{verb}{'是' if is_a else ''}{own}", more.span("own")))
            end = more.end()
        return parts if len(parts) > 1 and not text[end:].strip(" .!。！") else []
    return []
