"""Keywords are words a person would recognise, and a query looks them up in the same form."""

from hypothesis import example, given
from hypothesis import strategies as st

from jiyi.languages.terms import keywords, query_keywords
from jiyi.languages.words import normalise, plain
from support import each_case

any_text = st.text(alphabet=st.characters(exclude_categories=()))
# Made of what the rules look at: quotes, units, capitals, joints, surnames.
lively_pieces = [
    "我", "王小明", "喝咖啡", "茶", "的", "《三体》", "臺灣", "一只", "100元", " 5 km", "12:30", "v2.1", "user_id",
    "Alice", "'s", "X", "the", "don't", "カナ", "Привет", "İ", " ", ". ", "，", '"', "“", "\ud800", "ab" * 40,
]  # fmt: skip
lively_text = st.lists(st.sampled_from(lively_pieces)).map("".join)


def words(text: str) -> list[str]:
    return [word for word, _ in keywords(text)]


@each_case(
    ("text", "expected"),
    [
        ("用户喜欢喝咖啡", "咖啡"),
        ("我吃素，对花生过敏", "花生"),
        ("用户喜欢茶", "茶"),
        ("茶", "茶"),
        ("王小明在上海开了一家咖啡店", "王小明"),
        ("我女儿叫陈思雨，今年七岁", "陈思雨"),
        ("臺灣龍井茶", "台湾"),
        ("我在读《三体》，很好看", "三体"),
        ("花了100元", "100元"),
        ("用 Rust 写的 parser", "rust"),
        ("用 Rust 写的 parser", "parser"),
        ("型号ＡＢＣ１２３", "abc123"),
        ("My sister is called Alice.", "alice"),
        ("Alice's cat", "alice"),
        ("The API returns user_id", "user_id"),
        ("We write C++ here", "c++"),
        ("run 5 km a day", "5km"),
        ('She calls it "blue hour" there', "blue hour"),
        ("my mother-in-law", "mother-in-law"),
        ("Привет мир", "привет"),
        ("12", "12"),
    ],
)
def test_the_keyword_is_there_and_a_query_finds_it(text: str, expected: str) -> None:
    assert expected in words(text)
    assert expected in query_keywords(text)


@each_case(
    ("text", "first"),
    [
        ("用户喜欢喝咖啡", "咖啡"),
        ("我女儿叫陈思雨，今年七岁", "陈思雨"),
        ("周末在家读《三体》", "三体"),
        ("I met Alice yesterday evening", "alice"),
        ("User likes tea", "tea"),
        ("tea and coffee, tea and cake, tea", "tea"),
    ],
)
def test_names_quotes_and_repetition_weigh_more(text: str, first: str) -> None:
    assert words(text)[0] == first


@each_case(
    ("text", "absent"),
    [
        ("用户喜欢喝咖啡", {"喝咖啡"}),
        ("我养了一只狗", {"我养", "一只", "了"}),
        ("我们什么时候去北京", {"我们", "什么", "时候"}),
        ("What did she eat for dinner?", {"what", "did", "she", "for"}),
        ("They don't eat it", {"don't", "it", "they"}),
    ],
)
def test_words_that_say_nothing_are_left_out(text: str, absent: set[str]) -> None:
    assert not absent & set(words(text))


@each_case(
    ("query", "word"),
    [("北京大学在哪里", "北京"), ("西湖区", "西湖"), ("what is node.js?", "node"), ("咖啡店在哪", "咖啡")],
)
def test_a_query_also_looks_for_the_words_inside_its_words(query: str, word: str) -> None:
    assert word in query_keywords(query)


@each_case("text", ["the", "what did you do?", "什么时候", "的", "I", "7", "我", "x" * 300, "あ", "__a__"])
def test_anything_with_a_letter_or_digit_has_a_keyword(text: str) -> None:
    assert words(text)
    assert set(words(text)) <= set(query_keywords(text))


@each_case("text", ["", " ", "…！", "👍"])
def test_nothing_said_no_keyword(text: str) -> None:
    assert keywords(text) == []
    assert query_keywords(text) == []


def test_the_limit_holds() -> None:
    text = "apples bananas cherries dates elderberries figs grapes"
    assert len(keywords(text)) == 5
    assert keywords(text, limit=2) == keywords(text)[:2]
    assert keywords(text, limit=0) == []
    assert len(query_keywords(" ".join(f"word{n}x" for n in range(100)))) == 32


@given(any_text | lively_text)
@example("\ud800")
def test_keywords_keep_their_form(text: str) -> None:
    found = keywords(text, limit=8)
    weights = [weight for _, weight in found]
    assert weights == sorted(weights, reverse=True)
    assert all(0 < weight <= 1 for weight in weights)
    assert len({word for word, _ in found}) == len(found) <= 8
    assert all(normalise(word) == word and 0 < len(word) <= 64 for word, _ in found)
    if any(char.isalnum() for char in plain(text)):
        assert found


@given(any_text | lively_text)
def test_a_text_as_query_looks_up_its_own_keywords(text: str) -> None:
    asked = query_keywords(text)
    assert {word for word, _ in keywords(text)} <= set(asked)
    assert len(asked) <= 32
