"""What the profiler shows of one product: the call, and the call inside it."""

import torch
from torch.profiler import profile, record_function

a, b = torch.ones(2, 3), torch.ones(3, 2)
with profile(record_shapes=True) as prof:
    with record_function("my block"):
        torch.matmul(a, b)

for event in prof.events():
    depth, parent = 0, event.cpu_parent
    while parent is not None:
        depth, parent = depth + 1, parent.cpu_parent
    print("  " * depth + event.name, event.input_shapes)
