"""A clause as the rules see it: who it is about, what is said of them, and how (negated, ended, intended, …)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ...languages.dates import TimeSpan
from ..drafts import Evidence, Said

# Of whom something can be remembered; the rest is about the world.
PERSONS = frozenset(("self", "we", "kin", "named"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """One statement of a speaker. `verb` and `rest` are what the rules look at: "live", "in Berlin"; 住在, 柏林."""

    said: Said
    start: int  # characters of the message
    end: int
    text: str
    language: str
    about: str  # self, we, kin (somebody or something of the speaker's), named, other, asked (an imperative)
    speaker: str  # in the third person
    subject: str  # whom it is about, in the third person: "Mei", "The user", "Mei's wife", 小美的女儿
    noun: str = ""  # of kin: wife, dog, favourite colour
    verb: str = ""
    rest: str = ""
    chain: tuple[str, ...] = ()  # the verbs before it: ("plan",) for "plan to move", ("stop",) for "stopped smoking"
    negated: bool = False
    ended: bool = False
    begun: bool = False
    past: bool = False
    perfect: bool = False
    progressive: bool = False
    future: bool = False
    doubtful: bool = False  # might, 可能
    habitual: bool = False
    marked: bool = False  # "important", "remember that", 务必
    times: tuple[TimeSpan, ...] = ()
    content: str = ""
    sentence: int = 0  # its place in the message
    joint: str = ""  # what stands between it and the clause before: ", because "
    bare: str = ""  # the content without a subject that was added
    to_assistant: bool = True  # there is nobody else to talk to
    parted: tuple[str, str] | None = None  # who somebody was to the speaker until now, and the name
    answers: str = ""  # the question it answers, where it is no sentence of its own

    @property
    def drops(self) -> bool:
        """Whether it says that something is not so, and not that it has come to an end."""
        return self.negated and not self.ended

    @property
    def at(self) -> datetime:
        return self.said.sent_at

    def evidence(self) -> Evidence:
        return Evidence(message_id=self.said.id, start=self.start, end=self.end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a rule says a clause means. Of several claims on one clause the one with the highest weight is kept."""

    memory_type: str
    attribute: str
    value: str
    weight: float
    importance: float
    subject: str | None = None  # by default the clause's
    content: str | None = None  # by default the clause's
    single: bool = False
    ended: bool = False
    replaces: str | None = None
    if_known: bool = False  # worth keeping only if it ends something that was told before
    confidence: float = 0.9
