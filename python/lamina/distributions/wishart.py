"""The Wishart distribution."""

import math
import warnings

import lamina
from lamina import Size, Tensor

from . import constraints
from ._matrices import COVARIANCE_FORMS, WithCovariance, log_diagonal
from .chi2 import Chi2
from .exp_family import ExponentialFamily
from .utils import _standard_normal

__all__ = ["Wishart"]

_TRIES = 3  # for draws that rounding made singular


class Wishart(WithCovariance, ExponentialFamily):
    """Sums of `df` outer products x x^T of normal vectors of the given covariance, (..., n, n).

    `df` is any number above n - 1. The covariance is given as itself, as its inverse or as its lower Cholesky
    factor. Raises ValueError where df is too small, AssertionError unless one form is given.
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0
    _parameters = {"df": 0, "covariance_matrix": 2, "precision_matrix": 2, "scale_tril": 2}

    def __init__(
        self,
        df: Tensor | float,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        df_shape = df.shape if isinstance(df, Tensor) else ()
        name, matrix, batch_shape = self._take_covariance(
            covariance_matrix, precision_matrix, scale_tril, df_shape, AssertionError
        )
        event_shape = matrix.shape[-2:]
        df = lamina.as_tensor(df, dtype=matrix.dtype, device=matrix.device)
        self.df = df.expand(batch_shape)
        if self.df.le(event_shape[-1] - 1).any():
            raise ValueError(
                f"Value of df={df} expected to be greater than ndim - 1 = {event_shape[-1] - 1}."
            )
        self._event_shape = event_shape
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        if self.df.lt(event_shape[-1]).any():
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for "
                "ndim - 1 < df < ndim.",
                stacklevel=2,
            )
        self._unbroadcasted_scale_tril = self._factor(name, matrix)
        steps = lamina.arange(event_shape[-1], dtype=df.dtype, device=df.device)
        self._dist_chi2 = Chi2(self.df.unsqueeze(-1) - steps, validate_args=False)

    @property
    def arg_constraints(self):
        return {**COVARIANCE_FORMS, "df": constraints.greater_than(self._event_shape[-1] - 1)}

    def _inner_batch_shape(self, name, batch_shape):
        return batch_shape + self._event_shape[-1:]

    @property
    def mean(self) -> Tensor:
        return self.df.view(self._batch_shape + (1, 1)) * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self.df - self._event_shape[-1] - 1
        factor = factor.masked_fill(factor <= 0, lamina.nan)
        return factor.view(self._batch_shape + (1, 1)) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        outer = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df.view(self._batch_shape + (1, 1)) * (v.pow(2) + outer)

    def _bartlett_sampling(self, sample_shape):
        """L A A^T L^T, A lower triangular of normal numbers and roots of chi-squared ones (Bartlett 1933)."""
        shape = self._extended_shape(sample_shape)
        below = _standard_normal(shape, self.df.dtype, self.df.device).tril(diagonal=-1)
        diagonal = self._dist_chi2.rsample(sample_shape).sqrt().diag_embed()
        factor = self._unbroadcasted_scale_tril @ (below + diagonal)
        return factor @ factor.mT

    def rsample(self, sample_shape: Size | list[int] | tuple[int, ...] = Size()) -> Tensor:  # noqa: B008
        sample_shape = Size(sample_shape)
        drawn = self._bartlett_sampling(sample_shape)
        for _ in range(_TRIES):
            singular = lamina.linalg.cholesky_ex(drawn.detach()).info != 0
            if not singular.any():
                break
            warnings.warn("Singular sample detected.", stacklevel=2)
            again = self._bartlett_sampling(sample_shape)
            drawn = lamina.where(singular[..., None, None], again, drawn)
        return drawn

    def log_prob(self, value: Tensor) -> Tensor:
        value, nu, p = self._checked(value), self.df, self._event_shape[-1]
        lower = self._unbroadcasted_scale_tril
        inverse = lamina.cholesky_inverse(lower)
        return (
            -nu * (p * math.log(2) / 2 + log_diagonal(lower))
            - lamina.mvlgamma(nu / 2, p=p)
            + (nu - p - 1) / 2 * lamina.linalg.slogdet(value).logabsdet
            - (inverse * value).sum([-2, -1]) / 2
        )

    def entropy(self) -> Tensor:
        nu, p = self.df, self._event_shape[-1]
        steps = lamina.arange(p, dtype=nu.dtype, device=nu.device)
        digammas = lamina.digamma((nu.unsqueeze(-1) - steps) / 2).sum(-1)
        return (
            (p + 1) * (p * math.log(2) / 2 + log_diagonal(self._unbroadcasted_scale_tril))
            + lamina.mvlgamma(nu / 2, p=p)
            - (nu - p - 1) / 2 * digammas
            + nu * p / 2
        )

    @property
    def _natural_params(self):
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x, y):
        p = self._event_shape[-1]
        half = y + (p + 1) / 2
        determinant = lamina.linalg.slogdet(-2 * x).logabsdet
        return half * (-determinant + math.log(2) * p) + lamina.mvlgamma(half, p=p)
