"""The built-in extractor: what it makes of what people say, in both languages."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import extract_chinese
import extract_english
from jiyi.write.drafts import Draft, Said, Unit
from jiyi.write.extractors import builtin_drafts

MONDAY = datetime(2023, 5, 15, 10, tzinfo=UTC)
DERIVED = ("episode", "profile", "group_profile")


def unit(*texts: str, speaker: str | None = None, role: str = "user") -> Unit:
    said = (Said(id=f"m{i}", role=role, speaker=speaker, text=text, sent_at=MONDAY) for i, text in enumerate(texts))
    return Unit(id="u", user_id="u", messages=tuple(said))


def atoms(*texts: str, speaker: str | None = None, role: str = "user") -> list[Draft]:
    return [d for d in builtin_drafts(unit(*texts, speaker=speaker, role=role)) if d.memory_type not in DERIVED]


ENGLISH = (
    "I|my wife|don't|live in|Berlin|and|every Tuesday|last week|I'd|'s|allergic to|from|to|remind me|im|decided to"
)
CHINESE = "我|我女儿|不再|住在|柏林|，|。|吗？|每周三|上周|对花生过敏|从|换成|提醒我|决定|「|）"
MARKS = ', |. |? |"|```|\n|\0|😀|é|(|<jiyi-memory>\n|</jiyi-memory>'
SCRAPS = st.sampled_from(f"{ENGLISH}|{CHINESE}|{MARKS}".split("|"))


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(
        st.text(max_size=300), st.lists(SCRAPS, max_size=30).map(" ".join), st.lists(SCRAPS, max_size=30).map("".join)
    )
)
def test_any_text_is_read_without_fail_and_every_span_lies_in_its_message(text: str) -> None:
    given_unit = unit(text, "yes", speaker="Mei")
    drafts = builtin_drafts(given_unit)
    assert drafts == builtin_drafts(given_unit)
    for draft in drafts:
        assert draft.content.strip()
        assert 0.0 <= draft.importance <= 1.0
        assert 0.0 <= draft.confidence <= 1.0
        assert draft.evidence
        for place in draft.evidence:
            said = {message.id: message.text for message in given_unit.messages}[place.message_id]
            assert place.start is not None
            assert place.end is not None
            assert 0 <= place.start < place.end <= len(said)


# -- what people say ------------------------------------------------------------------------------------------------


def rows(table: str) -> list[list[str]]:
    return [[field.strip() for field in line.split("|")] for line in table.strip().splitlines()]


def lines(table: str) -> list[str]:
    return table.strip().splitlines()


@pytest.mark.parametrize("row", [*rows(extract_english.STATED), *rows(extract_chinese.STATED)], ids=lambda row: row[0])
def test_what_people_say_becomes_a_memory(row: list[str]) -> None:
    text, memory_type, attribute, value, content = row
    drafts = atoms(text)
    wanted_value = value.removesuffix(" ended")
    fitting = [
        draft
        for draft in drafts
        if memory_type in ("", draft.memory_type)
        and attribute in ("", draft.attribute)
        and wanted_value in ("", draft.value)
        and content in ("", draft.content)
        and (not value or draft.ended == value.endswith(" ended"))
    ]
    assert fitting, [(d.memory_type, d.attribute, d.value, d.ended, d.content) for d in drafts]
    [place] = fitting[0].evidence
    assert text[place.start : place.end]


@pytest.mark.parametrize("text", [*lines(extract_english.NOT_MEMORIES), *lines(extract_chinese.NOT_MEMORIES)])
def test_talk_is_no_memory(text: str) -> None:
    assert [(d.memory_type, d.content) for d in atoms(text)] == []


def test_a_no_that_tells_is_not_taken_for_an_answer() -> None:
    told = [draft.content for draft in atoms("and no more tutoring, the lab pays me for demonstrating instead")]
    assert not [content for content in told if "more tutoring" in content.lower() and "no more" not in content.lower()]
    assert [draft.value for draft in atoms("no, I live in Berlin")] == ["Berlin"]
