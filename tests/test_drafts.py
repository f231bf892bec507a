"""What is read from a few messages, whole: type, text, subject, attribute, value, source and time of each draft."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from jiyi.write.drafts import Draft, Said, Unit
from jiyi.write.extract import LONGEST, extract, statements
from support import each_case

TUESDAY = datetime(2025, 6, 10, 12, tzinfo=UTC)


def read(
    *texts: str, roles: tuple[str, ...] = (), speakers: tuple[str | None, ...] = (), apart: int = 1
) -> list[Draft]:
    messages = tuple(
        Said(
            id=f"m{at}",
            role=roles[at] if roles else "user",
            speaker=speakers[at] if speakers else None,
            text=text,
            sent_at=TUESDAY + at * timedelta(minutes=apart),
        )
        for at, text in enumerate(texts)
    )
    return list(extract(Unit(id="u", user_id="mei", messages=messages)))


def slot(draft: Draft) -> tuple[Any, ...]:
    flags = ("single" * draft.single, "ended" * draft.ended)
    whom = (draft.subject, f"of {draft.owner}") if draft.owner else (draft.subject,)
    return *whom, draft.attribute, draft.value, *filter(None, flags)


@each_case(
    ("text", "expected"),
    [
        (
            "I live in Berlin and I work at Acme as a nurse.",
            [
                ("I live in Berlin", ("user", "home", "Berlin", "single"), (0, 16)),
                ("I work at Acme as a nurse.", ("user", "employer", "Acme", "single"), (21, 47)),
            ],
        ),
        (
            "My dog is called Rex, and my sister's name is Lena.",
            [
                ("My dog is called Rex", ("user", None, None), (0, 20)),
                ("my sister's name is Lena.", ("sister", "of user", "name", "Lena", "single"), (26, 51)),
            ],
        ),
        ("I no longer work at Acme.", [("I no longer work at Acme.", ("user", "employer", "Acme", "ended"), (0, 25))]),
        (
            "我住在上海，在腾讯上班。",
            [
                ("我住在上海", ("user", "home", "上海", "single"), (0, 5)),
                ("在腾讯上班。", ("user", "employer", "腾讯", "single"), (6, 12)),
            ],
        ),
        (
            "我上个月搬到成都了。",
            [("我上个月搬到成都了。", ("user", "home", "成都", "single"), (0, 10))],
        ),
        (
            "I live in Oslo and work at Acme.",
            [
                ("I live in Oslo", ("user", "home", "Oslo", "single"), (0, 14)),
                ("work at Acme.", ("user", "employer", "Acme", "single"), (19, 32)),
            ],
        ),
        (
            "我住在北京，喜欢爬山。",
            [
                ("我住在北京", ("user", "home", "北京", "single"), (0, 5)),
                ("喜欢爬山。", ("user", None, None), (6, 11)),
            ],
        ),
        ("What is the capital of France?", []),
        ("Thanks, that's great!", []),
        ('Bob said: "I live in Oslo."', []),
    ],
)
def test_statements_are_read_with_their_slots_and_places(text: str, expected: list[Any]) -> None:
    found = [(one.content, slot(one), *((each.start, each.end) for each in one.evidence)) for one in read(text)]
    assert found == expected


@each_case(
    ("text", "memory_type", "kind", "days"),
    [
        ("I moved from Paris to Rome last month.", "fact", "change", 0),
        ("I have a dentist appointment next Friday at 3pm.", "task", "plan", 3),
        ("I go swimming every Tuesday.", "pattern", "fact", 0),
        ("The dentist appointment was moved to next Friday.", "event", "change", 2),
        ("I cancelled my gym membership.", "fact", "end", 0),
        ("I gave up my allotment yesterday.", "fact", "end", 0),
        ("牙医预约改到下周五了。", "event", "change", 9),
        ("Please answer in French from now on.", "preference", "instruction", 0),
        ("我每周二晚上跑步五公里。", "pattern", "fact", 0),
        ("请以后用中文回答我。", "preference", "instruction", 0),
        ("我不再喝咖啡了，改喝茶。", "preference", "preference", 0),
    ],
)
def test_a_statement_has_a_type_and_a_day(text: str, memory_type: str, kind: str, days: int) -> None:
    [one] = read(text)
    assert (one.memory_type, one.data["kind"], (one.occurred_at - TUESDAY).days) == (memory_type, kind, days)
    assert one.valid_from == TUESDAY and 0 < (one.confidence or 0) <= 1 and 0 < (one.importance or 0) <= 1


def test_long_sentences_are_cut_at_a_space_and_nothing_is_lost() -> None:
    words = "word" + " word" * 400
    for text in (words, "字" * 1500, "a" * 700 + " " + "b" * 700):
        found = statements(text, "user")
        assert [one.start for one in found] == [0, *(one.end for one in found[:-1])] and found[-1].end == len(text)
        assert all(one.end - one.start <= LONGEST for one in found)
    assert all(
        words[one.end - 1] == " " and one.end - one.start > LONGEST - 10 for one in statements(words, "user")[:-1]
    )


def test_a_name_that_contains_a_negation_is_a_value() -> None:
    assert slot(read("我住在不来梅。")[0]) == ("user", "home", "不来梅", "single")
    assert not [one for one in read("我不住在柏林。") if slot(one)[1:3] == ("home", "柏林") and one.single]


def test_somebody_who_moved_from_a_place_has_done_so() -> None:
    [one] = read("I moved from Ghent to Antwerp in April.")
    assert one.content == "I moved from Ghent to Antwerp in April."
    [one] = read("Our son Bram moved to Lyon in October.")  # said in June: last year's, or it would be next year's
    assert one.content == "Our son Bram moved to Lyon in October."
    [one] = read("My brother Lukas is getting married on February 22.")  # which is not over
    assert one.content == "My brother Lukas is getting married on February 22."
    [one] = read("The exam was moved from Monday to April.")
    assert one.occurred_at > TUESDAY


def test_a_move_names_what_it_replaces() -> None:
    [one] = read("I moved from Paris to Rome last month.")
    assert (one.value, one.replaces, one.content) == (
        "Rome",
        "Paris",
        "I moved from Paris to Rome last month.",
    )


@each_case(
    ("texts", "joined"),
    [
        (("The meeting room is 81.", "no wait, 82"), "The meeting room is 81. no wait, 82"),
        (("会议室是301。", "不对，是302。"), "会议室是301。 不对，是302。"),
    ],
)
def test_a_correction_is_read_together_with_what_it_corrects(texts: tuple[str, str], joined: str) -> None:
    first, second = read(*texts)
    assert (first.content, second.content, second.data["joined"]) == (texts[0], joined, True)
    assert [each.message_id for each in second.evidence] == ["m0", "m1"]
    assert read(*texts, apart=15)[1].data["joined"]
    for later in (16, 24 * 60):
        late = read(*texts, apart=later)
        assert not any(one.data.get("joined") for one in late), "later it is about something else"
    between = read(texts[0], "I see.", "Fine.", "Good.", texts[1], roles=("user", *["assistant"] * 3, "user"))
    assert not any(one.data.get("joined") for one in between), "too much was said since"
    others = read(*texts, speakers=("Ann", "Bob"))
    assert not any(one.data.get("joined") for one in others), "of another person"


def test_a_statement_that_leans_on_the_message_before_names_it() -> None:
    manager, home = read("My manager is Tom Baker.", "He lives in Leeds.")
    assert slot(manager) == ("user", "manager", "Tom Baker", "single") and "follows" not in manager.data
    assert (home.content, home.data["follows"], home.attribute) == ("He lives in Leeds.", "m0", None)


def test_assistants_and_tools_state_nothing_and_people_speak_for_themselves() -> None:
    assert read("I live in Berlin.", "I live in Oslo.", roles=("assistant", "tool")) == []
    [ann] = read("I live in Berlin.", speakers=("Ann",))
    assert slot(ann)[:3] == ("Ann", "home", "Berlin") and ann.data["speaker"] == "Ann"
