"""Distributions about a place `loc`."""

from lamina import Tensor

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, given_shape


class Centred(Distribution):
    """Symmetric about `loc`, where their mean and their mode are."""

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc


class LocationScale(Centred):
    """Shifted by `loc` and stretched by `scale`, which broadcast. Raises ValueError where scale is not positive."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(given_shape(loc, scale), validate_args=validate_args)
