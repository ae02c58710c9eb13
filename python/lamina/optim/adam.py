"""Adam, and with ``decoupled_weight_decay`` AdamW."""

import lamina
from lamina import _C, Tensor

from .optimizer import (
    Optimizer,
    ParamsT,
    _are_plain,
    _check_betas,
    _check_capturable,
    _check_foreach,
    _check_lr,
    _check_not_negative,
    _check_steps,
    _closure_loss,
    _device_dtype_check_for_fused,
    _dispatch_sqrt,
    _get_value,
    _new_step,
    _steps_to_tensors,
    _to_scalar,
    _unscaled,
    _use_grad_for_differentiable,
    _zeros,
)

__all__ = ["Adam", "adam"]


class Adam(Optimizer):
    """Steps of the running mean of gradients over the root of the running mean of their squares."""

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and foreach and not capturable:
            raise ValueError(
                "lr as a Tensor is not supported for capturable=False and foreach=True"
            )
        _check_lr(lr)
        _check_not_negative(learning__rate=lr, epsilon__value=eps)
        _check_betas(betas)
        _check_not_negative(weight_decay__value=weight_decay)
        tensors = [isinstance(b, Tensor) for b in betas]
        if any(tensors) and not all(tensors):
            raise ValueError("betas must be either both floats or both Tensors")
        for i, beta in enumerate(betas):
            if isinstance(beta, Tensor):
                if not capturable and foreach:
                    raise ValueError(
                        f"betas[{i}] as a Tensor is not supported for capturable=False and "
                        "foreach=True"
                    )
                if beta.numel() != 1:
                    raise ValueError(f"Tensor betas[{i}] must be 1-element")
        betas = tuple(_to_scalar(b) for b in betas)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)
        if fused:
            if differentiable:
                raise RuntimeError("`fused` does not support `differentiable`")
            self._step_supports_amp_scaling = True
            if foreach:
                raise RuntimeError("`fused` and `foreach` cannot be `True` together.")

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("amsgrad", False)
            group.setdefault("maximize", False)
            group.setdefault("foreach", None)
            group.setdefault("capturable", False)
            group.setdefault("differentiable", False)
            group.setdefault("decoupled_weight_decay", False)
            group.setdefault("fused", None)
            _steps_to_tensors(self.state, group)

    def _init_group(
        self, group, params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps
    ):
        has_complex = False
        amsgrad = group["amsgrad"]
        states = self.state
        for p in group["params"]:
            grad = p.grad
            if grad is None:
                continue
            state = states[p]
            if not state:
                if grad.is_sparse:
                    raise RuntimeError(
                        "Adam does not support sparse gradients, please consider SparseAdam instead"
                    )
                if group["fused"]:
                    _device_dtype_check_for_fused(p)
                state["step"] = _new_step(group)
                state["exp_avg"] = _zeros(p)
                state["exp_avg_sq"] = _zeros(p)
                if amsgrad:
                    state["max_exp_avg_sq"] = _zeros(p)
            params.append(p)
            grads.append(grad)
            exp_avgs.append(state["exp_avg"])
            exp_avg_sqs.append(state["exp_avg_sq"])
            if amsgrad:
                max_exp_avg_sqs.append(state["max_exp_avg_sq"])
            step = state["step"]
            if group["differentiable"] and step.requires_grad:
                raise RuntimeError(
                    "`requires_grad` is not supported for `step` in differentiable mode"
                )
            state_steps.append(step)
        return has_complex

    @_use_grad_for_differentiable
    def step(self, closure=None):
        """One step; `closure` computes the loss again, which is returned."""
        loss = None if closure is None else _closure_loss(closure)
        for group in self.param_groups:
            params: list[Tensor] = []
            grads: list[Tensor] = []
            exp_avgs: list[Tensor] = []
            exp_avg_sqs: list[Tensor] = []
            max_exp_avg_sqs: list[Tensor] = []
            state_steps: list[Tensor] = []
            self._init_group(
                group, params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps
            )
            beta1, beta2 = group["betas"]
            lr = group["lr"]
            # The commonest case at once, without the passage through adam().
            if (
                type(lr) is type(beta1) is type(beta2) is float
                and not group["differentiable"]
                and not group["capturable"]
                and "grad_scale" not in self.__dict__
                and _are_plain(params, grads)
                and _C._adam_step_(
                    params,
                    grads,
                    exp_avgs,
                    exp_avg_sqs,
                    max_exp_avg_sqs,
                    state_steps,
                    lr,
                    beta1,
                    beta2,
                    group["eps"],
                    group["weight_decay"],
                    group["decoupled_weight_decay"],
                    group["amsgrad"],
                    group["maximize"],
                )
            ):
                continue
            adam(
                params,
                grads,
                exp_avgs,
                exp_avg_sqs,
                max_exp_avg_sqs,
                state_steps,
                amsgrad=group["amsgrad"],
                beta1=beta1,
                beta2=beta2,
                lr=lr,
                weight_decay=group["weight_decay"],
                eps=group["eps"],
                maximize=group["maximize"],
                foreach=group["foreach"],
                capturable=group["capturable"],
                differentiable=group["differentiable"],
                fused=group["fused"],
                grad_scale=getattr(self, "grad_scale", None),
                found_inf=getattr(self, "found_inf", None),
                decoupled_weight_decay=group["decoupled_weight_decay"],
            )
        return loss


