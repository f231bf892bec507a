"""LoCoMo's conversations: two people, many sessions. `bench.datasets` reads the questions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

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

NAME = "locomo"
SESSION = re.compile(r"session_(\d+)")


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


def turns(place: str, sample: LocomoSample) -> Iterator[Turn]:
    """Yield all messages of a sample, session by session."""
    names = [name for name in sample.conversation if SESSION.fullmatch(name)]
    for name in sorted(names, key=lambda name: int(name.removeprefix("session_"))):
        there = f"{place}.conversation.{name}"
        value = {"turns": sample.conversation[name], "date_time": sample.conversation.get(f"{name}_date_time")}
        session = validate_as(there, LocomoSession, value)
        for at, turn in enumerate(session.turns):
            if turn.full_text:
                yield Turn(
                    place=f"{there}[{at}]",
                    id=f"{sample.sample_id}/{turn.dia_id}",
                    text=turn.full_text,
                    session=f"{sample.sample_id}/S{name.removeprefix('session_')}",
                    speaker=turn.speaker,
                    role="user",
                    sent_at=session.date_time,
                )


def read(values: Values, source: Source) -> Iterator[Conversation]:
    for place, value in values:
        sample = validate_as(place, LocomoSample, value)
        yield from conversations_by_session(turns(place, sample), format=NAME, name=source.stem)


def _matches(value: dict[str, Any]) -> bool:
    return isinstance(value.get("conversation"), dict) and any(map(SESSION.fullmatch, value["conversation"]))


READER = JsonReader(name=NAME, kind="conversations", matches_object=_matches, read_values=read)
