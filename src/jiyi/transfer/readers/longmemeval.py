"""LongMemEval's sessions between a user and an assistant. `bench.datasets` reads the questions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...errors import InvalidInput
from ..records import (
    Conversation,
    ForeignModel,
    ForeignName,
    ForeignTime,
    JsonReader,
    Turn,
    conversations_by_session,
    validate_as,
)
from ..sources import Source, Values

NAME = "longmemeval"


class LongMemEvalTurn(ForeignModel):
    role: str
    content: str
    has_answer: bool | None = None


class Haystack(ForeignModel):
    haystack_dates: tuple[ForeignTime, ...]
    haystack_session_ids: tuple[ForeignName, ...]
    haystack_sessions: tuple[tuple[LongMemEvalTurn, ...], ...]


def turns(place: str, hay: Haystack) -> Iterator[tuple[Turn, str, bool]]:
    """Yield all messages, each with its session's id and whether it is marked as evidence.

    A session that occurs twice in a haystack becomes two sessions.
    """
    if not len(hay.haystack_dates) == len(hay.haystack_session_ids) == len(hay.haystack_sessions):
        raise InvalidInput(f"{place}.haystack_sessions", "the numbers of sessions, dates and session ids differ")
    times: dict[str, int] = {}
    for n, (session, messages) in enumerate(zip(hay.haystack_session_ids, hay.haystack_sessions, strict=True)):
        times[session] = times.get(session, 0) + 1
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


def read(values: Values, source: Source) -> Iterator[Conversation]:
    for place, value in values:
        hay = validate_as(place, Haystack, value)
        messages = (replace(turn, speaker=None) for turn, _, _ in turns(place, hay))
        yield from conversations_by_session(messages, format=NAME, name=source.stem)


READER = JsonReader(
    name=NAME,
    kind="conversations",
    matches_object=lambda value: "haystack_sessions" in value,
    read_values=read,
)
