"""Train a small reader on the judgements of larger ones.

    python -m bench.reader.distil --data DIR --out DIR --name NAME --base zh8 --teacher-base mb --teachers T1.pt T2.pt
    python -m bench.reader.distil … --base mb --layers 1,3,5,7,9,11      # some layers of the first teacher

The student reads the same lists as in `train`. Its loss is that of the labels, plus how far it is from the teachers'
mean judgement and, if it is made of a teacher's layers, from that teacher's states after those layers."""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.data import DataLoader

from jiyi.reader.pairs import ANSWERS, CHANGES, pair_ids

from .evaluate import figures
from .held_out import read_json, split
from .lists import UNKNOWN, Example
from .network import HEADS, ReaderNetwork, network_of, padded, tokenizer_of
from .train import CHUNKS, Batches, Config, config_of, loss_of, optimiser, sampler_of

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
LAYER = re.compile(r"encoder\.encoder\.layer\.(\d+)\.")


@dataclass(frozen=True)
class Distillation(Config):
    labels: float = 0.4  # weight of the labels
    soft: float = 1.0  # weight of the teachers' judgement
    near: float = 0.05  # weight of the squared distance of the logits
    states: float = 2.0  # weight of the states
    unlabelled: int = 20  # lists of a step that only the teachers judge: questions
    unlabelled_changes: int = 8


