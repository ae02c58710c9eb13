"""A product of two matrices, and the gradients that come back through it."""

import torch


def operands():
    a = torch.tensor([[1.0, 2, 3], [4, 5, 6]], requires_grad=True)
    b = torch.tensor([[7.0, 8], [9, 10], [11, 12]], requires_grad=True)
    return a, b


a, b = operands()
c = a @ b
print(c)
c.sum().backward()
print(a.grad, b.grad, sep="\n")

a, b = operands()
(a @ b).mean().backward()
print(a.grad * 4, "/ 4")

with torch.no_grad():
    print((a @ b).grad_fn)
