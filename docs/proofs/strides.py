"""A view is other sizes and strides over the same bytes."""

import torch

x = torch.arange(6.0)
v = x.view(2, 3)
print(v.data_ptr() == x.data_ptr(), v.stride(), v.t().stride())
try:
    v.t().view(-1)
except RuntimeError as error:
    print("not compatible with" in str(error))
print(v.t().reshape(-1))
v[0, 0] = 10
print(x)
