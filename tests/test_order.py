"""Medians, counts and places in sorted sequences against NumPy."""

import pytest

np = pytest.importorskip("numpy")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

import lamina  # noqa: E402

numbers = st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=12)


@settings(max_examples=80)
@given(numbers, numbers, st.booleans())
def test_against_numpy(values, sequence, right):
    x, s = lamina.tensor(values), lamina.tensor(sorted(sequence))
    assert lamina.median(x).item() == sorted(values)[(len(values) - 1) // 2]
    value, index = lamina.median(x, 0)
    assert x[index] == value == x.median()
    for k in (1, len(values)):
        assert x.kthvalue(k).values.item() == sorted(values)[k - 1]
    side = "right" if right else "left"
    expected = np.searchsorted(s.numpy(), x.numpy(), side)
    assert lamina.searchsorted(s, x, right=right).tolist() == expected.tolist()
    assert lamina.bucketize(x, s, right=right, out_int32=True).dtype == lamina.int32
    batch = lamina.searchsorted(s.expand(2, -1), x.expand(2, -1), side=side)
    assert batch.tolist() == [expected.tolist()] * 2
    whole = (x + 5).long()
    assert whole.bincount().tolist() == np.bincount(whole.numpy()).tolist()
    weighted = lamina.bincount(whole, x, minlength=13)
    np.testing.assert_allclose(weighted.numpy(), np.bincount(whole.numpy(), values, 13))


def test_nan_and_gradients():
    nan = float("nan")
    x = lamina.tensor([3.0, nan, 1.0, 1.0])
    assert x.median().isnan() and x.nanmedian().item() == 1
    assert lamina.median(x, 0).indices.item() == 1 and lamina.nanmedian(x, 0).values.item() == 1
    y = lamina.tensor([1.0, 1.0, 4.0], requires_grad=True)
    y.median().backward()
    assert y.grad.tolist() == [0.5, 0.5, 0]
    with pytest.raises(RuntimeError):
        lamina.kthvalue(x, 5)
    with pytest.raises(RuntimeError):
        lamina.bincount(lamina.tensor([-1]))
    with pytest.raises(RuntimeError):
        lamina.searchsorted(x.expand(2, 4), x)


def test_erfinv():
    x = lamina.linspace(-1, 1, 4001, dtype=lamina.float64)[1:-1]
    y = lamina.erfinv(x)
    back = np.vectorize(__import__("math").erf)(y.numpy())
    np.testing.assert_allclose(back, x.numpy(), 4e-16, 1e-16)
    ends = lamina.tensor([1.0, -1.0, 1.5, 0.0]).erfinv_()
    assert ends[0] == lamina.inf and ends[1] == -lamina.inf and ends[2].isnan() and ends[3] == 0
    z = lamina.tensor([-0.9, 0.1, 0.7], dtype=lamina.float64, requires_grad=True)
    assert lamina.autograd.gradcheck(lamina.special.erfinv, (z,))
    assert lamina.autograd.gradgradcheck(lamina.erfinv, (z,))


def test_fill_diagonal():
    for shape in ((3, 3), (2, 5), (5, 2), (3, 3, 3)):
        a, x = np.zeros(shape), lamina.zeros(shape, dtype=lamina.float64)
        np.fill_diagonal(a, 7)
        assert x.fill_diagonal_(7) is x
        np.testing.assert_array_equal(x.numpy(), a)
    a = np.zeros((8, 2))
    np.fill_diagonal(a, 7, wrap=True)
    wrapped = lamina.zeros(8, 2).fill_diagonal_(7, wrap=True)
    np.testing.assert_array_equal(wrapped.numpy(), a)
    for shape in ((3,), (2, 3, 3)):
        with pytest.raises(RuntimeError):
            lamina.zeros(shape).fill_diagonal_(1)


def test_histc():
    nan = float("nan")
    x = lamina.tensor([nan, 0.1, 0.6, 1.0, nan, 3.0])
    assert lamina.histc(x, bins=2, min=0, max=1).tolist() == [1, 2]
    whole = lamina.histc(lamina.arange(116.0, 129.0), bins=151, min=0, max=151)
    assert whole.nonzero().flatten().tolist() == list(range(116, 129))
    y = lamina.randn(1000, dtype=lamina.float64)
    assert y.histc(7).tolist() == np.histogram(y.numpy(), 7)[0].tolist()
    for wrong in (
        lambda: y.histc(0),
        lambda: lamina.histc(y, 3, 2, 1),
        lambda: lamina.histc(y, 3, 0, lamina.inf),
    ):
        with pytest.raises(RuntimeError):
            wrong()
