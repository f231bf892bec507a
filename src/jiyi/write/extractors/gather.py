"""Which clauses make one memory: what says little by itself belongs to what stands before it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from .answers import ANSWER
from .chinese import begins_with_verb
from .clause import PERSONS, Claim, Clause
from .kinds import kind_called, kind_of
from .lexicon import pattern
from .statements import claimed, weight_of
from .substance import ENOUGH
from .values import plain_value

LONGEST_DETAIL = 60
# Below this a claim comes from statistics or from the most general rows, and gives way to a surer one beside it.
SURE = 0.56
DATED = frozenset(("task", "event"))

Read = tuple[Clause, Claim | None]


def gathered(read: Iterable[Read]) -> list[Read]:
    """吃二甲双胍，500毫克，早晚各一次 is one memory; "On Friday I sold the car and bought a bike" are two."""
    kept: list[Read] = []
    for clause, claim in read:
        last = kept[-1] if kept and kept[-1][0].said is clause.said else None
        if last is None or not (last[0].sentence == clause.sentence or _is_scrap(last, clause, claim)):
            kept.append((clause, claim))
        else:
            kept[-1:] = _beside(*last, clause, claim)
    return kept


def _beside(before: Clause, told: Claim | None, clause: Clause, claim: Claim | None) -> list[Read]:
    """What two clauses of a sentence make: one memory, or two."""
    if one := _changed(before, clause) or _decided(told, clause):
        return [(_joined(before, clause), one)]
    if told and not told.content and _is_headless(before, clause) and not (claim and claim.content):
        # 充电桩的事通过了，12月15日动工: still about the same thing.
        dated = claim is not None and claim.memory_type in DATED and _is_certain(clause)
        return [(_joined(before, clause, dated=dated), claim if dated and claim else told)]
    if told and claim and (both := _one_of_both(before, told, clause, claim)):
        return [both]
    if _is_weak(claim) and _goes_on(before, clause, claim):
        if told is None:
            return [_together(before, clause, claim)]
        joined = _with_detail(before, told, clause, claim)
        if joined:
            return [joined]
    return [(before, told), (_with_time_of(before, clause) if claim and _happens(clause, claim) else clause, claim)]


def _decided(told: Claim | None, clause: Clause) -> Claim | None:
    """我们说定了，以后不带烧烤炉"""
    open_ended = told is not None and told.attribute == "decision" and not told.value
    return replace(told, value=clause.text[:40]) if told and open_ended else None


_CHANGED = re.compile("^(?:我们?的?)?(?P<what>[^我你他她，。]{1,6}?)(?:也|都|又|已经|早就)*换了$")
_NOW = re.compile(
    "^(?:现在|如今|目前|改|这回)(?:都|在|改)*(?:使|用|看|吃|喝|穿|开|骑|坐|是|去|听|刷)(?:的是)?"
    "(?P<value>[^，。]{1,16})$"
)


def _changed(before: Clause, clause: Clause) -> Claim | None:
    """手机换了，现在用华为: what it is, and what it is now."""
    if clause.language != "zh" or before.doubtful or clause.doubtful or clause.negated:
        return None
    what, now = _CHANGED.match(before.text.rstrip("。！")), _NOW.match(clause.text.rstrip("。！了"))
    if what is None or now is None:
        return None
    value = plain_value(now["value"], "zh")
    kind = kind_of(value) or kind_called(what["what"]) or what["what"]
    return Claim(memory_type="fact", attribute=f"uses:{kind}", value=value, single=True, weight=0.85, importance=0.6)


def _with_detail(before: Clause, told: Claim, clause: Clause, claim: Claim | None) -> Read | None:
    if told.content:
        # Only an answer goes on; what a rule has put into words of its own is whole.
        answer = told.attribute.startswith(ANSWER)
        return (before, replace(told, content=told.content + _joint(clause) + clause.bare)) if answer else None
    if told.memory_type in DATED and claim is not None and clause.about == "thing" and not clause.times:
        # 我在准备申请，方向是HCI: when it is does not say what it is.
        return None
    return _joined(before, clause, dated=told.memory_type in DATED), told


def _one_of_both(before: Clause, told: Claim, clause: Clause, claim: Claim) -> Read | None:
    if before.subject == clause.subject and _are_one(told, claim):
        # 入职了一家游戏公司，当产品经理: one job.
        value, attribute = f"{told.value} {claim.value}".strip(), min(told.attribute, claim.attribute)
        return _joined(before, clause), replace(told, value=value, attribute=attribute)
    if not told.content and claim.memory_type == "pattern" and _only_says_how_often(clause):
        return _joined(before, clause), told
    return None


_WORK = frozenset(("employer", "job", "works as"))


def _are_one(told: Claim, claim: Claim) -> bool:
    work = told.attribute in _WORK and claim.attribute in _WORK
    same = told.single and claim.single and told.subject == claim.subject
    return (
        same and (work or told.attribute == claim.attribute) and not (told.content or claim.content or claim.replaces)
    )


def _only_says_how_often(clause: Clause) -> bool:
    """在吃二甲双胍，一天两次"""
    often = pattern(clause.language, "how often").search(clause.text)
    return often is not None and len(clause.text.strip(" ,.，。！")) - len(often[0]) <= 2


def _is_weak(claim: Claim | None) -> bool:
    return claim is None or claim.weight < SURE


def _is_scrap(last: Read, clause: Clause, claim: Claim | None) -> bool:
    """ "We need tiles. Dark green, 10 by 10.": no sentence of its own."""
    before, told = last
    return (
        told is not None
        and not told.content
        and not clause.verb
        and clause.about in ("other", "thing")
        and not clause.times
        and len(clause.text) <= 40
        and clause.sentence == before.sentence + 1
        and _is_weak(claim)
        and (claim is not None or weight_of(clause) >= 0.8)
        and before.about in PERSONS
    )


def _is_headless(before: Clause, clause: Clause) -> bool:
    """Whether a Chinese clause begins with its verb, so that it is about what the one before was about."""
    if not before.about == clause.about == "thing" or clause.language != "zh":
        return False
    return bool(clause.verb) or begins_with_verb(clause.text)


# 15号发 may be every month; 4月15前交, 下周三动工 is one day.
_CERTAIN = re.compile("月|[上下这本]周|[周期拜][一二三四五六日天]|[明后今]天|之?前|年")


def _is_certain(clause: Clause) -> bool:
    return any(_CERTAIN.search(clause.text[span.at[0] : span.at[1] + 2] or span.text) for span in clause.times)


def _goes_on(before: Clause, clause: Clause, claim: Claim | None) -> bool:
    own_subject = clause.bare == clause.content and clause.about in PERSONS and clause.subject != before.subject
    return (
        len(clause.text) <= LONGEST_DETAIL
        and not clause.doubtful
        and clause.about != "asked"
        and not (own_subject and (claim is None or before.about in PERSONS))
    )


def _together(before: Clause, clause: Clause, claim: Claim | None) -> Read:
    """Two clauses of which neither said enough may do so together."""
    joined = _joined(before, clause, dated=True)
    if before.doubtful or before.about == "asked":
        return clause, claim
    told = weight_of(before) + weight_of(clause)
    if claim is None and told < ENOUGH[clause.language] + 0.5:
        return joined, None
    return joined, claim or claimed(joined, told)


def _joined(before: Clause, clause: Clause, *, dated: bool = False) -> Clause:
    return replace(
        before,
        content=before.content + _joint(clause) + clause.bare if before.content else clause.content,
        end=clause.end,
        sentence=clause.sentence,
        # 工资两万三，15号发: when a detail happens is not when the whole does.
        times=before.times or (clause.times if dated else ()),
    )


def _happens(clause: Clause, claim: Claim) -> bool:
    """周五请同事吃饭：我吃素: what holds anyway does not begin on that day."""
    return claim.memory_type in DATED or clause.past or clause.perfect or clause.ended or clause.begun


def _with_time_of(before: Clause, clause: Clause) -> Clause:
    """ "On Friday I sold the car and bought a bike": both on Friday."""
    return replace(clause, times=before.times) if not clause.times and not clause.habitual else clause


def _joint(clause: Clause) -> str:
    if clause.language == "zh":
        return "，"
    return clause.joint if clause.joint.strip() else ", "
