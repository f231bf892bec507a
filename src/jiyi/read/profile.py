"""Profiles: what is known of a user or a group now, each line once."""

import re
from collections.abc import Iterable, Iterator

from .. import threads
from ..languages.words import normalise
from ..models import MemoryItem
from ..roles import subject_text, teller_of

TYPES = ("fact", "preference", "pattern")
_TOGETHER = re.compile(r"\W{0,4}(?:we|our|us|let['’]s|everyone|everybody)\b|我们|咱们?|大家", re.IGNORECASE)


def distinct_lines(memories: Iterable[MemoryItem]) -> Iterator[MemoryItem]:
    """Leave out what another line says already. What several people say of themselves is several lines; what they say
    of all of them (We meet on Tuesdays) is one."""
    seen: set[tuple[object, ...]] = set()
    for memory in memories:
        threads.check()
        data = memory.data
        teller = teller_of(data, memory.user_id)
        whose = None if _TOGETHER.match(memory.content) else (teller, subject_text(data) or data.get("speaker"))
        keys: set[tuple[object, ...]] = {(whose, normalise(memory.content).strip("。.!！ "))}
        if isinstance(value := data.get("value"), str) and data.get("attribute"):
            keys.add((whose, data["attribute"], normalise(value)))
        if not keys & seen:
            yield memory
        seen |= keys
