"""How memories are written into Markdown and read back: without losing a byte, whatever stands in the file."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jiyi.files.document import CannotParse, Document, Entry, bullet_text, exchanged, inserted, marked, parse, rewritten
from jiyi.files.format import FIELDS, NAMES, Labels, Note, canonical, heading_line, read_heading, read_labels, read_note
from jiyi.ids import new_id

ID = "01k9zq4f3rw5m8v2c7t6n1d0ab"
LINES = (
    "# Memory",
    "## Facts",
    "## 偏好",
    "### Work",
    "## decision <!-- jiyi:type=decision -->",
    "Facts",
    "=====",
    "-----",
    "- a fact",
    "* 我吃素",
    "+\tplus",
    "- - -",
    "***",
    f"- known <!-- jiyi:{ID} importance=0.8 tags=a,b -->",
    f"  - nested <!-- jiyi:{ID} -->",
    f"- typed <!-- jiyi:{ID} --> behind it",
    "  indented",
    "    deeper",
    "\ttab",
    "lazy",
    "",
    "   ",
    "```",
    "~~~ python",
    "<!-- begins",
    "ends -->",
    "<!-- whole -->",
    "<pre>",
    "</pre>",
    "---",
    "title: x",
    "| a | b |",
    "> - quoted",
    "1. numbered",
    "<<<<<<< HEAD",
    "=======",
    "\u202eright to left\u202c",
    "👩‍🔬",
    "a\x0bb\x0cc\x85d\u2028e",
)
ENDS = ("\n", "\r\n", "\r")
texts = st.one_of(
    st.text(),
    st.lists(st.tuples(st.sampled_from(LINES), st.sampled_from(ENDS)), max_size=25).map(
        lambda lines: "".join(line + end for line, end in lines)
    ),
    st.lists(st.sampled_from(LINES), max_size=25).map("\n".join),
    st.lists(st.sampled_from(LINES), max_size=25).map(lambda lines: "\ufeff## Facts\n" + "\n".join(lines)),
)
contents = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=60),
    st.lists(st.sampled_from(LINES), min_size=1, max_size=6).map("\n".join),
).filter(lambda text: text.strip())
moments = st.datetimes(datetime(1, 2, 1), datetime(9999, 11, 1), timezones=st.just(UTC)).map(  # noqa: DTZ001
    lambda at: at.replace(microsecond=0)
)
words = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)
names = words.filter(str.strip)


def tags_kept(tags: list[str]) -> tuple[str, ...]:
    from jiyi import InvalidInput, validation

    try:
        return validation.tags("tags", tags)
    except InvalidInput:
        return ()


notes = st.builds(
    Note,
    content=contents.map(canonical).filter(lambda text: text.strip()),
    memory_type=st.one_of(st.sampled_from(sorted(NAMES)), names.map(str.strip).filter(lambda name: len(name) < 60)),
    importance=st.floats(0, 1).map(lambda share: round(share, 2)),
    tags=st.lists(names, max_size=3).map(tags_kept),
    occurred_at=st.none() | moments,
    expires_at=st.none() | moments,
)


def whole(text: str) -> Document | None:
    try:
        return parse(text)
    except CannotParse:
        return None


@given(texts)
@example("\ufeff")
@example("---\ntitle: x\n---\n## Facts\n- a")
@example("- a\r\n\r\n\r\n  b\r- c")
def test_parsing_loses_nothing(text: str) -> None:
    document = whole(text)
    assert document is None or document.text == text


@given(texts, texts)
@example("## Facts\n- a fact\n  indented\n", "## Facts\n- a fact\n- a fact\n")
@example("- a fact\n", "## Facts\n- a fact\n")
@example("## 偏好\n- a fact\n", "## Facts\n- a fact\n")
@example("```\n- a fact\n```\n", "## Facts\n\n- a fact\n")
def test_whatever_stood_there_before_a_file_reads_as_it_stands(text: str, before: str) -> None:
    alone, known = whole(text), whole(before)
    if alone is not None:
        assert parse(text, known) == alone


@given(notes, st.sampled_from(ENDS), st.sampled_from(["- ", "* ", "+   ", "-\t", "  - "]))
@example(Note(content="<!-- jiyi:x --> <\\!-- <\\\\!--", memory_type="fact"), "\n", "- ")
@example(Note(content="- - -\n\n\n```\n- x", memory_type="fact"), "\n", "- ")
def test_what_is_written_reads_back_as_it_was(note: Note, eol: str, bullet: str) -> None:
    home = Labels(memory_key="k=1,2", agent_id="a b", group_id="--", session_id="会话>")
    line = bullet_text(bullet, ID, note, home, eol)
    document = parse(heading_line(note.memory_type, "zh") + eol + line + eol)
    [entry] = document.entries
    assert entry.memory_id == ID
    assert read_note(entry.item, entry.memory_type) == note
    assert read_labels(entry.item) == home


@given(texts, notes)
def test_a_new_line_is_added_and_no_other_is_touched(text: str, note: Note) -> None:
    before = whole(text)
    if before is None:
        return
    memory_id = new_id()
    line = bullet_text("- ", memory_id, note, Labels(), before.eol)
    after = inserted(before, [line], note.memory_type, heading_line(note.memory_type, "en"))
    found = parse(after.text)
    [entry] = [entry for entry in found.entries if entry.memory_id == memory_id]
    assert read_note(entry.item, entry.memory_type) == note
    assert is_insertion(text, after.text)
    others = [(entry.memory_id, entry.item.content) for entry in found.entries if entry.memory_id != memory_id]
    assert others == [(entry.memory_id, entry.item.content) for entry in before.entries]


def is_insertion(before: str, after: str) -> bool:
    """The one text stands in the other, which has more at one place."""
    head = next((at for at, (one, other) in enumerate(zip(before, after, strict=False)) if one != other), len(before))
    return len(after) > len(before) and after.endswith(before[head:])


@given(texts, notes)
def test_a_line_is_changed_and_no_other_is_touched(text: str, note: Note) -> None:
    document = whole(text)
    if document is None or not document.entries:
        return
    entry = document.entries[0]
    changed = rewritten(entry, entry.memory_id or ID, note, Labels(), document.eol)
    again = whole(exchanged(document, {entry.line: changed}).text)
    assert again is not None
    [found] = [one for one in again.entries if one.line == entry.line]
    assert found.item.content == note.content and found.memory_id == changed.memory_id
    assert _foreign(document, entry) == _foreign(again, found)


def _foreign(document: Document, but: Entry) -> str:
    return "".join(part.text for part in document.parts if part is not but)


@given(texts)
def test_an_id_is_put_at_the_end_of_a_line_and_nothing_else_changes(text: str) -> None:
    document = whole(text)
    new = [entry for entry in document.entries if entry.memory_id is None] if document else []
    if not document or not new:
        return
    note = read_note(new[0].item, new[0].memory_type)
    done = marked(new[0], ID, note, Labels())
    again = parse(exchanged(document, {new[0].line: done}).text)
    [found] = [entry for entry in again.entries if entry.line == new[0].line]
    assert found.memory_id == ID and found.item.content == new[0].item.content
    assert found.text.replace(f" <!-- jiyi:{ID} -->", "", 1).split() == new[0].text.split()
    assert _foreign(document, new[0]) == _foreign(again, found)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("## Facts\n<<<<<<< HEAD\n- a\n=======\n- b\n>>>>>>> x\n", "merge"),
        ("---\ntitle: x\n## Facts\n- a\n", "front matter"),
        ("## Facts\n```\n- a\n", "code block"),
        ("<!-- \n- a\n", "comment"),
        ("<pre>\n- a\n", "<pre>"),
    ],
)
def test_where_nobody_can_tell_what_is_a_memory_the_file_is_refused(text: str, problem: str) -> None:
    with pytest.raises(CannotParse, match=problem):
        parse(text)


def said(text: str) -> list[tuple[str | None, str]]:
    return [(entry.memory_type, entry.item.content) for entry in parse(text).entries]


def test_bullets_count_under_a_heading_that_names_a_type() -> None:
    text = (
        "# Notes\n- not ours\n## 偏好\n- 喝茶\n### at work\n* no meetings\n## Shopping\n- milk\n"
        "Facts\n-----\n+ has a cat\n## 🍵 Preferences:\n- green tea\n## goals <!-- jiyi:type=goal -->\n- run\n"
    )
    assert said(text) == [
        ("preference", "喝茶"),
        ("preference", "no meetings"),
        ("fact", "has a cat"),
        ("preference", "green tea"),
        ("goal", "run"),
    ]


def test_what_is_hidden_in_code_comments_quotes_and_tables_is_no_memory() -> None:
    text = (
        "---\n- front matter\n---\n## Facts\n```\n- code\n```\n<!--\n- comment\n-->\n    - indented code\n"
        "> - quote\n| - table |\n1. numbered\n- - -\n<pre>\n- raw\n</pre>\n- a fact\n"
    )
    assert said(text) == [("fact", "a fact")]


def test_a_bullet_holds_its_indented_lines_and_no_others() -> None:
    text = "## Facts\n- first\n  second\n\n  third\n\n- other\nlazy\n- [ ] task\n  - sub\n"
    assert said(text) == [("fact", "first\nsecond\n\nthird"), ("fact", "other"), ("fact", "[ ] task\n- sub")]


def test_an_id_survives_wrapping_typing_behind_it_and_being_indented() -> None:
    text = (
        f"## Facts\n- one <!-- jiyi:{ID} --> two\n- long\n  line <!-- jiyi:{ID[:-1]}c -->\n"
        f"  - below <!-- jiyi:{ID[:-1]}d -->\n## Other\n- moved <!-- jiyi:{ID[:-1]}e -->\n"
    )
    entries = parse(text).entries
    assert [(entry.item.memory_id or "")[-1] for entry in entries] == ["b", "c", "d", "e"]
    assert [entry.item.content for entry in entries] == ["one two", "long\nline", "below", "moved"]
    assert entries[-1].memory_type is None, "its heading says nothing about its type"


def test_wrong_meta_is_left_open_and_not_guessed() -> None:
    text = f"## Facts\n- x <!-- jiyi:{ID} importance=high at=yesterday until=2030-13-01 tags={'x' * 300} -->\n"
    [entry] = parse(text).entries
    note = read_note(entry.item, entry.memory_type)
    assert note.unspecified == {"importance", "occurred_at", "expires_at", "tags"}


def test_headings_are_known_in_both_languages() -> None:
    for memory_type, names_ in NAMES.items():
        for language in ("zh", "en"):
            heading = read_heading(heading_line(memory_type, language))
            assert heading is not None and heading.memory_type == memory_type and heading.language == language
            for name in names_[language]:
                assert read_heading(f"### {name} ###").memory_type == memory_type
    assert set(FIELDS) == set(Note(content="x", memory_type="fact").digests())


@pytest.mark.parametrize("line", ["## a{}b", "## {}#x", "# a{}<!-- jiyi:", "- a{}<!-- jiyi:x", "- a <!-- jiyi:{}"])
def test_a_line_of_many_spaces_is_read_at_once(line: str) -> None:
    """Patterns with spaces on both sides of something would take minutes here."""
    text = "## Facts\n" + line.format(" " * 200_000) + "\n- b\n"
    assert parse(text).text == text


@pytest.mark.parametrize(
    ("line", "title", "memory_type"),
    [
        ("## Facts", "Facts", "fact"),
        ("##\tFacts ##  ", "Facts", "fact"),
        ("## **Facts**:", "**Facts**:", "fact"),
        ("## _事实_", "_事实_", "fact"),
        ("## Facts##", "Facts##", "fact"),
        ("## #", "", None),
        ("##", "", None),
        ("## C#", "C#", None),
        ("## ---", "---", None),
    ],
)
def test_what_a_heading_says(line: str, title: str, memory_type: str | None) -> None:
    heading = read_heading(line)
    assert heading is not None
    assert (heading.title, heading.memory_type) == (title, memory_type)


@pytest.mark.parametrize("line", ["##Facts", "####### Facts", "    # Facts", "\t# Facts"])
def test_what_is_no_heading(line: str) -> None:
    assert read_heading(line) is None


@pytest.mark.parametrize(
    "block", ["```\n\n- code\n```", "<!--\n\n- hidden\n-->", "<pre>\n\n- raw\n</pre>", "~~~\n\n~~~\nlazy"]
)
def test_a_new_line_never_goes_into_a_block_below_the_last_one(block: str) -> None:
    """A block is whole, blank lines in it included; it may stand right under a bullet."""
    before = parse(f"## Facts\n- a\n{block}\n\nprose\n")
    after = inserted(
        before, [bullet_text("- ", ID, Note(content="b", memory_type="fact"), Labels(), "\n")], "fact", "## Facts"
    )
    assert block in after.text
    assert [entry.item.content for entry in parse(after.text).entries] == ["a", "b"]


@pytest.mark.parametrize("above", ["", "- a\n", "prose\n", "- a\n\n"])
def test_a_new_line_never_comes_between_a_title_and_the_line_below_it(above: str) -> None:
    """A heading of two lines is one heading: what ends a section is the first of them."""
    before = parse(f"Facts\n-----\n{above}Mine\n----\n- not ours\n")
    after = inserted(
        before, [bullet_text("- ", ID, Note(content="b", memory_type="fact"), Labels(), "\n")], "fact", "## Facts"
    )
    assert "Mine\n----\n- not ours\n" in after.text
    assert [entry.item.content for entry in parse(after.text).entries] == [*(["a"] if "- a" in above else []), "b"]


@pytest.mark.parametrize(
    "hanging", ["lazy\n\n  more of a\n", "lazy\n\n\tmore of a\n\n\n  and more\n", "lazy\n\nprose\n"]
)
def test_what_hangs_on_a_bullet_does_not_come_to_hang_on_a_new_one(hanging: str) -> None:
    before = parse(f"## Facts\n- a\n{hanging}\n## Mine\n")
    line = bullet_text("- ", ID, Note(content="b", memory_type="fact"), Labels(), "\n")
    after = parse(inserted(before, [line], "fact", "## Facts").text)
    assert [entry.item.content for entry in after.entries] == ["a", "b"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\r\r\n"])
@pytest.mark.parametrize("first", ["\n", "\r\n", "\r", "\r\r\n"])
def test_a_bullet_that_comes_and_goes_takes_no_byte_along(first: str, end: str) -> None:
    text = f"notes{first}" + end.join(["## Facts", "- a", "", "[link]: x", ""])
    before = parse(text)
    line = bullet_text("- ", ID, Note(content="b", memory_type="fact"), Labels(), before.eol)
    after = parse(inserted(before, [line], "fact", "## Facts").text)
    [new] = [entry for entry in after.entries if entry.memory_id == ID]
    assert exchanged(after, {new.line: None}).text == text
