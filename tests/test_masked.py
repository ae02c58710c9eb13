"""Masked reductions and normalizations against NumPy's masked arrays, and their gradients."""

import pytest

np = pytest.importorskip("numpy")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

import lamina  # noqa: E402
from lamina import masked  # noqa: E402

INF, NAN = float("inf"), float("nan")
dims = st.sampled_from([None, 0, 1, -1, (0, 1), (1,)])


def operand(seed, shape=(3, 4), kept=0.6):
    random = np.random.default_rng(seed)
    values = random.integers(-9, 10, shape).astype(float)
    return values, random.random(shape) < kept


def filled(result, where_empty):
    return np.ma.filled(np.ma.asarray(result), where_empty)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), dims, st.booleans())
def test_reductions_against_numpy(seed, dim, keepdim):
    values, mask = operand(seed)
    x, kept = lamina.tensor(values), lamina.tensor(mask)
    array = np.ma.array(values, mask=~mask)
    options = {"axis": dim, "keepdims": keepdim}
    for name, theirs, empty in (
        ("sum", array.sum(**options), 0),
        ("prod", array.prod(**options), 1),
        ("amax", array.max(**options), -INF),
        ("amin", array.min(**options), INF),
        ("mean", array.mean(**options), NAN),
    ):
        ours = getattr(masked, name)(x, dim, keepdim=keepdim, mask=kept)
        np.testing.assert_allclose(ours.numpy(), filled(theirs, empty), 1e-12, err_msg=name)
    total = filled(np.ma.sum(array * array, **options), 0)
    np.testing.assert_allclose(
        masked.norm(x, 2.0, dim, keepdim=keepdim, mask=kept).numpy(), np.sqrt(total), 1e-12
    )
    with np.errstate(divide="ignore"):
        sums = np.log(filled(np.ma.sum(np.ma.exp(array), **options), 0))
    np.testing.assert_allclose(
        masked.logsumexp(x, dim, keepdim=keepdim, mask=kept).numpy(), sums, 1e-12, 1e-12
    )
    count = mask.sum(**options)
    squares = filled(((array - array.mean(axis=dim, keepdims=True)) ** 2).sum(**options), 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = np.where(count == 0, NAN, squares / np.maximum(count - 1, 0))
    np.testing.assert_allclose(
        masked.var(x, dim, keepdim=keepdim, mask=kept).numpy(), expected, 1e-10, 1e-10
    )
    np.testing.assert_allclose(
        masked.std(x, dim, keepdim=keepdim, mask=kept).numpy(), np.sqrt(expected), 1e-10, 1e-10
    )


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0, 1, -1]))
def test_along_one_dimension_against_numpy(seed, dim):
    values, mask = operand(seed)
    x, kept = lamina.tensor(values), lamina.tensor(mask)
    array = np.ma.array(values, mask=~mask)
    assert (
        masked.cumsum(x, dim, mask=kept).tolist() == np.where(mask, values, 0).cumsum(dim).tolist()
    )
    assert (
        masked.cumprod(x, dim, mask=kept).tolist()
        == np.where(mask, values, 1).cumprod(dim).tolist()
    )
    largest, smallest = np.where(mask, values, -INF), np.where(mask, values, INF)
    assert masked.argmax(x, dim, mask=kept).tolist() == largest.argmax(dim).tolist()
    assert masked.argmin(x, dim, mask=kept).tolist() == smallest.argmin(dim).tolist()
    for name, sign in (("softmax", 1), ("softmin", -1)):
        powers = np.ma.exp(array * sign)
        expected = powers / powers.sum(dim, keepdims=True)
        expected = np.where(mask.any(dim, keepdims=True), filled(expected, 0), NAN)
        np.testing.assert_allclose(
            getattr(masked, name)(x, dim, mask=kept).numpy(), expected, 1e-12
        )
    with np.errstate(divide="ignore"):
        logs = np.log(masked.softmax(x, dim, mask=kept).numpy())
    np.testing.assert_allclose(masked.log_softmax(x, dim, mask=kept).numpy(), logs, 1e-9, 1e-12)
    length = np.sqrt(filled((array * array).sum(dim, keepdims=True), 0))
    unit = np.where(mask, values, 0) / np.maximum(length, 1e-12)
    np.testing.assert_allclose(masked.normalize(x, 2.0, dim, mask=kept).numpy(), unit, 1e-12)
    ordered = [
        sorted(row[there])
        for row, there in zip(np.moveaxis(values, dim, -1), np.moveaxis(mask, dim, -1))
    ]
    middle = [row[(len(row) - 1) // 2] if row else NAN for row in ordered]
    np.testing.assert_array_equal(masked.median(x, dim, mask=kept).numpy(), middle)
    if all(ordered):
        whole = masked.median(x.long(), dim, mask=kept, keepdim=True)
        assert whole.dtype == lamina.int64 and whole.squeeze(dim).tolist() == middle


def test_types_and_masks():
    x = lamina.tensor([[1, 2, 3], [4, 5, 6]])
    mask = lamina.tensor([[True, False, True], [False, False, False]])
    for name in ("sum", "prod"):
        assert getattr(masked, name)(x.to(lamina.uint8), 1, mask=mask).dtype == lamina.int64
        assert getattr(masked, name)(x, mask=mask, dtype=lamina.int32).dtype == lamina.int32
    assert masked.amax(x.to(lamina.int8), 1, mask=mask).tolist() == [3, -128]
    assert masked.argmax(x.float(), 1, mask=mask).dtype == lamina.float32
    assert masked.argmax(x.float(), 1, mask=mask, dtype=lamina.int64).tolist() == [2, 0]
    assert masked.var(x.short(), 1, mask=mask).dtype == lamina.float32
    assert masked.mean(x, 1, mask=mask, dtype=lamina.float64)[0].item() == 2
    big = lamina.tensor([2**62 + 1, 2**62 + 3, 5])  # not numbers of float64
    assert masked.median(big, 0, mask=lamina.tensor([True, True, False])).item() == 2**62 + 1
    row = lamina.tensor([True, False, True])
    assert masked.sum(x, 1, mask=row).tolist() == [4, 10]
    assert masked.sum(x, (), mask=row[:1]).item() == 21 == masked.sum(x).item()
    assert masked.sum(x, mask=lamina.tensor([0.5, 0, 1])).item() == 14
    assert masked.norm(lamina.tensor([2.0, 0.0]), -1, mask=lamina.tensor([True, False])).item() == 2
    assert masked.sum(lamina.tensor(3.0), 0, mask=lamina.tensor(False)).item() == 0
    z = masked.var(lamina.tensor([1j, 2.0, 7.0]), mask=row)
    assert z.is_complex() and z.real.item() == pytest.approx(25)
    two = masked.logaddexp(
        lamina.tensor([1.0, 1.0]), lamina.tensor([1.0, 2.0]), input_mask=row[:2], other_mask=row[1:]
    )
    assert two.tolist() == [1, 2]


def test_gradients():
    x = lamina.tensor(
        [[0.3, -1.2, 2.0], [0.7, 0.1, -0.4]], dtype=lamina.float64, requires_grad=True
    )
    mask = lamina.tensor([[True, False, True], [True, True, True]])
    names = "sum mean prod amax amin var std logsumexp norm cumsum cumprod softmax log_softmax softmin".split()
    for name in names:
        for order in (2.0, -1.0, 3.0) if name == "norm" else (None,):
            more = () if order is None else (order,)

            def function(t, name=name, more=more):
                result = getattr(masked, name)(t, *more, 1, mask=mask)
                return result.clamp(min=-99)  # no differences of infinities

            assert lamina.autograd.gradcheck(function, (x,), check_forward_ad=True), name
            assert lamina.autograd.gradgradcheck(function, (x,)), name
    assert lamina.autograd.gradcheck(lambda t: masked.normalize(t, 2.0, 1, mask=mask), (x,))
    # What is left out, NaN and infinities too, gets exactly nothing.
    y = lamina.tensor([1.0, NAN, INF, 2.0], requires_grad=True)
    kept = lamina.tensor([True, False, False, True])
    for name in ("sum", "mean", "prod", "var", "std", "logsumexp", "norm"):
        (g,) = lamina.autograd.grad(getattr(masked, name)(y, mask=kept), y)
        assert g[1:3].tolist() == [0, 0] and g.isfinite().all(), name
    (g,) = lamina.autograd.grad(masked.softmax(y, 0, mask=kept)[0], y)
    assert g[1:3].tolist() == [0, 0] and g.isfinite().all()


def test_errors():
    x = lamina.ones(2, 3)
    with pytest.raises(IndexError):
        masked.sum(x, mask=lamina.ones(1, 2, 3, dtype=lamina.bool))
    with pytest.raises(RuntimeError):
        masked.sum(x, mask=lamina.ones(2, 2, dtype=lamina.bool))
    with pytest.raises(TypeError):
        masked.sum(x, mask=[True])
    with pytest.raises(IndexError):
        masked.sum(x, 2)
    with pytest.raises(RuntimeError):
        masked.amax(x, (0, 0))
    with pytest.raises(ValueError):
        masked.mean(x.long())
    with pytest.raises(ValueError):
        masked.median(x.long(), 0, mask=x < 0)
    with pytest.raises(AssertionError):
        masked.var(x, 0, True, correction=1)
    with pytest.raises(NotImplementedError):
        masked.amax(x > 0, mask=x > 0)
    with pytest.raises(NotImplementedError):
        masked.softmax(x.long(), 0, mask=x > 0)
    with pytest.raises(NotImplementedError, match="MaskedTensor"):
        masked.masked_tensor(x, x > 0)
    assert not masked.is_masked_tensor(x)
