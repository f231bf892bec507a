"""Drafts in words that their speaker only passes on: a pasted mail, a quotation, a text to translate.

They are kept, but change and end nothing. Mostly foreign words that speak of an "I", or that would change something,
become a memory of type `quote`, which is trusted less; unless no more than a clause of the speaker's and a colon
introduces them, as in "for the dinner on Friday: I eat no meat". A note such as "Deadline: March 5" stays what it is:
nothing depends on whose words it is in.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydantic import JsonValue

from ..languages import cue
from ..languages.words import normalise
from .classify import classify
from .drafts import Draft
from .own_words import divide, is_marked

QUOTE = "quote"  # type of such memories
QUOTED_TRUST = 0.5
MOSTLY = 0.4  # share of foreign words from which on a statement is not the speaker's own
ENDING = frozenset({"change", "end", "correction"})  # kinds of statements that end others


def in_whose_words(draft: Draft, text: str) -> Draft:
    """Return a draft as far as the words of its message are the speaker's own."""
    source = draft.source
    start, end = source.start or 0, len(text) if source.end is None else source.end
    own, foreign = divide(text, start, end)
    if not any(map(str.isalnum, foreign)):
        return draft
    mostly = len(foreign) > MOSTLY * (end - start)
    claims = _claims(draft, foreign)
    if not is_marked(text, start, end) and not _orders(draft, foreign):
        return draft if not claims else _without_claims(draft, kind=draft.data.get("kind"))
    if mostly and source.start is not None and (claims or cue("first_person").search(foreign)):
        return _without_claims(draft, memory_type=QUOTE, trust=QUOTED_TRUST, subject=None)
    if claims and (mostly or not _is_claimed_in(own, foreign, draft)):
        return _without_claims(draft)
    return draft


def _claims(draft: Draft, foreign: str) -> bool:
    """Return True if a draft changes, ends or orders something."""
    return bool(draft.attribute or draft.ends) or draft.data.get("kind") in ENDING or _orders(draft, foreign)


def _orders(draft: Draft, foreign: str) -> bool:
    return draft.data.get("kind") == "instruction" or cue("instruction").search(foreign) is not None


def _is_claimed_in(own: str, foreign: str, draft: Draft) -> bool:
    """Return True if own words alone make the claim; a value may be a quoted word: my dog is called "Rex"."""
    if draft.value is not None:
        value = normalise(draft.value)
        return value in normalise(own) or value == normalise(foreign.strip("\"'’‘‚“”„«»‹›＂「」『』《》〈〉"))
    kind = draft.data.get("kind")
    return kind not in ENDING or classify(own).kind in ENDING


def _without_claims(draft: Draft, *, kind: JsonValue = QUOTE, **changes: Any) -> Draft:
    return replace(
        draft,
        owner=None,
        attribute=None,
        value=None,
        single=False,
        ended=False,
        replaces=None,
        ends=(),
        data={**draft.data, "kind": "fact" if kind in ENDING else kind},
        **changes,
    )
