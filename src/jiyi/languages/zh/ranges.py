"""Chinese words around a time: 从A到B, A以来, A之前, A的前一天."""

from __future__ import annotations

from ..times.ranges import RangeRules
from .relative_dates import AMOUNT, amount

_NUMBER = "0-9一二两三四五六七八九十"

RANGES = RangeRules(
    anchor_after="的?(?P<dir>[前后])" + AMOUNT.replace(" ", ""),
    opening=r"(?P<between>(?!))?(?:自从|从|自) ?\Z",
    joint=r" ?(?:到|至|直到) ?|(?P<and> ?和 ?)",
    between_after="之间",
    to_now="(?:以来|至今|迄今|(?:一直)?到(?:现在|如今|目前))(?![A-Za-z])",
    onwards="(?:开始|起|以来)(?![点床来])",
    # 去年前三个月 is not before last year, 昨天后来 not after yesterday.
    after=(
        f"(?=[以之]|前(?![端台面后半任夫妻男女锋卫提途言景几些{_NUMBER}])|后(?![端台面半来悔果勤卫续天几{_NUMBER}]))"
        "[以之]?(?P<word>[前后])"
    ),
    words={"前": "before", "后": "after"},
    amount=amount,
)
