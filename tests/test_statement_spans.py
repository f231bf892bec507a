"""A message is divided into statements that are understood alone."""

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jiyi.write.parse.statement_spans import MAX_PASSAGE, statement_spans
from support import cpu_unit, each_case

# A | stands between two statements.
DIVIDED = """
I live in Porto. | My cat is called Olive. | I like fado.
I'm 29 and a nurse. It is hard work. | My shift starts at 6.45 a.m. on Mondays.
I met Dr. Silva today. She gave me 3.5 mg, e.g. after lunch. | My knee is better.
We adopted two kids. The little one likes trains. | My wife works at the port.
Do you know a good café? | I can't drink milk.
My sister moved to Graz. | My brother stayed, at https://x.example/a.b?c=1. | I visit them in May.
We saw two flats in Ghent. The first was damp. | My lease ends in May.
I met Farid, who used to be at Siemens. Wants a quote by Friday. | My office is in Bonn.
He said "I quit. I hate it." and left. | My boss was angry.
我在苏州当老师。 | 我女儿叫朵朵。 | 我们养了一只鹦鹉。
我去年搬到了厦门。现在做平面设计。 | 我老公是厨师。
我对虾过敏。也不能吃螃蟹。 | 你知道哪里有素菜馆吗？ | 我周五有空。
我们的婚礼在青岛。一共请了八十个人。 | 我妈负责照片。
我的车牌是闽D·3.45。 | 我妈下周二做手术。
"""


def divided(text: str, role: str = "user") -> list[str]:
    return [text[start:end] for start, end in statement_spans(text, role)]


@each_case("line", DIVIDED.strip().splitlines())
def test_a_sentence_is_a_statement_with_the_fragments_that_need_it(line: str) -> None:
    expected = line.split(" | ")
    between = "" if "\u4e00" <= line[0] <= "\u9fff" else " "
    assert divided(between.join(expected)) == expected


def test_a_short_list_belongs_to_its_lead_in() -> None:
    text = "I have a trip in June. For it I still need:\n- a tent\n- two lamps\n- bug spray\nMy brother comes along."
    assert divided(text) == [
        "I have a trip in June.",
        "For it I still need:\n- a tent\n- two lamps\n- bug spray",
        "My brother comes along.",
    ]
    chinese = "周末要买的东西：\n1. 牛奶\n2. 尿布\n3. 胶带\n我儿子下个月上学。"
    assert divided(chinese) == ["周末要买的东西：\n1. 牛奶\n2. 尿布\n3. 胶带", "我儿子下个月上学。"]


def test_a_heading_belongs_to_what_is_below_it() -> None:
    listed = "To do this week\n* call the council\n* renew the passport of Ida"
    assert divided(f"{listed}\nMy sister helps me with it.")[0].startswith(listed)
    record = "温度记录\n07:00:00 36.8\n12:00:00 37.9\n18:00:00 38.4"
    assert divided(f"{record}\n孩子晚上开始发烧的，已经吃过美林了。") == [
        record,
        "孩子晚上开始发烧的，已经吃过美林了。",
    ]


def test_long_list_items_are_statements() -> None:
    item = "My {} flat in Lyon was sold last winter to a couple from Dijon who wanted the garden and the light."
    text = "\n".join(f"- {item.format(name)}" for name in ("first", "second"))
    assert divided(text) == [item.format("first"), item.format("second")]


def test_a_pasted_block_is_one_statement_and_own_lines_are_others() -> None:
    log = "2026-02-03 10:01:02 WARN disk full\n2026-02-03 10:01:03 ERROR no space\n2026-02-03 10:01:04 INFO exit"
    assert divided(f"My backup fails every night.\n{log}\nI use a Synology NAS.") == [
        "My backup fails every night.",
        log,
        "I use a Synology NAS.",
    ]
    code = "```python\nx = 1\nprint(x)\n```"
    assert divided(f"我写了这个。\n{code}\n我的编辑器是 Helix。") == ["我写了这个。", code, "我的编辑器是 Helix。"]
    mail = "> Hi, I live in Kyoto.\n> I like tea."
    assert divided(f"{mail}\nI work at a bakery in Lille.") == [mail, "I work at a bakery in Lille."]


def test_a_run_on_message_is_divided_where_a_thought_ends() -> None:
    text = (
        "so i finally signed the lease for the flat in lisbon near the river and the view is great"
        " and my sister is helping me to move on the 3rd of may with her van"
        " but i still need somebody who takes my old piano because it does not fit"
    )
    assert divided(text) == [
        "so i finally signed the lease for the flat in lisbon near the river and the view is great",
        "and my sister is helping me to move on the 3rd of may with her van",
        "but i still need somebody who takes my old piano because it does not fit",
    ]
    chinese = (
        "我上个月从杭州搬到了成都因为公司在这边开了分部还给了我一套宿舍住着挺舒服的"
        " 然后我老婆还留在杭州照顾孩子等到七月份放暑假的时候她们才会一起过来"
    )
    assert len(divided(chinese)) == 2
    short = "i live in bonn and my dog is old"
    assert divided(short) == [short]


def test_nothing_is_divided_within_quotes_and_urls() -> None:
    quote = '"' + "they all wrote that the tram is late again and my ticket is not valid there" + '"'
    text = f"the sign at the stop in the old town where we waited for an hour in the rain said {quote} in red letters"
    assert divided(text) == [text]


def test_an_assistant_speaks_in_passages() -> None:
    sentence = "Here is a hint about the garden and the soil, with some detail. "
    text = sentence * 30
    passages = divided(text, "assistant")
    assert all(MAX_PASSAGE / 2 < len(passage) <= MAX_PASSAGE for passage in passages[:-1])
    assert "".join(passages).replace(" ", "") == text.replace(" ", "")
    assert divided("好的。我记住了。", "assistant") == ["好的。我记住了。"]
    assert len(divided("词" * 2000, "assistant")) == 4


def test_a_fragment_at_the_beginning_belongs_to_what_follows() -> None:
    assert divided("Hi! I moved to Turin last week. My flat has a balcony.") == [
        "Hi! I moved to Turin last week.",
        "My flat has a balcony.",
    ]
    assert divided("ok") == ["ok"]
    assert divided("") == divided(" \n ...") == []


PIECES = [
    "I live in Rome",
    "my dog",
    "我在上海",
    "现在",
    ". ",
    "。",
    "\n",
    "\n\n",
    "- ",
    "1. ",
    "> ",
    '"',
    "```",
    ": ",
    "？",
    " and I ",
    "，我",
]


@pytest.mark.parametrize("role", ["user", "assistant"])
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=30))
def test_statements_are_in_order_and_contain_every_word(role: str, pieces: list[str]) -> None:
    text = "".join(pieces)
    spans = statement_spans(text, role)
    assert all(start < end for start, end in spans)
    assert all(first[1] <= second[0] for first, second in pairwise(spans))
    covered = "".join(text[start:end] for start, end in spans)
    # The marks of a list are no words.
    outside = "".join(
        text[start:end]
        for start, end in zip([0, *(e for _, e in spans)], [*(s for s, _ in spans), len(text)], strict=True)
    )
    assert not any(char.isalpha() for char in outside), (covered, outside)


def test_long_messages_are_divided_in_linear_time() -> None:
    started = time.process_time()
    for text in ("a and my " * 5000, "- x\n" * 5000, "我，我" * 5000, "> a\nb\n" * 3000, "x. " * 5000):
        statement_spans(text)
    assert time.process_time() - started < 600 * cpu_unit()
