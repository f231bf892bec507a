"""Relations between memories: created by callers, with a strength, within one user."""

from __future__ import annotations

from pathlib import Path

import pytest

from jiyi import InvalidInput, Memory, MemoryItem, NotFound


async def two(memory: Memory) -> tuple[MemoryItem, MemoryItem]:
    one, other = (await memory.add(["drinks tea every morning", "likes tea"], user_id="mei")).memories
    return one, other


async def test_a_relation_is_seen_from_both_sides_and_its_strength_can_change(memory: Memory) -> None:
    one, other = await two(memory)
    made = await memory.relations.add(one.id, other.memory_key, "supports", user_id="mei", strength=0.7)
    assert (made.memory_id, made.target_id, made.strength) == (one.id, other.id, 0.7)
    again = await memory.relations.add(one.id, other.id, "supports", user_id="mei", strength=0.2)
    assert (again.strength, again.created_at) == (0.2, made.created_at)
    for memory_id in (one.id, other.id):
        assert await memory.relations.list(memory_id, user_id="mei") == [again]


async def test_a_relation_is_removed_alone_or_with_its_memory(memory: Memory) -> None:
    one, other = await two(memory)
    for kind in ("supports", "refines"):
        await memory.relations.add(one.id, other.id, kind, user_id="mei")  # type: ignore[arg-type]
    assert await memory.relations.remove(other.id, one.id, user_id="mei") == 0
    assert await memory.relations.remove(one.id, other.id, user_id="mei") == 2
    await memory.relations.add(one.id, other.id, "refines", user_id="mei")
    await memory.delete(other.id, user_id="mei")
    assert await memory.relations.list(one.id, user_id="mei") == []
    assert (await memory.get(one.id, user_id="mei")).content == one.content, "what refines it stays"


async def test_wrong_relations_are_refused(memory: Memory) -> None:
    one, other = await two(memory)
    [theirs] = (await memory.add("likes coffee", user_id="bo")).memories
    for wrong in ({"relation_type": "likes"}, {"strength": 1.5}, {"target_id": one.id}):
        given = {"target_id": other.id, "relation_type": "supports", **wrong}
        with pytest.raises(InvalidInput):
            await memory.relations.add(one.id, user_id="mei", **given)  # type: ignore[arg-type]
    with pytest.raises(NotFound):
        await memory.relations.add(one.id, theirs.id, "supports", user_id="mei")
    assert await memory.relations.list(theirs.id, user_id="bo") == []


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("我的狗叫什么？", "我的狗叫豆豆"),
        ("房租多少钱", "房租每月3200元"),
        ("what is my dog called", "我的狗叫豆豆"),
        ("how much is the rent", "房租每月3200元"),
    ],
)
async def test_a_radius_of_07_keeps_the_answers(query: str, wanted: str, path: Path) -> None:
    async with Memory.open(path) as memory:
        others = ["Grandma's recipe needs four eggs", "周五部署到生产环境"]
        await memory.add(["我的狗叫豆豆", "房租每月3200元", *others], user_id="mei")
        found = {hit.content for hit in await memory.search(query, user_id="mei", search_mode="semantic", radius=0.7)}
        assert wanted in found and found.isdisjoint(others)


async def test_the_radius_leaves_out_what_only_its_meaning_finds(memory: Memory) -> None:
    await memory.add(["likes green tea", "plays the violin"], user_id="mei")

    async def found(mode: str, radius: float | None) -> set[str]:
        hits = await memory.search("green tea", user_id="mei", search_mode=mode, radius=radius)  # type: ignore[arg-type]
        return {hit.content for hit in hits}

    assert await found("semantic", 0.999) == set()
    assert "likes green tea" in await found("semantic", 0.3)
    assert await found("hybrid", 0.999) == await found("keyword", 0.999) == {"likes green tea"}
    with pytest.raises(InvalidInput, match="radius"):
        await found("semantic", 2.0)
