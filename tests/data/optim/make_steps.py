"""Writes steps.json: parameters after each of four steps of every optimizer, as PyTorch makes them.

Run with a Python that has PyTorch: ``python make_steps.py``. Gradients are made by the same formula
as in tests/test_optim.py, so that only results are stored.
"""

import json
from pathlib import Path

import torch

CASES = [
    ("SGD", {}),
    ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("SGD", {"momentum": 0.9, "dampening": 0.3, "maximize": True}),
    ("Adam", {"lr": 0.1}),
    ("Adam", {"lr": 0.1, "weight_decay": 0.1, "amsgrad": True, "maximize": True}),
    ("AdamW", {"lr": 0.1}),
    ("RMSprop", {}),
    ("RMSprop", {"momentum": 0.5, "centered": True, "weight_decay": 0.1}),
    ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.1}),
    ("Adadelta", {"weight_decay": 0.1}),
    ("Adamax", {"weight_decay": 0.1, "maximize": True}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True, "momentum_decay": 0.1}),
    ("RAdam", {"weight_decay": 0.1, "betas": [0.5, 0.6]}),
    ("Rprop", {}),
    ("ASGD", {"t0": 2, "lambd": 0.1, "weight_decay": 0.1}),
    ("Adafactor", {"weight_decay": 0.1}),
    ("LBFGS", {"lr": 0.1}),
    ("LBFGS", {"line_search_fn": "strong_wolfe", "history_size": 2, "max_iter": 5}),
]


def values(shape, salt):
    """Numbers in (-1, 1) that depend on position and salt alone."""
    n = torch.Size(shape).numel()
    i = torch.arange(n, dtype=torch.float64) + 17.0 * salt
    return torch.sin(i * i * 0.37 + 1.0).reshape(shape)


def run(torch, name, options, shapes=((3, 4), (5,)), steps=4):
    options = {k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}
    params = [values(s, i).requires_grad_() for i, s in enumerate(shapes)]
    optimizer = getattr(torch.optim, name)(params, **options)
    found = []
    for step in range(steps):
        if name == "LBFGS":

            def closure():
                optimizer.zero_grad()
                loss = sum(((p - 0.5) ** 2).sum() + (p**4).sum() * 0.1 for p in params)
                loss.backward()
                return loss

            optimizer.step(closure)
        else:
            for i, p in enumerate(params):
                p.grad = values(p.shape, 10 * step + i + 3)
            optimizer.step()
        found.append([p.detach().flatten().tolist() for p in params])
    return found


if __name__ == "__main__":
    steps = [[name, options, run(torch, name, options)] for name, options in CASES]
    (Path(__file__).parent / "steps.json").write_text(json.dumps(steps))
