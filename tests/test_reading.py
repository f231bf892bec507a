"""Searches with a reader: it reads the best candidates together with the question, and says what new statements end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from jiyi import Memory
from jiyi.reader import Passage, Verdict
from jiyi.settings import load_settings
from jiyi.testing import ScriptedReader, WordEmbedder

SAID = (
    "Pho for lunch again, that place is too good.",
    "The landlord finally fixed the heating.",
    "We signed the lease, so from May on I'm in Lisbon.",
    "周末和同事去爬了香山，腿到现在还酸。",
    "医生让我把咖啡戒了，换成了低因的。",
    "Totally forgot my umbrella on the tram.",
)
MAY = datetime(2026, 5, 1, 10, tzinfo=UTC)
QUESTION = "For which city did we sign the lease?"


async def say(memory: Memory, texts: Sequence[str], name: str | None = None, at: datetime = MAY) -> None:
    said = {"role": "user"} | ({"name": name} if name else {})
    messages = [{**said, "content": text, "sent_at": at + timedelta(minutes=n)} for n, text in enumerate(texts)]
    await memory.add(messages, user_id="mei", session_id=str(at.timestamp()))


@pytest.fixture
async def reading(path: Path) -> AsyncIterator[Memory]:
    async with Memory.open(path, embedder=WordEmbedder(512), reader=ScriptedReader("Lisbon")) as memory:
        await say(memory, SAID)
        yield memory


async def test_what_the_reader_takes_for_an_answer_is_relevant_and_nothing_else(reading: Memory) -> None:
    found = await reading.search(QUESTION, user_id="mei")
    assert "Lisbon" in found.hits[0].content and found.hits[0].relevant
    assert not any(hit.relevant for hit in found.hits[1:])
    assert (await reading.stats()).reader == "testing:Lisbon"


async def test_a_score_depends_on_the_pair_alone(reading: Memory) -> None:
    scores = set()
    for limit in (1, 3, 10):
        hits = (await reading.search(QUESTION, user_id="mei", limit=limit)).hits
        scores.add(next(hit.relevance_score for hit in hits if "Lisbon" in hit.content))
    await say(reading, [f"Lisbon is on page {number}." for number in range(5)], at=MAY + timedelta(days=1))
    hits = (await reading.search(QUESTION, user_id="mei", limit=10)).hits
    scores.add(next(hit.relevance_score for hit in hits if "lease" in hit.content))
    assert len(scores) == 1


async def test_the_reader_gets_the_speaker_and_the_message_before(path: Path) -> None:
    reader = ScriptedReader("May")
    async with Memory.open(path, embedder=WordEmbedder(512), reader=reader) as memory:
        messages = [
            {"role": "assistant", "content": "When do you move to Lisbon?"},
            {"role": "user", "content": "In May, with the cat."},
            {"role": "user", "name": "Tom", "content": "Lisbon again? I like Porto."},
        ]
        await memory.add(messages, user_id="mei", session_id="s")
        await memory.search("When do I move to Lisbon?", user_id="mei")
    passages = {passage.text: passage for _, asked in reader.asked for passage in asked}
    assert passages["In May, with the cat."] == Passage("In May, with the cat.", "user", "When do you move to Lisbon?")
    assert passages["Lisbon again? I like Porto."].speaker == "Tom"
    assert passages["When do you move to Lisbon?"].speaker == "assistant"


async def test_no_more_is_read_than_the_budget_allows_and_what_was_not_read_is_not_relevant(path: Path) -> None:
    reader, settings = ScriptedReader("Lisbon"), load_settings(search={"reading_tokens": 30})
    async with Memory.open(path, settings=settings, embedder=WordEmbedder(512), reader=reader) as memory:
        await say(memory, [f"I thought of Lisbon on day {number}." for number in range(30)])
        found = await memory.search("On which days did I think of Lisbon?", user_id="mei", limit=20)
    read = [passage for _, passages in reader.asked for passage in passages]
    assert 1 <= len(read) <= 3
    assert [hit.relevant for hit in found.hits].count(True) == len(read)


async def test_a_long_message_before_does_not_use_up_the_budget(path: Path) -> None:
    """Only its beginning is read."""
    reader, settings = ScriptedReader("Lisbon"), load_settings(search={"reading_tokens": 2000})
    async with Memory.open(path, settings=settings, embedder=WordEmbedder(512), reader=reader) as memory:
        for number in range(12):
            pasted = {"role": "assistant", "content": "This is a line of a log. " * 4000}
            said = {"role": "user", "content": f"On day {number} I thought of Lisbon."}
            await memory.add([pasted, said], user_id="mei", session_id=str(number))
        found = await memory.search("On which days did I think of Lisbon?", user_id="mei", limit=20)
    assert sum(hit.relevant for hit in found.hits) == 12
    assert all(len(passage.before) <= 300 for _, passages in reader.asked for passage in passages)


async def test_long_texts_are_read_where_they_share_words_with_the_question(path: Path) -> None:
    reader = ScriptedReader("Lisbon")
    async with Memory.open(path, embedder=WordEmbedder(512), reader=reader) as memory:
        rest = " ".join(f"Paragraph {number} says something else entirely." for number in range(40))
        await say(memory, [f"{rest} The flat that I rent is in Lisbon now. {rest}"])
        found = await memory.search("Where is the flat that I rent?", user_id="mei")
    assert found.hits[0].relevant
    assert all(len(passage.text) < 400 for _, passages in reader.asked for passage in passages)


async def test_a_failing_reader_costs_its_reading_only(path: Path) -> None:
    class Failing(ScriptedReader):
        def answers(self, question: str, passages: Sequence[Passage]) -> list[float | None]:
            raise FileNotFoundError("reader.onnx")

    async with Memory.open(path, embedder=WordEmbedder(512), reader=Failing("Lisbon")) as memory:
        await say(memory, SAID)
        found = await memory.search("Is the lease in Lisbon signed?", user_id="mei")
    assert found.hits
    assert found.degraded == ("hits are ranked without reading them: the reader failed (FileNotFoundError)",)


async def test_an_explanation_lists_the_inputs_of_the_score(reading: Memory) -> None:
    found = await reading.search(QUESTION, user_id="mei", explain=True)
    explanation = found.hits[0].explanation
    assert explanation is not None and explanation.evidence[0].name == "reader"
    assert {"similarity", "words", "asks"} <= {part.name for part in explanation.evidence}


async def test_settings_switch_the_reader_of_the_package_off(path: Path) -> None:
    for wanted in (True, False):
        settings = load_settings(search={"reader": wanted})
        async with Memory.open(path, settings=settings, embedder=WordEmbedder(512)) as memory:
            assert ((await memory.stats()).reader is not None) is wanted


@pytest.mark.parametrize(
    "words", ["hi", "Thanks a lot!", "lol", "no", "hmm...", "???", "谢谢", "好的，辛苦了！", "哈哈哈"]
)
async def test_words_that_ask_for_nothing_are_answered_by_nothing(path: Path, words: str) -> None:
    async with Memory.open(path, embedder=WordEmbedder(512), reader=ScriptedReader("")) as memory:
        await say(memory, ["hi, no, I live in Lisbon lol, hmm, thanks a lot", "谢谢，好的，我住在成都哈哈哈，辛苦了"])
        assert not any(hit.relevant for hit in (await memory.search(words, user_id="mei")).hits)
        assert (await memory.search(f"{words} where do I live?", user_id="mei")).hits[0].relevant


# -- endings ----------------------------------------------------------------------------------------------------------

OLD, NEW = "I smoke about a pack every two days.", "Six weeks without a pack now, and it feels great."
ENDING = ("without a pack", "about a pack")


async def rows(memory: Memory, text: str = OLD) -> list[str]:
    """Return who said a text, for each row with it that still holds: the message and what was derived from it."""
    pages = [await memory.list(user_id="mei", limit=100), await memory.list(user_id="mei", memory_types=["message"])]
    return [str(item.data.get("speaker")) for page in pages for item in page.items if item.content == text]


async def test_what_the_reader_says_has_ended_ends_with_its_reason_and_can_be_undone(path: Path) -> None:
    async with Memory.open(path, embedder=WordEmbedder(512), reader=ScriptedReader("-", ends=ENDING)) as memory:
        await say(memory, [OLD, "I smoke fish in the garden."])
        before = len(await rows(memory))
        await say(memory, [NEW], at=MAY + timedelta(days=40))
        assert len(await rows(memory)) < before and await rows(memory, "I smoke fish in the garden.")
        past = await memory.search("smoke", user_id="mei", as_of=MAY + timedelta(days=1), limit=20)
        assert OLD in {hit.content for hit in past.hits}
        page = await memory.usage.changes(user_id="mei")
        [ending] = [change for change in page.items if "a newer statement ends it" in (change.reason or "")]
        assert "(probability 0.99)" in str(ending.reason)
        await memory.maintenance.undo(ending.memory_id, user_id="mei")
        assert len(await rows(memory)) == before


async def test_an_unsure_verdict_ends_nothing(path: Path) -> None:
    reader = ScriptedReader("-", ends=ENDING, probability=0.7)
    async with Memory.open(path, embedder=WordEmbedder(512), reader=reader) as memory:
        await say(memory, [OLD])
        before = await rows(memory)
        await say(memory, [NEW], at=MAY + timedelta(days=40))
        assert await rows(memory) == before and reader.judged


async def test_others_end_only_what_they_said(path: Path) -> None:
    async with Memory.open(path, embedder=WordEmbedder(512), reader=ScriptedReader("-", ends=ENDING)) as memory:
        await say(memory, [OLD])
        await say(memory, [OLD], name="Tom", at=MAY + timedelta(days=1))
        before = await rows(memory)
        await say(memory, [NEW], name="Tom", at=MAY + timedelta(days=40))
        after = await rows(memory)
        assert after.count("Tom") < before.count("Tom") and after.count("None") == before.count("None")


async def test_quoted_words_end_nothing(path: Path) -> None:
    async with Memory.open(path, embedder=WordEmbedder(512), reader=ScriptedReader("-", ends=ENDING)) as memory:
        await say(memory, [OLD])
        before = await rows(memory)
        await say(memory, [f"> {NEW}"], at=MAY + timedelta(days=40))
        assert await rows(memory) == before


async def test_a_reader_that_fails_while_adding_costs_its_judgement_only(path: Path) -> None:
    class Failing(ScriptedReader):
        def changes(self, newer: Passage, older: Sequence[Passage]) -> list[Verdict | None]:
            raise FileNotFoundError("reader.onnx")

    async with Memory.open(path, embedder=WordEmbedder(512), reader=Failing("-")) as memory:
        await say(memory, [OLD])
        said = [{"role": "user", "content": NEW}]
        receipt = await memory.add(said, user_id="mei", session_id="later")
        assert any("reader failed (FileNotFoundError)" in problem for problem in receipt.problems)
        assert await rows(memory) and await rows(memory, NEW)


async def test_a_reader_that_answers_for_fewer_texts_costs_its_reading_only(path: Path) -> None:
    class Short(ScriptedReader):
        def answers(self, question: str, passages: Sequence[Passage]) -> list[float | None]:
            return []

        def changes(self, newer: Passage, older: Sequence[Passage]) -> list[Verdict | None]:
            return []

    async with Memory.open(path, embedder=WordEmbedder(512), reader=Short("-")) as memory:
        await say(memory, [OLD])
        receipt = await memory.add([{"role": "user", "content": NEW}], user_id="mei", session_id="later")
        assert any("reader failed (ValueError)" in problem for problem in receipt.problems)
        found = await memory.search("a pack", user_id="mei")
        assert found.hits and any("the reader failed (ValueError)" in problem for problem in found.degraded)


@pytest.mark.parametrize("form", ["Look what he wrote:\n> {}", 'Translate this, please: "{}"', "帮我翻译一下：「{}」"])
async def test_quoted_words_beside_own_ones_end_nothing(path: Path, form: str) -> None:
    reader = ScriptedReader("-", ends=ENDING)
    async with Memory.open(path, embedder=WordEmbedder(512), reader=reader) as memory:
        await say(memory, [OLD])
        before = await rows(memory)
        await say(memory, [form.format(NEW)], at=MAY + timedelta(days=40))
        assert await rows(memory) == before
        assert all(ENDING[0] not in newer.text for newer, _ in reader.judged)


# -- of two hits that answer, the one that changes the other ----------------------------------------------------------

SMOKES = "How much do I smoke, is it a pack?"
SMOKED = "How great did it use to feel, with and without a pack, in six weeks?"


async def smokes(path: Path, reader: ScriptedReader, question: str = SMOKES, new_name: str | None = None) -> str:
    """Return the best answer to a question that two statements answer."""
    async with Memory.open(path, embedder=WordEmbedder(512), reader=reader) as memory:
        await say(memory, [OLD])
        await say(memory, [NEW], name=new_name, at=MAY + timedelta(days=40))
        hits = (await memory.search(question, user_id="mei")).hits
    return next(hit.content for hit in hits if "pack" in hit.content)


def unsure(probability: float) -> ScriptedReader:
    """Return a reader for which both statements answer."""
    return ScriptedReader("pack", ends=ENDING, probability=probability)


async def test_the_newer_of_two_answers_comes_first_where_it_changes_the_older_one(path: Path) -> None:
    assert await smokes(path, unsure(0.7)) == NEW


async def test_what_hardly_changes_anything_leaves_the_order(path: Path) -> None:
    assert await smokes(path, unsure(0.05)) == OLD


async def test_the_older_of_two_answers_comes_first_in_a_question_about_the_past(path: Path) -> None:
    assert await smokes(path, unsure(0.05), SMOKED) == NEW
    assert await smokes(path.with_name("other.db"), unsure(0.7), SMOKED) == OLD


async def test_another_speaker_does_not_come_before_the_user(path: Path) -> None:
    assert await smokes(path, unsure(0.7), new_name="Tom") == OLD
