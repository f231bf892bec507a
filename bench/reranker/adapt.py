"""Teach English to the Chinese base model, before the reranker is trained.

    python -m bench.reranker.adapt --data DIR --out FILE [--steps N]

The model learns four things at once: to guess masked tokens of English and Chinese texts; to embed English sentences as
MiniLM does; to embed an English gloss as the base model embeds its Chinese word; and to keep the embeddings of Chinese
texts."""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, IterableDataset

from jiyi_rerank.wordpiece import WordPiece

from .files import read_json, read_vocabulary
from .model import Encoder, Shape
from .quantise import pack, unpack
from .train import CUDA, exported_encoder, padded, repeatable

BATCH, LONGEST = 384, 48
TEMPERATURE = 0.05


class Texts(IterableDataset[Any]):
    """Endless batches: English for both tokenizers, Chinese, and pairs of a Chinese word and its gloss."""

    def __init__(self, data: Path, seed: int) -> None:
        texts, stories = (read_json(data / f"{name}.json.gz") for name in ("texts", "train"))
        said = [(story["language"], message["text"]) for story in stories for message in story["messages"]]
        self.pieces, self.seed = WordPiece(read_vocabulary(data / "base.vocab.txt")), seed
        own, teacher = Encoding(self.pieces), Encoding(WordPiece(read_vocabulary(data / "teacher.vocab.txt")))
        with Pool() as pool:
            chat = [text for language, text in said if language == "en"]
            self.chat = list(zip(pool.map(own, chat, 2000), pool.map(teacher, chat, 2000), strict=True))
            english = texts["english"]
            self.glosses = list(zip(pool.map(own, english, 2000), pool.map(teacher, english, 2000), strict=True))
            self.chinese = pool.map(own, [text for language, text in said if language != "en"], 2000)
            words, glosses = zip(*texts["pairs"], strict=True)
            encoded = pool.map(own, words, 2000), pool.map(own, glosses, 2000), pool.map(teacher, glosses, 2000)
            self.pairs = list(zip(*encoded, strict=True))

    def __iter__(self) -> Iterator[Any]:
        worker = torch.utils.data.get_worker_info()
        chance = random.Random(self.seed * 1000 + (worker.id if worker else 0))
        while True:
            english = chance.choices(self.glosses, k=BATCH * 2 // 3) + chance.choices(self.chat, k=BATCH // 3)
            pairs = chance.choices(self.pairs, k=BATCH)
            chinese = chance.choices(self.chinese, k=BATCH // 2)
            parts = [
                [own for own, _ in english],
                *([pair[side] for pair in pairs] for side in (0, 1)),
                chinese,
                [teacher for _, teacher in english],
                [pair[2] for pair in pairs],
            ]
            yield [padded(part) for part in parts]


class Encoding:
    """Tokenisation that can be sent to other processes."""

    def __init__(self, pieces: WordPiece) -> None:
        self.pieces = pieces

    def __call__(self, text: str) -> list[int]:
        return [self.pieces.cls, *self.pieces.encode(text, LONGEST), self.pieces.sep]


def mean(encoder: Encoder, ids: Tensor) -> Tensor:
    known = ids > 0
    return (encoder.alone(ids, known) * known[..., None]).sum(1) / known.sum(1, keepdim=True)


def masked(ids: Tensor, mask: int) -> tuple[Tensor, Tensor]:
    """Return ids with a sixth of the tokens masked, and the chosen places (never specials)."""
    chosen = (torch.rand(ids.shape, device=ids.device) < 1 / 6) & (ids > mask)
    return torch.where(chosen, mask, ids), chosen


class Adaptation(nn.Module):
    def __init__(self, base: dict[str, Any], original: dict[str, Any], teacher: dict[str, Any], mask: int) -> None:
        super().__init__()
        self.encoder = Encoder(base, Shape())
        self.frozen = Encoder(original, Shape(dropout=0.0)).requires_grad_(False)
        self.teacher = Encoder(teacher, Shape(layers=6, dropout=0.0)).requires_grad_(False)
        self.to_teacher = nn.Linear(512, 384)
        self.guess = nn.Sequential(nn.Linear(512, 512), nn.GELU(), nn.LayerNorm(512))
        self.bias = nn.Parameter(torch.zeros(len(base["words"])))
        self.mask = mask

    def forward(self, *batch: Tensor) -> Tensor:
        english, words, glosses, chinese, english_t, glosses_t = batch
        with torch.no_grad():
            place, gloss_place = (
                functional.normalize(mean(self.teacher, ids).float()) for ids in (english_t, glosses_t)
            )
            word_states, chinese_states = (self.frozen.alone(ids, ids > 0)[:, 0].float() for ids in (words, chinese))
        sentence, word, gloss = (mean(self.encoder, ids) for ids in (english, words, glosses))
        gloss_states, kept = (self.encoder.alone(ids, ids > 0)[:, 0].float() for ids in (glosses, chinese))
        projected = [functional.normalize(self.to_teacher(x).float()) for x in (sentence, word, gloss)]
        targets = (place, gloss_place, gloss_place)
        near = sum((1 - (x * y).sum(1)).mean() for x, y in zip(projected, targets, strict=True))
        similarity = projected[1] @ gloss_place.T / TEMPERATURE
        contrast = functional.cross_entropy(similarity, torch.arange(len(similarity), device=similarity.device))
        states = ((gloss_states, word_states), (kept, chinese_states))
        anchored = sum((1 - functional.cosine_similarity(x, y)).mean() for x, y in states)
        return near + 0.2 * contrast + anchored + 0.3 * (self.guessing(english) + self.guessing(chinese))

    def guessing(self, ids: Tensor) -> Tensor:
        hidden, chosen = masked(ids, self.mask)
        states = self.guess(self.encoder.alone(hidden, ids > 0)[chosen])
        return functional.cross_entropy(
            (states @ self.encoder.words.weight.T.to(states.dtype)).float() + self.bias, ids[chosen]
        )


def narrowed(weights: dict[str, Any], inner: int) -> dict[str, Any]:
    """Keep the strongest units of each feed-forward layer."""
    out = dict(weights)
    for layer in range(sum(name.endswith("up.weight") for name in weights)):
        up, down = weights[f"{layer}.up.weight"], weights[f"{layer}.down.weight"]
        chosen = np.sort(np.argsort(-np.linalg.norm(up, axis=1) * np.linalg.norm(down, axis=0))[:inner])
        out[f"{layer}.up.weight"], out[f"{layer}.down.weight"] = up[chosen], down[:, chosen]
        out[f"{layer}.up.bias"] = weights[f"{layer}.up.bias"][chosen]
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=2500)
    parser.add_argument("--base", default="base")
    parser.add_argument("--inner", type=int, default=2048, help="width of the feed-forward layers")
    parser.add_argument("--seed", type=int, default=20)
    options = parser.parse_args()
    repeatable()
    torch.manual_seed(options.seed)
    texts = Texts(options.data, options.seed)
    loader = iter(DataLoader(texts, batch_size=None, num_workers=3, prefetch_factor=8))
    base, teacher = (unpack(np.load(options.data / f"{name}.npz")) for name in (options.base, "teacher"))
    model = Adaptation(narrowed(base, options.inner), base, teacher, texts.pieces.ids["[MASK]"]).to(CUDA)
    learned = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(learned, lr=3e-4, weight_decay=0.01, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, 3e-4, options.steps, pct_start=0.05, anneal_strategy="linear"
    )
    began = time.time()
    for step in range(1, options.steps + 1):
        batch = [part.to(CUDA, non_blocking=True) for part in next(loader)]
        with torch.autocast(CUDA, torch.bfloat16):
            loss = model(*batch)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learned, 1.0)
        optimizer.step()
        schedule.step()
        if step % 250 == 0:
            print(f"adapt step {step} loss {loss.item():.3f} {time.time() - began:.0f} s", flush=True)
    np.savez(options.out, **pack(exported_encoder(model.encoder)))


if __name__ == "__main__":
    main()
