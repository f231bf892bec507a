"""`python -m bench.retrieval`: correct measures, all file formats, and runs that resume."""

from __future__ import annotations

import gzip
import io
import json
import math
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from bench import measures
from bench.answers import Answer, Journal
from bench.datasets import load, read_set
from bench.peers import PEERS
from bench.retrieval import main
from rich.cells import cell_len

from jiyi import Memory
from jiyi.embed import BuiltinEmbedder
from jiyi.errors import InvalidInput
from jiyi.testing import WordEmbedder
from jiyi.transfer.readers import find_reader
from jiyi.transfer.records import Conversation, parse_time
from jiyi.transfer.sources import find_sources

NOON = datetime(2024, 4, 1, 12, 0, tzinfo=UTC)

# -- small benchmarks of our own, in the three shapes -----------------------------------------------------------------

LOCOMO: list[Any] = [
    {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ada",
            "speaker_b": "Ben",
            "session_2_date_time": "9:05 am on 2 April, 2024",
            "session_2": [
                {"speaker": "Ben", "dia_id": "D2:1", "text": "The ferry to the island costs nine euros."},
                {"speaker": "Ada", "dia_id": "D2:2", "text": " ", "blip_caption": "a red lighthouse"},
                {"speaker": "Ada", "dia_id": "D2:3", "text": ""},
            ],
            "session_1_date_time": "12:00 pm on 1 April, 2024",
            "session_1": [
                {"speaker": "Ada", "dia_id": "D1:1", "text": "My violin teacher is called Orsolya."},
                {"speaker": "Ben", "dia_id": "D1:2", "text": "I grow tomatoes on the balcony.", "query": "tomatoes"},
            ],
            "session_3_date_time": "12:00 pm on 3 April, 2024",
        },
        "qa": [
            {"question": "Who teaches the violin?", "answer": "Orsolya", "evidence": ["D1:1"], "category": 4},
            {"question": "What does the ferry cost?", "answer": 9, "evidence": ["D2:01; D:2:2"], "category": 1},
            {"question": "Who grows leeks?", "adversarial_answer": "Ben", "evidence": ["D1:2"], "category": 5},
            {"question": "What is the evidence?", "answer": "none", "evidence": [], "category": 3},
            {"question": "And here?", "answer": "a slip of the pen", "evidence": ["D", "D9:9"], "category": 3},
        ],
    },
    {
        "sample_id": "conv-2",
        "conversation": {
            "session_1": [{"speaker": "Cleo", "dia_id": "D1:1", "text": "The kettle whistles at dawn."}],
            "session_1_date_time": "12:00 am on 5 April, 2024",
        },
        "qa": [{"question": "When does the kettle whistle?", "answer": "dawn", "evidence": ["D1:1"], "category": 2}],
    },
]

LONGMEMEVAL: list[Any] = [
    {
        "question_id": "q-dog",
        "question_type": "single-session-user",
        "question": "What breed is my dog?",
        "answer": "a borzoi",
        "question_date": "2024/04/03 (Wed) 08:00",
        "haystack_dates": ["2024/04/01 (Mon) 12:00", "2024/04/02 (Tue) 12:00", "2024/04/02 (Tue) 13:00"],
        "haystack_session_ids": ["answer_1", "filler", "filler"],
        "haystack_sessions": [
            [
                {"role": "user", "content": "My dog is a borzoi.", "has_answer": True},
                {"role": "assistant", "content": "A graceful breed!", "has_answer": False},
            ],
            [{"role": "user", "content": "How do I boil an egg?"}, {"role": "assistant", "content": ""}],
            [{"role": "user", "content": "How do I peel an egg?"}],
        ],
        "answer_session_ids": ["answer_1"],
    },
    {
        "question_id": "q-tea",
        "question_type": "multi-session",
        "question": "我喜欢喝什么茶？",
        "answer": "茉莉花茶",
        "question_date": "2024/04/03 (Wed) 08:00",
        "haystack_dates": ["2024/04/01 (Mon) 12:00"],
        "haystack_session_ids": ["answer_2"],
        "haystack_sessions": [
            [{"role": "user", "content": "我喜欢喝茉莉花茶。"}, {"role": "assistant", "content": "很香。"}]
        ],
        "answer_session_ids": ["answer_2"],
    },
    {
        "question_id": "q-cat_abs",
        "question_type": "single-session-user",
        "question": "What is my hamster called?",
        "answer": "You did not mention a hamster.",
        "question_date": "2024/04/03 (Wed) 08:00",
        "haystack_dates": ["2024/04/01 (Mon) 12:00"],
        "haystack_session_ids": ["answer_3_abs"],
        "haystack_sessions": [[{"role": "user", "content": "Snow fell on the harbour."}]],
        "answer_session_ids": ["answer_3_abs"],
    },
]

