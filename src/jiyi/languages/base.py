"""The parts of a language: words, cues, and rules for its dates."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from .calendar import Amount, Calendar, Part
from .clock import ClockRules

# What a match means; None, or ValueError for a date that does not exist, if it means no time after all.
Resolve = Callable[[re.Match[str], Calendar], Part | None]
# A pattern, whose group `t`, if it has one, is the time itself without the words around it.
Rule = tuple[str, Resolve]


def group(match: re.Match[str], name: str) -> str:
    """Return the text of a group, or "" if it did not match or the rule has no such group."""
    return match[name] or "" if name in match.re.groupindex else ""


class Family(NamedTuple):
    """Rules that share a core: where it is not found in the lower-case text, none of them is tried."""

    core: str
    rules: tuple[Rule, ...]


NEVER = "(?!)"  # matches nothing


def _no_amount(_match: re.Match[str]) -> Amount:
    raise ValueError


class RangeRules(NamedTuple):
    """Words around a time that make another time of it. A space in a pattern is one blank. A pattern for words before a
    time ends with `\\Z`, one for words after it starts right behind the time."""

    narrowing: str = NEVER  # early, the end of: group `third` (early, mid, late) or `edge` (start, middle, end)
    anchor_before: str = NEVER  # two days before: groups of `amount`, or `one`; and `dir` (before, after, of)
    anchor_after: str = NEVER  # the same behind the time
    opening: str = NEVER  # from; between, in the group `between`
    joint: str = NEVER  # to; and, in the group `and`
    between_after: str = NEVER  # a mark behind "A and B" that makes it a range
    to_now: str = NEVER  # A until now
    onwards: str = NEVER  # from A on
    before: str = NEVER  # before A, in words before it: group `word` (since, after, before, until)
    after: str = NEVER  # the same behind the time
    words: Mapping[str, str] = MappingProxyType({})  # to the English words above
    amount: Callable[[re.Match[str]], Amount] = _no_amount
    weekday: Callable[[str], int] = len


class DateRules(NamedTuple):
    """Rules for dates, times of day and ranges. A space in the patterns of `families` stands for `gap`; `before` and
    `after` go around each of them."""

    families: tuple[Family, ...] = ()
    gap: str = r"[ \t]{1,3}"
    before: str = ""
    after: str = ""
    clock: ClockRules = ClockRules()
    ranges: RangeRules = RangeRules()


class RecurrenceRule(NamedTuple):
    """A pattern for a time that comes again, and its rule in the form of RFC 5545. If it is not `sure`, as for "Monday
    and Thursday", other words decide whether it comes again."""

    pattern: str
    resolve: Callable[[re.Match[str]], str]
    sure: bool = True


def word_set(listing: str) -> frozenset[str]:
    """Return the words of a list that is written as text."""
    return frozenset(listing.split())


@dataclass(frozen=True, kw_only=True, eq=False)
class Language:
    """Words and rules of one language; a field that is left out is neutral and matches nothing. Cues are sources of
    regular expressions. They are matched without regard to case, in texts of any language."""

    code: str
    name: str  # as prompts name it
    script: str = ""  # the script whose characters a text must have for `dates` to be tried, or "" for any
    stop_words: frozenset[str] = frozenset()
    first_person: str = NEVER  # I, my, we
    speaker_alone: str = NEVER  # I, my; not we
    second_person: str = NEVER  # you, your
    negation: str = NEVER  # not, never
    past_question: str = NEVER  # where did I use to live
    assistant_question: str = NEVER  # which book did you recommend
    question: str = NEVER  # anything that is asked or wanted, and more than keywords
    phatic: str = NEVER  # hello, thanks, haha: words that ask for nothing
    told_then: str = NEVER  # what did I say, without the time: all of a question that only a time answers
    past_event: str = NEVER  # signed, was born: a day beside it is over
    arranged: str = NEVER  # booked, postponed: a day that it aims at is still to come
    aims_at: str = NEVER  # for, by, until: right before such a day
    ahead: str = NEVER  # remind me, will, deadline: a day beside it is still to come
    present: str = NEVER  # is, leaves: without a verb in the past, a day beside it is still to come
    since: str = NEVER  # since: right before a day that is over
    habit: str = NEVER  # usually, only on: a day of the week beside it is every such day
    timetable: str = NEVER  # open, shift: the same, if nothing says that it is one day
    yearly: str = NEVER  # birthday: a day of the year beside it is every such day
    clause_end: str = NEVER  # and, but: words between two clauses
    instruction: str = NEVER  # from now on, call me: how to answer or address the user
    injection: str = NEVER  # ignore previous instructions: addressed to a model, not about a person
    limit: str = NEVER  # allergic to, I never fly: it matters for requests that do not name it
    own_label: str = NEVER  # Update, As I said: before a colon, they introduce the speaker's own words
    own_thing: str = NEVER  # my new address: before a colon, it names a thing of the speaker's
    next_thought: str = NEVER  # and my, but I: a sentence without punctuation goes on with another thought
    next_claim: str = NEVER  # and I'm, 老婆还: a clause about something else begins behind it
    comma_splice: str = NEVER  # the same, if what is before it is a main clause: "I'm Mei, I live in Oslo"
    main_clause: str = NEVER  # its beginning
    short_complete: str = NEVER  # 路由器在客厅: a short sentence that is understood alone
    no_subject: str = NEVER  # 现在做设计: a sentence whose subject is that of the sentence before
    routine: str = NEVER  # usually: what somebody does again and again
    before_list: str = NEVER  # like, with, 喜欢: right before a list whose order says nothing
    list_joint: str = NEVER  # between two things of a list
    after_list: str = NEVER  # in the morning, 过敏: begins what follows a list
    ordered: str = NEVER  # then, respectively: the order of a list says something
    at_time: str = NEVER  # on: right before a time
    reported: str = NEVER  # said, hope: another clause follows
    text_request: str = NEVER  # translate, fix the grammar: what follows is a text to work on
    as_user: tuple[tuple[str, str], ...] = ()  # patterns for "the user prefers", and the user's own words: "I prefer"
    dates: DateRules = field(default_factory=DateRules)
    recurrences: tuple[RecurrenceRule, ...] = ()
    number: Callable[[str], int] = int  # the value of a number in digits or words; ValueError or KeyError if none
