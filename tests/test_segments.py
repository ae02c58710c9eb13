"""Reductions of segments, hashes, products of float8 and copies into given tensors."""

import struct

import pytest

np = pytest.importorskip("numpy")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

import lamina  # noqa: E402

REDUCERS = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=5), st.sampled_from(["sum", "mean", "prod", "max", "min"]),
    st.sampled_from([None, 0.5, 2]), st.booleans(), st.integers(0, 10**6),
)  # fmt: skip
def test_segments_against_numpy(lengths, reduce, initial, by_offsets, seed):
    random = np.random.default_rng(seed)
    x = random.integers(-4, 5, (sum(lengths), 2)).astype(float)
    ends = np.cumsum([0, *lengths])
    empty = {"sum": 0, "mean": np.nan, "prod": 1, "max": -np.inf, "min": np.inf}[reduce]
    rows = []
    for a, b in zip(ends, ends[1:]):
        first = [] if initial is None else [np.full((1, 2), float(initial))]
        part = np.concatenate([*first, x[a:b]])
        if reduce == "mean":
            rows.append(part.sum(0) / max(b - a, 1) if len(part) else np.full(2, empty))
        else:
            rows.append(REDUCERS[reduce](part, 0) if len(part) else np.full(2, empty))
    where = {"offsets": lamina.tensor(ends)} if by_offsets else {"lengths": lamina.tensor(lengths)}
    ours = lamina.segment_reduce(lamina.tensor(x), reduce, initial=initial, **where)
    np.testing.assert_allclose(ours.numpy(), np.stack(rows), 1e-12)
    # Along the last dimension, the same segments in each row.
    where = {k: t.expand(2, -1) for k, t in where.items()}
    turned = lamina.segment_reduce(
        lamina.tensor(x.T.copy()), reduce, axis=1, initial=initial, **where
    )
    np.testing.assert_allclose(turned.numpy(), np.stack(rows).T, 1e-12)


def test_gradients_of_segments():
    x = lamina.tensor([3.0, 1.0, 3.0, 0.0, 2.0, -1.0], dtype=lamina.float64, requires_grad=True)
    where = {"lengths": lamina.tensor([3, 0, 2]), "unsafe": True}
    for reduce, expected in (("max", [0.5, 0, 0.5, 0, 1, 0]), ("sum", [1, 1, 1, 1, 1, 0]), ("mean", [1 / 3] * 3 + [0.5, 0.5, 0]), ("prod", [3, 9, 3, 2, 0, 0])):  # fmt: skip
        (g,) = lamina.autograd.grad(lamina.segment_reduce(x, reduce, initial=1, **where).sum(), x)
        np.testing.assert_allclose(g.numpy(), expected, 1e-12)
    apart = lamina.tensor([3.0, 1.0, 2.0, 0.5, 0.0, -1.0], dtype=lamina.float64, requires_grad=True)
    for reduce in ("sum", "mean", "prod", "max", "min"):

        def function(t, reduce=reduce):
            return lamina.segment_reduce(t, reduce, initial=1.5, **where)

        assert lamina.autograd.gradcheck(function, (apart,), check_forward_ad=True)
        assert lamina.autograd.gradgradcheck(function, (apart,))


def test_segments_refused():
    x = lamina.ones(6, 2)
    for where in (
        {"lengths": lamina.tensor([2, 3])}, {"lengths": lamina.tensor([-2, 8])}, {}, {"indices": lamina.tensor([0])},
        {"offsets": lamina.tensor([0, 3, 9])}, {"offsets": lamina.tensor([0, 3, 2])}, {"lengths": lamina.tensor([3, 3]), "axis": 1},
        {"lengths": lamina.tensor([2**62, 2**62, 2**62, 2**62 + 6]), "unsafe": True}, {"offsets": lamina.tensor([-1, 3])},
        {"lengths": lamina.tensor([7]), "unsafe": True}, {"offsets": lamina.zeros(0, dtype=lamina.int64)},
        {"lengths": lamina.tensor([[6]]), "axis": 1},
    ):  # fmt: skip
        with pytest.raises(RuntimeError):
            lamina.segment_reduce(x, "sum", **where)
    with pytest.raises(RuntimeError):
        lamina.segment_reduce(x, "median", lengths=lamina.tensor([6]))
    with pytest.raises(IndexError):
        lamina.segment_reduce(x, "sum", lengths=lamina.tensor([6]), axis=2)
    with pytest.raises(NotImplementedError):
        lamina.segment_reduce(x.long(), "sum", lengths=lamina.tensor([6]))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=9))
