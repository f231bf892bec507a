"""A unit as a model reads it: numbered lines, so that it can name its sources in a way that can be checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...languages.script import language
from ...llm.prompts import PromptLanguage
from ...text.fence import strip_context
from ..accept import INSTRUCTIONS
from ..drafts import Said, Unit

LONGEST_MESSAGE = 6_000  # characters of one message that are shown
LONGEST_TOOL_OUTPUT = 600
LONGEST_UNIT = 48_000
LONGEST_HISTORY = 4_000
NOT_PEOPLE = ("assistant", "tool", "function")
LABELS: dict[PromptLanguage, dict[str, str]] = {
    "en": {"user": "The user", "assistant": "Assistant", "nobody": "(nothing)"},
    "zh": {"user": "用户", "assistant": "助手", "nobody": "（无）"},
}
WEEKDAYS: dict[PromptLanguage, Sequence[str]] = {
    "en": ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"),
    "zh": ("周一", "周二", "周三", "周四", "周五", "周六", "周日"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    language: PromptLanguage
    messages: tuple[Said, ...]  # the one with number n is at n - 1
    participants: tuple[str, ...]
    conversation: str
    earlier: str
    notes: tuple[str, ...]

    def by_people(self) -> tuple[Said, ...]:
        return tuple(said for said in self.messages if said.role not in NOT_PEOPLE)


def transcript(unit: Unit) -> Transcript | None:
    """The unit, or None if nobody says anything in it."""
    messages = tuple(
        said for said in unit.messages if said.role not in INSTRUCTIONS and strip_context(said.text).strip()
    )
    people = [said for said in messages if said.role not in NOT_PEOPLE]
    if not people:
        return None
    text = " ".join(strip_context(said.text)[:LONGEST_MESSAGE] for said in people)
    tongue: PromptLanguage = "en" if language(text) in ("en", "other") else "zh"
    lines, notes, room = [], [], LONGEST_UNIT
    for number, said in enumerate(messages, 1):
        shown = _shown(said, min(room, LONGEST_MESSAGE))
        if len(shown) < len(strip_context(said.text)) and said.role not in ("tool", "function"):
            notes.append(f"message {said.id} is long: the language model saw its first {len(shown):,} characters")
        room -= len(shown)
        if shown:
            lines.append(f"[{number}] {_line(said, shown, tongue)}")
    return Transcript(
        language=tongue,
        messages=messages,
        participants=tuple(dict.fromkeys(name_of(said, tongue) for said in people)),
        conversation="\n".join(lines),
        earlier=_earlier(unit.history, tongue),
        notes=tuple(notes),
    )


def name_of(said: Said, tongue: PromptLanguage) -> str:
    return said.speaker or LABELS[tongue].get(said.role, said.role)


def _shown(said: Said, longest: int) -> str:
    if said.role in ("tool", "function"):
        longest = min(longest, LONGEST_TOOL_OUTPUT)
    return strip_context(said.text)[:longest].strip()


def _line(said: Said, shown: str, tongue: PromptLanguage) -> str:
    """Further lines are indented: no message can look like two, or like one of somebody else."""
    day = WEEKDAYS[tongue][said.sent_at.weekday()]
    indented = "\n    ".join(shown.splitlines())
    return f"({said.sent_at:%Y-%m-%d} {day} {said.sent_at:%H:%M}) {name_of(said, tongue)}: {indented}"


def _earlier(history: Sequence[Said], tongue: PromptLanguage) -> str:
    """The end of what was said before, without numbers: nothing can be drawn from it."""
    lines: list[str] = []
    room = LONGEST_HISTORY
    for said in reversed(history):
        shown = _shown(said, LONGEST_MESSAGE)
        if said.role in INSTRUCTIONS or not shown:
            continue
        if len(shown) > room:
            break
        room -= len(shown)
        lines.append("- " + _line(said, shown, tongue))
    return "\n".join(reversed(lines)) or LABELS[tongue]["nobody"]
