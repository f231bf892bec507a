"""`python -m bench.everyday`: a question is RIGHT only when everything an agent would notice is right."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from bench.everyday import Score, Story, load, main, measure, print_table, repeats, score

from jiyi import InvalidInput

STORY: dict[str, Any] = {
    "id": "en-1",
    "language": "en",
    "user": "Maeve",
    "asked_at": "2024-05-01T09:00:00+00:00",
    "junk": ["lol"],
    "sessions": [{"at": "2024-04-01T09:00:00+00:00", "messages": [{"role": "user", "text": "I moved to Cork."}]}],
    "questions": [
        {"q": "Where does Maeve live?", "kind": "changed", "must": [["Cork"], ["Ireland"]], "never": ["Leeds"]},
        {"q": "What is her dog called?", "kind": "absent", "must": []},
    ],
}
CORK, LEEDS = "Maeve: I moved to Cork.", "Maeve: I live in Leeds."


def scored(hits: list[tuple[float, str]], lines: list[str], question: int = 0) -> Score:
    story = Story.model_validate(STORY)
    return score(story, story.questions[question], hits, lines)


def test_a_right_answer() -> None:
    found = scored([(0.9, CORK), (0.7, LEEDS)], ["I moved to Cork."])
    assert found.right and found.top1 and found.conf3 and found.inctx and not found.misled


@pytest.mark.parametrize(
    ("hits", "lines", "fault"),
    [
        ([(0.9, LEEDS), (0.8, CORK)], ["I moved to Cork."], "misled"),
        ([(0.9, CORK)], ["I moved to Cork.", "lol"], "junk"),
        ([(0.9, CORK)], ["I moved to Cork.", "Maeve: I moved to Cork!"], "dup"),
    ],
)
def test_faults_of_an_answer(hits: list[tuple[float, str]], lines: list[str], fault: str) -> None:
    found = scored(hits, lines)
    assert getattr(found, fault) and not found.right and found.conf3


def test_a_weak_hit_is_no_answer_and_an_old_value_below_the_answer_is_only_stale() -> None:
    weak = scored([(0.5, CORK)], ["I moved to Cork."])
    assert weak.top1 and not weak.conf3 and not weak.right
    stale = scored([(0.9, CORK)], ["I moved to Cork.", "I live in Leeds."])
    assert stale.stale and stale.right


def test_an_absent_question_wants_silence() -> None:
    assert scored([(0.4, CORK)], ["one", "two"], question=1).right
    assert scored([(0.7, CORK)], [], question=1).answered
    assert not scored([], ["one", "two", "three"], question=1).right


def test_lines_that_repeat_others() -> None:
    assert repeats(["我对花生过敏", "我对花生过敏。"]) and not repeats(["我对花生过敏", "我喜欢喝茶", ""])


def test_files_are_read_and_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "stories.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"stories": [STORY]}).encode()))
    (story,) = load(path)
    assert story.questions[1].never == () and story.sessions[0].messages[0].name is None
    (tmp_path / "bad.json").write_text('{"stories": [{"id": "x"}]}')
    with pytest.raises(InvalidInput, match=r"bad\.json, stories\.0\.language"):
        load(tmp_path / "bad.json")
    assert main(["--data", str(path), "--story", "none"]) == 2
    assert "'none' is not in" in capsys.readouterr().err


def test_the_table_has_a_row_for_each_group(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([scored([(0.9, CORK)], [CORK]), scored([], [], question=1)])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2:]] == ["all", "en", "·", "·"]
    assert " 100.0 |" in lines[2]


def test_our_own_stories_can_be_read() -> None:
    stories = load(Path(__file__).parents[1] / "bench" / "data" / "everyday-train.json.gz")
    assert len(stories) == 335 and sum(len(story.questions) for story in stories) == 8969


async def test_the_replies_and_the_cost_of_a_model_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded, replies = tmp_path / "memories.json", tmp_path / "replies.jsonl"
    recorded.write_text(json.dumps({"stories": {"en-1": [{"memories": []}]}}))
    story = Story.model_validate(STORY)
    await measure([story], show=False, model=f"replay:{recorded}", replies=replies)
    [reply] = map(json.loads, replies.read_text().splitlines())
    assert (reply["task"], reply["reply"]) == ("memories", '{"memories": []}') and "I moved to Cork." in reply["asked"]
    told = capsys.readouterr().out
    assert "memories: 100.0 calls" in told and "a prefix that can be cached" in told and "per 100 messages" in told
