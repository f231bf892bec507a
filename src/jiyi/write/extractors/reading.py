"""Reads a unit: from messages to clauses that say who, what and how."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache

from ..drafts import Said, Unit
from . import chinese, english
from .clause import PERSONS, Clause
from .english_tokens import VERBS, Parsed
from .gate import corrected, fiction, hearsay, imagined, taken_back
from .lexicon import any_word, one_of, pattern, starts, words
from .moments import absolute, times_in
from .names import is_kin, kin_label, label
from .people import People, is_name, people_of, relations_in
from .rules import table
from .slots import is_standing
from .speech import Piece, Sentence, as_written, spoken
from .telling import told

LONGEST_HISTORY = 40  # messages
SILENT = frozenset(("system", "developer", "tool", "function"))
TABLES = ("facts", "preferences", "changes", "tasks", "decisions", "skills")
_DOUBT = re.compile(
    r"\b(?:maybe|perhaps|might|not sure (?:if|whether)|no idea (?:if|whether)|possibly|who knows)\b"
    r"|也许|说不定|没准|或许|可能[要会得]?",
    re.IGNORECASE,
)


_SAYS_MONTH = re.compile(r"[a-z]{3}|月", re.IGNORECASE)


@cache
def chinese_verbs() -> re.Pattern[str]:
    """The words that any table knows; the longest counts."""
    return one_of({verb for name in TABLES for verb in table(name, "zh").by_verb if verb} | words("zh", "verbs"))


@dataclass(slots=True)
class _Context:
    """What carries over from one clause to the next."""

    people: People
    subject: str = ""
    about: str = ""
    asked: str = ""  # the question before this message
    sentence: int = 0
    introduced: str = ""  # a being that the sentence has just spoken of for the first time
    day: datetime | None = None  # that was named last with its month
    end: int | None = None  # of the clause before, in the same sentence


def clauses_of(unit: Unit) -> list[Clause]:
    """Everything that the people of a unit state."""
    found: list[Clause] = []
    messages = unit.messages
    context = _Context(people_of(unit))
    for earlier in unit.history[-LONGEST_HISTORY:]:
        if earlier.role not in (*SILENT, "assistant"):
            _known_before(earlier, context.people)
    before = unit.history[-1] if unit.history else None
    for place, said in enumerate(messages):
        if said.role not in SILENT and (said.role != "assistant" or _accepted(messages[place + 1 : place + 2])):
            context.asked, context.day, context.introduced = _question(before, said), None, ""
            if not context.people.last_is_kin:
                context.people.last = ""
            found += _of_message(unit, said, context)
        before = said
    return found


def _known_before(said: Said, people: People) -> None:
    """Who was told to be somebody's in an earlier part of the conversation."""
    for sentence in spoken(said.text):
        for piece in sentence.clauses:
            for relation in relations_in(piece.text, sentence.language):
                me = label(said, sentence.language)
                people.belongs[relation.name] = kin_label(me, relation.noun, sentence.language)


def _question(before: Said | None, said: Said) -> str:
    """The question that a message answers: the last sentence of the message before, by somebody else."""
    if before is None or (before.role, before.speaker) == (said.role, said.speaker) or len(before.text) > 2_000:
        return ""
    last = before.text.strip()
    if not last.endswith(("?", "？")):
        return ""
    return re.split(r"(?<=[.!?。！？\n])\s*", last[:-1])[-1].strip() + last[-1]


def _accepted(answer: tuple[Said, ...]) -> bool:
    return (
        bool(answer) and answer[0].role != "assistant" and pattern("all", "accepts").match(answer[0].text) is not None
    )


def _of_message(unit: Unit, said: Said, context: _Context) -> list[Clause]:
    found: list[Clause] = []
    before: list[Clause] = []
    for number, sentence in enumerate(spoken(said.text)):
        whole = " ".join(clause.text for clause in sentence.clauses)
        if taken_back(whole):
            # "I'm a pilot. Just kidding!" takes back what stands before it.
            found = [clause for clause in found if clause not in before]
            continue
        if fiction(whole):
            before = []
            continue
        context.sentence = number
        if corrected(sentence.clauses[0].text) and found:
            # "… in June. No wait, in July": the last word counts.
            found.pop()
        before = _last_words(_of_sentence(unit, said, sentence, context))
        found += before
    return found


def _last_words(clauses: Iterable[Clause]) -> list[Clause]:
    """两年，哦不对，一年一回: what was taken back goes."""
    kept: list[Clause] = []
    for clause in clauses:
        if kept and corrected(clause.text):
            kept.pop()
        if not corrected(clause.text, whole=True):
            kept.append(clause)
    return kept


