"""The annotated corpus is valid, and `python -m bench.extraction` judges memories as its README says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from bench.extraction import main, summarise
from bench.extraction_corpus import Conversation, dates_in, days_of, load_corpus
from bench.extraction_scoring import Outcome, holds, judge, measure_extractor, measure_memory, problems_at, units

from jiyi import InvalidInput, Memory
from jiyi.testing import WordEmbedder
from jiyi.write.drafts import Draft, Evidence, Unit

CORPUS = Path(__file__).parent / "corpus"
PARTS = ("dev", "held_out")


@pytest.fixture(scope="module")
def corpus() -> Sequence[Conversation]:
    return load_corpus([CORPUS])


def test_both_parts_have_the_same_mix(corpus: Sequence[Conversation]) -> None:
    for part in PARTS:
        for language in ("zh", "en"):
            here = [one for one in corpus if (one.part, one.language) == (part, language)]
            assert len(here) >= 19
            assert sum(len(one.expected) for one in here) >= 80
            assert sum(len(one.never) for one in here) >= 40
            assert sum("group" in one.kind for one in here) >= 3
            assert sum(bool(one.as_of) for one in here) >= 4


def test_files_are_where_they_say(corpus: Sequence[Conversation]) -> None:
    for path in CORPUS.rglob("*.json"):
        (one,) = load_corpus([path])
        assert (one.id, one.part) == (path.stem, path.parent.name)
    assert all(len(one.messages) >= 4 for one in corpus)


def test_what_is_expected_can_be_read_from_its_messages(corpus: Sequence[Conversation]) -> None:
    """Each group of words is hit by the message itself, so that no paraphrase has to be guessed."""
    for one in corpus:
        for entry in one.expected:
            said = " ".join(one.messages[at].text for at in entry.messages)
            assert holds(said, entry.must_contain), (one.id, entry.must_contain, said)
            assert not set(entry.messages) & {never.message for never in one.never if not never.words}


# -- the scorer -------------------------------------------------------------------------------------------------------


def conversation(**changed: Any) -> Conversation:
    lines = ["I moved to Leeds on Saturday", "Did it rain?", "Fine, and I no longer eat pork. What if I ate tofu?"]
    at = "2024-03-04T18:2{}:00Z"
    written = {
        "id": "x",
        "title": "",
        "language": "en",
        "part": "dev",
        "user_id": "dana",
        "messages": [
            {"role": "user", "speaker": "Dana", "sent_at": at.format(n), "text": text} for n, text in enumerate(lines)
        ],
        "expected": [
            {
                "type": ["event", "fact"],
                "from": [0],
                "must_contain": [["move", "live"], ["Leeds"]],
                "date": "2024-03-02",
                "subject": "Dana",
            },
            {"type": ["preference"], "from": [2], "must_contain": [["pork"], ["!"]]},
        ],
        "also_fine": [{"from": [0], "must_contain": [["Saturday"]]}],
        "never": [{"from": 1, "why": "question"}, {"from": 2, "words": [["tofu"]], "why": "hypothetical"}],
        **changed,
    }
    return Conversation.model_validate(written)


def draft(memory_type: str, content: str, message: int, **more: Any) -> Draft:
    at = datetime(2024, 3, 4, 18, 20, tzinfo=UTC)
    given = {"occurred_at": at, **more}
    return Draft(memory_type=memory_type, content=content, evidence=(Evidence(message_id=str(message)),), **given)


def outcome_of(*drafts: Draft) -> Outcome:
    (outcome,) = measure_extractor([conversation()], lambda _: drafts)
    return outcome


MOVED = "Dana moved to Leeds on Saturday (March 2, 2024)"


@pytest.mark.parametrize(
    ("made", "verdict"),
    [
        (draft("event", MOVED, 0), "expected"),
        (draft("fact", "moved to Leeds (2024-03-02)", 0, subject="Dana"), "expected"),
        (draft("event", "Dana moved to Leeds", 0, occurred_at=datetime(2024, 3, 2, 12, tzinfo=UTC)), "expected"),
        (draft("preference", MOVED.replace("on Saturday", ""), 0), "wrong"),  # no place is a preference
        (draft("event", "I moved to Leeds (March 2, 2024)", 0), "wrong"),  # who?
        (draft("event", "Dana moved to Leeds", 0), "also fine"),  # true, but when?
        (draft("event", "Dana moved to Leeds (March 9, 2024)", 0), "wrong"),  # not then
        (draft("profile", MOVED, 0), "expected"),  # it gathers what is said elsewhere
        (draft("event", MOVED.replace("on Saturday", ""), 2), "wrong"),  # it was not said there
        (draft("fact", "It was Saturday", 0), "also fine"),
        (draft("preference", "Dana no longer eats pork", 2), "expected"),
        (draft("preference", "Dana eats pork now", 2), "wrong"),  # the contrary
        (draft("preference", "Dana eats tofu", 2), "forbidden"),
        (draft("event", "It rained", 1), "forbidden"),
    ],
)
def test_a_memory_gets_the_verdict_that_a_reader_would_give(made: Draft, verdict: str) -> None:
    (judged,) = outcome_of(made).judged
    assert judged.verdict == verdict


def test_figures_are_the_shares_that_the_readme_names() -> None:
    outcome = outcome_of(
        draft("event", MOVED, 0), draft("fact", MOVED, 0), draft("event", "It rained", 1), draft("message", "x", 1)
    )
    result = summarise([outcome])
    whole = next(row for row in result.rows if (row.language, row.memory_type) == ("all", "all"))
    assert (whole.made, whole.right, whole.expected, whole.found) == (3, 2, 2, 1)
    assert whole.precision == pytest.approx(2 / 3) and whole.recall == 0.5
    assert whole.f1 == pytest.approx(4 / 7)
    assert [(row.forbidden, row.made) for row in result.never] == [(2, 1), (2, 1)]
    assert [miss.expected.must_contain[0] for miss in result.missed] == [("pork",)]
    assert [false.found.content for false in result.false] == ["It rained"]
    assert result.checks is None, "an extractor alone has no memory to look back in"


def test_nothing_made_is_no_precision_at_all() -> None:
    whole = summarise([judge(conversation(), [])]).rows[-1]
    assert whole.precision is None and whole.recall == 0.0 and whole.f1 is None


def test_sittings_are_handed_over_one_by_one_with_what_was_said_before() -> None:
    late = conversation().model_dump(by_alias=True)
    late["messages"][2]["sent_at"] = "2024-03-05T09:00:00Z"
    seen: list[Unit] = list(units(Conversation.model_validate(late)))
    assert [[said.id for said in unit.messages] for unit in seen] == [["0", "1"], ["2"]]
    assert [len(unit.history) for unit in seen] == [0, 2]


async def test_what_holds_at_a_moment_is_looked_up_in_the_past(memory: Memory) -> None:
    changes = [("lives in Berlin", (2023, 1, 1), (2024, 1, 1)), ("lives in Lisbon", (2024, 1, 1), None)]
    for text, start, end in changes:
        at = {"valid_from": datetime(*start, tzinfo=UTC), "valid_to": end and datetime(*end, tzinfo=UTC)}
        await memory.add([{"memory_type": "fact", "content": text, **at}], user_id="dana")
    moments = [
        {
            "at": "2023-06-01T00:00:00Z",
            "expect": [{"must_contain": [["Berlin"]]}],
            "absent": [{"must_contain": [["Lisbon"]]}],
        },
        {
            "at": "2024-06-01T00:00:00Z",
            "expect": [{"must_contain": [["Berlin"]]}],
            "absent": [{"must_contain": [["Lisbon"]]}],
        },
    ]
    right, wrong = conversation(as_of=moments).as_of
    assert list(problems_at(right, (await memory.list(user_id="dana", as_of=right.at)).items)) == []
    assert list(problems_at(wrong, (await memory.list(user_id="dana", as_of=wrong.at)).items)) == [
        "nothing says Berlin",
        "still says 'lives in Lisbon' (fact)",
    ]
    excused = conversation(
        as_of=[{**moments[1], "expect": [], "absent": [{"must_contain": [["lives"]], "unless": ["Lisbon"]}]}]
    ).as_of[0]
    assert list(problems_at(excused, (await memory.list(user_id="dana", as_of=excused.at)).items)) == []


async def test_the_whole_way_takes_each_message_in_once(memory: Memory) -> None:
    said = conversation()
    steps: list[tuple[int, int]] = []
    (outcome,) = await measure_memory([said], memory, lambda _, done, whole: steps.append((done, whole)))
    assert await memory.count(user_id="dana", memory_types=["message"]) == 3
    assert outcome.moment_errors == () and steps[-1] == (1, 1)


class OneDraft:
    """An extractor that understood one thing, and one that it should not have."""

    id = "one-draft"

    async def __call__(self, unit: Unit, /) -> Sequence[Draft]:
        moved, rained, *_ = unit.messages
        return [
            Draft(
                memory_type=memory_type,
                content=content,
                evidence=(Evidence(message_id=said.id),),
                occurred_at=said.sent_at,
                subject="Dana",
                importance=0.9,
            )
            for memory_type, content, said in (("event", MOVED, moved), ("fact", "Dana likes the rain", rained))
        ]


async def test_the_whole_way_judges_what_an_extractor_made(path: Path) -> None:
    async with Memory.open(path, embedder=WordEmbedder(64), extractor=OneDraft()) as memory:
        (outcome,) = await measure_memory([conversation()], memory, lambda *_: None)
    assert {(one.found.memory_type, one.verdict) for one in outcome.judged} >= {
        ("event", "expected"),
        ("fact", "forbidden"),
    }
    assert outcome.forbidden == (0,)


def test_words_begin_where_words_begin_and_numbers_end_where_they_end() -> None:
    assert holds("She moved in", (("move",),)) and not holds("She removed it", (("move",),))
    assert holds("about 14 kilos", (("14",),)) and not holds("about 140 kilos", (("14",),))
    assert holds("他搬到了杭州", (("杭州",), ("搬", "住")))
    assert holds("doesn’t eat", (("!",),)) and holds("不吃香菜", (("!",),)) and not holds("now notes", (("!",),))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("last week (May 7, 2023)", ["2023-05-07"]),
        ("上周（2023年5月7日）", ["2023-05-07"]),
        ("on 7th May 2023, at noon", ["2023-05-07"]),
        ("since 2023-05-07T12:00", ["2023-05-07"]),
        ("in May 2023", ["2023-05"]),
        ("2023年5月", ["2023-05"]),
        ("since 2019.", ["2019"]),
        ("2019年开始", ["2019"]),
        ("joining on April 8 (2024)", ["2024-04-08"]),
        ("at the end of March (2024)", ["2024-03"]),
        ("7月1号到12号（2024年）", ["2024-07-01"]),
        ("三月底（2024年）", ["2024-03"]),
        ("room 4471, 12,000 dollars, version 2.0.2019", []),
        ("2023-02-31", []),
    ],
)
def test_dates_are_read_as_memories_write_them(text: str, found: list[str]) -> None:
    spans = set(dates_in(text))
    for wanted in found:
        assert days_of(wanted) in spans
    assert bool(spans) is bool(found)


def test_stretches_of_days() -> None:
    assert days_of("2024-05-01/2024-05-07") == (date(2024, 5, 1), date(2024, 5, 7))


# -- files and the command --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"expected": [{"type": ["fact"], "from": [9], "must_contain": [["x"]]}]}, "there is no message 9"),
        ({"expected": [{"type": ["fact"], "from": [0], "must_contain": [["x"]], "dat": "2024"}]}, "not permitted"),
        ({"expected": [{"type": ["fact"], "from": [0], "must_contain": [["x"]], "date": "May"}]}, "date"),
        ({"never": [{"from": 0}]}, "why"),
        ({"language": "fr"}, "language"),
    ],
)
def test_a_slip_in_a_file_is_named(tmp_path: Path, changed: dict[str, Any], problem: str) -> None:
    path = tmp_path / "x.json"
    written = {**json.loads(conversation().model_dump_json(by_alias=True)), **changed}
    path.write_text(json.dumps(written), encoding="utf-8")
    with pytest.raises(InvalidInput, match=problem) as refused:
        load_corpus([path])
    assert str(path) in str(refused.value)


def test_files_that_are_missing_empty_or_double_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="contains no conversation"):
        load_corpus([tmp_path])
    with pytest.raises(InvalidInput, match="cannot be read"):
        load_corpus([tmp_path / "none.json"])
    (tmp_path / "x.json").write_text("{")
    with pytest.raises(InvalidInput, match="is not JSON"):
        load_corpus([tmp_path])
    (tmp_path / "x.json").write_text(conversation().model_dump_json(by_alias=True))
    with pytest.raises(InvalidInput, match="two conversations have the id"):
        load_corpus([tmp_path, tmp_path])


def test_the_command_shows_figures_and_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    at = [{"at": "2024-03-05T00:00:00Z", "expect": [{"must_contain": [["the answer"]]}]}]
    (tmp_path / "x.json").write_text(conversation(as_of=at).model_dump_json(by_alias=True), encoding="utf-8")
    assert main(["--data", str(tmp_path), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["conversations"] == 1 and result["checks"] == 1
    assert result["rows"][-1]["expected"] == 2 and len(result["moment_errors"]) == 1
    assert main(["--data", str(tmp_path), "--show"]) == 0
    shown = capsys.readouterr().out
    assert "precision" in shown and "MISSED" in shown and "nothing says the answer" in shown
    assert main(["--data", str(tmp_path / "none")]) == 2
    assert "error: --data" in capsys.readouterr().err
