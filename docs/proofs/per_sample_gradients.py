"""The same gradients of samples by a loop and by vmap; a Hessian by two ways to take it."""

import torch
from torch.func import grad, hessian, jacfwd, jacrev, vmap

weight = torch.tensor([[0.5, -1.0], [0.25, 2.0]], dtype=torch.float64)
samples = torch.linspace(-1, 1, 6, dtype=torch.float64).reshape(3, 2)


def loss(w, x):
    return (w @ x).sin().pow(2).sum()


at_once = vmap(grad(loss), in_dims=(None, 0))(weight, samples)
one_by_one = torch.stack([grad(loss)(weight, x) for x in samples])
print(tuple(at_once.shape), torch.allclose(at_once, one_by_one))
print(at_once[0])

full = hessian(loss)(weight, samples[0])
print(tuple(full.shape), torch.allclose(full, jacrev(jacfwd(loss))(weight, samples[0])))
one = torch.tensor(1.0)
print(grad(lambda x: x * grad(lambda y: x + y)(one))(one).item())
