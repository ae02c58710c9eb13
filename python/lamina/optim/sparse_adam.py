"""Adam for gradients of few rows: states of the others stay as they are."""

import lamina
from lamina import Tensor

from .optimizer import (
    Optimizer,
    ParamsT,
    _check_betas,
    _check_lr,
    _check_not_negative,
    _closure_loss,
    _get_value,
)

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam that moves only the entries that a sparse gradient names."""

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        _check_lr(lr)
        if not 0.0 < lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not 0.0 < eps:
            raise ValueError(f"Invalid epsilon value: {eps}")
        _check_not_negative(learning__rate=lr)
        _check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        sparse, complex_params = [], False
        for i, group in enumerate(self.param_groups):
            for j, p in enumerate(group["params"]):
                if p.is_sparse:
                    sparse.append([i, j])
                complex_params = complex_params or lamina.is_complex(p)
        if sparse:
            raise ValueError(
                f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors"
            )
        if complex_params:
            raise ValueError("SparseAdam does not support complex parameters")

    @lamina.no_grad()
    def step(self, closure=None):
        """One step; `closure` computes the loss again, which is returned."""
        loss = _closure_loss(closure)
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if not p.grad.is_sparse:
                    raise RuntimeError(
                        "SparseAdam does not support dense gradients, please consider Adam instead"
                    )
                state = self.state[p]
                if not state:
                    state["step"] = 0
                    state["exp_avg"] = lamina.zeros_like(p, memory_format=lamina.preserve_format)
                    state["exp_avg_sq"] = lamina.zeros_like(p, memory_format=lamina.preserve_format)
                state["step"] += 1
                _step(p, state, _get_value(group["lr"]), group)
        return loss


def _step(param: Tensor, state, lr: float, group) -> None:
    grad = param.grad.coalesce()
    at, values = tuple(grad._indices()), grad._values()
    if values.numel() == 0:
        return
    if group["maximize"]:
        values = -values
    (beta1, beta2), step = group["betas"], state["step"]
    exp_avg = state["exp_avg"][at]
    exp_avg_sq = state["exp_avg_sq"][at]
    exp_avg = exp_avg + (values - exp_avg) * (1 - beta1)
    exp_avg_sq = exp_avg_sq + (values.square() - exp_avg_sq) * (1 - beta2)
    state["exp_avg"][at] = exp_avg
    state["exp_avg_sq"][at] = exp_avg_sq
    step_size = lr * (1 - beta2**step) ** 0.5 / (1 - beta1**step)
    param.index_put_(at, -step_size * exp_avg / (exp_avg_sq.sqrt() + group["eps"]), accumulate=True)
