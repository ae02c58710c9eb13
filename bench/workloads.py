"""Calls whose speed is measured; run by compare.py in one process a module.

python workloads.py MODULE [--group NAMES] [--threads N] [--budget SECONDS] prints a JSON object:
seconds per call by "group/name", null where the module cannot run the call.
"""

import argparse
import importlib
import json
import sys
import time

GROUPS = {}


def group(function):
    GROUPS[function.__name__] = function
    return function


@group
def overhead(t):
    """One element: the cost of a call itself."""
    a, b, out = t.ones(1), t.ones(1), t.empty(1)
    m = t.ones(2, 2)
    leaf = t.ones(1, requires_grad=True)
    row = t.arange(6)
    index = t.zeros(1, dtype=t.int64)

    def block():
        with t.no_grad():
            pass

    return {
        "add": lambda: a + b,
        "add_function": lambda: t.add(a, b),
        "add_alpha": lambda: t.add(a, b, alpha=2),
        "add_scalar": lambda: a + 1.0,
        "add_out": lambda: t.add(a, b, out=out),
        "add_inplace": lambda: a.add_(b),
        "relu": lambda: t.relu(a),
        "sum": lambda: a.sum(),
        "matmul": lambda: m @ m,
        "view": lambda: m.view(4),
        "transpose": lambda: m.t(),
        "getitem_int": lambda: row[2],
        "getitem_slice": lambda: row[1:4],
        "getitem_tensor": lambda: a[index],
        "setitem": lambda: a.__setitem__(0, 1.0),
        "shape": lambda: a.shape,
        "item": lambda: a.item(),
        "empty": lambda: t.empty(1),
        "from_list": lambda: t.tensor([1.0, 2.0, 3.0]),
        "cat": lambda: t.cat((a, b)),
        "add_recorded": lambda: leaf + b,
        "backward": lambda: (leaf * b).sum().backward(),
        "no_grad": block,
    }


@group
def pointwise(t):
    """Elementwise work at the speed of memory."""
    n = 4_000_000
    a, b, out = t.rand(n), t.rand(n), t.empty(n)
    square = t.rand(2000, 2000)
    half = t.rand(n).to(t.bfloat16)
    small = t.rand(10_000)
    return {
        "add_10k": lambda: small + small,
        "add_4m": lambda: a + b,
        "add_out_4m": lambda: t.add(a, b, out=out),
        "add_transposed": lambda: square + square.t(),
        "add_row": lambda: square + square[0],
        "mixed_types": lambda: half + b,
        "to_bfloat16": lambda: a.to(t.bfloat16),
        "exp": lambda: t.exp(a),
        "tanh": lambda: t.tanh(a),
        "where": lambda: t.where(a > 0.5, a, b),
        "contiguous": lambda: square.t().contiguous(),
    }


@group
def reduce(t):
    """Sums and their kin."""
    a, square = t.rand(4_000_000), t.rand(2000, 2000)
    return {
        "sum": lambda: a.sum(),
        "sum_rows": lambda: square.sum(1),
        "sum_columns": lambda: square.sum(0),
        "argmax_rows": lambda: square.argmax(1),
        "var_rows": lambda: square.var(1),
        "softmax_rows": lambda: t.softmax(square, 1),
        "cumsum_rows": lambda: square.cumsum(1),
    }


@group
def gemm(t):
    """Products of matrices."""
    calls = {}
    for n in (4, 16, 64, 128, 256, 512, 1024):
        a, b = t.rand(n, n), t.rand(n, n)
        calls[f"mm_{n}"] = lambda a=a, b=b: a @ b
    c = t.rand(64, 64, 64)
    calls["bmm_64"] = lambda: t.bmm(c, c)
    half = t.rand(512, 512).to(t.bfloat16)
    calls["mm_512_bfloat16"] = lambda: half @ half
    weight, bias, x = t.rand(3072, 768), t.rand(3072), t.rand(128, 768)
    calls["linear"] = lambda: t.nn.functional.linear(x, weight, bias)
    return calls


@group
def train(t):
    """Training steps written with plain tensors: recording, backward, and the optimizer's writes."""

    def network(sizes, batch):
        t.manual_seed(0)
        weights = [t.randn(i, o) * 0.1 for i, o in zip(sizes, sizes[1:], strict=False)]
        parameters = [p.requires_grad_() for w in weights for p in (w, t.zeros(w.shape[1]))]
        x, y = t.randn(batch, sizes[0]), t.randint(0, sizes[-1], (batch,))

        def loss():
            h = x
            for i in range(0, len(parameters), 2):
                h = t.addmm(parameters[i + 1], h, parameters[i])
                if i + 2 < len(parameters):
                    h = h.relu()
            return t.nn.functional.cross_entropy(h, y)

        return parameters, loss

    def sgd(sizes, batch):
        parameters, loss = network(sizes, batch)
        momentum = [t.zeros(p.shape) for p in parameters]

        def step():
            for p in parameters:
                p.grad = None
            loss().backward()
            with t.no_grad():
                for p, m in zip(parameters, momentum, strict=True):
                    m.mul_(0.9).add_(p.grad)
                    p.add_(m, alpha=-1e-3)

        return step

    def adamw(sizes, batch):
        parameters, loss = network(sizes, batch)
        means = [t.zeros(p.shape) for p in parameters]
        squares = [t.zeros(p.shape) for p in parameters]
        count = 0

        def step():
            nonlocal count
            count += 1
            for p in parameters:
                p.grad = None
            loss().backward()
            rate = 1e-3 / (1 - 0.9**count)
            scale = (1 - 0.999**count) ** 0.5
            with t.no_grad():
                for p, m, v in zip(parameters, means, squares, strict=True):
                    p.mul_(1 - 1e-5)
                    m.lerp_(p.grad, 0.1)
                    v.mul_(0.999).addcmul_(p.grad, p.grad, value=0.001)
                    p.addcdiv_(m, v.sqrt().div_(scale).add_(1e-8), value=-rate)

        return step

    leaf, one = t.ones(1, requires_grad=True), t.ones(1)

    def chain():
        y = leaf
        for _ in range(100_000):
            y = y * one
        y.backward()

    return {
        "mlp_tiny_sgd": sgd((16, 32, 4), 8),
        "mlp_digits_adamw": adamw((64, 128, 128, 10), 64),
        "chain_100000": chain,
    }


def seconds_per_call(call, budget, rounds=5):
    """The smallest mean over some rounds that fill the budget."""
    call()
    began = time.perf_counter()
    call()
    count = max(1, int(budget / rounds / max(time.perf_counter() - began, 1e-8)))
    best = float("inf")
    for _ in range(rounds):
        began = time.perf_counter()
        for _ in range(count):
            call()
        best = min(best, (time.perf_counter() - began) / count)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("module")
    parser.add_argument("--group", default=",".join(GROUPS))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--budget", type=float, default=0.25)
    options = parser.parse_args()
    began = time.perf_counter()
    module = importlib.import_module(options.module)
    results = {"import": time.perf_counter() - began}
    module.set_num_threads(options.threads)
    module.manual_seed(0)
    for name in options.group.split(","):
        if name not in GROUPS:
            sys.exit(f"no group {name!r}; there are {', '.join(GROUPS)}")
        for call_name, call in GROUPS[name](module).items():
            try:
                results[f"{name}/{call_name}"] = seconds_per_call(call, options.budget)
            except Exception as error:
                print(f"{name}/{call_name}: {type(error).__name__}: {error}", file=sys.stderr)
                results[f"{name}/{call_name}"] = None
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
