"""Distributions that are given by probabilities or by logits, and compute the other when asked."""

from lamina import Size, Tensor

from .distribution import Distribution
from .transformed_distribution import TransformedDistribution
from .utils import broadcast_all, given_shape, lazy_property, logits_to_probs, probs_to_logits


class Chances(Distribution):
    """`probs` or `logits`, one of which is given; `_is_binary` says which kind they are."""

    _is_binary = True

    @staticmethod
    def _choose(probs, logits):
        """The parameter that was given and whether it is `probs`; ValueError unless it is one."""
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        return (logits, False) if probs is None else (probs, True)

    def _take(self, probs, logits):
        """Keeps the parameter that was given; the batch shape."""
        value, self._by_probs = self._choose(probs, logits)
        (self.__dict__["probs" if self._by_probs else "logits"],) = broadcast_all(value)
        return given_shape(value)

    def _take_counted(self, total_count, probs, logits):
        """Keeps the parameter that was given and how often it is tried, as tensors of one shape, which is the batch shape."""
        value, self._by_probs = self._choose(probs, logits)
        count, value = broadcast_all(total_count, value)
        self.total_count = count.type_as(value)
        self.__dict__["probs" if self._by_probs else "logits"] = value
        return value.size()

    @property
    def _param(self):
        """The parameter of the two that was given."""
        return self.__dict__["probs" if self._by_probs else "logits"]

    @lazy_property
    def logits(self) -> Tensor:
        """The logits, log-odds where binary and log-probabilities otherwise."""
        return probs_to_logits(self.probs, is_binary=self._is_binary)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits, is_binary=self._is_binary)

    @property
    def param_shape(self) -> Size:
        """Shape of the parameter that was given."""
        return self._param.size()


class OverCategorical(Distribution):
    """Distributions that draw by a categorical one and have its parameters."""

    _parameters: dict[str, int] = {}

    @property
    def probs(self) -> Tensor:
        """The probabilities of the categories."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """The normalized log-probabilities of the categories."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Size:
        """Shape of the parameter that was given."""
        return self._categorical.param_shape


class Relaxed(TransformedDistribution):
    """What a transform makes of draws whose distribution has a temperature and chances."""

    has_rsample = True

    @property
    def temperature(self) -> Tensor:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The logits, log-odds where binary and normalized log-probabilities otherwise."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self.base_dist.probs
