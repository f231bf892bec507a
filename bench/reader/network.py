"""The reader in PyTorch: a BERT encoder with three heads, started from an embedding model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import BertConfig, BertModel

from jiyi.reader.pairs import new_tokenizer, read_vocabulary

from .lists import KINDS

HEADS = ("answers", "changes", "supports")
OUTPUTS = {"answers": 1, "changes": 3, "supports": 1}
ATTENTION_HEADS = {384: 12, 512: 8}
SCALE = "#scale"
PARTS = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "out": "attention.output.dense",
    "norm1": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "norm2": "output.LayerNorm",
}
TABLES = {"words": "word_embeddings", "positions": "position_embeddings", "types": "token_type_embeddings"}


def tokenizer_of(vocabulary: Path) -> Any:
    return new_tokenizer(read_vocabulary(vocabulary))


class ReaderNetwork(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.encoder = BertModel(config, add_pooling_layer=False)
        width = config.hidden_size
        self.pool = nn.ModuleDict({name: nn.Linear(width, 128) for name in HEADS})
        self.head = nn.ModuleDict({name: nn.Linear(128, OUTPUTS[name]) for name in HEADS})
        self.kind = nn.Linear(width, len(KINDS))
        self.dropout = nn.Dropout(0.1)

    def states(self, ids: Tensor, types: Tensor) -> Tensor:
        return self.encoder(ids, attention_mask=(ids > 0).long(), token_type_ids=types).last_hidden_state[:, 0]

    def judge(self, state: Tensor, head: str) -> Tensor:
        return self.head[head](torch.tanh(self.pool[head](self.dropout(state))))


def unpack(stored: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[np.float32]]:
    """Return the weights of a base model, which are stored as int8 with a scale per row."""
    out = {name: stored[name].astype(np.float32) for name in stored if not name.endswith(SCALE)}
    for name in out:
        if name + SCALE in stored:
            out[name] *= stored[name + SCALE].astype(np.float32)
    return out


def network_of(base: Path, dropout: float = 0.1) -> ReaderNetwork:
    """Return a reader whose encoder has the weights of a base model."""
    weights = unpack(np.load(base))
    layers = 1 + max(int(name.split(".")[0]) for name in weights if name[0].isdigit())
    width = weights["words"].shape[1]
    config = BertConfig(
        vocab_size=weights["words"].shape[0], hidden_size=width, num_hidden_layers=layers,
        num_attention_heads=ATTENTION_HEADS[width], intermediate_size=weights["0.up.weight"].shape[0],
        hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout,
        max_position_embeddings=weights["positions"].shape[0],
    )  # fmt: skip
    network = ReaderNetwork(config)
    state = {}
    for name, value in weights.items():
        if name in TABLES:
            target = f"embeddings.{TABLES[name]}.weight"
        elif name.startswith("norm0."):
            target = f"embeddings.LayerNorm.{name.removeprefix('norm0.')}"
        else:
            layer, part, kind = name.split(".")
            target = f"encoder.layer.{layer}.{PARTS[part]}.{kind}"
        state[target] = torch.from_numpy(np.ascontiguousarray(value))
    missing, unexpected = network.encoder.load_state_dict(state, strict=False)
    assert not unexpected and all("position_ids" in name for name in missing), (missing, unexpected)
    return network


def padded(rows: Sequence[tuple[list[int], int]]) -> tuple[Tensor, Tensor]:
    length = max(len(ids) for ids, _ in rows)
    ids = np.zeros((len(rows), length), np.int64)
    types = np.zeros((len(rows), length), np.int64)
    for at, (row, first) in enumerate(rows):
        ids[at, : len(row)] = row
        types[at, first : len(row)] = 1
    return torch.from_numpy(ids), torch.from_numpy(types)
