"""A step of training: modules, a loss, gradients, an optimizer; then its file, and what comes back from it."""

import io

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
optimizer = torch.optim.AdamW(net.parameters(), lr=0.05)
inputs, targets = torch.randn(32, 4), torch.randint(0, 2, (32,))
losses = []
for _ in range(50):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(inputs), targets)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("the loss fell:", losses[-1] < losses[0] / 4)

file = io.BytesIO()
torch.save(net.state_dict(), file)
file.seek(0)
other = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
print(other.load_state_dict(torch.load(file)))
print(torch.equal(other(inputs), net(inputs)))
