"""Pooling against loops over windows, its gradients against differences."""

from __future__ import annotations

import itertools

import lamina.nn.functional as F
import numpy as np
import pytest

import lamina


def windows(size, kernel, stride, padding, dilation, ceil_mode):
    """For each output of one dimension the places that its window covers, padding included."""
    reach = dilation * (kernel - 1) + 1
    room = size + 2 * padding - reach
    count = (-(-room // stride) if ceil_mode else room // stride) + 1
    if ceil_mode and (count - 1) * stride >= size + padding:
        count -= 1
    return [[o * stride - padding + k * dilation for k in range(kernel)] for o in range(count)]


def pooled(x, n, per_dimension, f):
    """f(values inside, their flat indices, number of places with padding) for every window of the last n dimensions."""
    lead, sizes = x.shape[:-n], x.shape[-n:]
    flat = x.reshape(-1, *sizes)
    out = np.empty((flat.shape[0], *(len(w) for w in per_dimension)), x.dtype)
    index = np.zeros(out.shape, np.int64)
    for p in range(flat.shape[0]):
        for o in itertools.product(*(range(len(w)) for w in per_dimension)):
            places = list(itertools.product(*(w[i] for w, i in zip(per_dimension, o))))
            inside = [q for q in places if all(0 <= v < s for v, s in zip(q, sizes))]
            # Padding counts up to `padding` behind the end, not what ceil_mode adds.
            values = [flat[(p, *q)] for q in inside]
            flats = [int(np.ravel_multi_index(q, sizes)) for q in inside]
            out[(p, *o)], index[(p, *o)] = f(values, flats, places)
    return out.reshape(*lead, *out.shape[1:]), index.reshape(*lead, *out.shape[1:])


def largest(values, flats, _):
    at = max(range(len(values)), key=lambda i: (values[i], -i))
    return values[at], flats[at]


FORMS = [
    (1, (9,), 2, 2, 0, 1, False),
    (1, (9,), 3, 2, 1, 1, True),
    (2, (8, 7), 2, 2, 0, 1, False),
    (2, (7, 9), 3, 1, 1, 1, False),
    (2, (7, 9), 3, 3, 1, 2, True),
    (3, (5, 6, 4), 2, 2, 1, 1, True),
    (3, (5, 4, 6), 3, 1, 0, 1, False),
]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8])
@pytest.mark.parametrize("form", FORMS)
def test_max_pool(form, dtype):
    n, sizes, kernel, stride, padding, dilation, ceil_mode = form
    if n == 1 and not np.issubdtype(dtype, np.floating):
        pytest.skip("the operator of one dimension is for floating types")
    x = (np.random.default_rng(0).standard_normal((2, 3, *sizes)) * 20).astype(dtype)
    want, index = pooled(
        x, n, [windows(s, kernel, stride, padding, dilation, ceil_mode) for s in sizes], largest
    )
    pool = getattr(F, f"max_pool{n}d")
    arguments = (lamina.tensor(x), kernel, stride, padding, dilation, ceil_mode)
    got, places = pool(*arguments, return_indices=True)
    assert got.numpy().tolist() == want.tolist() and places.tolist() == index.tolist()
    assert pool(*arguments).equal(got)
    one = pool(lamina.tensor(x[0]), *arguments[1:])
    assert one.equal(got[0])


@pytest.mark.parametrize("include_pad", [True, False])
@pytest.mark.parametrize("form", [f for f in FORMS if f[5] == 1])
def test_avg_pool(form, include_pad):
    n, sizes, kernel, stride, padding, _, ceil_mode = form
    x = np.random.default_rng(0).standard_normal((2, 3, *sizes))

    def mean(values, _, places):
        padded = [q for q in places if all(v < s + padding for v, s in zip(q, sizes))]
        return sum(values) / (len(padded) if include_pad else len(values)), 0

    want, _ = pooled(x, n, [windows(s, kernel, stride, padding, 1, ceil_mode) for s in sizes], mean)
    got = getattr(F, f"avg_pool{n}d")(
        lamina.tensor(x), kernel, stride, padding, ceil_mode, include_pad
    )
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("n", "sizes", "out"), [(1, (9,), 4), (2, (7, 5), (3, 5)), (3, (4, 5, 6), (2, 7, 1))]
)
def test_adaptive(n, sizes, out):
    x = np.random.default_rng(0).standard_normal((2, 3, *sizes))
    outs = (out,) if isinstance(out, int) else out
    covers = [
        [list(range(o * s // k, -(-(o + 1) * s // k))) for o in range(k)]
        for s, k in zip(sizes, outs)
    ]
    t = lamina.tensor(x)
    want, _ = pooled(x, n, covers, lambda v, f, p: (sum(v) / len(v), 0))
    got = getattr(F, f"adaptive_avg_pool{n}d")(t, out)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12, atol=1e-12)
    want, index = pooled(x, n, covers, largest)
    got, places = getattr(F, f"adaptive_max_pool{n}d")(t, out, return_indices=True)
    assert got.numpy().tolist() == want.tolist() and places.tolist() == index.tolist()


CALLS = {
    "max_pool1d": (lambda x: F.max_pool1d(x, 3, 2, 1), (2, 3, 8)),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2, ceil_mode=True), (2, 2, 5, 5)),
    "max_pool3d": (lambda x: F.max_pool3d(x, 2, 1), (1, 2, 3, 3, 4)),
    "avg_pool1d": (lambda x: F.avg_pool1d(x, 3, 2, 1), (2, 3, 8)),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), (2, 2, 5, 5)),
    "avg_pool3d": (lambda x: F.avg_pool3d(x, 2, divisor_override=3), (1, 2, 4, 4, 4)),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, (3, None)), (2, 2, 5, 4)),
    "adaptive_avg_pool3d": (lambda x: F.adaptive_avg_pool3d(x, 2), (1, 2, 3, 4, 5)),
    "adaptive_max_pool2d": (lambda x: F.adaptive_max_pool2d(x, 2), (2, 2, 5, 4)),
    "lp_pool2d": (lambda x: F.lp_pool2d(x, 3.0, 2), (1, 2, 4, 4)),
    "fractional_max_pool2d": (
        lambda x: F.fractional_max_pool2d(
            x, 2, output_size=3, _random_samples=lamina.full((1, 2, 2), 0.3, dtype=lamina.float64)
        ),
        (1, 2, 6, 6),
    ),
    "max_unpool2d": (
        lambda x: F.max_unpool2d(x, lamina.tensor([[[[0, 3], [9, 15]]]]), 2),
        (1, 1, 2, 2),
    ),
}


