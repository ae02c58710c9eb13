"""A result's shape is known without its elements, and a wrong one is told before any work."""

import torch

a = torch.empty(100_000, 50_000, device="meta")
b = torch.empty(50_000, 70_000, device="meta")
print((a @ b).shape, (a + 1).sum(0).shape)

try:
    torch.ones(2, 3) @ torch.ones(4, 5)
except RuntimeError as error:
    print(error)
