"""Reads a Chinese clause: its subject, what is said about the verb, and what comes after it."""

from __future__ import annotations

import re

from .english_tokens import Parsed
from .lexicon import any_word, named, one_of, pattern, words

_SPACES = " \t，,、。:：!！~…"
_TIMES = pattern("zh", "time").pattern
_PARTS = "早上|上午|中午|下午|傍晚|晚上|夜里|凌晨"
_TIME = re.compile(
    f"(?:从|自|自从|大概|大约|差不多)?(?:{_TIMES})(?:开始|起|的时候|时|以来|之前|以前|之后|以后|左右|前后|前|后)?(?:的?(?:{_PARTS}))?"
)
_FREQUENCY = pattern("zh", "frequency")
_MARKER = re.compile(f"(?:{any_word('zh', 'markers').pattern})(?=[{_SPACES}]|我|$)|[{_SPACES}]+")
NEGATIONS, MODALS = named("zh", "negations"), named("zh", "modals")
_NEGATION, _MODAL = one_of(NEGATIONS), one_of(MODALS)
_AFTER = any_word("zh", "after name").pattern
_NAME = f"[A-Z][A-Za-z]{{1,15}}|(?!{_AFTER})[\u4e00-\u9fff]{{2,3}}?(?={_AFTER})"
_BARE = re.compile(f"(?P<noun>{any_word('zh', 'bare kin').pattern})(?P<name>{_NAME})?(?={_AFTER}|\\d)")
# 蛋糕我来订: what is spoken of stands first.
_TOPIC = re.compile("(?P<topic>[^我你他她，。的是把给跟和让叫陪帮对]{1,8})(?=我(?!们|的|家|妈|爸))")
_KIN = re.compile(
    "(?:的|家的|家里的|家|们)?(?P<noun>(?:最好的|好|大|小|老|二|前|女|男|亲)?"
    f"(?:{any_word('zh', 'kin').pattern}))(?P<name>{_NAME})?"
)
_OWN = re.compile(
    "的(?P<noun>[^，。是叫为在了有]{1,10}?)(?=(?:现在|如今|目前|一直|还|已经|也|都|就)*[是叫为在有])"
    f"|(?P<bare>{any_word('zh', 'own nouns').pattern})(?=[是叫为在用换])"
)
_PRONOUN = re.compile("他们|她们|他|她|它")
_LATER_ON = frozenset(("以后", "今后", "从现在起", "从今以后", "尽量"))
# 我和老婆去: up to the verb.
_BOTH = re.compile(r"[^，,]{1,12}?(?=一起|都|在|去|打算|计划|准备|要|结|决定|刚|已|昨|今|上|下|明|认识|是)")


def parse(text: str, verbs: re.Pattern[str]) -> Parsed:
    """What the clause says. `verbs` matches the words that rules know; without one of them `verb` stays empty."""
    read = Parsed()
    place = _skip_markers(text, read)
    read.text_at = place
    place = _about(text, _loose(text, place, read), read)
    if read.about != "other":
        _verb(text, place, read, verbs)
    return read


def _skip_markers(text: str, read: Parsed) -> int:
    place = 0
    while (found := _MARKER.match(text, place)) and found.end() > place:
        read.marked |= any(word in found[0] for word in words("zh", "important markers"))
        place = found.end()
    if found := any_word("zh", "loose markers").match(text, place):
        read.marked |= any(word in found[0] for word in words("zh", "important markers"))
        place = found.end()
    return place


def _loose(text: str, place: int, read: Parsed) -> int:
    """Past times and adverbs."""
    while place < len(text):
        often = _FREQUENCY.match(text, place) or any_word("zh", "habitual").match(text, place)
        found = often or _TIME.match(text, place) or any_word("zh", "adverbs").match(text, place)
        if found and found.end() > place:
            read.habitual |= found is often
            place = found.end()
        elif text[place] in " \t,，、":
            place += 1
        else:
            return place
    return place


def _about(text: str, place: int, read: Parsed) -> int:
    """Finds the subject and returns where the verbs begin."""
    if found := pattern("zh", "asking").match(text, place):
        after = len(text) - len(text[found.end() :].lstrip("，, "))
        if found[0] not in _LATER_ON or not text.startswith("我", after):
            read.about = "asked"
            return place
        place = after
    read.subject_at = place
    for words_for, further in (
        (any_word("zh", "we"), _we),
        (any_word("zh", "self"), _self),
        (_BARE, _kin),
        (_TOPIC, _topic),
    ):
        if found := words_for.match(text, place):
            return further(text, found, read)
    if found := _PRONOUN.match(text, place):
        read.about, read.noun = "pronoun", found[0]
        return found.end()
    # Chinese leaves the subject out where it is clear; the caller decides whether it is.
    read.dropped = not pattern("zh", "others").match(text, place)
    read.about = "self" if read.dropped else "other"
    return place


def _topic(text: str, found: re.Match[str], read: Parsed) -> int:
    read.topic = found["topic"]
    return _self(text, any_word("zh", "self").match(text, found.end()) or found, read)


def _we(text: str, found: re.Match[str], read: Parsed) -> int:
    read.about = "we"
    if found[0] == "我和":
        both = _BOTH.match(text, found.end())
        return both.end() if both else found.end()
    kin = _KIN.match(text, found.start() + 2) if found[0] == "我们家" else None
    if kin and kin["noun"] != "家":
        return _kin(text, kin, read)
    own = _OWN.match(text, found.end())
    if own and own["noun"]:
        read.about, read.noun = "kin", own["noun"]
        return own.end()
    return found.end()


