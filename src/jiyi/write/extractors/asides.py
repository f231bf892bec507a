"""What a clause tells on the way: that the daughter is called Aylin, in a sentence about her party."""

from __future__ import annotations

from .clause import Claim, Clause
from .names import kin_label
from .people import relations_in


def relations(clause: Clause) -> list[Claim]:
    """Who somebody is to the speaker."""
    return [
        Claim(
            memory_type="fact",
            subject=kin_label(clause.speaker, relation.noun, clause.language),
            content=_content(clause, relation.noun, relation.name),
            attribute="name",
            value=relation.name,
            single=True,
            weight=0.8,
            importance=0.65,
        )
        for relation in relations_in(clause.text, clause.language)
    ]


def partings(clause: Clause) -> list[Claim]:
    """ "Pablo and I broke up": he is nobody's boyfriend any more."""
    if clause.parted is None:
        return []
    whose, name = clause.parted
    return [
        Claim(memory_type="fact", subject=whose, attribute="name", value=name, ended=True, weight=0.8, importance=0.6)
    ]


def _content(clause: Clause, noun: str, name: str) -> str:
    whose = kin_label(clause.speaker, noun, clause.language)
    return f"{whose}叫{name}" if clause.language == "zh" else f"{whose} is called {name}"
