"""Kullback-Leibler divergences of pairs of distributions."""

import math
import warnings
from collections.abc import Callable
from functools import total_ordering

import lamina
from lamina import Tensor

from ._matrices import log_diagonal, square_mahalanobis
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli
from .dirichlet import Dirichlet
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import Gumbel
from .half_normal import HalfNormal
from .independent import Independent
from .laplace import Laplace
from .lowrank_multivariate_normal import LowRankMultivariateNormal
from .multivariate_normal import MultivariateNormal
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import _sum_rightmost, euler_constant

__all__ = ["register_kl", "kl_divergence"]

_KL_REGISTRY: dict[tuple[type, type], Callable] = {}
_KL_MEMOIZE: dict[tuple[type, type], Callable] = {}


def register_kl(type_p: type[Distribution], type_q: type[Distribution]) -> Callable:
    """A decorator for functions that give KL(p || q) for p and q of the given types and their subclasses.

    Of several that fit, the most specific is used; p decides before q. Raises TypeError for other types.
    """
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(kind, type) or not issubclass(kind, Distribution):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {kind}")

    def decorator(fun):
        _KL_REGISTRY[type_p, type_q] = fun
        _KL_MEMOIZE.clear()  # answers may have changed
        return fun

    return decorator


@total_ordering
class _Match:
    """Types in the order of how specific they are, the first deciding."""

    __slots__ = ["types"]

    def __init__(self, *types):
        self.types = types

    def __eq__(self, other):
        return self.types == other.types

    def __le__(self, other):
        for mine, theirs in zip(self.types, other.types):
            if not issubclass(mine, theirs):
                return False
            if mine is not theirs:
                break
        return True


def _dispatch_kl(type_p, type_q):
    """The function for two types; NotImplemented where there is none."""
    fits = [(p, q) for p, q in _KL_REGISTRY if issubclass(type_p, p) and issubclass(type_q, q)]
    if not fits:
        return NotImplemented
    left = min(_Match(*pair) for pair in fits).types
    right = min(_Match(*reversed(pair)) for pair in fits).types
    by_left, by_right = _KL_REGISTRY[left], _KL_REGISTRY[tuple(reversed(right))]
    if by_left is not by_right:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please register_kl("
            f"{left[0].__name__}, {right[0].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return by_left


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """KL(p || q), the mean under p of log p(x) - log q(x), of the broadcast batch shape.

    Raises NotImplementedError for types without a registered function.
    """
    key = type(p), type(q)
    fun = _KL_MEMOIZE.get(key)
    if fun is None:
        fun = _KL_MEMOIZE[key] = _dispatch_kl(*key)
    if fun is NotImplemented:
        raise NotImplementedError(
            "No KL(p || q) is implemented for p type "
            f"{p.__class__.__name__} and q type {q.__class__.__name__}"
        )
    return fun(p, q)


def _x_log_x(tensor):
    return lamina.special.xlogy(tensor, tensor)


def _log_normal_density_mean(p_mean, p_variance, q):
    """The mean of log q(x), q normal, for x of a given mean and variance."""
    spread = (p_variance + (p_mean - q.loc).pow(2)) / (2 * q.scale.pow(2))
    return -spread - (q.scale * math.sqrt(2 * math.pi)).log()


# Within one family.


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p, q):
    """The Bregman divergence of the log normalizers (Nielsen, Nock 2010)."""
    if type(p) is not type(q):
        raise NotImplementedError(
            f"The cross KL-divergence between different exponential families cannot be computed "
            f"using Bregman divergences; got {type(p).__name__} and {type(q).__name__}"
        )
    p_natural, p_normalizer, means = p._statistics()
    q_natural = q._natural_params
    result = q._log_normalizer(*q_natural) - p_normalizer
    for ours, theirs, mean in zip(p_natural, q_natural, means):
        depth = ours.dim() - len(p.batch_shape)
        result = result - _sum_rightmost((theirs - ours) * mean, depth)
    return result


@register_kl(Bernoulli, Bernoulli)
def _kl_bernoulli_bernoulli(p, q):
    softplus = lamina.nn.functional.softplus
    t1 = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    t1 = t1.masked_fill(q.probs == 0, lamina.inf).masked_fill(p.probs == 0, 0)
    t2 = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    t2 = t2.masked_fill(q.probs == 1, lamina.inf).masked_fill(p.probs == 1, 0)
    return t1 + t2


@register_kl(Beta, Beta)
def _kl_beta_beta(p, q):
    return _kl_dirichlet_dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Dirichlet, Dirichlet)
