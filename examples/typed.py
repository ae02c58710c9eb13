"""A training loop whose types a checker can follow: ``mypy examples/typed.py``."""

from __future__ import annotations

from collections.abc import Iterator

from lamina.nn import functional as F
from lamina.utils.data import DataLoader, TensorDataset

import lamina
from lamina import Tensor, nn


class Curve(nn.Module):
    """Two layers from a number to a number."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(1, width)
        self.outer = nn.Linear(width, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(F.silu(self.inner(x)))


def points(count: int) -> TensorDataset:
    x = lamina.linspace(-3, 3, count).unsqueeze(1)
    return TensorDataset(x, x.sin())


def batches(loader: DataLoader[tuple[Tensor, ...]], epochs: int) -> Iterator[tuple[Tensor, Tensor]]:
    for _ in range(epochs):
        for x, y in iter(loader):
            yield x.contiguous(), y.contiguous()


def train(model: Curve, epochs: int = 30) -> float:
    optimizer = lamina.optim.AdamW(model.parameters(), lr=0.02)
    loader = DataLoader(points(128), batch_size=32, shuffle=True)
    loss: Tensor = lamina.zeros(())
    for x, y in batches(loader, epochs):
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss)


def largest_error(model: Curve) -> tuple[float, int]:
    x, y = points(64).tensors
    with lamina.no_grad():
        found = (model(x) - y).abs().flatten().max(0)
    return found.values.item(), int(found.indices)


def main() -> None:
    lamina.manual_seed(0)
    model = Curve(32)
    print(f"loss {train(model):.4f}, largest error {largest_error(model)[0]:.2f}")


if __name__ == "__main__":
    main()
