"""Distributions against what follows from mathematics: sums and integrals of densities, Jacobians, moments of draws."""

import copy
import math
import pickle
import subprocess
import sys

import lamina.distributions as D
import pytest
from lamina.distributions import constraints as C
from lamina.distributions import kl, relaxed_bernoulli, relaxed_categorical, utils

import lamina

INF, NAN = float("inf"), float("nan")


def f64(values):
    return lamina.tensor(values, dtype=lamina.float64)


ONE, TWO, HALF = f64(1.0), f64(2.0), f64(0.5)

CONTINUOUS = {
    "Normal": D.Normal(HALF, TWO),
    "Uniform": D.Uniform(f64(0.1), f64(0.8)),
    "UniformWide": D.Uniform(f64(-1.0), TWO),
    "Beta": D.Beta(TWO, f64(1.5)),
    "Gamma": D.Gamma(f64(2.5), f64(1.5)),
    "Exponential": D.Exponential(f64(0.7)),
    "Laplace": D.Laplace(HALF, f64(0.7)),
    "LogNormal": D.LogNormal(f64(0.3), HALF),
    "HalfNormal": D.HalfNormal(TWO),
    "HalfCauchy": D.HalfCauchy(TWO),
    "Cauchy": D.Cauchy(HALF, TWO),
    "StudentT": D.StudentT(f64(5.0), HALF, TWO),
    "Gumbel": D.Gumbel(HALF, f64(0.7)),
    "Weibull": D.Weibull(TWO, f64(1.7)),
    "Pareto": D.Pareto(f64(0.4), f64(4.5)),
    "Kumaraswamy": D.Kumaraswamy(f64(1.5), TWO),
    "ContinuousBernoulli": D.ContinuousBernoulli(f64(0.2)),
    "ContinuousBernoulliHalf": D.ContinuousBernoulli(f64(0.5003)),
    "Chi2": D.Chi2(f64(3.0)),
    "FisherSnedecor": D.FisherSnedecor(f64(3.0), f64(9.0)),
    "InverseGamma": D.InverseGamma(f64(4.5), TWO),
    "GeneralizedPareto": D.GeneralizedPareto(HALF, TWO, f64(0.1)),
    "GeneralizedParetoBounded": D.GeneralizedPareto(HALF, TWO, f64(-0.4)),
    "GeneralizedParetoZero": D.GeneralizedPareto(HALF, TWO, f64(0.0)),
    "LogitRelaxedBernoulli": relaxed_bernoulli.LogitRelaxedBernoulli(f64(0.7), f64(0.3)),
    "RelaxedBernoulli": D.RelaxedBernoulli(f64(0.7), f64(0.3)),
    "Mixture": D.MixtureSameFamily(
        D.Categorical(f64([0.3, 0.7])), D.Normal(f64([0.0, 2.0]), f64([1.0, 0.5]))
    ),
    "Transformed": D.TransformedDistribution(
        D.Normal(HALF, ONE), [D.TanhTransform(), D.AffineTransform(f64(1.0), f64(-2.0))]
    ),
}
DISCRETE = {
    "Bernoulli": D.Bernoulli(f64(0.3)),
    "BernoulliLogits": D.Bernoulli(logits=f64(0.4)),
    "Binomial": D.Binomial(5, f64(0.3)),
    "Geometric": D.Geometric(f64(0.3)),
    "NegativeBinomial": D.NegativeBinomial(f64(2.5), f64(0.4)),
    "Poisson": D.Poisson(f64(3.5)),
    "Categorical": D.Categorical(f64([1.0, 2.0, 3.0])),
}


def optional(f):
    try:
        return f()
    except NotImplementedError:
        return None


def nodes(d, count=40001):
    """Points of the support and their weights for integrals, by substitutions that crowd at its ends."""
    if type(d) is D.TransformedDistribution:  # a tanh, scaled to (-1, 3)
        x = f64(-1.0) + 4 * lamina.linspace(5e-6, 1 - 5e-6, 100001, dtype=lamina.float64)
        return x, (x[1] - x[0]).expand(x.shape)
    u = lamina.linspace(-36, 36, count, dtype=lamina.float64)
    support = d.support
    if isinstance(support, C._Real | C.MixtureSameFamilyConstraint):
        u = u / 2
        x, slope = lamina.sinh(u), lamina.cosh(u)
    else:
        if isinstance(support, C._Interval) and support.upper_bound == INF:
            support = C.greater_than(support.lower_bound)
        to = D.biject_to(support)
        x = to(u)
        slope = to.log_abs_det_jacobian(u, x).exp()
    weight = slope * (u[1] - u[0])
    inside = d.support.check(x)
    return x[inside], weight[inside]