def _kl_dirichlet_dirichlet(p, q):
    p_total, q_total = p.concentration.sum(-1), q.concentration.sum(-1)
    normalizers = p_total.lgamma() - q_total.lgamma()
    terms = (q.concentration.lgamma() - p.concentration.lgamma()).sum(-1)
    means = p.concentration.digamma() - p_total.digamma().unsqueeze(-1)
    return normalizers + terms + ((p.concentration - q.concentration) * means).sum(-1)


@register_kl(Binomial, Binomial)
def _kl_binomial_binomial(p, q):
    # The counts are not summed over where they differ: infinite for more trials, unknown for fewer.
    if (p.total_count < q.total_count).any():
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    one = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    kl = p.total_count * one
    return kl.masked_fill(p.total_count > q.total_count, lamina.inf)


@register_kl(Categorical, Categorical)
def _kl_categorical_categorical(p, q):
    t = p.probs * (p.logits - q.logits)
    impossible = (q.probs == 0).expand_as(t)
    return t.masked_fill(impossible, lamina.inf).masked_fill((p.probs == 0).expand_as(t), 0).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _kl_onehotcategorical_onehotcategorical(p, q):
    return _kl_categorical_categorical(p._categorical, q._categorical)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _kl_continuous_bernoulli_continuous_bernoulli(p, q):
    own = p.mean * (p.logits - q.logits)
    rest = lamina.log1p(-p.probs) - lamina.log1p(-q.probs)
    return own + p._cont_bern_log_norm() - q._cont_bern_log_norm() + rest


@register_kl(Exponential, Exponential)
def _kl_exponential_exponential(p, q):
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(Gamma, Gamma)
def _kl_gamma_gamma(p, q):
    return (
        q.concentration * (p.rate / q.rate).log()
        + lamina.lgamma(q.concentration)
        - lamina.lgamma(p.concentration)
        + (p.concentration - q.concentration) * lamina.digamma(p.concentration)
        + (q.rate - p.rate) * (p.concentration / p.rate)
    )


@register_kl(Gumbel, Gumbel)
def _kl_gumbel_gumbel(p, q):
    ratio, away = p.scale / q.scale, (q.loc - p.loc) / q.scale
    tail = lamina.exp(away + (1 + ratio).lgamma())
    return -ratio.log() - away + ratio * euler_constant + tail - (1 + euler_constant)


@register_kl(Geometric, Geometric)
def _kl_geometric_geometric(p, q):
    return -p.entropy() - lamina.log1p(-q.probs) * (1 / p.probs - 1) - q.probs.log()


@register_kl(HalfNormal, HalfNormal)
def _kl_halfnormal_halfnormal(p, q):
    return _kl_normal_normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _kl_laplace_laplace(p, q):
    ratio, away = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + away / q.scale + ratio * lamina.exp(-away / p.scale) - 1


@register_kl(Normal, Normal)
def _kl_normal_normal(p, q):
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(Pareto, Pareto)
def _kl_pareto_pareto(p, q):
    # From support to support: infinite where p reaches below q.
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return result.masked_fill(p.support.lower_bound < q.support.lower_bound, lamina.inf)


@register_kl(Poisson, Poisson)
def _kl_poisson_poisson(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _kl_uniform_uniform(p, q):
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return result.masked_fill((q.low > p.low) | (q.high < p.high), lamina.inf)


@register_kl(Cauchy, Cauchy)
def _kl_cauchy_cauchy(p, q):
    # Chyzak, Nielsen 2019.
    above = ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log()
    return above - (4 * p.scale * q.scale).log()


@register_kl(TransformedDistribution, TransformedDistribution)
def _kl_transformed_transformed(p, q):
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError(
            "KL between transformed distributions is known for equal transforms only"
        )
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _kl_independent_independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            "KL between Independent distributions needs equal reinterpreted_batch_ndims; got "
            f"{p.reinterpreted_batch_ndims} and {q.reinterpreted_batch_ndims}"
        )
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


# Normal vectors: (log |Sq| - log |Sp| + tr Sq^-1 Sp + (mp - mq)^T Sq^-1 (mp - mq) - n) / 2.


def _same_event(p, q, names):
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"KL-divergence between two {names} with different event shapes cannot be computed"
        )


def _gaussian_kl(p, q, names):
    _same_event(p, q, names)
    away = q.loc - p.loc
    trace = 0
    for root in _roots(p):
        trace = trace + _trace_of(q, root)
    log_dets = _log_determinant(q) - _log_determinant(p)
    return 0.5 * (log_dets + trace + _squares(q, away) - p.event_shape[0])


