"""The three shapes of file that are understood. What is wrong in one is named by its place."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from .. import checks
from ..errors import InvalidInput
from .data import BenchMessage, BenchQuery, BenchStore
from .moments import moment

UNANSWERABLE = "unanswerable"  # the category of questions without evidence

Stores = tuple[tuple[BenchStore, ...], int]


def _written(value: Any) -> Any:
    """Some benchmarks number their speakers and sessions."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _moment(value: Any) -> Any:
    return moment(value) if isinstance(value, str) else value


Name = Annotated[str, BeforeValidator(_written)]
Moment = Annotated[datetime, BeforeValidator(_moment)]


class Foreign(BaseModel):
    """What is not named here does not matter to us."""

    model_config = ConfigDict(frozen=True, extra="ignore")


F = TypeVar("F", bound=Foreign)


def _read(place: str, model: type[F], value: object) -> F:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
        raise InvalidInput(place + path, first["msg"].removeprefix("Value error, ")) from None


def _message(
    place: str, message_id: str, text: str, *, session: str | None, speaker: str | None, role: str, at: datetime | None
) -> BenchMessage:
    return BenchMessage(
        id=checks.name(f"{place}.id", message_id),
        text=checks.text(f"{place}.text", text),
        session=checks.optional_name(f"{place}.session", session),
        speaker=checks.optional_name(f"{place}.speaker", speaker),
        role=checks.memory_type(f"{place}.role", role),
        sent_at=at,
    )


def _query_text(place: str, text: str) -> str:
    return checks.text(place, text, longest=checks.MAX_QUERY)


# -- {"stores": [...]} ----------------------------------------------------------------------------------------------


class OwnMessage(Foreign):
    id: Name
    text: str
    session: Name | None = None
    speaker: Name | None = None
    role: str = "user"
    sent_at: Moment | None = None


class OwnQuery(Foreign):
    id: Name
    text: str
    gold: tuple[Name, ...]
    category: Name = "questions"
    asked_at: Moment | None = None


class OwnStore(Foreign):
    id: Name
    messages: tuple[OwnMessage, ...]
    queries: tuple[OwnQuery, ...] = ()


def own(file: str, found: Mapping[str, Any]) -> Stores:
    """One object: `{"stores": [{"id", "messages": [...], "queries": [...]}]}`."""
    return tuple(_own_store(f"{file}, stores[{at}]", value) for at, value in enumerate(found["stores"])), 0


def _own_store(place: str, value: object) -> BenchStore:
    store = _read(place, OwnStore, value)
    messages = [
        _message(
            f"{place}.messages[{at}]",
            said.id,
            said.text,
            session=said.session,
            speaker=said.speaker,
            role=said.role,
            at=said.sent_at,
        )
        for at, said in enumerate(store.messages)
    ]
    known = {said.id for said in messages}
    queries = []
    for at, query in enumerate(store.queries):
        there = f"{place}.queries[{at}]"
        strange = [gold for gold in query.gold if gold not in known]
        if strange:
            raise InvalidInput(f"{there}.gold", f"{strange[0]!r} is no message of this store")
        queries.append(
            BenchQuery(
                id=query.id,
                text=_query_text(f"{there}.text", query.text),
                gold=tuple(dict.fromkeys(query.gold)),
                category=query.category if query.gold else UNANSWERABLE,
                asked_at=query.asked_at,
                apart=not query.gold or query.category.startswith("5-"),
            )
        )
    return BenchStore(id=store.id, messages=tuple(messages), queries=tuple(queries))


# -- LoCoMo ---------------------------------------------------------------------------------------------------------

LOCOMO_CATEGORIES = {1: "1-multi-hop", 2: "2-temporal", 3: "3-open-domain", 4: "4-single-hop", 5: "5-adversarial"}
LOCOMO_SESSION = re.compile(r"session_(\d+)")
LOCOMO_EVIDENCE = re.compile(r"D:?0*(\d+):0*(\d+)")  # as it is written also where the annotators slipped: "D:11:26"


class LocomoTurn(Foreign):
    speaker: Name
    dia_id: str
    text: str = ""
    blip_caption: str | None = None

    @property
    def said(self) -> str:
        shown = f"[image: {self.blip_caption}]" if self.blip_caption else ""
        return " ".join(part for part in (self.text, shown) if part.strip())


class LocomoSession(Foreign):
    turns: tuple[LocomoTurn, ...]
    date_time: Moment | None


class LocomoQuestion(Foreign):
    question: str
    category: int
    evidence: tuple[str, ...] = ()


class LocomoSample(Foreign):
    sample_id: Name
    conversation: dict[str, Any]
    qa: tuple[LocomoQuestion, ...]