def adam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    max_exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    decoupled_weight_decay: bool = False,
    *,
    amsgrad: bool,
    beta1: float | Tensor,
    beta2: float | Tensor,
    lr: float | Tensor,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """One step of Adam for parallel lists."""
    if not params:
        return
    if grad_scale is not None or found_inf is not None:
        grads = _unscaled(grads, grad_scale, found_inf)
        if grads is None:
            return
    if not differentiable and not capturable:
        lr, beta1, beta2 = _get_value(lr), _get_value(beta1), _get_value(beta2)
        if _are_plain(params, grads) and _C._adam_step_(
            params,
            grads,
            exp_avgs,
            exp_avg_sqs,
            max_exp_avg_sqs,
            state_steps,
            lr,
            beta1,
            beta2,
            eps,
            weight_decay,
            decoupled_weight_decay,
            amsgrad,
            maximize,
        ):
            return
    _check_steps(state_steps)
    _check_capturable(capturable, params)
    _check_foreach(foreach, differentiable, params)
    _single_tensor_adam(
        params,
        grads,
        exp_avgs,
        exp_avg_sqs,
        max_exp_avg_sqs,
        state_steps,
        None,
        None,
        amsgrad=amsgrad,
        has_complex=has_complex,
        beta1=beta1,
        beta2=beta2,
        lr=lr,
        weight_decay=weight_decay,
        eps=eps,
        maximize=maximize,
        capturable=capturable,
        differentiable=differentiable,
        decoupled_weight_decay=decoupled_weight_decay,
    )


def _single_tensor_adam(
    params,
    grads,
    exp_avgs,
    exp_avg_sqs,
    max_exp_avg_sqs,
    state_steps,
    grad_scale=None,
    found_inf=None,
    *,
    amsgrad,
    has_complex=False,
    beta1,
    beta2,
    lr,
    weight_decay,
    eps,
    maximize,
    capturable=False,
    differentiable=False,
    decoupled_weight_decay=False,
):
    for i, param in enumerate(params):
        grad = -grads[i] if maximize else grads[i]
        exp_avg, exp_avg_sq, step_t = exp_avgs[i], exp_avg_sqs[i], state_steps[i]
        step_t += 1
        if weight_decay != 0:
            if decoupled_weight_decay:
                param.mul_(1 - lr * weight_decay)
            else:
                grad = grad.add(param, alpha=weight_decay)
        maximum = max_exp_avg_sqs[i] if amsgrad else None
        if lamina.is_complex(param):
            grad, exp_avg, exp_avg_sq, param = map(
                lamina.view_as_real, (grad, exp_avg, exp_avg_sq, param)
            )
            if amsgrad:
                maximum = lamina.view_as_real(maximum)
        exp_avg.lerp_(grad, 1 - beta1)
        if differentiable and isinstance(beta2, Tensor):
            exp_avg_sq.mul_(beta2).add_(grad.square() * (1 - beta2))
        else:
            exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        step = step_t.clone() if differentiable else _get_value(step_t)
        step_size = lr / (1 - beta1**step)
        correction = _dispatch_sqrt(1 - beta2**step)
        variance = exp_avg_sq
        if amsgrad:
            if differentiable:
                maximum.copy_(lamina.maximum(maximum.clone(), exp_avg_sq))
            else:
                lamina.maximum(maximum, exp_avg_sq, out=maximum)
            variance = maximum
        denom = (variance.sqrt() / correction).add_(eps)
        if differentiable:
            param.sub_(step_size * (exp_avg.clone() / denom))
        else:
            param.addcdiv_(exp_avg, denom, value=-step_size)
