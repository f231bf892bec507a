"""Fit the weights of the score (`jiyi/read/score.json`) on stories and records that training left out.

    python -m bench.reader.fit [--reader DIR] [--rows FILE] [--write]
    python -m bench.reader.fit --across [--write]

Fills a store per story, asks its questions through the public API, and takes the inputs of each hit's score from its
explanation. Without `--reader` only the weights of statements that were not read are fitted. Prints for each model how
well it tells answers from other hits, and of the hits with a score of 0.6 to 0.7, 0.7 to 0.8 … how many answer.

Stories hold few questions in another language than the statement. Nothing reads such pairs, so `--across` moves their
scores alone, with records of their own (`across.jsonl.gz`)."""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import re
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import jiyi.read.score
from jiyi import Memory
from jiyi.languages.words import language
from jiyi.read.score import ACROSS, INPUTS
from jiyi.reader import Reader
from jiyi.reader.onnx_reader import OnnxReader
from jiyi.settings import load_settings

from .held_out import BLOCK, auc, read_json, records

TRAINING = Path(__file__).parents[1] / "data"
WEIGHTS = Path(jiyi.read.score.__file__).with_name("score.json")
LIMIT = 20  # hits of a question
RIDGE = 1.0
COST = 3.0  # of an answer that is missed, against a hit that does not answer: it moves the line of 0.6
STEPS = 50
KEPT_ACROSS = 0.85  # share of near misses in another language that stay below the line of 0.6
LINE = float(np.log(0.6 / 0.4))
OTHER = "other language"
Floats = NDArray[np.float64]
# Of searches without a reader, and by words alone.
LEFT_OUT = {"unread": ("reader",), "words": ("reader", "similarity", ACROSS)}
LINES = (0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.01)


def held_out_stories() -> list[Any]:
    """Return every eighth story, in the order in which `prepare` reads them."""
    paths = [*sorted(TRAINING.glob("everyday-*.json.gz")), TRAINING / "reader" / "messy.json.gz"]
    return [story for path in paths for story in read_json(path)["stories"]][::8]


def held_out_records() -> list[list[Any]]:
    """Return every eighth block of records with questions and near misses."""
    found = records(TRAINING / "reader" / "answers.jsonl.gz")
    blocks = []
    for name in sorted({record["lang"] for record in found}):
        some = [record for record in found if record["lang"] == name]
        blocks += [some[at : at + BLOCK] for at in range(0, len(some), BLOCK)]
    return blocks[::8]


async def add_story(memory: Memory, story: Any) -> dict[tuple[int, int], str]:
    """Store the messages of a story and return their ids by the numbers of session and message."""
    user, ids = story["id"], {}
    for number, session in enumerate(story["sessions"]):
        at = datetime.fromisoformat(session["at"])
        messages = []
        for place, message in enumerate(session["messages"]):
            ids[number, place] = f"{number}-{place}"
            name = message.get("name")
            messages.append(
                {"id": ids[number, place], "role": message["role"], "content": message["text"]}
                | {"sent_at": at + timedelta(seconds=40 * place)}
                | ({} if name in (None, story["user"]) else {"name": name})
            )
        await memory.add(messages, user_id=user, session_id=f"{user}-{number}")
    return ids


async def rows_of_story(memory: Memory, story: Any, every: int) -> AsyncIterator[Any]:
    user, ids = story["id"], await add_story(memory, story)
    asked_at = datetime.fromisoformat(story["asked_at"])
    for question in story["questions"][::every]:
        gold = {ids[tuple(where)] for where in question.get("gold", ())}
        related = {ids[tuple(where)] for where in question.get("related", ())}
        found = await memory.search(question["q"], user_id=user, limit=LIMIT, asked_at=asked_at, explain=True)
        for hit in found.hits:
            said = f"{hit.speaker or story['user']}: {hit.content}"
            held = any(all(re.search(one, said, re.I) for one in way) for way in question["must"])
            answers = bool(gold.intersection(hit.source_ids)) if gold else held
            if answers or not (held or related.intersection(hit.source_ids)):
                yield _row(question["q"], hit, answers=answers)


