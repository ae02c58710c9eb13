"""Tensors are windows on storages; a storage that cannot be had is an error, and nothing else breaks."""

import torch

x = torch.zeros(1000, 1000)
row = x[1]
print(row.untyped_storage().nbytes(), row.untyped_storage().data_ptr() == x.data_ptr())
print(row.storage_offset(), row.clone().untyped_storage().nbytes())
for sizes in ((2**40, 2**20), (2**62, 4)):
    try:
        torch.empty(*sizes)
    except RuntimeError as error:
        print("refused:", isinstance(error, RuntimeError))
print(torch.ones(2) + 1)
