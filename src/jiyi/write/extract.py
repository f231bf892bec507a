"""The built-in extractor: every statement worth remembering, in the speaker's own words.

A memory is a sentence of a message (with those that depend on it), with the times that it names as data. Its type comes
from the classifier, its slot from a table of single-valued attributes. Only people state facts: messages of assistants,
tools and unknown roles are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise

from pydantic import JsonValue

from .. import threads
from ..languages import cue, names_user, sentences
from ..languages.recurrence import recurrences
from ..roles import is_person
from .classify import Classification, classify
from .drafts import COMPARED, Draft, Evidence, Extracted, Said, Unit
from .own_words import is_own
from .slots import SlotValue, self_introduced, slot_values
from .when import Time, resolve, when_data

VERSION = "builtin-2"
LONGEST_CORRECTION = 60
SURE_CORRECTION = 0.4
RUN_ON = 3  # clauses about different things that are no sentence any more
A_MOMENT = timedelta(minutes=15)

# The type of a memory, by the kind of its statement.
TYPES = {
    "fact": "fact", "decision": "fact", "change": "fact", "end": "fact", "correction": "fact",
    "preference": "preference", "instruction": "preference", "plan": "task", "event": "event",
}  # fmt: skip
IMPORTANCE = {"instruction": 0.7, "preference": 0.65, "decision": 0.65, "plan": 0.6, "event": 0.5}
_MOVED = re.compile(
    r"\b(?:moved|postponed|pushed|rescheduled|delayed|deadline|due|by)\b|推迟|改到|延期|提前|截止|之前", re.IGNORECASE
)
_CLAUSE = re.compile(r"[,;，；。.!！](?=\D)|\s(?=(?:and|but) I\b)")
_OTHER_CLAUSE = re.compile(
    r"[,;]? (?:and|but) (?=(?:my|our|I|I'm|I've|the [\w ]{2,20} (?:is|are))\b)|[，；](?=我[的家]?(?!们?也))"
    r"|[,;]? (?:and|but) (?=(?:am|work|study|teach|live|have|own|drive|speak|play|love|like|hate|prefer)\b)"
    r"|[，；](?=(?:今年|平时|现在|每[天周年]|还|也)?(?:住在?|在.{1,12}(?:上班|工作|上学|读书|当|做)|[有养](?:了|着)?[一两三四个只]|喜欢|不喜欢|爱|对.{1,8}过敏))"
)
_BARE_VERB = re.compile(r"(?!my |our |[Ii]\b|the )[a-z]+ ")
_FIRST_PERSON = re.compile(r"I\b(?!['’])|I['’]m\b", re.IGNORECASE)
_QUESTION = re.compile(r"[?？]\W*$")
_PLAIN_KINDS = ("fact", "preference", "plan", "event", "decision", "instruction")


class BuiltinExtractor:
    """Extracts without a language model."""

    id = "builtin"

    async def __call__(self, unit: Unit, /) -> Extracted:
        left, cut = {said.id for said in unit.messages}, set[str]()
        size = sum(min(len(said.text), MAX_READ) for said in unit.messages)
        drafts = await threads.run(size, extract, unit, left, cut)
        late = "some messages are kept verbatim only: reading all of them took too much CPU time"
        long = f"of long messages only the first {MAX_STATEMENTS} statements or {MAX_READ:,} characters were read"
        return Extracted(drafts=tuple(drafts), problems=(*([late] if left else ()), *([long] if cut else ())))


def extract(unit: Unit, left: set[str] | None = None, cut: set[str] | None = None) -> list[Draft]:
    """Return drafts of the statements in a unit that are worth remembering.

    With `left`, messages that were read leave it, and reading stops in time; `cut` gets those with too many statements.
    """
    found: list[Draft] = []
    earlier = list(unit.history)
    for said in unit.messages:
        for draft in _of_message(said, earlier, cut) if is_person(said.role) else ():
            if left is not None and threads.is_over():
                return found
            found.append(draft)
        if left is not None:
            left.discard(said.id)
        earlier.append(said)
    return found


def _of_message(said: Said, earlier: Sequence[Said], cut: set[str] | None) -> Iterator[Draft]:
    found = statements(said.text, "user")
    if cut is not None and found and said.text[found[-1].end :].strip():
        cut.add(said.id)
    for at, one in enumerate(found):
        corrected = _corrected(one, said, earlier) if at == 0 else None
        if corrected is not None:
            yield _correction(one, said, corrected)
        elif _QUESTION.search(one.text):
            continue
        elif one.found.salience >= (WORTH_ASKING if cue("instruction").search(one.text) else WORTH):
            for part in split_by_slots(one):
                yield _draft(part, said, earlier[-1].id if earlier and at == 0 else None)


def statement_type(text: str) -> str:
    """Return the type of a text that is one memory: that of its statements, or a fact if they differ or it has none.

    >>> statement_type("I prefer window seats"), statement_type("门禁码 4711")
    ('preference', 'fact')
    """
    worth = [one for one in statements(text, "user") if one.found.salience >= WORTH]
    found = {_type(*part) for one in worth for part in split_by_slots(one)}
    return found.pop() if len(found) == 1 else "fact"


def _corrected(one: Statement, said: Said, earlier: Sequence[Said]) -> Said | None:
    """Return the message that a short correction ("no wait, 81") is about: the speaker's last one, a moment ago."""
    if len(one.text) > LONGEST_CORRECTION or one.found.probability("correction") < SURE_CORRECTION:
        return None
    if not is_own(said.text, one.start):
        return None
    own = [other for other in earlier[-3:] if is_person(other.role) and other.speaker == said.speaker]
    if not own or said.sent_at - own[-1].sent_at > A_MOMENT:
        return None
    if len(own[-1].text) > COMPARED or classify(own[-1].text, "user").salience < WORTH:
        return None
    return own[-1]


