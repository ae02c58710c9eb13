"""The demo's networks: a perceptron and a convolutional network for digits, a transformer for characters."""

from __future__ import annotations

import lamina
from lamina import nn
from lamina.nn import functional as F


def perceptron() -> nn.Module:
    """Scores (n, 10) of images (n, 64): two hidden layers."""
    return nn.Sequential(
        nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10)
    )


def convolutional() -> nn.Module:
    """Scores (n, 10) of images (n, 64), which are 8 x 8 pixels."""
    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(128, 10),
    )


class Block(nn.Module):
    """Attention to what came before, then a layer for each place; both added to what comes in."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_layers = nn.LayerNorm(width), nn.LayerNorm(width)
        self.projections, self.joined = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.layers = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: lamina.Tensor) -> lamina.Tensor:
        n, length, width = x.shape
        projections = self.projections(self.before_attention(x))
        heads = projections.view(n, length, 3, self.heads, width // self.heads)
        query, key, value = heads.permute(2, 0, 3, 1, 4).unbind(0)
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.joined(seen.transpose(1, 2).reshape(n, length, width))
        return x + self.layers(self.before_layers(x))


class CharacterModel(nn.Module):
    """Scores (n, length, characters) of the next character, for codes (n, length) of at most `context` characters."""

    def __init__(
        self, characters: int, width: int = 96, heads: int = 4, blocks: int = 3, context: int = 64
    ) -> None:
        super().__init__()
        self.context = context
        self.codes, self.places = nn.Embedding(characters, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(blocks)))
        self.norm, self.scores = nn.LayerNorm(width), nn.Linear(width, characters, bias=False)

    def forward(self, codes: lamina.Tensor) -> lamina.Tensor:
        x = self.codes(codes) + self.places(lamina.arange(codes.size(1)))
        return self.scores(self.norm(self.blocks(x)))

    @lamina.no_grad()
    def sample(self, codes: list[int], count: int, temperature: float = 0.8) -> list[int]:
        """`codes` continued by `count` characters, each drawn by the model's chances."""
        codes = list(codes)
        for _ in range(count):
            seen = lamina.tensor([codes[-self.context :]])
            chances = (self(seen)[0, -1] / temperature).softmax(0)
            draw = lamina.rand(1)
            codes.append(int((chances.cumsum(0) < draw).sum().clamp_max(len(chances) - 1)))
        return codes
