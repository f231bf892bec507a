"""Memories of a small model that copy words without what was meant by them: refused with the reason."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from jiyi.write.drafts import Said, Unit
from jiyi.write.llm.dates import correct_dates, said_times
from jiyi.write.llm.extract import Checker, Rejected
from jiyi.write.llm.transcript import transcript

AT = datetime(2025, 5, 6, 8, 50, tzinfo=UTC)  # a Tuesday


def unit(*lines: str) -> Unit:
    """Return a conversation of lines "speaker: text"."""
    said = []
    for at, line in enumerate(lines):
        name, _, text = line.partition(": ")
        assistant = name in ("Assistant", "助手")
        role, speaker = ("assistant", None) if assistant else ("user", name)
        sent_at = AT + timedelta(minutes=at)
        said.append(Said(id=f"m{at + 1}", role=role, speaker=speaker, text=text, sent_at=sent_at))
    return Unit(id="u", user_id="u", messages=tuple(said))


def checked(talk: Unit, text: str, quote: str, *, number: int = 1) -> tuple[list[str], list[Rejected]]:
    shown = transcript(talk)
    assert shown is not None
    proposal = {"messages": [number], "quote": quote, "type": "event", "text": text}
    drafts, rejected = Checker(shown, (), {"extractor": "llm"}).memories([proposal])
    return [draft.content for draft in drafts], rejected


STORY = unit(
    "周建国: 我是老周，儿子给我装的这个",
    "周建国: 我跟老李吹牛说年轻时候差点进国家跳水队，他还真信了哈哈哈哈",
    "周建国: 嘉嘉期中考了，数学98，语文92，哦不对，语文95，英语才是92",
    "助手: 好的，我说短些。",
    "周建国: 对头对头，定的华西",
)


@pytest.mark.parametrize(
    ("number", "quote", "text", "reason"),
    [
        (1, "我是老周，儿子给我装的这个", "老周是周建国的儿子，儿子给他装的这个。", "a relation that was not said"),
        (5, "定的华西", "华西是周建国的华西。", "a relation that was not said"),
        (2, STORY.messages[1].text, "周建国说他年轻时候差点进国家跳水队，他还真信了哈哈哈哈。", "not meant seriously"),
        (3, STORY.messages[2].text, "周建国：嘉嘉期中考了，数学98，语文92，哦不对。", "corrected by the speaker"),
        (3, "数学98，语文92", "嘉嘉期中考了，数学98，语文92。", "corrected by the speaker"),
        (4, "我说短些", "周建国说助手说短些。", "attributed to another speaker"),
        (5, "对头对头", "助手说对头对头。", "attributed to another speaker"),
        (4, "好的", "助手说好的。", "small talk"),
    ],
)
def test_words_without_their_meaning_are_refused(number: int, quote: str, text: str, reason: str) -> None:
    kept, [rejected] = checked(STORY, text, quote, number=number)
    assert (kept, rejected.reason.partition(":")[0]) == ([], reason)


@pytest.mark.parametrize(
    ("number", "quote", "text"),
    [
        (2, STORY.messages[1].text, "周建国跟老李吹牛说年轻时候差点进国家跳水队。"),
        (3, STORY.messages[2].text, "嘉嘉期中考了，数学98，语文95，英语92。"),
        (5, "定的华西", "周建国说定的华西。"),
    ],
)
def test_the_same_words_are_kept_with_it(number: int, quote: str, text: str) -> None:
    assert checked(STORY, text, quote, number=number) == ([text], [])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("老伴手术往后推了，推到5月20。", "老伴手术往后推了，推到5月20（2025年）。"),
        ("The operation was pushed to May 20.", "The operation was pushed to May 20 (2025)."),
        ("The concert is on May 20.", "The concert is on May 20 (2025)."),
        ("Mei graduated on May 20.", "Mei graduated on May 20 (2024)."),
        ("The operation was pushed to April 20.", "The operation was pushed to April 20 (2025)."),
    ],
)
def test_a_date_without_a_year_is_the_one_that_the_clause_means(text: str, expected: str) -> None:
    language = "zh" if "老" in text else "en"
    assert correct_dates(text, AT, language, ahead=False, supported=lambda _: True) == expected


@pytest.mark.parametrize(
    ("text", "years"),
    [
        ("手术推到5月20", [2025]),
        ("we move on May 20", [2025]),
        ("I saw the dentist on April 20", [2025]),
        ("we married on May 20", [2024, 2025]),
        ("our wedding is on April 20", [2025, 2026]),
    ],
)
def test_a_message_supports_only_years_that_it_can_mean(text: str, years: list[int]) -> None:
    assert [span.start.year for span in said_times(text, AT)] == years


def test_a_joke_can_be_taken_back_in_the_next_message() -> None:
    talk = unit("Ann: I bought a yacht.", "Ann: just kidding", "Ben: I bought a boat.", "Ann: just kidding")
    assert checked(talk, "Ann bought a yacht.", "I bought a yacht")[0] == []
    assert checked(talk, "Ben bought a boat.", "I bought a boat", number=3)[0] == ["Ben bought a boat."]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("周建国说里面有字体大小，往右拖就行。", False),
        ("周建国说手机字太小了，助手说里面有字体大小，往右拖就行。", True),
        ("助手说手机字太小了怎么弄大。", False),
    ],
)
def test_an_episode_attributes_words_to_their_speaker(text: str, kept: bool) -> None:
    talk = transcript(unit("周建国: 手机字太小了怎么弄大", "助手: 打开设置，里面有字体大小，往右拖就行。"))
    assert talk is not None
    episode = {"participant": "周建国", "title": "手机字太小", "content": text, "messages": [1, 2]}
    drafts, rejected = Checker(talk, (), {"extractor": "llm"}).episodes([episode])
    assert [bool(drafts), bool(rejected)] == [kept, not kept]


def test_a_placeholder_of_the_model_is_cut_out() -> None:
    talk = unit("Ann: I play the cello.")
    assert checked(talk, "Ann plays the cello (unknown).", "I play the cello") == (["Ann plays the cello."], [])