@pytest.mark.parametrize("name", CONTINUOUS)
def test_integrals_of_densities(name):
    d = CONTINUOUS[name]
    x, weight = nodes(d)
    log_p = d.log_prob(x)
    mass = log_p.exp() * weight
    tol = 1e-3 if name in ("Cauchy", "HalfCauchy") else 1e-4
    assert mass.nansum().item() == pytest.approx(1, abs=tol)
    mean, variance = optional(lambda: d.mean), optional(lambda: d.variance)
    if mean is not None and mean.isfinite():
        assert (mass * x).nansum().item() == pytest.approx(mean.item(), abs=1e-3)
    if variance is not None and variance.isfinite():
        own = (mass * (x - mean) ** 2).nansum().item()
        assert own == pytest.approx(variance.item(), rel=5e-3)
        assert d.stddev.item() == pytest.approx(variance.item() ** 0.5)
    entropy = optional(d.entropy)
    if entropy is not None:
        own = -(mass * log_p.clamp(min=-700)).nansum().item()
        assert own == pytest.approx(entropy.item(), abs=10 * tol)
    mode = optional(lambda: d.mode)
    if mode is not None and mode.isfinite():
        assert d.log_prob(mode).item() >= log_p.max().item() - 1e-6


WITHOUT_CDF = {
    "Beta", "StudentT", "FisherSnedecor", "LogitRelaxedBernoulli", "RelaxedBernoulli", "InverseGamma",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(CONTINUOUS.keys() - WITHOUT_CDF))
def test_cumulative_functions(name):
    d = CONTINUOUS[name]
    q = lamina.linspace(0.05, 0.95, 7, dtype=lamina.float64)
    x = optional(lambda: d.icdf(q))
    if x is None:
        lamina.manual_seed(2)
        x = d.sample((7,))
    else:
        assert lamina.allclose(d.cdf(x), q, atol=1e-9)
    # Its derivative is the density.
    h = 1e-5
    slope = (d.cdf(x + h) - d.cdf(x - h)) / (2 * h)
    # Near 1/2 the continuous Bernoulli distribution counts as uniform.
    rtol = 1e-3 if name == "ContinuousBernoulliHalf" else 1e-4
    assert lamina.allclose(slope, d.log_prob(x).exp(), rtol=rtol, atol=1e-6)


@pytest.mark.parametrize("name", DISCRETE)
def test_sums_of_probabilities(name):
    d = DISCRETE[name]
    x = lamina.arange(200, dtype=lamina.float64)
    x = x[d.support.check(x)]
    log_p = d.log_prob(x)
    p = log_p.exp()
    assert p.sum().item() == pytest.approx(1)
    if name != "Categorical":
        assert (p * x).sum().item() == pytest.approx(d.mean.item())
        assert (p * (x - d.mean) ** 2).sum().item() == pytest.approx(d.variance.item())
    assert p[d.mode.long()].item() == pytest.approx(p.max().item())
    entropy = optional(d.entropy)
    if entropy is not None:
        assert entropy.item() == pytest.approx(-(p * log_p).sum().item())
        assert d.perplexity().item() == pytest.approx(math.exp(entropy.item()))
    if d.has_enumerate_support:
        assert d.enumerate_support().tolist() == x.tolist()


@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_moments_of_draws(name):
    d = CONTINUOUS.get(name) or DISCRETE[name]
    lamina.manual_seed(11)
    n = 20000
    x = d.sample((n,)).double()
    assert x.shape == (n,) and d.support.check(x).all() and not x.requires_grad
    if optional(lambda: d.cdf(x[:3])) is not None:
        # Kolmogorov: the largest distance of the empirical function exceeds 2.3 / sqrt(n) once in 20000.
        steps = lamina.arange(1, n + 1, dtype=lamina.float64) / n
        distance = (d.cdf(x.sort().values) - steps).abs().max().item()
        assert distance < 2.3 / n**0.5
    elif name == "Categorical":
        counts = lamina.bincount(x.long(), minlength=3).double() / n
        assert lamina.allclose(counts, d.probs, atol=0.02)
    elif optional(lambda: d.mean) is not None:
        assert (x.mean() - d.mean).abs().item() < 5 * (d.variance.item() / n) ** 0.5
        assert x.var().item() == pytest.approx(d.variance.item(), rel=0.3)
    if d.has_rsample:
        assert d.rsample((2, 3)).shape == (2, 3)
    else:
        with pytest.raises(NotImplementedError):
            d.rsample()


