"""Gives a claim the attribute under which the same thing was told before, so that what is new ends what is old.

Whoever "pays for Spotify" and later "went with Tidal" has changed one thing; a standing meeting that moves from Tuesday
to Thursday is one meeting. The words differ each time, the kind of thing does not.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

from .clause import PERSONS, Claim, Clause
from .facts import besides
from .kinds import chinese_things
from .lexicon import named, pattern

# Known by what they say already: a slot of their own.
_OWN_SLOT = (
    "uses:",
    "home",
    "job",
    "employer",
    "works as",
    "name",
    "plan",
    "deadline",
    "instruction",
    "likes:",
    "prefers",
    "appointment",
    "goal",
)
# Of these a person mostly has one at a time.
_ONE = frozenset(
    (
        "ai", "bank", "browser", "car", "computer", "editor", "email", "learning", "music", "notes", "os", "phone",
        "shell", "tracker", "video",
    )
)  # fmt: skip
_CALLED_BY_KIND = frozenset(("browser", "computer", "editor", "phone"))  # "my phone is …"
_WEEKDAY = re.compile(
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|[周期拜][一二三四五六日天]{1,4}", re.IGNORECASE
)
# One of them, and not all: "the next rehearsal", 下次读书会在16号周四.
_THIS_TIME = re.compile(
    r"\d(?:st|nd|rd|th)\b|\b(?:next|this|tomorrow|book|will)\b|\d号|[下这本上]次|[下这本上]个?[周星礼]",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<![.!?] )(?<!^)\b[A-Z][a-z]+\b")


def slotted(clause: Clause, claim: Claim) -> Claim:
    if clause.about not in (*PERSONS, "thing", "other"):
        return claim
    if claim.attribute in _CALLED_BY_KIND:
        # "My phone is a Pixel" and "I switched to a Pixel" tell of one thing.
        claim = replace(claim, attribute=f"uses:{claim.attribute}")
    own = claim.attribute.startswith(_OWN_SLOT)
    return _schedule(clause, claim) or (None if own else _product(clause, claim)) or claim


def is_standing(text: str, language: str) -> bool:
    """Whether something is spoken of that comes again every week."""
    return (
        _WEEKDAY.search(text) is not None
        and pattern(language, "standing").search(text) is not None
        and not _THIS_TIME.search(text)
    )


# -- what is used -----------------------------------------------------------------------------------------------------


_LATIN = re.compile(r"[a-z][a-z0-9+#.]*(?:_[a-z]+)*", re.IGNORECASE)


def _things(text: str) -> list[str]:
    """Words for things of a known kind of which one has one, by name: one look for each word."""
    kinds = named("all", "kinds")
    latin = _LATIN.findall(text)
    pairs = [f"{one} {other}" for one, other in pairwise(latin)]
    found = [word for word in pairs if word.lower() in kinds]
    taken = {part for pair in found for part in pair.split()}
    found += [word for word in latin if word.lower() in kinds and word not in taken]
    found += chinese_things(text)
    return [word for word in found if kinds[word.lower()] in _ONE]


def _product(clause: Clause, claim: Claim) -> Claim | None:
    """Something of a known kind, that is used, begun with, or given up."""
    if claim.memory_type not in ("fact", "pattern", "event", "preference"):
        return None
    found = _things(clause.text)
    if not found:
        return None
    ends = pattern(clause.language, "gives up").search(clause.text)
    begins = pattern(clause.language, "takes to").search(clause.text)
    names = {thing.lower() for thing in found}
    if len(names) == 2 and ends and begins and len({named("all", "kinds")[name] for name in names}) == 1:
        # "I uninstalled VS Code, Cursor is my editor now"
        return _exchanged(clause, claim, found, ends.end())
    if len(names) != 1 or not (ends or begins):
        return None
    kind = named("all", "kinds")[found[0].lower()]
    over = ends is not None and (begins is None or ends.start() > begins.start())
    return replace(
        claim,
        memory_type="fact" if claim.memory_type == "event" else claim.memory_type,
        attribute="car" if kind == "car" else f"uses:{kind}",
        # "Galaxy S24", 华为Mate 60: with the model
        value=claim.value if re.match(rf"{re.escape(found[0])}[ \w+]*$", claim.value, re.ASCII) else found[0],
        single=not over,
        ended=over,
        weight=max(claim.weight, 0.57),
    )


def _exchanged(clause: Clause, claim: Claim, found: list[str], ends: int) -> Claim:
    """What stands next to the word that ends is over."""
    places = {thing: abs(clause.text.find(thing) - ends) for thing in found}
    old, new = sorted(places, key=lambda thing: places[thing])
    kind = named("all", "kinds")[new.lower()]
    return replace(
        claim,
        memory_type="fact",
        attribute="car" if kind == "car" else f"uses:{kind}",
        value=new,
        replaces=old,
        single=True,
        ended=False,
        weight=max(claim.weight, 0.6),
    )


# -- what comes again -------------------------------------------------------------------------------------------------


def _schedule(clause: Clause, claim: Claim) -> Claim | None:
    """A standing meeting, a class, a shift: one of its name, on one day."""
    days = _WEEKDAY.findall(clause.text)
    over = pattern(clause.language, "called off").search(clause.text) is not None
    what = pattern(clause.language, "standing").search(clause.text)
    more = not over and besides(clause)
    if what is None or not (over or is_standing(clause.text, clause.language)) or clause.future:
        return None
    return replace(
        claim,
        memory_type="fact" if over else "pattern",
        attribute=f"schedule:{_called(clause, what[0])}" + (f":{days[-1].lower()}" if days and more else ""),
        value=days[-1].lower() if days and not over else "",
        single=not over,
        ended=over,
        weight=max(claim.weight, 0.7),
    )


def _called(clause: Clause, what: str) -> str:
    """The meeting and whose it is: "lisbon sync", 苏州例会."""
    if clause.language == "en":
        whose = [name for name in _NAME.findall(clause.text) if not _WEEKDAY.match(name) and name != clause.speaker]
        head = what.lower().removeprefix("weekly ").rstrip("s")
        return " ".join([*sorted({name.lower() for name in whose}), head])
    from rjieba import tag

    return "".join(sorted({word for word, kind in tag(clause.text) if kind in ("ns", "nz", "nt")})) + what
