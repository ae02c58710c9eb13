"""Stochastic gradient descent with momentum."""

import lamina
from lamina import _C, Tensor

from .optimizer import (
    _PLAIN,
    Optimizer,
    ParamsT,
    _are_plain,
    _check_foreach,
    _check_lr,
    _check_not_negative,
    _closure_loss,
    _get_value,
    _unscaled,
    _use_grad_for_differentiable,
)

__all__ = ["SGD", "sgd"]


class SGD(Optimizer):
    """p -= lr * g, where g may be a running sum of gradients (momentum), and of weights (decay)."""

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        _check_lr(lr)
        _check_not_negative(
            learning__rate=lr, momentum__value=momentum, weight_decay__value=weight_decay
        )
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        if fused:
            self._step_supports_amp_scaling = True
            if differentiable:
                raise RuntimeError("`fused` does not support `differentiable`")
            if foreach:
                raise RuntimeError("`fused` and `foreach` cannot be `True` together.")

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("nesterov", False)
            group.setdefault("maximize", False)
            group.setdefault("foreach", None)
            group.setdefault("differentiable", False)
            group.setdefault("fused", False)

    def _init_group(self, group, params, grads, momentum_buffer_list):
        has_sparse_grad = False
        state = self.state
        with_momentum = group["momentum"] != 0
        for p in group["params"]:
            grad = p.grad
            if grad is None:
                continue
            params.append(p)
            grads.append(grad)
            if with_momentum:
                momentum_buffer_list.append(state[p].get("momentum_buffer"))
        return has_sparse_grad

    @_use_grad_for_differentiable
    def step(self, closure=None):
        """One step; `closure` computes the loss again, which is returned."""
        loss = None if closure is None else _closure_loss(closure)
        for group in self.param_groups:
            params: list[Tensor] = []
            grads: list[Tensor] = []
            buffers: list[Tensor | None] = []
            sparse = self._init_group(group, params, grads, buffers)
            # The commonest case at once, without the passage through sgd().
            if (
                type(group["lr"]) is float
                and "grad_scale" not in self.__dict__
                and _PLAIN.issuperset(map(type, buffers))
                and _are_plain(params, grads)
                and not isinstance(group["weight_decay"], Tensor)
                and _C._sgd_step_(
                    params,
                    grads,
                    buffers,
                    group["lr"],
                    group["weight_decay"],
                    group["momentum"],
                    group["dampening"],
                    group["nesterov"],
                    group["maximize"],
                )
            ):
                continue
            fresh = [i for i, buffer in enumerate(buffers) if buffer is None]
            sgd(
                params,
                grads,
                buffers,
                weight_decay=group["weight_decay"],
                momentum=group["momentum"],
                lr=group["lr"],
                dampening=group["dampening"],
                nesterov=group["nesterov"],
                maximize=group["maximize"],
                has_sparse_grad=sparse,
                foreach=group["foreach"],
                fused=group["fused"],
                grad_scale=getattr(self, "grad_scale", None),
                found_inf=getattr(self, "found_inf", None),
            )
            for i in fresh:
                self.state[params[i]]["momentum_buffer"] = buffers[i]
        return loss


def sgd(
    params: list[Tensor],
    d_p_list: list[Tensor],
    momentum_buffer_list: list[Tensor | None],
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    *,
    weight_decay: float,
    momentum: float,
    lr: float,
    dampening: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    """One step of SGD for parallel lists; missing momentum buffers are made and put in the list."""
    if grad_scale is not None or found_inf is not None:
        d_p_list = _unscaled(d_p_list, grad_scale, found_inf)
        if d_p_list is None:
            return
    if (
        (momentum == 0 or _PLAIN.issuperset(map(type, momentum_buffer_list)))
        and _are_plain(params, d_p_list)
        and _C._sgd_step_(
            params,
            d_p_list,
            momentum_buffer_list if momentum != 0 else [],
            _get_value(lr),
            _get_value(weight_decay),
            momentum,
            dampening,
            nesterov,
            maximize,
        )
    ):
        return
    _check_foreach(foreach, lamina.is_grad_enabled() and foreach, params)
    _single_tensor_sgd(
        params,
        d_p_list,
        momentum_buffer_list,
        weight_decay=weight_decay,
        momentum=momentum,
        lr=lr,
        dampening=dampening,
        nesterov=nesterov,
        maximize=maximize,
        has_sparse_grad=has_sparse_grad,
    )


def _single_tensor_sgd(
    params,
    grads,
    momentum_buffer_list,
    grad_scale=None,
    found_inf=None,
    *,
    weight_decay,
    momentum,
    lr,
    dampening,
    nesterov,
    maximize,
    has_sparse_grad=False,
):
    for i, param in enumerate(params):
        grad = -grads[i] if maximize else grads[i]
        if isinstance(weight_decay, Tensor):
            if weight_decay.requires_grad:
                grad = grad.addcmul(param.clone(), weight_decay)
            else:
                grad = grad.add(param, alpha=_get_value(weight_decay))
        elif weight_decay != 0:
            grad = grad.add(param, alpha=weight_decay)
        if momentum != 0:
            buffer = momentum_buffer_list[i]
            if buffer is None:
                buffer = momentum_buffer_list[i] = grad.detach().clone()
            else:
                buffer.mul_(momentum).add_(grad, alpha=1 - dampening)
            grad = grad.add(buffer, alpha=momentum) if nesterov else buffer
        if isinstance(lr, Tensor) and lr.requires_grad:
            param.addcmul_(grad, lr, value=-1)
        else:
            param.add_(grad, alpha=-_get_value(lr))
