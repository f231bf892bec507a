"""Extractors for tests: they find what the messages spell out."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from jiyi import Draft, Evidence, JiyiError, Unit


def drafts_of(unit: Unit) -> list[Draft]:
    """`subject attribute = value` is a fact of which there is one; with ~ instead, one of many; with ! it is over."""
    found = []
    for message in unit.messages:
        for mark in "=~!":
            about, separator, value = message.text.partition(f" {mark} ")
            if separator and len(about.split()) == 2:
                subject, attribute = about.split()
                found.append(
                    Draft(
                        memory_type="fact",
                        content=f"{subject} {attribute}: {'no longer ' if mark == '!' else ''}{value}",
                        evidence=(Evidence(message_id=message.id, start=0, end=len(message.text)),),
                        occurred_at=message.sent_at,
                        subject=subject,
                        attribute=attribute,
                        value=value,
                        single=mark == "=",
                        ended=mark == "!",
                    )
                )
    return found


@dataclass
class SpelledOut:
    """Stands for a language model: it can be slow, fail, or wait until it is let go."""

    id: str = "spelled-out"
    failures: int = 0
    gate: asyncio.Event | None = None
    seen: list[Unit] = field(default_factory=list)

    async def __call__(self, unit: Unit, /) -> Sequence[Draft]:
        self.seen.append(unit)
        if self.gate is not None:
            await self.gate.wait()
        if self.failures > 0:
            self.failures -= 1
            raise JiyiError("the model is out to lunch")
        return drafts_of(unit)
