"""The digits, and a network and its training in tensors and gradients alone; examples/cpp/digits.cpp is the same in C++."""

import csv
import gzip
from collections.abc import Iterator
from pathlib import Path

import lamina
from lamina.nn import functional as F

SIZES = (64, 128, 64, 10)
TEST_COUNT = 360
SPLIT_SEED = 0


def default_data(name: str = "digits.csv.gz") -> Path:
    """A shipped file: beside this one once installed, under examples/ in a checkout."""
    here = Path(__file__).resolve()
    places = [here.with_name(name)]
    places += [parent / "examples" / "data" / name for parent in here.parents[:4]]
    for place in places:
        if place.exists():
            return place
    return places[0]


def load(path: Path) -> tuple[lamina.Tensor, lamina.Tensor]:
    """Images (n, 64) with values from 0 to 1, and labels (n,), in the order of the file."""
    with gzip.open(path, "rt", newline="") as file:
        rows = lamina.tensor([[int(field) for field in row] for row in csv.reader(file)])
    if rows.dim() != 2 or rows.size(1) != 65:
        raise ValueError(f"{path}: expected lines of 64 pixels and a label")
    return rows[:, :64].float() / 16, rows[:, 64]


def split(images: lamina.Tensor, labels: lamina.Tensor) -> tuple[lamina.Tensor, ...]:
    """Training images and labels, test images and labels; the same for every run."""
    lamina.manual_seed(SPLIT_SEED)
    order = lamina.randperm(len(labels))
    test, train = order[:TEST_COUNT], order[TEST_COUNT:]
    return images[train], labels[train], images[test], labels[test]


class Classifier:
    """Two hidden layers with ReLU; weights drawn with variance 2 / inputs (He et al., 2015)."""

    def __init__(self, sizes: tuple[int, ...] = SIZES):
        self.weights = [
            (lamina.randn(outputs, inputs) * (2 / inputs) ** 0.5).requires_grad_()
            for inputs, outputs in zip(sizes, sizes[1:])
        ]
        self.biases = [lamina.zeros(outputs, requires_grad=True) for outputs in sizes[1:]]

    def parameters(self) -> list[lamina.Tensor]:
        return [*self.weights, *self.biases]

    def __call__(self, x: lamina.Tensor) -> lamina.Tensor:
        """Scores (n, 10) of images (n, 64)."""
        for weight, bias in zip(self.weights[:-1], self.biases[:-1]):
            x = F.relu(F.linear(x, weight, bias))
        return F.linear(x, self.weights[-1], self.biases[-1])


class Momentum:
    """Stochastic gradient descent: v = momentum v + gradient, p = p - rate v."""

    def __init__(self, parameters: list[lamina.Tensor], momentum: float = 0.9):
        self.parameters = parameters
        self.velocities = [lamina.zeros_like(p) for p in parameters]
        self.momentum = momentum

    @lamina.no_grad()
    def step(self, rate: float) -> None:
        for p, v in zip(self.parameters, self.velocities):
            v.mul_(self.momentum).add_(p.grad)
            p.sub_(v, alpha=rate)
            p.grad = None


def train(
    model: Classifier,
    images: lamina.Tensor,
    labels: lamina.Tensor,
    epochs: int,
    batch: int = 32,
    rate: float = 0.1,
) -> Iterator[tuple[int, lamina.Tensor]]:
    """Train, yielding (samples, loss) after each step; the rate falls linearly to zero."""
    optimizer = Momentum(model.parameters())
    for epoch in range(epochs):
        order = lamina.randperm(len(labels))
        for start in range(0, len(labels), batch):
            chosen = order[start : start + batch]
            loss = F.cross_entropy(model(images[chosen]), labels[chosen])
            loss.backward()
            optimizer.step(rate * (1 - epoch / epochs))
            yield len(chosen), loss.detach()


@lamina.no_grad()
def accuracy(model: Classifier, images: lamina.Tensor, labels: lamina.Tensor) -> float:
    """The share of images whose highest score is their label."""
    return (model(images).argmax(1) == labels).float().mean().item()