def test_divergences_by_integrals():
    checked = infinite = 0
    for name_p, p in CONTINUOUS.items():
        x, weight = nodes(p, 20001)
        log_p = p.log_prob(x)
        for name_q, q in CONTINUOUS.items():
            result = optional(lambda p=p, q=q: D.kl_divergence(p, q))
            if result is None:
                continue
            with_q = copy.copy(q)
            with_q._validate_args = False
            covered = q.support.check(x)
            if result.isinf():
                outside = (log_p.exp() * weight)[~covered]
                # Infinite because p has mass where q has none.
                assert outside.sum().item() > 1e-9, (name_p, name_q)
                infinite += 1
                continue
            log_q = with_q.log_prob(lamina.where(covered, x, x[covered][0]))
            own = (log_p.exp() * (log_p - log_q) * weight)[covered & (log_p > -600)].nansum().item()
            assert own == pytest.approx(result.item(), abs=2e-3, rel=2e-3), (name_p, name_q)
            checked += 1
    assert checked >= 60 and infinite >= 30


def test_divergences_by_sums():
    x = lamina.arange(200, dtype=lamina.float64)
    other = {
        "Bernoulli": D.Bernoulli(f64(0.6)),
        "Binomial": D.Binomial(5, f64(0.6)),
        "Geometric": D.Geometric(f64(0.6)),
        "Poisson": D.Poisson(f64(2.0)),
        "Categorical": D.Categorical(f64([1.0, 1.0, 2.0])),
    }
    checked = 0
    for p in DISCRETE.values():
        for q in other.values():
            result = optional(lambda p=p, q=q: D.kl_divergence(p, q))
            if result is None or result.isinf():
                continue
            values = x[p.support.check(x) & q.support.check(x)]
            log_p = p.log_prob(values)
            own = (log_p.exp() * (log_p - q.log_prob(values))).sum().item()
            assert own == pytest.approx(result.item(), abs=1e-9)
            checked += 1
    assert checked >= 7
    impossible = D.Categorical(f64([1.0, 0.0, 2.0]))
    assert D.kl_divergence(other["Categorical"], impossible).item() == INF
    assert D.kl_divergence(impossible, other["Categorical"]).isfinite()
    assert D.kl_divergence(D.Poisson(TWO), other["Binomial"]).item() == INF


def covariances():
    cov = f64([[2.0, 0.3], [0.3, 1.0]])
    return cov, D.MultivariateNormal(f64([0.2, 0.5]), cov)


def test_multivariate_normal():
    cov, d = covariances()
    for other in (
        D.MultivariateNormal(d.loc, precision_matrix=cov.inverse()),
        D.MultivariateNormal(d.loc, scale_tril=lamina.linalg.cholesky(cov)),
    ):
        for name in ("covariance_matrix", "precision_matrix", "scale_tril", "variance"):
            assert lamina.allclose(getattr(other, name), getattr(d, name))
    x = f64([[0.1, 0.4], [2.0, -1.0]])
    away = x - d.loc
    squares = ((away @ cov.inverse()) * away).sum(-1)
    expected = -0.5 * (squares + cov.logdet() + 2 * math.log(2 * math.pi))
    assert lamina.allclose(d.log_prob(x), expected)
    assert d.entropy().item() == pytest.approx(
        0.5 * cov.logdet().item() + 1 + math.log(2 * math.pi)
    )
    lamina.manual_seed(0)
    assert lamina.allclose(lamina.cov(d.sample((40000,)).T), cov, atol=0.06)
    batch = d.expand((3,))
    assert lamina.allclose(batch.log_prob(x[:1]), expected[0].expand(3))
    assert d.sample((4,)).shape == (4, 2) and batch.rsample((4,)).shape == (4, 3, 2)


def test_low_rank_is_dense():
    loc, factor, diag = f64([0.2, 0.5, 1.0]), f64([[1.0], [2.0], [0.3]]), f64([0.5, 1.0, 2.0])
    low = D.LowRankMultivariateNormal(loc, factor, diag)
    dense = D.MultivariateNormal(loc, factor @ factor.T + lamina.diag(diag))
    x = f64([[0.1, 0.4, 2.0], [2.0, -1.0, 0.0]])
    assert lamina.allclose(low.log_prob(x), dense.log_prob(x))
    for name in ("covariance_matrix", "precision_matrix", "scale_tril", "variance", "mean"):
        assert lamina.allclose(getattr(low, name), getattr(dense, name))
    assert lamina.allclose(low.entropy(), dense.entropy())
    lamina.manual_seed(0)
    assert lamina.allclose(lamina.cov(low.sample((40000,)).T), dense.covariance_matrix, atol=0.15)
    other = D.LowRankMultivariateNormal(loc + 1, factor * 0.5, diag + 1)
    other_dense = D.MultivariateNormal(loc + 1, other.covariance_matrix)
    inverse = other_dense.precision_matrix
    away = f64([1.0, 1.0, 1.0])
    expected = 0.5 * (
        lamina.trace(inverse @ dense.covariance_matrix)
        + away @ inverse @ away
        - 3
        + lamina.logdet(other.covariance_matrix)
        - lamina.logdet(dense.covariance_matrix)
    )
    for p in (low, dense):
        for q in (other, other_dense):
            assert lamina.allclose(D.kl_divergence(p, q), expected)


