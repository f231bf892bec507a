"""Train the reranker on a graphics card.

    python -m bench.reranker.train --data DIR --out DIR --name NAME [--fold 0/5] [--set steps=2000 separate=2 …]

Writes NAME.npz (int8 weights; not with --fold) and NAME.json (scores of the validation or held-out stories)."""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.data import DataLoader, IterableDataset

from jiyi_rerank.wordpiece import WordPiece

from .batches import Candidate, CodeSwitch, Mix, Sampler
from .files import read_json, read_vocabulary
from .model import Encoder, Reranker, Shape
from .quantise import Arrays, pack, unpack
from .scoring import replaced_pairs, replaced_report, report, scored

CUDA = "cuda"
CANDIDATES = 40  # of a held-out question
CHUNKS = 2  # parts of a batch, by length, to save padding


@dataclass(frozen=True)
class Config:
    seed: int = 20
    steps: int = 2000
    groups: int = 24
    rate: float = 1.5e-4
    head_rate: float = 5e-4
    decay: float = 0.9  # learning rate of a layer relative to the one above it
    warmup: int = 100
    averaging: float = 0.998  # of the weights, over steps
    lists: float = 1.0  # weight of the softmax over a list
    pairs: float = 0.5  # weight of the binary cross-entropy
    kinds: float = 0.3  # weight of telling the kind of a message
    plain: float = 0.15  # share of lists from stories made from templates
    indirect: float = 0.09  # share of lists from requests that facts bear on
    everyday: float = 0.7  # share of the other lists that come from our stories
    replaced: float = 0.12  # share of lists of older messages that a newer one may replace
    previous: bool = False  # show the message before
    base: str = "adapted"
    workers: int = 2  # processes that prepare lists; each draws its own
    shape: Shape = field(default_factory=Shape)
    mix: Mix = field(default_factory=Mix)