def _of_sentence(unit: Unit, said: Said, sentence: Sentence, context: _Context) -> Iterator[Clause]:
    context.about = ""
    whole = Piece(said.text[sentence.clauses[0].start : sentence.clauses[-1].end], sentence.clauses[0].start)
    if pattern(sentence.language, "procedures").search(whole.text) and sentence.asks == len(sentence.clauses):
        clause = _clause(unit, said, whole, sentence.language, context, follows=False)
        if clause:
            yield replace(clause, about="how")
        return
    context.end = None
    if len(sentence.clauses) > 1 and pattern(sentence.language, "said at the end").match(sentence.clauses[-1].text):
        return
    for place, said_piece in enumerate(_merged(sentence)):
        piece = _own_words(said_piece, sentence.language)
        if piece is None or imagined(piece.text, sentence.language):
            return
        clause = _clause(unit, said, piece, sentence.language, context, follows=place > 0)
        if clause is not None:
            yield clause
            context.end = clause.end
            if clause.about == "asked" and pattern("all", "to be written").search(clause.text):
                # 写一段自我介绍，就说我叫李雷: what is to stand in it.
                return


def _own_words(piece: Piece, language: str) -> Piece | None:
    """What stands before somebody else's word: "Sean starts in March and says it takes three weeks"."""
    at = hearsay(piece.text, language)
    if at is None:
        return piece
    before = _BEFORE_HEARSAY.match(piece.text, 0, at + 1)
    return Piece(before[1], piece.start) if before else None


_BEFORE_HEARSAY = re.compile(r"(.{12,}?)(?:,| and| but)+ (?:\w{0,12}\.? ){0,2}\w{0,12} ?$|(?!)", re.DOTALL)


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


def _without_names_called(piece: Piece, people: People) -> Piece:
    """ "Maria, I moved" and "I moved, Maria": whom somebody speaks to is no part of it."""
    text, start = piece.text, piece.start
    first = re.match(r"(\w+)[,，!！]\s*", text)
    if first and first[1] in people.present:
        text, start = text[first.end() :], start + first.end()
    last = re.search(r"[,，]\s*(\w+)[.!。！]*$", text)
    if last and last[1] in people.present:
        text = text[: last.start()]
    return Piece(text, start)


def _clause(unit: Unit, said: Said, whole: Piece, language: str, context: _Context, *, follows: bool) -> Clause | None:
    piece = _without_names_called(whole, context.people)
    if language == "zh":
        read = _chinese(piece.text, context.people)
    else:
        read = english.parse(piece.text, follows=follows)
        if read.conditional and not read.past:
            return None
    me = label(said, language)
    about, subject = _who(read, me, language, context, follows=follows)
    if context.introduced and read.dropped and _OF_IT.match(piece.text):
        # 我养了只猫，叫豆腐: not the speaker is called so.
        about, subject = "kin", context.introduced
    statement = piece.text[read.text_at :]
    # "I have a meeting on Friday" speaks of the next one, "I had" and "I've had" of the last.
    # 五月要生宝宝了 is still to come, whatever 了 says.
    ahead = read.future or "plan" in read.chain or not (read.past or read.perfect)
    again = read.habitual or is_standing(statement, language)
    times = () if again else times_in(statement, said.sent_at, ahead=ahead, named_last=context.day)
    context.day = next(
        (span.start for span in times if span.grain == "day" and _SAYS_MONTH.search(span.text)), context.day
    )
    content, bare = told(unit, absolute(statement, times, said.sent_at, language), read, me, about, subject, language)
    if language == "zh":
        content, bare = (as_written(line, said.text) for line in (content, bare))
    _remember(context, read, statement, me, about, subject, language)
    return Clause(
        said=said,
        start=piece.start + read.text_at,
        end=piece.start + len(piece.text),
        text=statement,
        language=language,
        about=about,
        speaker=me,
        subject=subject,
        noun=read.noun,
        verb="" if about == "other" and language == "en" and read.verb not in VERBS else read.verb,
        rest=_rest(piece.text[read.rest_at :].strip(" ,.!;，。！；~～"), read.topic),
        chain=tuple(read.chain),
        negated=read.negated,
        ended=read.ended,
        begun=read.begun,
        past=read.past,
        perfect=read.perfect,
        progressive=read.progressive,
        future=read.future,
        doubtful=read.doubtful or _DOUBT.search(piece.text) is not None,
        habitual=read.habitual,
        marked=read.marked,
        times=times,
        content=content,
        bare=bare,
        answers=context.asked if about in ("other", "thing") else "",
        sentence=context.sentence,
        to_assistant=len(context.people.present) <= 1,
        parted=_parted(statement, context.people),
        joint="" if context.end is None else said.text[context.end : piece.start + read.text_at],
    )


_PARTS = re.compile(r"\b(?:broke up|split up|separated|divorced)\b|分手|离婚|离了|分了", re.IGNORECASE)