def grid(count, reach, dims):
    line = lamina.linspace(-reach, reach, count, dtype=lamina.float64)
    points = lamina.cartesian_prod(*[line] * dims).reshape(-1, dims)
    return points, (2 * reach / (count - 1)) ** dims


def test_dirichlet():
    d, q = D.Dirichlet(f64([1.2, 0.8, 2.0])), D.Dirichlet(f64([2.0, 1.5, 1.0]))
    u, cell = grid(301, 24.0, 2)
    to = D.biject_to(d.support)
    x = to(u)
    d._validate_args = q._validate_args = False
    log_p = d.log_prob(x)
    mass = (log_p + to.log_abs_det_jacobian(u, x)).exp() * cell
    assert mass.nansum().item() == pytest.approx(1, abs=1e-4)
    means = (mass.unsqueeze(-1) * x).nansum(0)
    assert lamina.allclose(means, d.mean, atol=1e-4)
    spread = (mass.unsqueeze(-1) * (x - d.mean) ** 2).nansum(0)
    assert lamina.allclose(spread, d.variance, atol=1e-4)
    kept = mass > 1e-30
    own = (mass * (log_p - q.log_prob(x)))[kept].sum().item()
    assert own == pytest.approx(D.kl_divergence(d, q).item(), abs=1e-3)
    assert -(mass * log_p)[kept].sum().item() == pytest.approx(d.entropy().item(), abs=1e-3)
    lamina.manual_seed(0)
    assert lamina.allclose(d.sample((20000,)).mean(0), d.mean, atol=0.01)


def test_small_concentrations():
    lamina.manual_seed(0)
    for dtype in (lamina.float32, lamina.float64):
        x = D.Dirichlet(lamina.full((3,), 1e-4, dtype=dtype)).sample((300,))
        assert lamina.allclose(x.sum(-1), lamina.ones(300, dtype=dtype))
        assert (x.max(-1).values > 0.999).double().mean().item() > 0.95  # corners
        assert (x.mean(0) - 1 / 3).abs().max().item() < 0.15
    p = D.Beta(f64(1e-3), f64(1e-3))
    a = f64(1e-3).requires_grad_()
    D.Beta(a, a).rsample((50,)).sum().backward()
    assert a.grad.isfinite() and p.sample((50,)).isfinite().all()


@pytest.mark.parametrize("seed", [0, 1])
def test_gradients_of_draws(seed):
    """The mean of dx/da is the derivative of the mean."""
    lamina.manual_seed(seed)
    n = 20000
    for make, parameters in (
        (D.Beta, (1.5, 2.5)),
        (D.Gamma, (0.7, 2.0)),
        (D.Normal, (0.3, 2.0)),
        (D.Laplace, (0.3, 2.0)),
        (D.Kumaraswamy, (1.5, 2.0)),
        (D.Weibull, (1.5, 2.0)),
        (D.InverseGamma, (5.5, 2.0)),
        (D.ContinuousBernoulli, (0.3,)),
    ):
        leaves = [f64(v).requires_grad_() for v in parameters]
        exact = lamina.autograd.grad(make(*leaves).mean, leaves, allow_unused=True)
        x = make(*leaves).rsample((n,))
        for own, leaf, other in zip(
            lamina.autograd.grad(x.mean(), leaves, allow_unused=True), leaves, exact
        ):
            expected = 0.0 if other is None else other.item()
            assert own.item() == pytest.approx(expected, abs=0.06), (make, leaf)


