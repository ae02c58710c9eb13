"""Distributions of transformed draws."""

import lamina
from lamina import Size, Tensor

from . import constraints
from .distribution import Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform
from .utils import _sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of f(x) for draws x of a base; densities by log p(y) = log p(x) - log |dy/dx|.

    Raises ValueError where transforms are no transforms or the base has too few dimensions for them.
    """

    arg_constraints: dict[str, constraints.Constraint] = {}
    _parameters: dict[str, int] = {}

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | list[Transform],
        validate_args: bool | None = None,
    ) -> None:
        if isinstance(transforms, Transform):
            self.transforms = [transforms]
        elif isinstance(transforms, list):
            if not all(isinstance(t, Transform) for t in transforms):
                raise ValueError("transforms must be a Transform or a list of Transforms")
            self.transforms = transforms
        else:
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        base_event_dim = len(base_distribution.event_shape)
        transform = ComposeTransform(self.transforms)
        depth = transform.domain.event_dim
        if len(base_shape) < depth:
            raise ValueError(
                "base_distribution needs to have shape with size at least "
                f"{depth}, but got {base_shape}."
            )
        forward_shape = Size(transform.forward_shape(base_shape))
        # Parameters of the transforms may widen the batch.
        widened = Size(transform.inverse_shape(forward_shape))
        if base_shape != widened:
            base_distribution = base_distribution.expand(widened[: len(widened) - base_event_dim])
        if depth > base_event_dim:
            base_distribution = Independent(base_distribution, depth - base_event_dim)
        self.base_dist = base_distribution
        event_dim = transform.codomain.event_dim + max(base_event_dim - depth, 0)
        cut = len(forward_shape) - event_dim
        super().__init__(
            Size(forward_shape[:cut]), Size(forward_shape[cut:]), validate_args=validate_args
        )

    def _inner_batch_shape(self, name, batch_shape):
        shape = ComposeTransform(self.transforms).inverse_shape(batch_shape + self._event_shape)
        return Size(shape[: len(shape) - len(self.base_dist.event_shape)])

    @constraints.dependent_property(is_discrete=False)
    def support(self):
        """Where the last transform leads."""
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        missing = len(self._event_shape) - support.event_dim
        return constraints.independent(support, missing) if missing > 0 else support

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Whether the base has differentiable draws."""
        return self.base_dist.has_rsample

    def _forward(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x

    def _backward(self, y):
        for transform in reversed(self.transforms):
            y = transform.inv(y)
        return y

    def sample(self, sample_shape: Size | list[int] | tuple[int, ...] = Size()) -> Tensor:  # noqa: B008
        with lamina.no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Size | list[int] | tuple[int, ...] = Size()) -> Tensor:  # noqa: B008
        return self._forward(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        y = self._checked(value)
        event_dim, total = len(self._event_shape), 0.0
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            total = total - _sum_rightmost(
                transform.log_abs_det_jacobian(x, y), event_dim - transform.domain.event_dim
            )
            y = x
        own = self.base_dist.log_prob(y)
        return total + _sum_rightmost(own, event_dim - len(self.base_dist.event_shape))

    def _monotonize_cdf(self, value):
        """value, or 1 - value where the transforms fall."""
        sign = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        x = self._backward(self._checked(value))
        return self._monotonize_cdf(self.base_dist.cdf(x))

    def icdf(self, value: Tensor) -> Tensor:
        return self._forward(self.base_dist.icdf(self._monotonize_cdf(value)))
