"""Generate short statements and questions, half Chinese and half English, with realistic word frequencies."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate

from jiyi import CandidateMemory

from . import vocabulary

NEWEST = datetime(2026, 1, 1, tzinfo=UTC)
DAYS = 730

EN_STATEMENTS = (
    "{person} {doing} a {kind} {thing} in {place} and paid {number} euros for it",
    "{person} {doing} the {kind} {thing} from {brand} because of the {thing2}",
    "In {place}, {person} {doing} the {thing} with {person2}, reference {code}",
    "The {kind} {thing} of {brand} runs {identifier} {version} since {month}",
    "My {thing} is a {brand} {version}; {person} {doing} one with a {kind} {thing2}",
    "{person} works on {identifier} at {brand}, next to the {thing} team in {place}",
    "Remember: the {thing} is on the {number}th, {person} brings a {kind} {thing2}",
    "{identifier} fails with error {number} when the {thing} is {kind}, see {code}",
)
ZH_STATEMENTS = (
    "{person}在{place}{doing}{kind}{thing}，花了{number}元，还顺便看了{thing2}",
    "{person}{doing}{brand}的{kind}{thing}，主要是因为{thing2}的缘故，编号是 {code}",
    "上个月{person}和{person2}在{place}{doing}{thing}，单号 {code}，大家都觉得不错",
    "{brand}的{thing}从{number}号开始使用 {identifier} {version}，由{person}负责{thing2}",
    "我的{thing}是{brand}的 {version}，{person}{doing}一个{kind}{thing2}，放在{place}",
    "{person}在{brand}负责 {identifier}，和{place}的{thing}团队一起处理{thing2}",
    "提醒：{number}号有{kind}{thing}，{person}会带上{thing2}，地点在{place}的老地方",
    "{identifier} 在{thing}{doing}之后报错 {number}，{person}说和{kind}{thing2}有关",
)
EN_QUESTIONS = (
    "what {kind} {thing} does {person} have?",
    "{person} {thing}",
    "who {doing} the {thing} in {place}?",
    "which version of {identifier} does {brand} use",
    "{brand} {thing} {version}",
    "tell me about the {thing} and the {thing2}",
    "when is {person} in {place}",
    "error {number} {identifier}",
)
ZH_QUESTIONS = (
    "{person}的{thing}是什么样的？",
    "{person} {thing}",
    "谁在{place}{doing}{thing}？",
    "{brand}用哪个版本的 {identifier}",
    "{brand} {thing} {version}",
    "说说{thing}和{thing2}",
    "{person}什么时候去{place}",
    "{thing}报错 {number} {identifier}",
)
MONTHS = ("January", "February", "March", "May", "June", "July", "September", "October", "November")


def statements(seed: str, number: int) -> Iterator[str]:
    """Yield distinct statements."""
    return _different(seed, number, (EN_STATEMENTS, ZH_STATEMENTS))


def questions(seed: str, number: int) -> list[str]:
    return list(_different(seed, number, (EN_QUESTIONS, ZH_QUESTIONS)))


def candidates(seed: str, number: int) -> Iterator[CandidateMemory]:
    """Yield statements with a type, a time in the last two years and, for one in three, a tag."""
    rng = random.Random(seed)
    for text in statements(seed, number):
        yield CandidateMemory(
            content=text,
            memory_type=rng.choice(vocabulary.TYPES),
            tags=(rng.choice(vocabulary.TAGS),) if rng.random() < 1 / 3 else (),
            occurred_at=NEWEST - timedelta(days=rng.uniform(0, DAYS)),
        )


def _different(seed: str, number: int, patterns: tuple[Sequence[str], Sequence[str]]) -> Iterator[str]:
    rng = random.Random(seed)
    drawers = tuple(_drawer(rng, chinese) for chinese in (False, True))
    seen: set[str] = set()
    while len(seen) < number:
        chinese = len(seen) % 2
        text = rng.choice(patterns[chinese]).format_map(drawers[chinese]())
        if text not in seen:
            seen.add(text)
            yield text


def _drawer(rng: random.Random, chinese: bool) -> Callable[[], dict[str, str]]:
    """Return a function that fills a pattern."""
    language = "ZH" if chinese else "EN"
    draw = {
        name: _zipf(rng, getattr(vocabulary, f"{language}_{name}")) for name in ("PEOPLE", "PLACES", "THINGS", "DOING")
    }
    kind, brand = (_zipf(rng, getattr(vocabulary, f"{language}_{name}")) for name in ("KIND", "BRANDS"))
    part = _zipf(rng, vocabulary.ID_PARTS)

    def fill() -> dict[str, str]:
        return {
            "person": draw["PEOPLE"](),
            "person2": draw["PEOPLE"](),
            "place": draw["PLACES"](),
            "thing": draw["THINGS"](),
            "thing2": draw["THINGS"](),
            "doing": draw["DOING"](),
            "kind": kind(),
            "brand": brand(),
            "identifier": f"{part()}_{part()}" if rng.random() < 0.7 else f"{part()}{part().title()}",
            "version": f"v{rng.randrange(6)}.{rng.randrange(20)}",
            "code": f"{rng.choice('ABCDEF')}{rng.choice('KLMNPQ')}-{rng.randrange(10_000, 99_999)}",
            "number": str(rng.randrange(2, 2_000)),
            "month": rng.choice(MONTHS),
        }

    return fill


def _zipf(rng: random.Random, choices: Sequence[str]) -> Callable[[], str]:
    """Draw the r-th word in proportion to 1 / (r + 10) (Zipf–Mandelbrot)."""
    shuffled = random.Random(len(choices)).sample(choices, len(choices))  # the same order in texts and questions
    weights = list(accumulate(1 / (rank + 10) for rank in range(len(shuffled))))
    return lambda: rng.choices(shuffled, cum_weights=weights)[0]
