"""Readers of the conversations of LoCoMo and LongMemEval; `bench.datasets` reads their questions.

Importing this module adds them to the import formats of `jiyi.transfer`.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from jiyi.errors import InvalidInput
from jiyi.transfer.readers import READERS
from jiyi.transfer.records import (
    Conversation,
    ConversationBuilder,
    ForeignModel,
    ForeignName,
    ForeignTime,
    JsonReader,
    Turn,
    validate_as,
)
from jiyi.transfer.sources import Source, Values

SESSION = re.compile(r"session_(\d+)")


def conversations_by_session(turns: Iterable[Turn], *, format: str, name: str) -> Iterable[Conversation]:  # noqa: A002
    """Group consecutive turns of the same session; `name` is the session of turns that have none."""
    builder: ConversationBuilder | None = None
    for turn in turns:
        session = turn.session or name
        if builder is not None and builder.session_id != session:
            yield builder.build()
            builder = None
        builder = builder or ConversationBuilder(session, format=format)
        builder.add(turn)
    if builder is not None:
        yield builder.build()


class LocomoTurn(ForeignModel):
    speaker: ForeignName
    dia_id: str
    text: str = ""
    blip_caption: str | None = None

    @property
    def full_text(self) -> str:
        caption = f"[image: {self.blip_caption}]" if self.blip_caption else ""
        return " ".join(part for part in (self.text, caption) if part.strip())


class LocomoSession(ForeignModel):
    turns: tuple[LocomoTurn, ...]
    date_time: ForeignTime | None


class LocomoSample(ForeignModel):
    sample_id: ForeignName
    conversation: dict[str, Any]


def locomo_turns(place: str, sample: LocomoSample) -> Iterator[Turn]:
    """Yield all messages of a sample, session by session."""
    numbers = sorted(int(found[1]) for name in sample.conversation if (found := SESSION.fullmatch(name)))
    for number in numbers:
        name = f"session_{number}"
        there = f"{place}.conversation.{name}"
        value = {"turns": sample.conversation[name], "date_time": sample.conversation.get(f"{name}_date_time")}
        session = validate_as(there, LocomoSession, value)
        for at, turn in enumerate(session.turns):
            if turn.full_text:
                yield Turn(
                    place=f"{there}[{at}]",
                    id=f"{sample.sample_id}/{turn.dia_id}",
                    text=turn.full_text,
                    session=f"{sample.sample_id}/S{number}",
                    speaker=turn.speaker,
                    role="user",
                    sent_at=session.date_time,
                )


def read_locomo(values: Values, source: Source) -> Iterator[Conversation]:
    for place, value in values:
        sample = validate_as(place, LocomoSample, value)
        yield from conversations_by_session(locomo_turns(place, sample), format="locomo", name=source.stem)


def _is_locomo(value: dict[str, Any]) -> bool:
    return isinstance(value.get("conversation"), dict) and any(map(SESSION.fullmatch, value["conversation"]))


LOCOMO = JsonReader("locomo", "conversations", _is_locomo, read_locomo)


class LongMemEvalTurn(ForeignModel):
    role: str
    content: str
    has_answer: bool | None = None


class Haystack(ForeignModel):
    haystack_dates: tuple[ForeignTime, ...]
    haystack_session_ids: tuple[ForeignName, ...]
    haystack_sessions: tuple[tuple[LongMemEvalTurn, ...], ...]


def longmemeval_turns(place: str, hay: Haystack) -> Iterator[tuple[Turn, str, bool]]:
    """Yield all messages, each with its session's id and whether it is marked as evidence. A session that occurs twice
    in a haystack becomes two sessions."""
    if not len(hay.haystack_dates) == len(hay.haystack_session_ids) == len(hay.haystack_sessions):
        raise InvalidInput(f"{place}.haystack_sessions", "the numbers of sessions, dates and session ids differ")
    times: Counter[str] = Counter()
    for n, (session, messages) in enumerate(zip(hay.haystack_session_ids, hay.haystack_sessions, strict=True)):
        times[session] += 1
        name = session if times[session] == 1 else f"{session}~{times[session]}"
        for at, turn in enumerate(messages):
            if turn.content.strip():
                found = Turn(
                    place=f"{place}.haystack_sessions[{n}][{at}]",
                    id=f"{name}#{at}",
                    text=turn.content,
                    session=name,
                    speaker=turn.role,
                    role=turn.role,
                    sent_at=hay.haystack_dates[n],
                )
                yield found, session, bool(turn.has_answer)


def read_longmemeval(values: Values, source: Source) -> Iterator[Conversation]:
    for place, value in values:
        hay = validate_as(place, Haystack, value)
        messages = (replace(turn, speaker=None) for turn, _, _ in longmemeval_turns(place, hay))
        yield from conversations_by_session(messages, format="longmemeval", name=source.stem)


LONGMEMEVAL = JsonReader("longmemeval", "conversations", lambda value: "haystack_sessions" in value, read_longmemeval)

READERS[:0] = [LONGMEMEVAL, LOCOMO]
