"""What is said to be over by its name alone: "Mochi died", 二甲双胍停了, "Wendy and I broke up".

Which attribute that was is not said, and need not be: a memory that holds and is about a thing of this name ends; with
somebody who is gone ends what was known of them. It takes both, the words that say so and the name: a memory that is
merely similar is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..store.contract import Place
from ..text.language import HAN
from ..text.normal import normalise
from .extractors.over import by_name, done_again, one_of_these, parted, uncounted
from .facts import Fact, fact_of, whom
from .reconcile import Proposed

if TYPE_CHECKING:
    from ..store.base import Store

CAN_END = frozenset(("fact", "preference", "pattern", "task"))
# What stays so: whoever stops eating peanuts may be allergic to them still, and loves coffee after giving it up.
STAYS = (
    "age", "allergy", "avoids", "birthday", "diet:", "education", "favourite", "fear", "health", "hometown", "identity",
    "instruction", "likes", "name", "over", "prefers", "trait",
)  # fmt: skip
# What one has of a being: 养了一只猫.
HAS = frozenset(("pet", "family", "relationship"))
_OWNER = re.compile("^.*(?:的|'s )")
_HAN = re.compile(f"[{HAN}]+")
_LATIN = re.compile(r"[^\W\d_][\w+#]+(?:[.\-][\w+#]+)*")
_NAME = re.compile(r"\b[A-Z][\w+#\-]{2,}")

Told = tuple[Mapping[str, Any], str]  # a memory's data, and its slot


async def name_endings(
    proposed: Sequence[Proposed], place: Place, is_user: frozenset[str], store: Store
) -> list[Proposed]:
    """Each with the facts that it ends by their names. What was worth keeping only for that goes, if it ends none."""
    saying = [one for one in proposed if one.memory.data.get("ends")]
    if not saying:
        return list(proposed)

    async def known_with(words: Iterable[str]) -> list[Told]:
        wanted = sorted(set(words))
        there = await store.holding(place.user_id, CAN_END, wanted) if wanted else []
        return [(entry.data, entry.slot) for entry in there if _in_place(entry.data, entry.slot, place, is_user)]

    new = [(one.memory.data, one.facts[0].slot) for one in proposed if one.facts and one.memory.memory_type in CAN_END]
    known = new + await known_with(word for one in saying for word in _words(_said(one)))
    beings = {being for one in saying for data, _ in _meant(one, known) if (being := _being(data))}
    known += await known_with(_OWNER.sub("", being) for being in beings)
    found = []
    for one in proposed:
        ends = tuple(_facts_over(one, known)) if one in saying else ()
        if ends or not one.memory.data.get("if_known"):
            found.append(replace(one, ends=ends))
    return found


def _said(one: Proposed) -> str:
    return str(one.memory.data["ends"])


def _facts_over(one: Proposed, known: Sequence[Told]) -> Iterator[Fact]:
    meant = list(_meant(one, known))
    gone = {being for data, _ in meant if (being := _being(data))}
    own = {fact.slot for fact in one.facts}
    of_them = [(data, slot) for data, slot in known if any(_is_about(data, being) for being in gone)]
    for data, slot in (*meant, *of_them):
        if slot not in own and not data.get("ended"):
            value = data.get("value")
            yield Fact(slot=slot, value=normalise(value) if isinstance(value, str) else None, ended=True)


def _meant(one: Proposed, known: Iterable[Told]) -> Iterator[Told]:
    """The memories about something that is named in the words."""
    words = normalise(_said(one))
    whose = normalise(str(one.memory.data.get("speaker") or ""))
    for data, slot in known:
        if _is_of(data, whose) and (any(_names(words, thing) for thing in _things(data)) or _has_parted(words, data)):
            yield data, slot


def _in_place(data: Mapping[str, Any], slot: str, place: Place, is_user: frozenset[str]) -> bool:
    """Whether it was told in the same place: another agent's memories are not touched."""
    here = fact_of(data, agent_id=place.agent_id, group_id=place.group_id, is_user=is_user)
    return here is not None and whom(here.slot) == whom(slot)


def _is_of(data: Mapping[str, Any], whose: str) -> bool:
    """About whoever says so, or somebody or something of theirs."""
    subject = normalise(str(data.get("subject") or ""))
    return subject == whose or subject.startswith((f"{whose}的", f"{whose}'s ", f"{whose}等", f"{whose} and "))


def _being(data: Mapping[str, Any]) -> str:
    """Whose name it tells: 林梅的猫 of 林梅的猫叫年糕."""
    return _kin(data) if data.get("attribute") == "name" else ""


def _kin(data: Mapping[str, Any]) -> str:
    subject = str(data.get("subject") or "")
    return subject if _OWNER.match(subject) else ""


def _has_parted(words: str, data: Mapping[str, Any]) -> bool:
    """年糕走丢了, "my boyfriend and I broke up": by name, or by what they are to the speaker."""
    kin = _kin(data)
    called = [str(data.get("value") or "")] if _being(data) else []
    return bool(kin) and any(parted(words, normalise(name)) for name in (_OWNER.sub("", kin), *called) if name)


def _is_about(data: Mapping[str, Any], being: str) -> bool:
    if data.get("subject") == being:
        return True
    noun = _OWNER.sub("", being)
    return data.get("attribute") in HAS and noun.lower() in str(data.get("value") or "").lower()


def _things(data: Mapping[str, Any]) -> Iterator[str]:
    """What a memory is about, by name."""
    attribute, value = str(data.get("attribute") or ""), data.get("value")
    if attribute.startswith(STAYS):
        return
    kind, _, thing = attribute.partition(":")
    if kind == "habit":
        yield from done_again(thing)
    elif thing and kind != "uses":
        yield normalise(thing)
    elif isinstance(value, str):
        yield normalise(value)
        yield uncounted(normalise(value))
    if isinstance(value, str):
        yield from (normalise(name) for name in (*_NAME.findall(value), *by_name(value)))


def _names(words: str, thing: str) -> bool:
    if _HAN.search(thing):
        return len(thing) >= 2 and thing in words
    return len(thing) >= 3 and re.search(rf"(?<![a-z0-9]){re.escape(thing)}(?![a-z0-9])", words) is not None


def _words(said: str) -> Iterator[str]:
    """Any of which stands in a memory that can be meant: Latin words, pairs of Han characters, and what is one of
    those."""
    yield from _LATIN.findall(said)
    for run in _HAN.findall(said):
        yield from (run[at : at + 2] for at in range(len(run) - 1))
    yield from one_of_these(said)
