"""Mixtures."""

import lamina
from lamina import Size, Tensor

from . import constraints
from .categorical import Categorical
from .constraints import MixtureSameFamilyConstraint
from .distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A mixture of K distributions of one family: the last batch dimension of the components, weighed by a `Categorical`.

    Raises ValueError where that is none, or where shapes do not fit.
    """

    arg_constraints: dict[str, constraints.Constraint] = {}
    has_rsample = False
    _parameters: dict[str, int] = {}

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                " The Mixture distribution needs to be an  instance of torch.distributions.Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution needs to be an instance of torch.distributions.Distribution"
            )
        weights_shape = mixture_distribution.batch_shape
        batch_shape = component_distribution.batch_shape[:-1]
        for ours, theirs in zip(reversed(weights_shape), reversed(batch_shape)):
            if ours != 1 and theirs != 1 and ours != theirs:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({weights_shape}) is not compatible with "
                    f"`component_distribution.batch_shape`({batch_shape})"
                )
        count = mixture_distribution.logits.shape[-1]
        of_components = component_distribution.batch_shape[-1]
        if count != of_components:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({of_components})"
            )
        self._num_component = count
        event_shape = component_distribution.event_shape
        self._event_ndims = len(event_shape)
        super().__init__(batch_shape, event_shape, validate_args=validate_args)

    def _inner_batch_shape(self, name, batch_shape):
        if name == "_component_distribution":
            return batch_shape + (self._num_component,)
        return batch_shape

    @constraints.dependent_property
    def support(self):
        """What lies in the supports of all components."""
        return MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """The weights."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components."""
        return self._component_distribution

    def _averaged(self, values):
        """The mean of values of the components, by their weights."""
        probs = self._mixture_distribution.probs
        probs = probs.reshape(probs.shape + (1,) * self._event_ndims)
        return (probs * values).sum(-1 - self._event_ndims)

    @property
    def mean(self) -> Tensor:
        return self._averaged(self._component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        # The mean of the variances and the variance of the means.
        means = self._component_distribution.mean
        away = means - self.mean.unsqueeze(-1 - self._event_ndims)
        return self._averaged(self._component_distribution.variance) + self._averaged(away.pow(2))

    def _spread(self, value):
        return value.unsqueeze(-1 - self._event_ndims)

    def cdf(self, value: Tensor) -> Tensor:
        probabilities = self._component_distribution.cdf(self._spread(value))
        return (probabilities * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        own = self._component_distribution.log_prob(self._spread(self._checked(value)))
        weights = lamina.log_softmax(self._mixture_distribution.logits, dim=-1)
        return lamina.logsumexp(own + weights, dim=-1)

    def sample(self, sample_shape: Size | list[int] | tuple[int, ...] = Size()) -> Tensor:  # noqa: B008
        with lamina.no_grad():
            sample_shape = Size(sample_shape)
            chosen = self._mixture_distribution.expand(self._batch_shape).sample(sample_shape)
            drawn = self._component_distribution.sample(sample_shape)
            dim = len(sample_shape) + len(self._batch_shape)
            index = chosen.reshape(chosen.shape + (1,) * (1 + self._event_ndims))
            index = index.expand(chosen.shape + (1,) + self._event_shape)
            return drawn.gather(dim, index).squeeze(dim)

    def __repr__(self):
        return (
            f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
        )
