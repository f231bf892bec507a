"""Score development sets with a trained network, by each head alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from jiyi.reader import USER, Passage, pairs
from jiyi.reader.pairs import ANSWERS, CHANGES, SUPPORTS, Pair, pair_ids

from .held_out import auc
from .lists import ENDS, _speaker
from .network import HEADS, ReaderNetwork, padded

BATCH = 1024
KEPT = 97.5


@torch.no_grad()
def logits_of(network: ReaderNetwork, tokenizer: Any, head: int, wanted: Sequence[Pair]) -> NDArray[np.float32]:
    network.eval()
    cache: dict[str, list[int]] = {}
    rows = [pair_ids(tokenizer, head, pair, cache) for pair in wanted]
    order = sorted(range(len(rows)), key=lambda at: -len(rows[at][0]))
    device = next(network.parameters()).device
    out: list[Any] = [None] * len(rows)
    for start in range(0, len(order), BATCH):
        some = order[start : start + BATCH]
        ids, types = padded([rows[at] for at in some])
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            states = network.states(ids.to(device), types.to(device))
        for at, row in zip(some, network.judge(states.float(), HEADS[head]).cpu().numpy(), strict=True):
            out[at] = row
    return np.stack(out)


def figures(network: ReaderNetwork, tokenizer: Any, dev: Any, languages: set[str], name: str) -> dict[str, Any]:
    """Print the figures of both halves by language, and return the scores."""
    if not dev:
        return {}
    judged = {"answers": answers_rows, "changes": changes_rows, "grounding": grounding_rows}
    rows = {kind: judged[kind](network, tokenizer, dev[kind]) for kind in judged if kind in dev}
    for kind, stories in dev["stories"].items():
        rows[kind] = story_rows(network, tokenizer, stories)
    for kind, found in rows.items():
        for language in sorted(languages):
            for half in (0, 1):
                some = [r for r in found if r["place"] % 2 == half and language in (r["language"], "all")]
                if some:
                    print(name, kind, language, ("tune", "report")[half], line_of(kind, some), flush=True)
    return rows


def line_of(kind: str, rows: Sequence[Any]) -> str:
    return {"answers": _answers_line, "changes": _changes_line, "grounding": _grounding_line}.get(kind, _story_line)(
        rows
    )


def _answers_line(rows: Sequence[Any]) -> str:
    yes, no, indirect = ([score for row in rows for score in row[name]] for name in ("yes", "no", "indirect"))
    line = np.quantile(no, 0.82)
    sure = 100 * np.mean(np.array(yes) > line)
    return f"AUC {auc(yes, no):.3f} yes at 82 % of no: {sure:.0f} indirect AUC {auc(indirect, no):.3f}"


def _changes_line(rows: Sequence[Any]) -> str:
    def scores(head: str, *labels: str) -> list[float]:
        return [s for row in rows for s, label in zip(row[head], row["labels"], strict=True) if label in labels]

    ends, stands = scores("ends", "ends"), scores("ends", "stands")
    if not ends:
        return "nothing ends"
    line = np.quantile(stands, KEPT / 100)
    repeats = auc(scores("repeats", "repeats"), scores("repeats", "ends", "stands"))
    ended = 100 * np.mean(np.array(ends) > line)
    return f"AUC {auc(ends, stands):.3f} ended at {KEPT} % kept: {ended:.0f} repeats AUC {repeats:.3f}"


def _grounding_line(rows: Sequence[Any]) -> str:
    true, false = ([score for row in rows for score in row[name]] for name in ("true", "false"))
    passed = 100 * np.mean(np.array(false) >= np.quantile(true, 0.2))
    return f"AUC {auc(true, false):.3f} false at 80 % of true: {passed:.0f}"


def _story_line(rows: Sequence[Any]) -> str:
    yes = [row for row in rows if row["answerable"] and any(row["holds"])]
    no = [row for row in rows if not row["answerable"]]
    ranked = [sorted(zip(row["scores"], row["holds"], strict=True), key=lambda one: -one[0]) for row in yes]
    high, low = [found[0][0] for found in ranked], [max(row["scores"]) for row in no]
    right = {}
    for line in np.quantile([*high, *low], np.linspace(0.02, 0.6, 30)):
        found = sum(any(holds and score >= line for score, holds in some[:3]) for some in ranked)
        right[float(line)] = 100 * (found + sum(score < line for score in low)) / len(yes + no)
    line = max(right, key=lambda one: right[one])
    answered = 100 * np.mean(np.array(low) >= line) if low else 0
    top1 = 100 * np.mean([found[0][1] for found in ranked])
    top3 = 100 * np.mean([any(holds for _, holds in found[:3]) for found in ranked])
    return (
        f"n {len(yes + no)} top1 {top1:.1f} top3 {top3:.1f} AUC {auc(high, low):.3f}"
        f" best RIGHT {right[line]:.1f} ({answered:.0f} %) at {line:.2f}"
    )


def answers_rows(network: ReaderNetwork, tokenizer: Any, records: Sequence[Any]) -> list[Any]:
    found, places = [], []
    for place, record in enumerate(records):
        before = record.get("before", "").partition(": ")
        for kind in ("yes", "no"):
            for asked in record[kind]:
                text = asked["q"] if isinstance(asked, dict) else asked
                found.append(pairs.answers(text, Passage(record["said"], record["speaker"], before[2] or before[0])))
                places.append((place, "indirect" if isinstance(asked, dict) else kind))
    out = [{"place": p, "language": r["lang"], "yes": [], "no": [], "indirect": []} for p, r in enumerate(records)]
    for (place, kind), score in zip(places, logits_of(network, tokenizer, ANSWERS, found)[:, 0], strict=True):
        out[place][kind].append(float(score))
    return out


def changes_rows(network: ReaderNetwork, tokenizer: Any, records: Sequence[Any]) -> list[Any]:
    found, places = [], []
    for place, record in enumerate(records):
        for one in record["older"]:
            by = [USER if name == record["speaker"] else name for name in (record["newer_by"], one["by"])]
            found.append(pairs.changes(Passage(record["newer"], by[0]), Passage(one["said"], by[1])))
            places.append((place, one["label"], one["by"] == record["newer_by"]))
    logits = torch.log_softmax(torch.from_numpy(logits_of(network, tokenizer, CHANGES, found)), 1).numpy()
    out: list[Any] = [
        {"place": p, "language": r["lang"], "ends": [], "repeats": [], "labels": [], "same": []}
        for p, r in enumerate(records)
    ]
    for (place, label, same), row in zip(places, logits, strict=True):
        out[place]["ends"].append(float(row[ENDS]))
        out[place]["repeats"].append(float(row[1]))
        out[place]["labels"].append(label)
        out[place]["same"].append(same)
    return out


def grounding_rows(network: ReaderNetwork, tokenizer: Any, records: Sequence[Any]) -> list[Any]:
    found, places = [], []
    for place, record in enumerate(records):
        for kind in ("true", "false"):
            for memory in record[kind]:
                text = memory if isinstance(memory, str) else memory["text"]
                found.append(pairs.supports("\n".join(record["messages"]), text))
                places.append((place, kind))
    out: list[Any] = [{"place": p, "language": r["lang"], "true": [], "false": []} for p, r in enumerate(records)]
    for (place, kind), score in zip(places, logits_of(network, tokenizer, SUPPORTS, found)[:, 0], strict=True):
        out[place][kind].append(float(score))
    return out


def story_rows(network: ReaderNetwork, tokenizer: Any, stories: Sequence[Any]) -> list[Any]:
    found, rows = [], []
    for place, story in enumerate(stories):
        messages = story["messages"]
        for question in story["questions"]:
            rows.append(
                {
                    "place": place,
                    "language": story["language"],
                    "kind": question["kind"],
                    "answerable": question["answerable"],
                    "holds": [at in question["positive"] or at in question["ignored"] for at in range(len(messages))],
                }
            )
            for message in messages:
                before = messages[message["previous"]]["text"] if message["previous"] >= 0 else ""
                found.append(
                    pairs.answers(question["text"], Passage(message["text"], _speaker(story, message), before))
                )
    scores = logits_of(network, tokenizer, ANSWERS, found)[:, 0]
    at = 0
    for row in rows:
        count = len(row["holds"])
        row["scores"] = [round(float(score), 3) for score in scores[at : at + count]]
        at += count
    return rows
