"""Text is compared in one normal form: width, case, traditional characters and spaces do not matter."""

from importlib.resources import files
from unicodedata import normalize

from hypothesis import given
from hypothesis import strategies as st

from jiyi.languages.words import fold_traditional, normalise, plain, simplified_table
from support import each_case

any_text = st.text(alphabet=st.characters(exclude_categories=()))


@each_case(
    ("text", "expected"),
    [
        ("", ""),
        ("  I  Like\tTea\n", "i like tea"),
        ("ＡＢＣ１２３", "abc123"),
        ("臺灣　龍井", "台湾 龙井"),
        ("後來在裏面喝餅乾", "后来在里面喝饼干"),
        ("STRASSE Straße", "strasse strasse"),
        ("don’t", "don't"),
        ("zero\u200bwidth soft\u00adhyphen", "zerowidth softhyphen"),
        ("❤️", "❤"),
        ("我吃素，对吗？", "我吃素,对吗?"),
        ("ｶﾞﾗｽ", "ガラス"),
        ("\ud800", "\ud800"),
    ],
)
def test_normal_form(text: str, expected: str) -> None:
    assert normalise(text) == expected


@given(any_text)
def test_normalising_twice_is_normalising_once(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once


@given(st.text(alphabet="a\u0130\u0300\u0316\u0345\uff9e\u1fb3\u200b龍", max_size=200))
def test_normalising_twice_is_normalising_once_with_many_marks(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once


@given(any_text)
def test_plain_text_differs_from_nfkc_only_where_it_says_so(text: str) -> None:
    """Wide marks are replaced ahead of NFKC for speed; that must not change the outcome."""
    table = {ord(char): None for char in "\u00ad\u200b\u200e\u200f\u2060\ufeff\u202a\u202b\u202c\u202d\u202e"}
    table |= dict.fromkeys([*range(0x2066, 0x206A), *range(0xFE00, 0xFE10)])
    expected = normalize("NFKC", text).translate({**table, 0x2019: "'", 0x2BC: "'", 0x2010: "-"})
    assert plain(text) == fold_traditional(expected)


def test_a_flood_of_combining_marks_is_cut_short() -> None:
    """CPython needs minutes for this text; an accent more or less must not stop a server."""
    assert len(normalise("a" + "\u0300\u0316" * 500_000)) <= 31


def test_the_table_is_opencc_s() -> None:
    lines = files("opencc").joinpath("dictionary/TSCharacters.txt").read_text(encoding="utf-8").splitlines()
    first_choice = {key: values.split(" ")[0] for key, values in (line.split("\t") for line in lines if line)}
    expected = {key: value for key, value in first_choice.items() if key != value and key not in "吒薹"}
    expected["薴"] = "苎"
    assert {chr(key): value for key, value in simplified_table().items()} == expected


def test_no_target_of_the_table_is_a_key() -> None:
    table = simplified_table()
    assert not set(map(ord, table.values())) & set(table)


@each_case("text", ["皇后", "著名", "哪吒", "菜薹", "干净", "台湾", "瞭望"])
def test_simplified_text_stays_as_it_is(text: str) -> None:
    assert fold_traditional(text) == text
