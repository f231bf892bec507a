"""The three shapes of file that are understood. What is wrong in one is named by its place."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .. import validation
from ..errors import InvalidInput
from ..transfer.chats.chat import Foreign, Turn, read_as
from ..transfer.chats.locomo import LocomoSample
from ..transfer.chats.locomo import turns as locomo_turns
from ..transfer.chats.longmemeval import Haystack
from ..transfer.chats.longmemeval import turns as longmemeval_turns
from ..transfer.chats.moments import Moment, Name
from .data import BenchMessage, BenchQuery, BenchStore

UNANSWERABLE = "unanswerable"  # the category of questions without evidence

Stores = tuple[tuple[BenchStore, ...], int]


def _message(turn: Turn) -> BenchMessage:
    return BenchMessage(
        id=validation.name(f"{turn.place}.id", turn.id),
        text=validation.text(f"{turn.place}.text", turn.text),
        session=validation.optional_name(f"{turn.place}.session", turn.session),
        speaker=validation.optional_name(f"{turn.place}.speaker", turn.speaker),
        role=validation.memory_type(f"{turn.place}.role", turn.role),
        sent_at=turn.sent_at,
    )


def _query_text(place: str, text: str) -> str:
    return validation.text(place, text, longest=validation.MAX_QUERY)


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
    store = read_as(place, OwnStore, value)
    messages = [
        _message(
            Turn(
                place=f"{place}.messages[{at}]",
                id=said.id,
                text=said.text,
                session=said.session,
                speaker=said.speaker,
                role=said.role,
                sent_at=said.sent_at,
            )
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
LOCOMO_EVIDENCE = re.compile(r"D:?0*(\d+):0*(\d+)")  # as it is written also where the annotators slipped: "D:11:26"


class LocomoQuestion(Foreign):
    question: str
    category: int
    evidence: tuple[str, ...] = ()


class LocomoAsked(LocomoSample):
    qa: tuple[LocomoQuestion, ...]


def locomo(file: str, found: Sequence[object]) -> Stores:
    """LoCoMo's `locomo10.json`. Questions of category 5, which mislead on purpose, are counted apart."""
    stores = []
    left_out = 0
    for at, value in enumerate(found):
        place = f"{file}, [{at}]"
        sample = read_as(place, LocomoAsked, value)
        messages = tuple(map(_message, locomo_turns(place, sample)))
        known = {said.id for said in messages}
        queries = [_locomo_query(f"{place}.qa[{n}]", sample, n, known) for n in range(len(sample.qa))]
        asked = tuple(query for query in queries if query.gold)
        left_out += len(queries) - len(asked)
        stores.append(BenchStore(id=sample.sample_id, messages=messages, queries=asked))
    return tuple(stores), left_out


def _locomo_query(place: str, sample: LocomoAsked, number: int, known: set[str]) -> BenchQuery:
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


class LongMemEvalQuestion(Haystack):
    question_id: Name
    question_type: str
    question: str
    question_date: Moment | None = None
    answer_session_ids: tuple[Name, ...] = ()


def longmemeval(file: str, found: Sequence[object]) -> Stores:
    """LongMemEval's `longmemeval_s.json` and its sisters: each question has a store of its own."""
    stores = [_longmemeval_store(f"{file}, [{at}]", value) for at, value in enumerate(found)]
    return tuple(stores), sum(not store.queries for store in stores)


def _longmemeval_store(place: str, value: object) -> BenchStore:
    asked = read_as(place, LongMemEvalQuestion, value)
    messages: list[BenchMessage] = []
    marked: list[str] = []
    of_answers: list[str] = []
    for turn, session, has_answer in longmemeval_turns(place, asked):
        messages.append(_message(turn))
        if has_answer:
            marked.append(turn.id)
        if session in asked.answer_session_ids:
            of_answers.append(turn.id)
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
