"""Tells a clause in the third person: the speaker, those who belong to them, and whom "you" and "we" mean."""

from __future__ import annotations

import re

from ..drafts import Unit
from . import voice_chinese, voice_english
from .english_tokens import Parsed
from .names import group_label

_EDGES = " ,，、.。!！;；~～:："
_ENGLISH_PRONOUN = re.compile(r"^(?:he|she|they|it)(?:'s|'re)?\b", re.IGNORECASE)
_CHINESE_PRONOUN = re.compile("^(?:他们|她们|他|她|它)")


def told(unit: Unit, text: str, read: Parsed, me: str, about: str, subject: str, language: str) -> tuple[str, str]:
    """The clause in the third person, with its subject and, where that was left out, also without."""
    text = text.strip(_EDGES)
    group = group_label(unit, me, language)
    you = _you(unit, me, language)
    missing = read.dropped and about in ("self", "we", "kin", "named")
    name = group if missing and about == "we" else subject if missing and subject else me
    voice = voice_chinese if language == "zh" else voice_english
    if read.about == "pronoun" and subject:
        text = _named(text, subject, language)
    whole = voice.third_person(text, name, group, you, dropped=missing)
    bare = voice.third_person(text, name, group, you) if missing else whole
    return whole, bare[:1].lower() + bare[1:] if text[:1].islower() and bare[:1] != name[:1] else bare


def _named(text: str, subject: str, language: str) -> str:
    """ "She's a nurse" with the name of whom it is about."""
    if language == "zh":
        return _CHINESE_PRONOUN.sub(subject, text, count=1)
    return _ENGLISH_PRONOUN.sub(lambda found: subject + (" is" if "'" in found[0] else ""), text, count=1)


def _you(unit: Unit, me: str, language: str) -> str | None:
    """The assistant, or the other one of two; among many nobody can say."""
    others = {said.speaker for said in unit.messages if said.speaker and said.role != "assistant"} - {me}
    if not others:
        return "助手" if language == "zh" else "the assistant"
    return next(iter(others)) if len(others) == 1 else None