OWN: dict[str, Any] = {
    "stores": [
        {
            "id": "梅",
            "messages": [
                {"id": "m1", "session": 1, "speaker": 7, "text": "豆豆是猫", "sent_at": "2024年04月01日 周一 12:00"},
                {"id": "m2", "session": 1, "speaker": 7, "role": "user", "text": "下周三去上海出差。", "sent_at": None},
                {"id": "m3", "text": "护照在蓝色的抽屉里。", "sent_at": "2024-04-01"},
            ],
            "queries": [
                {"id": "梅/q1", "text": "护照在哪里？", "gold": ["m3"], "category": "地点", "asked_at": "2024-05-01"},
                {"id": "梅/q2", "text": "橘猫豆豆", "gold": ["m1", "m1"], "category": "<猫> & \x07", "asked_at": None},
                {"id": "梅/q3", "text": "谁会弹钢琴？", "gold": [], "category": "地点"},
            ],
        },
        {
            "id": "ben",
            "messages": [{"id": "m1", "text": "The bicycle is in the cellar.", "sent_at": "2024-04-01T12:00:00+00:00"}],
            "queries": [{"id": "ben/q1", "text": "Where is the bicycle?", "gold": ["m1"], "category": "places"}],
        },
    ]
}  # fmt: skip

SHAPES = {"locomo10": LOCOMO, "longmemeval_s": LONGMEMEVAL, "own": OWN}


def write(folder: Path, name: str, value: object) -> Path:
    path = folder / name
    data = json.dumps(value, ensure_ascii=False).encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    folder = tmp_path / "data"
    folder.mkdir()
    return {name: write(folder, f"{name}.json", value) for name, value in SHAPES.items()}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """An embedder that needs no model."""
    monkeypatch.setattr("jiyi.engine.resolve", lambda settings: WordEmbedder(512))


@dataclass(frozen=True)
class Ran:
    stdout: str
    stderr: str


def bench(*words: object, code: int = 0) -> Ran:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        assert main([str(word) for word in words]) == code, err.getvalue()
    return Ran(out.getvalue(), err.getvalue())


def answer(*words: object) -> Any:
    return json.loads(bench(*words, "--json").stdout)


# -- measures ---------------------------------------------------------------------------------------------------------


def test_measures_of_a_case_computed_by_hand() -> None:
    found = measures.question_measures(["a", "gold1", "b", "gold2"], {"gold1", "gold2", "gold3"})
    assert [found[f"recall@{k}"] for k in (1, 3, 5, 10, 25)] == [0, 1 / 3, 2 / 3, 2 / 3, 2 / 3]
    assert (found["hit@3"], found["mrr"]) == (1.0, 0.5)
    gained = 1 / math.log2(3) + 1 / math.log2(5)
    assert found["ndcg@10"] == pytest.approx(gained / (1 + 1 / math.log2(3) + 1 / 2), abs=1e-12)
    assert set(measures.question_measures([], {"x"}).values()) == {0.0}
    late = measures.question_measures([f"other{n}" for n in range(10)] + ["x"], {"x"})
    assert (late["recall@10"], late["recall@25"], late["ndcg@10"], late["mrr"]) == (0, 1, 0, 1 / 11)
    many = {f"g{n}" for n in range(20)}
    assert measures.question_measures(sorted(many), many)["ndcg@10"] == pytest.approx(1), "no more than ten count"


def test_a_memory_of_several_messages_counts_as_those_each_once() -> None:
    assert measures.ranking([("b", "a"), ("c",), ("a", "d")]) == ["b", "a", "c", "d"]


def test_evidence_within_a_budget_ends_where_the_next_memory_does_not_fit() -> None:
    hits = [(("a",), 40), (("b", "c"), 60), (("d",), 1)]
    gold = {"a", "c", "d"}
    shares = [measures.evidence_within(hits, gold, budget) for budget in (39, 40, 99, 100, 101)]
    assert shares == [0, 1 / 3, 1 / 3, 2 / 3, 1]


def test_auc_is_the_share_of_pairs_in_the_right_order() -> None:
    assert measures.auc([0.9, 0.5], [0.1, 0.5]) == pytest.approx((1 + 1 + 1 + 0.5) / 4)
    assert measures.auc([0.2], [0.3]) == 0.0


