"""Select the drafts to keep: important and certain enough, and with valid evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from .. import validation
from ..errors import InvalidInput
from ..languages.terms import content_hash
from .drafts import Draft, Said

if TYPE_CHECKING:
    from ..settings import ExtractionSettings


def evaluate(
    drafts: Iterable[Draft], said: Sequence[Said], settings: ExtractionSettings
) -> tuple[list[Draft], list[str]]:
    """The drafts to keep, and what was wrong with others. What is merely unimportant is dropped without a word."""
    texts = {message.id: message.text for message in said}
    kept: dict[tuple[str, str, str | None], Draft] = {}
    wrong: Counter[str] = Counter()
    for draft in drafts:
        problem = _problem(draft, texts)
        if problem is not None:
            wrong[problem] += 1
        elif draft.importance >= settings.min_importance and draft.confidence >= settings.min_confidence:
            moment = draft.occurred_at.isoformat() if draft.attribute else None  # a fact can become true twice
            said_so = (draft.memory_type, content_hash(draft.content), moment)
            first = kept.get(said_so)
            kept[said_so] = draft if first is None else replace(first, evidence=(*first.evidence, *draft.evidence))
    return list(kept.values()), [f"{number} finds were rejected: {problem}" for problem, number in wrong.items()]


def _problem(draft: Draft, texts: dict[str, str]) -> str | None:
    """An extractor may be a language model: what it says is checked like any foreign input."""
    try:
        validation.text("content", draft.content)
        validation.memory_type("memory_type", draft.memory_type)
        if draft.summary is not None:
            validation.text("summary", draft.summary)
        validation.share("importance", draft.importance)
        validation.share("confidence", draft.confidence)
        validation.tags("tags", draft.tags)
        validation.json_object("data", draft.data)
        for name in ("subject", "attribute", "value", "replaces"):
            validation.optional_name(name, getattr(draft, name))
    except InvalidInput as error:
        return str(error)
    if draft.valid_to is not None and draft.valid_to <= (draft.valid_from or draft.occurred_at):
        return "it would end before it began"
    if not draft.evidence:
        return "no message supports it"
    for source in draft.evidence:
        if source.message_id not in texts:
            return "the message that supports it does not exist"
        end = len(texts[source.message_id])
        if not 0 <= (source.start or 0) <= (end if source.end is None else source.end) <= end:
            return "the part of the message that supports it does not exist"
    return None
