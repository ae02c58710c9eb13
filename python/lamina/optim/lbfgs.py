"""L-BFGS: a quasi-Newton method that remembers the last steps and their changes of gradient."""

import lamina
from lamina import Tensor

from .optimizer import Optimizer, ParamsT, _check_lr, _get_value

__all__ = ["LBFGS"]


def _cubic_interpolate(x1, f1, g1, x2, f2, g2, bounds=None):
    """Where the cubic through two points with their slopes is least, kept within the bounds."""
    low, high = bounds if bounds is not None else (min(x1, x2), max(x1, x2))
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1**2 - g1 * g2
    if square < 0:
        return (low + high) / 2.0
    d2 = square**0.5
    if x1 <= x2:
        best = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        best = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(best, low), high)


def _strong_wolfe(obj_func, x, t, d, f, g, gtd, c1=1e-4, c2=0.9, tolerance_change=1e-9, max_ls=25):
    """A step along `d` that lowers the loss enough and flattens its slope (strong Wolfe).

    Starts with step `t` from loss `f`, gradient `g` and slope `gtd`. Returns the loss there, its
    gradient, the step and how often the loss was computed.
    """
    largest = d.abs().max()
    g = g.clone(memory_format=lamina.contiguous_format)
    f_new, g_new = obj_func(x, t, d)
    evaluations = 1
    slope_new = g_new.dot(d)

    # First a bracket: two steps between which a good one lies.
    before = (0, f, g, gtd)
    done = False
    iteration = 0
    while iteration < max_ls:
        here = (t, f_new, g_new.clone(memory_format=lamina.contiguous_format), slope_new)
        if f_new > f + c1 * t * gtd or (iteration > 1 and f_new >= before[1]):
            bracket = [before, here]
            break
        if abs(slope_new) <= -c2 * gtd:
            bracket = [(t, f_new, g_new, slope_new)]
            done = True
            break
        if slope_new >= 0:
            bracket = [before, here]
            break
        shortest = t + 0.01 * (t - before[0])
        longest = t * 10
        last = t
        t = _cubic_interpolate(
            before[0], before[1], before[3], t, f_new, slope_new, bounds=(shortest, longest)
        )
        before = (last, f_new, g_new.clone(memory_format=lamina.contiguous_format), slope_new)
        f_new, g_new = obj_func(x, t, d)
        evaluations += 1
        slope_new = g_new.dot(d)
        iteration += 1
    if iteration == max_ls:
        bracket = [(0, f, g, gtd), (t, f_new, g_new, slope_new)]

    # Then the bracket is made smaller.
    stuck = False
    low, high = (0, 1) if bracket[0][1] <= bracket[-1][1] else (1, 0)
    while not done and iteration < max_ls:
        ends = bracket[0][0], bracket[1][0]
        width = max(ends) - min(ends)
        if width * largest < tolerance_change:
            break
        t = _cubic_interpolate(
            bracket[0][0], bracket[0][1], bracket[0][3], bracket[1][0], bracket[1][1], bracket[1][3]
        )
        # Close to an end twice, or at it, the step is moved a tenth of the width away from it.
        margin = 0.1 * width
        if min(max(ends) - t, t - min(ends)) < margin:
            if stuck or t >= max(ends) or t <= min(ends):
                if abs(t - max(ends)) < abs(t - min(ends)):
                    t = max(ends) - margin
                else:
                    t = min(ends) + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        f_new, g_new = obj_func(x, t, d)
        evaluations += 1
        slope_new = g_new.dot(d)
        iteration += 1
        here = (t, f_new, g_new.clone(memory_format=lamina.contiguous_format), slope_new)
        if f_new > f + c1 * t * gtd or f_new >= bracket[low][1]:
            bracket[high] = here
            low, high = (0, 1) if bracket[0][1] <= bracket[1][1] else (1, 0)
        else:
            if abs(slope_new) <= -c2 * gtd:
                done = True
            elif slope_new * (bracket[high][0] - bracket[low][0]) >= 0:
                bracket[high] = bracket[low]
            bracket[low] = here
    t, f_new, g_new, _ = bracket[low if len(bracket) > 1 else 0]
    return f_new, g_new, t, evaluations


