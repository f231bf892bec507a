"""The language of a text is the one that carries it."""

from hypothesis import given
from hypothesis import strategies as st

from jiyi.languages.words import language
from support import each_case

any_text = st.text(alphabet=st.characters(exclude_categories=()))


@each_case(
    ("text", "expected"),
    [
        ("我吃素，对花生过敏", "zh"),
        ("臺灣的龍井茶", "zh"),
        ("茶", "zh"),
        ("用 Rust 写的 parser", "zh"),
        ("我用 TypeScript", "zh"),
        ("优の良品旗舰店", "zh"),
        ("IT 行业怎么样", "zh"),
        ("what can she eat?", "en"),
        ("I visited my friend Li Wei in 北京 last week", "en"),
        ("tea", "en"),
        ("I love 麻辣香锅", "mixed"),
        ("他说 I love you 然后就走了", "mixed"),
        ("東京へ行きました", "other"),
        ("안녕하세요", "other"),
        ("Привет, как дела", "other"),
        ("", "other"),
        ("12:30", "other"),
        ("👍！", "other"),
    ],
)
def test_language(text: str, expected: str) -> None:
    assert language(text) == expected


@given(any_text)
def test_every_text_has_a_language(text: str) -> None:
    assert language(text) in {"zh", "en", "mixed", "other"}