async def rows_of_records(
    memory: Memory, name: str, block: Sequence[Any], every: int, *, alone: bool = True
) -> AsyncIterator[Any]:
    """Store the statements of some records, and yield a row for each question with its statement, or with all."""
    for number, record in enumerate(block):
        at = datetime.fromisoformat(f"{record.get('when') or '2026-01-01'}T10:00:00+00:00")
        speaker, _, before = record.get("before", "").partition(": ")
        messages: list[Any] = [{"role": "user", "name": speaker, "content": before, "sent_at": at}] if before else []
        who = {"role": "assistant"} if record["speaker"] == "assistant" else {"role": "user"}
        if record["speaker"] not in ("user", "用户", "assistant") and number % 2:
            who["name"] = record["speaker"]
        messages.append(
            {"id": f"{name}-{number}", "content": record["said"], "sent_at": at + timedelta(minutes=1)} | who
        )
        await memory.add(messages, user_id=name, session_id=str(number))
    for number, record in enumerate(block):
        for kind in ("yes", "no"):
            for asked in record[kind][::every]:
                text = asked["q"] if isinstance(asked, dict) else asked
                found = await memory.search(text, user_id=name, limit=LIMIT, explain=True)
                for hit in found.hits:
                    near = f"{name}-{number}" in hit.source_ids
                    if near or not alone:
                        yield _row(text, hit, answers=near and kind == "yes") | {"near": near}


def _row(question: str, hit: Any, *, answers: bool) -> Any:
    inputs = {part.name: part.value for part in hit.explanation.evidence if part.name in INPUTS}
    ended = any(part.name == "has ended" for part in hit.explanation.evidence)
    return {"language": _language(question), "inputs": inputs, "answers": answers, "ended": ended}


def _language(question: str) -> str:
    return "en" if language(question) == "en" else "zh"


async def gather(reader: Reader | None, every: int) -> list[Any]:
    """Return a row for each hit of every few questions of held-out stories and records."""
    rows = []
    settings = load_settings(search={"reading_tokens": 2000})
    given = reader if reader is not None else Unable()
    blocks = held_out_records()
    with tempfile.TemporaryDirectory() as folder:
        for number, story in enumerate(held_out_stories()):
            async with Memory.open(Path(folder) / f"s{number}.db", settings=settings, reader=given) as memory:
                rows += [row async for row in rows_of_story(memory, story, every)]
            print(f"story {number + 1}: {len(rows)} rows", flush=True)
        async with Memory.open(Path(folder) / "records.db", settings=settings, reader=given) as memory:
            for number, block in enumerate(blocks):
                rows += [row async for row in rows_of_records(memory, f"r{number}", block, every)]
                print(f"block {number + 1} of {len(blocks)}: {len(rows)} rows", flush=True)
    return rows


class Unable:
    """A reader that knows no language, so that nothing is read."""

    id = "unable"

    def answers(self, question: str, passages: Sequence[Any]) -> list[None]:
        return [None for _ in passages]

    def changes(self, newer: Any, older: Sequence[Any]) -> list[None]:
        return [None for _ in older]

    def supports(self, messages: Sequence[Any], memory: str) -> None:
        return None


def regression(inputs: Floats, answers: Floats, known: Floats) -> Floats:
    """Fit a logistic regression with a small penalty by Newton's method, beside the logits that are known. The first
    input stands for the bias."""
    weights, penalty = np.zeros(inputs.shape[1]), np.full(inputs.shape[1], RIDGE)
    penalty[0] = 0.0
    for _ in range(STEPS):
        chances = 1 / (1 + np.exp(-inputs @ weights - known))
        slope = inputs.T @ (chances - answers) + penalty * weights
        curve = (inputs * (chances * (1 - chances))[:, None]).T @ inputs + np.diag(penalty + 1e-9)
        step = np.linalg.solve(curve, slope)
        weights -= step
        if np.abs(step).max() < 1e-6:
            break
    return weights


def fitted(rows: Sequence[Any], without: Collection[str]) -> dict[str, float]:
    """Fit the weights of the inputs, without some of them."""
    names = [name for name in INPUTS if name not in without]
    inputs = np.array([[1.0, *(row["inputs"].get(name, 0.0) for name in names)] for row in rows])
    answers = np.array([float(row["answers"]) for row in rows])
    weights = regression(inputs, answers, np.zeros(len(rows)))
    weights[0] += np.log(COST)
    return {name: round(float(value), 4) for name, value in zip(("bias", *names), weights, strict=True) if value}