def test_lkj():
    for dim, eta in ((2, 0.7), (3, 1.6)):
        d = D.LKJCholesky(dim, f64(eta), validate_args=False)
        dims = dim * (dim - 1) // 2
        to = D.biject_to(d.support)
        u, cell = grid(2001 if dims == 1 else 51, 12.0 if dims == 1 else 7.0, dims)
        x = to(u)
        mass = (d.log_prob(x) + to.log_abs_det_jacobian(u, x)).exp() * cell
        assert mass.nansum().item() == pytest.approx(1, abs=2e-3)
    # Every correlation is 2 beta(b, b) - 1, b = eta + (dim - 2) / 2: its variance is 1 / (2 b + 1).
    lamina.manual_seed(0)
    d = D.LKJCholesky(4, f64([0.7, 2.0]))
    x = d.sample((20000,))
    assert d.support.check(x).all()
    r = x @ x.mT
    for i in range(4):
        for j in range(i):
            assert lamina.allclose(
                r[..., i, j].var(0), 1 / (2 * (d.concentration + 1) + 1), atol=0.01
            )


def test_wishart():
    cov = f64([[1.0, 0.4], [0.4, 0.8]])
    d = D.Wishart(f64(4.5), cov, validate_args=False)
    q = D.Wishart(f64(5.0), cov * 1.3, validate_args=False)
    # Over Cholesky factors [[a, 0], [b, c]]: |dV / dL| = 4 a^2 c.
    a = lamina.linspace(0.01, 7, 90, dtype=lamina.float64)
    b = lamina.linspace(-7, 7, 121, dtype=lamina.float64)
    points = lamina.cartesian_prod(a, b, a)
    cell = (a[1] - a[0]) ** 2 * (b[1] - b[0])
    zero = lamina.zeros_like(points[:, 0])
    lower = lamina.stack([points[:, 0], zero, points[:, 1], points[:, 2]], -1).reshape(-1, 2, 2)
    v = lower @ lower.mT
    log_p = d.log_prob(v)
    mass = log_p.exp() * 4 * points[:, 0] ** 2 * points[:, 2] * cell
    assert mass.sum().item() == pytest.approx(1, abs=2e-3)
    means = (mass[:, None, None] * v).sum(0)
    assert lamina.allclose(means, d.mean, rtol=5e-3)
    spread = (mass[:, None, None] * (v - d.mean) ** 2).sum(0)
    assert lamina.allclose(spread, d.variance, rtol=2e-2)
    assert -(mass * log_p).sum().item() == pytest.approx(d.entropy().item(), abs=1e-2)
    own = (mass * (log_p - q.log_prob(v))).sum().item()
    assert own == pytest.approx(D.kl_divergence(d, q).item(), abs=2e-3)
    lamina.manual_seed(0)
    x = d.sample((20000,))
    assert lamina.allclose(x.mean(0), d.mean, rtol=0.03) and C.positive_definite.check(x).all()


def test_von_mises():
    d = D.VonMises(f64([0.5, -2.0, 1.0]), f64([0.3, 4.0, 60.0]))
    x = lamina.linspace(-math.pi, math.pi, 4001, dtype=lamina.float64).unsqueeze(-1)
    p = d.log_prob(x).exp()
    assert lamina.allclose(lamina.trapezoid(p, x, dim=0), lamina.ones(3, dtype=p.dtype))
    resultant = lamina.trapezoid(p * lamina.cos(x - d.loc), x, dim=0)
    assert lamina.allclose(1 - resultant, d.variance, atol=1e-6)
    lamina.manual_seed(0)
    drawn = d.sample((20000,))
    assert (drawn >= -math.pi).all() and (drawn < math.pi).all()
    assert lamina.allclose(lamina.cos(drawn - d.loc).mean(0), resultant, atol=0.02)
    assert lamina.allclose(lamina.sin(drawn - d.loc).mean(0), lamina.zeros(3).double(), atol=0.02)
    assert D.VonMises(0.0, 1e-8).sample((3,)).isfinite().all()
    assert D.VonMises(0.0, NAN, validate_args=False).sample().isnan()


def test_counts_of_categories():
    d = D.Multinomial(4, f64([[0.2, 0.5, 0.3], [1.0, 0.0, 1.0]]))
    counts = [(i, j, 4 - i - j) for i in range(5) for j in range(5 - i)]
    x = f64(counts).unsqueeze(1)
    log_p = d.log_prob(x)
    p = log_p.exp()
    assert lamina.allclose(p.sum(0), f64([1.0, 1.0]))
    assert lamina.allclose((p.unsqueeze(-1) * x).sum(0), d.mean)
    assert lamina.allclose((p.unsqueeze(-1) * (x - d.mean) ** 2).sum(0), d.variance)
    assert lamina.allclose(-lamina.xlogy(p, p).sum(0), d.entropy())
    lamina.manual_seed(0)
    drawn = d.sample((20000,))
    assert drawn.sum(-1).eq(4).all() and lamina.allclose(drawn.mean(0), d.mean, atol=0.05)


