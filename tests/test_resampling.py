"""Padding, resampling, sampling at places, windows as columns: against plain formulas, and their derivatives."""

from __future__ import annotations

import math
import warnings

import lamina.nn.functional as F
import numpy as np
import pytest

import lamina

float64 = {"dtype": lamina.float64}
MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@pytest.mark.parametrize("mode", sorted(MODES))
@pytest.mark.parametrize(
    ("sizes", "pad"),
    [((2, 5), (2, 1)), ((2, 4, 5), (1, 0, 3, 2)), ((2, 3, 4, 3), (1, 2, 3, 1, 0, 2))],
)
def test_pad_is_that_of_numpy(sizes, pad, mode):
    x = np.random.default_rng(0).standard_normal((3, *sizes))
    widths = [(0, 0)] * (x.ndim - len(pad) // 2) + list(zip(pad[::2], pad[1::2]))[::-1]
    got = F.pad(lamina.tensor(x), pad, mode=mode)
    assert got.numpy().tolist() == np.pad(x, widths, mode=MODES[mode]).tolist()


def test_pad_cuts_and_fills():
    x = lamina.arange(6.0).reshape(1, 2, 3)
    assert F.pad(x, (-1, 2), value=7.0).tolist() == [[[1, 2, 7, 7], [4, 5, 7, 7]]]
    assert F.pad(x, (1, -2, 0, 1)).tolist() == [[[0, 0], [0, 3], [0, 0]]]
    assert F.pad(lamina.ones(2, dtype=lamina.bool), (1, 1)).tolist() == [False, True, True, False]
    # What is cut is gone before the rest goes round.
    assert F.pad(x, (-1, 1), mode="circular").tolist() == [[[1, 2, 1], [4, 5, 4]]]
    out = lamina.empty(0)
    assert lamina.constant_pad_nd(x, (1, 1), 2, out=out).equal(out) and out.shape == (1, 2, 5)


CALLS = {
    "pad_constant": (lambda x: F.pad(x, (1, -1, 2, 0)), (2, 2, 3, 4)),
    "pad_reflect": (lambda x: F.pad(x, (2, 1, 1, 2), mode="reflect"), (2, 2, 3, 4)),
    "pad_replicate": (lambda x: F.pad(x, (2, 1, 1, 2), mode="replicate"), (2, 2, 3, 4)),
    "pad_circular": (lambda x: F.pad(x, (2, 1, 1, 2), mode="circular"), (2, 2, 3, 4)),
    "nearest": (lambda x: F.interpolate(x, (5, 2)), (1, 2, 3, 4)),
    "linear": (lambda x: F.interpolate(x, 7, mode="linear"), (1, 2, 4)),
    "bilinear": (lambda x: F.interpolate(x, (5, 2), mode="bilinear"), (1, 2, 3, 4)),
    "trilinear": (
        lambda x: F.interpolate(x, (2, 3, 4), mode="trilinear", align_corners=True),
        (1, 1, 3, 2, 2),
    ),
    "bicubic": (lambda x: F.interpolate(x, scale_factor=1.7, mode="bicubic"), (1, 2, 3, 4)),
    "antialias": (lambda x: F.interpolate(x, (2, 3), mode="bicubic", antialias=True), (1, 2, 6, 7)),
    "unfold": (lambda x: F.unfold(x, (2, 3), 1, 1, (2, 1)), (2, 2, 4, 5)),
    "fold": (lambda x: F.fold(x, (4, 5), 2), (2, 8, 12)),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), (2, 8, 3, 2)),
    "pixel_unshuffle": (lambda x: F.pixel_unshuffle(x, 2), (2, 2, 4, 6)),
    "channel_shuffle": (lambda x: F.channel_shuffle(x, 3), (2, 6, 2, 2)),
}


@pytest.mark.parametrize("name", sorted(CALLS))
def test_derivatives(name):
    call, sizes = CALLS[name]
    lamina.manual_seed(0)
    x = lamina.randn(sizes, **float64, requires_grad=True)
    assert lamina.autograd.gradcheck(call, (x,), check_forward_ad=True)
    assert lamina.autograd.gradgradcheck(call, (x,))


def linear_matrix(n, out, align_corners):
    """Row o holds the weights of linear interpolation at place o."""
    m = np.zeros((out, n))
    for o in range(out):
        at = o * (n - 1) / max(out - 1, 1) if align_corners else max((o + 0.5) * n / out - 0.5, 0)
        i = min(int(at), n - 1)
        m[o, i] += 1 - (at - i)
        m[o, min(i + 1, n - 1)] += at - i
    return m


@pytest.mark.parametrize("align_corners", [False, True])
def test_bilinear_is_two_products(align_corners):
    x = np.random.default_rng(0).standard_normal((2, 3, 5, 4))
    got = F.interpolate(lamina.tensor(x), (8, 3), mode="bilinear", align_corners=align_corners)
    want = linear_matrix(5, 8, align_corners) @ x @ linear_matrix(4, 3, align_corners).T
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12, atol=1e-12)


def test_constant_images_stay_constant():
    x = lamina.full((1, 1, 6, 5), 3.0)
    for options in (
        {"mode": "nearest"},
        {"mode": "nearest-exact"},
        {"mode": "area"},
        {"mode": "bilinear"},
        {"mode": "bicubic"},
        {"mode": "bilinear", "antialias": True},
        {"mode": "bicubic", "antialias": True},
    ):
        for size in ((3, 4), (11, 7), (1, 1)):
            assert F.interpolate(x, size, **options).sub(3).abs().max() < 1e-5
    bytes_ = lamina.full((1, 1, 6, 5), 200, dtype=lamina.uint8)
    assert F.interpolate(bytes_, (9, 2), mode="bicubic").eq(200).all()


