"""Fingerprints tell the same text, nearly the same text, and terms apart."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jiyi.languages.terms import content_hash, hamming, near_hash, simhash, term_counts, term_hash, tokens
from jiyi.languages.words import normalise

any_text = st.text(alphabet=st.characters(exclude_categories=()))
int64 = st.integers(-(2**63), 2**63 - 1)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("我吃素。", "我吃素"),
        ("我吃素，对花生过敏", " 我吃素, 对花生过敏！"),
        ("「臺灣」", "台湾"),
        ("用 Rust 写的", "用Rust写的"),
        ("I like tea", "i  like tea."),
        ("Yes: I like (green) tea...", "yes I like green tea"),
        ("**bold** move", "bold move"),
        ("don’t", "don't"),
        ("ＡＢＣ", "abc"),
    ],
)
def test_sentence_marks_case_and_width_do_not_change_the_content(one: str, other: str) -> None:
    assert content_hash(one) == content_hash(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("C", "C++"),
        ("C", "C#"),
        ("v2.1", "v21"),
        ("3.5", "35"),
        ("5-10", "510"),
        ("it is -5", "it is 5"),
        ("5%", "5"),
        ("$5", "€5"),
        ("a < b", "a > b"),
        ("不，可以", "不可以"),
        ("!!!", "???"),
        ("!", ""),
        ("😀", "😁"),
        ("\ud800", "\ud801"),
        ("我吃素", "我不吃素"),
    ],
)
def test_what_changes_the_meaning_changes_the_hash(one: str, other: str) -> None:
    assert content_hash(one) != content_hash(other)


@given(any_text)
@example("\ud800")
def test_the_content_hash_is_that_of_the_normal_form(text: str) -> None:
    assert content_hash(text) == content_hash(normalise(text))
    assert len(content_hash(text)) == 32


@given(any_text, any_text)
def test_texts_of_marks_alone_share_no_hash(one: str, other: str) -> None:
    if normalise(one) and not normalise(other):
        assert content_hash(one) != content_hash(other)


def test_near_texts_have_near_hashes() -> None:
    base = near_hash("我女儿每周六下午在上海学钢琴，老师姓王，已经学了三年")
    assert hamming(base, near_hash("我女儿每周六下午在上海学钢琴，老师姓王，已经学了两年")) < 16
    assert hamming(base, near_hash("项目用的是微服务架构，部署在三台机器上，每晚备份一次")) > 16
    assert near_hash("I like green tea in the morning") == near_hash("i LIKE green teas, in the morning!")


@given(any_text)
@example("")
@example("!")
@example("\ud800")
def test_near_hash_fits_sql_and_is_the_simhash_of_the_terms(text: str) -> None:
    found = near_hash(text)
    assert -(2**63) <= found < 2**63
    assert hamming(found, found) == 0
    if terms := tokens(text):
        assert simhash(terms) == found


def test_simhash_is_the_same_in_blocks() -> None:
    """Repeating every term changes no majority, also where the terms no longer fit one block."""
    terms = [f"term{n}" for n in range(101)]
    assert simhash(terms * 1000) == simhash(terms)


@given(int64, int64)
def test_hamming_counts_different_bits(one: int, other: int) -> None:
    bits = [format(value % 2**64, "064b") for value in (one, other)]
    assert hamming(one, other) == sum(a != b for a, b in zip(*bits, strict=True))


def test_hashes_stay_what_they_are() -> None:
    """They are stored: a change here asks for a rebuild of every index."""
    assert term_hash("咖啡") == 693110024760828975
    assert content_hash("我吃素。") == "c3ed5139c1d7facf6895e7bf9fbe6a65"
    assert near_hash("I like tea") == -8645642170427998064


@given(st.lists(any_text))
@example(["\ud800", "a", "a"])
def test_term_counts_are_sorted_unique_and_complete(terms: list[str]) -> None:
    hashes, counts = term_counts(iter(terms))
    assert hashes.dtype == np.int64
    assert counts.dtype == np.uint16
    assert hashes.tolist() == sorted(set(hashes.tolist()))
    assert dict(zip(hashes.tolist(), counts.tolist(), strict=True)) == Counter(map(term_hash, terms))


def test_a_count_stops_at_what_fits() -> None:
    assert term_counts(["a"] * 70_000)[1].tolist() == [65535]
