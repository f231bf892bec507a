"""Average trained readers, keep the words that occur, and write an int8 ONNX model.

    python -m bench.reader.export --data DIR --base en --out DIR --name reader-en --runs RUN/en-1.pt RUN/en-2.pt

Prints the figures of the average, and of the int8 model on the lists of pairs, if the development sets are there. Needs
PyTorch, onnx and onnxruntime. The words of all training texts, ASCII pieces and the most frequent characters are kept;
others were never trained."""

from __future__ import annotations

import argparse
import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from jiyi.reader.pairs import MARKS, pair_ids

from .evaluate import figures
from .graph import READ, write_graph
from .held_out import read_json
from .network import ATTENTION_HEADS, HEADS, ReaderNetwork, network_of, padded, tokenizer_of
from .train import Config, sampler_of

PART = 15 * 1024 * 1024  # bytes of a file that comes back from a rented machine
SAMPLED = 15  # lists of each judgement, to see how large columns are


def averaged(runs: list[Path], network: ReaderNetwork) -> ReaderNetwork:
    states = [torch.load(run, map_location="cpu") for run in runs]
    mean = {name: sum(state[name].float() for state in states) / len(states) for name in states[0]}
    network.load_state_dict(mean)
    return network


def texts_in(value: Any) -> list[str]:
    """Return all strings inside a JSON value."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for one in inner for text in texts_in(one)]


def kept_words(vocabulary: list[str], tokenizer: Any, texts: list[str], limit: int) -> list[int]:
    """Return the ids to keep, in their order: marks, single letters of ASCII and simplified Chinese, what is no letter,
    and the most frequent pieces; then those that our texts lack, in the order of the vocabulary."""

    def is_kept(word: str) -> bool:
        letter = word.removeprefix("##")
        is_han = "\u4e00" <= letter <= "\u9fff" and word == letter and bool(letter.encode("gb2312", "ignore"))
        return len(letter) == 1 and (letter.isascii() or is_han or not letter.isalnum())

    counts: Counter[int] = Counter()
    for encoded in tokenizer.encode_batch(texts, add_special_tokens=False):
        counts.update(encoded.ids)
    always = {at for at, word in enumerate(vocabulary) if word in MARKS or is_kept(word)}
    frequent = [at for at, _ in counts.most_common() if at not in always]
    rest = [at for at in range(len(vocabulary)) if at not in always and at not in counts and vocabulary[at][0] != "["]
    return sorted([*always, *(frequent + rest)[: limit - len(always)]])


def largest_columns(network: ReaderNetwork, rows: list[tuple[list[int], int]]) -> dict[str, Any]:
    """Return the largest size of each column that the layers of a network take, over some pairs."""
    found: dict[str, Tensor] = {}

    def note(name: str) -> Any:
        def hook(_: nn.Module, given: tuple[Tensor, ...]) -> None:
            sizes = given[0].detach().abs().flatten(0, -2).amax(0)
            found[name] = torch.maximum(found[name], sizes) if name in found else sizes

        return hook

    hooks = [
        module.register_forward_pre_hook(note(name))
        for name, module in network.named_modules()
        if name.startswith("encoder.encoder.layer.") and name.split(".", 4)[-1] in READ
    ]
    device = next(network.parameters()).device
    with torch.no_grad():
        for row in rows:
            ids, types = padded([row])
            network.states(ids.to(device), types.to(device))
    for hook in hooks:
        hook.remove()
    return {name: sizes.float().cpu().numpy() for name, sizes in found.items()}


def sample_rows(train: Any, languages: set[str], tokenizer: Any) -> list[tuple[list[int], int]]:
    """Return the ids of pairs of all judgements."""
    sampler = sampler_of(train, languages, Config())
    draws = (sampler.answers, sampler.changed, sampler.supported)
    return [
        pair_ids(tokenizer, head, one.pair) for head, draw in enumerate(draws) for _ in range(SAMPLED) for one in draw()
    ]


def quantise(network: ReaderNetwork, rows: list[tuple[list[int], int]], out: Path) -> None:
    network.eval()
    largest = largest_columns(network.cuda() if torch.cuda.is_available() else network, rows)
    weights = {name: value.float().cpu().numpy() for name, value in network.state_dict().items()}
    width = network.encoder.config.hidden_size
    write_graph(weights, largest, ATTENTION_HEADS[width], HEADS, out)


class Quantised:
    """The int8 model with the face of the network, for `figures`."""

    def __init__(self, path: Path) -> None:
        import onnxruntime

        self.session = onnxruntime.InferenceSession(str(path))
        self.logits: Any = None

    def eval(self) -> None:
        pass

    def parameters(self) -> Any:
        return iter([torch.zeros(1)])

    def states(self, ids: Tensor, types: Tensor) -> Tensor:
        sizes = (ids > 0).sum(1).tolist()
        parts = [
            self.session.run(None, {"ids": row[None, :size].numpy(), "types": mark[None, :size].numpy()})[0]
            for row, mark, size in zip(ids, types, sizes, strict=True)
        ]
        return torch.from_numpy(np.concatenate(parts))

    def judge(self, state: Tensor, head: str) -> Tensor:
        return {"answers": state[:, :1], "changes": state[:, 1:4], "supports": state[:, 4:5]}[head]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--base", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--runs", nargs="+", type=Path, required=True)
    parser.add_argument("--languages", default="en,mixed")
    parser.add_argument("--words", type=int, default=0, help="size of the vocabulary; 0: no model is written")
    options = parser.parse_args()
    languages = set(options.languages.split(","))
    network = averaged(options.runs, network_of(options.data / f"{options.base}.npz"))
    tokenizer = tokenizer_of(options.data / f"{options.base}.vocab.txt")
    dev = read_json(options.data / "dev.json.gz") if (options.data / "dev.json.gz").exists() else None
    if dev and torch.cuda.is_available():
        rows = figures(network.cuda(), tokenizer, dev, languages, f"{options.name} average")
        with gzip.open(options.out / f"{options.name}.json.gz", "wt") as file:
            json.dump(rows, file)
        network.cpu()
    if not options.words:
        return
    vocabulary = (options.data / f"{options.base}.vocab.txt").read_text("utf-8").rstrip("\n").split("\n")
    train = read_json(options.data / "train.json.gz")
    kept = kept_words(vocabulary, tokenizer, texts_in(train), options.words)
    embeddings = network.encoder.embeddings
    embeddings.word_embeddings = nn.Embedding.from_pretrained(embeddings.word_embeddings.weight[kept], padding_idx=0)
    words = options.out / f"{options.name}.vocab.txt"
    words.write_text("\n".join(vocabulary[at] for at in kept) + "\n", encoding="utf-8")
    model = options.out / f"{options.name}.onnx"
    kept_tokenizer = tokenizer_of(words)
    quantise(network, sample_rows(train, languages, kept_tokenizer), model)
    if dev:
        lists = {kind: dev[kind] for kind in ("answers", "changes", "grounding")}
        figures(Quantised(model), kept_tokenizer, {**lists, "stories": {}}, languages, f"{options.name} int8")
    whole = model.read_bytes()
    print(options.name, "bytes", len(whole))
    for number, at in enumerate(range(0, len(whole), PART)):
        (options.out / f"{options.name}.onnx.{number}").write_bytes(whole[at : at + PART])
    model.unlink()


if __name__ == "__main__":
    main()
