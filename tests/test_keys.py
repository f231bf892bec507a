"""Keys, the audit log, sources, the timeline and health, as the engine has them, on both databases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from jiyi import InvalidInput, Memory, Message, NotFound
from jiyi.areas import keys as keys_module
from jiyi.keys import key_id_of
from jiyi.models import utc_now


async def test_a_key_opens_until_it_is_withdrawn(memory: Memory) -> None:
    assert not await memory.keys.exist()
    made = await memory.keys.create("phone", user_ids=["林梅", "mei"], expires_at=utc_now() + timedelta(days=1))
    assert key_id_of(made.key) == made.id and made.scopes == ("read", "write") and not made.all_users
    found = await memory.keys.check(made.key)
    assert found is not None and found.user_ids == ("林梅", "mei")
    assert await memory.keys.check(made.key[:-1] + "_") is None
    assert await memory.keys.check("nonsense") is None
    assert (await memory.keys.revoke(made.id)).revoked_at is not None
    assert await memory.keys.check(made.key) is None and await memory.keys.exist()
    assert [key.id for key in await memory.keys.list()] == [made.id]
    assert [entry.action for entry in await memory.keys.audit()] == ["key.revoke", "key.create"]
    with pytest.raises(NotFound):
        await memory.keys.revoke("nothing")


@pytest.mark.parametrize(
    ("wrong", "argument"),
    [
        ({"scopes": ["fly"], "all_users": True}, "scopes"),
        ({"scopes": [], "all_users": True}, "scopes"),
        ({}, "user_ids"),
        ({"user_ids": ["mei"], "all_users": True}, "user_ids"),
        ({"user_ids": [""]}, "user_ids"),
        ({"all_users": True, "expires_at": datetime(2020, 1, 1, tzinfo=UTC)}, "expires_at"),
    ],
)
async def test_a_key_says_what_it_is_for(path: object, memory: Memory, wrong: dict[str, object], argument: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        await memory.keys.create("x", **wrong)  # type: ignore[arg-type]
    assert refused.value.argument.startswith(argument)
    assert not await memory.keys.exist()


async def test_the_audit_log_forgets_what_is_oldest(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys_module, "AUDIT_LIMIT", 3)
    for number in range(5):
        await memory.keys.log("test", detail=str(number))
    assert [entry.detail for entry in await memory.keys.audit()] == ["4", "3", "2"]
    assert [entry.detail for entry in await memory.keys.audit(limit=1)] == ["4"]


async def test_a_memory_names_its_messages_word_for_word(memory: Memory) -> None:
    said = Message(text="下周三去上海", speaker="Mei", id="m-1", sent_at=datetime(2024, 5, 1, tzinfo=UTC))
    kept = (await memory.add(said, user_id="mei", session_id="s1")).memories[0]
    (source,) = await memory.sources(kept.id, user_id="mei")
    assert (source.text, source.speaker, source.external_id, source.session_id) == ("下周三去上海", "Mei", "m-1", "s1")
    statement = (await memory.add("likes tea", user_id="mei")).memories[0]
    assert await memory.sources(statement.memory_key, user_id="mei") == []
    with pytest.raises(NotFound):
        await memory.sources(kept.id, user_id="lin")


async def test_the_timeline_goes_page_by_page_through_what_was_valid(memory: Memory) -> None:
    for year in range(2015, 2020):
        start, end = datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)
        await memory.add({"content": f"lived in place {year}", "valid_from": start, "valid_to": end}, user_id="mei")
    await memory.add({"content": "before the epoch", "valid_from": datetime(1950, 1, 1, tzinfo=UTC)}, user_id="mei")
    await memory.add(Message(text="said"), user_id="mei")
    seen: list[str] = []
    cursor = None
    while True:
        page = await memory.timeline(user_id="mei", limit=2, cursor=cursor)
        seen += [item.content for item in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == [*(f"lived in place {year}" for year in range(2019, 2014, -1)), "before the epoch"]
    span = (datetime(2016, 6, 1, tzinfo=UTC), datetime(2017, 6, 1, tzinfo=UTC))
    found = (await memory.timeline(user_id="mei", time_range=span)).items
    assert [item.content for item in found] == ["lived in place 2017", "lived in place 2016", "before the epoch"]
    assert [item.content for item in (await memory.timeline(user_id="mei", memory_types=["message"])).items] == ["said"]
    assert (await memory.timeline(user_id="lin")).items == ()
    with pytest.raises(InvalidInput, match="cursor"):
        await memory.timeline(user_id="mei", cursor="12")


async def test_health_is_good_and_tells_what_is_not(memory: Memory, deaf_memory: Memory) -> None:
    await memory.add("likes tea", user_id="mei")
    healthy = await memory.health()
    names = [check.name for check in healthy.checks]
    assert healthy.ready and names == ["store", "jobs", "embedder", "cache", "reader"]
    assert all(check.ok is (check.problem is None) for check in healthy.checks)
    assert "in this process" in str(healthy.checks[2].detail) or "given by the program" in str(healthy.checks[2].detail)
    assert (await memory.jobs.counts()).by_state == {"indexed": 1}
    deaf = await deaf_memory.health()
    assert deaf.ready, "words still answer: taking every process out of service would help nobody"
    assert [check.name for check in deaf.checks if not check.ok] == ["embedder"]
    await memory.close()
    gone = await memory.health()
    assert not gone.ready and gone.checks[0].name == "store" and gone.checks[0].problem
