"""Convolution against sums written out in NumPy, its gradients against differences and each other."""

from __future__ import annotations

import itertools

import lamina.nn.functional as F
import numpy as np
import pytest

import lamina


def reference(x, w, bias, stride, padding, dilation, groups):
    """Convolution of (n, groups * c, spatial) with (out, c, spatial), one tap after the other."""
    n = x.ndim - 2
    padded = np.pad(x, [(0, 0), (0, 0)] + [(p, p) for p in padding])
    out = [
        (padded.shape[2 + i] - dilation[i] * (w.shape[2 + i] - 1) - 1) // stride[i] + 1
        for i in range(n)
    ]
    y = np.zeros((x.shape[0], w.shape[0], *out), x.dtype)
    rows, channels = w.shape[0] // groups, w.shape[1]
    for tap in itertools.product(*(range(k) for k in w.shape[2:])):
        window = tuple(
            slice(
                tap[i] * dilation[i], tap[i] * dilation[i] + stride[i] * (out[i] - 1) + 1, stride[i]
            )
            for i in range(n)
        )
        patch = padded[(slice(None), slice(None), *window)]
        for g in range(groups):
            y[:, g * rows : (g + 1) * rows] += np.einsum(
                "oc,nc...->no...",
                w[(slice(g * rows, (g + 1) * rows), slice(None), *tap)],
                patch[:, g * channels : (g + 1) * channels],
            )
    return y if bias is None else y + bias.reshape((1, -1) + (1,) * n)


FORMS = [
    # sizes, kernel, stride, padding, dilation, groups, channels, rows
    ((9,), (3,), (1,), (1,), (1,), 1, 3, 4),
    ((700,), (5,), (2,), (3,), (2,), 1, 2, 3),
    ((8, 8), (3, 3), (1, 1), (1, 1), (1, 1), 1, 3, 13),
    ((13, 7), (3, 2), (2, 3), (2, 1), (1, 2), 2, 3, 5),
    ((33, 33), (1, 1), (1, 1), (0, 0), (1, 1), 1, 40, 20),
    ((14, 14), (3, 3), (1, 1), (1, 1), (1, 1), 4, 1, 1),
    ((14, 14), (3, 3), (2, 2), (1, 1), (1, 1), 4, 1, 2),
    ((30, 41), (7, 7), (2, 2), (3, 3), (1, 1), 1, 3, 8),
    ((5, 5), (3, 3), (4, 4), (0, 0), (1, 1), 1, 2, 2),
    ((6, 6), (3, 3), (1, 1), (4, 4), (2, 2), 1, 2, 2),
    ((5, 6, 7), (2, 3, 3), (1, 2, 1), (1, 0, 2), (2, 1, 1), 1, 2, 3),
    ((4, 4, 4), (3, 3, 3), (2, 2, 2), (1, 1, 1), (1, 1, 1), 3, 1, 2),
    ((7, 7), (3, 3), (1, 1), (1, 1), (1, 1), 1, 130, 200),
    ((8,), (1,), (1,), (0,), (1,), 1, 1, 1),
    ((4, 4, 8), (1, 1, 1), (1, 1, 1), (0, 0, 0), (1, 1, 1), 1, 5, 2),
    ((16, 16), (3, 3), (1, 1), (1, 1), (1, 1), 3, 1, 2),
]


def problem(form, dtype, batch=3, seed=0):
    sizes, kernel, stride, padding, dilation, groups, channels, rows = form
    rng = np.random.default_rng(seed)

    def make(*shape):
        values = rng.standard_normal(shape)
        if np.issubdtype(dtype, np.complexfloating):
            values = values + 1j * rng.standard_normal(shape)
        return (
            (values * 8).astype(dtype) if np.issubdtype(dtype, np.integer) else values.astype(dtype)
        )

    x, w = make(batch, groups * channels, *sizes), make(groups * rows, channels, *kernel)
    return x, w, make(groups * rows), (stride, padding, dilation, groups)