class LBFGS(Optimizer):
    """L-BFGS, optionally with a line search ("strong_wolfe"); one group of parameters.

    step() needs a closure that computes the loss and its gradients; one step is up to `max_iter`
    iterations and `max_eval` calls of the closure (default: a quarter more).
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        _check_lr(lr)
        if not 0.0 <= lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]
        self._numel_cache = None

    def _numel(self) -> int:
        if self._numel_cache is None:
            self._numel_cache = sum(
                2 * p.numel() if lamina.is_complex(p) else p.numel() for p in self._params
            )
        return self._numel_cache

    def _gather_flat_grad(self) -> Tensor:
        views = []
        for p in self._params:
            if p.grad is None:
                view = p.new_zeros(p.numel())
            else:
                view = (p.grad.to_dense() if p.grad.is_sparse else p.grad).reshape(-1)
            views.append(lamina.view_as_real(view).reshape(-1) if lamina.is_complex(view) else view)
        return lamina.cat(views, 0)

    def _add_grad(self, update: Tensor, alpha) -> None:
        """Every parameter += alpha * its part of `update`."""
        offset = 0
        for p in self._params:
            if lamina.is_complex(p):
                p = lamina.view_as_real(p)
            numel = p.numel()
            p.add_(update[offset : offset + numel].view_as(p), alpha=alpha)
            offset += numel

    def _clone_param(self) -> list[Tensor]:
        return [p.clone(memory_format=lamina.contiguous_format) for p in self._params]

    def _set_param(self, params_data: list[Tensor]) -> None:
        for p, data in zip(self._params, params_data):
            p.copy_(data)

    def _directional_evaluate(self, closure, x, t, d):
        self._add_grad(d, t)
        loss = float(closure())
        flat_grad = self._gather_flat_grad()
        self._set_param(x)
        return loss, flat_grad

    @lamina.no_grad()
    def step(self, closure):
        """Up to max_iter iterations; returns the loss before them."""
        closure = lamina.enable_grad()(closure)
        group = self.param_groups[0]
        lr = _get_value(group["lr"])
        max_iter, max_eval = group["max_iter"], group["max_eval"]
        tolerance_grad, tolerance_change = group["tolerance_grad"], group["tolerance_change"]
        line_search_fn, history_size = group["line_search_fn"], group["history_size"]

        # One state for all parameters.
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        orig_loss = closure()
        loss = float(orig_loss)
        evaluations = 1
        state["func_evals"] += 1
        flat_grad = self._gather_flat_grad()
        if flat_grad.abs().max() <= tolerance_grad:
            return orig_loss

        d, t = state.get("d"), state.get("t")
        old_dirs, old_stps, ro = state.get("old_dirs"), state.get("old_stps"), state.get("ro")
        h_diag = state.get("H_diag")
        prev_flat_grad, prev_loss = state.get("prev_flat_grad"), state.get("prev_loss")

        n_iter = 0
        while n_iter < max_iter:
            n_iter += 1
            state["n_iter"] += 1

            # The direction: minus the gradient, through the inverse Hessian that memory gives.
            if state["n_iter"] == 1:
                d = flat_grad.neg()
                old_dirs, old_stps, ro = [], [], []
                h_diag = 1
            else:
                y = flat_grad.sub(prev_flat_grad)
                s = d.mul(t)
                ys = y.dot(s)
                if ys > 1e-10:
                    if len(old_dirs) == history_size:
                        for memory in (old_dirs, old_stps, ro):
                            memory.pop(0)
                    old_dirs.append(y)
                    old_stps.append(s)
                    ro.append(1.0 / ys)
                    h_diag = ys / y.dot(y)
                count = len(old_dirs)
                if "al" not in state:
                    state["al"] = [None] * history_size
                al = state["al"]
                q = flat_grad.neg()
                for i in range(count - 1, -1, -1):
                    al[i] = old_stps[i].dot(q) * ro[i]
                    q.add_(old_dirs[i], alpha=-_get_value(al[i]))
                d = r = lamina.mul(q, h_diag)
                for i in range(count):
                    be_i = old_dirs[i].dot(r) * ro[i]
                    r.add_(old_stps[i], alpha=_get_value(al[i] - be_i))

            if prev_flat_grad is None:
                prev_flat_grad = flat_grad.clone(memory_format=lamina.contiguous_format)
            else:
                prev_flat_grad.copy_(flat_grad)
            prev_loss = loss

            # The step along it.
            t = (
                min(1.0, 1.0 / _get_value(flat_grad.abs().sum())) * lr
                if state["n_iter"] == 1
                else lr
            )
            slope = flat_grad.dot(d)
            if slope > -tolerance_change:
                break
            new_evaluations = 0
            if line_search_fn is not None:
                if line_search_fn != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                x_init = self._clone_param()
                loss, flat_grad, t, new_evaluations = _strong_wolfe(
                    lambda x, t, d: self._directional_evaluate(closure, x, t, d),
                    x_init,
                    t,
                    d,
                    loss,
                    flat_grad,
                    _get_value(slope),
                )
                t = _get_value(t)
                self._add_grad(d, t)
                optimal = flat_grad.abs().max() <= tolerance_grad
            else:
                self._add_grad(d, t)
                optimal = False
                if n_iter != max_iter:
                    # After the last step nobody needs the loss again.
                    loss = float(closure())
                    flat_grad = self._gather_flat_grad()
                    optimal = flat_grad.abs().max() <= tolerance_grad
                    new_evaluations = 1
            evaluations += new_evaluations
            state["func_evals"] += new_evaluations

            if n_iter == max_iter or evaluations >= max_eval or optimal:
                break
            if d.mul(t).abs().max() <= tolerance_change:
                break
            if abs(loss - prev_loss) < tolerance_change:
                break

        state["d"], state["t"] = d, t
        state["old_dirs"], state["old_stps"], state["ro"] = old_dirs, old_stps, ro
        state["H_diag"] = h_diag
        state["prev_flat_grad"], state["prev_loss"] = prev_flat_grad, prev_loss
        return orig_loss