class Lists(IterableDataset[Any]):
    """Endless batches of lists, padded, longest messages first."""

    def __init__(self, sampler: Sampler, config: Config) -> None:
        self.sampler, self.config = sampler, config

    def __iter__(self) -> Iterator[Any]:
        worker = torch.utils.data.get_worker_info()
        self.sampler.chance = random.Random(self.config.seed * 1000 + (worker.id if worker else 0))
        while True:
            yield self._batch()

    def _batch(self) -> Any:
        rows: list[tuple[list[int], Candidate, int]] = []
        for group in range(self.config.groups):
            question, found = self._list()
            rows += [(question, candidate, group) for candidate in found]
        rows.sort(key=lambda row: -len(row[1].ids))
        size = -(-len(rows) // CHUNKS)
        return [_tensors(rows[at : at + size]) for at in range(0, len(rows), size)]

    def _list(self) -> tuple[list[int], list[Candidate]]:
        if self.sampler.chance.random() < self.config.replaced:
            return self.sampler.replaced_list()
        draw = self.sampler.chance.random()
        if draw < self.config.plain + self.config.indirect:
            return self.sampler.list_of("plain" if draw < self.config.plain else "indirect")
        draw = self.sampler.chance.random()
        rest = "cmrc2018" if draw < (1 + self.config.everyday) / 2 else "molweni"
        return self.sampler.list_of("everyday" if draw < self.config.everyday else rest)


def _tensors(rows: list[tuple[list[int], Candidate, int]]) -> tuple[Tensor, ...]:
    numbers = [[c.age, c.rank, group, c.kind] for _, c, group in rows]
    labels = torch.tensor([c.label for _, c, _ in rows])
    return padded([row[0] for row in rows]), padded([row[1].ids for row in rows]), torch.tensor(numbers), labels


def padded(rows: list[list[int]]) -> Tensor:
    out = np.zeros((len(rows), max(map(len, rows))), np.int64)
    for at, row in enumerate(rows):
        out[at, : len(row)] = row
    return torch.from_numpy(out)


def loss_of(logits: Tensor, labels: Tensor, groups: Tensor, config: Config) -> Tensor:
    """Binary cross-entropy plus, per list, the softmax of each positive against the negatives and a null answer."""
    pairs = functional.binary_cross_entropy_with_logits(
        logits, labels, pos_weight=torch.tensor(2.0, device=logits.device)
    )
    same = groups[:, None] == torch.arange(config.groups, device=groups.device)[None]
    negatives = torch.where(same & (labels[:, None] == 0), logits[:, None], -torch.inf)
    rest = torch.logsumexp(torch.cat([negatives, torch.zeros_like(negatives[:1])]), 0)  # of each list
    positive = labels > 0
    per_positive = functional.softplus(rest[groups[positive]] - logits[positive])
    answered = (same & positive[:, None]).any(0)
    lists = torch.cat([per_positive, rest[~answered]])
    return config.pairs * pairs + config.lists * lists.mean() * 0.5


def optimiser(model: Reranker, config: Config) -> torch.optim.Optimizer:
    depth = config.shape.layers
    groups = []
    for name, parameter in model.named_parameters():
        rate = config.head_rate
        if name.startswith("encoder.layers."):
            rate = config.rate * config.decay ** (depth - 1 - int(name.split(".")[2]))
        elif name.startswith("encoder."):
            rate = config.rate * config.decay**depth
        groups.append({"params": [parameter], "lr": rate, "weight_decay": 0.01 if parameter.ndim > 1 else 0.0})
    return torch.optim.AdamW(groups, fused=True)


def repeatable() -> None:
    """Let the same computation give the same result on the same card."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)


def train(config: Config, sampler: Sampler, weights: Arrays, on_step: Any) -> Reranker:
    """Train and return the model with averaged weights; the same configuration on the same card gives the same ones."""
    repeatable()
    torch.manual_seed(0)  # all models start alike, so that they can be averaged
    torch.backends.cuda.matmul.allow_tf32 = True
    loader = iter(DataLoader(Lists(sampler, config), batch_size=None, num_workers=config.workers, prefetch_factor=8))
    model, average = (Reranker(weights, config.shape).to(CUDA) for _ in range(2))
    average.load_state_dict(model.state_dict())
    torch.manual_seed(config.seed)
    optimizer = optimiser(model, config)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, (step + 1) / config.warmup) * (1 - step / config.steps)
    )
    own, kept = list(model.parameters()), list(average.parameters())
    total = torch.zeros((), device=CUDA)
    for step in range(1, config.steps + 1):
        model.train()
        chunks = [[part.to(CUDA, non_blocking=True) for part in chunk] for chunk in next(loader)]
        with torch.autocast(CUDA, torch.bfloat16):
            logits, kinds = (
                torch.cat(part).float()
                for part in zip(*(model(q, m, n[:, 0], n[:, 1]) for q, m, n, _ in chunks), strict=True)
            )
        numbers = torch.cat([chunk[2] for chunk in chunks])
        loss = loss_of(logits, torch.cat([chunk[3] for chunk in chunks]), numbers[:, 2], config)
        loss = loss + config.kinds * functional.cross_entropy(kinds, numbers[:, 3], ignore_index=-1)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(own, 1.0)
        optimizer.step()
        schedule.step()
        with torch.no_grad():
            torch._foreach_lerp_(kept, own, 1 - min(config.averaging, step / (step + 10)))
            total += loss.detach()
        if step % 600 == 0 or step == config.steps:
            on_step(step, float(total) / 600)
            total.zero_()
    return average


def exported_encoder(encoder: Encoder) -> Arrays:
    """Return weights under the names that stored models use."""
    tables = ("words.weight", "positions.weight", "types.weight")
    named = {name.removeprefix("layers."): value.float().cpu().numpy() for name, value in encoder.state_dict().items()}
    return {name.removesuffix(".weight") if name in tables else name: value for name, value in named.items()}


def exported(model: Reranker) -> Arrays:
    head = {
        name: value.float().cpu().numpy()
        for name, value in model.state_dict().items()
        if not name.startswith("encoder.")
    }
    return exported_encoder(model.encoder) | {
        name.replace("age.weight", "age").replace("rank.weight", "rank"): value for name, value in head.items()
    }


def loaded(weights: Arrays, config: Config) -> Reranker:
    """Return the model with stored weights."""
    model = Reranker(weights, config.shape)
    for name, value in model.state_dict().items():
        if not name.startswith("encoder."):
            stored = name.removesuffix(".weight") if name in ("age.weight", "rank.weight") else name
            value.copy_(torch.from_numpy(weights[stored]))
    return model


def configured(settings: list[str]) -> Config:
    """Return the configuration with `name=value` settings of it, its shape or its mix."""
    config = Config()
    for setting in settings:
        name, value = setting.split("=")
        parsed = value if name == "base" else json.loads(value)
        for part in ("shape", "mix"):
            if name in {item.name for item in fields(getattr(config, part))}:
                config = replace(config, **{part: replace(getattr(config, part), **{name: parsed})})
                break
        else:
            config = replace(config, **{name: parsed})
    return config if config.previous else replace(config, mix=replace(config.mix, without_previous=1.0))


def shortened(story: Any) -> Any:
    """Keep the first candidates of each question: scoring all of thousands of questions takes minutes."""
    questions = [q | {"hard": q["hard"][:CANDIDATES], "scores": q["scores"][:CANDIDATES]} for q in story["questions"]]
    return story | {"questions": questions}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--fold", help="hold out every n-th story: I/N")
    parser.add_argument("--set", nargs="*", default=[], dest="settings")
    options = parser.parse_args()
    config = configured(options.settings)
    stories, validation = (read_json(options.data / f"{name}.json.gz") for name in ("train", "validation"))
    weights = unpack(np.load(options.data / f"{config.base}.npz"))
    vocabulary = read_vocabulary(options.data / "base.vocab.txt")
    held_out: list[Any] = []
    if options.fold:
        fold, folds = map(int, options.fold.split("/"))
        ours = [story for story in stories if story["source"] == "everyday"]
        held_out = ours[fold::folds]
        stories = [story for story in stories if not any(story is other for other in held_out)]
        held_out = [shortened(story) for story in held_out]
    pieces, began = WordPiece(vocabulary), time.time()

    def on_step(step: int, loss: float) -> None:
        print(f"{options.name} step {step} loss {loss:.3f} {time.time() - began:.0f} s", flush=True)

    pairs = read_json(options.data / "texts.json.gz")["pairs"]
    sampler = Sampler(stories, pieces, config.mix, random.Random(config.seed), CodeSwitch(pairs))
    model = train(config, sampler, weights, on_step)
    options.out.mkdir(parents=True, exist_ok=True)
    rows = scored(model, pieces, held_out or validation, config.previous)
    print(report(rows, options.name))
    print(replaced_report(model, pieces, held_out, options.name), flush=True)
    (options.out / f"{options.name}.json").write_text(
        json.dumps({"config": asdict(config), "rows": [row.as_list() for row in rows]})
    )
    if held_out:
        with torch.no_grad():
            found = {story["id"]: replaced_pairs(model, pieces, story) for story in held_out}
        np.savez_compressed(options.out / f"{options.name}.replaced.npz", **found)
    else:
        np.savez(options.out / f"{options.name}.npz", **pack(exported(model)))


if __name__ == "__main__":
    main()