def corrected_message(said: Said, earlier: Sequence[Said]) -> Said | None:
    """Return the message that another one corrects."""
    first = next(iter(statements(said.text, "user")), None) if is_person(said.role) else None
    return None if first is None else _corrected(first, said, earlier)


def _correction(one: Statement, said: Said, corrected: Said) -> Draft:
    """Return a draft of a correction together with the text that it corrects."""
    slots = slot_values(corrected.text)
    slot = replace(slots[0], value=one.text, ended=False) if len(slots) == 1 else None
    draft = _draft((one, slot), said, None)
    times = [*resolve(corrected.text, corrected.sent_at), *resolve(one.text, said.sent_at)]
    return replace(
        draft,
        content=f"{corrected.text} {draft.content}",
        evidence=(Evidence(message_id=corrected.id), *draft.evidence),
        # It goes when either message is deleted.
        data={**draft.data, **when_data(times), "kind": "correction", "joined": True},
    )


def split_by_slots(one: Statement) -> Iterator[tuple[Statement, SlotValue | None]]:
    """Cut a statement of several attributes into one clause for each, if that is possible."""
    if introduction := self_introduced(one.text):
        for text, (start, end) in introduction:
            part = Statement(text, one.start + start, one.start + end, classify(text, "user"), one.dependent)
            yield part, next(iter(slot_values(text)), None)
        return
    found = slot_values(one.text)
    if len(found) <= 1:
        parts = split_clauses(one)
        if any(slot for _, slot in parts) or len(parts) >= RUN_ON:
            yield from parts
        else:
            yield one, found[0] if found else None
        return
    if (parts := split_clauses(one)) and all(len(slot_values(part.text)) <= 1 for part, _ in parts):
        yield from parts
        return
    starts = [0, *(cut.end() for cut in _CLAUSE.finditer(one.text)), len(one.text)]
    clauses = [(a, b) for a, b in pairwise(starts) if any(map(str.isalnum, one.text[a:b]))]
    by_clause = [slot_values(one.text[a:b]) for a, b in clauses]
    if any(len(values) > 1 for values in by_clause) or sum(map(len, by_clause)) != len(found):
        yield one, None  # nothing ends a statement of which a part may still hold
        return
    begin = 0
    for at, ((_, end), values) in enumerate(zip(clauses, by_clause, strict=True)):
        later = any(by_clause[at + 1 :])
        if (values and later) or at == len(clauses) - 1:
            text = re.sub(r"^\W*(?:and|but)\s", "", one.text[begin:end]).strip(" ,，;；")
            start = one.text.index(text, begin)
            own = slot_values(text)
            yield (
                Statement(text, one.start + start, one.start + start + len(text), one.found, one.dependent),
                (own[0] if len(own) == 1 else None),
            )
            begin = end