def locomo(file: str, found: Sequence[object]) -> Stores:
    """LoCoMo's `locomo10.json`. Questions of category 5, which mislead on purpose, are counted apart."""
    stores = []
    left_out = 0
    for at, value in enumerate(found):
        place = f"{file}, [{at}]"
        sample = _read(place, LocomoSample, value)
        messages = _locomo_messages(f"{place}.conversation", sample)
        known = {said.id for said in messages}
        queries = [_locomo_query(f"{place}.qa[{n}]", sample, n, known) for n in range(len(sample.qa))]
        asked = tuple(query for query in queries if query.gold)
        left_out += len(queries) - len(asked)
        stores.append(BenchStore(id=sample.sample_id, messages=messages, queries=asked))
    return tuple(stores), left_out


def _locomo_messages(place: str, sample: LocomoSample) -> tuple[BenchMessage, ...]:
    names = [name for name in sample.conversation if LOCOMO_SESSION.fullmatch(name)]
    messages = []
    for name in sorted(names, key=lambda name: int(name.removeprefix("session_"))):
        value = {"turns": sample.conversation[name], "date_time": sample.conversation.get(f"{name}_date_time")}
        session = _read(f"{place}.{name}", LocomoSession, value)
        messages += [
            _message(
                f"{place}.{name}[{at}]",
                f"{sample.sample_id}/{turn.dia_id}",
                turn.said,
                session=f"{sample.sample_id}/S{name.removeprefix('session_')}",
                speaker=turn.speaker,
                role="user",
                at=session.date_time,
            )
            for at, turn in enumerate(session.turns)
            if turn.said
        ]
    return tuple(messages)


def _locomo_query(place: str, sample: LocomoSample, number: int, known: set[str]) -> BenchQuery:
    asked = sample.qa[number]
    if asked.category not in LOCOMO_CATEGORIES:
        raise InvalidInput(f"{place}.category", f"must be 1 to 5, not {asked.category}")
    named = [f"{sample.sample_id}/D{a}:{b}" for entry in asked.evidence for a, b in LOCOMO_EVIDENCE.findall(entry)]
    return BenchQuery(
        id=f"{sample.sample_id}/q{number}",
        text=_query_text(f"{place}.question", asked.question),
        gold=tuple(message_id for message_id in dict.fromkeys(named) if message_id in known),
        category=LOCOMO_CATEGORIES[asked.category],
        asked_at=None,
        apart=asked.category == 5,
    )


# -- LongMemEval ----------------------------------------------------------------------------------------------------


class LongMemEvalTurn(Foreign):
    role: str
    content: str
    has_answer: bool | None = None


class LongMemEvalQuestion(Foreign):
    question_id: Name
    question_type: str
    question: str
    question_date: Moment | None = None
    haystack_dates: tuple[Moment, ...]
    haystack_session_ids: tuple[Name, ...]
    haystack_sessions: tuple[tuple[LongMemEvalTurn, ...], ...]
    answer_session_ids: tuple[Name, ...] = ()


def longmemeval(file: str, found: Sequence[object]) -> Stores:
    """LongMemEval's `longmemeval_s.json` and its sisters: each question has a store of its own."""
    stores = [_longmemeval_store(f"{file}, [{at}]", value) for at, value in enumerate(found)]
    return tuple(stores), sum(not store.queries for store in stores)


def _longmemeval_store(place: str, value: object) -> BenchStore:
    asked = _read(place, LongMemEvalQuestion, value)
    if not len(asked.haystack_dates) == len(asked.haystack_session_ids) == len(asked.haystack_sessions):
        raise InvalidInput(f"{place}.haystack_sessions", "there are not as many sessions as dates and session ids")
    messages: list[BenchMessage] = []
    marked: list[str] = []
    of_answers: list[str] = []
    times: dict[str, int] = {}
    for n, (session, turns) in enumerate(zip(asked.haystack_session_ids, asked.haystack_sessions, strict=True)):
        times[session] = times.get(session, 0) + 1
        name = session if times[session] == 1 else f"{session}~{times[session]}"
        for at, turn in enumerate(turns):
            if not turn.content.strip():
                continue
            there = f"{place}.haystack_sessions[{n}][{at}]"
            said = f"{name}#{at}"
            when = asked.haystack_dates[n]
            messages.append(
                _message(there, said, turn.content, session=name, speaker=turn.role, role=turn.role, at=when)
            )
            if turn.has_answer:
                marked.append(said)
            if session in asked.answer_session_ids:
                of_answers.append(said)
    unanswerable = asked.question_id.endswith("_abs")
    query = BenchQuery(
        id=asked.question_id,
        text=_query_text(f"{place}.question", asked.question),
        gold=() if unanswerable else tuple(marked or of_answers),
        category=UNANSWERABLE if unanswerable else asked.question_type,
        asked_at=asked.question_date,
        apart=unanswerable,
    )
    queries = (query,) if query.gold or unanswerable else ()
    return BenchStore(id=asked.question_id, messages=tuple(messages), queries=queries)