@pytest.mark.parametrize("name", sorted(CALLS))
def test_derivatives(name):
    call, sizes = CALLS[name]
    lamina.manual_seed(1)
    # Distinct values: at a tie the largest element has no derivative.
    x = lamina.randperm(int(np.prod(sizes))).to(lamina.float64).reshape(sizes) + 1
    x.requires_grad_()
    assert lamina.autograd.gradcheck(call, (x,), check_forward_ad=True)
    assert lamina.autograd.gradgradcheck(call, (x,))


def test_nan_is_largest():
    nan = float("nan")
    x = lamina.tensor([[[1.0, nan, 3.0, 2.0, 5.0, 4.0]]])
    values, places = F.max_pool1d(x, 2, return_indices=True)
    assert values.isnan().tolist() == [[[True, False, False]]] and places.tolist() == [[[1, 2, 4]]]
    assert F.max_pool1d(x, 2).isnan().tolist() == [[[True, False, False]]]
    assert F.max_pool1d(lamina.full((1, 1, 4), -float("inf")), 2, return_indices=True)[
        1
    ].tolist() == [[[0, 2]]]


def test_unpool_brings_back_and_checks_indices():
    x = lamina.randn(2, 3, 6, 8)
    values, places = F.max_pool2d(x, 2, return_indices=True)
    back = F.max_unpool2d(values, places, 2)
    assert F.max_pool2d(back.abs(), 2).equal(values.abs())
    with pytest.raises(RuntimeError, match="invalid max index"):
        F.max_unpool2d(values, places + 100, 2)
    with pytest.raises(RuntimeError, match="invalid max index"):
        lamina.ops.aten.max_pool2d_with_indices_backward(
            values, x, [2, 2], [2, 2], [0, 0], [1, 1], False, places - 100
        )


@pytest.mark.parametrize("dtype", [lamina.bfloat16, lamina.float16])
def test_short_floats(dtype):
    x = lamina.randn(2, 3, 8, 8).to(dtype)
    wide = x.to(lamina.float32)
    assert F.max_pool2d(x, 2).equal(F.max_pool2d(wide, 2).to(dtype))
    assert F.avg_pool2d(x, 3, 1, 1).equal(F.avg_pool2d(wide, 3, 1, 1).to(dtype))
    assert F.adaptive_avg_pool2d(x, 3).equal(F.adaptive_avg_pool2d(wide, 3).to(dtype))


def test_layout_and_empty_batches():
    x = lamina.randn(2, 3, 8, 8).to(memory_format=lamina.channels_last)
    for y in (F.max_pool2d(x, 2), F.avg_pool2d(x, 2), F.adaptive_avg_pool2d(x, 3)):
        assert y.is_contiguous(memory_format=lamina.channels_last)
    assert F.max_pool2d(x, 2).equal(F.max_pool2d(x.contiguous(), 2))
    empty = lamina.empty(0, 3, 8, 8, requires_grad=True)
    for y in (F.max_pool2d(empty, 2), F.avg_pool2d(empty, 2), F.adaptive_max_pool2d(empty, 2)):
        assert y.shape[0] == 0
        y.sum().backward()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda z: F.max_pool2d(z(1, 2, 5, 5), 0), "kernel_size"),
        (lambda z: F.max_pool2d(z(1, 2, 5, 5), 2, 0), "stride"),
        (lambda z: F.max_pool2d(z(1, 2, 5, 5), 2, padding=2), "pad should be at most half"),
        (lambda z: F.max_pool2d(z(1, 2, 5, 5), 2, padding=-1), "pad must be non-negative"),
        (lambda z: F.max_pool2d(z(1, 2, 5, 5), 2, dilation=0), "dilation"),
        (lambda z: F.max_pool2d(z(5, 5), 2), "Expected 3D or 4D"),
        (lambda z: F.max_pool2d(z(1, 2, 5, 5), 7), "Output size is too small"),
        (lambda z: F.max_pool2d(z(1, 2, 5, 5), (1, 2, 3)), "kernel_size must either be"),
        (lambda z: F.max_pool2d(z(1, 0, 5, 5), 2), "non-zero"),
        (lambda z: F.avg_pool2d(z(1, 2, 5, 5), 2, divisor_override=0), "divisor must be not zero"),
        (lambda z: F.adaptive_avg_pool2d(z(1, 2, 5, 5), -1), "output_size"),
        (lambda z: F.adaptive_avg_pool2d(z(1, 2, 0, 5), 2), "being empty"),
        (lambda z: lamina.max_pool1d(z(1, 2, 3), [2**62], [], [2**60], [2**20], True), "overflow"),
    ],
)
def test_errors(call, words):
    with pytest.raises(RuntimeError, match=words):
        call(lamina.zeros)