class BatchesForTwo(Batches):
    """Batches with the ids of the teachers' tokenizer too."""

    def __init__(self, *given: Any, teacher_tokenizer: Any) -> None:
        super().__init__(*given)
        self.teacher_tokenizer = teacher_tokenizer
        self.teacher_cache: dict[str, list[int]] = {}

    def lists(self) -> Iterator[tuple[int, int, Example]]:
        yield from super().lists()
        config: Any = self.config
        for head, count, draw in ((ANSWERS, config.unlabelled, self.sampler.unlabelled),
                                  (CHANGES, config.unlabelled_changes, self.sampler.unlabelled_changes)):  # fmt: skip
            for _ in range(count):
                for one in draw():
                    yield head, -1, one

    def _batch(self) -> Any:
        rows = []
        for head, group, one in self.lists():
            ids = pair_ids(self.tokenizer, head, one.pair, self.cache)
            theirs = pair_ids(self.teacher_tokenizer, head, one.pair, self.teacher_cache)
            rows.append((ids, theirs, (head, group, one.kind, one.label)))
        rows.sort(key=lambda row: -len(row[0][0]))
        size = -(-len(rows) // CHUNKS)
        parts = [rows[at : at + size] for at in range(0, len(rows), size)]
        pairs = [(padded([row[0] for row in part]), padded([row[1] for row in part])) for part in parts]
        return pairs, torch.tensor([row[2] for row in rows])


def hidden(network: ReaderNetwork, ids: Tensor, types: Tensor) -> Sequence[Tensor]:
    """Return the states of all tokens after each layer."""
    found = network.encoder(
        ids, attention_mask=(ids > 0).long(), token_type_ids=types, output_hidden_states=True
    ).hidden_states
    return tuple(found[1:])


def of_layers(state: dict[str, Tensor], layers: Sequence[int]) -> dict[str, Tensor]:
    """Return the weights of some layers of a network, numbered anew."""
    out = {}
    for name, value in state.items():
        layer = LAYER.match(name)
        if layer is None:
            out[name] = value
        elif int(layer[1]) in layers:
            out[name.replace(f".{layer[1]}.", f".{layers.index(int(layer[1]))}.", 1)] = value
    return out


def shortened(base: Path, layers: Sequence[int], state: dict[str, Tensor], dropout: float) -> ReaderNetwork:
    whole = network_of(base, dropout)
    config = whole.encoder.config
    config.num_hidden_layers = len(layers)
    network = ReaderNetwork(config)
    network.load_state_dict(of_layers(state, layers))
    return network


def judged(network: ReaderNetwork, states: Tensor, heads: Tensor) -> list[Tensor]:
    return [network.judge(states[heads == number], name) for number, name in enumerate(HEADS)]


def soft_loss(student: Sequence[Tensor], teacher: Sequence[Tensor], config: Distillation) -> Tensor:
    total = torch.zeros((), device=student[0].device)
    for number, (ours, theirs) in enumerate(zip(student, teacher, strict=True)):
        if number == CHANGES:
            part = functional.kl_div(ours.log_softmax(1), theirs.softmax(1), reduction="batchmean")
        else:
            part = functional.binary_cross_entropy_with_logits(ours[:, 0], theirs[:, 0].sigmoid())
        weight = 1.0 if number == ANSWERS else 0.7
        total = total + weight * (part + config.near * functional.mse_loss(ours, theirs))
    return total


def state_loss(student: Sequence[Tensor], teacher: Sequence[Tensor], ids: Tensor, layers: Sequence[int]) -> Tensor:
    present = ids > 0
    losses = [
        1 - functional.cosine_similarity(ours[present].float(), teacher[layer][present].float(), dim=-1).mean()
        for ours, layer in zip(student, layers, strict=True)
    ]
    return torch.stack(losses).mean()


def distil(
    config: Distillation, batches: Batches, student: ReaderNetwork, teachers: Sequence[ReaderNetwork],
    layers: Sequence[int], say: Any,
) -> ReaderNetwork:  # fmt: skip
    loader = iter(DataLoader(batches, batch_size=None, num_workers=config.workers, prefetch_factor=8))
    torch.manual_seed(config.seed)
    optimizer = optimiser(student, config)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, (step + 1) / config.warmup) * (1 - step / config.steps)
    )
    own = list(student.parameters())
    average = [one.detach().clone() for one in own]
    total = torch.zeros((), device=DEVICE)
    student.train()
    for step in range(1, config.steps + 1):
        pairs, meta = next(loader)
        meta = meta.to(DEVICE).float()
        states, theirs, distance = [], [[] for _ in teachers], torch.zeros((), device=DEVICE)
        for same, for_teachers in pairs:
            ids, types = (one.to(DEVICE) for one in same)
            teacher_ids, teacher_types = (one.to(DEVICE) for one in for_teachers)
            with torch.autocast(DEVICE, torch.bfloat16):
                ours = hidden(student, ids, types)
                with torch.no_grad():
                    read = [hidden(teacher, teacher_ids, teacher_types) for teacher in teachers]
            states.append(ours[-1][:, 0].float())
            for kept, found in zip(theirs, read, strict=True):
                kept.append(found[-1][:, 0].float())
            if layers:
                distance = distance + state_loss(ours, read[0], ids, layers) / len(pairs)
        joined = torch.cat(states)
        with torch.no_grad():
            judgements = [judged(t, torch.cat(kept), meta[:, 0]) for t, kept in zip(teachers, theirs, strict=True)]
            mean = [torch.stack(same).mean(0) for same in zip(*judgements, strict=True)]
        known = meta[:, 3] != UNKNOWN
        loss = config.labels * loss_of(student, joined[known], meta[known], config) + config.states * distance
        loss = loss + config.soft * soft_loss(judged(student, joined, meta[:, 0]), mean, config)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(own, 1.0)
        optimizer.step()
        schedule.step()
        with torch.no_grad():
            torch._foreach_lerp_(average, own, 1 - min(config.averaging, step / (step + 10)))
            total += loss.detach()
        if step % 250 == 0 or step == config.steps:
            say(step, float(total) / 250, float(distance.detach()))
            total.zero_()
    with torch.no_grad():
        torch._foreach_copy_(own, average)
    return student


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("data", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name in ("name", "base", "teacher-base"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--teachers", type=Path, nargs="+", required=True)
    parser.add_argument("--layers", default="", help="layers of the first teacher that the student starts with")
    parser.add_argument("--languages", default="en,mixed,zh")
    parser.add_argument("--hold-out", action="store_true", help="keep every eighth record and story, as in `train`")
    parser.add_argument("--set", nargs="*", default=[], dest="settings")
    options = parser.parse_args()
    config = config_of(Distillation, options.settings)
    languages = set(options.languages.split(","))
    base, teacher_base = (options.data / f"{name}.npz" for name in (options.base, options.teacher_base))
    tokenizer, teacher_tokenizer = (tokenizer_of(path.with_suffix(".vocab.txt")) for path in (base, teacher_base))
    teachers = []
    for path in options.teachers:
        teacher = network_of(teacher_base)
        teacher.load_state_dict({name: value.float() for name, value in torch.load(path, map_location="cpu").items()})
        teachers.append(teacher.to(DEVICE).eval())
    layers = [int(layer) for layer in options.layers.split(",") if layer]
    torch.manual_seed(0)
    first = {name: value.cpu() for name, value in teachers[0].state_dict().items()}
    student = shortened(base, layers, first, config.dropout) if layers else network_of(base, config.dropout)
    data = read_json(options.data / "train.json.gz")
    data, held_out = split(data) if options.hold_out else (data, None)
    sampler = sampler_of(data, languages, config)
    sampler.by_id = {story["id"]: story for story in data["stories"]}
    batches = BatchesForTwo(sampler, tokenizer, config, teacher_tokenizer=teacher_tokenizer)
    random.seed(config.seed)
    began = time.time()
    network = distil(
        config, batches, student.to(DEVICE), teachers, layers,
        lambda step, loss, far: print(
            f"{options.name} {step} {loss:.3f} {far:.3f} {time.time() - began:.0f}s", flush=True
        ),
    )  # fmt: skip
    options.out.mkdir(parents=True, exist_ok=True)
    torch.save(
        {name: value.half().cpu() for name, value in network.state_dict().items()}, options.out / f"{options.name}.pt"
    )
    if held_out:
        figures(network, tokenizer, held_out, languages, f"{options.name} held out")
    rows = figures(network, tokenizer, read_json(options.data / "dev.json.gz"), languages, options.name)
    with gzip.open(options.out / f"{options.name}.json.gz", "wt") as file:
        json.dump({"config": asdict(config), "rows": rows}, file)


if __name__ == "__main__":
    main()
