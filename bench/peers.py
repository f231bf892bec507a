"""`python -m bench.peers`: other memories on the texts of `bench.plain`, with Jiyi's built-in embedder in all of them.

Each statement is added by itself, each question that has an answer is asked, and the three first results are looked
at. No language model is asked: mem0 stores the statements as they are (`infer=False`). A peer that is not installed is
named and left out; mem0 and LangGraph are among the packages of the tests.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
import tomllib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any, Protocol

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
    def __init__(self, folder: Path, at_end: ExitStack, *, rerank: bool) -> None:
        memory = jiyi.sync.Memory.open(folder / "memory.db", settings=load_settings(search={"rerank": rerank}))
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


PEERS: dict[str, Callable[[Path, ExitStack], Peer]] = {
    "Jiyi": lambda folder, at_end: Jiyi(folder, at_end, rerank=True),
    "Jiyi without reranker": lambda folder, at_end: Jiyi(folder, at_end, rerank=False),
    "mem0, without a model": Mem0,
    "LangGraph InMemoryStore (LangMem searches it)": LangGraph,
}


def measure(make: Callable[[Path, ExitStack], Peer]) -> str:
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
    times = f"add {statistics.median(adds) * 1000:.1f} ms, search {statistics.median(searches) * 1000:.1f} ms"
    return f"hit@1 {first / asked:.0%}, hit@3 {among / asked:.0%} of {asked}; {times}"


def _timed(call: Callable[[str], Any], text: str) -> tuple[float, Any]:
    began = time.perf_counter()
    result = call(text)
    return time.perf_counter() - began, result


def main(arguments: Sequence[str] | None = None) -> None:
    argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__).parse_args(arguments)
    for name, make in PEERS.items():
        try:
            print(f"{name}: {measure(make)}", flush=True)
        except ImportError as error:
            print(f"{name}: not installed ({error})")


if __name__ == "__main__":
    main()
