"""Draws in proportion to weights."""

import pytest

import lamina


def test_bernoulli_takes_the_probabilities_that_stand_in_its_argument():
    lamina.manual_seed(0)
    p = lamina.full([20000], 0.3)
    for drawn in (
        lamina.bernoulli(p),
        p.bernoulli(),
        lamina.bernoulli(p, 0.3),
        lamina.empty(20000).bernoulli_(p),
    ):
        assert abs(drawn.mean().item() - 0.3) < 0.02
    assert lamina.bernoulli(lamina.ones(5)).tolist() == [1.0] * 5


def test_shares_follow_the_weights():
    lamina.manual_seed(0)
    weights = lamina.tensor([1.0, 0.0, 3.0, 6.0, 0.0])
    drawn = lamina.multinomial(weights, 20000, True)
    assert drawn.dtype == lamina.int64
    shares = (lamina.bincount(drawn, minlength=5) / 20000).tolist()
    assert shares == pytest.approx([0.1, 0, 0.3, 0.6, 0], abs=0.02)
    assert shares[1] == shares[4] == 0


def test_without_replacement_each_category_comes_once():
    lamina.manual_seed(0)
    rows = lamina.rand(50, 6)
    rows[:, 2] = 0
    drawn = rows.multinomial(5)
    assert drawn.shape == (50, 5)
    assert all(sorted(row) == [0, 1, 3, 4, 5] for row in drawn.tolist())
    first = lamina.multinomial(lamina.tensor([[1.0, 9.0]]).expand(20000, 2), 2)[:, 0]
    assert first.float().mean().item() == pytest.approx(0.9, abs=0.01)


def test_the_same_seed_draws_the_same():
    weights = lamina.rand(7)
    draws = [
        lamina.multinomial(weights, 9, True, generator=lamina.Generator().manual_seed(3)).tolist()
        for _ in range(2)
    ]
    assert draws[0] == draws[1]


@pytest.mark.parametrize(
    "weights, count, replacement, words",
    [
        ([1.0, 0.0, 0.0], 2, False, "too few categories"),
        ([0.0, 0.0], 1, True, "too few categories"),
        ([1.0, -1.0], 1, True, "element < 0"),
        ([1.0, float("nan")], 1, True, "nan"),
        ([1.0, float("inf")], 1, True, "inf"),
        ([1.0], 2, False, "n_sample > prob_dist"),
        ([1.0], 0, True, "n_sample <= 0"),
        ([1, 2], 1, True, "floating-point"),
        ([[[1.0]]], 1, True, "1 or 2 dim"),
    ],
)
def test_refusals(weights, count, replacement, words):
    with pytest.raises(RuntimeError, match=words):
        lamina.multinomial(lamina.tensor(weights), count, replacement)
