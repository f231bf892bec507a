"""What is said to be over by its name alone: "Mochi died", 二甲双胍停了, "Wendy and I broke up".

Which attribute that was is not said, and need not be: a memory that holds and is about a thing of this name ends; with
somebody who is gone ends what was known of them. It takes both, the words that say so and the name: a memory that is
merely similar is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..languages.normalise import normalise
from ..languages.script import HAN
from ..languages.words import is_stop_word
from ..scope import Scope
from .extractors.over import by_name, does_away, done_again, goes_on_with_noun, leaves, one_of_these, parted, uncounted
from .facts import THE_USER, Fact, beside, fact_of, whom
from .reconcile import Proposed

if TYPE_CHECKING:
    from ..store.store import Store

CAN_END = frozenset(("fact", "preference", "pattern", "task"))
# What stays so: whoever stops eating peanuts may be allergic to them still, and loves coffee after giving it up.
STAYS = (
    "age", "allergy", "avoids", "birthday", "diet:", "education", "favourite", "fear", "health", "hometown", "identity",
    "instruction", "likes", "name", "over", "prefers", "trait",
)  # fmt: skip
# Where one is: that something else there is over does not end it.
LEFT = frozenset(("home", "job", "employer", "education", "school", "hometown", "at"))
# What one has of a being: 养了一只猫.
HAS = frozenset(("pet", "family", "relationship"))
_OWNER = re.compile("^.*(?:的|'s )")
_HAN = re.compile(f"[{HAN}]+")
_LATIN = re.compile(rf"[^\W\d_{HAN}][^\W{HAN}]*(?:[.\-+#][^\W{HAN}]*)*")
_NAME = re.compile(r"\b[A-Z][\w+#\-]{2,}")

Told = tuple[Mapping[str, Any], str]  # a memory's data, and its slot


async def name_endings(
    proposed: Sequence[Proposed], place: Scope, is_user: frozenset[str], store: Store
) -> list[Proposed]:
    """Each with the facts that it ends by their names. What was worth keeping only for that goes, if it ends none."""
    proposed = [_with_what_goes(one) for one in proposed]
    saying = [one for one in proposed if one.over]
    if not saying:
        return proposed
    here = _Here(place, THE_USER | is_user)

    async def known_with(words: Iterable[str]) -> list[Told]:
        wanted = sorted(set(words))
        there = await store.memories.current_by_slot(place.user_id, CAN_END, wanted) if wanted else {}
        return [(data, slot) for slot, told in there.items() for data in told]

    known: list[Told] = [(one.memory.data, one.facts[0].slot) for one in proposed if one.facts and _can_end(one)]
    known += await known_with(word for one in saying if one.over for word in _words(one.over.words))
    beings = {being for one in saying for data, _ in here.meant(one, known) if (being := _being(data))}
    known += await known_with(_OWNER.sub("", being) for being in beings)
    ends = {id(one): tuple(here.ended(one, known)) for one in saying}
    told = [replace(one, ends=(*one.ends, *ends.get(id(one), ()))) for one in proposed]
    return [one for one in told if one.ends or one.over is None or not one.over.if_known]


_NO_LONGER = r"\b(?:retired?|unemployed|between jobs)\b|退休|失业|待业|转行|改行|创业"
_MOVED = r"\b(?:mov(?:e|ed|ing)|relocated|now|these days|settled)\b|搬|迁|现在|如今|租了"
_AS = r"\bas (?:an?|the|their|head|chief)\b|当(?![当代地年时天今初])|做(?![得梦法客])|担任"
# What goes with something new, if its words say so: with a home of one's own a stay somewhere, with a move whatever was
# said of the old home, with another job where one worked, and with work elsewhere as something what one was.
_GOES = {
    "home": (("", ("stay",)), (_MOVED, ("dwelling", "near home", "address"))),
    "address": ((_MOVED, ("near home",)),),
    "job": ((_NO_LONGER, ("employer", "works as")),),
    "works as": ((rf"{_NO_LONGER}|\bnow\b", ("job",)),),
    "employer": ((_AS, ("job", "works as")),),
}


def _with_what_goes(one: Proposed) -> Proposed:
    attribute = str(one.memory.data.get("attribute"))
    if attribute not in _GOES or len(one.facts) != 1:
        return one
    [fact] = one.facts
    if fact.ended:
        # "I quit my job": whatever it was.
        also = ["works as"] if attribute == "employer" and fact.value is None else []
    else:
        said = one.memory.content
        also = [other for cue, others in _GOES[attribute] if re.search(cue, said, re.IGNORECASE) for other in others]
    goes = [Fact(slot=beside(fact.slot, other), value=None, ended=True) for other in also]
    return replace(one, ends=(*one.ends, *goes))


def _can_end(one: Proposed) -> bool:
    return one.memory.memory_type in CAN_END


@dataclass(frozen=True, slots=True)
class _Here:
    """Where, and by whom, something is said to be over."""

    place: Scope
    is_user: frozenset[str]  # names, normalised, under which the user is spoken of

    def ended(self, one: Proposed, known: Sequence[Told]) -> Iterator[Fact]:
        meant = list(self.meant(one, known))
        gone = {being for data, _ in meant if (being := _being(data))}
        own = {fact.slot for fact in one.facts}
        of_them = [(data, slot) for data, slot in known if any(_is_about(data, being) for being in gone)]
        for data, slot in (*meant, *(told for told in of_them if self._may_end(one, *told))):
            if slot not in own and not data.get("ended"):
                value = data.get("value")
                yield Fact(slot=slot, value=normalise(value) if isinstance(value, str) else None, ended=True)

    def meant(self, one: Proposed, known: Iterable[Told]) -> Iterator[Told]:
        """The memories about something that is named in the words."""
        words = normalise(one.over.words) if one.over else ""
        for data, slot in known:
            named = any(_names(words, thing) for thing in _things(data))
            if named and data.get("attribute") in LEFT:
                named = leaves(words)
            if (named or _has_parted(words, data)) and self._may_end(one, data, slot):
                yield data, slot

    def _may_end(self, one: Proposed, data: Mapping[str, Any], slot: str) -> bool:
        """Whether it is about whoever says so, or somebody or something of theirs; and was told in the same place and
        is trusted as much: another agent's memories are not touched, nor what the user said by what a page says."""
        speaker, subject = normalise(one.over.speaker if one.over else ""), str(data.get("subject") or "")
        if speaker in self.is_user and self._is_about(one, data, "", slot):
            return True  # under whatever name
        names = self.is_user if speaker in self.is_user else {speaker}
        own = any(
            normalise(subject) == name
            or (name and normalise(subject).startswith((f"{name}的", f"{name}'s ", f"{name}等", f"{name} and ")))
            for name in names
        )
        return own and self._is_about(one, data, subject, slot)

    def _is_about(self, one: Proposed, data: Mapping[str, Any], subject: str, slot: str) -> bool:
        fact = fact_of(
            {**data, "subject": subject},
            agent_id=self.place.agent_id,
            group_id=self.place.group_id,
            is_user=self.is_user,
            trust=one.memory.trust,
        )
        return fact is not None and whom(fact.slot) == whom(slot)


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
    names = [normalise(name) for name in (_OWNER.sub("", kin), *called)] if kin else []
    return any(name and name in words and parted(words, name) for name in names)


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
    """Whether the thing itself is named: in "the Berlin marathon" and 上海的演唱会 it only says which one."""
    if thing not in words or len(thing) < (2 if _HAN.search(thing) else 3):
        return False
    whole = re.escape(thing) if _HAN.search(thing) else rf"(?<![a-z0-9]){re.escape(thing)}(?![a-z0-9])"
    rests = [words[found.end() :] for found in re.finditer(whole, words)]
    return any(not goes_on_with_noun(rest) and not does_away(rest) for rest in rests)


def _words(said: str) -> Iterator[str]:
    """Any of which stands in a memory that can be meant: Latin words, pairs of Han characters, and what is one of
    those."""
    latin = [word.strip(".-") for word in _LATIN.findall(said) if len(word) > 2 and not is_stop_word(word.lower())]
    yield from latin
    yield from (word[:-3] for word in latin if word.endswith("ing") and len(word) > 6)  # tutoring: whoever tutors
    for run in _HAN.findall(said):
        yield from (run[at : at + 2] for at in range(len(run) - 1))
    yield from one_of_these(said)
