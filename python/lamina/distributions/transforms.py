"""Functions between spaces whose inverses and Jacobians are known."""

import functools
import math
import operator
import weakref
from collections.abc import Sequence

import lamina
from lamina import Size, Tensor
from lamina.nn.functional import pad, softplus

from . import constraints
from .distribution import Distribution
from .utils import (
    _sum_rightmost,
    broadcast_all,
    lazy_property,
    tril_matrix_to_vec,
    vec_to_tril_matrix,
)

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftplusTransform",
    "TanhTransform",
    "SoftmaxTransform",
    "StackTransform",
    "StickBreakingTransform",
    "Transform",
    "identity_transform",
]


class Transform:
    """A function from `domain` to `codomain` with a (pseudo-)inverse and log |det of its Jacobian|.

    With ``cache_size=1`` the last pair of value and result is kept, so that inverting a result gives
    the very value back: cheaper, exact, and with gradients of the way there only. `bijective` says
    that ``t(t.inv(t(x)))`` and ``t.inv(t(x))`` give what they should; `sign` is that of the derivative
    where there is one number for it. A subclass defines ``_call``, ``_inverse`` and
    ``log_abs_det_jacobian``. Raises ValueError for another cache size.
    """

    bijective = False
    domain: constraints.Constraint
    codomain: constraints.Constraint

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._inv = None
        self._cached_x_y = (None, None)
        super().__init__()

    def __getstate__(self):
        state = self.__dict__.copy()
        state["_inv"] = None  # a weak reference
        return state

    @property
    def event_dim(self) -> int:
        """Number of dimensions of one event, where both sides have the same."""
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> "Transform":
        """The inverse transform; its `inv` is this one."""
        inverse = None if self._inv is None else self._inv()
        if inverse is None:
            inverse = _InverseTransform(self)
            self._inv = weakref.ref(inverse)
        return inverse

    @property
    def sign(self) -> int | Tensor:
        """Sign of the derivative of a monotone transform of numbers."""
        raise NotImplementedError

    def with_cache(self, cache_size: int = 1) -> "Transform":
        """This transform with another cache size."""
        if self._cache_size == cache_size:
            return self
        arguments = self._arguments()
        if arguments is None:
            raise NotImplementedError(f"{type(self)}.with_cache is not implemented")
        return type(self)(*arguments, cache_size=cache_size)

    def _arguments(self):
        """What to make an equal transform from, besides the cache size."""
        return () if type(self).__init__ is Transform.__init__ else None

    def __eq__(self, other):
        return self is other or (type(self)._call is not Transform._call and self._is_equal(other))

    def _is_equal(self, other):
        return False

    __hash__ = object.__hash__

    def __call__(self, x: Tensor) -> Tensor:
        if self._cache_size == 0:
            return self._call(x)
        x_old, y_old = self._cached_x_y
        if x is x_old:
            return y_old
        y = self._call(x)
        self._cached_x_y = x, y
        return y

    def _inv_call(self, y):
        if self._cache_size == 0:
            return self._inverse(y)
        x_old, y_old = self._cached_x_y
        if y is y_old:
            return x_old
        x = self._inverse(y)
        self._cached_x_y = x, y
        return x

    def _call(self, x):
        raise NotImplementedError

    def _inverse(self, y):
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log |det dy/dx| at `x` with result `y`, one for each event."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.__class__.__name__ + "()"

    def forward_shape(self, shape: Size) -> Size:
        """Shape of the result for a value of shape `shape`."""
        return shape

    def inverse_shape(self, shape: Size) -> Size:
        """Shape of the value for a result of shape `shape`."""
        return shape


class _SameKind(Transform):
    """Transforms without parameters: any two of one kind are equal."""

    def _is_equal(self, other):
        return isinstance(other, type(self))


