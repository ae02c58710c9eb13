"""The von Mises distribution."""

import math

import lamina
from lamina import Size, Tensor

from . import constraints
from ._location import Centred
from .utils import broadcast_all, given_shape, lazy_property

__all__ = ["VonMises"]


class VonMises(Centred):
    """Angles: density exp(k cos(x - loc)) / (2 pi I0(k)), k = concentration. Draws lie in [-pi, pi)."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False
    _parameters = {"loc": 0, "concentration": 0, "_proposal_r": 0, "variance": 0}

    def __init__(
        self,
        loc: Tensor | float,
        concentration: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(given_shape(loc, concentration), validate_args=validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        value, k = self._checked(value), self.concentration
        # i0e is exp(-k) I0(k).
        return k * (lamina.cos(value - self.loc) - 1) - math.log(2 * math.pi) - lamina.log(
            lamina.special.i0e(k)
        )  # fmt: skip

    @lazy_property
    def _proposal_r(self) -> Tensor:
        k = self.concentration.double()
        tau = 1 + (1 + 4 * k**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * k)
        # For small k the difference above cancels; there r is 1 / k + k up to rounding.
        return lamina.where(k < 1e-5, 1 / k + k, (1 + rho**2) / (2 * rho))

    def sample(self, sample_shape: Size | list[int] | tuple[int, ...] = Size()) -> Tensor:  # noqa: B008
        """Draws by rejection from a wrapped Cauchy envelope, in double (Best, Fisher 1979)."""
        shape = self._extended_shape(sample_shape)
        with lamina.no_grad():
            k = self.concentration.double().expand(shape)
            r = self._proposal_r.expand(shape)
            angle = lamina.zeros(shape, dtype=lamina.double, device=self.loc.device)
            done = lamina.zeros(shape, dtype=lamina.bool, device=self.loc.device)
            while not done.all():
                u1, u2, u3 = lamina.rand((3, *shape), dtype=lamina.double, device=self.loc.device)
                z = lamina.cos(math.pi * u1)
                f = (1 + r * z) / (r + z)
                c = k * (r - f)
                # nan parameters, where nothing is checked, give nan.
                accept = (c * (2 - c) - u2 > 0) | ((c / u2).log() + 1 - c >= 0) | c.isnan()
                fresh = (u3 - 0.5).sign() * f.clamp(-1, 1).acos()
                angle = lamina.where(accept & ~done, fresh, angle)
                done = done | accept
            turned = (angle + math.pi + self.loc.double()) % (2 * math.pi) - math.pi
            return turned.to(self.loc.dtype)

    @lazy_property
    def variance(self) -> Tensor:
        """The circular variance 1 - I1(k) / I0(k)."""
        k = self.concentration
        return 1 - lamina.special.i1e(k) / lamina.special.i0e(k)
