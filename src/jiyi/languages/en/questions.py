"""Cues in English questions: the kind of answer they ask for."""

from __future__ import annotations

import re

CUES: dict[str, re.Pattern[str]] = {
    name: re.compile(pattern, re.IGNORECASE)
    for name, pattern in {
        "who": r"\bwho(?:se|m)?\b",
        "when": r"\bwhen\b|\b(?:what|which) (?:day|date|time|month|year)",
        "where": r"\bwhere\b|\bwhich (?:city|town|place|country)",
        "how_many": r"\bhow (?:many|much|old|long|tall|big|often|far)\b",
        "why": r"\bwhy\b",
        "how": r"\bhow\b",
        "yes_no": r"^(?:is|are|was|were|do|does|did|has|have|can|should|will)\b",
        "past": r"\b(?:last|used to|before|previous|former|originally|first|back in|ago)\b",
        "assistant_said": r"\bdid you\b|\byou (?:\w+ )?(?:say|said|tell|told|suggest|recommend|give|gave|mention)",
        "present": r"\b(?:now|current|currently|these days|at the moment|still|latest|nowadays|anymore)\b",
        "preference": r"\b(?:like|prefer|favou?rite|love|hate|enjoy|can't stand)\b",
        "task": r"\b(?:write|draft|book|order|plan|suggest|recommend|cook|make|find|prepare|help|buy|pick|remind)\b",
    }.items()
}
