"""Facts side by side: which ends which, who states them, and how a timeline tells it."""

from __future__ import annotations

from datetime import UTC, datetime

from jiyi.scope import Scope
from jiyi.store.write_set import NewMemory, Source
from jiyi.write.facts import Fact, Line, Timeline, fact_of, placed
from support import DAY, each_case

START = datetime(2024, 1, 1, tzinfo=UTC)


def fact(value: str | None, *flags: str, replaces: str | None = None) -> Fact:
    return Fact(slot="s", value=value, single="single" in flags, ended="ended" in flags, replaces=replaces)


@each_case(
    ("new", "old", "ends"),
    [
        (fact("oslo", "single"), fact("rome", "single"), True),
        (fact("oslo", "single"), fact("rome"), True),
        (fact("oslo"), fact("rome", "single"), True),
        (fact("oslo"), fact("rome"), False),  # one of many
        (fact("rome", "single"), fact("rome", "single"), False),
        (fact("rome", "single"), fact("rome in italy", "single"), False),  # the old one is more exact
        (fact("rome in italy", "single"), fact("rome", "single"), True),
        (fact("acme", "ended"), fact("acme"), True),
        (fact("acme", "ended"), fact("acme as a manager"), True),
        (fact("acme as a manager", "ended"), fact("acme"), False),
        (fact("acme", "ended"), fact("initech"), False),
        (fact("acme", "ended"), fact(None), False),
        (fact(None, "ended"), fact("acme"), True),
        (fact(None, "ended"), fact(None, "ended"), False),
        (fact("acme"), fact("acme", "ended"), True),  # again
        (fact("acme"), fact("initech", "ended"), False),
        (fact("acme", "single"), fact("initech", "ended"), True),
        (fact("acme", "ended"), fact("acme", "ended"), False),
        (fact("tea", replaces="coffee"), fact("coffee"), True),
        (fact("tea", replaces="coffee"), fact("milk"), False),
        (fact("tea", replaces="coffee"), fact(None), False),
    ],
)
def test_a_fact_ends_another(new: Fact, old: Fact, ends: bool) -> None:
    assert new.ends(old) is ends


@each_case(
    ("new", "old", "same", "refines"),
    [
        (fact("rome"), fact("rome"), True, False),
        (fact("rome"), fact("oslo"), False, False),
        (fact("rome"), fact(None), False, False),
        (fact(None), fact("rome"), False, False),
        (fact(None), fact(None), False, False),
        (fact("rome", "ended"), fact("rome"), False, False),
        (fact("rome in italy"), fact("rome"), False, True),
        (fact("rome in italy", "ended"), fact("rome"), False, False),
        (fact("rome"), fact("rome in italy"), False, False),
        (fact("rome", "single"), fact("rome in italy"), True, False),
        (fact("rome"), fact("rome in italy", "single"), True, False),
        (fact("flat 2", "single"), fact("flat 21", "single"), False, False),  # other numbers
        (fact("flat 2 in rome"), fact("flat 2"), False, True),
        (fact("meat"), fact("no meat", "single"), False, False),  # a negation
        (fact("上海浦东"), fact("上海"), False, True),
        (fact("new rome"), fact("rom"), False, False),  # whole words
        (fact("rome, italy"), fact("rome"), False, True),
    ],
)
def test_facts_say_the_same_or_more(new: Fact, old: Fact, same: bool, refines: bool) -> None:
    assert (new.says_the_same(old), new.refines(old)) == (same, refines)


PLACE = Scope(user_id="mei")


def slot(*, on: int = 0, trust: float = 1.0, agent: str | None = None, **data: str | bool | None) -> str:
    day = (START + on * DAY).date() if on else None
    place = Scope(user_id="mei", agent_id=agent)
    found = fact_of({"attribute": "home", **data}, place, user_names=["Mei Lin"], on=day, trust=trust)
    assert found is not None
    return found.slot


