"""Adafactor: Adam with the mean squares of a matrix kept as one row and one column."""

import lamina
from lamina import Tensor

from .optimizer import (
    Optimizer,
    ParamsT,
    _check_lr,
    _check_steps,
    _closure_loss,
    _get_value,
    _new_step,
    _steps_to_tensors,
    _unscaled,
)

__all__ = ["Adafactor", "adafactor"]


class Adafactor(Optimizer):
    """Step sizes relative to the size of the weights; second moments of matrices are factored."""

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        _check_lr(lr)
        if not 0.0 <= lr:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not 0.0 >= beta2_decay:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not 0.0 <= eps[0]:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not 0.0 <= eps[1]:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not 1.0 <= d:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not 0.0 <= weight_decay:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("foreach", None)
            _steps_to_tensors(self.state, group)

    def _init_group(self, group, params, grads, row_vars, col_vars, variances, state_steps):
        for p in group["params"]:
            grad = p.grad
            if grad is None:
                continue
            if grad.is_sparse:
                raise RuntimeError("Adafactor does not support sparse gradients")
            state = self.state[p]
            if not state:
                state["step"] = _new_step()
                if grad.dim() > 1:
                    rows, columns = list(grad.shape), list(grad.shape)
                    rows[-1] = columns[-2] = 1
                    state["row_var"] = grad.new_zeros(rows)
                    state["col_var"] = grad.new_zeros(columns)
                else:
                    state["variance"] = lamina.zeros_like(
                        grad, memory_format=lamina.preserve_format
                    )
            params.append(p)
            grads.append(grad)
            row_vars.append(state.get("row_var"))
            col_vars.append(state.get("col_var"))
            variances.append(state.get("variance"))
            state_steps.append(state["step"])
        return any(p.is_complex() for p in params)

    @lamina.no_grad()
    def step(self, closure=None):
        """One step; `closure` computes the loss again, which is returned."""
        loss = _closure_loss(closure)
        for group in self.param_groups:
            lists: list[list] = [[] for _ in range(6)]
            has_complex = self._init_group(group, *lists)
            adafactor(
                *lists,
                d=group["d"],
                lr=group["lr"],
                beta2_decay=group["beta2_decay"],
                weight_decay=group["weight_decay"],
                eps1=group["eps"][0],
                eps2=group["eps"][1],
                foreach=group["foreach"],
                maximize=group["maximize"],
                grad_scale=getattr(self, "grad_scale", None),
                found_inf=getattr(self, "found_inf", None),
                has_complex=has_complex,
            )
        return loss


def adafactor(
    params: list[Tensor],
    grads: list[Tensor],
    row_vars: list[Tensor | None],
    col_vars: list[Tensor | None],
    variances: list[Tensor | None],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    *,
    d: float,
    lr: float | Tensor,
    beta2_decay: float,
    weight_decay: float,
    eps1: float | None,
    eps2: float,
    maximize: bool,
) -> None:
    """One step of Adafactor for parallel lists."""
    _check_steps(state_steps)
    if has_complex:
        raise RuntimeError("Adafactor does not support complex parameters")
    if grad_scale is not None or found_inf is not None:
        grads = _unscaled(grads, grad_scale, found_inf)
        if grads is None:
            return
    _single_tensor_adafactor(
        params,
        grads,
        row_vars,
        col_vars,
        variances,
        state_steps,
        d=d,
        lr=lr,
        beta2_decay=beta2_decay,
        weight_decay=weight_decay,
        eps1=eps1,
        eps2=eps2,
        maximize=maximize,
    )


def _single_tensor_adafactor(
    params,
    grads,
    row_vars,
    col_vars,
    variances,
    state_steps,
    *,
    d,
    lr,
    beta2_decay,
    weight_decay,
    eps1,
    eps2,
    maximize,
):
    lr = _get_value(lr)
    for param, grad, row_var, col_var, variance, step_t in zip(
        params, grads, row_vars, col_vars, variances, state_steps
    ):
        smallest = lamina.finfo(param.dtype).eps if eps1 is None else eps1
        grad = -grad if maximize else grad
        step_t += 1
        step = _get_value(step_t)
        weight = step**beta2_decay
        scale = max(eps2, param.norm(2).item() / param.numel() ** 0.5)
        alpha = scale * min(lr, 1 / step**0.5)
        if weight_decay != 0:
            param.mul_(1 - lr * weight_decay)
        if grad.dim() > 1:
            row_mean = grad.norm(dim=-1, keepdim=True).square_().div_(grad.size(-1))
            row_var.lerp_(row_mean, weight)
            col_mean = grad.norm(dim=-2, keepdim=True).square_().div_(grad.size(-2))
            col_var.lerp_(col_mean, weight)
            estimate = row_var @ col_var
            estimate.div_(row_var.mean(dim=-2, keepdim=True).clamp_(min=smallest))
        else:
            variance.lerp_(grad.square(), weight)
            estimate = variance.clone()
        update = estimate.clamp_(min=smallest * smallest).rsqrt_()
        update.mul_(grad)
        denom = max(1.0, update.norm(2).item() / (update.numel() ** 0.5 * d))
        param.add_(update, alpha=-alpha / denom)
