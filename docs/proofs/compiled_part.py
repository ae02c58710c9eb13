"""Where the compiled part of the package lies, and how large it is."""

import os

import torch

folder = os.path.dirname(torch.__file__)
print("extension module:", os.path.relpath(torch._C.__file__, folder))
total = 0
for parent, _, files in os.walk(folder, followlinks=True):
    for name in sorted(files):
        path = os.path.join(parent, name)
        if ".so" in name:
            size = os.path.getsize(path)
            total += size
            print(f"{os.path.relpath(path, folder)}: {size / 1e6:.1f} MB")
print(f"compiled, in all: {total / 1e6:.1f} MB")
print("a method of Tensor is", type(torch.Tensor.add).__name__, "and no Python function")
