"""Train the reader on a graphics card.

    python -m bench.reader.train --data DIR --out DIR --name NAME --base en [--languages en,mixed] [--set steps=1500 …]

Prints figures of the development sets (tune / report halves) if DATA holds them, and writes NAME.pt (float16) and
NAME.json.gz (scores)."""

from __future__ import annotations

import argparse
import gzip
import json
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from jiyi.reader.pairs import ANSWERS, CHANGES, SUPPORTS, pair_ids

from .evaluate import figures
from .held_out import read_json, split
from .lists import Example, Mix, Sampler
from .network import HEADS, ReaderNetwork, network_of, padded, tokenizer_of

MAX_KNOWN = 200_000  # texts whose tokens are kept
CHUNKS = 6  # parts of a batch, by length, to save padding


@dataclass(frozen=True)
class Config:
    seed: int = 20
    steps: int = 1500
    questions: int = 22  # lists of each head in a step
    newer: int = 12
    snippets: int = 8
    rate: float = 8e-5
    head_rate: float = 5e-4
    decay: float = 0.9  # learning rate of a layer relative to the one above it
    warmup: int = 100
    averaging: float = 0.998
    lists: float = 0.5  # weight of the softmax over a list
    pairs: float = 0.5  # weight of the binary cross-entropy
    kinds: float = 0.1
    changes: float = 1.0
    supports: float = 0.7
    workers: int = 3
    contrast: float = 0.2
    messy: float = 0.25
    dropout: float = 0.1


C = TypeVar("C", bound=Config)


class Batches(IterableDataset[Any]):
    """Endless batches of lists of all heads, longest pairs first."""

    def __init__(self, sampler: Sampler, tokenizer: Any, config: Config) -> None:
        self.sampler, self.tokenizer, self.config = sampler, tokenizer, config
        self.cache: dict[str, list[int]] = {}

    def __iter__(self) -> Iterator[Any]:
        worker = get_worker_info()
        self.sampler.chance = random.Random(self.config.seed * 1000 + (worker.id if worker else 0))
        while True:
            yield self._batch()

    def lists(self) -> Iterator[tuple[int, int, Example]]:
        """Draw the lists of one step, each example with its head and the number of its list."""
        config, group = self.config, 0
        draws = ((ANSWERS, config.questions, self.sampler.answers), (CHANGES, config.newer, self.sampler.changed),
                 (SUPPORTS, config.snippets, self.sampler.supported))  # fmt: skip
        for head, count, draw in draws:
            for _ in range(count):
                for one in draw():
                    yield head, group, one
                group += 1

    def _batch(self) -> Any:
        if len(self.cache) > MAX_KNOWN:
            self.cache.clear()
        rows = [
            (pair_ids(self.tokenizer, head, one.pair, self.cache), (head, group, one.kind, one.label))
            for head, group, one in self.lists()
        ]
        rows.sort(key=lambda row: -len(row[0][0]))
        size = -(-len(rows) // CHUNKS)
        parts = [rows[at : at + size] for at in range(0, len(rows), size)]
        return [padded([row[0] for row in part]) for part in parts], torch.tensor([row[1] for row in rows])


def list_loss(logits: Tensor, labels: Tensor, groups: Tensor, config: Config) -> Tensor:
    """Binary cross-entropy plus, per list, the softmax of each positive against the negatives and a null answer."""
    pairs = functional.binary_cross_entropy_with_logits(
        logits, labels, pos_weight=torch.tensor(2.0, device=logits.device)
    )
    same = groups[:, None] == torch.arange(config.questions, device=groups.device)[None]
    negatives = torch.where(same & (labels[:, None] == 0), logits[:, None], -torch.inf)
    rest = torch.logsumexp(torch.cat([negatives, torch.zeros_like(negatives[:1])]), 0)
    positive = labels > 0
    per_positive = functional.softplus(rest[groups[positive]] - logits[positive])
    answered = (same & positive[:, None]).any(0)
    return config.pairs * pairs + config.lists * torch.cat([per_positive, rest[~answered]]).mean()


def loss_of(network: ReaderNetwork, states: Tensor, meta: Tensor, config: Config) -> Tensor:
    head, group, kind, label = meta.T
    total = torch.zeros((), device=states.device)
    for number, name in enumerate(HEADS):
        mine = head == number
        logits = network.judge(states[mine], name)
        if number == ANSWERS:
            total = total + list_loss(logits[:, 0], label[mine], group[mine].long(), config)
        elif number == CHANGES:
            weight = torch.tensor([1.6, 1.0, 1.0], device=states.device)
            total = total + config.changes * functional.cross_entropy(logits, label[mine].long(), weight=weight)
        else:
            total = total + config.supports * functional.binary_cross_entropy_with_logits(logits[:, 0], label[mine])
    known = kind >= 0
    return total + config.kinds * functional.cross_entropy(network.kind(states[known]), kind[known].long())


def optimiser(network: ReaderNetwork, config: Config) -> torch.optim.Optimizer:
    depth = network.encoder.config.num_hidden_layers
    groups = []
    for name, parameter in network.named_parameters():
        rate = config.head_rate
        if name.startswith("encoder.encoder.layer."):
            rate = config.rate * config.decay ** (depth - 1 - int(name.split(".")[3]))
        elif name.startswith("encoder."):
            rate = config.rate * config.decay**depth
        groups.append({"params": [parameter], "lr": rate, "weight_decay": 0.01 if parameter.ndim > 1 else 0.0})
    return torch.optim.AdamW(groups, fused=True)


def train(config: Config, sampler: Sampler, base: Path, tokenizer: Any, say: Any) -> ReaderNetwork:
    """Train and return the network with averaged weights."""
    torch.manual_seed(0)  # all networks start alike, so that they can be averaged
    loader = iter(
        DataLoader(Batches(sampler, tokenizer, config), batch_size=None, num_workers=config.workers, prefetch_factor=8)
    )
    network, average = (network_of(base, config.dropout).cuda() for _ in range(2))
    average.load_state_dict(network.state_dict())
    torch.manual_seed(config.seed)
    optimizer = optimiser(network, config)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, (step + 1) / config.warmup) * (1 - step / config.steps)
    )
    own, kept = list(network.parameters()), list(average.parameters())
    total = torch.zeros((), device="cuda")
    network.train()
    for step in range(1, config.steps + 1):
        chunks, meta = next(loader)
        with torch.autocast("cuda", torch.bfloat16):
            states = torch.cat(
                [network.states(ids.cuda(non_blocking=True), types.cuda(non_blocking=True)) for ids, types in chunks]
            )
        loss = loss_of(network, states.float(), meta.cuda(non_blocking=True).float(), config)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(own, 1.0)
        optimizer.step()
        schedule.step()
        with torch.no_grad():
            torch._foreach_lerp_(kept, own, 1 - min(config.averaging, step / (step + 10)))
            total += loss.detach()
        if step % 250 == 0 or step == config.steps:
            say(step, float(total) / 250)
            total.zero_()
    return average


