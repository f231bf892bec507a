"""Print the speed figures as tables, and convert them to JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .add import FACTOR as TALK_FACTOR
from .add import SHARE, AddTimes, Span
from .add import SLACK_S as SINGLE_SLACK_S
from .cache import LONGEST_S as CACHE_LONGEST_S
from .cache import SHARE as CACHE_SHARE
from .cache import CacheTimes
from .hostile_adds import GROWTH, LENGTHS, HostileAdds
from .hostile_adds import LONGEST_S as LONGEST_ADD_S
from .hostile_queries import FACTOR as HOSTILE_FACTOR
from .hostile_queries import HostileTimes
from .reading import STATEMENTS, ReadingTimes
from .search import ADD_GROWTH, AFTER_ADD, LOAD_S, SearchTimes
from .startup import Start


@dataclass(frozen=True, slots=True)
class Store:
    """The searched database file."""

    memories: int
    users: int
    size_bytes: int
    fill_s: float


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a table with the first column left-aligned and the others right-aligned."""
    widths = [max(len(row[at]) for row in (head, *rows)) for at in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        first, *others = zip(cells, widths, strict=True)
        return "  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)])

    return "\n".join([f"\n{title}", line(head), line(["-" * width for width in widths]), *map(line, rows)])


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.2f}"


def verdict(passes: bool) -> str:
    return "pass" if passes else "FAIL"


def print_searches(times: Sequence[SearchTimes], store: Store) -> None:
    others = store.memories - sum(each.size for each in times)
    print(table(
        f"Search, p50 in ms: one user of a store that holds {others:,} memories of others as well",
        ("memories", "embed", "scan", "bm25s", "floor", "engine", "p95", "ratio", "w/o embed", "CPU", "bound", ""),
        [
            (
                f"{each.size:,}",
                *(ms(each.floor_part(part)) for part in ("embed", "scan", "bm25")),
                ms(each.floor_p50),
                ms(each.p50),
                ms(each.p95),
                f"{each.p50 / each.floor_p50:.2f}",
                f"{each.without_embedding:.2f}",
                f"{each.cpu_ratio:.2f}",
                ms(each.bound),
                verdict(each.passes),
            )
            for each in times
        ],
    ))  # fmt: skip
    names = list(times[0].variants)
    print(table(
        "Other searches, p50 in ms",
        ("memories", "hybrid", *names),
        [(f"{each.size:,}", ms(each.p50), *(ms(each.variants[name]) for name in names)) for each in times],
    ))  # fmt: skip
    print(table(
        "A chat, in which each search follows an add of one statement, p50 in ms",
        ("memories", "add", "smallest user's", "bound", "search after it", "without adds", "bound", ""),
        [
            (f"{each.size:,}", ms(each.add), f"{each.add / times[0].add:.2f}", f"≤ {ADD_GROWTH}", ms(each.after_add),
             f"{each.after_add / each.p50:.2f}", f"≤ {AFTER_ADD}",
             verdict(each.add <= ADD_GROWTH * times[0].add and each.after_add <= AFTER_ADD * each.p50))
            for each in times
        ],
    ))  # fmt: skip
    print(table(
        "First searches of a fresh process whose embedder is loaded: one that loads the user, then one in Chinese",
        ("memories", "open ms", "ever ms", "first ms", "Chinese ms", "model ms", "model MB", "peak MB", "bound", ""),
        [
            (
                f"{each.size:,}",
                ms(each.cold["open_s"]),
                ms(each.first_ever_s),
                *(ms(each.cold[f"{name}_s"]) for name in ("first_search", "first_chinese", "load_model")),
                *(f"{each.cold[f'{name}_rss_mb']:.0f}" for name in ("model", "peak")),
                ms(LOAD_S),
                verdict(each.loads),
            )
            for each in times
        ],
    ))  # fmt: skip


def print_caching(times: CacheTimes) -> None:
    print(table(
        f"Repeated traffic: {times.searches:,} searches, {times.writes} writes by another process among them",
        ("", "seen", "bound", ""),
        [
            ("share answered from the cache", f"{times.share:.3f}", f"> {CACHE_SHARE}",
             verdict(times.share > CACHE_SHARE)),
            ("answers that differ from uncached ones", f"{times.wrong}", "0", verdict(not times.wrong)),
            ("answered from the cache, p50 ms", ms(times.p50("hits")), f"≤ {ms(CACHE_LONGEST_S)}",
             verdict(times.p50("hits") <= CACHE_LONGEST_S)),
            ("searched, then kept, p50 ms", ms(times.p50("misses")), "", ""),
            ("without any cache, p50 ms", ms(times.p50("without")), "", ""),
        ],
    ))  # fmt: skip


def print_hostile(times: HostileTimes) -> None:
    print(table(
        "Hostile queries and plain ones of the same length, p50 in ms",
        ("", "hostile", "plain", "ratio", "bound", ""),
        [
            (name, ms(times.hostile[name]), ms(times.plain[name]), f"{times.ratio(name):.2f}", f"≤ {HOSTILE_FACTOR}",
             verdict(times.ratio(name) <= HOSTILE_FACTOR))
            for name in times.hostile
        ] + [("100 kB, refused", ms(times.refused), "", "", "", "")],
    ))  # fmt: skip