def _self(text: str, found: re.Match[str], read: Parsed) -> int:
    own = _OWN.match(text, found.end())
    kin = _KIN.match(text, found.end())
    if kin and kin.end() < len(text) and not (own and own["bare"]):
        return _kin(text, kin, read)
    if own:
        read.about, read.noun = "kin", own["noun"] or own["bare"]
        return own.end()
    read.about = "self"
    return found.end()


def _kin(text: str, kin: re.Match[str], read: Parsed) -> int:
    read.about, read.noun, read.name = "kin", kin["noun"], kin["name"] or ""
    return kin.end()


def _verb(text: str, place: int, read: Parsed, verbs: re.Pattern[str]) -> None:
    """From left to right: adverbs, negations and modal words, until a verb that a rule knows."""
    read.verb_at = place
    while place < len(text):
        known = verbs.match(text, place)
        loose = _NEGATION.match(text, place)
        modal = _MODAL.match(text, place)
        # The longest reading counts: 想要 before 想, 不再 before 不, 在考虑 before 在.
        longest = max((known, loose, modal), key=lambda found: len(found[0]) if found else 0)
        time = _TIME.match(text, place) or any_word("zh", "adverbs").match(text, place)
        # 去年 is a time, though 去 is a verb; 从小就 is an adverb, though 从 is one.
        if longest is None or (time and len(time[0]) > len(longest[0])):
            further = _loose(text, place, read)
            if further == place:
                break
            place = further
            continue
        if (
            known
            and len(known[0]) == 1
            and read.dropped
            and place == read.subject_at
            and not _is_word(text, place, verbs)
        ):
            # 高尔夫 does not begin with 高.
            break
        auxiliary = known is not None and _is_auxiliary(text, known, verbs)
        if auxiliary and known and known[0] == "来":
            # 我来订: an offer.
            read.chain.append("promise")
            place = known.end()
            continue
        if known and len(known[0]) == len(longest[0]) and not auxiliary:
            read.verb, read.rest_at = known[0], known.end()
            read.negated |= known[0] == "没有"
            break
        if longest is loose:
            _negate(read, NEGATIONS[longest[0]], longest[0])
        elif longest[0] in MODALS:
            _modal(read, MODALS[longest[0]])
        place = longest.end()
    if not read.verb:
        read.rest_at = place
    tail = text[read.rest_at :].rstrip(_ENDS)
    if read.negated and re.search("了$|了[，。！]|再", tail):
        read.ended = True
    if _DONE.search(tail, 0, 6) or tail.endswith("了") or "过了" in tail:
        read.perfect = True


_ENDS = " 。！!~～…."
# 去过, 买了; but not 过敏, 过几天, 了解.
_DONE = re.compile("过(?![敏年节程期度于几两夜冬]|来|去的)|了(?!解|不起)")
# 会弹吉他 can, 明天会去 will; 在上海工作 is at a place, 在写论文 is doing.
_CAN = re.compile(
    "[弹拉吹画写游滑骑打唱跳编修织拍剪下烘炒包缝说讲英日法德西粤普意俄韩手]|做[饭菜蛋面点]|开[车船飞]|用[A-Z]"
    r"|[一二两三四五六七八九十几好多\d]+[门种](?:语言|外语|乐器|方言)"
)


def _is_auxiliary(text: str, known: re.Match[str], verbs: re.Pattern[str]) -> bool:
    if known[0] == "会":
        return not _CAN.match(text, known.end())
    if known[0] == "来":
        return verbs.match(text, known.end()) is not None
    if known[0] == "在":
        inner = verbs.match(text, known.end())
        return inner is not None and inner[0] not in ("从", "对", "和", "跟", "有", "高", "重")
    return False


def _is_word(text: str, place: int, verbs: re.Pattern[str]) -> bool:
    """Whether the character at the beginning of a clause is a word: in 学历 and 高尔夫 it is not."""
    from rjieba import cut

    first = cut(text[place : place + 8])[0]
    return len(first) == 1 or first[1] in "了过着完好到上" or verbs.fullmatch(first) is not None


def _negate(read: Parsed, effect: str, word: str) -> None:
    if effect == "ended":
        read.ended = True
    elif effect == "can't":
        read.negated = True
        read.chain.append("can")
    else:
        read.negated = True
        read.past |= word in ("没", "没有", "从来没", "从没")


def _modal(read: Parsed, effect: str) -> None:
    if effect == "doubt":
        read.doubtful = True
    elif effect == "will":
        read.future = True
    elif effect == "begin":
        read.begun = True
    elif effect == "doing":
        read.progressive = True
    elif effect == "past":
        read.past = True
    elif effect == "stop":
        read.ended = True
        read.chain.append("stop")
    elif effect == "habit":
        read.habitual = True
    elif effect != "nothing":
        read.chain.append(effect)


def only_time(text: str) -> bool:
    """Whether there is nothing but a time, to which the next clause belongs: 去年夏天，我…"""
    return _loose(text, 0, Parsed()) >= len(text.rstrip())


def begins_with_verb(text: str) -> bool:
    """12月15日动工: after the time comes what is done, and nobody who does it."""
    from rjieba import tag

    after = _loose(text, 0, Parsed())
    rest = text[after:].rstrip("。！，")
    kinds = [kind for _, kind in tag(rest)]
    return bool(kinds) and (kinds[0][0] in "vp" or (after > 0 and len(kinds) == 1 and len(rest) <= 3))
