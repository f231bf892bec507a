"""Words that mean the same: the built-in set, files of them, the store, expansion, and `jiyi synonyms`."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import jiyi.languages.terms
import jiyi.read.query
import jiyi.synonyms
from jiyi import InvalidInput, Memory, NotFound
from jiyi.languages.terms import _groups, builtin_synonyms
from jiyi.languages.words import normalise
from jiyi.read.query import MOST_RELATED, MOST_SYNONYMS, expand, related_words
from jiyi.synonyms import Cooccurrence, Synonym, checked, parse_synonyms
from support import Place, dump, each_case, rows_with
from test_cli import answer
from test_cli import jiyi as run

GROUPS = _groups()
WORDS = sorted({word for group in GROUPS for word in group})


@pytest.mark.parametrize("module", [jiyi.languages.terms, jiyi.synonyms, jiyi.read.query])
def test_examples_run(module: Any) -> None:
    assert doctest.testmod(module).failed == 0


# -- the built-in set -----------------------------------------------------------------------------------------------


def test_the_set_is_well_formed() -> None:
    """Every group joins the languages, none is a part of another, and all words are in their normal form."""
    assert 250 <= len(GROUPS) <= 350
    assert not [group for at, group in enumerate(GROUPS) for other in GROUPS[at + 1 :] if len({*group} & {*other}) > 2]
    assert all(2 <= len(group) <= 6 for group in GROUPS)
    assert [word for word in WORDS if normalise(word) != word or not word.isprintable()] == []
    both = [group for group in GROUPS if {word.isascii() for word in group} >= {True, False}]
    assert len(both) == len(GROUPS), "every group speaks both languages"


@each_case("word", WORDS)
def test_it_is_symmetric(word: str) -> None:
    others = builtin_synonyms(word)
    assert others and word not in others and len(others) == len(set(others))
    assert all(word in builtin_synonyms(other) for other in others)


@pytest.mark.parametrize(
    ("word", "among"),
    [
        ("过敏", "allergy"),
        ("過敏", "allergic"),
        ("ＡＬＬＥＲＧＹ", "过敏"),
        ("allergies", "过敏"),
        ("dogs", "狗"),
        ("swimming", "游泳"),
        ("hiked", "徒步"),
        ("planned", "计划"),
        ("deployed", "部署"),
        ("business trips", "出差"),
        ("deadline", "截止"),
        ("brother", "弟弟"),
        ("吃素", "vegetarian"),
        ("db", "数据库"),
    ],
)
def test_it_knows_a_word_in_any_dress(word: str, among: str) -> None:
    assert among in builtin_synonyms(word)


@pytest.mark.parametrize("word", ["", "busy", "universe", "ss", "s", "ing", "ed", "zzz", "的", "\x00", "🧠"])
def test_it_does_not_guess(word: str) -> None:
    assert builtin_synonyms(word) == ()


def test_brothers_are_not_the_same() -> None:
    assert "弟弟" not in builtin_synonyms("哥哥")


@given(st.text())
def test_any_text_can_be_looked_up(text: str) -> None:
    assert text not in builtin_synonyms(text)


# -- files ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("咖啡 | Coffee", [("咖啡", "coffee", 0.8)]),
        (
            "# ours\n\n  咖啡，coffee、拿鐵  \n",
            [("咖啡", "coffee", 0.8), ("咖啡", "拿铁", 0.8), ("coffee", "拿铁", 0.8)],
        ),
        ("k8s,kubernetes", [("k8s", "kubernetes", 0.8)]),
        ("k8s,kubernetes,0.95", [("k8s", "kubernetes", 0.95)]),
        ("k8s | kubernetes | 0.95", [("k8s", "kubernetes", 0.8), ("k8s", "0.95", 0.8), ("kubernetes", "0.95", 0.8)]),
        ("keyword,synonym,similarity_score\r\nC#,csharp,1\r\na,b,\r\n", [("c#", "csharp", 1.0), ("a", "b", 0.8)]),
        ("\ufeffkeyword\tsynonym\tsimilarity\n出差\tbusiness trip\t0.5", [("出差", "business trip", 0.5)]),
        ('"red, white",both,0.5', [("red, white", "both", 0.5)]),
        ("a\tb\tc", [("a", "b", 0.8), ("a", "c", 0.8), ("b", "c", 0.8)]),
        ("a,b,0.5\nB,A,0.9", [("b", "a", 0.9)]),
        ("a|A|b", [("a", "b", 0.8)]),
        ("", []),
    ],
)
def test_a_file_is_read(text: str, pairs: list[tuple[str, str, float]]) -> None:
    assert parse_synonyms(text, name="words.txt") == pairs


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("咖啡", 1, "two different words"),
        ("a|b\n\nCoffee | coffee", 3, "two different words"),
        ("|||", 1, "two different words"),
        ("a,b,1.5", 1, "similarity"),
        ("a,b,-1", 1, "similarity"),
        ("a,b,0", 1, "similarity"),
        ("keyword,synonym,similarity\na,b,much", 2, "similarity"),
        ("keyword,synonym,similarity\na,b,nan", 2, "similarity"),
        ("keyword,synonym,similarity\na,b,0.5,c", 2, "4 columns"),
        ("keyword,synonym\na,A,0.5", 2, "the same word"),
        ("keyword,synonym\na,,0.5", 2, "is empty"),
        ("x" * 257 + "|b", 1, "257 characters"),
        ("a\x00|b", 1, "NUL"),
        ("a\ud800|b", 1, "Unicode"),
        ('"a,b', 1, "table"),
        ("|".join(map(str, range(51))), 1, "51 words"),
    ],
)
def test_a_wrong_line_is_named(text: str, line: int, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem) as error:
        parse_synonyms(text, name="words.txt")
    assert error.value.argument == f"words.txt, line {line}"


LINES = st.lists(
    st.one_of(
        st.text(st.sampled_from('ab咖啡ＡB |,，、\t"#.019\x00\ufeff\u2028-'), max_size=20),
        st.text(max_size=20),
        st.just("keyword,synonym,similarity"),
    ),
    max_size=6,
)


@given(LINES)
def test_any_file_gives_good_pairs_or_a_clear_error(lines: list[str]) -> None:
    try:
        pairs = parse_synonyms("\n".join(lines), name="f")
    except InvalidInput as error:
        assert re.match(r"f, line \d+: .", str(error))
        return
    assert len(checked(pairs)) == len(pairs), "each pair once, and each can be stored"
    for one, other, similarity in pairs:
        assert normalise(one) == one and normalise(other) == other and one and other and one != other
        assert 0 < similarity <= 1
    assert parse_synonyms("\n".join(lines), name="f") == pairs


@pytest.mark.parametrize(
    ("pairs", "problem"),
    [
        ("ab", "list of"),
        (None, "list of"),
        (["ab"], "must be"),
        ([("a",)], "must be"),
        ([("a", "b", 0.5, 1)], "must be"),
        ([("a", 1)], "must be text"),
        ([("a", "Ａ")], "the same word"),
        ([("a", "\u200b")], "is empty"),
        ([("a", "b", 2)], "number from 0 to 1"),
        ([("a", "b", 0)], "above 0"),
        ([("a", "b", True)], "number from 0 to 1"),
    ],
)
def test_wrong_pairs_are_refused(pairs: Any, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        checked(pairs)


# -- the store ------------------------------------------------------------------------------------------------------


def pairs_of(found: Any) -> set[tuple[str, str, float, bool]]:
    return {(pair.keyword, pair.synonym, pair.similarity, pair.shared) for pair in found}


async def synonyms_of(memory: Memory, user_id: str, *words: str) -> dict[str, tuple[str, ...]]:
    return dict((await memory.synonyms.expand(words, user_id=user_id)).by_word)


async def test_a_pair_holds_in_both_directions_and_in_every_dress(memory: Memory) -> None:
    assert await memory.synonyms.add([("K8s", "Kubernetes", 0.9)], user_id="mei") == 1
    assert await synonyms_of(memory, "mei", "ｋ８Ｓ") == {"k8s": ("kubernetes",)}
    assert await synonyms_of(memory, "mei", "KUBERNETES") == {"kubernetes": ("k8s",)}
    [pair] = await memory.synonyms.list(user_id="mei")
    assert pair == Synonym(keyword="k8s", synonym="kubernetes", similarity=0.9, shared=False)


async def test_adding_again_counts_only_what_changes(memory: Memory, place: Place) -> None:
    assert await memory.synonyms.add([("a", "b"), ("b", "a"), ("c", "d", 0.5)], user_id="mei") == 2
    before = dump(place)
    assert await memory.synonyms.add([("B", "A"), ("d", "c", 0.5)], user_id="mei") == 0
    assert dump(place) == before, "nothing was written, not even to the change feed"
    assert await memory.synonyms.add([("b", "a", 0.4)], user_id="mei") == 1
    assert pairs_of(await memory.synonyms.list(user_id="mei")) == {("a", "b", 0.4, False), ("c", "d", 0.5, False)}


async def test_nobody_sees_anothers_synonyms_and_everybody_the_shared_ones(memory: Memory) -> None:
    await memory.synonyms.add([("boss", "王总")], user_id="mei")
    await memory.synonyms.add([("okr", "目标管理")])
    for user in ("mei2", "Mei", "li"):
        assert pairs_of(await memory.synonyms.list(user_id=user)) == {("okr", "目标管理", 0.8, True)}
        assert await synonyms_of(memory, user, "boss", "王总") == {"boss": ("老板", "上司")}
        assert (await synonyms_of(memory, user, "okr"))["okr"] == ("目标管理",)
    assert pairs_of(await memory.synonyms.list()) == {("okr", "目标管理", 0.8, True)}
    assert (await synonyms_of(memory, "mei", "boss"))["boss"][0] == "王总", "before the built-in ones"


async def test_ones_own_word_outweighs_the_shared_one(memory: Memory) -> None:
    await memory.synonyms.add([("xx", "shared", 0.9), ("xx", "both", 0.95)])
    await memory.synonyms.add([("xx", "own", 0.7), ("xx", "both", 0.1)], user_id="mei")
    assert await synonyms_of(memory, "mei", "xx") == {"xx": ("shared", "own", "both")}
    assert await synonyms_of(memory, "li", "xx") == {"xx": ("both", "shared")}


async def test_removing(memory: Memory) -> None:
    await memory.synonyms.add([("a", "b"), ("a", "c"), ("d", "a")], user_id="mei")
    await memory.synonyms.add([("a", "b")])
    assert await memory.synonyms.remove("B", "A", user_id="mei") == 1
    assert await synonyms_of(memory, "mei", "b") == {"b": ("a",)}, "the shared one"
    assert await memory.synonyms.remove("a", user_id="mei") == 2
    assert pairs_of(await memory.synonyms.list(user_id="mei")) == {("a", "b", 0.8, True)}
    with pytest.raises(NotFound, match="user 'mei' has no synonyms of their own: 'a'"):
        await memory.synonyms.remove("a", user_id="mei")
    with pytest.raises(NotFound, match="no shared synonyms: 'a' and 'd'"):
        await memory.synonyms.remove("a", "d")
    assert await memory.synonyms.remove("a") == 1
    assert list(await memory.synonyms.list(user_id="mei")) == []


async def test_deleting_a_user_takes_the_users_synonyms_and_no_others(memory: Memory, place: Place) -> None:
    await memory.synonyms.add([("secretword", "b")], user_id="mei")
    await memory.synonyms.add([("a", "b")], user_id="li")
    await memory.synonyms.add([("a", "c")])
    await memory.delete_all("mei")
    assert rows_with(place, "secretword") == {}
    assert len(await memory.synonyms.list(user_id="mei")) == 1 and len(await memory.synonyms.list(user_id="li")) == 2


async def test_the_change_feed_says_that_answers_may_change(memory: Memory, place: Place) -> None:
    await memory.add("tea", user_id="mei")
    await memory.search("tea", user_id="mei")
    await memory.synonyms.add([("a", "b")], user_id="mei")
    await memory.synonyms.add([("a", "b")])
    assert [row[1:4] for row in dump(place)["changes"]][1:] == [("mei", "", "synonyms"), ("", "", "synonyms")]
    assert (await memory.search("tea", user_id="mei")).total_found == 1
    assert list(await memory.users()) == ["mei"]


@each_case("odd", ["%", "_", "'; DROP TABLE synonyms;--", "a" * 256, "🧠", "\\", "c++"])
async def test_odd_words_are_literal(memory: Memory, odd: str) -> None:
    await memory.synonyms.add([(odd, "plain")], user_id="mei")
    assert await synonyms_of(memory, "mei", odd) == {odd.lower(): ("plain",)}
    assert await synonyms_of(memory, "mei", "anything") == {}
    assert await memory.synonyms.remove(odd, user_id="mei") == 1


async def test_many_pairs_are_taken_in(memory: Memory) -> None:
    pairs = [(f"k{number}", f"s{number}") for number in range(3000)]
    assert await memory.synonyms.add(pairs, user_id="mei") == 3000
    assert await memory.synonyms.add(pairs, user_id="mei") == 0
    assert len(await memory.synonyms.list(user_id="mei")) == 3000


# -- expansion ------------------------------------------------------------------------------------------------------


def test_an_expansion_has_the_best_synonyms_and_no_original_among_them() -> None:
    own = {"coffee": [("java", 0.5), ("咖啡", 0.9), ("joe", 0.95), *((f"w{at}", 0.1) for at in range(9))]}
    found = expand(["Coffee", "咖啡", "coffee"], own, ["Mei", "joe", "coffee", *map(str, range(9))])
    assert found.original == ("coffee", "咖啡")
    assert found.synonyms == ("joe", "java", "w0", "w1") and found.by_word == {"coffee": found.synonyms}
    assert found.related == ("mei", "0", "1", "2", "3")
    assert expand(["coffee"], {}, use_builtin=False).synonyms == ()


@given(st.lists(st.sampled_from([*WORDS[::40], "x", "", " "])), st.lists(st.sampled_from(WORDS[::50])))
def test_the_three_parts_of_an_expansion_never_overlap(words: list[str], related: list[str]) -> None:
    found = expand(words, {}, related)
    together = [*found.original, *found.synonyms, *found.related]
    assert len(together) == len(set(together))
    assert all(len(synonyms) <= MOST_SYNONYMS for synonyms in found.by_word.values())
    assert len(found.related) <= MOST_RELATED


def test_related_words_stand_together_more_often_than_by_chance() -> None:
    company = Cooccurrence(
        population=29,
        asked=9,
        together={"anna": 3, "once": 1, "user": 2, "2023": 3},
        holders={"berlin": 9, "anna": 3, "once": 1, "user": 22, "tea": 20, "2023": 3},
    )
    found = related_words(company)
    assert found == ["anna"], "not `once` (chance), `user` (everywhere), `2023` (no word)"
    assert related_words(Cooccurrence()) == []


async def test_related_words_come_from_ones_own_memories(memory: Memory) -> None:
    for text in ("Anna lives in Berlin", "Berlin with Anna was cold", "I visit Anna in Berlin"):
        await memory.add(text, user_id="mei")
    for number in range(8):
        await memory.add(f"tea number{number}", user_id="mei")
    found = await memory.synonyms.expand(["berlin"], user_id="mei")
    assert found.original == ("berlin",) and found.related == ("anna",)
    assert (await memory.synonyms.expand(["berlin"], user_id="li")).related == ()
    for item in (await memory.list(user_id="mei")).items:
        await memory.update(item.id, user_id="mei", status="archived")
    assert (await memory.synonyms.expand(["berlin"], user_id="mei")).related == ()


# -- the command line -----------------------------------------------------------------------------------------------


@pytest.fixture
def own_store(path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JIYI_URL", str(path))
    monkeypatch.setenv("JIYI_USER", "mei")
    return path


@pytest.mark.usefixtures("own_store")
def test_the_commands_do_what_they_say(tmp_path: Path) -> None:
    file = tmp_path / "词表.csv"
    file.write_text("keyword,synonym,similarity\nk8s,kubernetes,0.95\nOKR,目标管理,\n", encoding="utf-8-sig")
    assert "2 pairs added" in run("synonyms", "import", file).stdout
    assert "0 pairs added, 2 known already" in run("synonyms", "import", file).stdout
    assert answer("synonyms", "import", "-", "--shared", input="a | b | c\n") == {"pairs": 3, "added": 3}
    listed = answer("synonyms", "list")
    assert [pair["keyword"] for pair in listed] == ["a", "a", "b", "k8s", "okr"]
    assert listed[3] == {"keyword": "k8s", "synonym": "kubernetes", "similarity": 0.95, "shared": False}
    assert len(answer("synonyms", "list", "--user", "li")) == len(answer("synonyms", "list", "--shared")) == 3
    shown = run("synonyms", "list").stdout
    assert "user" in shown and "shared" in shown and "目标管理" in shown
    assert answer("synonyms", "remove", "K8S") == {"removed": 1}
    assert "2 pairs removed" in run("synonyms", "remove", "a", "--shared").stdout
    assert "has no synonyms" in run("synonyms", "remove", "b", "c", code=3).stderr
    assert run("synonyms", "remove", "b", "c", "--shared").stdout == "1 pair removed\n"


@pytest.mark.usefixtures("own_store")
def test_wrong_files_are_refused_in_one_line(tmp_path: Path) -> None:
    assert "no synonyms" in run("synonyms", "list").stderr
    for data, problem in ((b"alone\n", "line 1: needs at least two"), (b"\xff\xfe", "not UTF-8"), (b"\n", "is empty")):
        (tmp_path / "f.txt").write_bytes(data)
        refused = run("synonyms", "import", tmp_path / "f.txt", code=2)
        assert problem in " ".join(refused.stderr.split()) and refused.stderr.count("\n") == 1
    assert "cannot be read" in run("synonyms", "import", tmp_path / "none.txt", code=2).stderr
    assert answer("synonyms", "list") == []
