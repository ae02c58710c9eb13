"""The recorded program of a small network, from its sum back to its parameters."""

import torch
from torch import nn

net = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 10))
inputs = torch.randn(64, 128)
total = net(inputs).sum()


def show(node, depth=0):
    print("  " * depth + type(node).__name__)
    for below, _ in node.next_functions:
        if below is not None:
            show(below, depth + 1)


show(total.grad_fn)
print("inputs:", inputs.grad_fn, "| a parameter:", net[0].weight.grad_fn)
total.backward()
print([tuple(p.grad.shape) for p in net.parameters()])
