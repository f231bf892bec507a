"""Records and stories that training leaves out, to choose settings and to calibrate."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np

BLOCK = 12  # statements of one list of contrast records


def split(data: Any) -> tuple[Any, Any]:
    """Hold out every eighth record of each kind and every eighth story of ours, to choose settings and to calibrate."""
    ours = [story for story in data["stories"] if story["source"] in ("everyday", "messy")]
    contrast = [story for story in data["stories"] if story["source"] == "contrast"]
    held = {id(story) for story in [*ours[::8], *contrast[::8]]}
    kept = {**data, "stories": [story for story in data["stories"] if id(story) not in held]}
    out: dict[str, Any] = {
        "answers": [record for story in contrast[::8] for record in contrast_records(story)],
        "stories": {"stories": ours[::8]},
    }
    for kind in ("changes", "grounding"):
        out[kind] = data[kind][::8]
        kept[kind] = [record for at, record in enumerate(data[kind]) if at % 8]
    return kept, out


def contrast_records(story: Any) -> list[Any]:
    """Return the records that a story of contrasts was made of."""
    found: dict[int, Any] = {}
    for question in story["questions"]:
        message = story["messages"][(question["positive"] or question["stale"])[0]]
        before = story["messages"][message["previous"]]["text"] if message["previous"] >= 0 else ""
        record = found.setdefault(
            question["record"],
            {"lang": story["language"], "speaker": message["speaker"], "said": message["text"], "before": before}
            | {"yes": [], "no": []},
        )
        asked = {"q": question["text"]} if question["kind"] == "indirect" else question["text"]
        record["no" if question["kind"] == "no" else "yes"].append(asked)
    return list(found.values())


def read_json(path: Path) -> Any:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def write_json(path: Path, value: Any) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=False)


def records(path: Path) -> list[Any]:
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def auc(high: Any, low: Any) -> float:
    high, low = np.asarray(high), np.asarray(low)
    if not len(high) or not len(low):
        return float("nan")
    return float((high[:, None] > low[None]).mean() + 0.5 * (high[:, None] == low[None]).mean())
