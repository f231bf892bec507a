"""The reader whose networks come with the package, on a network of a few numbers that is made here."""

import json
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save

from jiyi.reader import Passage
from jiyi.reader.onnx_reader import OnnxReader

WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[unused1]", "[unused2]", "[unused3]", "where", "live", "rome", "milan")
WORDS += ("moved", "我", "住", "在", "罗", "马", "user", ":", "?")
FOR = {"answers": (0, "rome"), "ends": (1, "milan"), "stands": (3, "rome"), "supports": (4, "rome")}


def write_network(folder: Path, name: str, weight: float) -> None:
    """Write a network whose outputs are sums over the tokens, each with a weight of its own."""
    table = np.zeros((len(WORDS), 5), np.float32)
    for at, word in FOR.values():
        table[WORDS.index(word), at] = weight
    table[WORDS.index("罗")] = weight
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["rows"]),
        helper.make_node("Cast", ["types"], ["unused"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["rows", "axis"], ["logits"], keepdims=0),
    ]
    ids, types = (
        helper.make_tensor_value_info(name, TensorProto.INT64, ["pairs", "tokens"]) for name in ("ids", "types")
    )
    out = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["pairs", 5])
    constants = [numpy_helper.from_array(table, "table"), numpy_helper.from_array(np.array([1]), "axis")]
    graph = helper.make_graph(nodes, "reader", [ids, types], [out], constants)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / f"{name}.onnx")
    (folder / f"{name}.vocab.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")


@pytest.fixture
def reader(tmp_path: Path) -> OnnxReader:
    write_network(tmp_path, "reader-en", 2.0)
    write_network(tmp_path, "reader-zh", 3.0)
    calibration = {"changes": 0.5, "supports": [1.0, -1.0]}
    given = {"id": "tiny-1", "calibration": {"en": calibration, "zh": calibration}}
    (tmp_path / "reader.json").write_text(json.dumps(given), encoding="utf-8")
    return OnnxReader(tmp_path)


def test_english_is_read_by_the_english_network_and_everything_with_chinese_by_the_other(reader: OnnxReader) -> None:
    assert reader.id == "tiny-1"
    passages = [Passage("I live in Rome"), Passage("I moved to Milan")]
    assert reader.answers("Where do I live?", passages) == [2.0, 0.0]
    assert reader.answers("我住在哪里？", [Passage("我住在罗马")]) == [3.0]
    assert reader.supports([Passage("我住在罗马")], "I live in Rome") == pytest.approx(1 / (1 + np.exp(-5.0)))


def test_an_answer_in_another_language_than_the_question_is_not_judged(reader: OnnxReader) -> None:
    assert reader.answers("Where do I live?", [Passage("我住在罗马"), Passage("I live in Rome")]) == [None, 2.0]
    assert reader.answers("我住在哪里？", [Passage("I live in Rome"), Passage("我住在 Rome")]) == [None, 3.0]


def test_languages_that_no_network_knows_are_not_judged(reader: OnnxReader) -> None:
    german = Passage("Ich wohne seit drei Jahren in Rom und arbeite bei der Post.")
    assert reader.answers("Where do I live?", [german, Passage("Rome")]) == [None, 2.0]
    assert reader.changes(german, [Passage("I live in Rome")]) == [None]
    assert reader.supports([german], "The user lives in Rome.") is None


def test_the_message_before_and_the_speaker_are_read_too(reader: OnnxReader) -> None:
    assert reader.answers("Where?", [Passage("live", before="Rome"), Passage("live", "rome")]) == [2.0, 2.0]


def test_a_pair_is_judged_alike_in_any_company(reader: OnnxReader) -> None:
    passages = [Passage("I live in Rome"), Passage("我住在罗马"), Passage("Milan " * 90)]
    together = reader.answers("Where do I live?", passages)
    assert [reader.answers("Where do I live?", [one])[0] for one in passages] == together


def test_verdicts_are_calibrated_probabilities(reader: OnnxReader) -> None:
    [verdict] = reader.changes(Passage("moved to Milan"), [Passage("I live in Rome")])
    assert verdict is not None
    shares = np.exp([1.0, 0.0, 1.0])  # both words weigh 2.0, halved by the calibration
    assert [verdict.ends, verdict.repeats, verdict.stands] == pytest.approx(list(shares / shares.sum()))
    assert reader.supports([Passage("I live in Rome")], "Rome") == pytest.approx(1 / (1 + np.exp(-3.0)))
