"""Memories that an extractor finds are compared with nearly equal ones of the same kind, place and trust; a language
model judges those pairs, and no others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from jiyi import Draft, Evidence, Memory, MemoryItem, Unit
from jiyi.embed import Vectors
from jiyi.languages.terms import hamming, term_hash
from jiyi.testing import ScriptedLLM, WordEmbedder
from jiyi.write.index import KeywordRules, index_entry
from support import DAY, MONDAY, stored

OLD, NEW = "Mei keeps the red bicycle in the cellar", "in the cellar Mei keeps the red bicycle"
OTHER = "the red bicycle Mei keeps in the cellar"


@dataclass
class Quoting:
    """Makes a fact of each message, with the fields that are set."""

    id: str = "quoting"
    fields: dict[str, Any] = field(default_factory=dict)

    async def __call__(self, unit: Unit, /) -> Sequence[Draft]:
        return [
            replace(
                Draft(
                    memory_type="fact",
                    content=said.text,
                    evidence=(Evidence(message_id=said.id),),
                    occurred_at=said.sent_at,
                ),
                **self.fields,
            )
            for said in unit.messages
        ]


def near_hash(text: str) -> int:
    return index_entry(text, text, (), {}, "fact", KeywordRules(most=10, lightest=0.1)).near_hash


class Unlike(WordEmbedder):
    """Similar texts have different vectors."""

    def _embed(self, text: str) -> Vectors:
        vector = super()._embed(text) * 0
        vector[term_hash(text) % self.dimension] = 1.0
        return vector


class Told:
    """A memory that learns from messages; a model judges all pairs alike."""

    def __init__(self, path: Path, action: str, embedder: WordEmbedder | None = None) -> None:
        judgements = [{"pair": at + 1, "action": action, "reason": "so", "merged": None} for at in range(8)]
        self.model, self.extractor = ScriptedLLM(json.dumps({"judgements": judgements})), Quoting()
        self.memory = Memory.open(
            path, embedder=embedder or WordEmbedder(512), llm=self.model, extractor=self.extractor
        )

    async def __aenter__(self) -> Told:
        await self.memory.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self.memory.__aexit__(*error)

    async def say(self, *texts: str, day: int = 0, how: dict[str, Any] | None = None, **draft: Any) -> None:
        self.extractor.fields = draft
        at = MONDAY + day * DAY
        messages = [
            {"role": "user", "content": text, "sent_at": at + timedelta(minutes=number)}
            for number, text in enumerate(texts)
        ]
        await self.memory.add(messages, user_id="mei", session_id=f"s{day}", **(how or {}))

    def pairs(self) -> list[tuple[str, str]]:
        """Return the old and new texts of the pairs that were judged."""
        lines = [line for request in self.model.requests for line in request.user.splitlines() if line.startswith("[")]
        texts = [line.partition("): ")[2] for line in lines]
        return list(zip(texts[::2], texts[1::2], strict=True))

    async def facts(self, day: float = 30) -> dict[str, MemoryItem]:
        found = await stored(self.memory, as_of=MONDAY + day * DAY)
        return {one.content: one for one in found if one.memory_type != "message"}


async def test_a_nearly_equal_memory_is_judged(path: Path) -> None:
    async with Told(path, "ignore") as told:
        await told.say(OLD)
        await told.say(NEW, day=1)
        assert list(await told.facts()) == [OLD] and told.pairs() == [(OLD, NEW)]


async def test_the_same_words_are_enough_without_similar_vectors(path: Path) -> None:
    async with Told(path, "ignore", Unlike(512)) as told:
        await told.say(OLD, "Tom walks to the station")
        await told.say(NEW, "Anna bakes bread on Sundays", day=1)
        assert told.pairs() == [(OLD, NEW)]


@pytest.mark.parametrize(("was", "now", "judged"), [("dry", "yellow", True), ("red", "wooden", False)])
async def test_near_hashes_may_differ_by_three_bits(path: Path, was: str, now: str, judged: bool) -> None:
    old = (
        "Mei keeps the old red bicycle with the broken bell and the wicker basket in the dry cellar behind the garden"
        " house near the small river"
    )
    new = old.replace(was, now)
    assert hamming(near_hash(old), near_hash(new)) == (3 if judged else 4)
    async with Told(path, "ignore", Unlike(512)) as told:
        await told.say(old)
        await told.say(new, day=1)
        assert told.pairs() == ([(old, new)] if judged else [])


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ({}, {"valid_to": MONDAY + 2 * DAY}),
        ({"valid_to": MONDAY + 900 * DAY}, {}),
        ({"memory_type": "episode"}, {"memory_type": "episode"}),
        ({"memory_type": "preference"}, {}),
        ({"how": {"agent_id": "a"}}, {}),
        ({"how": {"group_id": "g"}}, {"how": {"agent_id": "a"}}),
        ({}, {"how": {"group_id": "g"}}),
        ({"how": {"trust": 0.5}}, {}),
    ],
    ids=["new ended", "old ends", "episodes", "type", "agent", "group and agent", "group", "trust"],
)
async def test_what_has_ended_or_belongs_elsewhere_is_not_judged(
    first: dict[str, Any], then: dict[str, Any], path: Path
) -> None:
    async with Told(path, "ignore") as told:
        await told.say(OLD, **first)
        await told.say(NEW, day=1, **then)
        assert told.pairs() == [] and (await told.facts(day=1.5)).keys() == {OLD, NEW}


async def test_a_stored_memory_is_judged_once_for_all_new_ones(path: Path) -> None:
    async with Told(path, "supersede") as told:
        await told.say(OLD)
        await told.say(NEW, OTHER, day=1)
        assert told.pairs() == [(OLD, NEW)]
        assert (await told.facts()).keys() == {NEW, OTHER}


async def test_eight_pairs_are_judged_the_most_similar_first(path: Path) -> None:
    names = ("Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gil", "Hana", "Ivo")
    texts = [f"{name} keeps one old wooden rowing boat near the northern river bank beside {name}" for name in names]
    async with Told(path, "keep_both") as told:
        await told.say(*texts)
        turned = [" ".join([*text.split()[2:], *text.split()[:2]]) for text in texts]
        await told.say(turned[0] + " today", *turned[1:], day=1)
        assert len(told.pairs()) == 8 and {old for old, _ in told.pairs()} == set(texts[1:])


@pytest.mark.parametrize(("day", "ended"), [(0, False), (1, True)])
async def test_a_memory_ends_only_older_ones(path: Path, day: int, ended: bool) -> None:
    async with Told(path, "supersede") as told:
        await told.say(OLD)
        await told.say(NEW, day=2, valid_from=MONDAY + day * DAY)
        assert told.pairs() == [(OLD, NEW)]
        assert (await told.facts()).keys() == ({NEW} if ended else {OLD, NEW})


async def test_a_replacement_holds_since_the_memory_that_was_wrong(path: Path) -> None:
    async with Told(path, "replace") as told:
        await told.say(OLD)
        await told.say(NEW, day=2)
        new = (await told.facts())[NEW]
        assert new.valid_from == MONDAY
        [relation] = await told.memory.relations.list(new.id, user_id="mei")
        old = await told.memory.get(relation.target_id, user_id="mei")
        assert relation.relation_type == "refines" and (old.valid_to, old.superseded_by) == (MONDAY, new.id)
