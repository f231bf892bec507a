"""The same terms come out of a text and of the query that looks for it, in both languages."""

from hypothesis import example, given
from hypothesis import strategies as st

from jiyi.languages import words
from jiyi.languages.terms import tokens
from jiyi.languages.words import is_stop_word, plain
from jiyi.languages.zh.words import PARTICLES, STOP_PAIRS
from jiyi.languages.zh.words import STOP_WORDS as CHINESE
from support import each_case

any_text = st.text(alphabet=st.characters(exclude_categories=()))
chinese = st.text(alphabet=st.characters(min_codepoint=0x4E00, max_codepoint=0x9FA5), min_size=2)
ascii_text = st.text(alphabet=st.characters(max_codepoint=0x7F))


@each_case(
    ("text", "query"),
    [
        ("用户喜欢喝咖啡", "咖啡"),
        ("用户喜欢喝咖啡", "茶还是咖啡？"),
        ("我喜欢喝茶", "茶"),
        ("臺灣的龍井很香", "台湾龙井"),
        ("台湾的龙井很香", "臺灣龍井"),
        ("他在中华人民共和国工作", "共和国"),
        ("用Rust写的parser", "用 RUST 写"),
        ("型号ＡＢＣ１２３", "abc123"),
        ("She was running with two dogs", "who runs with the dog"),
        ("Alice's favourite teas", "alice tea"),
        ("He doesn’t like O'Brien", "o'brien"),
        ("the iPhone is new", "iphones"),
        ("an iphone", "iPhone"),
        ("send PDFs", "pdf"),
        ("bought iPhone15", "iphone 15"),
        ("call getUserName here", "user name"),
        ("call getUserName here", "getusername"),
        ("the Plan-B meeting", "plan b"),
        ("I live in café Ärger", "CAFÉ ärger"),
        ("Привет мир", "МИР"),
        ("ひらがなとカタカナ", "カタカナ"),
        ("ดื่มกาแฟ", "กาแฟ"),
        ("हिन्दी में", "हिन्दी"),
        ("thanks 👍🏽", "👍"),
        ("go 🇨🇳!", "🇨🇳"),
        ("❤️", "❤"),
        ("会议12：30开始", "12:30"),
        ("costs 1,234 dollars", "1234"),
    ],
)
def test_a_query_meets_its_text(text: str, query: str) -> None:
    assert set(tokens(text)) & set(tokens(query))


@each_case(
    ("text", "query"),
    [("用户喜欢喝咖啡", "啡咖"), ("C++", "C#"), ("v2.1", "v2.2"), ("the cat", "the dog"), ("什么时候", "为什么")],
)
def test_different_things_keep_a_term_of_their_own(text: str, query: str) -> None:
    assert set(tokens(text)) != set(tokens(query))


@each_case(
    ("text", "whole", "parts"),
    [
        ("user_id", "user_id", {"user", "id"}),
        ("v2.1", "v2.1", {"v2"}),
        ("C++", "c++", {"c"}),
        ("C#", "c#", {"c"}),
        ("node.js", "node.js", {"node", "js"}),
        ("X7-Alpha", "x7-alpha", {"x7", "alpha"}),
        ("foo::bar", "foo::bar", {"foo", "bar"}),
        ("a/b.txt", "a/b.txt", {"b", "txt"}),
        ("mei.li+x@example.com", "mei.li+x@example.com", {"mei", "li", "com"}),
        ("--dry-run", "--dry-run", {"dri", "run"}),
        ("2024-05-01", "2024-05-01", {"2024", "05", "01"}),
        ("10.0.12", "10.0.12", {"10", "12"}),
        ("getUserName", "getusername", {"get", "user", "name"}),
        ("HTTPServer", "httpserver", {"http", "server"}),
        ("R&D", "r&d", {"r", "d"}),
        ("https://example.com/a_b", "https://example.com/a_b", {"https", "b"}),
        ("__init__", "__init__", {"init"}),
        ("gpt4", "gpt4", {"gpt", "4"}),
        ("500g", "500g", {"500"}),
    ],
)
@each_case("frame", ["{}", "用{}写的", "see {}, please.", "（{}）"])
def test_identifiers_are_found_whole_and_by_their_parts(text: str, whole: str, parts: set[str], frame: str) -> None:
    found = tokens(frame.format(text))
    assert whole in found
    assert parts <= set(found)


@each_case(
    ("text", "expected"),
    [
        ("", []),
        (" \n", []),
        ("…!?", []),
        ("the dog's bones don't", ["dog", "bone"]),
        ("I'll say what's new", ["say", "new"]),
        ("tea tea", ["tea", "tea"]),
        ("3.5 and 1,234.5", ["3.5", "1234.5"]),
        ("咖啡", ["咖", "啡", "咖啡"]),
        ("什么咖啡呢", ["咖", "啡", "么咖", "咖啡", "啡呢"]),
        ("我们", ["我"]),
        ("北京大学", ["北", "京", "大", "学", "北京", "京大", "大学", "北京大学"]),
        ("用Rust：Python太慢", ["用", "rust", "python", "太", "慢", "太慢"]),
    ],
)
def test_exact_terms(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


@each_case("text", ["The Who", "to be or not to be", "的", "吗呢", "I"])
def test_a_text_of_stop_words_is_still_findable(text: str) -> None:
    assert tokens(text)


def test_long_terms_are_cut_and_stay_distinct() -> None:
    first, second = tokens("x" * 500 + "1")[0], tokens("x" * 500 + "2")[0]
    assert first != second
    assert len(first) == len(second) == 64


@given(any_text)
@example("\ud800\udfff")
@example("____ -- '' ++ ##")
def test_every_text_gives_bounded_terms(text: str) -> None:
    assert all(0 < len(term) <= 64 and not term.isspace() for term in tokens(text))


@given(any_text)
def test_anything_written_can_be_found(text: str) -> None:
    """Letters and digits of any script leave at least one term."""
    if any(char.isalnum() for char in plain(text)):
        assert tokens(text)


@given(chinese, st.data())
def test_any_two_adjacent_characters_find_their_text(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 2))
    pair = text[start : start + 2]
    assert set(tokens(pair)) & set(tokens(text)) or pair in STOP_PAIRS or set(pair) <= PARTICLES


@given(ascii_text)
@example("iS don'T")
@example("fooBar-BazQux2 PDFs iPhone15 McDonald's")
def test_a_lower_case_query_finds_all_it_would_in_the_text(text: str) -> None:
    """camelCase only ever adds terms."""
    assert set(tokens(text.lower())) <= set(tokens(text))


@each_case("word", ["the", "What", "did", "don't", "it's", "什么", "怎麼", "我們", "吗", "的"])
def test_stop_words(word: str) -> None:
    assert is_stop_word(word)


@each_case("word", ["tea", "no", "never", "咖啡", "茶", "x", ""])
def test_content_words(word: str) -> None:
    assert not is_stop_word(word)


def test_stop_words_are_in_normal_form() -> None:
    assert all(is_stop_word(word) for word in CHINESE)


@given(ascii_text | st.text(st.sampled_from("aZ9_ -:/.@'+&#,10()"), max_size=40))
def test_the_pattern_for_ascii_finds_the_same_pieces(text: str) -> None:
    found = [(match.span(), match.lastgroup) for match in words._pieces().finditer(text)]
    assert [(match.span(), match.lastgroup) for match in words.pieces(text)] == found
