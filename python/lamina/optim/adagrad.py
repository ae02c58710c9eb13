"""Adagrad: gradients over the root of the sum of their squares."""

import lamina
from lamina import _C, Tensor

from .optimizer import (
    Optimizer,
    ParamsT,
    _are_plain,
    _check_foreach,
    _check_lr,
    _check_not_negative,
    _check_steps,
    _closure_loss,
    _get_value,
    _new_step,
    _steps_to_tensors,
    _unscaled,
    _use_grad_for_differentiable,
)

__all__ = ["Adagrad", "adagrad"]


class Adagrad(Optimizer):
    """p -= lr / (1 + (t - 1) * lr_decay) * g / (sqrt(sum of g^2) + eps)."""

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        _check_lr(lr)
        _check_not_negative(
            learning__rate=lr,
            lr_decay__value=lr_decay,
            weight_decay__value=weight_decay,
            initial_accumulator_value__value=initial_accumulator_value,
            epsilon__value=eps,
        )
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        if fused:
            if differentiable:
                raise RuntimeError("`fused` does not support `differentiable`")
            if foreach:
                raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
            self._need_device_dtype_check_for_fused = True
        for group in self.param_groups:
            for p in group["params"]:
                start = group["initial_accumulator_value"]
                if lamina.is_complex(p):
                    start = complex(start, start)
                self.state[p]["step"] = _new_step(group)
                self.state[p]["sum"] = lamina.full_like(
                    p, start, memory_format=lamina.preserve_format, requires_grad=False
                )

    def share_memory(self):
        """Put the state into shared memory."""
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["sum"].share_memory_()

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("foreach", None)
            group.setdefault("maximize", False)
            group.setdefault("differentiable", False)
            _steps_to_tensors(self.state, group)

    def _init_group(self, group, params, grads, state_sums, state_steps):
        has_complex = False
        for p in group["params"]:
            if p.grad is None:
                continue
            has_complex |= lamina.is_complex(p)
            state = self.state[p]
            params.append(p)
            grads.append(p.grad)
            state_sums.append(state["sum"])
            state_steps.append(state["step"])
        return has_complex

    @_use_grad_for_differentiable
    def step(self, closure=None):
        """One step; `closure` computes the loss again, which is returned."""
        loss = _closure_loss(closure)
        for group in self.param_groups:
            params: list[Tensor] = []
            grads: list[Tensor] = []
            state_sums: list[Tensor] = []
            state_steps: list[Tensor] = []
            has_complex = self._init_group(group, params, grads, state_sums, state_steps)
            adagrad(
                params,
                grads,
                state_sums,
                state_steps,
                lr=group["lr"],
                weight_decay=group["weight_decay"],
                lr_decay=group["lr_decay"],
                eps=group["eps"],
                fused=group["fused"],
                grad_scale=getattr(self, "grad_scale", None),
                found_inf=getattr(self, "found_inf", None),
                foreach=group["foreach"],
                maximize=group["maximize"],
                differentiable=group["differentiable"],
                has_complex=has_complex,
            )
        return loss


def adagrad(
    params: list[Tensor],
    grads: list[Tensor],
    state_sums: list[Tensor],
    state_steps: list[Tensor],
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    weight_decay: float,
    lr_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """One step of Adagrad for parallel lists."""
    _check_steps(state_steps)
    _check_foreach(foreach, differentiable, params)
    if grad_scale is not None or found_inf is not None:
        grads = _unscaled(grads, grad_scale, found_inf)
        if grads is None:
            return
    if (
        not differentiable
        and _are_plain(params, grads)
        and _C._adagrad_step_(
            params,
            grads,
            state_sums,
            state_steps,
            _get_value(lr),
            lr_decay,
            weight_decay,
            eps,
            maximize,
        )
    ):
        return
    _single_tensor_adagrad(
        params,
        grads,
        state_sums,
        state_steps,
        lr=lr,
        weight_decay=weight_decay,
        lr_decay=lr_decay,
        eps=eps,
        maximize=maximize,
        differentiable=differentiable,
        has_complex=has_complex,
    )


def _single_tensor_adagrad(
    params,
    grads,
    state_sums,
    state_steps,
    *,
    lr,
    weight_decay,
    lr_decay,
    eps,
    maximize=False,
    differentiable=False,
    has_complex=False,
):
    if not differentiable:
        lr = _get_value(lr)
    for param, grad, state_sum, step_t in zip(params, grads, state_sums, state_steps):
        step_t += 1
        grad = -grad if maximize else grad
        if weight_decay != 0:
            grad = grad.add(param, alpha=weight_decay)
        rate = lr / (1 + (_get_value(step_t) - 1) * lr_decay)
        if lamina.is_complex(param):
            grad, state_sum, param = map(lamina.view_as_real, (grad, state_sum, param))
        state_sum.addcmul_(grad, grad, value=1)
        if differentiable:
            param.sub_(rate * (grad / (state_sum.sqrt() + eps)))
        else:
            param.addcdiv_(grad, state_sum.sqrt().add_(eps), value=-rate)
