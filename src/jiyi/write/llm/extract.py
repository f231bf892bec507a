"""Extract memories and episodes from a unit with a language model, and check each against the messages."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue, ValidationError

from ...errors import LlmBadReply
from ...languages.dates import TimeSpan
from ...languages.terms import exact_hash
from ...llm import Usage
from ...llm.client import LLMClient
from ...llm.json_reply import read_object
from ...llm.keywords import words_in_text
from ...roles import is_person, role_kind
from ..drafts import Draft, Evidence, Extracted, Known, Said, Unit
from ..extract import corrected_message, extract
from .dates import correct_dates, resolve_day
from .grounding import (
    Grounding,
    NotMeant,
    Ungrounded,
    Unsupported,
    contains,
    languages_of,
    said_by_people,
    well_formed,
)
from .retold import check_attributions, check_wording, is_advice, share_said
from .schema import EPISODES, MEMORIES, ProposedEpisode, ProposedMemory
from .spoken import beginnings
from .transcript import LABELS, Transcript, render_known, transcript
from .values import plain_value

SCHEMAS: dict[str, dict[str, Any]] = {"memories": MEMORIES, "episodes": EPISODES}
NO_USAGE = Usage()
MIN_EPISODE = 3  # messages
REFUSED_ATTEMPTS = 2  # for a well-formed reply of which the checks accept nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmDrafts:
    """Drafts of a model for a unit. `problems`: what was rejected or is missing, for the receipt."""

    drafts: tuple[Draft, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    problems: tuple[str, ...] = ()
    unusable: frozenset[str] | None = frozenset()  # messages of rejected memories; None: the reply is damaged
    usage: Usage = NO_USAGE


async def llm_drafts(unit: Unit, llm: LLMClient) -> LlmDrafts:
    """Return the valid drafts. Raise `LlmError`; `temporary` says if a retry can help. A reply without a valid draft is
    an error too, so that the caller knows why there is nothing."""
    conversation = transcript(unit)
    if conversation is None:
        return LlmDrafts()
    tasks = ["memories"] if len(conversation.messages) < MIN_EPISODE else ["memories", "episodes"]
    answers = await asyncio.gather(*(_ask(task, conversation, unit, llm) for task in tasks), return_exceptions=True)
    found, problems = _parts(answers)
    drafts = [draft for part in found for draft in part.drafts]
    if found[0].problems:  # memories come first
        drafts += await asyncio.to_thread(_from_rules, unit, drafts, found[0].unusable)
    drafts += await asyncio.to_thread(_corrected, unit, drafts)
    return LlmDrafts(
        drafts=tuple(drafts),
        rejected=tuple(one for part in found for one in part.rejected),
        problems=(*conversation.notes, *problems),
        usage=sum((part.usage for part in found), NO_USAGE),
    )


def _parts(answers: Sequence[LlmDrafts | BaseException]) -> tuple[list[LlmDrafts], list[str]]:
    """Separate results and problems. A bad reply with episodes is only reported; any other failure is raised."""
    found, problems = [], []
    for at, answer in enumerate(answers):
        if isinstance(answer, LlmBadReply) and at > 0:
            problems.append(str(answer))
        elif isinstance(answer, BaseException):
            raise answer
        else:
            found.append(answer)
            problems += answer.problems
    return found, problems


def _from_rules(unit: Unit, drafts: Sequence[Draft], unusable: frozenset[str] | None) -> list[Draft]:
    """Extract with the rules from messages of rejected memories, or from all if the reply is damaged (None), unless
    drafts cover them: a bad reply loses no fact, and what a model left out on purpose stays out."""
    covered = {proof.message_id for draft in drafts if draft.memory_type != "episode" for proof in draft.evidence}
    found = [(draft, {proof.message_id for proof in draft.evidence}) for draft in extract(unit)]
    return [draft for draft, ids in found if not covered & ids and (unusable is None or unusable & ids)]


def _corrected(unit: Unit, drafts: Sequence[Draft]) -> list[Draft]:
    """Return statements that were corrected a moment later, as memories that have ended: a model remembers only the
    correction, and the first message would still look true."""
    covered = {proof.message_id for draft in drafts if draft.memory_type != "episode" for proof in draft.evidence}
    found = []
    for at, said in enumerate(unit.messages):
        wrong = corrected_message(said, (*unit.history, *unit.messages[:at])) if said.id in covered else None
        if wrong is None or wrong.sent_at >= said.sent_at:
            continue
        data: dict[str, JsonValue] = {"extractor": "correction"}
        if wrong.speaker is not None:
            data["speaker"] = wrong.speaker
        found.append(
            Draft(
                memory_type="fact",
                content=wrong.text,
                evidence=(Evidence(message_id=wrong.id),),
                occurred_at=wrong.sent_at,
                valid_to=said.sent_at,
                data=data,
            )
        )
    return found


async def _ask(task: str, conversation: Transcript, unit: Unit, llm: LLMClient) -> LlmDrafts:
    prompt = llm.prompts.get(task, conversation.language)
    known = {"known": render_known(unit.known, conversation.language)} if task == "memories" else {}
    request = prompt.request(
        SCHEMAS[task],
        **known,
        conversation=conversation.text,
        earlier=conversation.earlier,
        participants=("、" if conversation.language == "zh" else ", ").join(conversation.participants),
    )
    reply = await llm.ask(request, user_id=unit.user_id, epoch=unit.epoch)
    read = read_object(reply.text, task)
    made_by: dict[str, JsonValue] = {"extractor": "llm", "model": llm.id, "prompt": prompt.version}
    checker = Checker(conversation, unit.history, made_by, unit.known)
    drafts, rejected = await asyncio.to_thread(getattr(checker, task), read.value[task])
    rejected += [Rejected("wrong shape: unreadable", "")] * read.damaged
    problems = [summary_of(rejected, len(drafts))] if rejected else []
    if reply.cut_off or read.cut_off:
        problems.append(f"the reply was cut off: {len(drafts)} {task} before that were kept, more may be missing")
    sane = rejected and all(one.quoted for one in rejected)  # another reply would be no better
    if problems and not drafts and not (sane and not (reply.cut_off or read.cut_off)):
        sound = not any(one.reason == "repeats itself" or one.reason.startswith("wrong shape") for one in rejected)
        complete = sound and not (reply.cut_off or read.cut_off)
        raise LlmBadReply("; ".join(problems), most_attempts=REFUSED_ATTEMPTS if complete else None)
    mostly_wrong = sum(not one.quoted for one in rejected) > len(drafts)
    damaged = reply.cut_off or read.cut_off or read.damaged or mostly_wrong
    damaged = damaged or any(one.message_id is None for one in rejected)
    return LlmDrafts(
        drafts=tuple(drafts),
        rejected=tuple(rejected),
        problems=tuple(problems),
        unusable=None if damaged else frozenset(one.message_id for one in rejected if one.message_id),
        usage=reply.usage or NO_USAGE,
    )


class LlmExtractor:
    """An extractor that uses a language model."""

    def __init__(self, llm: LLMClient) -> None:
        self._llm = llm
        self.id = llm.id

    async def __call__(self, unit: Unit, /) -> Extracted:
        found = await llm_drafts(unit, self._llm)
        return Extracted(drafts=found.drafts, problems=found.problems)


MAX_PER_MESSAGE = 4
ADVICE_SHARE = 0.5  # of the words of an advice that the assistant said
MAX_EXTRA = 8
SHOWN = 5  # reasons listed in a problem
MOST_TAGS, LONGEST_TAG = 3, 24

# Attribute of a model → slot of the built-in extractor, so that one can supersede the other's; and whether the slot
# has a single value, so that a new value supersedes the old one.
ATTRIBUTES: dict[str, tuple[str, bool]] = {
    "name": ("name", True),
    "birthday": ("birthday", True),
    "age": ("age", True),
    "home": ("home", True),
    "origin": ("hometown", True),
    "job": ("job", True),
    "employer": ("employer", True),
    "diet": ("diet", True),
    "education": ("education", False),
    "language": ("language", False),
    "family": ("family", False),
    "partner": ("family", False),
    "child": ("family", False),
    "pet": ("pet", False),
    "friend": ("friend", False),
    "health": ("health:{value}", False),
    "allergy": ("allergy", False),
    "likes": ("likes:{value}", True),
    "dislikes": ("likes:{value}", True),
    "hobby": ("hobby:{value}", False),
    "tool": ("uses", False),
    "project": ("project", False),
    "goal": ("goal", False),
    "plan": ("plan", False),
    "decision": ("decision", False),
    "habit": ("habit:{value}", False),
    "possession": ("owns:{value}", False),
    "contact": ("contact", False),
}
TASTES = ("likes", "dislikes")  # the thing is part of the slot, and the value is the taste

# An assistant or a tool can be the source of a skill, but not of facts about a person.
ANY_SOURCE = frozenset({"skill"})


@dataclass(frozen=True, slots=True)
class Rejected:
    """A rejected proposal."""

    reason: str
    text: str
    message_id: str | None = None  # that it quotes or cites, if any
    quoted: bool = False  # its quote was said, but it says something else


def summary_of(rejected: Sequence[Rejected], kept: int) -> str:
    """Summarise rejected proposals in one line for a receipt."""
    counted = Counter(one.reason.partition(":")[0] for one in rejected).most_common(SHOWN)
    reasons = ", ".join(f"{reason} ({count})" if count > 1 else reason for reason, count in counted)
    return f"{len(rejected)} of {len(rejected) + kept} memories of the language model were rejected: {reasons}"


def _tags(proposed: Sequence[str]) -> tuple[str, ...]:
    """Return short topics; a sentence is no tag."""
    plain = (" ".join(one.split()).strip("#") for one in proposed)
    return tuple(dict.fromkeys(one for one in plain if one and len(one) <= LONGEST_TAG))[:MOST_TAGS]


class Checker:
    """Checks the proposals for a unit."""

    def __init__(
        self,
        transcript: Transcript,
        history: Sequence[Said],
        made_by: dict[str, JsonValue],
        known: Sequence[Known] = (),
    ) -> None:
        self._transcript = transcript
        self._known = known
        self._grounding = Grounding(transcript, history, known)
        self._made_by = made_by
        self._people = {name.casefold(): name for name in transcript.participants}
        for words in LABELS.values():
            self._people.setdefault(words["user"].casefold(), LABELS[transcript.language]["user"])
        self._people.setdefault("user", LABELS[transcript.language]["user"])

    def memories(self, proposals: Any) -> tuple[list[Draft], list[Rejected]]:
        return self._each(proposals, "memories", "text", self._memory)

    def episodes(self, proposals: Any) -> tuple[list[Draft], list[Rejected]]:
        return self._each(proposals, "episodes", "content", self._episode)

    def _each(
        self, proposals: Any, what: str, shown: str, check: Callable[[dict[str, Any]], Draft]
    ) -> tuple[list[Draft], list[Rejected]]:
        if not isinstance(proposals, list):
            raise LlmBadReply(f"the reply's {what} are not a list but {type(proposals).__name__}")
        most = MAX_EXTRA + MAX_PER_MESSAGE * len(self._transcript.messages)
        if len(proposals) > most:
            raise LlmBadReply(f"the reply has {len(proposals):,} {what} for {len(self._transcript.messages)} messages")
        drafts: dict[str, Draft] = {}
        rejected: list[Rejected] = []
        for proposal in proposals:
            text = str(proposal.get(shown, "") if isinstance(proposal, dict) else proposal)[:200]
            try:
                draft = check(proposal)
                if drafts.setdefault(exact_hash(draft.content), draft) is not draft:
                    raise Unsupported("duplicate")
            except Unsupported as error:
                quoted = isinstance(error, Ungrounded)
                rejected.append(Rejected(str(error), text, self._cited(proposal), quoted=quoted))
            except ValidationError as error:
                rejected.append(Rejected(f"wrong shape: {_first(error)}", text))
        return list(drafts.values()), rejected

    def _cited(self, proposal: dict[str, Any]) -> str | None:
        """Return the first message that a proposal cites."""
        numbers = proposal.get("messages")
        number = numbers[0] if isinstance(numbers, list) and numbers else None
        there = isinstance(number, int) and 0 < number <= len(self._transcript.messages)
        return self._transcript.messages[number - 1].id if there and number is not None else None

    def _memory(self, proposal: dict[str, Any]) -> Draft:
        found = ProposedMemory.model_validate(proposal)
        cited = self._grounding.sources(found.messages)
        where, proof = self._grounding.quoted(found.quote, cited)
        cited = (where, *(said for said in cited if said is not where)) if where in cited else (where,)
        by_a_person = said_by_people([where])
        advice = role_kind(where.role) == "assistant" and is_advice(found.text)
        if not (by_a_person or advice or found.type in ANY_SOURCE):
            raise Unsupported("not said by a person")
        well_formed(found.text, languages_of(cited))
        speakers = self._transcript.speakers([said for said in cited if is_person(said.role)])
        quote = where.text[proof.start : proof.end]
        check_wording(found.text, quote, where, speakers, self._people)
        dated = found.type in ("event", "task")  # these occur on their day, also in the future
        ahead = found.type == "task"
        ends = self._ends(found, cited) if by_a_person else ()
        try:
            text, share = self._grounded(found.text, quote, cited, advice=advice, ahead=ahead)
        except Unsupported:
            if ends and self._grounding.ends_in_own_words(ends, cited):
                return self._in_own_words(found, where, proof, ends)
            raise
        day = self._grounding.day_of(found.when, cited) if found.when else None
        day = resolve_day(day, text, quote, where.sent_at, ahead=ahead)
        data: dict[str, JsonValue] = {**self._made_by}
        if where.speaker is not None:
            data["speaker"] = where.speaker
        if advice:
            data["role"] = "assistant"
        if day is not None:
            data["when"] = day.date().isoformat()
        keywords = list(words_in_text(found.keywords, text))
        if keywords:
            data["keywords"] = [*keywords]
        return Draft(
            memory_type=found.type,
            content=text,
            evidence=(proof, *(Evidence(message_id=said.id) for said in cited[1:])),
            occurred_at=where.sent_at if day is None or (day > where.sent_at and not dated) else day,
            valid_from=where.sent_at if day is not None and day > where.sent_at else None,
            importance=found.importance,
            confidence=round(0.6 + 0.4 * share, 2),
            tags=_tags(found.tags),
            data=data,
            **(self._slot(found, text) | {"ends": tuple(one.id for one in ends)} if by_a_person else {}),
        )

    def _grounded(
        self, proposed: str, quote: str, cited: Sequence[Said], *, advice: bool, ahead: bool
    ) -> tuple[str, float]:
        """Return the text, or as much of its beginning as was said, and the share of its words that were said."""
        refused: Unsupported | None = None
        for beginning in beginnings(proposed):
            text = self._correct_dates(beginning, cited, ahead=ahead)
            try:
                share = self._grounding.supported(text, cited)
                if not advice:
                    self._grounding.claimed(text, quote, cited)
                elif share_said(text, [said.text for said in cited], self._people) < ADVICE_SHARE:
                    raise Ungrounded("not what the assistant said")
            except NotMeant:
                raise
            except Unsupported as error:
                refused = refused or error
            else:
                return text, share
        raise refused or Unsupported("empty")

    def _in_own_words(self, found: ProposedMemory, where: Said, proof: Evidence, ends: Sequence[Known]) -> Draft:
        """Return the quote itself as a memory: what it ends has ended, however the model worded it."""
        data: dict[str, JsonValue] = {**self._made_by, "extractor": "quote"}
        if where.speaker is not None:
            data["speaker"] = where.speaker
        return Draft(
            memory_type=found.type,
            content=where.text[proof.start : proof.end],
            evidence=(proof,),
            occurred_at=where.sent_at,
            importance=found.importance,
            data=data,
            ends=tuple(one.id for one in ends),
        )

    def _correct_dates(self, text: str, cited: Sequence[Said], *, ahead: bool) -> str:
        def supported(span: TimeSpan) -> bool:
            return self._grounding.mentions(span, cited)

        return correct_dates(text, cited[0].sent_at, self._transcript.language, ahead=ahead, supported=supported)

    def _ends(self, found: ProposedMemory, cited: Sequence[Said]) -> tuple[Known, ...]:
        """Return the known memories that a proposal ends, if it or the cited words speak of the same or of a change."""
        named = [self._known[number - 1] for number in found.ends or () if number <= len(self._known)]
        return tuple(one for one in named if self._grounding.may_end(one, found.text, cited))

    def _slot(self, found: ProposedMemory, text: str) -> dict[str, Any]:
        """Return subject, attribute and value if they are certain: a wrong slot would supersede another memory."""
        if found.subject is None:
            return {}
        subject = self._people.get(found.subject.casefold())
        if subject is None and not self._grounding.knows(found.subject):
            if not self._grounding.knows_part(found.subject):
                raise Unsupported("an unknown person", found.subject)
            return {}
        about: dict[str, Any] = {"subject": subject or found.subject}
        named = (found.attribute or "").casefold()
        if named in ATTRIBUTES and found.value is not None and contains(found.value, text):
            attribute, single = ATTRIBUTES[named]
            thing = plain_value(found.value, self._transcript.language).casefold() or found.value
            about |= {
                "attribute": attribute.format(value=thing),
                "value": named if named in TASTES else found.value,
                "single": single and not found.ended,
                "ended": found.ended,
            }
            if found.replaces is not None and self._grounding.knows(found.replaces):
                about["replaces"] = found.replaces
        return about

    def _episode(self, proposal: dict[str, Any]) -> Draft:
        found = ProposedEpisode.model_validate(proposal)
        participant = self._people.get(found.participant.casefold())
        if participant not in self._transcript.participants:
            raise Unsupported("an unknown person", found.participant)
        cited = self._grounding.sources(found.messages)
        if not said_by_people(cited):
            raise Unsupported("not said by a person")
        for text in (found.title, found.content):
            well_formed(text, languages_of(self._transcript.by_people()))
        check_attributions(found.content, self._grounding.said())
        content = self._correct_dates(found.content, cited, ahead=False)
        share = self._grounding.supported(f"{found.title}. {content}", cited)
        return Draft(
            memory_type="episode",
            content=content,
            summary=found.title,
            evidence=tuple(Evidence(message_id=said.id) for said in cited),
            occurred_at=min(said.sent_at for said in cited),
            subject=participant,
            confidence=round(0.6 + 0.4 * share, 2),
            data={**self._made_by, "title": found.title, "participants": [participant]},
        )


def _first(error: ValidationError) -> str:
    problem = error.errors()[0]
    where = ".".join(map(str, problem["loc"]))
    return f"{where}: {problem['msg']}" if where else problem["msg"]