def test_hash(values):
    bits = 0
    for v in values:
        bits ^= struct.unpack("<Q", struct.pack("<d", v))[0]
    x = lamina.tensor(values)
    assert lamina.hash_tensor(x).item() == bits == x.double().hash_tensor(0).item()
    assert lamina.hash_tensor(x.expand(2, 3, -1), (0, 2)).tolist() == [0, 0, 0]
    kept = lamina.hash_tensor(x.expand(3, -1), keepdim=True)
    assert kept.shape == (1, 1) and kept.item() == bits and kept.dtype == lamina.uint64


def test_hash_of_whole_numbers_and_errors():
    x = lamina.tensor([[-1, 2], [7, 7]], dtype=lamina.int8)
    assert lamina.hash_tensor(x, 1).tolist() == [2**64 - 3, 0]
    assert lamina.hash_tensor(x > 0).item() == 1 and lamina.hash_tensor(
        lamina.ones(0, 3), 1
    ).shape == (0,)
    out = lamina.empty(2, dtype=lamina.uint64)
    assert lamina.hash_tensor(x, 0, out=out) is out and out.tolist() == [2**64 - 8, 5]
    with pytest.raises(RuntimeError):
        lamina.hash_tensor(x, mode=1)
    with pytest.raises(RuntimeError):
        lamina.hash_tensor(x, (0, -2))
    with pytest.raises(IndexError):
        lamina.hash_tensor(x, 2)
    with pytest.raises(IndexError):
        lamina.hash_tensor(lamina.ones(0, 3))
    with pytest.raises(NotImplementedError):
        lamina.hash_tensor(x.cfloat())
    with pytest.raises(RuntimeError):
        lamina.hash_tensor(x, 0, out=lamina.empty(2))


def test_scaled_product_of_float8():
    lamina.manual_seed(0)
    a, b = lamina.randn(4, 16).to(lamina.float8_e4m3fn), lamina.randn(16, 8).to(lamina.float8_e5m2)
    rows, columns, two = lamina.rand(4, 1), lamina.rand(1, 8), lamina.tensor(2.0)
    exact = a.double() @ b.double()
    got = lamina._scaled_mm(a, b, rows, columns, out_dtype=lamina.float32)
    np.testing.assert_allclose(got.numpy(), (exact * rows * columns).numpy(), 1e-5, 1e-5)
    biased = lamina._scaled_mm(
        a, b, two, two, bias=lamina.ones(8, dtype=lamina.bfloat16), out_dtype=lamina.bfloat16
    )
    np.testing.assert_allclose(biased.float().numpy(), (exact * 4 + 1).numpy(), 1e-2, 1e-2)
    small = lamina._scaled_mm(a, b, two, two, scale_result=two)
    assert small.dtype == a.dtype and lamina.equal(
        small.float(), (exact * 2).float().to(a.dtype).float()
    )
    with pytest.raises(RuntimeError):
        lamina._scaled_mm(a, b.t(), two, two)
    for bad in ((a.float(), b, two, two), (a, b, two.double(), two), (a, b, rows[:3], two)):
        with pytest.raises(ValueError):
            lamina._scaled_mm(*bad)


def test_copies_into_given_tensors():
    x = lamina.arange(6.0).reshape(2, 3)
    for name, views, argument in (
        ("unbind_copy", "unbind", 1), ("split_copy", "split", 1), ("split_with_sizes_copy", "split_with_sizes", [1, 1]),
    ):  # fmt: skip
        parts = getattr(lamina, views)(x, argument)
        out = [lamina.empty(0) for _ in parts]
        function = getattr(lamina, name)
        given_out = function(x, argument, out=out)
        for o, g, p, c in zip(out, given_out, parts, function(x, argument)):
            assert o is g and o.tolist() == p.tolist() == c.tolist()
            assert c.data_ptr() != p.data_ptr()
        with pytest.raises(RuntimeError):
            function(x, argument, out=out[:1])
        with pytest.raises(RuntimeError):
            function(x, argument, out=[o.double() for o in out])
        with pytest.raises(TypeError):
            function(x, argument, out=out[0])


def test_unravel_index_of_small_types():
    x = lamina.tensor([0, 100, 127], dtype=lamina.int8)
    assert [t.tolist() for t in lamina.unravel_index(x, (2, 256))] == [[0, 0, 0], [0, 100, 127]]
