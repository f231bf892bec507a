"""Average trained readers, keep the words that occur, and write an int8 ONNX model.

    python -m bench.reader.export --data DIR --base en --out DIR --name reader-en --runs RUN/en-1.pt RUN/en-2.pt

Prints the figures of the average, and of the int8 model on the lists of pairs. Needs PyTorch, onnx and onnxruntime. The
words of all training texts, ASCII pieces and the most frequent characters are kept; others were never trained."""

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

from jiyi.reader.pairs import MARKS

from .evaluate import figures
from .held_out import read_json
from .network import HEADS, ReaderNetwork, network_of, tokenizer_of

PART = 15 * 1024 * 1024  # bytes of a file that comes back from a rented machine


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


class Exported(nn.Module):
    """All outputs of the heads beside each other."""

    def __init__(self, network: ReaderNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, ids: Tensor, types: Tensor) -> Tensor:
        states = self.network.states(ids, types)
        return torch.cat([self.network.judge(states, name) for name in HEADS], 1)


def quantise(network: ReaderNetwork, out: Path) -> None:
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.shape_inference import quant_pre_process

    plain, prepared = out.with_suffix(".fp32.onnx"), out.with_suffix(".pre.onnx")
    ids, types = torch.ones((2, 8), dtype=torch.int64), torch.zeros((2, 8), dtype=torch.int64)
    axes = {name: {0: "pairs", 1: "tokens"} for name in ("ids", "types")} | {"logits": {0: "pairs"}}
    torch.onnx.export(
        Exported(network).eval(), (ids, types), str(plain), input_names=["ids", "types"], output_names=["logits"],
        dynamic_axes=axes, opset_version=17, dynamo=False,
    )  # fmt: skip
    quant_pre_process(str(plain), str(prepared), skip_symbolic_shape=True)
    # 7 bits for the weights: with 8, processors without VNNI overflow.
    quantize_dynamic(
        str(prepared), str(out), weight_type=QuantType.QInt8, per_channel=True, reduce_range=True,
        op_types_to_quantize=["MatMul", "Gather", "Gemm"],
    )  # fmt: skip
    onnx.checker.check_model(str(out))
    for path in (plain, prepared):
        path.unlink()


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
        parts = [
            self.session.run(None, {"ids": ids[at : at + 64].numpy(), "types": types[at : at + 64].numpy()})[0]
            for at in range(0, len(ids), 64)
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
    dev = read_json(options.data / "dev.json.gz")
    if torch.cuda.is_available():
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
    quantise(network, model)
    lists = {kind: dev[kind] for kind in ("answers", "changes", "grounding")}
    figures(Quantised(model), tokenizer_of(words), {**lists, "stories": {}}, languages, f"{options.name} int8")
    whole = model.read_bytes()
    print(options.name, "bytes", len(whole))
    for number, at in enumerate(range(0, len(whole), PART)):
        (options.out / f"{options.name}.onnx.{number}").write_bytes(whole[at : at + PART])
    model.unlink()


if __name__ == "__main__":
    main()