class _InverseTransform(Transform):
    """The inverse of a transform, which keeps the cache."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._inv = transform

    @property
    def domain(self):
        return self._inv.codomain

    @property
    def codomain(self):
        return self._inv.domain

    @property
    def bijective(self) -> bool:
        return self._inv.bijective

    @property
    def sign(self):
        return self._inv.sign

    @property
    def inv(self) -> Transform:
        return self._inv

    def with_cache(self, cache_size=1):
        return self.inv.with_cache(cache_size).inv

    def __getstate__(self):
        return self.__dict__.copy()

    def __eq__(self, other):
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    __hash__ = object.__hash__

    def __repr__(self):
        return f"{self.__class__.__name__}({self._inv!r})"

    def __call__(self, x):
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x, y):
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape):
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape):
        return self._inv.forward_shape(shape)


class ComposeTransform(Transform):
    """Transforms one after the other."""

    def __init__(self, parts: list[Transform], cache_size: int = 0) -> None:
        if cache_size:
            parts = [part.with_cache(cache_size) for part in parts]
        super().__init__(cache_size=cache_size)
        self.parts = parts

    def _is_equal(self, other):
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    def __eq__(self, other):
        return self._is_equal(other)

    __hash__ = object.__hash__

    def _side(self, first, last, parts):
        """Constraint and event dimensions at the side of `first`, which the further parts may widen."""
        constraint = getattr(self.parts[first], "domain" if first == 0 else "codomain")
        inner = "codomain" if first == 0 else "domain"
        outer = "domain" if first == 0 else "codomain"
        depth = getattr(self.parts[last], inner).event_dim
        for part in parts:
            near, far = getattr(part, outer).event_dim, getattr(part, inner).event_dim
            depth = near + max(depth - far, 0)
        if depth > constraint.event_dim:
            constraint = constraints.independent(constraint, depth - constraint.event_dim)
        return constraint

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        """Where the first part starts."""
        return self._side(0, -1, reversed(self.parts)) if self.parts else constraints.real

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        """Where the last part ends."""
        return self._side(-1, 0, self.parts) if self.parts else constraints.real

    @lazy_property
    def bijective(self) -> bool:
        """Whether every part is."""
        return all(p.bijective for p in self.parts)

    @lazy_property
    def sign(self) -> int | Tensor:
        """Product of the parts' signs."""
        return functools.reduce(operator.mul, (p.sign for p in self.parts), 1)

    @property
    def inv(self) -> Transform:
        inverse = None if self._inv is None else self._inv()
        if inverse is None:
            inverse = ComposeTransform([p.inv for p in reversed(self.parts)])
            self._inv = weakref.ref(inverse)
            inverse._inv = weakref.ref(self)
        return inverse

    def _arguments(self):
        return (self.parts,)

    def __call__(self, x):
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x, y):
        if not self.parts:
            return lamina.zeros_like(x)
        points = [x]
        for part in self.parts[:-1]:
            points.append(part(points[-1]))
        points.append(y)
        depth, terms = self.domain.event_dim, []
        for part, start, end in zip(self.parts, points[:-1], points[1:]):
            terms.append(
                _sum_rightmost(part.log_abs_det_jacobian(start, end), depth - part.domain.event_dim)
            )
            depth += part.codomain.event_dim - part.domain.event_dim
        return functools.reduce(operator.add, terms)

    def forward_shape(self, shape):
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape):
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self):
        inner = ",\n    ".join(repr(p) for p in self.parts)
        return f"{self.__class__.__name__}(\n    {inner}\n)"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform whose last batch dimensions belong to the event: Jacobians are summed over them."""

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def _arguments(self):
        return self.base_transform, self.reinterpreted_batch_ndims

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        """That of the base, with more event dimensions."""
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        """That of the base, with more event dimensions."""
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> bool:
        """That of the base."""
        return self.base_transform.bijective

    @property
    def sign(self) -> int | Tensor:
        return self.base_transform.sign

    def _call(self, x):
        if x.dim() < self.domain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform(x)

    def _inverse(self, y):
        if y.dim() < self.codomain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x, y):
        inner = self.base_transform.log_abs_det_jacobian(x, y)
        return _sum_rightmost(inner, self.reinterpreted_batch_ndims)

    def __repr__(self):
        name = self.__class__.__name__
        return f"{name}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"

    def forward_shape(self, shape):
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape):
        return self.base_transform.inverse_shape(shape)


def _end(shape, count, message="Too few dimensions on input"):
    """Where the last `count` dimensions of a shape begin."""
    if len(shape) < count:
        raise ValueError(message)
    return len(shape) - count


class ReshapeTransform(Transform):
    """Gives the last dimensions, of shape `in_shape`, the shape `out_shape`.

    Raises ValueError where the numbers of elements differ.
    """

    bijective = True

    def __init__(self, in_shape: Size, out_shape: Size, cache_size: int = 0) -> None:
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size=cache_size)

    @constraints.dependent_property
    def domain(self):
        """Tensors of shape `in_shape`."""
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self):
        """Tensors of shape `out_shape`."""
        return constraints.independent(constraints.real, len(self.out_shape))

    def _arguments(self):
        return self.in_shape, self.out_shape

    def _call(self, x):
        return x.reshape(x.shape[: x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y):
        return y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x, y):
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    @staticmethod
    def _swap(shape, old, new):
        cut = _end(shape, len(old))
        if shape[cut:] != old:
            raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {old}")
        return shape[:cut] + new

    def forward_shape(self, shape):
        return self._swap(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape):
        return self._swap(shape, self.out_shape, self.in_shape)


class ExpTransform(_SameKind):
    """y = exp(x)."""

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = +1

    def _call(self, x):
        return x.exp()

    def _inverse(self, y):
        return y.log()

    def log_abs_det_jacobian(self, x, y):
        return x


class PowerTransform(Transform):
    """y = x ** exponent, for positive x."""

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Tensor, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    def _arguments(self):
        return (self.exponent,)

    @lazy_property
    def sign(self) -> int | Tensor:
        """That of the exponent."""
        return self.exponent.sign()

    def _is_equal(self, other):
        return isinstance(other, PowerTransform) and bool(self.exponent.eq(other.exponent).all())

    def _call(self, x):
        return x.pow(self.exponent)

    def _inverse(self, y):
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x, y):
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape):
        return lamina.broadcast_shapes(shape, getattr(self.exponent, "shape", ()))

    def inverse_shape(self, shape):
        return lamina.broadcast_shapes(shape, getattr(self.exponent, "shape", ()))


class SigmoidTransform(_SameKind):
    """y = 1 / (1 + exp(-x)); results stay inside (0, 1) by rounding's width."""

    domain = constraints.real
    codomain = constraints.unit_interval
    bijective = True
    sign = +1

    def _call(self, x):
        info = lamina.finfo(x.dtype)
        return lamina.sigmoid(x).clamp(min=info.tiny, max=1.0 - info.eps)

    def _inverse(self, y):
        info = lamina.finfo(y.dtype)
        y = y.clamp(min=info.tiny, max=1.0 - info.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x, y):
        return -softplus(-x) - softplus(x)