def test_each_teller_has_timelines_of_their_own() -> None:
    """The user's are apart from those of everybody else, whatever they call themselves and whoever they speak of."""
    of_user = [
        slot(),
        slot(subject="user"),
        slot(subject="mei", speaker="mei"),
        slot(subject="Mei Lin"),
        slot(subject="Mei", speaker="Mei", by_user=True),
    ]
    assert len(set(of_user)) == 1
    assert slot(subject="husband", owner="user") == slot(subject="husband", owner="Mei", speaker="Mei", by_user=True)
    assert slot(subject="husband", owner="user") == slot(subject="user: husband"), "as older versions wrote it"
    others = [
        slot(subject="Tom"),
        slot(subject="husband", owner="user"),
        slot(subject="Tom", speaker="Tom"),
        slot(subject="Tom", speaker="Ann"),
        slot(subject="Ann", speaker="Ann"),
        slot(subject="user", speaker="Ann"),
        slot(subject="husband", owner="Ann", speaker="Ann"),
        slot(subject="husband", speaker="Ann"),
        slot(subject="user", speaker="user"),
        slot(subject="Mei", speaker="Mei"),
        slot(subject="husband", owner="user", speaker="user"),
        slot(subject="user: husband", speaker="user: husband"),
        slot(subject="user", role="assistant"),
        slot(subject="user", speaker="assistant"),
    ]
    assert len({*of_user, *others}) == 1 + len(others)
    assert slot(subject="Ann", speaker="Ann") == slot(speaker="Ann")


def test_a_fact_needs_an_attribute_and_a_subject_that_is_a_name() -> None:
    assert fact_of({"value": "x"}, PLACE) is None and fact_of({"attribute": 5}, PLACE) is None
    assert fact_of({"attribute": "home", "subject": 5}, PLACE) is None
    read = fact_of({"attribute": "home", "value": "  New   York ", "single": 1, "replaces": 5}, PLACE)
    assert read is not None and (read.value, read.single, read.ended, read.replaces) == ("new york", True, False, None)
    codes = [fact_of({"attribute": "code", "value": value}, PLACE) for value in ("aBc1", "abc1")]
    assert codes[0] != codes[1], "in codes case counts"


def test_slots_differ_by_subject_attribute_day_place_and_trust() -> None:
    others = [slot(subject="Tom"), slot(attribute="work"), slot(on=1), slot(on=2), slot(trust=0.5), slot(agent="a")]
    assert len({slot(), *others}) == 7 and slot() == slot(subject="user", attribute="Home")


# -- timelines --------------------------------------------------------------------------------------------------------


def line(value: str, day: int, *flags: str, told: tuple[int, ...] = ()) -> Line:
    sources = [(START + at * DAY, Source(message_id=f"m{at}", start=None, end=None)) for at in told or (day,)]
    made = Line(
        id=f"{value}@{day}", fact=fact(value, *flags), valid_from=START + day * DAY, valid_to=None, told=sources
    )
    made.memory = memory_of(made.id)
    return made


def memory_of(memory_id: str) -> NewMemory:
    return NewMemory(
        id=memory_id, memory_key=memory_id, memory_type="fact", layer="semantic", content=memory_id, summary=None,
        data={}, metadata={}, importance=0.5, confidence=1.0, trust=1.0, tags=(), dedupe_hash=f"hash {memory_id}",
        occurred_at=START, valid_from=START, expires_at=None, source="extracted", sources=(),
    )  # fmt: skip


def told(timeline: Timeline) -> list[tuple[str | None, int, int | None]]:
    """Value, first and last day of each line."""
    days = [
        (one.fact.value, (one.valid_from - START).days, None if one.valid_to is None else (one.valid_to - START).days)
        for one in timeline.lines
    ]
    return sorted(days, key=lambda one: one[1])


def tell(
    timeline: Timeline, new: Line, *, at: int | None = None, stated: bool = False, stays: bool = True
) -> Line | None:
    moment = new.valid_from if at is None else START + at * DAY
    return timeline.place(new, moment, stays=stays, stated=stated)


def related(timeline: Timeline) -> list[tuple[str, str, str]]:
    return [(one.relation_type, one.memory_id, one.target_id) for one in timeline.relations.values()]


def test_a_change_ends_what_held_until_then() -> None:
    line_, rome, oslo = Timeline(), line("rome", 1, "single"), line("oslo", 5, "single")
    assert tell(line_, rome) is None and tell(line_, oslo) is None
    assert told(line_) == [("rome", 1, 5), ("oslo", 5, None)] and rome.superseded_by == oslo.id
    assert related(line_) == [("contradicts", oslo.id, rome.id)]
    assert rome.reasons == ["a newer memory says it has changed"] and oslo.reasons == []