def _roots(p):
    """Matrices R_i whose R_i R_i^T sum to the covariance."""
    if isinstance(p, MultivariateNormal):
        return [p._unbroadcasted_scale_tril]
    return [p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag.sqrt().diag_embed()]


def _log_determinant(p):
    if isinstance(p, MultivariateNormal):
        return 2 * log_diagonal(p._unbroadcasted_scale_tril)
    return p._log_det()


def _squares(q, x):
    if isinstance(q, MultivariateNormal):
        return square_mahalanobis(q._unbroadcasted_scale_tril, x)
    return q._square_mahalanobis(x)


def _trace_of(q, root):
    """tr Sq^-1 R R^T."""
    if isinstance(q, MultivariateNormal):
        lower = q._unbroadcasted_scale_tril
        return lamina.linalg.solve_triangular(lower, root, upper=False).pow(2).sum([-2, -1])
    # The squared lengths of the columns of R; columns become a batch of their own.
    diag = q._unbroadcasted_cov_diag.unsqueeze(-1)
    inner = (q._unbroadcasted_cov_factor / diag).mT @ root
    half = lamina.linalg.solve_triangular(q._capacitance_tril, inner, upper=False)
    return (root.pow(2) / diag).sum([-2, -1]) - half.pow(2).sum([-2, -1])


@register_kl(MultivariateNormal, MultivariateNormal)
def _kl_multivariatenormal_multivariatenormal(p, q):
    return _gaussian_kl(p, q, "Multivariate Normals")


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _kl_lowrankmultivariatenormal_lowrankmultivariatenormal(p, q):
    return _gaussian_kl(p, q, "Low Rank Multivariate Normals")


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _kl_mixed_multivariatenormals(p, q):
    return _gaussian_kl(p, q, "(Low Rank) Multivariate Normals")


# Between families: minus the entropy of p minus the mean of log q.


def _never(*pairs):
    """Pairs whose p reaches where q does not: infinite."""

    def infinite(p, q):
        return lamina.full_like(p.mean + q.mean, lamina.inf)

    for type_p, *types_q in pairs:
        for type_q in types_q:
            register_kl(type_p, type_q)(infinite)