def test_one_hot():
    probs = f64([[0.2, 0.5, 0.3], [0.25, 0.25, 0.5]])
    d = D.OneHotCategoricalStraightThrough(probs.requires_grad_())
    values = d.enumerate_support()
    assert values.shape == (3, 2, 3) and d.enumerate_support(False).shape == (3, 1, 3)
    assert lamina.allclose(d.log_prob(values).exp().T, probs)
    assert d.mode.tolist() == [[0, 1, 0], [0, 0, 1]]
    lamina.manual_seed(0)
    x = d.rsample((5,))
    weights = f64([1.0, 2.0, 4.0])
    (grad,) = lamina.autograd.grad((x * weights).sum(), probs)
    # The gradient of normalized probabilities.
    (expected,) = lamina.autograd.grad(5 * (probs / probs.sum(-1, True) * weights).sum(), probs)
    assert lamina.allclose(grad, expected) and (x.sum(-1) - 1).abs().max().item() < 1e-12


def test_relaxed_one_hot():
    d = D.RelaxedOneHotCategorical(f64(0.8), f64([0.2, 0.5, 0.3]), validate_args=False)
    u, cell = grid(301, 30.0, 2)
    to = D.biject_to(C.simplex)
    x = to(u)
    mass = (d.log_prob(x) + to.log_abs_det_jacobian(u, x)).exp() * cell
    assert mass.nansum().item() == pytest.approx(1, abs=1e-3)
    lamina.manual_seed(0)
    drawn = d.rsample((20000,)).argmax(-1)
    counts = lamina.bincount(drawn, minlength=3).double() / 20000
    assert lamina.allclose(counts, d.probs, atol=0.02)


def test_relaxed_bernoulli_is_sharp_when_cold():
    lamina.manual_seed(0)
    x = D.RelaxedBernoulli(f64(0.01), f64(0.3)).sample((5000,))
    assert (x > 0.5).double().mean().item() == pytest.approx(0.3, abs=0.03)


def test_logistic_normal():
    d = D.LogisticNormal(f64([0.2, -0.5]), f64([0.7, 1.2]), validate_args=False)
    u, cell = grid(301, 10.0, 2)
    to = D.StickBreakingTransform()
    x = to(u)
    mass = (d.log_prob(x) + to.log_abs_det_jacobian(u, x)).exp() * cell
    assert mass.sum().item() == pytest.approx(1, abs=1e-6)
    assert d.loc.tolist() == [0.2, -0.5] and d.event_shape == (3,)


def test_mixtures_of_vectors():
    weights = D.Categorical(f64([0.3, 0.7]))
    parts = D.Independent(D.Normal(f64([[0.0, 1.0], [3.0, 4.0]]), ONE), 1)
    d = D.MixtureSameFamily(weights, parts)
    assert d.batch_shape == () and d.event_shape == (2,)
    x = f64([[0.5, 0.5], [2.0, 3.0]])
    expected = (0.3 * parts.log_prob(x[:, None])[:, 0].exp()) + (
        0.7 * parts.log_prob(x[:, None])[:, 1].exp()
    )
    assert lamina.allclose(d.log_prob(x).exp(), expected)
    assert lamina.allclose(d.mean, f64([2.1, 3.1]))
    assert lamina.allclose(d.variance, f64([1 + 9 * 0.21, 1 + 9 * 0.21]))
    lamina.manual_seed(0)
    drawn = d.sample((20000,))
    assert lamina.allclose(drawn.mean(0), d.mean, atol=0.06)
    assert lamina.allclose(drawn.var(0), d.variance, atol=0.1)
    assert d.expand((4, 3)).sample((2,)).shape == (2, 4, 3, 2)


def test_independent_sums():
    base = D.Normal(f64([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]), TWO)
    d, q = D.Independent(base, 1), D.Independent(D.Normal(base.loc * 0, ONE), 1)
    assert (d.batch_shape, d.event_shape) == ((2,), (3,))
    assert lamina.allclose(d.log_prob(base.loc), base.log_prob(base.loc).sum(-1))
    assert lamina.allclose(d.entropy(), base.entropy().sum(-1))
    expected = D.kl_divergence(base, q.base_dist).sum(-1)
    assert lamina.allclose(D.kl_divergence(d, q), expected)
    assert repr(d).startswith("Independent(Normal(loc: ") and d.expand((5, 2)).batch_shape == (5, 2)


@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_expand_and_copies(name):
    d = CONTINUOUS.get(name) or DISCRETE[name]
    wide = d.expand((4, 3))
    assert type(wide) is type(d) and wide.batch_shape == (4, 3)
    lamina.manual_seed(1)
    x = d.sample()
    assert wide.sample((2,)).shape == (2, 4, 3)
    assert lamina.allclose(wide.log_prob(x), d.log_prob(x).expand(4, 3))
    assert repr(wide).startswith(type(d).__name__)
    for other in (pickle.loads(pickle.dumps(d)), copy.deepcopy(wide)):
        assert lamina.allclose(other.log_prob(x), d.log_prob(x))


