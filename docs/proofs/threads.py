"""The number of threads changes when a result is there, and no bit of it."""

import torch

torch.manual_seed(0)
x = torch.randn(1000, 1003)


def results():
    return x.sum(), x.softmax(1), x @ x.t(), x.exp()


torch.set_num_threads(1)
one = results()
for threads in (2, 7):
    torch.set_num_threads(threads)
    print(threads, all(torch.equal(a, b) for a, b in zip(one, results())))