def print_adds(adds: AddTimes) -> None:
    def rate(number: float, span: Span) -> tuple[str, str]:
        return f"{number / span.wall:.0f}", f"{number / span.cpu:.0f}"

    shares = f"{adds.share:.2f}", f"{adds.cpu_share:.2f}"
    print(table(
        f"Bulk add of {adds.memories:,} statements in one call, and the embedder alone before and after it",
        ("memories per second", "wall", "CPU", "bound", ""),
        [
            ("embedder, first half", *rate(adds.memories / 2, adds.embed_halves[0]), "", ""),
            ("add", *rate(adds.memories, adds.bulk), "", ""),
            ("embedder, second half", *rate(adds.memories / 2, adds.embed_halves[1]), "", ""),
            ("share that add reaches", *shares, f"≥ {SHARE}", verdict(adds.share >= SHARE)),
        ],
    ))  # fmt: skip
    print(table(
        "Small adds, each durable (fsync) when it returns; with built-in extraction",
        ("", "add ms", "embedding the same ms", "ratio", "bound", ""),
        [
            ("one statement", ms(adds.single), ms(adds.single_embed), f"{adds.single / adds.single_embed:.2f}",
             f"≤ embedding + {ms(SINGLE_SLACK_S)}", verdict(adds.single <= adds.single_embed + SINGLE_SLACK_S)),
            ("a conversation of 30 messages", ms(adds.conversation), ms(adds.conversation_embed),
             f"{adds.factor:.2f}", f"≤ {TALK_FACTOR}", verdict(adds.factor <= TALK_FACTOR)),
        ],
    ))  # fmt: skip


def print_hostile_adds(adds: HostileAdds) -> None:
    print(table(
        f"Hostile messages of {LENGTHS[0]:,} and {LENGTHS[1]:,} characters, CPU time of add in ms",
        ("", "shorter", "longer", "bound", "growth / linear", "bound", ""),
        [
            (name, ms(shorter), ms(longer), f"≤ {ms(LONGEST_ADD_S)}", f"{adds.growth(name):.2f}", f"≤ {GROWTH}",
             verdict(adds.kind_passes(name)))
            for name, (shorter, longer) in adds.times.items()
        ],
    ))  # fmt: skip


def print_footprint(store: Store, times: Sequence[SearchTimes], adds: AddTimes) -> None:
    print(table(
        "Space",
        ("", "", ""),
        [
            ("searched store: file", f"{store.size_bytes / 1e6:.0f} MB", f"{store.memories:,} memories"),
            ("searched store: per memory", f"{store.size_bytes / store.memories:.0f} B", ""),
            ("bulk store: per memory", f"{adds.bytes_per_memory:.0f} B", f"{adds.memories:,} memories"),
            ("peak RSS of the bulk add", f"{adds.peak_rss_mb:.0f} MB", "with the model"),
            ("peak RSS of searching", f"{max(each.cold['peak_rss_mb'] for each in times):.0f} MB",
             f"{max(each.size for each in times):,} memories, with the model"),
            ("filling the searched store", f"{store.fill_s:.0f} s", "without the model"),
        ],
    ))  # fmt: skip


def print_starts(starts: Sequence[Start]) -> None:
    print(table(
        "Start, median of CPU time in ms, beside importing SQLAlchemy, Pydantic and numpy",
        ("", "jiyi", "libraries", "ratio", "bound", ""),
        [
            (each.name, ms(each.seconds), ms(each.libraries), f"{each.ratio:.2f}", f"≤ {ms(each.most)}",
             verdict(each.passes))
            for each in starts
        ],
    ))  # fmt: skip


def print_reading(times: ReadingTimes) -> None:
    print(table(
        f"Reading {STATEMENTS} statements that were never read, median CPU time in ms on one core",
        ("English", "Chinese", "load", "RSS MB", "bound", ""),
        [
            (
                *(ms(each) for each in (times.en, times.zh, times.load)),
                f"{times.rss_mb:.0f}",
                f"≤ {times.most_ms:.0f}",
                verdict(times.passes),
            )
        ],
    ))  # fmt: skip


def as_json(
    times: Sequence[SearchTimes],
    adds: AddTimes,
    caching: CacheTimes,
    hostile: HostileTimes,
    long_adds: HostileAdds,
    starts: Sequence[Start],
    store: Store,
) -> dict[str, Any]:
    searches = [
        {
            **{name: value for name, value in asdict(each).items() if name not in ("floor", "engine", "engine_cpu")},
            "floor_parts": {part: each.floor_part(part) for part in ("embed", "scan", "bm25")},
            "floor_p50": each.floor_p50,
            "p50": each.p50,
            "p95": each.p95,
            "without_embedding": each.without_embedding,
            "cpu_ratio": each.cpu_ratio,
            "bound": each.bound,
            "passes": each.passes,
        }
        for each in times
    ]
    return {
        "store": asdict(store),
        "search": searches,
        "add": {**asdict(adds), "share": adds.share, "cpu_share": adds.cpu_share, "passes": adds.passes},
        "caching": {
            **{name: getattr(caching, name) for name in ("searches", "answered", "writes", "wrong", "share", "passes")},
            **{f"p50_{name}": caching.p50(name) for name in ("hits", "misses", "without")},
        },
        "hostile": {name: hostile.ratio(name) for name in hostile.hostile},
        "hostile_adds": {name: long_adds.growth(name) for name in long_adds.times},
        "start": [{**asdict(each), "ratio": each.ratio, "passes": each.passes} for each in starts],
    }
