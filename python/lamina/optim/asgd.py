"""Averaged stochastic gradient descent."""

import lamina
from lamina import Tensor

from .optimizer import (
    Optimizer,
    ParamsT,
    _check_capturable,
    _check_foreach,
    _check_lr,
    _check_not_negative,
    _check_steps,
    _closure_loss,
    _gather,
    _get_value,
    _new_step,
    _steps_to_tensors,
    _use_grad_for_differentiable,
    _zeros,
)

__all__ = ["ASGD", "asgd"]


class ASGD(Optimizer):
    """SGD with a falling rate that also keeps the mean of the weights (`ax` of the state)."""

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        _check_lr(lr)
        _check_not_negative(learning__rate=lr, weight_decay__value=weight_decay)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("foreach", None)
            group.setdefault("maximize", False)
            group.setdefault("differentiable", False)
            group.setdefault("capturable", False)
            _steps_to_tensors(self.state, group, ("step", "eta", "mu"))

    def _init_group(self, group, params, grads, axs, mus, etas, state_steps):
        def new_state(p):
            step = _new_step()
            return {
                "step": step,
                "eta": lamina.as_tensor(_get_value(group["lr"]), dtype=step.dtype),
                "mu": lamina.ones((), dtype=step.dtype),
                "ax": _zeros(p),
            }

        lists = {"ax": axs, "mu": mus, "eta": etas, "step": state_steps}
        return _gather("ASGD", self.state, group, new_state, params, grads, lists)

    @_use_grad_for_differentiable
    def step(self, closure=None):
        """One step; `closure` computes the loss again, which is returned."""
        loss = _closure_loss(closure)
        for group in self.param_groups:
            params: list[Tensor] = []
            grads: list[Tensor] = []
            axs: list[Tensor] = []
            mus: list[Tensor] = []
            etas: list[Tensor] = []
            state_steps: list[Tensor] = []
            has_complex = self._init_group(group, params, grads, axs, mus, etas, state_steps)
            asgd(
                params,
                grads,
                axs,
                mus,
                etas,
                state_steps,
                lambd=group["lambd"],
                lr=group["lr"],
                t0=group["t0"],
                alpha=group["alpha"],
                weight_decay=group["weight_decay"],
                foreach=group["foreach"],
                maximize=group["maximize"],
                differentiable=group["differentiable"],
                capturable=group["capturable"],
                has_complex=has_complex,
            )
        return loss


def asgd(
    params: list[Tensor],
    grads: list[Tensor],
    axs: list[Tensor],
    mus: list[Tensor],
    etas: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lambd: float,
    lr: float,
    t0: float,
    alpha: float,
    weight_decay: float,
) -> None:
    """One step of ASGD for parallel lists."""
    _check_steps(state_steps)
    _check_capturable(capturable, params)
    _check_foreach(foreach, differentiable, params)
    _single_tensor_asgd(
        params,
        grads,
        axs,
        mus,
        etas,
        state_steps,
        lambd=lambd,
        lr=lr,
        t0=t0,
        alpha=alpha,
        weight_decay=weight_decay,
        maximize=maximize,
        differentiable=differentiable,
        capturable=capturable,
        has_complex=has_complex,
    )


def _single_tensor_asgd(
    params,
    grads,
    axs,
    mus,
    etas,
    state_steps,
    *,
    lambd,
    lr,
    t0,
    alpha,
    weight_decay,
    maximize=False,
    differentiable=False,
    capturable=False,
    has_complex=False,
):
    lr = _get_value(lr)
    for param, grad, ax, mu, eta, step_t in zip(params, grads, axs, mus, etas, state_steps):
        step_t += 1
        grad = -grad if maximize else grad
        if weight_decay != 0:
            grad = grad.add(param, alpha=weight_decay)
        if lamina.is_complex(param):
            grad, param, ax = map(lamina.view_as_real, (grad, param, ax))
        step, rate, weight = _get_value(step_t), _get_value(eta), _get_value(mu)
        param.mul_(1 - lambd * rate)
        param.add_(grad, alpha=-rate)
        if weight == 1:
            ax.copy_(param)
        else:
            ax.add_(param.sub(ax).mul_(weight))
        eta.fill_(lr / (1 + lambd * lr * step) ** alpha)
        mu.fill_(1 / max(1, step - t0))
