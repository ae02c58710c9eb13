"""Writes schedules.json: learning rates and momenta of 24 epochs of every scheduler, as PyTorch sets them."""

import json
from pathlib import Path

# name, arguments; "chain" and "sequence" hold others.
CASES = [
    ["StepLR", {"step_size": 3}],
    ["StepLR", {"step_size": 4, "gamma": 0.5}],
    ["MultiStepLR", {"milestones": [2, 5, 5, 9], "gamma": 0.5}],
    ["ConstantLR", {}],
    ["LinearLR", {}],
    ["LinearLR", {"start_factor": 0.5, "end_factor": 0.1, "total_iters": 8}],
    ["ExponentialLR", {"gamma": 0.9}],
    ["CosineAnnealingLR", {"T_max": 7, "eta_min": 0.001}],
    ["CosineAnnealingWarmRestarts", {"T_0": 3}],
    ["CosineAnnealingWarmRestarts", {"T_0": 2, "T_mult": 2, "eta_min": 0.01}],
    ["PolynomialLR", {"total_iters": 9, "power": 2.0}],
    ["CyclicLR", {"base_lr": 0.01, "max_lr": 0.2, "step_size_up": 4}],
    ["CyclicLR", {"base_lr": 0.01, "max_lr": 0.2, "step_size_up": 3, "step_size_down": 5, "mode": "triangular2"}],
    ["CyclicLR", {"base_lr": 0.01, "max_lr": 0.2, "step_size_up": 3, "mode": "exp_range", "gamma": 0.9}],
    ["OneCycleLR", {"max_lr": 0.2, "total_steps": 25}],
    ["OneCycleLR", {"max_lr": 0.2, "total_steps": 25, "three_phase": True, "anneal_strategy": "linear"}],
    ["OneCycleLR", {"max_lr": [0.2, 0.4], "epochs": 5, "steps_per_epoch": 5, "cycle_momentum": False}],
    ["SWALR", {"swa_lr": 0.05, "anneal_epochs": 6}],
    ["SWALR", {"swa_lr": 0.05, "anneal_epochs": 6, "anneal_strategy": "linear"}],
    ["chain", [["ConstantLR", {"factor": 0.5, "total_iters": 4}], ["ExponentialLR", {"gamma": 0.9}]]],
    ["sequence", [["LinearLR", {"total_iters": 4}], ["CosineAnnealingLR", {"T_max": 6}], ["ExponentialLR", {"gamma": 0.8}]], [4, 11]],
    ["sequence", [["ConstantLR", {"factor": 0.1, "total_iters": 3}], ["CosineAnnealingWarmRestarts", {"T_0": 4}]], [5]],
    ["sequence", [["ExponentialLR", {"gamma": 0.8}], ["StepLR", {"step_size": 2}]], [3]],
]  # fmt: skip


def build(optim, optimizer, case):
    name, options = case[0], case[1]
    if name == "chain":
        return optim.lr_scheduler.ChainedScheduler([build(optim, optimizer, c) for c in options])
    if name == "sequence":
        return optim.lr_scheduler.SequentialLR(
            optimizer, [build(optim, optimizer, c) for c in options], case[2]
        )
    module = optim.swa_utils if name == "SWALR" else optim.lr_scheduler
    return getattr(module, name)(optimizer, **options)


def run(torch, case, epochs=24):
    params = [torch.ones(1, requires_grad=True) for _ in range(2)]
    optimizer = torch.optim.SGD(
        [{"params": params[0]}, {"params": params[1], "lr": 0.3}], lr=0.1, momentum=0.9
    )
    scheduler = build(torch.optim, optimizer, case)
    found = []
    for _ in range(epochs):
        found.append([[g["lr"], g["momentum"]] for g in optimizer.param_groups])
        optimizer.step()
        scheduler.step()
    return found


def plateau(torch, options, metrics):
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
    found = []
    for metric in metrics:
        scheduler.step(metric)
        found.append(optimizer.param_groups[0]["lr"])
    return found


PLATEAUS = [
    [{"patience": 1}, [3, 2, 2, 2, 2, 1.9, 1.9, 1.9, 1.9, 1.0]],
    [{"patience": 0, "mode": "max", "factor": 0.5, "cooldown": 2}, [1, 1, 1, 1, 1, 2, 2, 2, 2, 2]],
    [{"patience": 0, "threshold": 0.1, "threshold_mode": "abs", "min_lr": 0.02}, [3, 2.95, 2.5, 2.45, 2, 2]],
]  # fmt: skip

if __name__ == "__main__":
    import torch

    data = {
        "schedules": [[case, run(torch, case)] for case in CASES],
        "plateaus": [[o, m, plateau(torch, o, m)] for o, m in PLATEAUS],
    }
    (Path(__file__).parent / "schedules.json").write_text(json.dumps(data))
