"""Poisson, binomial and gamma numbers: their moments, their bounds and how gamma numbers move with their shape."""

import pytest

import lamina

N = 100_000
DOUBLE = lamina.float64


def full(value):
    return lamina.full((N,), float(value), dtype=DOUBLE)


def check_moments(x, mean, variance):
    """Six standard errors; the variance of a variance is that of a normal one, with room for heavier tails."""
    assert abs(x.mean().item() - mean) <= 6 * (variance / N) ** 0.5 + 1e-12
    assert abs(x.var().item() - variance) <= 0.08 * variance + 1e-12


@pytest.mark.parametrize("rate", [0, 0.3, 4, 9.9, 10, 55, 1e4])
def test_poisson(rate):
    lamina.manual_seed(1)
    x = lamina.poisson(full(rate))
    check_moments(x, rate, rate)
    assert lamina.equal(x, x.round()) and x.min() >= 0


@pytest.mark.parametrize(
    ("count", "p"), [(5, 0.3), (40, 0.5), (1000, 0.02), (1000, 0.97), (1e6, 0.4), (3, 0), (3, 1)]
)
def test_binomial(count, p):
    lamina.manual_seed(2)
    x = lamina.binomial(full(count), lamina.tensor(p, dtype=DOUBLE))
    check_moments(x, count * p, count * p * (1 - p))
    assert lamina.equal(x, x.round()) and x.min() >= 0 and x.max() <= count


@pytest.mark.parametrize("alpha", [0.05, 0.5, 1, 3.7, 200])
def test_gamma(alpha):
    lamina.manual_seed(3)
    x = lamina._C._standard_gamma(full(alpha))
    check_moments(x, alpha, alpha)
    assert x.min() > 0


def test_seeds_and_types():
    for dtype in (lamina.float16, lamina.bfloat16, lamina.float32, DOUBLE):
        rate = lamina.full((50,), 3.0, dtype=dtype)
        for draw in (
            lamina.poisson,
            lamina._C._standard_gamma,
            lambda r: lamina.binomial(r, r / 4),
        ):
            lamina.manual_seed(5)
            first = draw(rate)
            lamina.manual_seed(5)
            assert first.dtype == dtype and lamina.equal(first, draw(rate))
    generator = lamina.Generator().manual_seed(7)
    again = lamina.Generator().manual_seed(7)
    assert lamina.equal(
        lamina.poisson(full(3), generator=generator), lamina.poisson(full(3), generator=again)
    )


def test_wrong_parameters():
    wrong = lamina.tensor([1.0, -1.0])
    with pytest.raises(RuntimeError, match="rates"):
        lamina.poisson(wrong)
    with pytest.raises(RuntimeError, match="shapes"):
        lamina._C._standard_gamma(wrong)
    with pytest.raises(RuntimeError, match="counts"):
        lamina.binomial(wrong, wrong.abs())
    with pytest.raises(RuntimeError, match="probabilities"):
        lamina.binomial(wrong.abs(), wrong * 2)
    with pytest.raises(RuntimeError, match="poisson"):
        lamina.poisson(lamina.tensor([float("nan")]))
    with pytest.raises(NotImplementedError, match="poisson"):
        lamina.poisson(lamina.tensor([1]))


def test_gamma_numbers_move_at_a_fixed_probability():
    """P(alpha, x) of the number that the derivative leads to is that of the number it started from."""
    lamina.manual_seed(8)
    alpha = lamina.tensor([0.1, 0.5, 1.0, 2.5, 10.0, 90.0, 700.0], dtype=DOUBLE).repeat(20)
    alpha.requires_grad_()
    x = lamina._C._standard_gamma(alpha)
    (slope,) = lamina.autograd.grad(x.sum(), alpha)
    h = 1e-5 * alpha.detach()
    p = lamina.special.gammainc
    later = p(alpha.detach() + h, x.detach() + slope * h)
    sooner = p(alpha.detach() - h, x.detach() - slope * h)
    width = p(alpha.detach() + h, x.detach()) - p(alpha.detach() - h, x.detach())
    inside = (x.detach() > 1e-200) & (width.abs() > 1e-13)
    assert inside.sum() > 100
    assert ((later - sooner).abs() <= 1e-4 * width.abs() + 1e-12)[inside].all()
    # Beyond the range of the series: within the error of the normal approximation.
    big = lamina.tensor([5e3, 1e6], dtype=DOUBLE)
    assert lamina.allclose(
        lamina._C._standard_gamma_grad(big, big), lamina.ones(2, dtype=DOUBLE), atol=1e-3
    )
