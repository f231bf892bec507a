"""The reranker in PyTorch: a BERT encoder whose question reads the message, but whose message never reads the question.

Message states therefore don't depend on the question and can be computed once per message. In the first `separate`
layers the question reads only itself; in the others it reads the message too. The score comes from the [CLS] state."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from .batches import KINDS
from .quantise import Arrays

HEADS_OF = {512: 8, 384: 12}
MESSAGE_POSITION = 64  # position of a message's first token: independent of the question's length
AGES = 16


@dataclass(frozen=True)
class Shape:
    layers: int = 4
    separate: int = 0  # layers in which the question does not read the message
    symmetric: bool = False  # True: messages read the question too (a plain cross-encoder)
    ages: bool = True
    dropout: float = 0.1


class Layer(nn.Module):
    def __init__(self, width: int, inner: int, shape: Shape) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        self.norm1, self.norm2 = nn.LayerNorm(width, 1e-12), nn.LayerNorm(width, 1e-12)
        self.heads, self.shape = HEADS_OF[width], shape

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        batch, length, width = x.shape
        split = (batch, length, self.heads, width // self.heads)
        q, k, v = (part(x).view(split).transpose(1, 2) for part in (self.query, self.key, self.value))
        rate = self.shape.dropout if self.training else 0.0
        read = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=rate)
        read = self.out(read.transpose(1, 2).reshape(batch, length, width))
        x = self.norm1(x + functional.dropout(read, self.shape.dropout, self.training))
        inner = self.down(functional.gelu(self.up(x), approximate="tanh"))
        return self.norm2(x + functional.dropout(inner, self.shape.dropout, self.training))


class Encoder(nn.Module):
    """Embeddings and layers, from stored weights."""

    def __init__(self, weights: Arrays, shape: Shape) -> None:
        super().__init__()
        width, inner = weights["words"].shape[1], weights["0.up.weight"].shape[0]
        self.words = nn.Embedding(*weights["words"].shape)
        self.positions = nn.Embedding(*weights["positions"].shape)
        self.types = nn.Embedding(2, width)
        self.norm0 = nn.LayerNorm(width, 1e-12)
        self.layers = nn.ModuleList(Layer(width, inner, shape) for _ in range(shape.layers))
        self.shape = shape
        self.load(weights)

    def load(self, weights: Arrays) -> None:
        own = self.state_dict()
        for name, value in own.items():
            stored = name.removeprefix("layers.")
            if stored in ("words.weight", "positions.weight", "types.weight"):
                stored = stored.removesuffix(".weight")
            value.copy_(torch.from_numpy(np.ascontiguousarray(weights[stored])))

    def embed(self, ids: Tensor, start: int, kind: int) -> Tensor:
        positions = torch.arange(start, start + ids.shape[1], device=ids.device)
        x = self.words(ids) + self.positions(positions) + self.types.weight[kind]
        return functional.dropout(self.norm0(x), self.shape.dropout, self.training)

    def alone(self, ids: Tensor, known: Tensor) -> Tensor:
        """Encode texts on their own, as the base model does."""
        x = self.embed(ids, 0, 0)
        for layer in self.layers:
            x = layer(x, known[:, None, None, :])
        return x


class Reranker(nn.Module):
    def __init__(self, weights: Arrays, shape: Shape) -> None:
        super().__init__()
        self.encoder = Encoder(weights, shape)
        width = weights["words"].shape[1]
        self.age, self.rank = nn.Embedding(AGES, width), nn.Embedding(AGES, width)
        nn.init.zeros_(self.age.weight)
        nn.init.zeros_(self.rank.weight)
        self.pool, self.score = nn.Linear(width, 128), nn.Linear(128, 1)
        self.kind = nn.Linear(width, len(KINDS))
        self.shape = shape

    def states(self, question: Tensor, message: Tensor, age: Tensor, rank: Tensor) -> tuple[Tensor, Tensor]:
        """Return the final [CLS] states of questions (rows of ids, 0 = padding) and the mean states of messages."""
        length = question.shape[1]
        x = torch.cat([self.encoder.embed(question, 0, 0), self.encoder.embed(message, MESSAGE_POSITION, 1)], 1)
        known = torch.cat([question, message], 1) > 0
        apart = torch.zeros(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device)
        apart[:length, :length] = apart[length:, length:] = True
        joint = apart.clone()
        joint[:length] = True
        if self.shape.symmetric:
            joint[:] = True
        for number, layer in enumerate(self.encoder.layers):
            if number == self.shape.separate and self.shape.ages:
                x = torch.cat([x[:, :1] + (self.age(age) + self.rank(rank))[:, None], x[:, 1:]], 1)
            said = x
            allowed = apart if number < self.shape.separate else joint
            x = layer(x, allowed[None, None] & known[:, None, None, :])
        there = (message > 0)[..., None]
        return x[:, 0], (said[:, length:] * there).sum(1) / there.sum(1)

    def forward(self, question: Tensor, message: Tensor, age: Tensor, rank: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits of the pairs, and of the kinds of their messages (learned besides, not used later)."""
        state, said = self.states(question, message, age, rank)
        with torch.autocast(state.device.type, enabled=False):
            state = functional.dropout(state.float(), self.shape.dropout, self.training)
            return self.score(torch.tanh(self.pool(state)))[:, 0], self.kind(said.float())
