"""Where the time of a search goes: functions of the engine are timed from outside, while a block lasts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from inspect import iscoroutinefunction
from statistics import median
from time import perf_counter
from typing import Any

# Where a stage is called from, by module and name. Those with a dot in the label lie inside the one before it.
STAGES: dict[str, tuple[str, str]] = {
    "interpret": ("jiyi.memory", "interpret"),
    "embed": ("jiyi.read.search", "embed_query"),
    "gather": ("jiyi.index.ram", "HotUsers.gather"),
    "gather.catch-up": ("jiyi.index.ram", "HotUsers._current"),
    "gather.scan": ("jiyi.index.user_index", "UserIndex.gather"),
    "gather.scan.scope": ("jiyi.index.user_index", "UserIndex._in_scope"),
    "gather.scan.keyword": ("jiyi.index.user_index", "UserIndex._keyword_match"),
    "gather.scan.bm25": ("jiyi.index.user_index", "UserIndex._bm25"),
    "gather.scan.episode": ("jiyi.index.user_index", "UserIndex._episode_bm25"),
    "gather.scan.coverage": ("jiyi.index.user_index", "UserIndex._coverage"),
    "gather.scan.cosine": ("jiyi.index.user_index", "UserIndex._cosine"),
    "score": ("jiyi.read.search", "score"),
    "rank": ("jiyi.read.search", "best"),
    "relevance": ("jiyi.read.search", "relevance"),
    "fetch": ("jiyi.store.base", "Store.get"),
    "assemble": ("jiyi.read.search", "hit"),
}


class Stopwatch:
    """Seconds by stage, one sum for each lap."""

    def __init__(self) -> None:
        self.missing: list[str] = []  # stages that the engine no longer has
        self._now: defaultdict[str, float] = defaultdict(float)
        self._laps: list[dict[str, float]] = []

    def lap(self, whole: float) -> None:
        """Close one search that took so long as a whole."""
        outer = sum(seconds for stage, seconds in self._now.items() if "." not in stage)
        self._laps.append({**self._now, "other": whole - outer, "all": whole})
        self._now.clear()

    def medians(self) -> dict[str, float]:
        stages = [stage for stage in STAGES if stage not in self.missing]
        return {stage: median(lap.get(stage, 0.0) for lap in self._laps) for stage in (*stages, "other", "all")}

    def timed(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        if iscoroutinefunction(function):

            @wraps(function)
            async def timed_async(*args: Any, **kwargs: Any) -> Any:
                start = perf_counter()
                try:
                    return await function(*args, **kwargs)
                finally:
                    self._now[stage] += perf_counter() - start

            return timed_async

        @wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            start = perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self._now[stage] += perf_counter() - start

        return timed


@contextmanager
def stopwatch() -> Iterator[Stopwatch]:
    watch = Stopwatch()
    undo: list[tuple[Any, str, Any]] = []
    for stage, (module, path) in STAGES.items():
        *outer, name = path.split(".")
        try:
            home: Any = import_module(module)
            for part in outer:
                home = getattr(home, part)
            function = getattr(home, name)
        except (ImportError, AttributeError):
            watch.missing.append(stage)
            continue
        undo.append((home, name, function))
        setattr(home, name, watch.timed(stage, function))
    try:
        yield watch
    finally:
        for home, name, function in undo:
            setattr(home, name, function)