def test_interpolate_arguments():
    x = lamina.rand(1, 1, 4, 4)
    assert F.interpolate(x, scale_factor=(0.5, 2)).shape == (1, 1, 2, 8)
    given = F.interpolate(x, scale_factor=1.3, mode="bilinear")
    again = F.interpolate(x, scale_factor=1.3, mode="bilinear", recompute_scale_factor=True)
    assert given.shape == again.shape and not given.equal(again)
    for error, arguments in (
        (ValueError, {}),
        (ValueError, {"size": 2, "scale_factor": 2}),
        (ValueError, {"size": (2, 2, 2)}),
        (ValueError, {"size": 2, "align_corners": True}),
        (ValueError, {"size": 2, "recompute_scale_factor": True}),
        (ValueError, {"size": 2, "antialias": True}),
        (TypeError, {"size": (2.5, 2)}),
        (NotImplementedError, {"size": 2, "mode": "trilinear"}),
        (NotImplementedError, {"size": 2, "mode": "sinc"}),
        (RuntimeError, {"size": 0}),
    ):
        with pytest.raises(error):
            F.interpolate(x, **arguments)


def grids(n, spatial):
    lamina.manual_seed(3)
    sizes = (4, 3, 5)[:spatial]
    x = lamina.randn(n, 2, *sizes, **float64, requires_grad=True)
    # Away from the places where a sample passes from one element to the next.
    g = lamina.rand(n, *(3,) * spatial, spatial, **float64) * 2.6 - 1.3
    return x, g.requires_grad_()


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("border", ["zeros", "border", "reflection"])
@pytest.mark.parametrize(
    ("spatial", "mode"), [(2, "bilinear"), (2, "bicubic"), (3, "bilinear"), (2, "nearest")]
)
def test_grid_sample_derivatives(spatial, mode, border, align_corners):
    x, g = grids(2 if spatial == 2 else 1, spatial)

    def call(x, g):
        return F.grid_sample(x, g, mode, border, align_corners)

    assert lamina.autograd.gradcheck(call, (x, g), check_forward_ad=True)
    if mode != "bicubic" or border == "zeros":
        assert lamina.autograd.gradgradcheck(call, (x, g))
    # The fused gradient is that of the composed form.
    y = call(x, g)
    cot = lamina.randn(y.shape, **float64)
    fused = lamina.autograd.grad(y, (x, g), cot)
    composed = lamina.autograd.grad(call(x, g), (x, g), cot, create_graph=True)
    for a, b in zip(fused, composed):
        np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=1e-10, atol=1e-10)


def test_identity_grid_gives_the_image():
    x = lamina.rand(2, 3, 4, 5)
    theta = lamina.tensor([[[1.0, 0, 0], [0, 1, 0]]]).expand(2, 2, 3)
    for align_corners in (False, True):
        grid = F.affine_grid(theta, x.shape, align_corners)
        for mode in ("bilinear", "nearest", "bicubic"):
            got = F.grid_sample(x, grid, mode, "border", align_corners)
            np.testing.assert_allclose(got.numpy(), x.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("value", [1e3, 3e38, math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("border", ["zeros", "border", "reflection"])
def test_places_far_away(value, mode, border):
    x = lamina.ones(1, 1, 3, 3, requires_grad=True)
    grid = lamina.full((1, 1, 1, 2), value, requires_grad=True)
    y = F.grid_sample(x, grid, mode, border, False)
    if border == "zeros" and not math.isnan(value):
        assert y.item() == 0
    if mode != "bicubic":
        assert not y.isnan().any()
        y.sum().backward()
        assert not x.grad.isnan().any() and not grid.grad.isnan().any()


def test_unfold_and_fold():
    x = lamina.randn(2, 3, 6, 5, **float64)
    columns = F.unfold(x, (2, 3))
    w = lamina.randn(4, 3, 2, 3, **float64)
    product = lamina.matmul(w.reshape(4, -1), columns).reshape(2, 4, 5, 3)
    np.testing.assert_allclose(product.numpy(), F.conv2d(x, w).numpy(), rtol=1e-12, atol=1e-12)
    counts = F.fold(F.unfold(lamina.ones_like(x), (2, 3)), (6, 5), (2, 3))
    np.testing.assert_allclose(
        F.fold(columns, (6, 5), (2, 3)).numpy(), (x * counts).numpy(), rtol=1e-12
    )


def test_pixels_and_channels():
    x = lamina.arange(32).reshape(1, 8, 2, 2)
    y = F.pixel_shuffle(x, 2)
    want = x.reshape(1, 2, 2, 2, 2, 2).permute(0, 1, 4, 2, 5, 3).reshape(1, 2, 4, 4)
    assert y.equal(want) and F.pixel_unshuffle(y, 2).equal(x)
    assert F.channel_shuffle(x, 2)[0, :, 0, 0].tolist() == [0, 16, 4, 20, 8, 24, 12, 28]
    with pytest.raises(RuntimeError, match="divisible"):
        F.pixel_shuffle(x, 3)


def test_old_names_warn():
    x = lamina.rand(1, 1, 2, 2)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert F.upsample_nearest(x, scale_factor=2).shape == (1, 1, 4, 4)
        assert F.upsample_bilinear(x, size=3).shape == (1, 1, 3, 3)
        F.upsample(x, size=3)
    assert len(seen) == 3
