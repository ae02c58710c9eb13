"""What watching costs: nanoseconds a call with nobody reading, under the profiler, and under explain.

    python bench/watching.py [--json]

Each figure is the best of several rounds, the block's own beginning and end included; ratios are to "off".
"""

import contextlib
import json
import sys
import time

from lamina.profiler import profile

import lamina
from lamina import nn

MODES = {
    "off": contextlib.nullcontext,
    "profiler": profile,
    "profiler, shapes": lambda: profile(record_shapes=True),
    "profiler, stack": lambda: profile(with_stack=True),
    "explain": lamina.explain,
}


def workloads():
    """{name: (function, calls a round)}"""
    lamina.manual_seed(0)
    a, b = lamina.randn(4), lamina.randn(4)
    m = lamina.randn(16, 16)
    w = lamina.randn(4, requires_grad=True)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = lamina.optim.SGD(model.parameters(), lr=0.01)
    x, y = lamina.randn(8, 16), lamina.randint(0, 4, (8,))

    def step():
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return {
        "add(a, b)": (lambda: lamina.add(a, b), 2000),
        "a * b": (lambda: a * b, 2000),
        "a + 1": (lambda: a + 1, 2000),
        "w * b, recorded": (lambda: w * b, 2000),
        "mm 16 x 16": (lambda: lamina.mm(m, m), 2000),
        "MLP training step": (step, 50),
    }


def measure(function, calls: int, mode, rounds: int = 9) -> float:
    """Nanoseconds of one call."""
    best = float("inf")
    for _ in range(rounds):
        begin = time.perf_counter_ns()
        with mode():
            for _ in range(calls):
                function()
        best = min(best, time.perf_counter_ns() - begin)
    return best / calls


def main() -> None:
    lamina.set_num_threads(1)
    table = {
        name: {mode: measure(function, calls, make) for mode, make in MODES.items()}
        for name, (function, calls) in workloads().items()
    }
    if "--json" in sys.argv:
        print(json.dumps(table, indent=1))
        return
    for name, times in table.items():
        off = times["off"]
        shown = ", ".join(f"{mode} {ns:.0f} ns ({ns / off:.2f})" for mode, ns in times.items())
        print(f"{name:20} {shown}")


if __name__ == "__main__":
    main()