_never(
    (Beta, Pareto),
    (ContinuousBernoulli, Pareto),
    (Exponential, Beta, ContinuousBernoulli, Pareto, Uniform),
    (Gamma, Beta, ContinuousBernoulli, Pareto, Uniform),
    (Gumbel, Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    (Laplace, Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    (Normal, Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    (Pareto, Beta, ContinuousBernoulli, Uniform),
    (Poisson, Bernoulli, Binomial),
)


@register_kl(Bernoulli, Poisson)
def _kl_bernoulli_poisson(p, q):
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, ContinuousBernoulli)
def _kl_beta_continuous_bernoulli(p, q):
    return -p.entropy() - p.mean * q.logits - lamina.log1p(-q.probs) - q._cont_bern_log_norm()


@register_kl(Beta, Exponential)
@register_kl(ContinuousBernoulli, Exponential)
@register_kl(Gamma, Exponential)
@register_kl(Pareto, Exponential)
def _kl_any_exponential(p, q):
    return -p.entropy() - q.rate.log() + q.rate * p.mean


def _mean_log_beta(p):
    """Mean of log x for beta x."""
    return p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()


def _minus_mean_log_gamma(q, mean, mean_log):
    """Minus the mean of log q, q gamma, for x of a given mean and mean logarithm."""
    normalizer = q.concentration.lgamma() - q.concentration * q.rate.log()
    return normalizer - (q.concentration - 1) * mean_log + q.rate * mean


@register_kl(Beta, Gamma)
def _kl_beta_gamma(p, q):
    return -p.entropy() + _minus_mean_log_gamma(q, p.mean, _mean_log_beta(p))


@register_kl(Exponential, Gamma)
def _kl_exponential_gamma(p, q):
    return -p.entropy() + _minus_mean_log_gamma(q, p.mean, -p.rate.log() - euler_constant)


@register_kl(Beta, Normal)
@register_kl(ContinuousBernoulli, Normal)
@register_kl(Exponential, Normal)
@register_kl(Gamma, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Laplace, Normal)
@register_kl(Uniform, Normal)
def _kl_any_normal(p, q):
    return -p.entropy() - _log_normal_density_mean(p.mean, p.variance, q)


@register_kl(Beta, Uniform)
@register_kl(ContinuousBernoulli, Uniform)
def _kl_unit_uniform(p, q):
    result = -p.entropy() + (q.high - q.low).log()
    return result.masked_fill((q.low > 0) | (q.high < 1), lamina.inf)


@register_kl(Exponential, Gumbel)
def _kl_exponential_gumbel(p, q):
    product, ratio = p.rate * q.scale, q.loc / q.scale
    tail = lamina.exp(ratio) * product / (product + 1)
    return product.log() - 1 + product.reciprocal() - ratio + tail


@register_kl(Gamma, Gumbel)
def _kl_gamma_gumbel(p, q):
    product, ratio = p.rate * q.scale, q.loc / q.scale
    tail = lamina.exp(ratio) * (1 + product.reciprocal()).pow(-p.concentration)
    return -p.entropy() + q.scale.log() + p.concentration / product - ratio + tail


@register_kl(Normal, Gumbel)
def _kl_normal_gumbel(p, q):
    away, ratio = (p.loc - q.loc) / q.scale, p.scale / q.scale
    return -p.entropy() + q.scale.log() + away + lamina.exp(-away + 0.5 * ratio.pow(2))


@register_kl(Uniform, Gumbel)
def _kl_uniform_gumbel(p, q):
    low, high = (p.low - q.loc) / q.scale, (p.high - q.loc) / q.scale
    tail = (lamina.exp(-low) - lamina.exp(-high)) / (high - low)
    return -p.entropy() + q.scale.log() + 0.5 * (low + high) + tail


@register_kl(Normal, Laplace)
def _kl_normal_laplace(p, q):
    away = p.loc - q.loc
    z = away / p.scale
    distance = math.sqrt(2 / math.pi) * p.scale * lamina.exp(-0.5 * z.pow(2))
    distance = distance + away * lamina.erf(math.sqrt(0.5) * z)
    return -p.entropy() + distance / q.scale + (2 * q.scale).log()


@register_kl(Pareto, Gamma)
def _kl_pareto_gamma(p, q):
    mean_log = p.scale.log() + p.alpha.reciprocal()
    result = -p.entropy() + _minus_mean_log_gamma(q, p.mean, mean_log)
    return result.masked_fill(p.alpha <= 1, lamina.inf)


@register_kl(Pareto, Normal)
def _kl_pareto_normal(p, q):
    result = -p.entropy() - _log_normal_density_mean(p.mean, p.variance, q)
    return result.masked_fill(p.alpha <= 2, lamina.inf)


@register_kl(Uniform, Beta)
def _kl_uniform_beta(p, q):
    width = p.high - p.low
    log_x = (_x_log_x(p.high) - _x_log_x(p.low)) / width - 1
    log_rest = (_x_log_x(1 - p.low) - _x_log_x(1 - p.high)) / width - 1
    normalizer = (
        q.concentration1.lgamma()
        + q.concentration0.lgamma()
        - (q.concentration1 + q.concentration0).lgamma()
    )
    own = (q.concentration1 - 1) * log_x + (q.concentration0 - 1) * log_rest
    result = -p.entropy() + normalizer - own
    return result.masked_fill((p.high > 1) | (p.low < 0), lamina.inf)


@register_kl(Uniform, ContinuousBernoulli)
def _kl_uniform_continuous_bernoulli(p, q):
    result = -p.entropy() - p.mean * q.logits - lamina.log1p(-q.probs) - q._cont_bern_log_norm()
    return result.masked_fill((p.high > 1) | (p.low < 0), lamina.inf)


@register_kl(Uniform, Exponential)
def _kl_uniform_exponential(p, q):
    result = q.rate * p.mean - ((p.high - p.low) * q.rate).log()
    return result.masked_fill(p.low < 0, lamina.inf)


@register_kl(Uniform, Gamma)
def _kl_uniform_gamma(p, q):
    mean_log = (_x_log_x(p.high) - _x_log_x(p.low)) / (p.high - p.low) - 1
    result = -p.entropy() + _minus_mean_log_gamma(q, p.mean, mean_log)
    return result.masked_fill(p.low < 0, lamina.inf)


@register_kl(Uniform, Pareto)
def _kl_uniform_pareto(p, q):
    mean_log = (_x_log_x(p.high) - _x_log_x(p.low)) / (p.high - p.low) - 1
    own = q.alpha.log() + q.alpha * q.scale.log() - (q.alpha + 1) * mean_log
    return (-p.entropy() - own).masked_fill(p.low < q.support.lower_bound, lamina.inf)
