"""The answers so far, one line of JSON each, so that a run that was stopped goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from . import measures


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a store answered to a question, its own or another store's."""

    run: str
    store: str
    query: str
    top: float
    took_ms: float
    hits: tuple[tuple[tuple[str, ...], int], ...]  # of each memory, the best first: its messages and its tokens
    short: tuple[tuple[tuple[str, ...], int], ...]  # the same, as a context that has no room for all tells them
    degraded: tuple[str, ...]

    @property
    def ranking(self) -> list[str]:
        return measures.ranking(source_ids for source_ids, _ in self.hits)


class Journal:
    """Answers are looked up by run, store and question. A run's name stands for everything that an answer hangs on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known = {(kept.run, kept.store, kept.query): kept for kept in _lines(path)}

    def get(self, run: str, store: str, query: str) -> Answer | None:
        return self._known.get((run, store, query))

    def keep(self, answer: Answer) -> Answer:
        self._known[answer.run, answer.store, answer.query] = answer
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(answer), ensure_ascii=False) + "\n")
        return answer


def _lines(path: Path) -> Iterator[Answer]:
    """The lines that are whole. The last may not be, if the run was stopped while it was written."""
    if not path.exists():
        return
    whole = path.read_text(encoding="utf-8", errors="replace")
    if whole and not whole.endswith("\n"):  # the next line must not be glued to it
        with path.open("a", encoding="utf-8") as file:
            file.write("\n")
    for line in whole.splitlines():
        try:
            found = json.loads(line)
            hits, short = (
                tuple((tuple(source_ids), tokens) for source_ids, tokens in found[name]) for name in ("hits", "short")
            )
            yield Answer(**{**found, "hits": hits, "short": short, "degraded": tuple(found["degraded"])})
        except (ValueError, TypeError, KeyError):
            continue
