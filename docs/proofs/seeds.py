"""The same seed gives the same numbers as in PyTorch."""

import torch

torch.manual_seed(0)
print(torch.rand(3))
print(torch.randint(0, 100, (5,)))
print(torch.randn(3))
