"""Ask the questions of one set in a store that also holds the messages of others, beside a simple hybrid search.

    python -m bench.one_store longmemeval-dev.json.gz --with locomo-dev.json.gz … [--orders 3]

Sets have the shape of docs/internals/evaluation.md. `--orders N` first adds the sessions of the set to N empty stores
in random orders and counts the errors.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jiyi import Memory
from jiyi.embed import BuiltinEmbedder
from jiyi.languages.terms import tokens

from .reader.stories import bm25, scaled
from .relevance.data import _message, _time, read

USER = "u"


def sessions_of(path: Path) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return the sessions of all stores of a set, as (name, messages)."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for store in read(path)["stores"]:
        for one in store["messages"]:
            speaker = str(one["speaker"]) if one["speaker"] and one["role"] == "user" else None
            message = _message(one["role"], one["text"], _time(one["sent_at"]), speaker)
            found[f"{path.name}/{store['id']}/{one['session']}"].append(message | {"id": _id(path, store, one["id"])})
    return list(found.items())


def _id(path: Path, store: Any, message: str) -> str:
    return f"{path.name}/{store['id']}/{message}"


async def add(memory: Memory, sessions: Sequence[tuple[str, list[dict[str, Any]]]]) -> Counter[str]:
    """Add sessions; return the errors."""
    errors: Counter[str] = Counter()
    for name, messages in sessions:
        try:
            await memory.add(messages, user_id=USER, session_id=name)
        except Exception as error:  # noqa: BLE001 (all are counted)
            errors[f"{type(error).__name__}: {error}"[:80]] += 1
    return errors


async def in_orders(path: Path, orders: int) -> None:
    sessions = sessions_of(path)
    for seed in range(orders):
        random.Random(seed).shuffle(sessions)
        with tempfile.TemporaryDirectory() as folder:
            async with Memory.open(Path(folder) / "memory.db") as memory:
                errors = await add(memory, sessions)
                kept = await memory.count(user_id=USER, memory_types=["message"])
        print(f"order {seed}: {len(sessions)} sessions, {kept} messages, errors {dict(errors)}", flush=True)


def figures(ranked: Sequence[Sequence[Any]], gold: Sequence[set[Any]]) -> str:
    recall = np.mean([len(set(found[:10]) & wanted) / len(wanted) for found, wanted in zip(ranked, gold, strict=True)])
    hit = np.mean([bool(set(found[:3]) & wanted) for found, wanted in zip(ranked, gold, strict=True)])
    return f"R@10 {100 * recall:.1f} hit@3 {100 * hit:.1f}"


async def together(path: Path, others: Sequence[Path]) -> None:
    own = sessions_of(path)
    latest = max(one["sent_at"] for _, said in own for one in said)
    sessions = [*own, *(one for other in others for one in sessions_of(other))]
    messages = [one for _, said in sessions for one in said]
    asked = [(store, query) for store in read(path)["stores"] for query in store["queries"]]
    queries = [query for _, query in asked]
    gold = [{_id(path, store, one) for one in query["gold"]} for store, query in asked]
    with tempfile.TemporaryDirectory() as folder:
        async with Memory.open(Path(folder) / "memory.db") as memory:
            errors = await add(memory, sessions)
            print(f"{len(messages)} messages, errors {dict(errors)}", flush=True)
            ranked = []
            for query in queries:
                asked_at = _time(query["asked_at"]) if query.get("asked_at") else latest
                found = await memory.search(query["text"], user_id=USER, limit=10, asked_at=asked_at)
                ranked.append([source for hit in found.hits for source in hit.source_ids])
    print(f"jiyi: {figures(ranked, gold)}", flush=True)
    texts = [one["content"] for one in messages]
    embedder = BuiltinEmbedder()
    vectors = np.concatenate(
        [np.asarray(await embedder.embed_documents(texts[at : at + 500])) for at in range(0, len(texts), 500)]
    )
    counts, plain = [Counter(tokens(text)) for text in texts], []
    for query in queries:
        meaning = vectors @ np.asarray(await embedder.embed_query(query["text"]))
        total = scaled(bm25(tokens(query["text"]), counts)) + scaled(meaning)
        best = np.argsort(-total)[:10]
        plain.append([messages[at]["id"] for at in best])
    print(f"simple hybrid: {figures(plain, gold)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.one_store", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--with", type=Path, nargs="*", default=[], dest="others")
    parser.add_argument("--orders", type=int, default=0)
    options = parser.parse_args()
    if options.orders:
        asyncio.run(in_orders(options.file, options.orders))
    asyncio.run(together(options.file, options.others))


if __name__ == "__main__":
    main()