def _clause_starts(text: str) -> list[int]:
    """Return where the clauses of a sentence begin that are about something else than the one before."""
    starts = {cut.end() for pattern in (_OTHER_CLAUSE, cue("next_claim")) for cut in pattern.finditer(text)}
    begin = 0
    for cut in cue("comma_splice").finditer(text):
        if cue("main_clause").match(text, begin, cut.start()):
            starts.add(cut.end())
            begin = cut.end()
    return sorted(starts)


def split_clauses(one: Statement, least: float | None = None) -> list[tuple[Statement, SlotValue | None]]:
    """Cut a statement where a clause about something else begins, if the salience of each part is at least `least`, by
    default that of a memory."""
    least = WORTH if least is None else least
    starts = _clause_starts(one.text)
    if not starts:
        return []
    own = [part.found.salience >= least for part, _ in _cut_at(one, starts)]
    # What says too little by itself stays with the clause before it.
    starts = [start for at, start in enumerate(starts, 1) if own[at] and (at > 1 or own[0])]
    parts = _cut_at(one, starts)
    return parts if len(parts) > 1 and all(part.found.salience >= least for part, _ in parts) else []


def _cut_at(one: Statement, starts: Sequence[int]) -> list[tuple[Statement, SlotValue | None]]:
    parts: list[tuple[Statement, SlotValue | None]] = []
    read = ""
    for begin, following in pairwise([0, *starts, len(one.text)]):
        text = re.sub(r"(?<![,;，；\s])(?:[,;，；\s]|\b(?:and|but))+$", "", one.text[begin:following])
        end = begin + len(text)
        # The subject is said once for all clauses.
        dropped = _HAN.match(text) and cue("no_subject").match(one.text)
        chinese = not text.startswith("我") and ((begin and one.text.startswith("我")) or dropped)
        subject = "我" if chinese else "I " if begin and _BARE_VERB.match(text) and _FIRST_PERSON.match(read) else ""
        read = subject + text
        part = Statement(text, one.start + begin, one.start + end, classify(read, "user"), one.dependent)
        own = slot_values(read)
        parts.append((part, own[0] if own else None))
    return parts


def _draft(part: tuple[Statement, SlotValue | None], said: Said, follows: str | None) -> Draft:
    one, slot = part
    kind = one.found.kind if one.found.kind in TYPES else _plain_kind(one.found)
    future = _future(one, kind)
    times = resolve(one.text, said.sent_at, future=future)
    occurred_at = _occurred_at(times, said.sent_at, future=future)
    data: dict[str, JsonValue] = {"extractor": VERSION, "kind": kind, "speaker": said.speaker, **when_data(times)}
    if one.dependent and follows:
        data["follows"] = follows  # by id: the text of another message must go when that is deleted
    return Draft(
        memory_type=_type(one, slot),
        content=one.text,
        evidence=(Evidence(message_id=said.id, start=one.start, end=one.end),),
        occurred_at=said.sent_at if slot else occurred_at,
        valid_from=said.sent_at,
        subject=said.speaker or "user" if slot is None or slot.subject is None else slot.subject,
        owner=said.speaker or "user" if slot is not None and slot.is_relative else None,
        attribute=slot.slot if slot else None,
        value=slot.value if slot else None,
        single=slot is not None and not slot.ended,
        ended=slot is not None and slot.ended,
        replaces=slot.replaces if slot else None,
        importance=round(max(IMPORTANCE.get(kind, 0.6), 0.3) * (0.6 + 0.4 * one.found.salience), 2),
        confidence=round(one.found.salience, 2),
        data={name: value for name, value in data.items() if value is not None},
    )


def _type(one: Statement, slot: SlotValue | None) -> str:
    """Return the type of a statement's memory."""
    if slot is not None:
        return "fact"
    ends = one.found.kind not in TYPES or one.found.kind in ("change", "end", "correction")
    memory_type = TYPES[_plain_kind(one.found) if ends else one.found.kind]
    return "pattern" if memory_type == "fact" and _is_routine(one.text) else memory_type


def _is_routine(text: str) -> bool:
    return cue("routine").search(text) is not None or any(time.sure for time in recurrences(text))


def _plain_kind(found: Classification) -> str:
    return max(_PLAIN_KINDS, key=found.probability)


def times_in(text: str, sent_at: datetime) -> list[Time]:
    """Return the times that a whole message names, statement by statement."""
    if not resolve(text, sent_at, future=True) and not resolve(text, sent_at, future=False):
        return []
    found = ((one, _future(one, one.found.kind)) for one in statements(text, "user"))
    return [time for one, future in found for time in resolve(one.text, sent_at, future=future)]