def test_numbers_give_the_default_dtype():
    d = D.Normal(0, 1)
    assert d.sample().dtype == lamina.float32 and d.batch_shape == ()
    assert D.Normal(f64(0.0), 1).scale.dtype == lamina.float64
    assert repr(d) == "Normal(loc: 0.0, scale: 1.0)"
    size = lamina.Size([2])
    assert repr(D.Normal(f64([0.0, 1.0]), 1)) == f"Normal(loc: {size}, scale: {size})"


ERRORS = (
    (lambda: D.Normal(0.0, -1.0), r"Expected parameter scale \(Tensor of shape \(\)\) of distribution"
     r" Normal\(loc: 0.0, scale: -1.0\) to satisfy the constraint GreaterThan\(lower_bound=0.0\)"),
    (lambda: D.Normal(0.0, 1.0).log_prob(1.0), "value argument to log_prob must be a Tensor"),
    (lambda: D.Normal(f64([0, 0]), 1).log_prob(lamina.ones(3)), "not broadcastable with batch_shape"),
    (lambda: D.Normal(0.0, 1.0).log_prob(f64(NAN)), r"within the support \(Real\(\)\)"),
    (lambda: D.Normal("a", 1.0), "must all be instances of Number"),
    (lambda: D.Bernoulli(0.5, 0.5), "Either `probs` or `logits` must be specified"),
    (lambda: D.Bernoulli(1.5), "Expected parameter probs"),
    (lambda: D.Bernoulli(0.5).log_prob(TWO), "within the support"),
    (lambda: D.Categorical(ONE), "must be at least one-dimensional"),
    (lambda: D.Uniform(1.0, 0.0), r"constraint LessThan\(upper_bound=0.0\)"),
    (lambda: D.Geometric(0.0), "to be positive but found invalid values"),
    (lambda: D.Dirichlet(ONE), "at least one-dimensional"),
    (lambda: D.LKJCholesky(1), "greater than or equal to 2"),
    (lambda: D.Wishart(HALF, f64([[1.0, 0.0], [0.0, 1.0]])), "expected to be greater than ndim"),
    (lambda: D.MultivariateNormal(f64([0.0, 0.0])), "Exactly one of covariance_matrix"),
    (lambda: D.MultivariateNormal(f64([0.0, 0.0]), f64([[1.0, 2.0], [2.0, 1.0]])), "PositiveDefinite"),
    (lambda: D.Independent(D.Normal(0.0, 1.0), 1), "reinterpreted_batch_ndims"),
    (lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), 1), "must be a Transform or list"),
    (lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), D.StickBreakingTransform()), "size at least 1"),
    (lambda: D.MixtureSameFamily(1, 2), "torch.distributions.Categorical"),
    (lambda: D.ReshapeTransform((2,), (3,)), "different numbers of elements"),
    (lambda: D.ExpTransform(cache_size=2), "cache_size must be 0 or 1"),
    (lambda: D.StickBreakingTransform().forward_shape(()), "Too few dimensions"),
    (lambda: utils.vec_to_tril_matrix(lamina.ones(4)), "cannot be expressed as the lower"),
    (lambda: utils.tril_matrix_to_vec(lamina.ones(2, 2), 2), "is outside"),
)  # fmt: skip


@pytest.mark.parametrize("case", range(len(ERRORS)))
def test_errors(case):
    call, words = ERRORS[case]
    with pytest.raises(ValueError, match=words):
        call()


def test_what_is_not_known():
    for call in (
        lambda: D.Poisson(1.0).cdf(ONE),
        lambda: D.Normal(0.0, 1.0).enumerate_support(),
        lambda: D.Bernoulli(0.5).rsample(),
        lambda: D.kl_divergence(D.Normal(0.0, 1.0), D.Cauchy(0.0, 1.0)),
        lambda: D.Multinomial(2, lamina.ones(2)).mode,
        lambda: D.Multinomial(lamina.ones(2), lamina.ones(2)),
        lambda: D.Binomial(lamina.tensor([1, 2]), HALF).enumerate_support(),
        lambda: D.Independent(D.Bernoulli(lamina.ones(2)), 1).enumerate_support(),
        lambda: D.Distribution(validate_args=False).expand((2,)),
    ):
        with pytest.raises(NotImplementedError):
            call()


