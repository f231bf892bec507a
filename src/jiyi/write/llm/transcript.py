"""A unit as text for a model: numbered lines, so that the model can cite its sources."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...languages.words import normalise, prompt_language
from ...llm.prompts import PromptLanguage
from ...roles import USER_SUBJECTS, is_instruction, is_person, is_the_user, role_kind
from ...text.fence import strip_context
from ..drafts import Known, Said, Unit

MAX_MESSAGE = 6_000  # characters shown of a message
MAX_TOOL_OUTPUT = 600
MAX_UNIT = 48_000
MAX_HISTORY = 4_000
LABELS: dict[PromptLanguage, dict[str, str]] = {
    "en": {"user": "The user", "assistant": "Assistant", "nobody": "(nothing)", "other": "Another person"},
    "zh": {"user": "用户", "assistant": "助手", "nobody": "（无）", "other": "另一个人"},
}
USER_LABELS = [words["user"] for words in LABELS.values()]
WEEKDAYS: dict[PromptLanguage, Sequence[str]] = {
    "en": ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"),
    "zh": ("周一", "周二", "周三", "周四", "周五", "周六", "周日"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """The numbered messages of a unit, and the text for the prompt."""

    language: PromptLanguage
    messages: tuple[Said, ...]  # message n is at n - 1
    participants: tuple[str, ...]
    text: str
    earlier: str
    notes: tuple[str, ...]
    others: frozenset[str] = frozenset()  # ids of the messages of other people than the user


def transcript(unit: Unit) -> Transcript | None:
    """Render a unit; None if no person says anything in it."""
    messages = tuple(
        said for said in unit.messages if not is_instruction(said.role) and strip_context(said.text).strip()
    )
    people = [said for said in messages if is_person(said.role)]
    if not people:
        return None
    sample = " ".join(strip_context(said.text)[:MAX_MESSAGE] for said in people)
    spoken = prompt_language(sample)
    others = frozenset(said.id for said in people if not _is_user(said, unit))
    renamed = _with_distinct_names(unit, spoken)
    messages = tuple(renamed[said.id] for said in messages)
    people = [renamed[said.id] for said in people]
    lines, notes, room = [], [], MAX_UNIT
    for number, said in enumerate(messages, 1):
        shown = _shown(said, min(room, MAX_MESSAGE))
        if len(shown) < len(strip_context(said.text)) and role_kind(said.role) not in ("tool", "unknown"):
            notes.append(f"message {said.id} is long: the language model saw its first {len(shown):,} characters")
        room -= len(shown)
        if shown:
            lines.append(f"[{number}] {_line(said, shown, spoken)}")
    return Transcript(
        language=spoken,
        messages=messages,
        participants=tuple(dict.fromkeys(name_of(said, spoken) for said in people)),
        text="\n".join(lines),
        earlier=_earlier([renamed[said.id] for said in unit.history], spoken),
        notes=tuple(notes),
        others=others,
    )


def _is_user(said: Said, unit: Unit) -> bool:
    return is_the_user(said.role, said.speaker, unit.user_id, unit.user_names)


def _with_distinct_names(unit: Unit, spoken: PromptLanguage) -> dict[str, Said]:
    """Return the messages by id; other people whose names a model could take for the user's have another one."""
    said = [*unit.history, *unit.messages]
    shown = [one.speaker for one in said if one.speaker is not None and _is_user(one, unit)]
    taken = USER_SUBJECTS | {normalise(name) for name in (*USER_LABELS, *shown)}
    return {
        one.id: replace(one, speaker=LABELS[spoken]["other"])
        if one.speaker is not None and normalise(one.speaker) in taken and not _is_user(one, unit)
        else one
        for one in said
    }


def name_of(said: Said, spoken: PromptLanguage) -> str:
    return said.speaker or LABELS[spoken].get(said.role, said.role)


def _shown(said: Said, longest: int) -> str:
    if role_kind(said.role) in ("tool", "unknown"):
        longest = min(longest, MAX_TOOL_OUTPUT)
    return strip_context(said.text)[:longest].strip()


def _line(said: Said, shown: str, spoken: PromptLanguage) -> str:
    """Render a message; further lines are indented, so that it cannot look like two messages."""
    day = WEEKDAYS[spoken][said.sent_at.weekday()]
    indented = "\n    ".join(shown.splitlines())
    return f"({said.sent_at:%Y-%m-%d} {day} {said.sent_at:%H:%M}) {name_of(said, spoken)}: {indented}"


def render_known(known: Sequence[Known], spoken: PromptLanguage) -> str:
    """Render stored memories with numbers of their own, by which a model names those that it changes, and
    who told them, unless it was the user."""
    lines = [
        f"[K{number}] ({one.at:%Y-%m-%d}{_told_by(one.speaker)}) {' '.join(one.text.split())}"
        for number, one in enumerate(known, 1)
    ]
    return "\n".join(lines) or LABELS[spoken]["nobody"]


def _told_by(speaker: str | None) -> str:
    return "" if speaker is None else f", {' '.join(re.sub(r'[()（）]', ' ', speaker).split())}"


def _earlier(history: Sequence[Said], spoken: PromptLanguage) -> str:
    """Render the last earlier messages without numbers: they are context, not sources."""
    lines: list[str] = []
    room = MAX_HISTORY
    for said in reversed(history):
        shown = _shown(said, MAX_MESSAGE)
        if is_instruction(said.role) or not shown:
            continue
        if len(shown) > room:
            break
        room -= len(shown)
        lines.append("- " + _line(said, shown, spoken))
    return "\n".join(reversed(lines)) or LABELS[spoken]["nobody"]
