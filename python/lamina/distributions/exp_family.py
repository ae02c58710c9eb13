"""Exponential families: densities exp(t(x) . theta - F(theta) + k(x))."""

import lamina
from lamina import Tensor

from .distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """A distribution that knows its natural parameters theta and its log normalizer F.

    Where the mean carrier measure E[k(x)] is known, entropy and divergences follow from F by
    differentiation: the gradient of F is the mean of the sufficient statistics t(x).
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params):
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> float:
        raise NotImplementedError

    def _statistics(self):
        """Natural parameters, F of them and its gradient, with a graph."""
        with lamina.enable_grad():
            natural = [
                p.detach().requires_grad_() if not p.requires_grad else p
                for p in self._natural_params
            ]
            normalizer = self._log_normalizer(*natural)
            means = lamina.autograd.grad(normalizer.sum(), natural, create_graph=True)
        return natural, normalizer, means

    def entropy(self):
        natural, normalizer, means = self._statistics()
        result = normalizer - self._mean_carrier_measure
        for theta, mean in zip(natural, means):
            result = result - (theta * mean).reshape(self._batch_shape + (-1,)).sum(-1)
        return result