async def rows_across() -> list[Any]:
    """Return a row for each question of the records across languages with each statement in the other language. Those
    of a block are in one store; `near`: the statement that the question was written for."""
    rows: list[Any] = []
    found = records(TRAINING / "reader" / "across.jsonl.gz")
    with tempfile.TemporaryDirectory() as folder:
        async with Memory.open(Path(folder) / "across.db", reader=Unable()) as memory:
            for at in range(0, len(found), BLOCK):
                rows += [row async for row in rows_of_records(memory, f"a{at}", found[at : at + BLOCK], 1, alone=False)]
    return [row for row in rows if row["inputs"].get(OTHER)]


def fitted_across(rows: Sequence[Any], weights: Mapping[str, float]) -> dict[str, float]:
    """Return weights with others for what is in another language: how much similarity says there, and such a shift that
    most near misses stay below the line of 0.6."""
    rest = {name: weight for name, weight in weights.items() if name not in (OTHER, ACROSS)}
    answers, near = (np.array([row[name] for row in rows]) for name in ("answers", "near"))
    found = regression(np.array([[1.0, row["inputs"][ACROSS]] for row in rows]), answers, logits_of(rows, rest))
    logits = logits_of(rows, {**rest, OTHER: found[0], ACROSS: found[1]})
    shift = LINE - float(np.quantile(logits[near & ~answers], KEPT_ACROSS))
    accepted = 100 * (logits[answers] + shift >= LINE).mean()
    others = auc(logits[answers], logits[near & ~answers])
    print(f"across: {answers.sum()} answers, AUC beside near misses {others:.3f}, {accepted:.0f} % at 0.6")
    return {**rest, OTHER: round(float(found[0]) + shift, 4), ACROSS: round(float(found[1]), 4)}


def logits_of(rows: Sequence[Any], weights: Mapping[str, float]) -> Floats:
    found = [weights["bias"] + sum(weights.get(n, 0.0) * v for n, v in row["inputs"].items()) for row in rows]
    return np.array(found)


def show(name: str, rows: Sequence[Any], weights: dict[str, float]) -> None:
    logits = logits_of(rows, weights)
    answers = np.array([row["answers"] for row in rows])
    scores = 1 / (1 + np.exp(-logits))
    print(f"{name}: {len(rows)} hits, {answers.sum()} answer, AUC {auc(scores[answers], scores[~answers]):.3f}")
    for low, high in itertools.pairwise(LINES):
        some = answers[(scores >= low) & (scores < high)]
        if len(some):
            print(f"  {low:.1f} to {high:.1f}: {100 * some.mean():3.0f} % of {len(some)} answer")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reader", type=Path, help="folder with the reader's networks")
    parser.add_argument("--rows", type=Path, help="file in which the rows are kept for further fits")
    parser.add_argument("--every", type=int, default=1, help="take every second, third … question")
    parser.add_argument("--write", action="store_true", help="write the weights into the package")
    parser.add_argument("--across", action="store_true", help="only move the scores of pairs in two languages")
    options = parser.parse_args()
    weights: dict[str, dict[str, Any]] = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    if options.across:
        rows = asyncio.run(rows_across())
        for own in ("en", "zh"):
            asked = [row for row in rows if row["language"] == own]
            weights["unread"][own] = fitted_across(asked, weights["unread"][own])
    else:
        fit_all(weights, options)
    if options.write:
        WEIGHTS.write_text(json.dumps(weights, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def fit_all(weights: dict[str, dict[str, Any]], options: argparse.Namespace) -> None:
    """Fit all weights anew; those of pairs in two languages have to be moved again afterwards."""
    reader = OnnxReader(options.reader) if options.reader else None
    if options.rows and options.rows.exists():
        rows = json.loads(options.rows.read_text(encoding="utf-8"))
    else:
        rows = asyncio.run(gather(reader, options.every))
        if options.rows:
            options.rows.write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
    groups: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for row in rows:
        if not row["ended"]:
            groups["unread", row["language"]].append(row)
            groups["words", row["language"]].append(row)
            if reader is not None and "reader" in row["inputs"]:
                groups[reader.id, row["language"]].append(row)
    for (name, own), some in sorted(groups.items()):
        weights.setdefault(name, {})[own] = fitted(some, LEFT_OUT.get(name, ()))
        show(f"{name} {own}", some, weights[name][own])


if __name__ == "__main__":
    main()