def _future(one: Statement, kind: str) -> bool | None:
    """Return where the undated times of a statement lie: ahead, behind, or None if that is open."""
    ahead, behind = one.found.probability("plan"), one.found.probability("event")
    if kind == "plan" or _MOVED.search(one.text):
        return True
    if kind == "event":
        return False
    return None if max(ahead, behind) < 0.15 else ahead > behind


def _occurred_at(times: Sequence[Time], said_at: datetime, *, future: bool | None) -> datetime:
    """Return the first time that a plan or event names, or when it was said."""
    starts = (time.start for time in times if time.start is not None)
    return next((start for start in starts if future is not None and (start >= said_at) == future), said_at)


WORTH = 0.45  # salience from which a statement becomes a memory
WORTH_ASKING = 0.35  # the same for words that ask how to answer or address the user
MAX_STATEMENTS, MAX_READ = 200, 30_000  # statements of one message, and characters up to which they begin
LONGEST = 600  # characters of a statement; a longer one is text that was pasted

_DEPENDENT = re.compile(
    r"^\W*(?:(?:he|she|it|they|him|her|them|this|that|these|those|there|then|so|but|and|or|well|because|also|which"
    r"|though|although|however|instead|otherwise|actually|it's|its|that's|he's|she's|they're|there's|just kidding|jk"
    r"|not really|sorry|no wait|i mean|wait)\b|[他她它]|这[个次样里是]?|那[个次样里是]?|所以|但|不过|然后|而且|其实"
    "|因为|而|还有|开玩笑|不对|不是|就是|除了)",
    re.IGNORECASE,
)
# However short, it has a subject, a verb and what the verb is about.
_COMPLETE = re.compile(r"(?:I|I'm|I’m|We|My|Our) \w+ \w|(?:I'm|I’m) (?:an? )?[\w-]{2}|我(?!也|们也|知道|觉得).{3}")
_WORDS = re.compile(r"[^\W\d_]+|\d+")
_HAN = re.compile(r"[\u4e00-\u9fff]")
_PRONOUN = re.compile(r"\b(?:he|she|him|her|his|they|them|their|there|it)\b|[他她它]", re.IGNORECASE)
_NAME = re.compile(r"\b[A-Z][a-z]+")


@dataclass(frozen=True, slots=True)
class Statement:
    """A part of a message, `start` to `end`, and what the classifier says of it."""

    text: str
    start: int
    end: int
    found: Classification
    dependent: bool  # it refers to what was said before it


def is_dependent(sentence: str) -> bool:
    """Return True if a sentence needs the one before it to be understood."""
    short = len(_HAN.findall(sentence)) + 2 * len(_WORDS.findall(_HAN.sub(" ", sentence))) <= 6
    complete = _COMPLETE.match(sentence) or cue("short_complete").match(sentence)
    return (short and not complete) or refers_back(sentence)


def refers_back(sentence: str) -> bool:
    """Return True if a sentence names something only by a pronoun, or goes on with the one before."""
    named = _NAME.search(sentence[1:]) or names_user(sentence)
    return bool(_DEPENDENT.match(sentence)) or bool(_PRONOUN.search(sentence) and not named)


def _short(text: str, spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Cut sentences that are too long at a space, so that no step takes more time than a short text needs."""
    for first, end in spans:
        start = first
        while end - start > LONGEST:
            space = max(text.rfind(mark, start + LONGEST // 2, start + LONGEST) for mark in " ，,、")
            cut = space + 1 if space > 0 else start + LONGEST
            yield start, cut
            start = cut
        yield start, end


def statements(text: str, role: str) -> list[Statement]:
    """Cut a message into statements and classify each."""
    text = text[: MAX_READ + LONGEST]
    parts: list[tuple[int, int, bool]] = []
    for start, end in _short(text, sentences(text)):
        dependent = is_dependent(text[start:end])
        if parts and dependent and end - parts[-1][0] <= LONGEST and not text[start:end].endswith(("?", "？")):
            before = text[parts[-1][0] : parts[-1][1]]
            if not before.endswith(("?", "？")) and classify(before, role).salience >= WORTH:
                parts[-1] = (parts[-1][0], end, parts[-1][2])
                continue
        parts.append((start, end, dependent))
        if len(parts) > MAX_STATEMENTS or end > MAX_READ:
            break
    return [
        Statement(text[start:end], start, end, classify(text[start:end], role), dependent)
        for start, end, dependent in parts
    ]
