"""Values of attributes: words that can be one, and words that cannot.

"My boss is Kate" names a boss, "my boss is annoying" does not, and must not end the first one: a sentence states an
attribute only with a value that can be meant. When in doubt it states none, and both statements are kept.
"""

import re

from ..languages.base import word_set
from ..languages.en.words import STOP_WORDS

_NUMBER = re.compile(r"\d|[一二两三四五六七八九十百千万]")
_DATE = re.compile(
    r"\d|\b(?:january|february|march|april|may|june|july|august|september|october|november|december)\b|[月号日]",
    re.IGNORECASE,
)
_MONEY = re.compile(
    r"[$€£¥]|\d ?k\b|\b(?:salary|pay|wage|dollars|euros|pounds|an hour|a month|a year)\b|[薪资元块]", re.IGNORECASE
)
_WORKPLACE = re.compile(
    r"\b(?:hospital|clinic|university|uni|college|school|academy|institute|kindergarten|nursery|bank|airport|council|city"
    r"|ministry|government|museum|library|factory|warehouse|shop|store|supermarket|bookshop|bakery|caf[eé]|restaurant|bar"
    r"|hotel|brewery|embassy|police|court|army|navy|lab|company|firm|agency|start-?up|studio|theatre|theater|farm|office"
    r"|church|charity|ngo|pharmacy|publisher|newspaper|station|garage|salon|practice)\b",
    re.IGNORECASE,
)
_SCHOOL = re.compile(r"\b(?i:university|uni|college|school|academy|institute|kindergarten|nursery)\b|\b[A-Z]{2,6}\b")
_VEHICLE = re.compile(r"\b(?:car|van|truck|pickup|suv|bus|taxi|lorry|motorbike|motorcycle|scooter|bike|tractor)\b")
_PROFESSION = re.compile(
    r"\b(?!better|easier|harder|over|other|closer|safer|\w+ier\b)\w*(?:er|or|ist|ista|ian|ant|man|woman|chef|nurse|pilot"
    r"|judge|clerk|cook|lead|head|chief|coach|guide|intern|officer|agent|vet|midwife|artist|ceo|cto|cfo)\b",
    re.IGNORECASE,
)
_NATION = re.compile(
    r"^(?:[A-Z]\w*(?:ish|ese|ian|ean|ican)|German|French|Dutch|Greek|Swiss|Czech|Thai|Iraqi|Israeli)\b"
)
_NO_NAME = re.compile(r"^(?:[A-Z][a-z]+days?|January|February|March|April|June|July|August|\w+ember|October|I)\b")
_BEFORE = re.compile(r"^(?:(?:the|an?|old|new|own|used|small|(?:my|our) \w+['’]s) )+")
_PRODUCT = re.compile(
    "^(?:Slack|Teams|Zoom|Discord|Notion|Git|Google|Microsoft|Amazon|AWS|Azure|Post|Kube|Docker|Python|Java|Type|React|Linux"
    "|Windows|Mac|Android|iOS|iPhone|Signal|Telegram|WhatsApp|Obsidian|Vim|Emacs)"
)
_DISTANCE = re.compile(r"^\d+ ?(?:km|miles|minutes|hours)\b")
_DIRECTION = re.compile(r"^(?:downtown|central|inner|\w*(?:north|south|east|west)(?:ern)?) ")
_COLOUR = re.compile(r"^(?:red|blue|green|black|white|grey|gray|silver|yellow|big|little|electric) ")
# Words after "at", "for", "in" and "is" that name nothing, in sentences without capital letters.
_PLAIN = STOP_WORDS | word_set("""
    night nights day days home work least most best first last times weekends weekdays free fun money noon dawn midnight
    two three four five six seven eight nine ten constant great good bad fine late busy hard nice big slow long far easy
    broken dead plan step page decaf tea coffee water bed lunch dinner breakfast gym yoga church therapy town doing
    hiring always never still often usually sometimes almost full peace pain fear hope silence luxury poverty lot mess
""")

