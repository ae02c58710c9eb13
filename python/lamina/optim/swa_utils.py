"""Averages of a model's weights over training: stochastic weight averaging and running means."""

import itertools
import math
import warnings
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any, Literal

import lamina
from lamina import Tensor
from lamina.nn import Module

from .lr_scheduler import LRScheduler, _to_list
from .optimizer import Optimizer

__all__ = [
    "AveragedModel",
    "update_bn",
    "SWALR",
    "get_ema_multi_avg_fn",
    "get_swa_multi_avg_fn",
    "get_ema_avg_fn",
    "get_swa_avg_fn",
]


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )


def _can_lerp(tensor: Tensor) -> bool:
    return lamina.is_floating_point(tensor) or lamina.is_complex(tensor)


def get_ema_multi_avg_fn(decay: float = 0.999):
    """A function that moves a list of averages towards a list of tensors (running mean)."""
    _check_decay(decay)

    @lamina.no_grad()
    def ema_update(ema_param_list, current_param_list, _):
        for average, current in zip(ema_param_list, current_param_list):
            if _can_lerp(average):
                average.lerp_(current.to(average.dtype), 1 - decay)
            else:
                average.copy_(average * decay + current * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn():
    """A function that takes a list of tensors into a list of averages (equal weights)."""

    @lamina.no_grad()
    def swa_update(averaged_param_list, current_param_list, num_averaged):
        for average, current in zip(averaged_param_list, current_param_list):
            if _can_lerp(average):
                average.lerp_(current.to(average.dtype), 1 / (float(num_averaged) + 1))
            else:
                average.add_(((current - average) / (num_averaged + 1)).to(average.dtype))

    return swa_update


def get_ema_avg_fn(decay: float = 0.999):
    """A function of one average and one tensor: the running mean with that decay."""
    _check_decay(decay)

    @lamina.no_grad()
    def ema_update(ema_param, current_param, num_averaged):
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn():
    """A function of one average and one tensor: the mean with equal weights."""

    @lamina.no_grad()
    def swa_update(averaged_param, current_param, num_averaged):
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


class AveragedModel(Module):
    """A copy of a model that holds averages of its weights.

    Parameters
    ----------
    model
        Copied; ``update_parameters(model)`` takes its present weights into the averages.
    device
        Where the averages are kept.
    avg_fn, multi_avg_fn
        What makes an average: of one tensor at a time, or of lists. At most one; equal weights
        where there is none.
    use_buffers
        Whether buffers are averaged as well, or copied.
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: int | lamina.device | None = None,
        avg_fn: Callable[[Tensor, Tensor, Tensor | int], Tensor] | None = None,
        multi_avg_fn: Callable[[Any, Any, Tensor | int], None] | None = None,
        use_buffers=False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", lamina.tensor(0, dtype=lamina.long, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args, **kwargs):
        """The model with averaged weights."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the present weights of `model` into the averages."""
        own = self.module.parameters()
        given = model.parameters()
        if self.use_buffers:
            own = itertools.chain(own, self.module.buffers())
            given = itertools.chain(given, model.buffers())
        averages, news = [], []
        for average, new in zip(own, given):
            new = new.detach().to(average.device)
            averages.append(average.detach())
            news.append(new)
            if self.n_averaged == 0:
                average.detach().copy_(new)
        if self.n_averaged > 0:
            if self.multi_avg_fn is not None or self.avg_fn is None:
                update = self.multi_avg_fn or get_swa_multi_avg_fn()
                update(averages, news, self.n_averaged.to("cpu"))
            else:
                count = self.n_averaged
                for average, new in zip(averages, news):
                    average.copy_(self.avg_fn(average, new, count.to(average.device)))
        if not self.use_buffers:
            for own_buffer, buffer in zip(self.module.buffers(), model.buffers()):
                own_buffer.detach().copy_(buffer.detach().to(own_buffer.device))
        self.n_averaged += 1


@lamina.no_grad()
def update_bn(
    loader: Iterable[Any], model: Module, device: int | lamina.device | None = None
) -> None:
    """Compute the statistics of batch normalizations again, by one pass over `loader`."""
    momenta = {}
    for module in model.modules():
        if isinstance(module, lamina.nn.modules.batchnorm._BatchNorm):
            module.reset_running_stats()
            momenta[module] = module.momentum
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.momentum = None  # the plain mean over all batches
    for batch in loader:
        if isinstance(batch, list | tuple):
            batch = batch[0]
        if device is not None:
            batch = batch.to(device)
        model(batch)
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """The rate goes to `swa_lr` in `anneal_epochs` epochs and stays there."""

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float,
        anneal_epochs=10,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        last_epoch=-1,
    ) -> None:
        for lr, group in zip(_to_list(swa_lr, optimizer, "swa_lr"), optimizer.param_groups):
            group["swa_lr"] = lr
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._set_anneal_func(anneal_strategy)
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    @staticmethod
    def _linear_anneal(t):
        return t

    @staticmethod
    def _cosine_anneal(t):
        return (1 - math.cos(math.pi * t)) / 2

    @staticmethod
    def _get_initial_lr(lr, swa_lr, alpha):
        return swa_lr if alpha == 1 else (lr - alpha * swa_lr) / (1 - alpha)

    def _set_anneal_func(self, anneal_strategy: str) -> None:
        self._anneal_strategy = anneal_strategy
        if anneal_strategy == "cos":
            self.anneal_func = self._cosine_anneal
        else:
            self.anneal_func = self._linear_anneal

    def get_lr(self):
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, "
                "please use `get_last_lr()`.",
                UserWarning,
                stacklevel=2,
            )
        # The rate before the last step shows from where the way began.
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before = max(0, min(1, (step - 1) / max(1, self.anneal_epochs)))
        alpha_before = self.anneal_func(before)
        starts = [
            self._get_initial_lr(group["lr"], group["swa_lr"], alpha_before)
            for group in self.optimizer.param_groups
        ]
        alpha = self.anneal_func(max(0, min(1, step / max(1, self.anneal_epochs))))
        return [
            group["swa_lr"] * alpha + lr * (1 - alpha)
            for group, lr in zip(self.optimizer.param_groups, starts)
        ]

    def state_dict(self) -> dict[str, Any]:
        """The state, without the function that `anneal_strategy` names."""
        return {k: v for k, v in super().state_dict().items() if k != "anneal_func"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over the state of another scheduler."""
        super().load_state_dict(state_dict)
        self._set_anneal_func(self._anneal_strategy)