def test_intervals_hold_the_mean_and_follow_from_the_seed() -> None:
    rows = [{"hit": float(n % 4 == 0), "sure": 1.0} for n in range(200)]
    found = measures.figures(rows, 7)
    assert found["hit"].value == 0.25 and 0.17 < found["hit"].low < 0.25 < found["hit"].high < 0.33
    assert found["sure"] == measures.Figure(1.0, 1.0, 1.0)
    assert found == measures.figures(rows, 7) != measures.figures(rows, 8)
    more = measures.figures(rows * 16, 7)["hit"]
    assert more.high - more.low < (found["hit"].high - found["hit"].low) / 3, "four times narrower, about"


# -- reading ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "written",
    [
        "12:00 pm on 1 April, 2024",
        "2024/04/01 (Mon) 12:00",
        "2024/04/01 12:00",
        "2024年04月01日 周一 12:00",
        "2024年4月1日 星期一 12:00",
        "2024-04-01T12:00:00",
        "2024-04-01T20:00:00+08:00",
        " 2024-04-01T12:00:00Z ",
    ],
)
def test_times_are_understood_as_benchmarks_write_them(written: str) -> None:
    assert parse_time(written) == NOON


@pytest.mark.parametrize("wrong", ["", "yesterday", "2024-13-01", "0001-01-01T00:00:00+08:00"])
def test_other_times_are_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match=r"not a time|out of range"):
        parse_time(wrong)


def test_locomo_is_read_as_it_is_published(files: dict[str, Path]) -> None:
    found = read_set(files["locomo10"])
    first, second = found.stores
    assert [message.id for message in first.messages] == ["conv-1/D1:1", "conv-1/D1:2", "conv-1/D2:1", "conv-1/D2:2"]
    assert first.messages[-1].text == "[image: a red lighthouse]" and first.messages[-1].session == "conv-1/S2"
    assert (first.messages[0].speaker, first.messages[0].sent_at) == ("Ada", NOON)
    assert [(query.id, query.category, query.gold, query.separate) for query in first.queries] == [
        ("conv-1/q0", "4-single-hop", ("conv-1/D1:1",), False),
        ("conv-1/q1", "1-multi-hop", ("conv-1/D2:1", "conv-1/D2:2"), False),
        ("conv-1/q2", "5-adversarial", ("conv-1/D1:2",), True),
    ]
    assert found.skipped == 2 and second.last_at == datetime(2024, 4, 5, tzinfo=UTC)


def test_longmemeval_is_read_as_it_is_published(files: dict[str, Path]) -> None:
    dog, tea, cat = read_set(files["longmemeval_s"]).stores
    assert [message.id for message in dog.messages] == ["answer_1#0", "answer_1#1", "filler#0", "filler~2#0"]
    assert dog.queries[0].gold == ("answer_1#0",), "the turns that are marked"
    assert dog.queries[0].asked_at == datetime(2024, 4, 3, 8, tzinfo=UTC)
    assert tea.queries[0].gold == ("answer_2#0", "answer_2#1"), "all of the session where none is"
    assert (cat.queries[0].gold, cat.queries[0].category, cat.queries[0].separate) == ((), "unanswerable", True)


def conversations(path: Path) -> list[Conversation]:
    (source,) = find_sources(path)
    return [record for record in find_reader(source).read(source) if isinstance(record, Conversation)]


def test_locomo_and_longmemeval_can_be_imported(tmp_path: Path) -> None:
    sample = {
        "sample_id": "conv-26",
        "conversation": {
            "session_1": [{"speaker": "Caroline", "dia_id": "D1:1", "text": "Hi"}],
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_2": [{"speaker": "Melanie", "dia_id": "D2:1", "text": "Hello"}],
        },
    }
    first, second = conversations(write(tmp_path, "locomo.json", [sample]))
    assert (first.session_id, second.session_id) == ("conv-26/S1", "conv-26/S2")
    assert first.messages[0].speaker == "Caroline" and first.messages[0].sent_at is not None
    question = {
        "question_id": "q",
        "haystack_dates": ["2023/05/20 (Sat) 02:21"],
        "haystack_session_ids": ["s"],
        "haystack_sessions": [[{"role": "user", "content": "I like tea"}, {"role": "assistant", "content": "Nice"}]],
    }
    (found,) = conversations(write(tmp_path, "long.json", [question]))
    assert [(one.role, one.id, one.speaker) for one in found.messages] == [
        ("user", "s#0", None), ("assistant", "s#1", None),
    ]  # fmt: skip