def test_a_fact_that_comes_late_ends_where_a_later_one_begins() -> None:
    line_, rome, oslo = Timeline(), line("rome", 1, "single"), line("oslo", 5, "single")
    tell(line_, oslo)
    tell(line_, rome)
    assert told(line_) == [("rome", 1, 5), ("oslo", 5, None)]
    assert related(line_) == [("contradicts", oslo.id, rome.id)]
    assert rome.reasons == ["something later was known already"]


def test_what_is_said_again_is_one_line_that_begins_earlier_or_stays() -> None:
    line_, first, again, earlier = Timeline(), line("rome", 5), line("rome", 8), line("rome", 2)
    tell(line_, first)
    assert tell(line_, again) is first and len(first.told) == 2 and first.reasons == ["it was said again"]
    assert tell(line_, earlier) is first and told(line_) == [("rome", 2, None)]
    assert first.reasons[-1] == "it held earlier already" and len(first.told) == 3 and not line_.relations


def test_what_a_person_states_is_a_memory_of_its_own() -> None:
    line_, first, again = Timeline(), line("rome", 5), line("rome", 8)
    tell(line_, first)
    assert tell(line_, again, stated=True) is None
    assert len(line_.lines) == 2 and related(line_) == [("supports", again.id, first.id)]


def test_a_line_that_does_not_stay_ends_others_all_the_same() -> None:
    line_, rome, over = Timeline(), line("rome", 1), line("rome", 4, "ended")
    tell(line_, rome)
    tell(line_, over, stays=False)
    assert told(line_) == [("rome", 1, 4)] and rome.reasons == ["a newer memory says it is over"]


def test_a_more_exact_value_refines() -> None:
    line_, rome, exact = Timeline(), line("rome", 1, "single"), line("rome in italy", 4, "single")
    tell(line_, rome)
    tell(line_, exact)
    assert told(line_) == [("rome", 1, 4), ("rome in italy", 4, None)]
    assert related(line_) == [("refines", exact.id, rome.id)]
    assert rome.reasons == ["a newer memory says it more exactly"]


def test_a_fact_in_between_splits_what_was_told_before_and_after_it() -> None:
    line_, rome = Timeline(), line("rome", 1, "single", told=(1, 9))
    tell(line_, rome)
    oslo = line("oslo", 5, "single")
    tell(line_, oslo)
    assert told(line_) == [("rome", 1, 5), ("oslo", 5, 9), ("rome", 9, None)]
    [first] = [one for one in line_.lines if one.fact.value == "rome" and one is not rome]
    assert first.superseded_by == oslo.id and oslo.superseded_by == rome.id
    assert related(line_) == [("contradicts", oslo.id, first.id)]
    assert [source.message_id for source in first.memory.sources] == ["m1"]  # type: ignore[union-attr]


def test_an_end_is_moved_earlier_only() -> None:
    rome = line("rome", 1)
    for day, last in ((5, 5), (7, 5), (5, 5), (3, 3)):
        rome.end(START + day * DAY, f"by {day}", f"ended on day {day}")
        assert rome.valid_to == START + last * DAY
    assert rome.superseded_by == "by 3" and rome.reasons == ["ended on day 5", "ended on day 3"]
    assert [rome.holds_at(START + day * DAY) for day in (0, 1, 2, 3)] == [False, True, True, False]


def test_a_placed_memory_tells_its_validity_and_reasons() -> None:
    rome = line("rome", 1, told=(1, 2, 1))
    assert rome.memory is not None
    open_ = placed(rome, rome.memory)
    assert (open_.dedupe_hash, open_.valid_to, open_.reason) == ("hash rome@1", None, None)
    assert [source.message_id for source in open_.sources] == ["m1", "m2"]
    rome.end(START + 4 * DAY, "oslo", "it changed")
    rome.reasons.append("it changed")
    ended = placed(rome, rome.memory)
    assert ended.dedupe_hash != "hash rome@1" and (ended.reason, ended.superseded_by) == ("it changed", "oslo")
