"""Reads a unit: from messages to clauses that say who, what and how."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

from ..drafts import Said, Unit
from . import chinese, english, voice_chinese, voice_english
from .clause import Clause
from .english_tokens import Parsed
from .gate import fiction, hearsay, imagined, taken_back
from .lexicon import pattern
from .moments import absolute, times_in
from .names import group_label, is_kin, kin_label, label
from .rules import table
from .speech import Piece, Sentence, spoken

SILENT = frozenset(("system", "developer", "tool", "function"))
TABLES = ("facts", "preferences", "changes", "tasks", "decisions", "skills")
_DOUBT = re.compile(
    r"\b(?:maybe|perhaps|might|not sure (?:if|whether)|no idea (?:if|whether)|possibly|who knows)\b", re.IGNORECASE
)


@cache
def chinese_verbs() -> re.Pattern[str]:
    """The words that any table knows; the longest counts."""
    words = {verb for name in TABLES for verb in table(name, "zh").by_verb if verb}
    return re.compile("|".join(map(re.escape, sorted(words, key=len, reverse=True))))


@dataclass(slots=True)
class _Context:
    """What carries over from one clause of a message to the next."""

    subject: str = ""
    about: str = "nobody"
    other: str = ""  # the last person or animal that was spoken of: he, she, it
    names: dict[str, str] = field(default_factory=dict)  # Anna → Mei's sister


def clauses_of(unit: Unit) -> list[Clause]:
    """Everything that the people of a unit state."""
    found: list[Clause] = []
    messages = unit.messages
    context = _Context()
    for place, said in enumerate(messages):
        if said.role in SILENT:
            continue
        if said.role == "assistant" and not _accepted(messages[place + 1 : place + 2]):
            continue
        context.about = "nobody"
        found += _of_message(unit, said, context)
    return found


def _accepted(answer: tuple[Said, ...]) -> bool:
    return (
        bool(answer) and answer[0].role != "assistant" and pattern("all", "accepts").match(answer[0].text) is not None
    )


def _of_message(unit: Unit, said: Said, context: _Context) -> list[Clause]:
    found: list[Clause] = []
    before: list[Clause] = []
    for sentence in spoken(said.text):
        whole = " ".join(clause.text for clause in sentence.clauses)
        if taken_back(whole):
            # "I'm a pilot. Just kidding!" takes back what stands before it.
            found = [clause for clause in found if clause not in before]
            continue
        if fiction(whole) or hearsay(whole, sentence.language):
            before = []
            continue
        before = list(_of_sentence(unit, said, sentence, context))
        found += before
    return found


def _of_sentence(unit: Unit, said: Said, sentence: Sentence, context: _Context) -> Iterator[Clause]:
    context.about = "nobody"
    for place, piece in enumerate(_merged(sentence)):
        if imagined(piece.text, sentence.language):
            return
        clause = _clause(unit, said, piece, sentence.language, context, follows=place > 0)
        if clause is None:
            continue
        yield clause


def _merged(sentence: Sentence) -> Iterator[Piece]:
    """The clauses that state something, with a time that was cut off in front of one: "Last week, I …", 上周，我…"""
    waiting: Piece | None = None
    for clause in sentence.clauses[: sentence.asks]:
        piece = clause
        if waiting:
            gap = piece.start - waiting.end
            # The words in between were a comma and perhaps a conjunction.
            joint = "，" if sentence.language == "zh" else ", "
            if gap <= 2:
                piece = Piece(waiting.text + joint[:gap].ljust(gap) + piece.text, waiting.start)
            waiting = None
        if _only_introduces(piece.text, sentence.language):
            waiting = piece
        else:
            yield piece
    if waiting:
        yield waiting


def _only_introduces(text: str, language: str) -> bool:
    if language == "zh":
        return len(text) <= 14 and chinese.only_time(text)
    return (
        len(text) <= 60
        and pattern("en", "introduces").match(text) is not None
        and not re.search(r"\b(?:i|we|my)\b(?! was\b| were\b| am\b|'m\b)", text, re.IGNORECASE)
    )


def _clause(unit: Unit, said: Said, piece: Piece, language: str, context: _Context, *, follows: bool) -> Clause | None:
    if language == "zh":
        read = chinese.parse(piece.text, chinese_verbs())
    else:
        read = english.parse(piece.text, follows=follows)
        if read.conditional and not read.past:
            return None
    me = label(said, language)
    about, subject = _who(read, me, language, context, follows=follows)
    statement = piece.text[read.text_at :]
    # "I have a meeting on Friday" speaks of the next one, "I had" and "I've had" of the last.
    ahead = read.future or not (read.past or read.perfect)
    times = times_in(statement, said.sent_at, ahead=ahead)
    dated = absolute(statement, times, language)
    content = _told(unit, dated, read, me, about, subject, language)
    context.about, context.subject = about, subject
    if about == "kin" and is_kin(read.noun, language):
        context.other = subject
        if read.name:
            context.names[read.name] = subject
    return Clause(
        said=said,
        start=piece.start + read.text_at,
        end=piece.start + len(piece.text),
        text=statement,
        language=language,
        about=about,
        subject=subject,
        noun=read.noun,
        verb=read.verb,
        rest=piece.text[read.rest_at :].strip(),
        chain=tuple(read.chain),
        negated=read.negated,
        ended=read.ended,
        begun=read.begun,
        past=read.past,
        perfect=read.perfect,
        progressive=read.progressive,
        future=read.future,
        doubtful=read.doubtful or (language == "en" and _DOUBT.search(piece.text) is not None),
        habitual=read.habitual,
        marked=read.marked,
        times=times,
        content=content,
    )


def _who(read: Parsed, me: str, language: str, context: _Context, *, follows: bool) -> tuple[str, str]:
    """Whom a clause is about; pronouns and left-out subjects go back to what was said before."""
    about = read.about
    if about == "pronoun":
        return ("kin", context.other) if context.other else ("other", "")
    if about == "named":
        known = context.names.get(read.name)
        return ("kin", known) if known else ("other", read.name)
    if about == "kin":
        return "kin", kin_label(me, read.noun, read.name, language) if is_kin(read.noun, language) else me
    if read.dropped and follows and context.about in ("kin", "we", "self"):
        return context.about, context.subject
    if about == "same" or (
        language == "zh" and read.dropped and (not read.verb or (follows and context.about == "other"))
    ):
        return ("other", me) if context.about in ("other", "nobody") else (context.about, context.subject)
    return about, me


def _told(unit: Unit, text: str, read: Parsed, me: str, about: str, subject: str, language: str) -> str:
    """The clause in the third person."""
    text = text.strip(" ,，、.。!！;；~～")
    group = group_label(unit, me, language)
    you = _you(unit, me, language)
    missing = read.dropped and about in ("self", "we", "kin")
    name = subject if missing and subject else me
    if missing and about == "we":
        name = group
    if language == "zh":
        if read.about == "pronoun" and about == "kin":
            text = re.sub("^(?:他们|她们|他|她|它)", subject, text, count=1)
        return voice_chinese.third_person(text, name, group, you, dropped=missing)
    if read.about in ("pronoun", "named") and about == "kin":
        text = _named(text, read, subject)
    return voice_english.third_person(text, name, group, you, dropped=missing)


def _named(text: str, read: Parsed, subject: str) -> str:
    """ "She's a nurse" with the name of whom it is about."""
    if read.about == "named":
        return text
    return re.sub(
        r"^(?:he|she|they|it)(?:'s|'re)?\b",
        lambda found: subject + (" is" if "'" in found[0] else ""),
        text,
        count=1,
        flags=re.IGNORECASE,
    )


def _you(unit: Unit, me: str, language: str) -> str | None:
    others = {said.speaker for said in unit.messages if said.speaker and said.role != "assistant"} - {me}
    if not others:
        return "助手" if language == "zh" else "the assistant"
    return next(iter(others)) if len(others) == 1 else None