def config_of(kind: type[C], settings: Sequence[str]) -> C:
    """Return a configuration with some `name=value` changed."""
    return replace(kind(), **{name: json.loads(value) for name, _, value in (one.partition("=") for one in settings)})


def sampler_of(data: Any, languages: set[str], config: Config) -> Sampler:
    shares = {**dict(Mix().shares), "contrast": config.contrast, "messy": config.messy}
    return Sampler(
        [story for story in data["stories"] if story["language"] in languages],
        [record for record in data["changes"] if record["lang"] in languages],
        [record for record in data["grounding"] if record["lang"] in languages],
        replace(Mix(), shares=tuple(shares.items())),
        random.Random(config.seed),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--base", required=True)
    parser.add_argument("--languages", default="en,mixed,zh")
    parser.add_argument("--hold-out", action="store_true", help="leave out every eighth record and story; score them")
    parser.add_argument("--set", nargs="*", default=[], dest="settings")
    options = parser.parse_args()
    config = config_of(Config, options.settings)
    languages = set(options.languages.split(","))
    data = read_json(options.data / "train.json.gz")
    data, held_out = split(data) if options.hold_out else (data, None)
    sampler = sampler_of(data, languages, config)
    tokenizer = tokenizer_of(options.data / f"{options.base}.vocab.txt")
    began = time.time()
    network = train(
        config, sampler, options.data / f"{options.base}.npz", tokenizer,
        lambda step, loss: print(f"{options.name} {step} {loss:.3f} {time.time() - began:.0f}s", flush=True),
    )  # fmt: skip
    options.out.mkdir(parents=True, exist_ok=True)
    state = {name: value.half().cpu() for name, value in network.state_dict().items()}
    torch.save(state, options.out / f"{options.name}.pt")
    if held_out:
        figures(network, tokenizer, held_out, languages, f"{options.name} held out")
    if (options.data / "dev.json.gz").exists():
        rows = figures(network, tokenizer, read_json(options.data / "dev.json.gz"), languages, options.name)
        with gzip.open(options.out / f"{options.name}.json.gz", "wt") as file:
            json.dump({"config": asdict(config), "rows": rows}, file)


if __name__ == "__main__":
    main()
