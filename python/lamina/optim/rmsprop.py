"""RMSprop: gradients over the root of their mean square."""

import lamina
from lamina import _C, Tensor

from .optimizer import (
    Optimizer,
    ParamsT,
    _are_plain,
    _check_capturable,
    _check_foreach,
    _check_lr,
    _check_not_negative,
    _check_steps,
    _closure_loss,
    _get_value,
    _new_step,
    _steps_to_tensors,
    _use_grad_for_differentiable,
    _zeros,
)

__all__ = ["RMSprop", "rmsprop"]


class RMSprop(Optimizer):
    """p -= lr * g / (sqrt(mean of g^2) + eps), with momentum and, if `centered`, the variance of g."""

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check_lr(lr)
        _check_not_negative(
            learning__rate=lr,
            epsilon__value=eps,
            momentum__value=momentum,
            weight_decay__value=weight_decay,
            alpha__value=alpha,
        )
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
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
            group.setdefault("momentum", 0)
            group.setdefault("centered", False)
            _steps_to_tensors(self.state, group)

    def _init_group(
        self, group, params, grads, square_avgs, grad_avgs, momentum_buffer_list, state_steps
    ):
        has_complex = False
        for p in group["params"]:
            if p.grad is None:
                continue
            has_complex |= lamina.is_complex(p)
            if p.grad.is_sparse:
                raise RuntimeError("RMSprop does not support sparse gradients")
            state = self.state[p]
            if not state:
                state["step"] = _new_step()
                state["square_avg"] = _zeros(p)
                if group["momentum"] > 0:
                    state["momentum_buffer"] = _zeros(p)
                if group["centered"]:
                    state["grad_avg"] = _zeros(p)
            params.append(p)
            grads.append(p.grad)
            square_avgs.append(state["square_avg"])
            if group["centered"]:
                grad_avgs.append(state["grad_avg"])
            if group["momentum"] > 0:
                momentum_buffer_list.append(state["momentum_buffer"])
            state_steps.append(state["step"])
        return has_complex

    @_use_grad_for_differentiable
    def step(self, closure=None):
        """One step; `closure` computes the loss again, which is returned."""
        loss = _closure_loss(closure)
        for group in self.param_groups:
            params: list[Tensor] = []
            grads: list[Tensor] = []
            square_avgs: list[Tensor] = []
            grad_avgs: list[Tensor] = []
            momentum_buffer_list: list[Tensor] = []
            state_steps: list[Tensor] = []
            has_complex = self._init_group(
                group, params, grads, square_avgs, grad_avgs, momentum_buffer_list, state_steps
            )
            rmsprop(
                params,
                grads,
                square_avgs,
                grad_avgs,
                momentum_buffer_list,
                state_steps,
                lr=group["lr"],
                alpha=group["alpha"],
                eps=group["eps"],
                weight_decay=group["weight_decay"],
                momentum=group["momentum"],
                centered=group["centered"],
                foreach=group["foreach"],
                maximize=group["maximize"],
                differentiable=group["differentiable"],
                capturable=group["capturable"],
                has_complex=has_complex,
            )
        return loss


def rmsprop(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    grad_avgs: list[Tensor],
    momentum_buffer_list: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
) -> None:
    """One step of RMSprop for parallel lists."""
    _check_steps(state_steps)
    _check_capturable(capturable, params)
    _check_foreach(foreach, differentiable, params)
    if (
        not differentiable
        and _are_plain(params, grads)
        and _C._rmsprop_step_(
            params,
            grads,
            square_avgs,
            grad_avgs,
            momentum_buffer_list,
            state_steps,
            _get_value(lr),
            alpha,
            eps,
            weight_decay,
            momentum,
            centered,
            maximize,
        )
    ):
        return
    _single_tensor_rmsprop(
        params,
        grads,
        square_avgs,
        grad_avgs,
        momentum_buffer_list,
        state_steps,
        lr=lr,
        alpha=alpha,
        eps=eps,
        weight_decay=weight_decay,
        momentum=momentum,
        centered=centered,
        maximize=maximize,
        differentiable=differentiable,
        capturable=capturable,
        has_complex=has_complex,
    )


def _single_tensor_rmsprop(
    params,
    grads,
    square_avgs,
    grad_avgs,
    momentum_buffer_list,
    state_steps,
    *,
    lr,
    alpha,
    eps,
    weight_decay,
    momentum,
    centered,
    maximize=False,
    differentiable=False,
    capturable=False,
    has_complex=False,
):
    for i, (param, grad, square_avg, step) in enumerate(
        zip(params, grads, square_avgs, state_steps)
    ):
        step += 1
        grad = -grad if maximize else grad
        if weight_decay != 0:
            grad = grad.add(param, alpha=weight_decay)
        is_complex = lamina.is_complex(param)
        if is_complex:
            param, grad, square_avg = map(lamina.view_as_real, (param, grad, square_avg))
        square_avg.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if centered:
            grad_avg = lamina.view_as_real(grad_avgs[i]) if is_complex else grad_avgs[i]
            grad_avg.lerp_(grad, 1 - alpha)
            avg = square_avg.addcmul(grad_avg, grad_avg, value=-1).sqrt_()
        else:
            avg = square_avg.sqrt()
        avg = avg.add(eps) if differentiable else avg.add_(eps)
        if momentum > 0:
            buffer = momentum_buffer_list[i]
            if is_complex:
                buffer = lamina.view_as_real(buffer)
            buffer.mul_(momentum).addcdiv_(grad, avg)
            param.sub_(buffer * lr) if differentiable else param.add_(buffer, alpha=-_get_value(lr))
        elif differentiable:
            param.sub_(grad / avg * lr)
        else:
            param.addcdiv_(grad, avg, value=-_get_value(lr))
