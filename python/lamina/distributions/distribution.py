"""The base of all distributions."""

import warnings

import lamina
from lamina import Size, Tensor

from . import constraints
from .utils import lazy_property

__all__ = ["Distribution"]


def _named_shape(shape):
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


class Distribution:
    """A batch of independent distributions over events of one shape.

    `batch_shape` is the shape of the parameters, `event_shape` that of one draw; a sample has shape
    ``sample_shape + batch_shape + event_shape``. Arguments and values are checked against
    `arg_constraints` and `support` where `validate_args` says so; a violation is a ValueError.
    What a distribution cannot compute raises NotImplementedError.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__
    # Attributes that `expand` expands, each with how many last dimensions belong to an event.
    _parameters: dict[str, int] = {}

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions made from now on check their arguments, unless they are told."""
        if value not in [True, False]:
            raise ValueError
        Distribution._validate_args = value

    def __init__(
        self,
        batch_shape: Size = Size(),  # noqa: B008
        event_shape: Size = Size(),  # noqa: B008
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape = batch_shape
        self._event_shape = event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_arguments()
        super().__init__()

    def _check_arguments(self):
        try:
            expected = self.arg_constraints
        except NotImplementedError:
            expected = {}
            warnings.warn(
                f"{self.__class__} does not define `arg_constraints`. Please set `arg_constraints = {{}}` "
                "or initialize the distribution with `validate_args=False` to turn off validation.",
                stacklevel=4,
            )
        for name, constraint in expected.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(getattr(type(self), name), lazy_property):
                continue  # it follows from another parameter
            value = getattr(self, name)
            if not constraint.check(value).all():
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {_named_shape(value.shape)}) "
                    f"of distribution {self!r} to satisfy the constraint {constraint!r}, "
                    f"but found invalid values:\n{value}"
                )

    def expand(self, batch_shape: Size | list[int] | tuple[int, ...], _instance=None):
        """The distribution with its batch dimensions expanded to `batch_shape`, without copies."""
        own = [c for c in type(self).__mro__ if "_parameters" in vars(c)]
        if own[0] is Distribution:
            raise NotImplementedError
        new = self._get_checked_instance(own[0], _instance)
        batch_shape = Size(batch_shape)
        for name, value in list(self.__dict__.items()):
            depth = self._parameters.get(name)
            if depth is not None:
                new.__dict__[name] = value.expand(batch_shape + value.shape[value.dim() - depth :])
            elif isinstance(value, Distribution):
                new.__dict__[name] = value.expand(self._inner_batch_shape(name, batch_shape))
            else:
                new.__dict__.setdefault(name, value)
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _inner_batch_shape(self, name, batch_shape):
        """Batch shape of the distribution in attribute `name` where this one's is `batch_shape`."""
        return batch_shape

    @property
    def batch_shape(self) -> Size:
        """Shape of the parameters: how many distributions there are."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """Shape of one draw of one distribution."""
        return self._event_shape

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        """The constraints of the parameters, by name."""
        raise NotImplementedError

    @property
    def support(self) -> constraints.Constraint | None:
        """Where the draws lie."""
        raise NotImplementedError

    @property
    def mean(self) -> Tensor:
        """The mean, of shape batch_shape + event_shape."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """The likeliest value, of shape batch_shape + event_shape."""
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variance, of shape batch_shape + event_shape."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """The square root of the variance."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Size | list[int] | tuple[int, ...] = Size()) -> Tensor:  # noqa: B008
        """Draws of shape sample_shape + batch_shape + event_shape, without gradients."""
        with lamina.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Size | list[int] | tuple[int, ...] = Size()) -> Tensor:  # noqa: B008
        """Draws that are differentiable functions of the parameters, where `has_rsample` says so."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Tensor:
        """``sample((n,))``."""
        warnings.warn(
            "sample_n(n) will be deprecated. Use .sample((n,)) instead.",
            FutureWarning,
            stacklevel=2,
        )
        return self.sample(Size((n,)))

    def log_prob(self, value: Tensor) -> Tensor:
        """Logarithm of the density (of the probability, where discrete) at `value`, one for each event."""
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """Probability of a draw at most `value`."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """Where the cumulative distribution function takes `value`."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution along dimension 0.

        The shape is (count,) + batch_shape + event_shape; without `expand` the batch dimensions are 1.
        """
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """The mean of -log_prob in nats, of shape batch_shape."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """The exponential of the entropy."""
        return lamina.exp(self.entropy())

    def _extended_shape(self, sample_shape=Size()) -> Size:  # noqa: B008
        if not isinstance(sample_shape, Size):
            sample_shape = Size(sample_shape)
        return Size(sample_shape + self._batch_shape + self._event_shape)

    def _enumerated(self, values, expand):
        """Values of one event dimension 0 as `enumerate_support` gives them."""
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + self._batch_shape) if expand else values

    def _validate_sample(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        first_event = value.dim() - len(self._event_shape)
        if value.shape[max(first_event, 0) :] != self._event_shape:
            raise ValueError(
                "The right-most size of value must match event_shape: "
                f"{value.size()} vs {self._event_shape}."
            )
        expected = self._batch_shape + self._event_shape
        for ours, theirs in zip(reversed(value.size()), reversed(expected)):
            if ours != 1 and theirs != 1 and ours != theirs:
                raise ValueError(
                    "Value is not broadcastable with batch_shape+event_shape: "
                    f"{value.size()} vs {expected}."
                )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{self.__class__} does not define `support` to enable sample validation. Please "
                "initialize the distribution with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        if support is None:
            raise AssertionError(f"{self.__class__} has no support")
        if not support.check(value).all():
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {_named_shape(value.shape)}) "
                f"to be within the support ({support!r}) of the distribution {self!r}, "
                f"but found invalid values:\n{value}"
            )

    def _checked(self, value):
        """`value`, checked where this distribution checks."""
        if self._validate_args:
            self._validate_sample(value)
        return value

    def _get_checked_instance(self, cls, _instance=None):
        if _instance is None and type(self).__init__ != cls.__init__:
            raise NotImplementedError(
                f"Subclass {self.__class__.__name__} of {cls.__name__} that defines a custom __init__ "
                "method must also define a custom .expand() method."
            )
        return self.__new__(type(self)) if _instance is None else _instance

    def __repr__(self) -> str:
        names = [k for k in self.arg_constraints if k in self.__dict__]
        shown = (
            f"{n}: {v if v.numel() == 1 else v.size()}" for n in names for v in (self.__dict__[n],)
        )
        return self.__class__.__name__ + "(" + ", ".join(shown) + ")"
