"""Makes the archives beside this file, and what they give, with PyTorch 2.13.0: ``python make_archives.py``."""

import enum
from pathlib import Path
from typing import Final, NamedTuple

import torch
from torch import nn

HERE = Path(__file__).parent


@torch.jit.interface
class Layer(nn.Module):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        pass


class Point(NamedTuple):
    a: torch.Tensor
    b: int


class Color(enum.Enum):
    R = 1
    G = 2


@torch.jit.script
class Sum:
    def __init__(self, n: int):
        self.n = n
        self.seen: list[int] = []

    def add(self, x: int) -> int:
        self.n += x
        self.seen.append(x)
        return self.n


@torch.jit.script
def twice(x, n: int = 2):
    return x * n


class Control(nn.Module):
    K: Final[int] = 3
    layer: Layer
    table: dict[str, int]
    cache: dict[str, torch.Tensor]

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])
        self.layer = nn.Linear(3, 3)
        self.kinds = nn.ModuleDict({"a": nn.Tanh()})
        self.register_buffer("shift", torch.arange(3.0))
        self.table, self.cache = {"x": 1, "y": 2}, {}
        self.reals = [1.5, float("inf"), float("nan")]
        self.kind = torch.float64
        self.where = torch.device("cpu")
        self.names = ["p", "q"]
        self.mixed = (1, "z", torch.ones(1))
        self.color = Color.G

    @torch.jit.export
    def other(
        self, x: torch.Tensor, y: torch.Tensor | None = None, mode: str = "sum"
    ) -> tuple[torch.Tensor, int]:
        if y is not None:
            x = x + y
        if mode == "sum":
            r = x.sum()
        elif mode == "mean":
            r = x.mean()
        else:
            raise ValueError(f"bad mode {mode}")
        return r, len(mode)

    def forward(self, x: torch.Tensor, n: int = 3, k: int | str = 3) -> dict[str, torch.Tensor]:
        out: dict[str, torch.Tensor] = {}
        parts: list[torch.Tensor] = []
        for layer in self.layers:
            x = torch.relu(layer(x))
            parts.append(x)
        i = 0
        while i < n and bool(x.sum() < 1e6):
            x = x * 2 + self.shift
            i += 1
            if i == 5:
                continue
            if i > 7:
                break
        if isinstance(k, int):
            x = x + k
        for name in self.names:
            out[name] = x * self.table["x"]
        total = Sum(2)
        total.add(4)
        point = Point(x, total.n // 2)
        out["point"] = point.a + point.b
        out["numbers"] = torch.tensor(
            [float(-n // 2), float(-n % 2), n / 2, float(n**3), float(n), float(round(2.5))]
        )
        out["list"] = torch.tensor([v * 2 for v in [1, 2, 3]])
        for key, v in self.table.items():
            out[key] = torch.full((2,), float(v), dtype=self.kind)
        out["cat"] = torch.cat(parts, dim=0)[1:, ..., ::2]
        out["twice"] = twice(self.kinds["a"](x))
        out["mask"] = x[x > 0]
        y = x.clone()
        y[0, 1] = 5.0
        y[:, 2] += 1
        out["written"] = y
        if self.color == Color.G:
            out["color"] = torch.ones(1) * self.color.value
        if "c" not in self.cache:
            self.cache["c"] = x
        out["cached"] = self.cache["c"]
        del self.cache["c"]
        some = [1, 2, 3, 4][1:3]
        some[0] = 9
        some += [7]
        some.insert(0, 3)
        some.sort()
        out["some"] = torch.tensor(some)
        large, where = torch.max(x, 1)
        out["max"] = large + where
        out["to"] = torch.zeros(2, 3, dtype=torch.int64).to(torch.float32) + x.size(0)
        text = f"%d-%s {n}" % (n, "q")
        out["text"] = torch.tensor([len(text), len(text.split("-")), text.find("q")])
        out["layer"] = self.layer.forward(x)
        out["softmax"] = torch.softmax(x, dim=1, dtype=torch.float64)
        out["einsum"] = torch.einsum("ij,kj->ik", x, x)
        a, b, c = torch.split(x, 1, dim=1)
        out["split"] = a + b + c
        assert x.dim() == 2, "two dimensions"
        return out


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(7, 3)
        self.lstm = nn.LSTM(3, 4, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(8, 3)

    def forward(self, x):
        y, (h, c) = self.lstm(self.embed(x))
        z, last = self.gru(y)
        return z, last, h, c


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.pool, self.drop = nn.MaxPool2d(2), nn.Dropout(0.2)
        self.last = nn.Linear(64, 5)

    def forward(self, x):
        x = self.pool(torch.nn.functional.gelu(self.norm(self.conv(x))))
        return torch.log_softmax(self.last(self.drop(torch.flatten(x, 1))), -1)


def products(x, y):
    return (x @ y).softmax(-1) + x[:, :1].expand(x.shape[0], y.shape[1]), {"a": x.mean()}


if __name__ == "__main__":
    torch.manual_seed(0)
    x, y, image = torch.randn(2, 3), torch.randn(3, 4), torch.randn(2, 1, 8, 8)
    words = torch.randint(0, 7, (2, 5))
    made = {
        "control": (torch.jit.script(Control()), (x, 3, 3)),
        "recurrent": (torch.jit.trace(Recurrent().eval(), words), (words,)),
        "frozen": (torch.jit.freeze(torch.jit.script(Images().eval())), (image,)),
        "function": (torch.jit.trace(products, (x, y), strict=False), (x, y)),
    }
    for name, (module, arguments) in made.items():
        torch.jit.save(
            module, str(HERE / f"{name}.pt"), _extra_files={"note.txt": f"this is {name}"}
        )
        again = torch.jit.load(str(HERE / f"{name}.pt")).eval()
        with torch.no_grad():
            torch.save((arguments, again(*arguments)), HERE / f"{name}.expected.pt")
