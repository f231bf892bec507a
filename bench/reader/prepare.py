"""Collect training and evaluation records, and pack base models.

    python -m bench.reader.prepare --bench DIR --public FILE --out DIR [--base NAME=JAR …]

`--bench` holds the development sets, `--public` is groups-public.json.gz (see README.md)."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jiyi.embed.builtin import _encode as encode

from .. import indirect_stories, plain_stories
from . import stories as data
from .held_out import BLOCK, records, write_json

TRAINING = Path(__file__).parents[1] / "data"
PLAIN, INDIRECT = 300, 200  # stories made from templates
TWICE = "8"  # ends the name of a base whose layers shall stand twice
DEV_STORIES = ("everyday-dev", "messy-dev", "tasks-dev")


def contrast(found: list[Any], source: str) -> list[Any]:
    """Put statements with the questions that they answer, and close ones that they do not, into stories."""
    out = []
    for language in sorted({record["lang"] for record in found}):
        some = [record for record in found if record["lang"] == language]
        starts = range(0, len(some), BLOCK)
        out += [_contrast_story(some[at : at + BLOCK], f"{source}-{language}-{at}", language) for at in starts]
    return out


def _contrast_story(some: list[Any], name: str, language: str) -> Any:
    messages: list[Any] = []
    questions: list[Any] = []
    for number, record in enumerate(some):
        at = data.days(record.get("when")) or 20_000.0
        previous = -1
        if record.get("before"):
            speaker, _, text = record["before"].partition(": ")
            messages.append({"speaker": speaker if text else "", "text": text or speaker, "previous": -1, "at": at})
            previous = len(messages) - 1
        messages.append({"speaker": record["speaker"], "text": record["said"], "previous": previous, "at": at})
        own, beside = len(messages) - 1, [previous] if previous >= 0 else []
        for asked in record["yes"]:
            indirect = isinstance(asked, dict)
            questions.append(
                {
                    "text": asked["q"] if indirect else asked,
                    "kind": "indirect" if indirect else "yes",
                    "answerable": True,
                    "positive": [own],
                    "ignored": beside,
                    "stale": [],
                    "record": number,
                }
            )
        for asked in record["no"]:
            text = asked["q"] if isinstance(asked, dict) else asked
            questions.append(
                {
                    "text": text,
                    "kind": "no",
                    "answerable": False,
                    "positive": [],
                    "ignored": beside,
                    "stale": [own],
                    "record": number,
                }
            )
    return {
        "id": name,
        "source": "contrast",
        "language": language,
        "user": "",
        "asked_at": max(one["at"] for one in messages) + 1,
        "messages": messages,
        "questions": questions,
    }


def pack_base(name: str, jar: Path, out: Path) -> None:
    """Store a base model with int8 matrices, and its vocabulary."""
    from .bases import pack, read_jar  # needs onnx

    weights, vocabulary = read_jar(jar)
    packed = pack(doubled(weights) if name.endswith(TWICE) else weights)
    np.savez(out / f"{name}.npz", **packed)
    (out / f"{name}.vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")


def cache_of_vectors() -> Callable[[Sequence[str]], NDArray[Any]]:
    """Return the built-in embedder with a cache."""
    known: dict[str, Any] = {}

    def embed(wanted: Sequence[str]) -> NDArray[Any]:
        new = [text for text in dict.fromkeys(wanted) if text not in known]
        known.update(zip(new, encode(new), strict=True) if new else ())
        return np.stack([known[text] for text in wanted])

    return embed


def doubled(weights: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return a base model in which each layer stands twice."""
    out = {}
    for name, value in weights.items():
        layer, _, part = name.partition(".")
        names = [f"{2 * int(layer) + copy}.{part}" for copy in (0, 1)] if layer.isdigit() else [name]
        out |= dict.fromkeys(names, value)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("bench", "public", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--base", nargs="*", default=[])
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for base in options.base:
        name, _, jar = base.partition("=")
        pack_base(name, Path(jar), options.out)
    embed = cache_of_vectors()
    stories = [story for path in sorted(TRAINING.glob("everyday-*.json.gz")) for story in data.everyday(path)]
    messy = data.everyday(TRAINING / "reader" / "messy.json.gz")
    for story in messy:
        story["source"] = "messy"
    stories += messy
    stories += data.made(plain_stories.stories(PLAIN), "plain")
    stories += data.made(indirect_stories.stories(INDIRECT), "indirect")
    for story in stories:
        data.add_candidates(story, len(story["messages"]), embed)
        data.add_neighbours(story, 10, embed)
        for question in story["questions"]:
            del question["scores"]
    answers = contrast(records(TRAINING / "reader" / "answers.jsonl.gz"), "answers")
    for story in answers:
        data.add_candidates(story, len(story["messages"]), embed)
        for question in story["questions"]:
            del question["scores"]
    write_json(
        options.out / "train.json.gz",
        {
            "stories": stories + answers + data.public_groups(options.public),
            **{kind: records(TRAINING / "reader" / f"{kind}.jsonl.gz") for kind in ("changes", "grounding")},
        },
    )
    dev: dict[str, Any] = {
        "answers": records(options.bench / "answers-dev.jsonl.gz"),
        "changes": records(options.bench / "changes-dev.jsonl.gz"),
        "grounding": records(options.bench / "grounding-dev.jsonl.gz"),
        "stories": {name: data.everyday(options.bench / f"{name}.json.gz") for name in DEV_STORIES},
    }
    write_json(options.out / "dev.json.gz", dev)


if __name__ == "__main__":
    main()
