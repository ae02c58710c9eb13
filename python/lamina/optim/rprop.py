"""Rprop: steps whose size depends on the gradient's sign alone."""

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

__all__ = ["Rprop", "rprop"]


class Rprop(Optimizer):
    """Each weight has a step size that grows while its gradient keeps its sign, and shrinks when it changes."""

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check_lr(lr)
        _check_not_negative(learning__rate=lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
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

    def _init_group(self, group, params, grads, prevs, step_sizes, state_steps):
        def new_state(p):
            lr = _get_value(group["lr"])
            first = complex(lr, lr) if p.dtype.is_complex else lr
            return {
                "step": _new_step(),
                "prev": _zeros(p),
                "step_size": lamina.full_like(p.grad, first),
            }

        lists = {"prev": prevs, "step_size": step_sizes, "step": state_steps}
        return _gather("Rprop", self.state, group, new_state, params, grads, lists)

    @_use_grad_for_differentiable
    def step(self, closure=None):
        """One step; `closure` computes the loss again, which is returned."""
        loss = _closure_loss(closure)
        for group in self.param_groups:
            params: list[Tensor] = []
            grads: list[Tensor] = []
            prevs: list[Tensor] = []
            step_sizes: list[Tensor] = []
            state_steps: list[Tensor] = []
            has_complex = self._init_group(group, params, grads, prevs, step_sizes, state_steps)
            rprop(
                params,
                grads,
                prevs,
                step_sizes,
                state_steps,
                step_size_min=group["step_sizes"][0],
                step_size_max=group["step_sizes"][1],
                etaminus=group["etas"][0],
                etaplus=group["etas"][1],
                foreach=group["foreach"],
                maximize=group["maximize"],
                differentiable=group["differentiable"],
                capturable=group["capturable"],
                has_complex=has_complex,
            )
        return loss


def rprop(
    params: list[Tensor],
    grads: list[Tensor],
    prevs: list[Tensor],
    step_sizes: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    maximize: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    step_size_min: float,
    step_size_max: float,
    etaminus: float,
    etaplus: float,
) -> None:
    """One step of Rprop for parallel lists."""
    _check_steps(state_steps)
    _check_capturable(capturable, params)
    _check_foreach(foreach, differentiable, params)
    _single_tensor_rprop(
        params,
        grads,
        prevs,
        step_sizes,
        state_steps,
        step_size_min=step_size_min,
        step_size_max=step_size_max,
        etaminus=etaminus,
        etaplus=etaplus,
        maximize=maximize,
        differentiable=differentiable,
        capturable=capturable,
        has_complex=has_complex,
    )


def _single_tensor_rprop(
    params,
    grads,
    prevs,
    step_sizes,
    state_steps,
    *,
    step_size_min,
    step_size_max,
    etaminus,
    etaplus,
    maximize=False,
    differentiable=False,
    capturable=False,
    has_complex=False,
):
    for param, grad, prev, step_size, step in zip(params, grads, prevs, step_sizes, state_steps):
        step += 1
        grad = -grad if maximize else grad
        if lamina.is_complex(param):
            grad, prev, param, step_size = map(lamina.view_as_real, (grad, prev, param, step_size))
        sign = grad.mul(prev.clone() if differentiable else prev).sign()
        factor = lamina.where(
            sign > 0, etaplus, lamina.where(sign < 0, etaminus, lamina.ones_like(sign))
        ).to(sign.dtype)
        step_size.mul_(factor).clamp_(step_size_min, step_size_max)
        # Where the sign has changed, this step is left out and the next one does not shrink again.
        grad = grad.masked_fill(factor.eq(etaminus), 0)
        param.addcmul_(grad.sign(), step_size, value=-1)
        prev.copy_(grad)
