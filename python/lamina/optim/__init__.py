"""Optimizers, schedules of their learning rates, averages of weights."""

from contextlib import contextmanager as _contextmanager
from typing import TYPE_CHECKING as _TYPE_CHECKING

from lamina._missing import getattr_of as _getattr_of

from . import lr_scheduler
from ._adafactor import Adafactor
from ._muon import Muon
from .adadelta import Adadelta
from .adagrad import Adagrad
from .adam import Adam
from .adamax import Adamax
from .adamw import AdamW
from .asgd import ASGD
from .lbfgs import LBFGS
from .nadam import NAdam
from .optimizer import Optimizer
from .radam import RAdam
from .rmsprop import RMSprop
from .rprop import Rprop
from .sgd import SGD
from .sparse_adam import SparseAdam

if _TYPE_CHECKING:
    from . import swa_utils  # run when it is asked for

__all__ = [
    "Adafactor",
    "Adadelta",
    "Adagrad",
    "Adam",
    "Adamax",
    "AdamW",
    "ASGD",
    "LBFGS",
    "lr_scheduler",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SGD",
    "SparseAdam",
    "swap_in_optimizer_params_and_state",
    "swa_utils",
]


@_contextmanager
def swap_in_optimizer_params_and_state(optimizer, swapin_parameters, swapin_optim_state):
    """Let an optimizer work on other parameters and state for the time of the context.

    `swapin_parameters` are in the order of the optimizer's own (values of a dict);
    `swapin_optim_state` has the form of ``optimizer.state_dict()``. Raises ValueError where
    numbers of groups or parameters differ. What the optimizer had is there again afterwards.
    """
    from collections import defaultdict

    own_state, own_groups = optimizer.state, optimizer.param_groups
    parameters = list(swapin_parameters.values())
    groups = swapin_optim_state["param_groups"]
    counts = [len(g["params"]) for g in own_groups]
    if len(parameters) != sum(counts) or [len(g["params"]) for g in groups] != counts:
        raise ValueError(
            "swap_in_optimizer_params_and_state: groups differ; got "
            f"{len(parameters)} parameters in groups of {[len(g['params']) for g in groups]}; "
            f"expected groups of {counts}"
        )
    taken = iter(parameters)
    numbers: dict = {}
    new_groups = []
    for group in groups:
        mine = [next(taken) for _ in group["params"]]
        numbers.update(zip(group["params"], mine))
        new_groups.append({**group, "params": mine})
    new_state: defaultdict = defaultdict(dict)
    for key, value in swapin_optim_state["state"].items():
        new_state[numbers.get(key, key)] = dict(value) if isinstance(value, dict) else value
    optimizer.state, optimizer.param_groups = new_state, new_groups
    try:
        yield optimizer
    finally:
        optimizer.state, optimizer.param_groups = own_state, own_groups


_stand_in = _getattr_of(__name__)


def __getattr__(name):
    if name == "swa_utils":  # it needs lamina.nn, which few optimizers do
        from importlib import import_module

        return import_module(f"{__spec__.name}.swa_utils")
    return _stand_in(name)
