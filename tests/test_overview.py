"""Overviews: the change log with its undo, people and things, memories that need a look, sizes of users."""

from __future__ import annotations

import pytest

from jiyi import InvalidInput, Memory
from jiyi.read.overview import ChangeEntry
from jiyi.testing import Clock
from support import DAY, MONDAY, NOW, said


@pytest.fixture
def memory(extracting_memory: Memory) -> Memory:
    return extracting_memory


async def test_the_change_log_tells_what_happened_and_undo_takes_it_back(memory: Memory) -> None:
    await said(memory, "I live in Paris.", "I moved to Rome.")
    note = (await memory.add("Tea at five", user_id="mei")).memories[0]
    await memory.update(note.id, user_id="mei", content="Tea at six")
    gone = (await memory.add("A secret", user_id="mei")).memories[0]
    await memory.delete(gone.id, user_id="mei")
    log = (await memory.usage.changes(user_id="mei")).items
    told = [(entry.kind, entry.text, entry.source) for entry in log]
    assert told[:3] == [
        ("forgotten", None, "jiyi"),
        ("changed", "Tea at six", "person"),
        ("learned", "Tea at six", "person"),
    ]
    assert log[1].before == "Tea at five" and log[1].can_undo and not log[2].can_undo
    assert ("learned", "I moved to Rome.", "chat") in told
    await memory.update(note.id, user_id="mei", valid_to=NOW, reason="ended: no more tea")
    assert (await memory.usage.changes(user_id="mei")).items[0].kind == "ended"
    (ended,) = [entry for entry in log if entry.kind == "ended"]
    assert ended.text == "I live in Paris." and ended.can_undo
    assert "secret" not in str(log)

    await memory.maintenance.undo(ended.memory_id, user_id="mei")
    paris = await memory.get(ended.memory_id, user_id="mei")
    assert paris.valid_to is None and paris.superseded_by is None
    newest = (await memory.usage.changes(user_id="mei", limit=1)).items[0]
    assert (newest.kind, newest.memory_id) == ("restored", paris.id)


async def test_an_addition_can_be_undone_once(memory: Memory) -> None:
    note = (await memory.add("Tea at five", user_id="mei")).memories[0]
    [added] = (await memory.usage.changes(user_id="mei")).items
    assert (added.kind, added.can_undo) == ("learned", True)
    await memory.maintenance.undo(note.id, user_id="mei")
    log = (await memory.usage.changes(user_id="mei")).items
    assert [entry.can_undo for entry in log if entry.action == "add"] == [False]


