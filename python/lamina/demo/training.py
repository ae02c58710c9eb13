"""Training loops of the demo, which tell what they do as they go and keep the best."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import lamina
from lamina import nn
from lamina.demo import digits
from lamina.demo.networks import CharacterModel
from lamina.nn import functional as F
from lamina.optim import SGD, AdamW
from lamina.optim.lr_scheduler import CosineAnnealingLR, LambdaLR
from lamina.utils.data import DataLoader, TensorDataset


@dataclass
class Curve:
    """What a training showed: the loss of each step, and how well it did now and then."""

    name: str
    losses: list[float] = field(default_factory=list)
    checks: list[tuple[int, float]] = field(default_factory=list)  # step, accuracy or held-out loss


@dataclass(frozen=True)
class Step:
    """One step of a training: how many samples it took and its loss."""

    samples: int
    loss: float


@lamina.inference_mode()
def accuracy(model: nn.Module, images: lamina.Tensor, labels: lamina.Tensor) -> float:
    """The share of images whose highest score is their label."""
    model.eval()
    share = (model(images).argmax(1) == labels).float().mean().item()
    model.train()
    return share


def train_digits(
    model: nn.Module, data: tuple[lamina.Tensor, ...], epochs: int, curve: Curve, keep: Path
) -> Iterator[Step]:
    """Trains on (images, labels, test images, test labels) and saves the state that tests best in `keep`."""
    images, labels, test_images, test_labels = data
    loader = DataLoader(TensorDataset(images, labels), batch_size=32, shuffle=True)
    optimizer = SGD(model.parameters(), lr=0.05, momentum=0.9)
    schedule = CosineAnnealingLR(optimizer, epochs)
    best = -1.0
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            curve.losses.append(loss.item())
            yield Step(len(y), curve.losses[-1])
        schedule.step()
        share = accuracy(model, test_images, test_labels)
        curve.checks.append((len(curve.losses), share))
        if share > best:
            best = share
            lamina.save({"model": model.state_dict(), "accuracy": share}, keep)


@dataclass(frozen=True)
class Text:
    """A text as codes of its characters, in the order of their code points."""

    characters: str
    train: lamina.Tensor
    held_out: lamina.Tensor

    @classmethod
    def read(cls, path: Path) -> Text:
        """The last twentieth is held out. Raises OSError or ValueError for what is no compressed text."""
        with gzip.open(path, "rt", encoding="utf-8") as file:
            text = file.read()
        if len(text) < 2000:
            raise ValueError(f"{path}: expected at least 2,000 characters; got {len(text)}")
        characters = "".join(sorted(set(text)))
        place = {c: i for i, c in enumerate(characters)}
        codes = lamina.tensor([place[c] for c in text])
        split = len(codes) * 19 // 20
        return cls(characters, codes[:split], codes[split:])

    def encode(self, text: str) -> list[int]:
        return [self.characters.index(c) for c in text]

    def decode(self, codes: list[int]) -> str:
        return "".join(self.characters[c] for c in codes)


def windows(
    codes: lamina.Tensor, starts: lamina.Tensor, length: int
) -> tuple[lamina.Tensor, lamina.Tensor]:
    """Pieces of `length` characters from `starts` on, and what follows each of their characters."""
    at = starts.unsqueeze(1) + lamina.arange(length + 1)
    pieces = codes[at]
    return pieces[:, :-1], pieces[:, 1:]


def train_text(
    model: CharacterModel, text: Text, steps: int, curve: Curve, keep: Path, batch: int = 16
) -> Iterator[Step]:
    """Trains on random pieces of the text and saves the state with the least held-out loss in `keep`."""
    optimizer = AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    warm = max(1, steps // 20)
    schedule = LambdaLR(
        optimizer, lambda i: min((i + 1) / warm, (steps - i) / max(steps - warm, 1))
    )
    starts = lamina.linspace(0, len(text.held_out) - model.context - 1, 32).to(lamina.int64)
    held_out = windows(text.held_out, starts, model.context)
    best = float("inf")
    for step in range(steps):
        chosen = lamina.randint(0, len(text.train) - model.context, (batch,))
        x, y = windows(text.train, chosen, model.context)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        curve.losses.append(loss.item())
        yield Step(y.numel(), curve.losses[-1])
        if (step + 1) % max(1, steps // 10) == 0 or step + 1 == steps:
            with lamina.inference_mode():
                check = F.cross_entropy(model(held_out[0]).flatten(0, 1), held_out[1].flatten())
            curve.checks.append((len(curve.losses), check.item()))
            if check.item() < best:
                best = check.item()
                state = {"model": model.state_dict(), "characters": text.characters, "loss": best}
                lamina.save(state, keep)


def load_digits(path: Path | None) -> tuple[lamina.Tensor, ...]:
    """Training images and labels, test images and labels."""
    return digits.split(*digits.load(path or digits.default_data()))
