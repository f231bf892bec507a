"""LoCoMo's conversations: two people, many sessions. `jiyi bench` reads the questions about them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from .chat import Chat, Foreign, Gathered, Turn, Values, read_as
from .moments import Moment, Name

SOURCE = "locomo"
SESSION = re.compile(r"session_(\d+)")


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


class LocomoSample(Foreign):
    sample_id: Name
    conversation: dict[str, Any]


def turns(place: str, sample: LocomoSample) -> Iterator[Turn]:
    """Everything that was said, session by session."""
    names = [name for name in sample.conversation if SESSION.fullmatch(name)]
    for name in sorted(names, key=lambda name: int(name.removeprefix("session_"))):
        there = f"{place}.conversation.{name}"
        value = {"turns": sample.conversation[name], "date_time": sample.conversation.get(f"{name}_date_time")}
        session = read_as(there, LocomoSession, value)
        for at, turn in enumerate(session.turns):
            if turn.said:
                yield Turn(
                    place=f"{there}[{at}]",
                    id=f"{sample.sample_id}/{turn.dia_id}",
                    text=turn.said,
                    session=f"{sample.sample_id}/S{name.removeprefix('session_')}",
                    speaker=turn.speaker,
                    role="user",
                    sent_at=session.date_time,
                )


def locomo(values: Values, name: str) -> Iterator[Chat]:
    for place, value in values:
        sample = read_as(place, LocomoSample, value)
        yield from by_session(turns(place, sample), source=SOURCE, name=name)


def by_session(said: Iterator[Turn], *, source: str, name: str) -> Iterator[Chat]:
    gathered: Gathered | None = None
    for turn in said:
        session = turn.session or name
        if gathered is not None and gathered.session_id != session:
            yield gathered.chat()
            gathered = None
        gathered = gathered or Gathered(session, source=source)
        gathered.take(turn)
    if gathered is not None:
        yield gathered.chat()
