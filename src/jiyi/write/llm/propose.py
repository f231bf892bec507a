"""From what a model proposes to drafts, one by one: what does not hold is rejected, with the reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue, ValidationError

from ...errors import LlmBadReply
from ...languages.dates import TimeSpan
from ...llm.keywords import standing_in
from ...text.hashes import content_hash
from ..drafts import Draft, Evidence, Said
from .dates import day_meant, with_true_dates
from .grounds import (
    Grounds,
    Unsupported,
    is_small_talk,
    said_by_people,
    stands_in,
    tells_of_the_talk,
    tongues_of,
    well_formed,
)
from .schema import ProposedEpisode, ProposedMemory
from .transcript import LABELS, Transcript
from .values import plain_value

MOST_FOR_A_MESSAGE = 4
MOST_FOR_ANY = 8
SHOWN = 5  # reasons and examples that a problem lists

# What a model calls an attribute → what memories are compared by, in the words of the built-in extractor, so that
# one can supersede the other's; and whether a person has one of it, so that a new value ends the old one.
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
TASTES = ("likes", "dislikes")  # what is liked is part of the attribute, and the value is whether

# What an assistant or a tool says can prove how something was done, but nothing about a person.
PROVED_BY_ANYBODY = frozenset({"skill"})


@dataclass(frozen=True, slots=True)
class Rejected:
    """Something that a model proposed and that was not taken."""

    reason: str
    text: str


def summary_of(rejected: Sequence[Rejected], kept: int) -> str:
    """One line for a receipt: how many, why, and an example."""
    counted = Counter(one.reason.partition(":")[0] for one in rejected).most_common(SHOWN)
    reasons = ", ".join(f"{reason} ({count})" if count > 1 else reason for reason, count in counted)
    return f"{len(rejected)} of {len(rejected) + kept} memories of the language model were rejected: {reasons}"


class Checker:
    """Checks one unit's proposals."""

    def __init__(self, talk: Transcript, history: Sequence[Said], made_by: dict[str, JsonValue]) -> None:
        self._talk = talk
        self._grounds = Grounds(talk, history)
        self._made_by = made_by
        self._people = {name.casefold(): name for name in talk.participants}
        for words in LABELS.values():
            self._people.setdefault(words["user"].casefold(), LABELS[talk.language]["user"])
        self._people.setdefault("user", LABELS[talk.language]["user"])

    def memories(self, proposals: Any) -> tuple[list[Draft], list[Rejected]]:
        return self._each(proposals, "memories", "text", self._memory)

    def episodes(self, proposals: Any) -> tuple[list[Draft], list[Rejected]]:
        return self._each(proposals, "episodes", "content", self._episode)

    def _each(
        self, proposals: Any, what: str, shown: str, check: Callable[[dict[str, Any]], Draft]
    ) -> tuple[list[Draft], list[Rejected]]:
        if not isinstance(proposals, list):
            raise LlmBadReply(f"the reply's {what} are no list, but {type(proposals).__name__}")
        most = MOST_FOR_ANY + MOST_FOR_A_MESSAGE * len(self._talk.messages)
        if len(proposals) > most:
            raise LlmBadReply(f"the reply has {len(proposals):,} {what} for {len(self._talk.messages)} messages")
        drafts: dict[str, Draft] = {}
        rejected: list[Rejected] = []
        for proposal in proposals:
            text = str(proposal.get(shown, "") if isinstance(proposal, dict) else proposal)[:200]
            try:
                draft = check(proposal)
                if drafts.setdefault(content_hash(draft.content), draft) is not draft:
                    raise Unsupported("said twice")
            except Unsupported as error:
                rejected.append(Rejected(str(error), text))
            except ValidationError as error:
                rejected.append(Rejected(f"wrong shape: {_first(error)}", text))
        return list(drafts.values()), rejected

    def _memory(self, proposal: dict[str, Any]) -> Draft:
        found = ProposedMemory.model_validate(proposal)
        cited = self._grounds.sources(found.messages)
        where, proof = self._grounds.quoted(found.quote, cited)
        cited = (where, *(said for said in cited if said is not where)) if where in cited else (where,)
        if found.type not in PROVED_BY_ANYBODY and not said_by_people([where]):
            raise Unsupported("said by no person")
        well_formed(found.text, tongues_of(cited))
        if is_small_talk(found.text):
            raise Unsupported("small talk")
        if tells_of_the_talk(found.text):
            raise Unsupported("that it was spoken of, not what")
        dated = found.type in ("event", "task")  # these are at their day, even if it is still to come
        ahead = found.type == "task"
        text = self._with_true_dates(found.text, cited, ahead=ahead)
        share = self._grounds.supported(text, cited)
        day = self._grounds.day_of(found.when, cited) if found.when else None
        day = day_meant(day, text, where.text[proof.start : proof.end], where.sent_at, ahead=ahead)
        data: dict[str, JsonValue] = {**self._made_by}
        if day is not None:
            data["when"] = day.date().isoformat()
        keywords = list(standing_in(found.keywords, text))
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
            data=data,
            **self._what_about(found),
        )

    def _with_true_dates(self, text: str, cited: Sequence[Said], *, ahead: bool) -> str:
        def supported(span: TimeSpan) -> bool:
            return self._grounds.speaks_of(span, cited)

        return with_true_dates(text, cited[0].sent_at, self._talk.language, ahead=ahead, supported=supported)

    def _what_about(self, found: ProposedMemory) -> dict[str, Any]:
        """Subject, attribute and value, by which memories are compared: only what is certain, because a wrong one
        would end another memory."""
        if found.subject is None:
            return {}
        subject = self._people.get(found.subject.casefold())
        if subject is None and not self._grounds.knows(found.subject):
            raise Unsupported("a person who was not named", found.subject)
        about: dict[str, Any] = {"subject": subject or found.subject}
        named = (found.attribute or "").casefold()
        if named in ATTRIBUTES and found.value is not None and stands_in(found.value, found.text):
            attribute, single = ATTRIBUTES[named]
            thing = plain_value(found.value, self._talk.language).casefold() or found.value
            about |= {
                "attribute": attribute.format(value=thing),
                "value": named if named in TASTES else found.value,
                "single": single and not found.ended,
                "ended": found.ended,
            }
            if found.replaces is not None and self._grounds.knows(found.replaces):
                about["replaces"] = found.replaces
        return about

    def _episode(self, proposal: dict[str, Any]) -> Draft:
        found = ProposedEpisode.model_validate(proposal)
        participant = self._people.get(found.participant.casefold())
        if participant not in self._talk.participants:
            raise Unsupported("a person who was not named", found.participant)
        cited = self._grounds.sources(found.messages)
        if not said_by_people(cited):
            raise Unsupported("said by no person")
        for text in (found.title, found.content):
            well_formed(text, tongues_of(self._talk.by_people()))
        content = self._with_true_dates(found.content, cited, ahead=False)
        share = self._grounds.supported(f"{found.title}. {content}", cited)
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