class SoftplusTransform(_SameKind):
    """y = log(1 + exp(x)); the identity where x > 20."""

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = +1

    def _call(self, x):
        return softplus(x)

    def _inverse(self, y):
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x, y):
        return -softplus(-x)


class TanhTransform(_SameKind):
    """y = tanh(x). Its inverse is infinite at -1 and 1: a cache gives back the values themselves."""

    domain = constraints.real
    codomain = constraints.interval(-1.0, 1.0)
    bijective = True
    sign = +1

    def _call(self, x):
        return x.tanh()

    def _inverse(self, y):
        return lamina.atanh(y)

    def log_abs_det_jacobian(self, x, y):
        # 1 - tanh(x)^2 = 4 exp(-2 x) / (1 + exp(-2 x))^2, without cancellation.
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class AbsTransform(_SameKind):
    """y = |x|; the inverse is the positive one of two."""

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x):
        return x.abs()

    def _inverse(self, y):
        return y


class AffineTransform(Transform):
    """y = loc + scale x."""

    bijective = True

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, event_dim: int = 0, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size=cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    def _arguments(self):
        return self.loc, self.scale, self.event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    def _space(self):
        return (
            constraints.real
            if self._event_dim == 0
            else constraints.independent(constraints.real, self._event_dim)
        )

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        """All real events."""
        return self._space()

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        """All real events."""
        return self._space()

    def _is_equal(self, other):
        if not isinstance(other, AffineTransform):
            return False
        for mine, theirs in ((self.loc, other.loc), (self.scale, other.scale)):
            same = mine == theirs
            if not (same.all().item() if isinstance(same, Tensor) else same):
                return False
        return True

    @property
    def sign(self) -> Tensor | int:
        if isinstance(self.scale, Tensor):
            return self.scale.sign()
        return (self.scale > 0) - (self.scale < 0)

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y):
        if isinstance(self.scale, Tensor):
            result = self.scale.abs().log()
        else:
            result = lamina.full_like(x, math.log(abs(self.scale)))
        shape = x.shape
        if self.event_dim:
            result = _sum_rightmost(
                result.expand(lamina.broadcast_shapes(result.shape, shape[-self.event_dim :])),
                self.event_dim,
            )
            shape = shape[: -self.event_dim]
        return result.expand(shape)

    def _widened(self, shape):
        return lamina.broadcast_shapes(
            shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ())
        )

    def forward_shape(self, shape):
        return self._widened(shape)

    def inverse_shape(self, shape):
        return self._widened(shape)


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


