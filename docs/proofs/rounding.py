"""float32 has 24 bits; types are converted once, at the edge of a block."""

import torch

big = torch.tensor(1e8)
print((big + 1) - big)
half = torch.full((4,), 0.1, dtype=torch.bfloat16)
print((half + torch.ones(4)).dtype, half + torch.ones(4))
print((torch.ones(3, 1) + torch.arange(4)).shape)
