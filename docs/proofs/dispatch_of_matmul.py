"""matmul only calls others; mm has a kernel and a layer above it that records. Two vectors go to dot."""

import torch

for name in ("aten::matmul", "aten::mm"):
    print(name)
    for line in torch._C._dispatch_dump_table(name).splitlines():
        if line.startswith(("CPU:", "AutogradCPU:")):
            key, _, entry = line.partition(": ")
            print(f"  {key}: {entry[entry.rindex('[') :]}")

print("aten::add.Tensor" in torch._C._dispatch_get_all_op_names())
v = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
print(torch.matmul(v, v).grad_fn.name())
