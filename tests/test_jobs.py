"""What is accepted is done: on a lease, again after a failure, once, and in a state that can be seen."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

import workers
from extractors import SpelledOut
from jiyi import InvalidInput, Memory, NotFound, ReceiptState, StoreUnavailable
from jiyi.models import utc_now
from jiyi.settings import load_settings
from jiyi.store.write_set import LeaseLost
from jiyi.testing import WordEmbedder
from support import Place, contents, stored
from workers import crew

TALK = [{"role": "user", "content": "Mei home = Berlin"}, {"role": "assistant", "content": "Noted."}]


def open_with(place: Place, extractor: SpelledOut, **jobs: Any) -> Memory:
    settings = load_settings(jobs={"retry_delay_s": 0.01, **jobs})
    return Memory.open(place, settings=settings, embedder=WordEmbedder(), extractor=extractor)


async def test_add_waits_for_its_job(place: Place) -> None:
    async with open_with(place, SpelledOut()) as memory:
        receipt = await memory.add(TALK, user_id="mei", session_id="s")
        assert receipt.state is ReceiptState.INDEXED and receipt.created == 3
        made = receipt.memories[-1]
        assert (made.content, made.source, made.data["value"]) == ("Mei home: Berlin", "extracted", "Berlin")
        assert made.source_ids == receipt.memories[0].source_ids
        assert contents(await memory.search("where is home?", user_id="mei", memory_types=["fact"])) == [made.content]


async def test_what_is_accepted_is_found_before_the_model_answers(place: Place) -> None:
    model = SpelledOut(gate=asyncio.Event())
    async with open_with(place, model) as memory:
        receipt = await memory.add(TALK, user_id="mei", wait=False)
        assert receipt.state is ReceiptState.ACCEPTED and receipt.created == 2
        assert contents(await memory.search("Berlin", user_id="mei")) == ["Mei home = Berlin"]
        in_vain = await memory.jobs.wait(receipt, user_id="mei", timeout=0.05)
        assert in_vain.state is ReceiptState.ACCEPTED
        job = await memory.jobs.get(receipt.id, user_id="mei")
        assert job.attempts == 1 and job.leased_until is not None
        model.gate.set()  # type: ignore[union-attr]
        done = await memory.jobs.wait(receipt.id, user_id="mei")
        assert done.state is ReceiptState.INDEXED and [one.memory_type for one in done.memories][-1] == "fact"
        assert done == await memory.jobs.status(receipt, user_id="mei")


async def test_waiting_is_bounded_by_a_setting(place: Place) -> None:
    async with open_with(place, SpelledOut(gate=asyncio.Event()), wait_timeout_s=0.05) as memory:
        assert (await memory.add(TALK, user_id="mei")).state is ReceiptState.ACCEPTED


async def test_a_failing_model_is_asked_again(place: Place) -> None:
    model = SpelledOut(failures=2)
    async with open_with(place, model) as memory:
        receipt = await memory.add(TALK, user_id="mei")
        assert receipt.state is ReceiptState.INDEXED and receipt.problems == ()
        assert (await memory.jobs.get(receipt.id, user_id="mei")).attempts == 3
        assert len(await stored(memory, memory_types=["fact"])) == 1


async def test_in_the_end_it_fails_visibly_and_can_be_tried_again(place: Place) -> None:
    model = SpelledOut(failures=3)
    async with open_with(place, model, max_attempts=3) as memory:
        receipt = await memory.add(TALK, user_id="mei")
        assert receipt.state is ReceiptState.FAILED
        assert receipt.problems == ("the model is out to lunch",)
        assert len(await stored(memory)) == 2, "what was said is kept"
        [job] = await memory.jobs.list(state="failed")
        assert job.id == receipt.id and job.next_attempt_at is None
        await memory.jobs.retry(job.id, user_id="mei")
        assert (await memory.jobs.wait(receipt, user_id="mei")).state is ReceiptState.INDEXED
        with pytest.raises(InvalidInput, match="nothing left to do"):
            await memory.jobs.retry(job.id, user_id="mei")


async def test_a_cancelled_job_writes_nothing_more(place: Place) -> None:
    model = SpelledOut(gate=asyncio.Event())
    async with open_with(place, model) as memory:
        receipt = await memory.add(TALK, user_id="mei", wait=False)
        while not model.seen:
            await asyncio.sleep(0.01)
        await memory.jobs.cancel(receipt.id, user_id="mei", actor="tom")
        model.gate.set()  # type: ignore[union-attr]
        await memory.jobs.work()
        cancelled = await memory.jobs.status(receipt, user_id="mei")
        assert cancelled.state is ReceiptState.FAILED and cancelled.problems == ("cancelled by tom",)
        assert await stored(memory, memory_types=["fact"]) == []
        with pytest.raises(InvalidInput, match="nothing to cancel"):
            await memory.jobs.cancel(receipt.id, user_id="mei")


async def test_closing_hands_jobs_back_and_opening_goes_on(place: Place) -> None:
    stuck = SpelledOut(gate=asyncio.Event())
    async with open_with(place, stuck, lease_s=3600) as memory:
        receipt = await memory.add(TALK, user_id="mei", wait=False)
        while not stuck.seen:
            await asyncio.sleep(0.01)
    async with open_with(place, SpelledOut()) as memory:  # nobody asks it to
        for _ in range(3000):
            if (await memory.jobs.status(receipt, user_id="mei")).state is ReceiptState.INDEXED:
                break
            await asyncio.sleep(0.02)
        assert (await memory.jobs.get(receipt.id, user_id="mei")).attempts == 1, "being closed was no attempt"
        assert len(await stored(memory, memory_types=["fact"])) == 1


async def test_a_lease_that_ran_out_cannot_be_used(place: Place) -> None:
    """The slow worker's result is thrown away; the quick one's counts."""
    slow = SpelledOut(gate=asyncio.Event())
    async with open_with(place, slow, in_process=False) as memory, open_with(place, SpelledOut()) as other:
        receipt = await memory.add(TALK, user_id="mei", wait=False)
        now = utc_now()
        lease = await memory._engine.store.jobs.claim("slow", now, now + timedelta(milliseconds=1))
        assert lease is not None and lease.job_id == receipt.id
        await asyncio.sleep(0.01)
        await other.jobs.work()
        assert (await memory.jobs.status(receipt, user_id="mei")).state is ReceiptState.INDEXED
        for late in (
            memory._engine.store.jobs.renew(lease, utc_now(), utc_now()),
            memory._engine.store.jobs.fail(lease, utc_now(), "x"),
            memory._engine.store.jobs.postpone(lease, utc_now(), utc_now(), "x"),
            memory._engine.store.jobs.release(lease, utc_now()),
        ):
            with pytest.raises(LeaseLost):
                await late
        assert len(await stored(memory, memory_types=["fact"])) == 1


async def test_jobs_of_one_session_are_done_in_order(place: Place) -> None:
    async with open_with(place, SpelledOut(), in_process=False) as memory:
        for city in ("Rome", "Oslo", "Berlin"):
            await memory.add(
                [{"role": "user", "content": f"Mei home = {city}"}], user_id="mei", session_id="s", wait=False
            )
        now = utc_now()
        first = await memory._engine.store.jobs.claim("a", now, now + timedelta(minutes=9))
        assert first is not None
        assert await memory._engine.store.jobs.claim("b", now, now + timedelta(seconds=9)) is None
        await memory.add([{"role": "user", "content": "Tom home = Rome"}], user_id="tom", session_id="s", wait=False)
        now = utc_now() + timedelta(seconds=1)
        another = await memory._engine.store.jobs.claim("b", now, now + timedelta(seconds=9))
        assert another is not None and another.user_id == "tom"


async def test_a_message_that_is_delivered_again_is_not_read_again(place: Place) -> None:
    model = SpelledOut()
    message = {"id": "m1", "role": "user", "content": "Mei home = Berlin"}
    async with open_with(place, model) as memory:
        for created in (2, 0):
            assert (await memory.add([message], user_id="mei", session_id="s")).created == created
            await memory.jobs.work()
        assert len(model.seen) == 1


async def test_no_more_jobs_run_at_once_than_the_setting_says(place: Place) -> None:
    model = SpelledOut(gate=asyncio.Event())
    async with open_with(place, model, concurrency=2) as memory:
        receipts = [await memory.add(TALK, user_id="mei", session_id=f"s{at}", wait=False) for at in range(4)]
        while len(model.seen) < 2:
            await asyncio.sleep(0.01)
        for _ in range(3):  # a third one would begin by now
            await memory.jobs.counts()
        assert len(model.seen) == 2
        model.gate.set()  # type: ignore[union-attr]
        done = [await memory.jobs.wait(receipt, user_id="mei") for receipt in receipts]
        assert {one.state for one in done} == {ReceiptState.INDEXED}


async def test_a_clock_that_is_set_back_a_day_holds_no_job_up(place: Place) -> None:
    day, lease_time = timedelta(days=1), timedelta(seconds=60)
    async with open_with(place, SpelledOut(), in_process=False) as memory:
        await memory.add(TALK, user_id="mei", wait=False)
        ahead = utc_now()
        now = ahead - day
        taken = await memory._engine.store.jobs.claim("a", now, now + lease_time)
        assert taken is not None  # it is due, whatever the clock said when it came in
        assert await memory._engine.store.jobs.claim("b", now, now + lease_time) is None
        await memory._engine.store.jobs.release(taken, now)
        assert await memory._engine.store.jobs.claim("dies", ahead, ahead + lease_time) is not None
        assert await memory._engine.store.jobs.claim("b", now, now + lease_time) is not None


async def test_a_clock_that_is_set_back_a_day_holds_upkeep_not_up(place: Place) -> None:
    lease_time = timedelta(minutes=5)
    async with open_with(place, SpelledOut(), in_process=False) as memory:
        ahead = utc_now()
        assert (
            await memory._engine.store.maintenance.begin_round("a", ahead, ahead + lease_time, forced=True) is not None
        )
        assert await memory._engine.store.maintenance.begin_round("b", ahead, ahead + lease_time, forced=True) is None
        now = ahead - timedelta(days=1)
        assert await memory._engine.store.maintenance.begin_round("b", now, now + lease_time, forced=True) is not None


async def test_a_job_whose_worker_dies_again_and_again_fails(place: Place) -> None:
    async with open_with(place, SpelledOut(), in_process=False, max_attempts=2) as memory:
        receipt = await memory.add(TALK, user_id="mei", wait=False)
        for _ in range(2):
            now = utc_now()
            assert await memory._engine.store.jobs.claim("dies", now, now) is not None
        await memory.jobs.work()
        job = await memory.jobs.get(receipt.id, user_id="mei")
        assert job.state is ReceiptState.FAILED and "its worker died at it, 2 times" in job.problems[0]


async def test_deleting_a_user_ends_their_jobs(place: Place) -> None:
    model = SpelledOut(gate=asyncio.Event())
    async with open_with(place, model) as memory:
        await memory.add(TALK, user_id="mei", wait=False)
        while not model.seen:
            await asyncio.sleep(0.01)
        await memory.delete_all("mei")
        model.gate.set()  # type: ignore[union-attr]
        await memory.jobs.work()
        assert await stored(memory) == [] and await memory.jobs.list() == []


async def test_what_was_deleted_meanwhile_is_not_made_anew(place: Place) -> None:
    async with open_with(place, SpelledOut(), in_process=False) as memory:
        receipt = await memory.add(TALK, user_id="mei", wait=False)
        await memory.delete(receipt.memories[0].id, user_id="mei")
        await memory.jobs.work()
        assert [one.content for one in await stored(memory)] == ["Noted."]


async def test_a_job_of_which_all_messages_are_deleted_says_so(place: Place) -> None:
    async with open_with(place, SpelledOut(), in_process=False) as memory:
        receipt = await memory.add(TALK, user_id="mei", wait=False)
        for made in receipt.memories:
            await memory.delete(made.id, user_id="mei", with_sources=True)
        job = await memory.jobs.get(receipt.id, user_id="mei")
        assert (job.state, job.next_attempt_at) == (ReceiptState.FAILED, None)
        assert any("was deleted" in problem for problem in job.problems)
        assert await memory.jobs.work() == 0


async def test_a_lease_is_renewed_as_long_as_the_work_goes_on(place: Place) -> None:
    model = SpelledOut(gate=asyncio.Event())
    async with open_with(place, model, lease_s=4.0) as memory:
        receipt = await memory.add(TALK, user_id="mei", wait=False)
        first = (await memory.jobs.get(receipt.id, user_id="mei")).leased_until
        while first is None:
            await asyncio.sleep(0.02)
            first = (await memory.jobs.get(receipt.id, user_id="mei")).leased_until
        later: Any = first
        while later <= first:
            await asyncio.sleep(0.05)
            later = (await memory.jobs.get(receipt.id, user_id="mei")).leased_until
        model.gate.set()  # type: ignore[union-attr]
        await memory.jobs.wait(receipt, user_id="mei")
        assert (await memory.jobs.get(receipt.id, user_id="mei")).attempts == 1


@pytest.mark.parametrize("known", [False, True], ids=["new", "told before"])
async def test_messages_deleted_while_a_job_works_on_them_are_no_failure(
    place: Place, known: bool, caplog: pytest.LogCaptureFixture
) -> None:
    model = SpelledOut()
    async with open_with(place, model) as memory:
        if known:
            await memory.add([{"role": "user", "content": "Mei home = Berlin"}], user_id="mei", session_id="s0")
        model.seen.clear()
        model.gate = asyncio.Event()
        said = [*TALK, {"role": "user", "content": "Mei drink = tea"}]
        receipt = await memory.add(said, user_id="mei", session_id="s", wait=False)
        while not model.seen:
            await asyncio.sleep(0.01)
        await memory.delete(receipt.memories[0].id, user_id="mei", with_sources=True)
        model.gate.set()
        done = await memory.jobs.wait(receipt, user_id="mei")
        assert (done.state, done.problems) == (ReceiptState.INDEXED, ())
        assert (await memory.jobs.get(receipt.id, user_id="mei")).attempts == 1
        facts = sorted(one.content for one in await stored(memory, memory_types=["fact"]))
        assert facts == (["Mei drink: tea", "Mei home: Berlin"] if known else ["Mei drink: tea"])
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == []


async def test_one_user_does_not_see_anothers_jobs(place: Place) -> None:
    async with open_with(place, SpelledOut()) as memory:
        receipt = await memory.add(TALK, user_id="mei")
        for look in (memory.jobs.get, memory.jobs.retry, memory.jobs.cancel, memory.jobs.status, memory.jobs.wait):
            with pytest.raises(NotFound):
                await look(receipt.id, user_id="tom")
        assert await memory.jobs.list(user_id="tom") == []


async def test_what_could_not_be_embedded_is_indexed_once_it_is(place: Place, switch: Any) -> None:
    async with Memory.open(place, embedder=switch) as memory:
        receipt = await memory.add("likes tea", user_id="mei")
        assert receipt.state is ReceiptState.EXTRACTED
        switch.failing = False
        await memory.maintenance.reindex()
        assert (await memory.jobs.status(receipt, user_id="mei")).state is ReceiptState.INDEXED


async def test_an_idempotency_key_returns_the_job_as_it_stands(place: Place) -> None:
    model = SpelledOut()
    async with open_with(place, model) as memory:
        first = await memory.add(TALK, user_id="mei", idempotency_key="k", wait=False)
        done = await memory.jobs.wait(first, user_id="mei")
        assert await memory.add(TALK, user_id="mei", idempotency_key="k") == done
        assert len(model.seen) == 1


async def test_a_draft_without_a_message_to_stand_on_is_rejected_and_counted(place: Place) -> None:
    from dataclasses import replace

    from extractors import drafts_of
    from jiyi import Draft, Evidence, Unit

    class Inventive(SpelledOut):
        async def __call__(self, unit: Unit, /) -> list[Draft]:
            [true] = drafts_of(unit)
            invented = Evidence(message_id="01invented")
            beyond = Evidence(message_id=unit.messages[0].id, start=0, end=999)
            return [true, *(replace(true, content="x", evidence=(one,)) for one in (invented, beyond)),
                    replace(true, content="y", evidence=()), replace(true, content=" ")]  # fmt: skip

    async with open_with(place, Inventive()) as memory:
        receipt = await memory.add(TALK, user_id="mei")
        assert [one.content for one in receipt.memories if one.memory_type == "fact"] == ["Mei home: Berlin"]
        assert len(receipt.problems) == 4 and all("rejected" in problem for problem in receipt.problems)


@pytest.mark.parametrize("in_process", [True, False])
async def test_a_worker_outlives_a_store_that_is_away(
    place: Place, in_process: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It says once that the store is away, and goes on when that is back."""
    for pause in ("jiyi.write.worker.POLL_S", "jiyi.areas.background.RETRY_S"):
        monkeypatch.setattr(pause, 0.02)
    model = SpelledOut(gate=asyncio.Event())
    async with open_with(place, model, in_process=in_process) as memory:
        queue, asked = memory._engine.store.jobs, 0

        async def away(*_: Any) -> Any:
            nonlocal asked
            asked += 1
            raise StoreUnavailable("the database does not answer")

        working = None if in_process else asyncio.create_task(memory.jobs.work(until_idle=False))
        first = await memory.add(TALK, user_id="mei", session_id="s", wait=False)
        second = await memory.add([{"role": "user", "content": "Mei cat = Tofu"}], user_id="mei", wait=False)
        while not model.seen:
            await asyncio.sleep(0.01)
        with monkeypatch.context() as broken:
            broken.setattr(queue, "claim", away)
            broken.setattr(queue, "next_due", away)
            model.gate.set()  # type: ignore[union-attr]
            async with asyncio.timeout(60):
                while asked < 8:
                    await asyncio.sleep(0.01)
        for receipt in (first, second):
            done = await memory.jobs.wait(receipt, user_id="mei", timeout=30)
            assert done.state is ReceiptState.INDEXED
        if working is not None:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
    told = [record.getMessage() for record in caplog.records if record.name == "jiyi.write.worker"]
    assert told == ["no job can be taken now: the database does not answer"]


async def test_several_worker_processes_do_each_job_once(place: Place) -> None:
    said = [f"Mei thing{number} = value{number}" for number in range(24)]
    async with open_with(place, SpelledOut(), in_process=False) as memory:
        for number, text in enumerate(said):
            await memory.add(
                [{"role": "user", "content": text}], user_id=f"user {number % 3}", session_id=text, wait=False
            )
    told = crew([(workers.do_jobs, (place,)) for _ in range(4)])
    assert [problem for problem in told if isinstance(problem, str)] == []
    assert sorted(text for given in told for text in given) == sorted(said)
    async with open_with(place, SpelledOut(), in_process=False) as memory:
        jobs = await memory.jobs.list(limit=100)
        assert {(job.state, job.attempts) for job in jobs} == {(ReceiptState.INDEXED, 1)}
        facts = [
            one.content for user in range(3) for one in await stored(memory, f"user {user}", memory_types=["fact"])
        ]
        assert sorted(facts) == sorted(f"Mei thing{number}: value{number}" for number in range(24))