_HAN = re.compile(r"[\u4e00-\u9fff]")
_NOTHING = re.compile(
    "^(?:一?个(?!体)|很|太|挺|非常|有点|比较|不(?:错|好|多|高|大|远|行|稳|确|固|在|是|太)|没|借|坏|谁|哪|什么|怎么|临时)"
)
_NO_HOME = re.compile(
    r"^(?:院|得|不[好太了惯远]|惯|过|满|着|这|那|附近|客厅|卧室|书房|楼[上下]|[一二三四五六七八九十\d]+[楼层号]|朋友|同学|同事|亲戚)"
    "|^.*(?:酒店|宾馆|旅馆|民宿|青旅|招待所|医院|附近|隔壁|房间)|^.*家$"
)
_NO_EMPLOYER = re.compile("^(?:家里?|外地|外面|线上|网上|公司|办公室|咖啡[馆厅店]|[这那][里儿边])$")
_NO_NAMED = re.compile("^.*人$")  # from somewhere, or of some kind
_NO_CHINESE = {"home": _NO_HOME, "hometown": _NO_HOME, "employer": _NO_EMPLOYER, "manager": _NO_NAMED}
_CHINESE = {
    "job": re.compile(
        "^.*(?:[员师生工长者手官警兵]|护士|会计|司机|老板|教授|经理|总监|主管|助理|顾问|编辑|教练|模特|主播|博主|保安|保姆|翻译|作家"
        "|专家|画家|销售|运营|产品|设计|财务|人事|行政|客服|快递|外卖|程序|主持人|经纪人|合伙人|自由职业|家教|实习|创业|管理|开发)"
    ),
    "school": re.compile("^.*(?:大学?|中学?|小学?|学院|学校|分校|附中|高中|初中|[一二三]中|幼儿园|清华|北大|复旦)$"),
}

_SIGNS = {
    **dict.fromkeys(("weight", "height", "age", "phone", "rent", "salary"), _NUMBER),
    "birthday": _DATE,
}


def is_value(slot: str, value: str, said: str) -> bool:
    """Return True if words can be the value of an attribute; `said` is the whole sentence.

    >>> is_value("manager", "Kate", "My boss is Kate"), is_value("manager", "annoying", "My boss is annoying")
    (True, False)
    """
    if sign := _SIGNS.get(slot):
        return sign.search(value) is not None and (slot != "salary" or _MONEY.search(said) is not None)
    if _HAN.search(value):
        wrong, right = _NO_CHINESE.get(slot, _NOTHING), _CHINESE.get(slot)
        return not (_NOTHING.match(value) or wrong.match(value)) and (right is None or right.match(value) is not None)
    test = _TESTS.get(slot)
    return test is None or test(value, said)


def _is_name(value: str, said: str) -> bool:
    """Return True if words begin with a capital letter or a number; if nothing in the sentence does, if they can be a
    name."""
    plain = _BEFORE.sub("", value)
    if _NO_NAME.match(plain):
        return False
    if re.match(r"\d|[a-z]?[A-Z]", plain):
        return True
    first = re.match(r"[\w'-]*", plain)
    return said == said.lower() and first is not None and first[0] not in _PLAIN and len(plain.split()) <= 3


def _is_place(value: str, said: str) -> bool:
    return not _PRODUCT.match(value) and _is_name(_DIRECTION.sub("", value), said)


def _is_person(value: str, said: str) -> bool:
    return _is_name(value, said) and not _NATION.fullmatch(value)


def _is_thing(value: str, said: str) -> bool:
    plain = _COLOUR.sub("", _BEFORE.sub("", value))
    return not _DISTANCE.match(plain) and (_is_name(plain, said) or _VEHICLE.search(value) is not None)


def _is_job(value: str, said: str) -> bool:
    with_article = re.search(r"\bas (?:an?|the)\b", said) is not None
    return with_article or _PROFESSION.search(value) is not None or _is_name(value, said)


def _is_school(value: str, said: str) -> bool:
    goes = re.search(r"\bgo(?:es)? to\b", said, re.IGNORECASE) is not None
    return _SCHOOL.search(value) is not None or (not goes and _is_name(value, said))


def _is_employer(value: str, said: str) -> bool:
    return _WORKPLACE.search(value) is not None or _is_name(value, said)


def _is_editor(value: str, _: str) -> bool:
    first = value.split(" ", 1)[0].lower()
    return first not in _PLAIN and not first.endswith(("ing", "ed"))


_TESTS = {
    "home": _is_place,
    "hometown": _is_place,
    "employer": _is_employer,
    "school": _is_school,
    "manager": _is_person,
    "partner": _is_person,
    "name": _is_person,
    "car": _is_thing,
    "computer": _is_thing,
    "job": _is_job,
    "editor": _is_editor,
}
