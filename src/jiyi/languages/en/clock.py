"""English times of day: in the morning, at 7 pm, around 3:30."""

from __future__ import annotations

from ..times.clock import ClockRules, read_clock

_HOUR = "(?P<h>[01]?[0-9]|2[0-3])"
_MINUTE = "(?P<min>[0-5][0-9])"
_AM_PM = r"(?P<ap>[ap])\.?m(?:\.(?! [A-Z]))?(?![A-Za-z0-9_])"
_AT = r"(?:,? (?:at|around|about|by) |,? |, ?)"

CLOCK = ClockRules(
    parts={"morning": "morning", "afternoon": "afternoon", "evening": "evening", "night": "night", "noon": "noon"},
    part_after=r",? (?:in the |at )?(?P<part>morning|afternoon|evening|night|noon)(?![A-Za-z0-9_])",
    part_before=r"(?:the )?(?P<part>morning|afternoon|evening|night) of \Z",
    after=(
        (rf"{_AT}{_HOUR}(?::{_MINUTE})? ?{_AM_PM}", read_clock),
        (rf"{_AT}{_HOUR}:{_MINUTE}(?::[0-5][0-9](?:\.[0-9]{{1,9}})?)?(?![:0-9A-Za-z_])", read_clock),
        (r" (?:at|around|about) (?P<h>1[0-2]|[1-9])(?: o'clock)?(?![:0-9A-Za-z_%.]| [a-z])", read_clock),
    ),
    before=(
        (rf"(?:(?:at|around|about) )?{_HOUR}(?::{_MINUTE})? ?{_AM_PM},? (?:on )?\Z", read_clock),
        (rf"(?P<h>[01][0-9]|2[0-3]):{_MINUTE} on \Z", read_clock),
    ),
)
