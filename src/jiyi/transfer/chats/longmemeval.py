"""LongMemEval's haystacks: sessions between a user and an assistant. `jiyi bench` reads the questions about them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...errors import InvalidInput
from .chat import Chat, Foreign, Turn, Values, read_as
from .locomo import by_session
from .moments import Moment, Name

SOURCE = "longmemeval"


class LongMemEvalTurn(Foreign):
    role: str
    content: str
    has_answer: bool | None = None


class Haystack(Foreign):
    haystack_dates: tuple[Moment, ...]
    haystack_session_ids: tuple[Name, ...]
    haystack_sessions: tuple[tuple[LongMemEvalTurn, ...], ...]


def turns(place: str, hay: Haystack) -> Iterator[tuple[Turn, str, bool]]:
    """Everything that was said, each with the session's own id and whether it holds the answer.

    A session may stand in a haystack twice; the second time it is a session of its own.
    """
    if not len(hay.haystack_dates) == len(hay.haystack_session_ids) == len(hay.haystack_sessions):
        raise InvalidInput(f"{place}.haystack_sessions", "there are not as many sessions as dates and session ids")
    times: dict[str, int] = {}
    for n, (session, said) in enumerate(zip(hay.haystack_session_ids, hay.haystack_sessions, strict=True)):
        times[session] = times.get(session, 0) + 1
        name = session if times[session] == 1 else f"{session}~{times[session]}"
        for at, turn in enumerate(said):
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


def longmemeval(values: Values, name: str) -> Iterator[Chat]:
    for place, value in values:
        hay = read_as(place, Haystack, value)
        said = (replace(turn, speaker=None) for turn, _, _ in turns(place, hay))
        yield from by_session(said, source=SOURCE, name=name)
