"""Indexing gives what NumPy gives, and views where NumPy gives views."""

import array
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lamina
from tests import indexing_cases

A = np.arange(120).reshape(2, 3, 4, 5)


def both(index):
    x = lamina.from_numpy(A.copy())
    return x[index], A[index]


@pytest.mark.parametrize(
    "index",
    [
        0,
        -1,
        (0, 1),
        (0, 1, 2, 3),
        slice(None),
        slice(1, None),
        (slice(None), slice(0, 2)),
        (slice(None), slice(None, None, 2)),
        (slice(5, 9),),
        (slice(-2, None), 0),
        None,
        (None, 0, None),
        Ellipsis,
        (Ellipsis, 0),
        (0, Ellipsis, 1),
        (Ellipsis, None),
        (slice(None), None, slice(0, 1)),
        np.int64(1),
    ],
)
def test_views(index):
    got, want = both(index)
    assert got.shape == want.shape
    assert got.tolist() == want.tolist()
    base = lamina.from_numpy(A.copy())
    view = base[index]
    if view.numel():
        assert view.untyped_storage().data_ptr() == base.untyped_storage().data_ptr()


@pytest.mark.parametrize(
    "index",
    [
        [0, 1],
        ([0, 1],),
        (slice(None), [0, 2]),
        ([0, 1], [0, 2]),
        ([0, 1], slice(None), [0, 2]),
        (slice(None), [0, 2], [1, 3]),
        (0, [0, 2]),
        ([[0, 1], [1, 0]],),
        (None, [0]),
        (Ellipsis, [0, 4]),
    ],
)
def test_lists(index):
    got, want = both(index)
    assert got.tolist() == want.tolist()


def test_masks():
    x = lamina.from_numpy(A.copy())
    mask = A % 7 == 0
    assert x[lamina.from_numpy(mask)].tolist() == A[mask].tolist()
    first = np.array([True, False])
    assert x[lamina.from_numpy(first)].tolist() == A[first].tolist()
    two = A[:, :, 0, 0] % 2 == 0
    assert x[lamina.from_numpy(two)].tolist() == A[two].tolist()
    assert x[lamina.from_numpy(two), 1].tolist() == A[two, 1].tolist()
    assert x[True].tolist() == A[True].tolist()
    assert x[False].shape == A[False].shape
    with pytest.raises(IndexError):
        x[lamina.ones(3, dtype=lamina.bool)]


def test_tensor_of_no_dimension_selects():
    x = lamina.from_numpy(A.copy())
    assert x[lamina.tensor(1)].tolist() == A[1].tolist()
    assert x[:, lamina.tensor(-1)].tolist() == A[:, -1].tolist()


@pytest.mark.parametrize(
    "index, error",
    [
        (2, IndexError),
        (-3, IndexError),
        ((0, 3), IndexError),
        ((0, 0, 0, 0, 0), IndexError),
        ((Ellipsis, Ellipsis), IndexError),
        (1.5, IndexError),
        ("a", TypeError),
        (slice(None, None, 0), ValueError),
        (slice(None, None, 0), ValueError),
        (slice("a", None), TypeError),
        ([5], IndexError),
        (2**70, (IndexError, OverflowError, RuntimeError)),
    ],
)
def test_refused(index, error):
    x = lamina.from_numpy(A.copy())
    with pytest.raises(error):
        x[index]
    with pytest.raises(error):
        x[index] = 0


def test_scalar_tensors():
    x = lamina.tensor(5)
    assert x[()].item() == 5
    assert x[...].item() == 5
    assert x[None].shape == (1,)
    with pytest.raises(IndexError):
        x[0]
    with pytest.raises(TypeError):
        len(x)
    with pytest.raises(TypeError):
        iter(x)


def test_assignment():
    for index, value in [
        (0, 7),
        ((0, 1), [[1]]),
        (slice(None), 3),
        ((Ellipsis, 0), 9),
        ((slice(None), 1), -1),
        ((0, 0, 0, 0), 5),
    ]:
        a = A.copy()
        x = lamina.from_numpy(A.copy())
        x[index] = value if isinstance(value, int) else lamina.tensor(value)
        a[index] = value
        assert x.tolist() == a.tolist()
    x = lamina.zeros(2, 3)
    x[1] = lamina.tensor([[1.0, 2.0, 3.0]])
    assert x.tolist() == [[0, 0, 0], [1, 2, 3]]
    x[[0, 1], [0, 2]] = 8.0
    assert x.tolist() == [[8, 0, 0], [1, 2, 8]]
    x[x > 7] = 0
    assert x.tolist() == [[0, 0, 0], [1, 2, 0]]
    with pytest.raises(TypeError):
        x[0] = "a"
    with pytest.raises(TypeError):
        del x[0]
    with pytest.raises(RuntimeError):
        x[0] = lamina.ones(4)


def test_iteration():
    x = lamina.tensor([[1, 2], [3, 4]])
    assert [r.tolist() for r in x] == [[1, 2], [3, 4]]
    a, b = x
    assert b.tolist() == [3, 4]


bounds = st.one_of(st.none(), st.integers(-8, 8), st.sampled_from([2**63, -(2**63) - 1, 2**70]))
item = st.one_of(
    st.integers(-6, 6),
    st.builds(slice, bounds, bounds, st.one_of(st.none(), st.integers(1, 4))),
    st.none(),
    st.just(Ellipsis),
)


@settings(max_examples=300)
@given(st.lists(item, max_size=5))
def test_any_basic_index(items):
    index = tuple(items)
    try:
        want = A[index]
    except IndexError:
        with pytest.raises(IndexError):
            lamina.from_numpy(A.copy())[index]
        return
    got = lamina.from_numpy(A.copy())[index]
    assert got.shape == want.shape
    assert got.tolist() == want.tolist()