def conv(n):
    return getattr(F, f"conv{n}d")


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.int64, np.int32])
@pytest.mark.parametrize("form", FORMS)
def test_forward(form, dtype):
    x, w, b, rest = problem(form, dtype)
    want = reference(x, w, b, *rest)
    got = conv(x.ndim - 2)(lamina.tensor(x), lamina.tensor(w), lamina.tensor(b), *rest).numpy()
    assert got.dtype == dtype
    tolerance = 2e-4 if dtype == np.float32 else 1e-10
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * 50)


@pytest.mark.parametrize("dtype", [lamina.bfloat16, lamina.float16])
def test_short_floats_accumulate_in_float32(dtype):
    x, w, b, rest = problem(FORMS[3], np.float64)
    short = [lamina.tensor(v).to(dtype) for v in (x, w, b)]
    wide = [t.to(lamina.float64).numpy() for t in short]
    got = F.conv2d(*short, *rest)
    assert got.dtype == dtype
    want = lamina.tensor(reference(wide[0], wide[1], wide[2], *rest)).to(dtype)
    # One rounding of the sum, one of the bias.
    np.testing.assert_allclose(
        got.to(lamina.float32).numpy(), want.to(lamina.float32).numpy(), rtol=1.6e-2, atol=1e-2
    )


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("form", FORMS)
def test_gradients_are_adjoint(form, dtype):
    """<grad, conv(dx, w)> = <grad_x, dx> and the same for w: exact, as convolution is linear in each."""
    x, w, b, rest = problem(form, dtype)
    leaves = [lamina.tensor(v, requires_grad=True) for v in (x, w, b)]
    y = conv(x.ndim - 2)(*leaves, *rest)
    g = problem(form, dtype, seed=1)[0].ravel()
    g = np.resize(g, tuple(y.shape))
    gx, gw, gb = lamina.autograd.grad(y, leaves, lamina.tensor(g))
    dx, dw, _, _ = problem(form, dtype, seed=2)
    np.testing.assert_allclose(
        np.vdot(gx.numpy(), dx), np.vdot(g, reference(dx, w, None, *rest)), rtol=1e-9
    )
    np.testing.assert_allclose(
        np.vdot(gw.numpy(), dw), np.vdot(g, reference(x, dw, None, *rest)), rtol=1e-9
    )
    np.testing.assert_allclose(gb.numpy(), g.sum((0, *range(2, g.ndim))), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("transposed", [False, True])
def test_second_derivatives(transposed):
    lamina.manual_seed(0)
    x = lamina.randn(2, 4, 5, 4, dtype=lamina.float64, requires_grad=True)
    w = lamina.randn(4, 2, 3, 2, dtype=lamina.float64, requires_grad=True)
    b = lamina.randn(4, dtype=lamina.float64, requires_grad=True)

    def f(x, w, b):
        if transposed:
            return F.conv_transpose2d(
                x, w, b, stride=(2, 1), padding=1, output_padding=(1, 0), groups=2
            )
        return F.conv2d(x, w, b, stride=(2, 1), padding=1, groups=2)

    assert lamina.autograd.gradcheck(f, (x, w, b), check_forward_ad=True)
    assert lamina.autograd.gradgradcheck(f, (x, w, b))


@pytest.mark.parametrize("layout", ["channels_last", "transposed", "sliced"])
def test_layouts(layout):
    x, w, b, rest = problem(FORMS[2], np.float64)
    t, wt = lamina.tensor(x), lamina.tensor(w)
    if layout == "channels_last":
        t = t.to(memory_format=lamina.channels_last)
    elif layout == "transposed":
        t = t.transpose(-1, -2).contiguous().transpose(-1, -2)
        wt = wt.transpose(0, 1).contiguous().transpose(0, 1)
    else:
        t = lamina.stack([t, t], -1)[..., 1]
    got = F.conv2d(t, wt, lamina.tensor(b), *rest)
    np.testing.assert_allclose(got.numpy(), reference(x, w, b, *rest), rtol=1e-10, atol=1e-10)
    assert got.is_contiguous(memory_format=lamina.channels_last) == (layout == "channels_last")


def test_transposed_is_the_adjoint():
    """conv_transpose(y, w) is the gradient of conv by its input, where the sizes fit."""
    x, w, _, rest = problem(FORMS[3], np.float64)
    stride, padding, dilation, groups = rest
    leaf = lamina.tensor(x, requires_grad=True)
    y = F.conv2d(leaf, lamina.tensor(w), None, *rest)
    g = lamina.randn(y.shape, dtype=lamina.float64)
    (want,) = lamina.autograd.grad(y, leaf, g)
    extra = [
        (size + 2 * p - d * (k - 1) - 1) % s
        for size, p, d, k, s in zip(x.shape[2:], padding, dilation, w.shape[2:], stride)
    ]
    got = F.conv_transpose2d(g, lamina.tensor(w), None, stride, padding, extra, groups, dilation)
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kernel", [(3, 3), (2, 2), (1, 4)])
def test_padding_by_name(kernel):
    x, w = lamina.randn(2, 3, 7, 6), lamina.randn(4, 3, *kernel)
    same = F.conv2d(x, w, padding="same")
    assert same.shape == (2, 4, 7, 6)
    totals = [k - 1 for k in kernel]
    padded = F.pad(
        x, (totals[1] // 2, totals[1] - totals[1] // 2, totals[0] // 2, totals[0] - totals[0] // 2)
    )
    np.testing.assert_allclose(
        same.numpy(), F.conv2d(padded, w, padding="valid").numpy(), rtol=1e-5, atol=1e-5
    )


def test_samples_without_a_batch():
    x, w = lamina.randn(3, 8, 8), lamina.randn(4, 3, 3, 3)
    assert F.conv2d(x, w).equal(F.conv2d(x[None], w)[0])
    assert F.conv_transpose2d(x, w.transpose(0, 1)).shape == (4, 10, 10)


def test_empty():
    w = lamina.randn(4, 3, 3, 3, requires_grad=True)
    x = lamina.empty(0, 3, 8, 8, requires_grad=True)
    y = F.conv2d(x, w)
    assert y.shape == (0, 4, 6, 6)
    y.sum().backward()
    assert x.grad.shape == x.shape and not w.grad.any()
    no_channels = F.conv2d(
        lamina.empty(1, 0, 5, 5), lamina.empty(2, 0, 3, 3), lamina.tensor([1.0, 2.0])
    )
    assert no_channels[0, 0].eq(1).all() and no_channels[0, 1].eq(2).all()


def test_infinities_stay_where_they_are_read():
    """Rows share the zeros between them in the copy that kernels read; nothing may leak through."""
    x = lamina.ones(1, 1, 6, 6)
    x[0, 0, 2, 5] = float("inf")
    leaf = x.clone().requires_grad_()
    w = lamina.ones(1, 1, 3, 3, requires_grad=True)
    y = F.conv2d(leaf, w, padding=1)
    want = lamina.zeros(6, 6, dtype=lamina.bool)
    want[1:4, 4:6] = True
    assert y[0, 0].isinf().equal(want) and not y.isnan().any()
    # The last column is never read by the taps on the left.
    (gw,) = lamina.autograd.grad(y, w, lamina.ones_like(y))
    assert gw[0, 0, :, 0].isfinite().all() and gw[0, 0, :, 1:].isinf().all()


def test_bits_do_not_depend_on_threads():
    x, w, b, rest = problem(((30, 30), (3, 3), (1, 1), (1, 1), (1, 1), 1, 24, 40), np.float32, 4)
    results = []
    before = lamina.get_num_threads()
    try:
        for threads in (1, 2, 7):
            lamina.set_num_threads(threads)
            leaves = [lamina.tensor(v, requires_grad=True) for v in (x, w, b)]
            y = F.conv2d(*leaves, *rest)
            results.append([y, *lamina.autograd.grad(y, leaves, lamina.ones_like(y))])
    finally:
        lamina.set_num_threads(before)
    for other in results[1:]:
        assert all(a.equal(b) for a, b in zip(results[0], other))


def test_convolution_backward_and_its_mask():
    x, w, b, (stride, padding, dilation, groups) = problem(FORMS[3], np.float64)
    leaves = [lamina.tensor(v, requires_grad=True) for v in (x, w, b)]
    y = F.conv2d(*leaves, stride, padding, dilation, groups)
    assert y.grad_fn.name() == "ConvolutionBackward0"
    g = lamina.randn(y.shape, dtype=lamina.float64)
    want = lamina.autograd.grad(y, leaves, g)
    arguments = (
        g,
        leaves[0],
        leaves[1],
        [b.size],
        stride,
        padding,
        dilation,
        False,
        [0, 0],
        groups,
    )
    got = lamina.ops.aten.convolution_backward(*arguments, [True, False, True])
    assert got[1] is None
    assert got[0].equal(want[0]) and got[2].equal(want[2])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda z: F.conv2d(z(1, 3, 5, 5), z(2, 2, 3, 3)),
            "to have 2 channels, but got 3 channels",
        ),
        (
            lambda z: F.conv2d(z(5, 5), z(2, 2, 3, 3)),
            "Expected 3D .unbatched. or 4D .batched. input",
        ),
        (
            lambda z: F.conv2d(z(1, 2, 2, 2), z(2, 2, 3, 3)),
            "can't be greater than actual input size",
        ),
        (lambda z: F.conv2d(z(1, 2, 5, 5), z(2, 2, 3, 3), stride=0), "non-positive stride"),
        (lambda z: F.conv2d(z(1, 2, 5, 5), z(2, 2, 3, 3), padding=-1), "negative padding"),
        (
            lambda z: F.conv2d(z(1, 2, 5, 5), z(2, 2, 3, 3), dilation=0),
            "dilation should be greater",
        ),
        (lambda z: F.conv2d(z(1, 2, 5, 5), z(2, 2, 3, 3), groups=0), "non-positive groups"),
        (
            lambda z: F.conv2d(z(1, 4, 5, 5), z(3, 2, 3, 3), groups=2),
            "divisible by 2 at dimension 0",
        ),
        (
            lambda z: F.conv2d(z(1, 2, 5, 5), z(2, 2, 3, 3), z(3)),
            "expected bias to be 1-dimensional",
        ),
        (
            lambda z: F.conv2d(z(1, 2, 5, 5), z(2, 2, 3, 3), stride=(1, 1, 1)),
            "expected stride to be",
        ),
        (lambda z: F.conv2d(z(1, 2, 5, 5), z(2, 2, 3, 3).double()), "should be the same"),
        (lambda z: F.conv2d(z(1, 2, 5, 5), z(2, 2, 3, 3), padding="foo"), "Invalid padding string"),
        (lambda z: F.conv2d(z(1, 2, 5, 5), z(2, 2, 3, 3), stride=2, padding="same"), "strided"),
        (
            lambda z: F.conv2d(z(1, 2, 0, 5), z(2, 2, 1, 1), padding=1),
            "Only zero batch or zero channel",
        ),
        (
            lambda z: F.conv2d(z(1, 2, 5, 5), z(2, 2, 0, 0)),
            "kernel size should be greater than zero",
        ),
        (
            lambda z: F.conv_transpose2d(z(1, 2, 5, 5), z(2, 2, 3, 3), output_padding=1),
            "output padding",
        ),
        (
            lambda z: F.conv_transpose2d(z(1, 2, 5, 5), z(2, 2, 3, 3), padding=5),
            "Output size is too small",
        ),
        (lambda z: F.conv1d(z(1, 1, 3), z(1, 1, 2), padding=2**62), "overflow"),
    ],
)
def test_errors(call, words):
    with pytest.raises(RuntimeError, match=words):
        call(lamina.zeros)


@pytest.mark.parametrize("step", [2**31, 2**40, 2**62])
def test_absurd_steps(step):
    """What fits the rules is computed or refused, but never crashes."""
    x, w = lamina.ones(1, 1, 5), lamina.ones(1, 1, 2)
    assert F.conv1d(x, w, stride=step).tolist() == [[[2.0]]]
    with pytest.raises((RuntimeError, lamina.OutOfMemoryError)):
        F.conv1d(x, w, dilation=step)
    half = step // 2
    try:
        F.conv1d(x, w, padding=half, dilation=step)
    except RuntimeError:
        pass