async def test_the_change_log_has_pages_and_sources(memory: Memory) -> None:
    await memory.add([f"Note {number}" for number in range(7)], user_id="mei")  # all at the same time
    await memory.add("By an agent", user_id="mei", agent_id="helper", actor="helper")
    seen: list[str] = []
    cursor = None
    while True:
        page = await memory.usage.changes(user_id="mei", limit=3, cursor=cursor)
        seen += [entry.memory_id for entry in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert len(seen) == len(set(seen)) == 8
    (by_agent,) = (await memory.usage.changes(user_id="mei", source="agent", limit=3)).items
    assert by_agent.text == "By an agent"
    with pytest.raises(InvalidInput):
        await memory.usage.changes(user_id="mei", cursor="nonsense")
    assert (await memory.usage.changes(user_id="nobody")).items == ()


async def test_pages_of_one_entry_hold_the_change_log_in_its_order(memory: Memory) -> None:
    with Clock(MONDAY):  # everything happens at the same time
        made = await memory.add([f"Note {number}" for number in range(3)], user_id="mei")
        for item in made.memories:
            for text in ("twice", "three times"):
                await memory.update(item.id, user_id="mei", content=f"{item.content} {text}")
        whole = (await memory.usage.changes(user_id="mei", limit=100)).items
        pages: list[ChangeEntry] = []
        cursor = None
        while len(pages) < 10:
            page = await memory.usage.changes(user_id="mei", limit=1, cursor=cursor)
            pages += page.items
            cursor = page.next_cursor
            if cursor is None:
                break
    assert tuple(pages) == whole and len(whole) == 9


async def test_facts_of_a_subject_are_those_that_hold(memory: Memory) -> None:
    facts = [
        {"content": "Tom plays chess.", "data": {"subject": "Tom"}},
        {"content": "Tom lives in Rome.", "data": {"subject": "Tom"}, "valid_to": MONDAY},
        {"content": "Tom left Acme.", "data": {"subject": "Tom", "ended": True}},
        {"content": "Tom sold the boat.", "data": {"subject": "Tom", "kind": "end"}},
    ]
    with Clock(MONDAY - DAY) as clock:
        await memory.add(facts, user_id="mei")
        counted = []
        for clock.now in (MONDAY - DAY, MONDAY):  # at the moment it ends it no longer holds
            subjects = await memory.usage.subjects(user_id="mei")
            counted += [(one.facts, one.mentions) for one in subjects if one.name == "Tom"]
    assert counted == [(2, 4), (1, 4)]


async def test_people_and_things_are_listed_and_merged(memory: Memory) -> None:
    await said(
        memory,
        "My manager is Tom Baker.",
        "I had lunch with Tom Baker in Lisbon.",
        "I work with Tom on the Apollo project.",
        "I live in Lisbon.",
    )
    found = {subject.name: subject for subject in await memory.usage.subjects(user_id="mei")}
    assert found["mei"].kind == "user"
    assert (found["Tom Baker"].kind, found["Tom Baker"].mentions) == ("person", 2)
    assert (found["Lisbon"].kind, found["Apollo"].kind) == ("place", "project")
    assert found["Tom"].mentions == 1
    await memory.synonyms.add([("Tom", "Tom Baker", 1.0)], user_id="mei")
    merged = {subject.name: subject for subject in await memory.usage.subjects(user_id="mei")}
    assert "Tom" not in merged
    assert merged["Tom Baker"].aliases == ("Tom",) and merged["Tom Baker"].mentions == 3
    for name in ("Tom", "Tom Baker"):
        assert len(await memory.usage.mentions(name, user_id="mei")) == 3


async def test_names_in_chinese_are_listed(memory: Memory) -> None:
    await said(
        memory,
        "我叫李航，在腾讯上班。",
        "我女朋友小雯是护士。",
        "小雯喜欢喝奶茶。",
        "我女儿叫朵朵，今年六岁。",
        "我家的猫叫团子。",
        "我同事王芳下周去上海出差。",
        "我在清华大学读书。",
        "我弟弟在北京读研究生。",
        "我对花生过敏，最近在学吉他。",
    )
    found = {subject.name: subject.kind for subject in await memory.usage.subjects(user_id="mei")}
    people = {name for name, kind in found.items() if kind == "person"}
    assert {"小雯", "朵朵", "王芳"} <= people and "李航" not in people
    assert (found["上海"], found["北京"], found["清华大学"]) == ("place", "place", "organisation")
    assert found["团子"] == "thing" and found["腾讯"] == "organisation"
    assert not {"过敏", "花生", "吉他", "奶茶"} & found.keys()
    assert {one.content for one in await memory.usage.mentions("小雯", user_id="mei")} == {
        "我女朋友小雯是护士。",
        "小雯喜欢喝奶茶。",
    }


async def test_a_known_name_is_found_in_what_is_said_later(memory: Memory) -> None:
    await said(
        memory,
        "我的猫叫慢慢，今年三岁了。",
        "慢慢最近不爱吃东西。",
        "王老师教数学。",
        "我跟张伟去吃饭。",
        "张伟的电话是13800000000。",
        "我喜欢成都。",
        "I met my friend Ana in Porto.",
        "Ana likes jazz.",
    )
    found = {subject.name: subject for subject in await memory.usage.subjects(user_id="mei")}
    assert (found["慢慢"].kind, found["慢慢"].mentions) == ("thing", 2)
    assert (found["张伟"].kind, found["张伟"].mentions) == ("person", 2)
    assert (found["王老师"].kind, found["成都"].kind, found["Porto"].kind) == ("person", "place", "place")
    assert found["Ana"].kind == "person"
    assert "Ana likes jazz." in {one.content for one in await memory.usage.mentions("Ana", user_id="mei")}
    assert "张伟去" not in found
    for name in ("慢慢", "张伟", "Ana"):
        assert len(await memory.usage.mentions(name, user_id="mei")) == found[name].mentions


async def test_what_is_no_name_is_not_listed(memory: Memory) -> None:
    await said(
        memory,
        "My Wi-Fi password is Blue-Heron-77.",
        "I live at 12 St. James Street, near St. Paul's.",
        "Dr. Chen said I should walk more.",
        "My brother Tom lives in Boston and works at Google.",
    )
    found = {subject.name: subject.kind for subject in await memory.usage.subjects(user_id="mei")}
    assert not {"St", "Wi-Fi", "Blue-Heron-77", "James Street", "Boston and works at Google"} & found.keys()
    assert (found["Chen"], found["Boston"], found["Tom"]) == ("person", "place", "person")
    assert {"St. James Street", "St. Paul"} <= found.keys()


async def test_conflicts_repetitions_and_doubts_are_to_be_reviewed(memory: Memory) -> None:
    await memory.add("The alarm code is 4711", user_id="mei", trust=0.3)
    await memory.add([{"content": "Blood type A", "confidence": 0.4}], user_id="mei")
    await memory.add([{"content": "Sure of this", "confidence": 0.9}], user_id="mei")
    home = {"subject": "user", "attribute": "home", "single": True}
    await memory.add(
        [{"content": f"Lives in {city}", "data": {**home, "value": city}} for city in ("Rome", "Oslo")], user_id="mei"
    )
    found = await memory.usage.review(user_id="mei")
    told = [(item.why, {one.content for one in item.memories}) for item in found]
    assert ("untrusted", {"The alarm code is 4711"}) in told and ("unsure", {"Blood type A"}) in told
    assert not any("Sure of this" in texts for _, texts in told)
    doubtful = next(item for item in found if item.why == "unsure").memories[0]
    await memory.update(doubtful.id, user_id="mei", metadata={**doubtful.metadata, "reviewed": True})
    assert not any(item.why == "unsure" for item in await memory.usage.review(user_id="mei"))


async def test_sizes_of_all_users(memory: Memory) -> None:
    await said(memory, "I live in Paris.")
    await memory.add("Tea", user_id="阿明")
    sizes = {size.user_id: (size.memories, size.messages) for size in await memory.usage.sizes()}
    assert sizes["阿明"] == (1, 0) and sizes["mei"][1] == 1


async def test_a_recall_is_explained(memory: Memory) -> None:
    await said(memory, "I am allergic to peanuts.", "My dog is called Rex.", "I like to sail in summer.")
    report = await memory.recall("what is my dog called?", user_id="mei", explain=True)
    assert any("Rex" in one.memory.content for one in report.used)
    assert all(one.memory.content in report.block for one in report.used)
    assert 0 < report.tokens <= report.max_tokens
    used, left = {one.memory.id for one in report.used}, {one.hit.id for one in report.left_out}
    assert not used & left
    nothing = await memory.recall("what is my dog called?", user_id="nobody", explain=True)
    assert (nothing.block, nothing.tokens, nothing.used, nothing.left_out) == ("", 0, (), ())
