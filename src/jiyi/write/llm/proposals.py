"""Proposals of a model become drafts as they are, or are refused with a reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pydantic import JsonValue, ValidationError

from ...errors import LlmBadReply
from ...languages.dates import dates
from ...languages.terms import exact_hash
from ...llm.keywords import words_in_text
from ...roles import is_person
from ...text.fence import strip_context
from ..drafts import Draft, Evidence, Known, Said
from .refusals import (
    Refused,
    check_subject,
    check_text,
    cited_messages,
    contains,
    is_own,
    quoted,
    said_by_people,
    teller_of_proposal,
)
from .schema import ProposedEpisode, ProposedMemory
from .transcript import LABELS, Transcript

MAX_PER_MESSAGE = 4
MAX_EXTRA = 8
SHOWN = 5  # reasons listed in a problem
MOST_TAGS, LONGEST_TAG = 3, 24
A_DAY = timedelta(days=1)
AROUND = timedelta(days=2)  # a message: days that need no words
FARTHEST = timedelta(days=366 * 120)  # from a message

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
DATED_TYPES = ("event", "task")  # these occur on their day, also in the future


@dataclass(frozen=True, slots=True)
class Rejected:
    """A refused proposal."""

    reason: str
    text: str
    message_id: str | None = None  # that it cites first, if any


def summary_of(rejected: Sequence[Rejected], kept: int) -> str:
    """Summarise refused proposals in one line for a receipt."""
    counted = Counter(one.reason.partition(":")[0] for one in rejected).most_common(SHOWN)
    reasons = ", ".join(f"{reason} ({count})" if count > 1 else reason for reason, count in counted)
    return f"{len(rejected)} of {len(rejected) + kept} memories of the language model were rejected: {reasons}"


class Proposals:
    """Reads the proposals for a unit; `notes` says what was left out of those that are kept."""

    def __init__(
        self,
        transcript: Transcript,
        made_by: dict[str, JsonValue],
        known: Sequence[Known] = (),
        categories: Sequence[str] = (),
    ) -> None:
        self.notes: list[str] = []
        self._transcript = transcript
        self._known = known
        named = (one.partition(":")[0].partition("：")[0].strip() for one in categories)
        self._categories = {name.casefold(): name for name in named}
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
        self, proposals: Any, what: str, shown: str, read: Callable[[dict[str, Any]], Draft]
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
                draft = read(proposal)
                drafts.setdefault(exact_hash(draft.content), draft)
            except Refused as error:
                rejected.append(Rejected(str(error), text, self._first_cited(proposal)))
            except ValidationError as error:
                rejected.append(Rejected(f"wrong shape: {_first(error)}", text))
        return list(drafts.values()), rejected

    def _first_cited(self, proposal: dict[str, Any]) -> str | None:
        """Return the first message that a proposal cites."""
        numbers = proposal.get("messages")
        number = numbers[0] if isinstance(numbers, list) and numbers else None
        there = isinstance(number, int) and 0 < number <= len(self._transcript.messages)
        return self._transcript.messages[number - 1].id if there and number is not None else None

    def _memory(self, proposal: dict[str, Any]) -> Draft:
        proposed = ProposedMemory.model_validate(proposal)
        cited = cited_messages(proposed.messages, self._transcript)
        where, proof = quoted(proposed.quote, cited, self._transcript)
        cited = (where, *(said for said in cited if said is not where)) if where in cited else (where,)
        teller = teller_of_proposal(proposed, where, cited, self._transcript)
        check_subject(proposed, cited, self._transcript)
        check_text(proposed.text, own=is_own(where, proof, self._transcript))
        evidence = (proof, *(Evidence(message_id=said.id) for said in cited[1:]))
        if teller is not where:  # a person confirmed what somebody else's words say: the person told it
            confirmed = Evidence(message_id=teller.id, start=0, end=len(teller.text))
            evidence = (confirmed, *(one for one in evidence if one.message_id != teller.id))
        day = self._day(proposed, cited)
        data: dict[str, JsonValue] = {**self._made_by}
        if teller.speaker is not None:
            data["speaker"] = teller.speaker
        if day is not None:
            data["when"] = day.date().isoformat()
        keywords = list(words_in_text(proposed.keywords, proposed.text))
        if keywords:
            data["keywords"] = [*keywords]
        dated = proposed.type in DATED_TYPES
        told: dict[str, Any] = {}
        if is_person(teller.role) and teller in cited:  # otherwise an assistant worded it
            told = {**self._slot(proposed), "ends": self._named(proposed.ends)}
            told |= {"repeats": self._named(proposed.repeats), "merges": self._named(proposed.merges)}
        return Draft(
            memory_type=proposed.type,
            content=proposed.text,
            evidence=evidence,
            occurred_at=teller.sent_at if day is None or (day > teller.sent_at and not dated) else day,
            valid_from=teller.sent_at if day is not None and day > teller.sent_at else None,
            importance=proposed.importance,
            tags=self._tags(proposed.tags),
            data=data,
            **told,
        )

    def _day(self, proposed: ProposedMemory, cited: Sequence[Said]) -> datetime | None:
        """Return the day of a memory; None, with a note, if it is no date or contradicts the words."""
        if proposed.when is None:
            return None
        try:
            day = datetime.fromisoformat(proposed.when)
        except ValueError:
            self.notes.append(f"a date was left out: {proposed.when!r} is none")
            return None
        day = day.replace(tzinfo=day.tzinfo or cited[0].sent_at.tzinfo, hour=0, minute=0, second=0, microsecond=0)
        if _agrees(day, proposed.text, cited):
            return day
        self.notes.append(f"a date was left out: {proposed.when} does not agree with {proposed.text[:80]!r}")
        return None

    def _tags(self, proposed: Sequence[str]) -> tuple[str, ...]:
        """Return short topics, of the categories if there are any; a sentence is no tag."""
        plain = [" ".join(one.split()).strip("#") for one in proposed]
        if self._categories:
            known = (self._categories.get(one.casefold()) for one in plain)
            return tuple(dict.fromkeys(one for one in known if one is not None))
        return tuple(dict.fromkeys(one for one in plain if one and len(one) <= LONGEST_TAG))[:MOST_TAGS]

    def _named(self, numbers: Sequence[int] | None) -> tuple[str, ...]:
        """Return the ids of known memories."""
        return tuple(self._known[number - 1].id for number in numbers or () if number <= len(self._known))

    def _slot(self, proposed: ProposedMemory) -> dict[str, Any]:
        """Return subject, attribute and value; the latter two if the text contains the value: a wrong slot would
        supersede another memory."""
        if proposed.subject is None:
            return {}
        about: dict[str, Any] = {"subject": self._people.get(proposed.subject.casefold(), proposed.subject)}
        named = (proposed.attribute or "").casefold()
        if named in ATTRIBUTES and proposed.value is not None and contains(proposed.value, proposed.text):
            attribute, single = ATTRIBUTES[named]
            about |= {
                "attribute": attribute.format(value=proposed.value.casefold()),
                "value": named if named in TASTES else proposed.value,
                "single": single and not proposed.ended,
                "ended": proposed.ended,
            }
            if proposed.replaces is not None and self._knows(proposed.replaces):
                about["replaces"] = proposed.replaces
        return about

    def _knows(self, words: str) -> bool:
        """Return True if the conversation or a known memory contains some words."""
        texts = [strip_context(said.text) for said in self._transcript.messages]
        return any(contains(words, text) for text in (*texts, *(one.text for one in self._known)))

    def _episode(self, proposal: dict[str, Any]) -> Draft:
        proposed = ProposedEpisode.model_validate(proposal)
        participant = self._people.get(proposed.participant.casefold())
        if participant not in self._transcript.participants:
            raise Refused("an unknown person", proposed.participant)
        cited = cited_messages(proposed.messages, self._transcript)
        if not said_by_people(cited):
            raise Refused("not said by a person")
        for text in (proposed.title, proposed.content):
            check_text(text, own=False)
        return Draft(
            memory_type="episode",
            content=proposed.content,
            summary=proposed.title,
            evidence=tuple(Evidence(message_id=said.id) for said in cited),
            occurred_at=min(said.sent_at for said in cited),
            subject=participant,
            data={**self._made_by, "title": proposed.title, "participants": [participant]},
        )


def _agrees(day: datetime, text: str, cited: Sequence[Said]) -> bool:
    """Return False if a memory names days, and neither it nor its messages mean this one, or for one centuries away."""
    at = cited[0].sent_at
    if any(abs(day - said.sent_at) <= AROUND for said in cited):
        return True
    words = [(text, at), *((strip_context(said.text), said.sent_at) for said in cited)]
    spans = [span for said, now in words for ahead in (False, True) for span in dates(said, now, future=ahead)]
    if any(span.start.date() <= day.date() <= span.end.date() for span in spans):
        return True
    named = any(span.end - span.start <= A_DAY and not span.relative for span in dates(text, at))
    return not named and abs(day - at) <= FARTHEST


def _first(error: ValidationError) -> str:
    problem = error.errors()[0]
    where = ".".join(map(str, problem["loc"]))
    return f"{where}: {problem['msg']}" if where else problem["msg"]
