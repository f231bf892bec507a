"""Sentences are found in any language, and no number, name or quotation is divided."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jiyi.languages.sentences import question_share, sentences, split_sentences
from support import cpu_unit, each_case

# A | stands between two sentences.
DIVIDED = """
I'm 34. | I live in Rome.
My birthday is March 3. | I live in Rome.
My rent is $4,500.50 a month. | It was $4,500.
My height is 1.80 m. | I weigh 3.5 stone.
Version 2.1 is out. | See node.js at https://x.org/a.b?c=d. | Bye.
I saw Dr. Wu today. | He knows Mrs. Li and Prof. Chen.
Use a tool, e.g. a hammer, i.e. something heavy. | Done.
I like fruit, etc. | My wife does too.
I work at Acme Inc. | My boss is nice.
We met John F. Kennedy. | He smiled.
Go with plan B. | I like it.
I live in the U.S. | My wife works for the U.S. Army.
At 3 p.m. I will call you.
The meeting is at 3 p.m. | I will be there.
Room No. 5 is free. | No. | I want another.
It is on Jan. 5. | Or on Sept. 7.
i live in rome. | i work at acme.
really? | i didn't know!! | ok
I got the job!! | Well… second round.
Hmm... maybe not. | So... I quit.
I got the job! 🎉 | Starting Monday 😀
He said "I'm leaving. Bye." | Then he left.
"What?" he asked. | Nobody answered.
I live in Rome (it's big. And hot.) with Anna. | Nice.
Nice!I'll come.
Tom (8) and Lisa (5) are here. | Good.
我今年34。 | 我住在罗马。
你好吗？ | 很好！ | 那就好……
会议推迟到12月20日了。 | 下周三下午3:30见。
他说：“我走了。明天见。” | 然后他就走了。
「好。走吧。」 | 大家都走了
他问“去吗？”，没人回答。
用Rust写的。 | It is v2.1. | 不错
我住北京；在阿里工作
好吗? | 我不知道
Ich wohne im Wedding. | Ich bin 34. | Ich arbeite bei Siemens.
Am 3. Mai ziehe ich nach Berlin um. | Das ist im 2. Stock.
J'habite à Paris. | Et toi ?
¿Dónde vives? | Vivo en Madrid.
私は東京に住んでいます。 | 猫が好きです。
Я живу в Москве. | Мне 34 года.
أنا أعيش في القاهرة. | أين تعيش؟
मैं दिल्ली में रहता हूँ। | आप कहाँ रहते हैं?
"""


def pieces(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]


@each_case("line", [line for line in DIVIDED.splitlines() if line])
def test_sentences(line: str) -> None:
    expected = line.replace("；", "；|").split("|") if "；" in line else line.split("|")
    expected = [piece.strip() for piece in expected]
    joiner = "" if ord(expected[-1][0]) > 0x2E80 else " "
    text = "Nice!I'll come." if line.startswith("Nice!") else joiner.join(expected)
    assert pieces(text) == (["Nice!", "I'll come."] if line.startswith("Nice!") else expected)


@each_case(
    ("text", "expected"),
    [
        ("1. Buy milk.\n2. Call mum. Be nice.\n", ["Buy milk.", "Call mum.", "Be nice."]),
        ("- eggs\n* milk\n• 3.5 kg flour", ["eggs", "milk", "3.5 kg flour"]),
        ("1、买牛奶\n2、打电话", ["买牛奶", "打电话"]),
        ("34. I live in Rome.", ["34.", "I live in Rome."]),
        ("one\r\ntwo\n\n\nthree", ["one", "two", "three"]),
        ("👍", ["👍"]),
        ("...", []),
        ("", []),
        ("  \n ", []),
    ],
)
def test_lines_and_lists(text: str, expected: list[str]) -> None:
    assert pieces(text) == expected


@given(st.text(alphabet=st.sampled_from("aI1. ,!?…\"'()\n。？“”三-😀")) | st.text())
def test_spans_are_in_order_and_hold_every_letter(text: str) -> None:
    end = 0
    left = []
    for start, stop in sentences(text):
        assert end <= start < stop
        left.append(text[end:start])
        end = stop
    outside = "".join((*left, text[end:]))
    assert not any(map(str.isalpha, outside))


@each_case(
    "text",
    [
        "a" + " " * 40_000 + "b", "I live in Berlin" + "." * 40_000 + "x", "不用了。" * 10_000, "(" * 40_000,
        '"a. ' * 10_000, "1. " * 12_000, "“" * 40_000, "a.b." * 10_000, "!?" * 20_000, "\n" * 40_000, "😀" * 40_000,
    ],
)  # fmt: skip
def test_long_texts_take_linear_time(text: str) -> None:
    started = time.process_time()
    sentences(text)
    assert time.process_time() - started < 60 * cpu_unit()


def test_questions_are_counted_by_sentence() -> None:
    assert split_sentences("你好吗？I am fine. And you? ...") == ["你好吗？", "I am fine.", "And you?"]
    assert question_share("你好吗？I am fine. And you?") == pytest.approx(2 / 3)
    assert question_share("...") == 0.0
