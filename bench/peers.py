"""`python -m bench.peers`: other memories on the texts of `bench.plain`, with Jiyi's built-in embedder in all of them.

Each statement is added by itself, each question that has an answer is asked, and the three first results are looked
at. No language model is asked: mem0 stores the statements as they are (`infer=False`). bm25s has no vectors: it shows
what words alone find. Each peer runs in a process of its own. One that is not installed is named and left out; mem0,
LangGraph and bm25s are among the packages of the tests, others can be in a folder of `pip install --target`, which
`--packages` names; only those use it that need it. LangGraph's SqliteStore needs a sqlite3 that loads extensions.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np

import jiyi.sync
from jiyi.embed import BuiltinEmbedder
from jiyi.settings import load_settings

from .plain import DATA

USER = "u"
TOP = 3


class Peer(Protocol):
    def add(self, text: str) -> None: ...

    def search(self, query: str) -> Sequence[str]: ...


@cache
def builtin() -> tuple[asyncio.Runner, BuiltinEmbedder]:
    return asyncio.Runner(), BuiltinEmbedder()


def embed(texts: Sequence[str]) -> list[list[float]]:
    runner, embedder = builtin()
    return [list(map(float, row)) for row in runner.run(embedder.embed_documents(list(texts)))]


class Jiyi:
    def __init__(self, folder: Path, at_end: ExitStack, *, read: bool) -> None:
        memory = jiyi.sync.Memory.open(folder / "memory.db", settings=load_settings(search={"reader": read}))
        self._memory = at_end.enter_context(memory)

    def add(self, text: str) -> None:
        self._memory.add([{"role": "user", "content": text}], user_id=USER)

    def search(self, query: str) -> Sequence[str]:
        return [hit.content for hit in self._memory.search(query, user_id=USER, limit=TOP)]


class Mem0:
    def __init__(self, folder: Path, _: ExitStack) -> None:
        os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder / "mem0")}
        from langchain_core.embeddings import Embeddings
        from mem0 import Memory

        class Builtin(Embeddings):
            def embed_documents(self, texts: list[str]) -> list[list[float]]:
                return embed(texts)

            def embed_query(self, text: str) -> list[float]:
                return embed([text])[0]

        place = {"path": str(folder / "qdrant"), "embedding_model_dims": len(embed(["x"])[0]), "on_disk": True}
        self._memory = Memory.from_config(
            {
                "embedder": {"provider": "langchain", "config": {"model": Builtin()}},
                "vector_store": {"provider": "qdrant", "config": place},
                "llm": {"provider": "openai", "config": {"api_key": "never asked"}},
                "history_db_path": str(folder / "history.db"),
            }
        )

    def add(self, text: str) -> None:
        self._memory.add(text, user_id=USER, infer=False)

    def search(self, query: str) -> Sequence[str]:
        found = self._memory.search(query, filters={"user_id": USER}, top_k=TOP, threshold=0.0)
        return [one["memory"] for one in found["results"]]


class LangGraph:
    def __init__(self, _: Path, __: ExitStack) -> None:
        from langgraph.store.memory import InMemoryStore

        index: Any = {"dims": len(embed(["x"])[0]), "embed": embed, "fields": ["text"]}
        self._store = InMemoryStore(index=index)
        self._count = 0

    def add(self, text: str) -> None:
        self._count += 1
        self._store.put((USER,), str(self._count), {"text": text})

    def search(self, query: str) -> Sequence[str]:
        return [item.value["text"] for item in self._store.search((USER,), query=query, limit=TOP)]


class LangGraphSqlite(LangGraph):
    def __init__(self, folder: Path, at_end: ExitStack) -> None:
        from langgraph.store.sqlite import SqliteStore  # type: ignore[import-not-found, unused-ignore]

        index: Any = {"dims": len(embed(["x"])[0]), "embed": embed, "fields": ["text"]}
        self._store = at_end.enter_context(SqliteStore.from_conn_string(str(folder / "store.db"), index=index))
        self._store.setup()
        self._count = 0


class Chroma:
    def __init__(self, folder: Path, _: ExitStack) -> None:
        import chromadb  # type: ignore[import-not-found, unused-ignore]

        client = chromadb.PersistentClient(str(folder), chromadb.Settings(anonymized_telemetry=False))
        space = {"hnsw:space": "cosine"}
        self._texts = client.create_collection("memories", embedding_function=None, metadata=space)

    def add(self, text: str) -> None:
        self._texts.add(ids=[str(self._texts.count())], embeddings=embed([text]), documents=[text])

    def search(self, query: str) -> Sequence[str]:
        found = self._texts.query(query_embeddings=embed([query]), n_results=min(TOP, self._texts.count()))
        return list(found["documents"][0])


class Txtai:
    def __init__(self, _: Path, at_end: ExitStack) -> None:
        import txtai  # type: ignore[import-not-found, unused-ignore]

        def transform(texts: Sequence[str]) -> Any:
            return np.array(embed(list(texts)), np.float32)

        self._index = txtai.Embeddings(method="external", transform=transform, content=True)
        at_end.callback(self._index.close)
        self._count = 0

    def add(self, text: str) -> None:
        self._count += 1
        self._index.upsert([(str(self._count), text, None)])

    def search(self, query: str) -> Sequence[str]:
        return [one["text"] for one in self._index.search(query, TOP)]


class Bm25s:
    """Words only, with the division into words of the library. Its index is built by the first search after an add."""

    def __init__(self, _: Path, __: ExitStack) -> None:
        import bm25s  # type: ignore[import-untyped]

        self._bm25s = bm25s
        self._texts: list[str] = []
        self._index: Any = None

    def add(self, text: str) -> None:
        self._texts.append(text)
        self._index = None

    def search(self, query: str) -> Sequence[str]:
        if self._index is None:
            self._index = self._bm25s.BM25(corpus=self._texts)
            self._index.index(self._bm25s.tokenize(self._texts, show_progress=False), show_progress=False)
        asked = self._bm25s.tokenize(query, show_progress=False)
        found, scores = self._index.retrieve(asked, k=min(TOP, len(self._texts)), show_progress=False)
        return [text for text, score in zip(found[0], scores[0], strict=True) if score > 0]


PEERS: dict[str, Callable[[Path, ExitStack], Peer]] = {
    "Jiyi": lambda folder, at_end: Jiyi(folder, at_end, read=True),
    "Jiyi without reader": lambda folder, at_end: Jiyi(folder, at_end, read=False),
    "mem0, without a model": Mem0,
    "LangGraph InMemoryStore": LangGraph,
    "LangGraph SqliteStore": LangGraphSqlite,
    "Chroma": Chroma,
    "txtai": Txtai,
    "bm25s, words only": Bm25s,
}


@dataclass(frozen=True, slots=True)
class Figures:
    """Shares of the questions, and medians of milliseconds of CPU."""

    asked: int
    first: float
    among: float
    add_ms: float
    search_ms: float


def measure(make: Callable[[Path, ExitStack], Peer]) -> Figures:
    first, among, asked = 0, 0, 0
    adds: list[float] = []
    searches: list[float] = []
    for person in tomllib.loads(DATA.read_text("utf-8"))["person"]:
        with tempfile.TemporaryDirectory() as folder, ExitStack() as at_end:
            peer = make(Path(folder), at_end)
            adds += [_timed(peer.add, text)[0] for text in person["said"]]
            for question, answer in person["asked"]:
                if not answer:
                    continue
                took, found = _timed(peer.search, question)
                searches.append(took)
                asked += 1
                first += any(answer in text for text in found[:1])
                among += any(answer in text for text in found)
    add, search = 1000 * statistics.median(adds), 1000 * statistics.median(searches)
    return Figures(asked, first / asked, among / asked, add, search)


def _timed(call: Callable[[str], Any], text: str) -> tuple[float, Any]:
    began = time.process_time()
    result = call(text)
    return time.process_time() - began, result


def in_own_process(name: str, packages: Sequence[Path]) -> Figures | str:
    """Return the figures of a peer, or why there are none."""
    path = os.pathsep.join([*map(str, packages), *filter(None, sys.path)])
    ran = subprocess.run(
        [sys.executable, "-m", "bench.peers", "--only", name],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        return (ran.stderr.strip().splitlines() or ["failed"])[-1]
    return Figures(**json.loads(ran.stdout.splitlines()[-1]))


def table(found: dict[str, Figures]) -> str:
    lines = [
        "| | right answer first | among the first three | CPU of an `add` | of a search |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {name} | {one.first:.0%} | {one.among:.0%} | {one.add_ms:.1f} ms | {one.search_ms:.1f} ms |"
        for name, one in found.items()
    ]
    return "\n".join(lines)


# -- the plot ---------------------------------------------------------------------------------------------------------

LEFT, WIDTH, ROW, HEAD = 190, 420, 34, 44
COLOURS = {"first": "#3569b0", "among": "#a9c3e6"}


def plot(found: dict[str, Figures]) -> str:
    """Return bars of the answers that were first and among the first three."""
    width, height = LEFT + WIDTH + 140, HEAD + ROW * len(found) + 12
    box = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} font-family="system-ui, sans-serif">',
        "<title>Plain questions answered by Jiyi and others with the same embedder</title>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        _text(LEFT, 24, "right answer first (dark), among the first three (light)"),
        _text(LEFT + WIDTH + 125, 24, "CPU of a search", end=True),
    ]
    for row, (name, one) in enumerate(found.items()):
        y = HEAD + ROW * row
        lines.append(_text(LEFT - 10, y + 17, name, end=True))
        for share, colour in ((one.among, COLOURS["among"]), (one.first, COLOURS["first"])):
            lines.append(f'<rect x="{LEFT}" y="{y}" width="{WIDTH * share:.1f}" height="24" fill="{colour}"/>')
        lines.append(_text(LEFT + WIDTH + 8, y + 17, f"{one.first:.0%}, {one.among:.0%}"))
        lines.append(_text(LEFT + WIDTH + 125, y + 17, f"{one.search_ms:.1f} ms", end=True))
    return "\n".join([*lines, "</svg>\n"])


def _text(x: float, y: float, text: str, *, end: bool = False) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{"end" if end else "start"}" fill="#222" font-size="12">{text}</text>'


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("--only", choices=PEERS, help="measure one, in this process, and print it as JSON")
    parser.add_argument("--packages", type=Path, action="append", default=[], help="folder with packages of peers")
    parser.add_argument("--svg", type=Path, help="write the plot there")
    given = parser.parse_args(arguments)
    if given.only:
        print(json.dumps(asdict(measure(PEERS[given.only]))))
        return 0
    found: dict[str, Figures] = {}
    for name in PEERS:
        one = in_own_process(name, ())
        if isinstance(one, str) and given.packages:
            one = in_own_process(name, given.packages)
        if isinstance(one, str):
            print(f"{name}: left out ({one})", file=sys.stderr)
        else:
            found[name] = one
            print(f"{name}: {one}", file=sys.stderr)
    print(table(found))
    if given.svg:
        given.svg.write_text(plot(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
