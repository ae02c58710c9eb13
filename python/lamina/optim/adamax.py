"""Adamax: Adam with the running maximum in the place of the mean square."""

import lamina
from lamina import Tensor

from .optimizer import (
    Optimizer,
    ParamsT,
    _check_betas,
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

__all__ = ["Adamax", "adamax"]


class Adamax(Optimizer):
    """p -= lr * m / (1 - beta1^t) / u, where u = max(beta2 * u, |g| + eps)."""

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        _check_lr(lr)
        _check_not_negative(learning__rate=lr, epsilon__value=eps)
        _check_betas(betas)
        _check_not_negative(weight_decay__value=weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
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
            _steps_to_tensors(self.state, group)

    def _init_group(self, group, params, grads, exp_avgs, exp_infs, state_steps):
        def new_state(p):
            return {"step": _new_step(), "exp_avg": _zeros(p), "exp_inf": _zeros(p)}

        lists = {"exp_avg": exp_avgs, "exp_inf": exp_infs, "step": state_steps}
        return _gather("Adamax", self.state, group, new_state, params, grads, lists)

    @_use_grad_for_differentiable
    def step(self, closure=None):
        """One step; `closure` computes the loss again, which is returned."""
        loss = _closure_loss(closure)
        for group in self.param_groups:
            params: list[Tensor] = []
            grads: list[Tensor] = []
            exp_avgs: list[Tensor] = []
            exp_infs: list[Tensor] = []
            state_steps: list[Tensor] = []
            has_complex = self._init_group(group, params, grads, exp_avgs, exp_infs, state_steps)
            adamax(
                params,
                grads,
                exp_avgs,
                exp_infs,
                state_steps,
                eps=group["eps"],
                beta1=group["betas"][0],
                beta2=group["betas"][1],
                lr=group["lr"],
                weight_decay=group["weight_decay"],
                foreach=group["foreach"],
                maximize=group["maximize"],
                differentiable=group["differentiable"],
                capturable=group["capturable"],
                has_complex=has_complex,
            )
        return loss


def adamax(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_infs: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
) -> None:
    """One step of Adamax for parallel lists."""
    _check_steps(state_steps)
    _check_capturable(capturable, params)
    _check_foreach(foreach, differentiable, params)
    _single_tensor_adamax(
        params,
        grads,
        exp_avgs,
        exp_infs,
        state_steps,
        eps=eps,
        beta1=beta1,
        beta2=beta2,
        lr=lr,
        weight_decay=weight_decay,
        maximize=maximize,
        differentiable=differentiable,
        capturable=capturable,
        has_complex=has_complex,
    )


def _single_tensor_adamax(
    params,
    grads,
    exp_avgs,
    exp_infs,
    state_steps,
    *,
    eps,
    beta1,
    beta2,
    lr,
    weight_decay,
    maximize=False,
    differentiable=False,
    capturable=False,
    has_complex=False,
):
    if not differentiable:
        lr = _get_value(lr)
    for param, grad, exp_avg, exp_inf, step_t in zip(
        params, grads, exp_avgs, exp_infs, state_steps
    ):
        step_t += 1
        grad = -grad if maximize else grad
        if weight_decay != 0:
            grad = grad.add(param, alpha=weight_decay)
        if lamina.is_complex(param):
            param, grad, exp_avg, exp_inf = map(
                lamina.view_as_real, (param, grad, exp_avg, exp_inf)
            )
        exp_avg.lerp_(grad, 1 - beta1)
        if differentiable:
            norms = lamina.stack([exp_inf.mul_(beta2), grad.abs().add_(eps)])
            exp_inf.copy_(lamina.amax(norms, 0))
            step_size = lr / (1 - beta1 ** step_t.clone())
            param.sub_(step_size * (exp_avg.clone() / exp_inf.clone()))
        else:
            lamina.maximum(exp_inf.mul_(beta2), grad.abs().add_(eps), out=exp_inf)
            step_size = lr / (1 - beta1 ** _get_value(step_t))
            param.addcdiv_(exp_avg, exp_inf, value=-step_size)