def test_topk_of_a_number():
    assert lamina.topk(lamina.tensor(3, dtype=lamina.int32), 0).values.item() == 3


def test_recorded_answers_of_torch():
    """Shapes, values, views, gradients, writes and kinds of errors of random expressions."""
    count = int(os.environ.get("LAMINA_INDEXING_CASES", 2000))
    recorded = array.array("I", (Path(__file__).parent / "data" / "indexing.crc").read_bytes())
    assert len(recorded) == 20_000
    different = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(count):
            answer = indexing_cases.answer(lamina, np, seed)
            if indexing_cases.digest(answer) != recorded[seed]:
                different.append((seed, indexing_cases.make_case(seed), answer))
    assert different == []


@st.composite
def _expressions(draw):
    """A shape and an index that NumPy takes, negative steps included."""
    shape = draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    left, items, fancy = list(shape), [], None
    while left and draw(st.integers(0, 9)) < 8:
        n = left.pop(0)
        kind = draw(st.sampled_from(("int", "slice", "slice", "back", "none", "fancy", "mask")))
        if kind == "int" and n:
            items.append(draw(st.integers(-n, n - 1)))
        elif kind == "fancy" and n:
            fancy = fancy or draw(st.lists(st.integers(1, 3), min_size=1, max_size=2))
            count = int(np.prod(fancy))
            flat = draw(st.lists(st.integers(-n, n - 1), min_size=count, max_size=count))
            items.append(np.array(flat).reshape(fancy))
        elif kind == "mask" and fancy is None:
            fancy = [1]
            items.append(np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)), bool))
            break
        else:
            bound = st.one_of(st.none(), st.integers(-n - 2, n + 2))
            step = draw(st.integers(-3, -1) if kind == "back" else st.sampled_from((None, 1, 2, 3)))
            items.append(slice(draw(bound), draw(bound), step))
        if kind == "none":
            items.append(None)
    if draw(st.booleans()):
        items.append(Ellipsis)
    if fancy:  # to NumPy a number beside an array is an array
        items = [slice(i, i + 1 or None) if isinstance(i, int) else i for i in items]
    return shape, tuple(items)


@settings(max_examples=300)
@given(_expressions(), st.booleans())
def test_against_numpy(expression, as_tensors):
    shape, index = expression
    a = np.arange(int(np.prod(shape)), dtype=np.float64).reshape(shape)
    x = lamina.from_numpy(a.copy())
    mine = tuple(
        lamina.from_numpy(i) if as_tensors and isinstance(i, np.ndarray) else i for i in index
    )
    got, want = x[mine], a[index]
    assert got.shape == want.shape and got.tolist() == want.tolist()
    a[index] = -1.0 - np.arange(want.size).reshape(want.shape)
    x[mine] = -1.0 - lamina.arange(want.size, dtype=lamina.float64).reshape(want.shape)
    if not any(isinstance(i, np.ndarray) and i.dtype != bool for i in index):  # no place twice
        assert x.tolist() == a.tolist()
    y = lamina.from_numpy(a.copy()).requires_grad_()
    y[mine].sum().backward()
    count = np.zeros(shape)
    np.add.at(count, index, 1.0)
    assert y.grad.tolist() == count.tolist()


@pytest.mark.parametrize(
    ("shape", "dim"),
    [((50,), 0), ((40, 3), 0), ((3, 40), 1), ((7, 200), 0), ((200, 70), 1), ((5, 6, 7), 1), ((4, 5, 130), 1), ((2, 3, 4, 5), 2)],
)  # fmt: skip
@pytest.mark.parametrize("turned", [False, True])
def test_writes_by_index_against_numpy(shape, dim, turned):
    random = np.random.default_rng(len(shape) + dim)
    count = shape[dim] * 3
    wide = tuple(count if d == dim else n for d, n in enumerate(shape))
    order = tuple(reversed(range(len(shape))))

    def numbers(sizes):
        x = random.integers(-9, 10, sizes).astype(np.float64)
        t = lamina.tensor(x)
        if turned:  # other strides, the same numbers
            t = lamina.tensor(np.ascontiguousarray(x.transpose(order))).permute(order)
        return x, t

    a, ta = numbers(shape)
    b, tb = numbers(wide)
    index = random.integers(0, shape[dim], count)
    expected = a.copy()
    np.add.at(np.moveaxis(expected, dim, 0), index, np.moveaxis(b, dim, 0))
    assert lamina.equal(ta.index_add(dim, lamina.tensor(index), tb), lamina.tensor(expected))
    twice = ta.index_add(dim, lamina.tensor(index), tb, alpha=2)
    assert lamina.equal(twice, lamina.tensor(a + 2 * (expected - a)))
    places = random.integers(0, shape[dim], wide)
    grid = list(np.indices(wide))
    grid[dim] = places
    for name, ufunc in (("sum", np.add), ("amax", np.maximum), ("prod", np.multiply)):
        expected = a.copy()
        ufunc.at(expected, tuple(grid), b)
        got = ta.scatter_reduce(dim, lamina.tensor(places), tb, name)
        np.testing.assert_allclose(got.numpy(), expected, 1e-12)
    expected = a.copy()
    for at in np.ndindex(wide):  # of equal places the last write stays
        to = list(at)
        to[dim] = places[at]
        expected[tuple(to)] = b[at]
    assert lamina.equal(ta.scatter(dim, lamina.tensor(places), tb), lamina.tensor(expected))
