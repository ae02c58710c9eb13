"""RAdam: Adam without its adaptive step while the variance is uncertain."""

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

__all__ = ["RAdam", "radam"]


class RAdam(Optimizer):
    """Rectified Adam: plain momentum in the first steps, then Adam with a rectified step size."""

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
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
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("foreach", None)
            group.setdefault("maximize", False)
            group.setdefault("differentiable", False)
            group.setdefault("capturable", False)
            group.setdefault("decoupled_weight_decay", False)
            _steps_to_tensors(self.state, group)

    def _init_group(self, group, params, grads, exp_avgs, exp_avg_sqs, state_steps):
        def new_state(p):
            return {"step": _new_step(), "exp_avg": _zeros(p), "exp_avg_sq": _zeros(p)}

        lists = {"exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs, "step": state_steps}
        return _gather("RAdam", self.state, group, new_state, params, grads, lists)

    @_use_grad_for_differentiable
    def step(self, closure=None):
        """One step; `closure` computes the loss again, which is returned."""
        loss = _closure_loss(closure)
        for group in self.param_groups:
            params: list[Tensor] = []
            grads: list[Tensor] = []
            exp_avgs: list[Tensor] = []
            exp_avg_sqs: list[Tensor] = []
            state_steps: list[Tensor] = []
            has_complex = self._init_group(group, params, grads, exp_avgs, exp_avg_sqs, state_steps)
            radam(
                params,
                grads,
                exp_avgs,
                exp_avg_sqs,
                state_steps,
                beta1=group["betas"][0],
                beta2=group["betas"][1],
                lr=group["lr"],
                weight_decay=group["weight_decay"],
                eps=group["eps"],
                decoupled_weight_decay=group["decoupled_weight_decay"],
                foreach=group["foreach"],
                maximize=group["maximize"],
                differentiable=group["differentiable"],
                capturable=group["capturable"],
                has_complex=has_complex,
            )
        return loss


def radam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
    eps: float,
) -> None:
    """One step of RAdam for parallel lists."""
    _check_steps(state_steps)
    _check_capturable(capturable, params)
    _check_foreach(foreach, differentiable, params)
    _single_tensor_radam(
        params,
        grads,
        exp_avgs,
        exp_avg_sqs,
        state_steps,
        beta1=beta1,
        beta2=beta2,
        lr=lr,
        weight_decay=weight_decay,
        eps=eps,
        decoupled_weight_decay=decoupled_weight_decay,
        maximize=maximize,
        differentiable=differentiable,
        capturable=capturable,
        has_complex=has_complex,
    )


def _single_tensor_radam(
    params,
    grads,
    exp_avgs,
    exp_avg_sqs,
    state_steps,
    *,
    decoupled_weight_decay,
    beta1,
    beta2,
    lr,
    weight_decay,
    eps,
    maximize=False,
    differentiable=False,
    capturable=False,
    has_complex=False,
):
    if not differentiable:
        lr = _get_value(lr)
    for param, grad, exp_avg, exp_avg_sq, step_t in zip(
        params, grads, exp_avgs, exp_avg_sqs, state_steps
    ):
        step_t += 1
        step = _get_value(step_t)
        grad = -grad if maximize else grad
        if weight_decay != 0:
            if decoupled_weight_decay:
                param.mul_(1 - lr * weight_decay)
            else:
                grad = grad.add(param, alpha=weight_decay)
        if lamina.is_complex(param):
            param, grad, exp_avg, exp_avg_sq = map(
                lamina.view_as_real, (param, grad, exp_avg, exp_avg_sq)
            )
        exp_avg.lerp_(grad, 1 - beta1)
        exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        update = exp_avg / (1 - beta1**step)
        # The length of the simple moving average that the running mean stands for.
        correction = 1 - beta2**step
        rho_inf = 2 / (1 - beta2) - 1
        rho = rho_inf - 2 * step * beta2**step / correction
        if rho > 5.0:
            rectified = (rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho)
            root = exp_avg_sq.sqrt()
            root = root.add(eps) if differentiable else root.add_(eps)
            param.add_(update * lr * (correction**0.5 / root) * rectified**0.5, alpha=-1.0)
        else:
            param.add_(update * lr, alpha=-1.0)