def test_the_own_shape_is_read(files: dict[str, Path], tmp_path: Path) -> None:
    mei, ben = read_set(files["own"]).stores
    assert [(said.session, said.speaker) for said in mei.messages] == [("1", "7"), ("1", "7"), (None, None)]
    assert mei.messages[0].sent_at == NOON and mei.messages[1].sent_at is None
    assert [query.gold for query in mei.queries] == [("m3",), ("m1",), ()]
    assert [query.category for query in mei.queries][-1] == "unanswerable"
    packed = read_set(write(tmp_path, "own.json.gz", OWN))
    assert packed.name == "own" and packed.stores == (mei, ben)


def changed(shape: str, *path: Any, to: object) -> Any:
    """A benchmark with one thing in it replaced."""
    whole = json.loads(json.dumps(SHAPES[shape]))
    place = whole
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return whole


BAD: dict[str, tuple[object, str]] = {
    "not-json": (b"{", "not-json.json: is not JSON"),
    "not-utf8": (b'["\xff"]', "not-utf8.json: is not UTF-8"),
    "packed-badly": (b"\x1f\x8b\x08\x00damaged", "packed-badly.json: is damaged"),
    "other": ({"hello": 1}, "other.json: is not in LoCoMo's"),
    "empty-list": ([], "is not in LoCoMo's"),
    "no-stores": ({"stores": []}, "contains no question"),
    "no-text": (changed("own", "stores", 0, "messages", 1, "text", to=" "), "stores[0].messages[1].text: is empty"),
    "text-type": (changed("own", "stores", 0, "messages", 1, "text", to=5), "stores[0].messages[1].text: Input should"),
    "strange-gold": (
        changed("own", "stores", 0, "queries", 0, "gold", to=["m9"]),
        "stores[0].queries[0].gold: 'm9' is not a message",
    ),
    "own-time": (
        changed("own", "stores", 1, "messages", 0, "sent_at", to="soon"),
        "messages[0].sent_at: 'soon' is not",
    ),
    "twice": (changed("own", "stores", 0, "messages", 1, "id", to="m1"), "store 梅: two messages have the id 'm1'"),
    "store-twice": (changed("own", "stores", 1, "id", to="梅"), "two stores have the id '梅'"),
    "query-twice": (changed("own", "stores", 1, "queries", 0, "id", to="梅/q1"), "two questions have the id '梅/q1'"),
    "locomo-time": (
        changed("locomo10", 0, "conversation", "session_1_date_time", to="8 May"),
        "[0].conversation.session_1.date_time: '8 May' is not a time",
    ),
    "locomo-turn": (
        changed("locomo10", 0, "conversation", "session_1", 1, to={"text": "x"}),
        "[0].conversation.session_1.turns[1].speaker: Field required",
    ),
    "locomo-category": (changed("locomo10", 0, "qa", 1, "category", to=6), "[0].qa[1].category: must be 1 to 5"),
    "lme-dates": (
        changed("longmemeval_s", 0, "haystack_dates", to=[]),
        "[0].haystack_sessions: the numbers",
    ),
    "lme-turn": (
        changed("longmemeval_s", 0, "haystack_sessions", 1, 0, to=7),
        "[0].haystack_sessions[1][0]: Input should be",
    ),
    "lme-query": (changed("longmemeval_s", 1, "question", to="x" * 9000), "[1].question: has 9,000 characters"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused_with_its_name_and_the_place(name: str, tmp_path: Path) -> None:
    value, problem = BAD[name]
    path = tmp_path / f"{name}.json"
    if isinstance(value, bytes):
        path.write_bytes(value)
    else:
        write(tmp_path, path.name, value)
    refused = bench("--data", path, code=2)
    assert name in refused.stderr and problem in refused.stderr
    assert refused.stderr.count("\n") == 1 and refused.stdout == ""


def test_a_folder_is_read_and_what_is_no_benchmark_is_passed_over(files: dict[str, Path]) -> None:
    folder = files["own"].parent
    write(folder, "package.json", {"name": "something else"})
    (folder / "notes.txt").write_text("not looked at")
    sets, notes = load([folder])
    assert [one.name for one in sets] == ["locomo10", "longmemeval_s", "own"]
    assert len(notes) == 1 and "package.json" in notes[0]
    limited, _ = load([folder], limit_stores=1)
    assert [len(one.stores) for one in limited] == [1, 1, 1]
    for name in ("locomo10", "longmemeval_s", "own"):
        files[name].unlink()
    with pytest.raises(InvalidInput, match="contains no benchmark"):
        load([folder])


def test_two_files_must_not_be_mixed_up(files: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="two files are called 'own'"):
        load([files["own"], write(tmp_path, "own.json.gz", OWN)])
    with pytest.raises(InvalidInput, match="own and again both contain question '梅/q1': run them separately"):
        load([files["own"], write(tmp_path, "again.json", OWN)])


# -- the command ------------------------------------------------------------------------------------------------------


def figures_of(result: Any, set_name: str, category: str) -> dict[str, float]:
    [one] = [one for one in result["sets"] if one["name"] == set_name]
    [group] = [group for group in one["groups"] if group["category"] == category]
    return {name: figure["value"] for name, figure in group["figures"].items()}


def test_all_shapes_go_through_the_real_engine(
    files: dict[str, Path], tmp_path: Path, builtin: BuiltinEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jiyi.engine.resolve", lambda settings: builtin)  # it is loaded already
    out = tmp_path / "out"
    words = [word for path in files.values() for word in ("--data", path)]
    result = answer(*words, "--out", out, "--answerability", "--budget", "5,1500")
    assert result["embedder"].startswith("builtin") and result["budgets"] == [5, 1500]
    for name, measure, expected in (
        ("locomo10", "hit@3", 1.0),
        ("locomo10", "evidence@1500", 1.0),
        ("locomo10", "evidence@5", 0.0),
        ("longmemeval_s", "recall@10", 1.0),
        ("own", "mrr", 1.0),
    ):
        assert figures_of(result, name, "all")[measure] == expected, (name, measure)
    locomo, longmemeval, own = result["sets"]
    assert [group["category"] for group in locomo["groups"]] == [
        "1-multi-hop", "2-temporal", "4-single-hop", "all", "5-adversarial",
    ]  # fmt: skip
    assert [(group["questions"], group["separate"]) for group in locomo["groups"]][-2:] == [(3, False), (1, True)]
    assert (locomo["skipped"], locomo["messages"], locomo["questions"]) == (2, 5, 4)
    assert list(figures_of(result, "longmemeval_s", "unanswerable")) == ["unsure"]
    assert own["answerability"]["own"] == 3 and 0 <= own["answerability"]["auc"] <= 1
    assert longmemeval["answerability"]["foreign"] == 2, "no question that cannot be answered is asked elsewhere"
    assert 0 < locomo["p50_ms"] <= locomo["p95_ms"] and locomo["degraded"] == {}

    assert json.loads((out / "results.json").read_text(encoding="utf-8")) == result
    rankings = json.loads((out / "rankings.json").read_text(encoding="utf-8"))
    assert rankings["梅/q1"][0] == "m3" and rankings["q-dog"][0] == "answer_1#0" and len(rankings) == 4 + 3 + 4


@pytest.mark.usefixtures("quick")
def test_the_tables_fit_a_terminal_and_the_plot_is_well_formed(files: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    shown = bench("--data", files["own"].parent, "--out", out, "--answerability")
    lines = shown.stdout.splitlines()
    tables = [line for line in lines if "skipped" not in line and "answerability" not in line]
    assert max(map(cell_len, tables)) <= 80
    for expected in ("locomo10", "single-session-user", "5-adversarial (separate)", "R@10", "hit@3 95 %", "in 1500"):
        assert any(expected in line for line in lines), expected
    assert "skipped: 2 questions without evidence in the file" in shown.stdout
    assert "unanswerable: " in shown.stdout and "answerability: AUC" in shown.stdout
    assert "\x07" not in shown.stdout and "rankings.json" in shown.stderr


@pytest.mark.usefixtures("quick")
def test_one_store_alone_cannot_be_asked_foreign_questions(files: dict[str, Path]) -> None:
    shown = bench("--data", files["own"], "--limit-stores", 1, "--answerability")
    assert "answerability: needs a file with two stores or more" in shown.stdout


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--budget", "many"], "--budget: must be numbers of tokens"),
        (["--budget", "0"], "--budget: must be more than 0"),
        (["--data", "nowhere.json"], "nowhere.json cannot be read: No such file"),
        (["--out", "{own}"], "own.json cannot be used: File exists"),
    ],
)
def test_wrong_arguments_are_exit_code_2(words: list[str], problem: str, files: dict[str, Path]) -> None:
    told = [word.format(own=files["own"]) for word in words]
    refused = bench(*told, "--data", files["own"], code=2)
    assert problem in refused.stderr and refused.stderr.startswith("error: ")


def test_an_unknown_embedder_is_refused(files: dict[str, Path]) -> None:
    refused = bench("--data", files["own"], "--embedder", "oracle", code=2)
    assert "'oracle' is unknown" in refused.stderr


# -- going on ---------------------------------------------------------------------------------------------------------


class Counted:
    """Counts the searches and additions, and stops the run at one of them, as Ctrl-C would."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.searches: list[str] = []
        self.embedded = 0
        self.stop_at: int | None = None
        search, embed = Memory.search, WordEmbedder.embed_documents

        async def counted_search(memory: Memory, query: str, **options: Any) -> Any:
            if query != "warm up":
                if len(self.searches) == self.stop_at:
                    raise KeyboardInterrupt
                self.searches.append(query)
            return await search(memory, query, **options)

        async def counted_embed(embedder: WordEmbedder, texts: Any) -> Any:
            self.embedded += len(texts)
            return await embed(embedder, texts)

        patch.setattr(Memory, "search", counted_search)
        patch.setattr(WordEmbedder, "embed_documents", counted_embed)


@pytest.mark.usefixtures("quick")
def test_a_stopped_run_goes_on_and_a_whole_one_is_not_repeated(
    files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted(monkeypatch)
    monkeypatch.setenv("JIYI_EXTRACTION__ENABLED", "false")
    words = ("--data", files["locomo10"], "--out", tmp_path / "out")
    counted.stop_at = 2
    bench(*words, code=130)
    assert len(counted.searches) == 2 and counted.embedded == 5
    with (tmp_path / "out" / "answers.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"run": "torn off in the mid')
    counted.stop_at = None
    first = answer(*words)
    assert len(counted.searches) == 4 and counted.embedded == 5, "each question once, each message once"
    second = answer(*words)
    assert len(counted.searches) == 4 and second == first
    other = answer(*words, "--budget", "100", "--seed", 3, "--answerability")
    assert len(counted.searches) == 4 + 3, "only what is new: the foreign questions"
    assert other["budgets"] == [100] and other["sets"][0]["answerability"]["foreign"] == 3


@pytest.mark.usefixtures("quick")
def test_answers_of_other_code_modes_or_data_are_not_reused(
    files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted(monkeypatch)
    words = ("--data", files["own"], "--out", tmp_path / "out")
    assert bench(*words).stderr.count("another version") == 0
    bench(*words, "--mode", "keyword")
    assert len(counted.searches) == 2 * 4
    write(files["own"].parent, "own.json", changed("own", "stores", 0, "queries", 0, "text", to="护照放哪儿了？"))
    bench(*words)
    assert len(counted.searches) == 3 * 4
    monkeypatch.setattr("bench.answers.code_digest", lambda: "other")
    monkeypatch.setattr("bench.retrieval.code_digest", lambda: "other")
    assert "was filled by another version of the code" in bench(*words).stderr
    assert len(counted.searches) == 4 * 4


def test_another_embedder_embeds_anew(files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("--data", files["own"], "--out", tmp_path / "out")
    for dimension in (512, 256):
        monkeypatch.setattr("jiyi.engine.resolve", lambda settings, size=dimension: WordEmbedder(size))
        result = answer(*words)
        assert result["embedder"].endswith(f"@{dimension}") and result["sets"][0]["degraded"] == {}


def test_the_journal_keeps_what_it_was_given(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    given = Answer(
        run="r",
        store="梅",
        query="q",
        top=0.5,
        took_ms=1.5,
        hits=((("a", "b"), 7), (("b", "c"), 9)),
        degraded=("why",),
    )
    Journal(path).add(given)
    path.write_text(path.read_text(encoding="utf-8") + "[1]\nnull\n{}\n", encoding="utf-8")
    assert Journal(path).get("r", "梅", "q") == given and Journal(path).get("r", "梅", "other") is None
    assert given.ranking == ["a", "b", "c"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PEERS)
def test_each_peer_finds_what_it_was_given(name: str, tmp_path: Path) -> None:
    with ExitStack() as at_end:
        try:
            peer = PEERS[name](tmp_path, at_end)
        except ImportError as error:  # optional, also for the tests
            pytest.skip(str(error))
        for text in ("My cat is called Doudou.", "I'm allergic to peanuts."):
            peer.add(text)
        assert peer.search("What is the name of my cat?")[0] == "My cat is called Doudou."
