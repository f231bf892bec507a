"""Episodes: what a conversation was about, once for each person in it, from that person's side."""

from __future__ import annotations

from pydantic import JsonValue

from ..drafts import Draft, Evidence, Unit
from .clause import Clause

MOST_SENTENCES = 6
LONGEST_TITLE = 60


def episodes(unit: Unit, read: list[Clause], drafts: list[Draft]) -> list[Draft]:
    """Told with the words of the conversation: the statements that became memories, in their order."""
    found = []
    for subject in dict.fromkeys(clause.said.speaker or clause.said.role for clause in read):
        own = [clause for clause in read if (clause.said.speaker or clause.said.role) == subject]
        told = _told(own, drafts)
        if len(told) < 2:
            # One statement is a memory of its own; telling it again would add nothing.
            continue
        chinese = sum(clause.language == "zh" for clause in told) * 2 > len(told)
        joint, stop = ("。", "。") if chinese else (". ", ".")
        first = told[0]
        best = max(told, key=lambda clause: _importance(clause, drafts))
        found.append(
            Draft(
                memory_type="episode",
                content=joint.join(clause.content for clause in told) + stop,
                summary=_title(best.content),
                evidence=tuple(
                    Evidence(message_id=clause.said.id, start=clause.start, end=clause.end) for clause in told
                ),
                occurred_at=first.at,
                subject=first.said.speaker or first.subject,
                attribute=f"episode:{unit.id}",
                value=_title(best.content),
                importance=0.5,
                data={"extractor": "builtin", "title": _title(best.content), "participants": _participants(unit)},
            )
        )
    return found


def _told(own: list[Clause], drafts: list[Draft]) -> list[Clause]:
    kept = {(place.message_id, place.start) for draft in drafts for place in draft.evidence}
    told = [clause for clause in own if (clause.said.id, clause.start) in kept]
    if len(told) > MOST_SENTENCES:
        weightiest = sorted(told, key=lambda clause: -_importance(clause, drafts))[:MOST_SENTENCES]
        told = [clause for clause in told if clause in weightiest]
    return told


def _importance(clause: Clause, drafts: list[Draft]) -> float:
    place = (clause.said.id, clause.start)
    return max((d.importance for d in drafts if any((e.message_id, e.start) == place for e in d.evidence)), default=0.0)


def _participants(unit: Unit) -> list[JsonValue]:
    return list(dict.fromkeys(said.speaker or said.role for said in unit.messages))


def _title(content: str) -> str:
    return content if len(content) <= LONGEST_TITLE else content[: LONGEST_TITLE - 1].rstrip() + "…"