def test_checks_can_be_left_out():
    assert D.Normal(0.0, -1.0, validate_args=False).log_prob(f64(NAN)).isnan()
    before = D.Distribution._validate_args
    try:
        D.Distribution.set_default_validate_args(False)
        assert D.Bernoulli(1.5).probs == 1.5
    finally:
        D.Distribution.set_default_validate_args(before)


def test_registered_divergences():
    class Mine(D.Normal):
        pass

    class Own(Mine):
        def __init__(self, place):
            super().__init__(place, 1.0)

    p, q = Mine(0.0, 1.0), D.Normal(1.0, 1.0)
    assert D.kl_divergence(p, q).item() == pytest.approx(0.5)  # as its base
    with pytest.raises(NotImplementedError, match="custom .expand"):
        Own(0.0).expand((2,))
    try:

        @D.register_kl(Mine, D.Normal)
        def _(p, q):
            return 7

        assert D.kl_divergence(p, q) == 7 and D.kl_divergence(Own(0.0), q) == 7

        @D.register_kl(D.Normal, Own)
        def _(p, q):
            return 8

        with pytest.warns(RuntimeWarning, match="Ambiguous"):
            assert D.kl_divergence(p, Own(0.0)) == 7
    finally:
        kl._KL_REGISTRY.pop((Mine, D.Normal), None)
        kl._KL_REGISTRY.pop((D.Normal, Own), None)
        kl._KL_MEMOIZE.clear()
    with pytest.raises(TypeError, match="type_p"):
        D.register_kl(int, D.Normal)


def test_exponential_families_by_their_normalizers():
    """Entropy and divergence by differentiation agree with the closed forms."""
    family = D.ExponentialFamily
    for p, q in (
        (D.Normal(HALF, TWO), D.Normal(ONE, ONE)),
        (D.Gamma(TWO, HALF), D.Gamma(ONE, TWO)),
        (D.Exponential(TWO), D.Exponential(HALF)),
        (D.Bernoulli(f64(0.3)), D.Bernoulli(f64(0.6))),
        (D.ContinuousBernoulli(f64(0.3)), D.ContinuousBernoulli(f64(0.6))),
        (D.Dirichlet(f64([1.0, 2.0])), D.Dirichlet(f64([2.0, 0.5]))),
        (D.Beta(TWO, HALF), D.Beta(ONE, TWO)),
        (D.Poisson(TWO), D.Poisson(HALF)),
    ):
        own = kl._kl_expfamily_expfamily(p, q)
        assert lamina.allclose(own, D.kl_divergence(p, q)), p
    for p in (D.Bernoulli(f64(0.3)), D.Exponential(TWO), D.ContinuousBernoulli(f64(0.3))):
        assert lamina.allclose(family.entropy(p), p.entropy())


def test_gradients_of_log_prob():
    for make, parameters, x in (
        (D.Normal, (0.3, 2.0), 0.7),
        (D.Gamma, (1.3, 2.0), 0.7),
        (D.StudentT, (3.0, 0.2, 2.0), 0.7),
        (D.VonMises, (0.3, 2.0), 0.7),
        (D.Beta, (1.3, 2.0), 0.7),
        (D.ContinuousBernoulli, (0.5,), 0.7),
        (D.Geometric, (0.4,), 3.0),
        (D.Gumbel, (0.3, 2.0), 0.7),
        (D.GeneralizedPareto, (0.3, 2.0, 0.2), 0.7),
    ):
        leaves = [f64(v).requires_grad_() for v in parameters]

        def value(*leaves, make=make, x=x):
            return make(*leaves, validate_args=False).log_prob(f64(x))

        assert lamina.autograd.gradcheck(value, leaves), make


def test_under_the_name_of_torch():
    code = """
import lamina
lamina.install_as_torch()
import pickle, torch, torch.distributions as D
from torch.distributions.normal import Normal
import torch.distributions.kl
assert Normal is D.Normal is torch.distributions.Normal
print(Normal.__module__, D.kl.kl_divergence is D.kl_divergence, pickle.loads(pickle.dumps(D.Gumbel(0., 1.))))
"""
    text = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert text.stdout == "torch.distributions.normal True Gumbel(loc: 0.0, scale: 1.0)\n"


def test_logarithms_of_relaxed_draws():
    d = relaxed_categorical.ExpRelaxedCategorical(f64(0.7), f64([0.2, 0.8]))
    x = d.rsample((3,))
    outer = D.RelaxedOneHotCategorical(f64(0.7), f64([0.2, 0.8]), validate_args=False)
    assert lamina.allclose(outer.log_prob(x.exp()), d.log_prob(x) - x.sum(-1))
