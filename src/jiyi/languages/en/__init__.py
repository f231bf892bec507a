"""English."""

from __future__ import annotations

from ..base import Language
from ..times.rules import DateRules
from . import dates, relative_dates
from .clock import CLOCK
from .numbers import english_number
from .ranges import RANGES
from .words import STOP_WORDS

_SAID = "said|told|mention|recommend|suggest|gave|given|advis|wrote|list|provid|explain|describ|shar|show|came up"

ENGLISH = Language(
    code="en",
    name="English",
    stop_words=STOP_WORDS,
    first_person=r"\b(?:I|I['’]\w+|me|my|mine|myself|we|our|ours|us)\b",
    negation=r"\b(?:no|not|never|none|without|un\w{1,20}able)\b|n['’]t\b",
    past_question=(
        r"\b(?:used to|before|prior to|previous(?:ly)?|former(?:ly)?|earlier|original(?:ly)?|initial(?:ly)?|ago|ever"
        r"|back (?:then|when)|in the past|at first|at that time|(?:my|our|your|his|her|their|the|['’]s) old|history"
        r"|chang(?:e|ed|es|ing)|switch(?:ed)?)\b"
    ),
    assistant_question=(
        rf"(?<!can )(?<!could )(?<!would )(?<!will )\byou(?:'ve| have| had)? (?:\w{{1,20}} )?(?:{_SAID})"
        r"|\b(?:our|the|that) (?:last |previous |earlier |past )?(?:conversation|chat|discussion|talk)"
        r"|\bwe (?:\w{1,20} )?(?:talk|discuss|chat|spoke|decid|went over)|\bremind me"
        r"|\byour (?:\w{1,20} )?(?:suggestion|recommendation|advice|answer|list|reply|explanation)"
    ),
    asked_question=r"\b(?:ask(?:ed|ing)?|question|request(?:ed)?)\b",
    dates=DateRules(
        families=dates.FAMILIES + relative_dates.FAMILIES,
        before=dates.BEFORE,
        after=dates.AFTER,
        clock=CLOCK,
        ranges=RANGES,
    ),
    number=english_number,
)
