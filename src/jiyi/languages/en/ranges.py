"""English words around a time: early, since, before, from A to B."""

from __future__ import annotations

from ..times.ranges import RangeRules
from .dates import WEEKDAY_NAMES, weekday_number
from .relative_dates import AMOUNT, amount

_START = "(?<![0-9A-Za-z_])"
_TO = "to|until|till|through|up to"

RANGES = RangeRules(
    narrowing=(
        rf"{_START}(?:(?P<third>early|mid|late)(?: (?:in )?|-)"
        r"|(?:the )?(?:very )?(?P<edge>beginning|start|middle|end) of )\Z"
    ),
    anchor_before=(
        rf"{_START}(?:(?:the|last) (?P<one>day|week|month|year|weekend|{WEEKDAY_NAMES})|{AMOUNT})"
        r" (?P<dir>before|after|of) \Z"
    ),
    opening=rf"{_START}(?:from|(?P<between>between)) (?:the )?\Z",
    joint=rf" (?:{_TO}) (?:the )?|(?P<and> and (?:the )?)",
    to_now=rf" (?:{_TO}) (?:now|the present|date)(?![A-Za-z])",
    before=rf"{_START}(?P<word>since|after|before|prior to|until|till|up to) (?:the )?\Z",
    words={"prior": "before", "beginning": "start", "till": "until", "up": "until"},
    amount=amount,
    weekday=weekday_number,
)