class _Parts(Transform):
    """Transforms for parts of a tensor along `dim`; a subclass cuts and joins."""

    transforms: list[Transform]
    dim: int

    def _cut(self, x):
        raise NotImplementedError

    def _join(self, parts):
        raise NotImplementedError

    def _call(self, x):
        return self._join([t(part) for t, part in zip(self.transforms, self._cut(x))])

    def _inverse(self, y):
        return self._join([t.inv(part) for t, part in zip(self.transforms, self._cut(y))])

    @property
    def bijective(self) -> bool:
        """Whether every part is."""
        return all(t.bijective for t in self.transforms)


class CatTransform(_Parts):
    """Transforms for parts of given lengths along dimension `dim`."""

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("every item of tseq must be a Transform")
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) if cache_size else t for t in tseq]
        self.lengths = list([1] * len(self.transforms) if lengths is None else lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(
                f"expected as many lengths as transforms; got {len(self.lengths)} "
                f"and {len(self.transforms)}"
            )
        self.dim = dim

    def _arguments(self):
        return self.transforms, self.dim, self.lengths

    @lazy_property
    def event_dim(self) -> int:
        """The largest of the parts'."""
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self) -> int:
        """Size of dimension `dim`."""
        return sum(self.lengths)

    def _cut(self, x):
        if not -x.dim() <= self.dim < x.dim() or x.size(self.dim) != self.length:
            raise AssertionError(
                f"CatTransform: expected size {self.length} of dimension {self.dim}; got {tuple(x.shape)}"
            )
        return x.split(self.lengths, self.dim)

    def _join(self, parts):
        return lamina.cat(parts, dim=self.dim)

    def log_abs_det_jacobian(self, x, y):
        terms = []
        for transform, x_part, y_part in zip(self.transforms, self._cut(x), self._cut(y)):
            term = transform.log_abs_det_jacobian(x_part, y_part)
            terms.append(_sum_rightmost(term, self.event_dim - transform.event_dim))
        dim = self.dim if self.dim < 0 else self.dim - x.dim()
        dim += self.event_dim
        return lamina.cat(terms, dim=dim) if dim < 0 else sum(terms)

    @constraints.dependent_property
    def domain(self):
        """The parts' domains."""
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self):
        """The parts' codomains."""
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_Parts):
    """Transforms for the slices along dimension `dim`."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("every item of tseq must be a Transform")
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) if cache_size else t for t in tseq]
        self.dim = dim

    def _arguments(self):
        return self.transforms, self.dim

    def _cut(self, x):
        if not -x.dim() <= self.dim < x.dim() or x.size(self.dim) != len(self.transforms):
            raise AssertionError(
                f"StackTransform: expected size {len(self.transforms)} of dimension {self.dim}; "
                f"got {tuple(x.shape)}"
            )
        return x.unbind(self.dim)

    def _join(self, parts):
        return lamina.stack(parts, dim=self.dim)

    def log_abs_det_jacobian(self, x, y):
        return self._join(
            [
                t.log_abs_det_jacobian(x_part, y_part)
                for t, x_part, y_part in zip(self.transforms, self._cut(x), self._cut(y))
            ]
        )

    @constraints.dependent_property
    def domain(self):
        """The slices' domains."""
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self):
        """The slices' codomains."""
        return constraints.stack([t.codomain for t in self.transforms], self.dim)


class CumulativeDistributionTransform(Transform):
    """The cumulative distribution function of a distribution: its draws become uniform."""

    bijective = True
    codomain = constraints.unit_interval
    sign = +1

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    def _arguments(self):
        return (self.distribution,)

    @property
    def domain(self) -> constraints.Constraint | None:
        """The distribution's support."""
        return self.distribution.support

    def _call(self, x):
        return self.distribution.cdf(x)

    def _inverse(self, y):
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x, y):
        return self.distribution.log_prob(x)
