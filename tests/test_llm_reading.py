"""Reading what a language model said: whatever it is, the answer is JSON that stands there, or a named error."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jiyi import LlmBadReply
from jiyi.llm.json_reply import MAX_DEPTH, MAX_LENGTH, read_object
from support import each_case

ITEM = '{"text": "likes tea", "messages": [1]}'
VALUE = {"text": "likes tea", "messages": [1]}

SAID: dict[str, str] = {
    "plain": f'{{"memories": [{ITEM}]}}',
    "a byte order mark": f'\ufeff{{"memories": [{ITEM}]}}',
    "a fence": f'```json\n{{"memories": [{ITEM}]}}\n```',
    "a fence without a name": f'```\n{{"memories": [{ITEM}]}}\n```',
    "a fence that is not closed": f'```json\n{{"memories": [{ITEM}]}}',
    "prose around it": f'Sure, here it is:\n{{"memories": [{ITEM}]}}\nLet me know!',
    "prose with braces": f'I use {{braces}} and [1] and {{"a": 1}}. {{"memories": [{ITEM}]}} That is {{all}}.',
    "Chinese prose": f'好的，以下是结果：\n\n```json\n{{"memories": [{ITEM}]}}\n```\n如需更多请告诉我。',
    "a bare list": f"[{ITEM}]",
    "a list around the object": f'[{{"memories": [{ITEM}]}}]',
    "wrapped once more": f'{{"result": {{"memories": [{ITEM}]}}}}',
    "commas too many": '{"memories": [{"text": "likes tea", "messages": [1,],},,],}',
    "raw line breaks": '{\n"memories"\n:\n[\n\t' + ITEM + "\r\n]\n}",
    "a draft first": f'First {{"memories": []}}, but better {{"memories": [{ITEM}]}}',
    "thoughts first": f'<think>maybe {{"memories": [1]}}?</think>{{"memories": [{ITEM}]}}',
    "the same key twice with one value": f'{{"memories": [{ITEM}], "memories": [{ITEM}]}}',
    "full-width spaces": f'{{\u3000"memories":\u00a0[{ITEM}]}}',
}


@pytest.mark.parametrize("text", SAID.values(), ids=SAID)
def test_what_stands_there_is_read(text: str) -> None:
    found = read_object(text, "memories")
    assert found.value["memories"] == [VALUE]
    assert not found.cut_off
    assert found.damaged == 0


NOTHING = {
    "empty": "",
    "spaces": " \n\t",
    "a byte order mark alone": "\ufeff",
    "prose": "I am sorry, I cannot do that.",
    "prose with braces": "Use {name} and [index] like {this: one}.",
    "markdown": "# Memories\n- likes tea",
    "another object": '{"error": "overloaded"}',
    "another list": "[1, 2, 3]",
    "a number": "42",
    "null": "null",
    "thoughts only": '<think>{"memories": []}',
    "an opening brace": "{",
    "NaN": '{"memories": NaN}',
    "two different values of one key": '{"memories": [], "memories": [1]}',
    "XML": "<memories><memory>likes tea</memory></memories>",
    "Python": "{'memories': ['likes tea']}",
    "braces without end": "{" * 100_000,
    "brackets without end": "[" * 100_000,
    "deep": '{"memories": ' + "[" * 10_000 + "]" * 10_000 + "}",
    "very long": '{"memories": ["' + "x" * MAX_LENGTH + '"]}',
    "very many": '{"x": [' + "[1]," * 60_000 + "[1]]}",
}


@pytest.mark.parametrize("text", NOTHING.values(), ids=NOTHING)
def test_what_does_not_stand_there_is_a_named_error(text: str) -> None:
    with pytest.raises(LlmBadReply, match="the reply"):
        read_object(text, "memories")


DAMAGED = {
    "a quote inside": ('{"memories": [{"text": "she said "hi""}, ' + ITEM + "]}", 1),
    "at the end": ('{"memories": [' + ITEM + ', {"text": "she said "hi""}]}', 1),
    "NaN": ('{"memories": [{"weight": NaN}, ' + ITEM + ', {"weight": -Infinity}, ' + ITEM + "]}", 2),
    "a number beyond numbers": ('{"memories": [{"weight": 1e999}, ' + ITEM + "]}", 1),
    "a number without end": ('{"memories": [{"weight": ' + "9" * 5000 + "}, " + ITEM + "]}", 1),
    "two values of one key": ('{"memories": [{"text": "a", "text": "b"}, ' + ITEM + "]}", 1),
    "half a character": ('{"memories": [{"text": "\\ud83d"}, ' + ITEM + "]}", 1),
    "NUL": ('{"memories": [{"text": "a\\u0000b"}, ' + ITEM + "]}", 1),
    "too deep": ('{"memories": [{"text": ' + "[" * 99 + "]" * 99 + "}, " + ITEM + "]}", 1),
    "a key without value": ('{"memories": [{"text"}, ' + ITEM + "]}", 1),
}


@pytest.mark.parametrize(("text", "damaged"), DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_item_is_left_out_and_counted(text: str, damaged: int) -> None:
    found = read_object(text, "memories")
    assert found.damaged == damaged
    assert found.value["memories"]
    assert all(item == VALUE for item in found.value["memories"])


WHOLE = json.dumps({"memories": [{"n": at, "messages": [1, 2], "text": '喝茶 "tea" é'} for at in range(4)], "end": 1})


@each_case("length", range(1, len(WHOLE)))
def test_of_a_reply_that_is_cut_off_anywhere_only_whole_items_are_kept(length: int) -> None:
    try:
        found = read_object(WHOLE[:length], "memories")
    except LlmBadReply:
        assert length <= WHOLE.index("[")
        return
    assert found.cut_off
    every: list[Any] = json.loads(WHOLE)["memories"]
    assert found.value["memories"] == every[: len(found.value["memories"])]
    assert len(found.value["memories"]) == WHOLE[:length].count("}")


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab喝", max_size=3), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@given(plain, st.booleans(), st.sampled_from([None, 2]))
def test_all_that_json_can_write_is_read_as_it_was_written(value: Any, ascii_only: bool, indent: int | None) -> None:
    written = json.dumps({"memories": value}, ensure_ascii=ascii_only, indent=indent)
    found = read_object(written, "memories")
    assert (found.value, found.cut_off, found.damaged) == ({"memories": value}, False, 0)


@given(plain, st.text("abc 你好.,:;!?", max_size=40), st.text("abc 你好.,:;!?", max_size=40))
def test_prose_around_it_changes_nothing(value: Any, before: str, after: str) -> None:
    written = json.dumps({"memories": value})
    assert read_object(before + written + after, "memories").value == {"memories": value}


@given(plain, st.data())
def test_of_anything_that_is_cut_off_nothing_is_made_up(value: Any, data: st.DataObject) -> None:
    """Whatever is kept of a list stands in it, in order, from the beginning."""
    items = [{"item": value}, {"item": [value]}, {"other": value}]
    written = json.dumps({"memories": items})
    length = data.draw(st.integers(0, len(written)))
    try:
        found = read_object(written[:length], "memories")
    except LlmBadReply:
        return
    kept = found.value["memories"]
    assert kept == items[: len(kept)]
    assert found.cut_off or length == len(written)


@given(st.text(alphabet='{}[]",:\\ntrue1.5e-memories`\n 喝', max_size=200))
@example('{"memories": [{"memories": [{]}')
@example('"memories"')
def test_no_reply_raises_anything_else(text: str) -> None:
    try:
        found = read_object(text, "memories")
    except LlmBadReply:
        return
    assert "memories" in found.value


def test_nesting_up_to_the_limit_is_read() -> None:
    depth = MAX_DEPTH - 2
    assert read_object('{"memories": ' + "[" * depth + "]" * depth + "}", "memories").damaged == 0