def _parted(text: str, people: People) -> tuple[str, str] | None:
    """Whom somebody is no longer with: who that was to them, and the name."""
    if not people.belongs or not _PARTS.search(text):
        return None
    return next(((whose, name) for name, whose in people.belongs.items() if name in text), None)


def _chinese(text: str, people: People) -> Parsed:
    """In Chinese nothing marks a name: only those that were heard before are known."""
    read = chinese.parse(text, chinese_verbs())
    name = next((name for name in (*people.present, *people.belongs) if text.startswith(name)), None)
    if name is None or not read.dropped or len(name) == len(text):
        return read
    after = chinese.parse(text[len(name) :], chinese_verbs())
    if not after.dropped or not (after.verb or after.chain):
        return read
    after.about, after.name, after.dropped = "named", name, False
    after.text_at, after.rest_at = 0, after.rest_at + len(name)
    return after


def _rest(rest: str, topic: str) -> str:
    """What the verb is about; in 咖啡我不喝了 that stands in front."""
    return topic if topic and not rest.strip("了吧的。！啊呢") else rest


_OF_IT = re.compile(
    "(?:它|他|她)?的?(?:名字)?叫|名叫|名字|取名|起名|(?:今年|才|刚|快|已经)*[\\d一二三四五六七八九十两半]+(?:岁|个月|周岁)|[公母]的"
)


@cache
def _introduces() -> re.Pattern[str]:
    """我养了只猫, 家里有个儿子"""
    beings = any_word("zh", "pets").pattern + "|" + any_word("zh", "bare kin").pattern
    brought = "(?:养|有|领养|收养|捡|买|生|抱)[了过着到]?[^，。]{0,8}?"
    return re.compile(f"{brought}(?P<noun>{beings})(?:了|啦)?[。！!~]*$")


_PASSING = re.compile("[\\u4e00-\\u9fff]{1,3}了")


def _remember(context: _Context, read: Parsed, text: str, me: str, about: str, subject: str, language: str) -> None:
    """Who was spoken of, for the pronouns that follow."""
    people = context.people
    if language == "zh" and about == "thing" and not read.verb and _PASSING.fullmatch(text):
        # 天冷了，改坐公交上班: the second is about the speaker again.
        about, subject = "self", me
    context.about, context.subject = about, subject
    if language == "zh" and (new := _introduces().search(text)):
        context.introduced = kin_label(me, new["noun"], language)
    for relation in relations_in(text, language):
        people.last, people.last_is_kin = kin_label(me, relation.noun, language), True
        people.belongs[relation.name] = people.last
    if about == "kin" and read.about != "pronoun" and (is_kin(read.noun, language) or read.about == "named"):
        people.last, people.last_is_kin = subject, True
    elif about == "named" and (read.name in people.belongs or read.name in people.present):
        people.last, people.last_is_kin = subject, False
    elif language == "zh" and about in ("other", "thing") and 2 <= len(text) <= 3 and is_name(text):
        # 郝敏，她是…
        people.last = text


def _who(read: Parsed, me: str, language: str, context: _Context, *, follows: bool) -> tuple[str, str]:
    """Whom a clause is about; pronouns and left-out subjects go back to what was said before."""
    if read.about in ("pronoun", "named", "kin"):
        return _somebody_else(read, me, language, context.people)
    if read.dropped and follows and context.about in PERSONS:
        return context.about, context.subject
    if read.dropped and follows and context.about in ("other", "thing") and language == "zh":
        # 医生姓欧阳，开了药: still about the doctor.
        return context.about, me
    if read.about == "same" or (read.dropped and not read.verb and not read.chain and language == "zh"):
        return "thing" if read.dropped else "other", me
    return read.about, me


def _somebody_else(read: Parsed, me: str, language: str, people: People) -> tuple[str, str]:
    if read.about == "pronoun":
        thing = read.noun in ("it", "它") and not people.last.endswith(starts(language, "pets"))
        return ("kin", people.last) if people.last and not thing and read.noun != "they" else ("other", "")
    if read.about == "named" and read.name.lower() in words("en", "bare kin"):
        return "kin", kin_label(me, read.name.lower(), language)
    if read.about == "named":
        known = (
            read.name in people.belongs
            or read.name in people.present
            or read.name.split(maxsplit=1)[0] in people.names
            or " " in read.name
        )
        return ("named", read.name) if known else ("thing", me)
    if "'s " in read.noun and read.noun.rsplit(maxsplit=1)[-1] not in words("en", "properties"):
        # "my neighbour's battery"
        return "other", me
    owner = read.noun.partition("'s ")[0]
    whose = owner if "'s " in read.noun and is_kin(owner, language) else read.noun
    return "kin", kin_label(me, whose, language) if is_kin(whose, language) else me
