"""What a + b costs, from 1 to 4**11 elements: first the call, then the work, then the memory."""

import time

import torch

torch.set_num_threads(1)


def seconds(a, b):
    """The fastest of several stretches of calls, per call."""
    calls = max(2, 50_000 // (a.numel() // 4 + 100))
    best = float("inf")
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(calls):
            a + b
        best = min(best, (time.perf_counter() - begin) / calls)
    return best


costs = []
for power in range(12):
    a, b = torch.ones(4**power), torch.ones(4**power)
    costs.append(seconds(a, b))

print(f"{'elements':>10} {'one a + b':>12} {'an element':>12}")
for power, cost in enumerate(costs):
    print(f"{4**power:>10} {cost * 1e6:>9.2f} us {cost / 4**power * 1e9:>9.3f} ns")

print("\none a + b, each further mark twice the time")
for power, cost in enumerate(costs):
    marks = 1
    while cost > costs[0] * 2**marks:
        marks += 1
    print(f"{'4**' + str(power):>10} |{'*' * marks}")
