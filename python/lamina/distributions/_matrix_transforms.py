"""Transforms between vectors, and between vectors and matrices."""

import math

import lamina
from lamina.nn.functional import pad, softplus

from . import constraints
from ._transform import Transform, _end, _SameKind
from .utils import tril_matrix_to_vec, vec_to_tril_matrix


class CorrCholeskyTransform(Transform):
    """A vector of D (D - 1) / 2 numbers to the Cholesky factor of a D x D correlation matrix.

    The numbers' tanh are canonical partial correlations z; row i is
    z_ij sqrt(prod over k < j of (1 - z_ik^2)), and 1 in place of z_ii (Lewandowski, Kurowicka, Joe 2009).
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x):
        x = lamina.tanh(x)
        eps = lamina.finfo(x.dtype).eps
        r = vec_to_tril_matrix(x.clamp(min=-1 + eps, max=1 - eps), diag=-1)
        rest = (1 - r * r).sqrt().cumprod(-1)
        r = r + lamina.eye(r.shape[-1], dtype=r.dtype, device=r.device)
        return r * pad(rest[..., :-1], [1, 0], value=1)

    @staticmethod
    def _rests(y):
        """1 minus the sum of squares before each entry, of the strict lower triangle."""
        sums = 1 - lamina.cumsum(y * y, dim=-1)
        return pad(sums[..., :-1], [1, 0], value=1)

    def _inverse(self, y):
        y_vec = tril_matrix_to_vec(y, diag=-1)
        t = y_vec / tril_matrix_to_vec(self._rests(y), diag=-1).sqrt()
        return (t.log1p() - t.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x, y, intermediates=None):
        # dy_ij/dz_ij is the root of what is left of row i before j; dz/dx = 1 - tanh(x)^2.
        stick = 0.5 * tril_matrix_to_vec(self._rests(y), diag=-1).log().sum(-1)
        tanh = -2 * (x + softplus(-2 * x) - math.log(2.0)).sum(-1)
        return stick + tanh

    def forward_shape(self, shape):
        cut = _end(shape, 1)
        count = shape[cut]
        size = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if size * (size - 1) // 2 != count:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return shape[:cut] + (size, size)

    def inverse_shape(self, shape):
        cut = _end(shape, 2)
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        size = shape[-1]
        return shape[:cut] + (size * (size - 1) // 2,)


class SoftmaxTransform(_SameKind):
    """Vectors to the simplex by softmax; it forgets a constant, so that it is not bijective."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x):
        return lamina.softmax(x, -1)

    def _inverse(self, y):
        return y.log()

    def forward_shape(self, shape):
        _end(shape, 1)
        return shape

    def inverse_shape(self, shape):
        _end(shape, 1)
        return shape


class StickBreakingTransform(_SameKind):
    """A vector of K numbers to the simplex of K + 1: each takes its share of what is left.

    The share of entry i is sigmoid(x_i - log(K - i)), so that 0 goes to the centre.
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    @staticmethod
    def _offset(x):
        size = x.shape[-1]
        return size + 1 - x.new_ones(size).cumsum(-1)

    def _call(self, x):
        z = lamina.sigmoid(x - self._offset(x).log())
        return pad(z, [0, 1], value=1) * pad((1 - z).cumprod(-1), [1, 0], value=1)

    def _inverse(self, y):
        head = y[..., :-1]
        rest = 1 - head.cumsum(-1)
        rest = rest.clamp(min=lamina.finfo(y.dtype).tiny)
        return head.log() - rest.log() + self._offset(head).log()

    def log_abs_det_jacobian(self, x, y):
        x = x - self._offset(x).log()
        return (-x + lamina.nn.functional.logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape):
        cut = _end(shape, 1)
        return shape[:cut] + (shape[-1] + 1,)

    def inverse_shape(self, shape):
        cut = _end(shape, 1)
        return shape[:cut] + (shape[-1] - 1,)


class LowerCholeskyTransform(_SameKind):
    """Square matrices to lower triangular ones with positive diagonals: the exponential of the diagonal."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x):
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y):
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_SameKind):
    """Square matrices to positive definite ones: L L^T of the lower Cholesky transform."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x):
        lower = LowerCholeskyTransform()(x)
        return lower @ lower.mT

    def _inverse(self, y):
        return LowerCholeskyTransform().inv(lamina.linalg.cholesky(y))
