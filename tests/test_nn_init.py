"""Starting values: shapes of distributions, exact cases, recorded numbers, errors."""

import math

import pytest

np = pytest.importorskip("numpy")

from lamina.nn import init  # noqa: E402

import lamina  # noqa: E402


def test_gains():
    assert init.calculate_gain("linear") == init.calculate_gain("sigmoid") == 1
    assert init.calculate_gain("tanh") == 5 / 3 and init.calculate_gain("selu") == 0.75
    assert init.calculate_gain("relu") == math.sqrt(2)
    assert init.calculate_gain("leaky_relu", 0.2) == math.sqrt(2 / 1.04)
    for name, slope in (("spline", None), ("leaky_relu", "a"), ("leaky_relu", True)):
        with pytest.raises(ValueError):
            init.calculate_gain(name, slope)


@pytest.mark.parametrize(
    "fill, low, high, std",
    [
        (lambda t: init.uniform_(t, -1, 3), -1, 3, 4 / math.sqrt(12)),
        (lambda t: init.normal_(t, 1, 2), None, None, 2),
        (lambda t: init.trunc_normal_(t, 0, 1, -1, 1), -1, 1, 0.539560),
        (lambda t: init.trunc_normal_(t, 0, 1, 2, 3), 2, 3, 0.24803),
        (lambda t: init.xavier_uniform_(t, 2), None, None, 2 * math.sqrt(2 / 500)),
        (lambda t: init.xavier_normal_(t), None, None, math.sqrt(2 / 500)),
        (lambda t: init.kaiming_uniform_(t, nonlinearity="relu"), None, None, math.sqrt(2 / 200)),
        (lambda t: init.kaiming_normal_(t, mode="fan_out"), None, None, math.sqrt(2 / 300)),
    ],
)
def test_distributions(fill, low, high, std):
    lamina.manual_seed(0)
    t = lamina.empty(300, 200)
    assert fill(t) is t
    assert abs(t.std().item() - std) < 0.02 * std
    if low is not None:
        assert t.min().item() >= low and t.max().item() <= high


def test_recorded_numbers():
    """What PyTorch 2.13 gives for the same seed."""
    lamina.manual_seed(1)
    for got, expected in (
        (init.trunc_normal_(lamina.empty(4)), [0.66135216, 0.26692411, 0.06167726, 0.62131733]),
        (
            init.trunc_normal_(lamina.empty(4), 0, 1, 1, 2),
            [1.57247198, 1.43877792, 1.02459574, 1.52466583],
        ),
        (
            init.orthogonal_(lamina.empty(2, 3)),
            [[0.82780683, -0.42262587, 0.3689487], [-0.48496947, -0.86968833, 0.09190508]],
        ),
        (
            init.kaiming_normal_(lamina.empty(2, 2)),
            [[1.37900829, 2.5285573], [0.41074166, -0.98800713]],
        ),
        (
            init.xavier_uniform_(lamina.empty(2, 2)),
            [[-0.79169929, 0.79552644], [0.74354482, 1.08622003]],
        ),
        (
            init.sparse_(lamina.empty(4, 2), 0.5),
            [[0.00110255, -0.0225901], [0, 0], [0.00831016, 0], [0, 0.00236575]],
        ),
    ):
        np.testing.assert_allclose(got.numpy().ravel(), np.ravel(expected), 1e-4, 1e-6)


def test_orthogonal():
    for shape in ((5, 3), (3, 5), (4, 2, 3), (4, 4)):
        q = init.orthogonal_(lamina.empty(shape, dtype=lamina.float64), gain=2).flatten(1) / 2
        product = q @ q.t() if q.shape[0] <= q.shape[1] else q.t() @ q
        assert lamina.allclose(product, lamina.eye(min(q.shape), dtype=lamina.float64), atol=1e-6)
    with pytest.raises(ValueError):
        init.orthogonal_(lamina.empty(3))


def test_exact():
    assert init.eye_(lamina.empty(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert init.ones_(lamina.empty(2)).tolist() == [1, 1]
    assert init.constant_(init.zeros_(lamina.empty(2)), 0.5).tolist() == [0.5, 0.5]
    d = init.dirac_(lamina.empty(4, 2, 3), groups=2)
    assert d.sum() == 4 and all(d[i, i % 2, 1] == 1 for i in range(4))
    s = init.sparse_(lamina.empty(10, 4), sparsity=0.25)
    assert (s == 0).sum(0).tolist() == [3, 3, 3, 3]
    w = lamina.nn.Parameter(lamina.empty(2, 2))
    assert init.ones_(w) is w and w.is_leaf and w.grad_fn is None
    with pytest.warns(UserWarning):
        init.kaiming_uniform_(lamina.empty(0, 2))


@pytest.mark.parametrize(
    "call",
    [
        lambda t: init.eye_(t),
        lambda t: init.sparse_(t, 0.5),
        lambda t: init.xavier_normal_(lamina.empty(3)),
        lambda t: init.dirac_(lamina.empty(3, 3)),
        lambda t: init.dirac_(t, groups=2),
        lambda t: init.kaiming_normal_(t, mode="fan_sum"),
    ],
)
def test_wrong(call):
    with pytest.raises(ValueError):
        call(lamina.empty(3, 3, 3))


def test_generator_and_old_names():
    a = init.normal_(lamina.empty(3), generator=lamina.Generator().manual_seed(5))
    b = init.normal_(lamina.empty(3), generator=lamina.Generator().manual_seed(5))
    assert lamina.equal(a, b)
    with pytest.warns(FutureWarning):
        assert init.constant(lamina.empty(2), 3.0).tolist() == [3, 3]


def test_meta():
    for fill in (
        init.trunc_normal_, init.orthogonal_, init.eye_, init.kaiming_normal_, init.xavier_uniform_,
        lambda t: init.sparse_(t, 0.5),
    ):  # fmt: skip
        assert fill(lamina.empty(3, 3, device="meta")).is_meta
