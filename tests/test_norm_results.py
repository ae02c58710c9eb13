"""The native normalizations: statistics, their types, running statistics, and what can be differentiated twice."""

import pytest

import lamina

F = lamina.nn.functional
F64 = lamina.float64


def close(a, b, tolerance=1e-9):
    return lamina.allclose(a, b, rtol=tolerance, atol=tolerance)


def test_statistics():
    x = lamina.randn(3, 4, 5, dtype=F64)
    out, mean, rstd = lamina.native_layer_norm(x, [5], None, None, 1e-3)
    assert close(out, F.layer_norm(x, [5], eps=1e-3))
    assert close(mean, x.mean(2, True)) and close(
        rstd, (x.var(2, correction=0, keepdim=True) + 1e-3).rsqrt()
    )
    out, mean, rstd = lamina.native_group_norm(x, None, None, 3, 4, 5, 2, 1e-3)
    groups = x.reshape(3, 2, 10)
    assert close(mean, groups.mean(2)) and close(rstd, (groups.var(2, correction=0) + 1e-3).rsqrt())
    out, mean, invstd = lamina.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-3)
    assert close(mean, x.mean((0, 2))) and close(
        invstd, (x.var((0, 2), correction=0) + 1e-3).rsqrt()
    )
    assert lamina.native_batch_norm(x, None, None, mean, invstd, False, 0.1, 1e-3)[1].numel() == 0


@pytest.mark.parametrize("dtype", [lamina.float16, lamina.bfloat16])
def test_types_of_statistics(dtype):
    x, half, full = lamina.randn(3, 4, 5).to(dtype), lamina.ones(4, dtype=dtype), lamina.ones(4)
    for weight, expected in ((None, dtype), (half, dtype), (full, lamina.float32)):
        for results in (
            lamina.native_layer_norm(x.mT.contiguous(), [4], weight, None, 1e-3),
            lamina.native_group_norm(x, weight, None, 3, 4, 5, 2, 1e-3),
            lamina.native_batch_norm(x, weight, None, None, None, True, 0.1, 1e-3),
        ):
            assert [t.dtype for t in results] == [dtype, expected, expected]


def test_running_statistics():
    x, w = lamina.randn(3, 4, 5), lamina.rand(4)
    results = []
    for call in (
        lambda *stats: lamina.native_batch_norm(x, w, w, *stats, True, 0.1, 1e-3),
        lambda *stats: lamina._native_batch_norm_legit(x, w, w, *stats, True, 0.1, 1e-3),
        lambda *stats: lamina.ops.aten._batch_norm_with_update(x, w, w, *stats, 0.1, 1e-3),
    ):
        stats = [lamina.zeros(4), lamina.ones(4)]
        results.append([*call(*stats)[:3], *stats])
    for got in results[1:]:
        assert all(lamina.equal(a, b) for a, b in zip(got, results[0]))
    assert close(results[0][3], x.mean((0, 2)) * 0.1, 1e-6)
    reserve = lamina.ops.aten._batch_norm_with_update(x, w, w, *results[0][3:], 0.1, 1e-3)[3]
    assert reserve.dtype == lamina.uint8 and reserve.numel() == 0
    alone = lamina._native_batch_norm_legit(x, None, None, True, 0.1, 1e-3)
    assert lamina.equal(alone[0], F.batch_norm(x, None, None, training=True, eps=1e-3))


@pytest.mark.parametrize(
    "name", ["layer_norm", "batch_norm", "evaluated batch_norm", "instance_norm"]
)
@pytest.mark.parametrize("affine", ["both", "weight", "bias", "none"])
def test_all_gradients_can_be_differentiated(name, affine):
    x = lamina.randn(3, 4, 2, dtype=F64, requires_grad=True)
    c = 2 if name == "layer_norm" else 4
    w = lamina.rand(c, dtype=F64, requires_grad=True) if affine in ("both", "weight") else None
    b = lamina.rand(c, dtype=F64, requires_grad=True) if affine in ("both", "bias") else None
    stats = lamina.zeros(4, dtype=F64), lamina.ones(4, dtype=F64)

    def function(x, w, b):
        if name == "layer_norm":
            return F.layer_norm(x, [2], w, b)
        if name == "instance_norm":
            return F.instance_norm(x, weight=w, bias=b)
        return F.batch_norm(x, *(s.clone() for s in stats), w, b, training=name == "batch_norm")

    given = [t for t in (x, w, b) if t is not None]
    grads = lamina.autograd.grad(function(x, w, b).sin().sum(), given, create_graph=True)
    assert all(g.requires_grad for g in grads)
    linear = lamina.autograd.grad(function(x, w, b).sum(), given, create_graph=True)
    assert all(g.requires_grad for g in linear)
    # What has no part has a derivative of zero, not none.
    for g in linear:
        assert all(h is not None for h in lamina.autograd.grad(g.sum(), [x], retain_graph=True))

    def scattered(*values):
        have = iter(values)
        return function(
            next(have), next(have) if w is not None else None, next(have) if b is not None else None
        )

    assert lamina.autograd.gradgradcheck(scattered, tuple(given))


def test_statistics_of_groups_have_derivatives():
    x = lamina.randn(2, 4, 3, dtype=F64, requires_grad=True)

    def function(x):
        return lamina.native_group_norm(x, None, None, 2, 4, 3, 2, 1e-3)

    assert lamina.autograd.gradcheck(function, (x,), check_forward_ad=True)
    assert lamina.autograd.gradgradcheck(function, (x,))
    assert not lamina.native_layer_norm(x, [3], None, None, 1e-3)[1].requires_grad


def test_products_of_zeros_have_second_derivatives():
    x = lamina.tensor([0.0, 3, 0, 15], dtype=F64, requires_grad=True)
    s = lamina.tensor([2.0, 0, 0, 2, 0], dtype=F64, requires_grad=True)
    at = lamina.tensor([0, 1, 2, 0, 2])
    for include in (True, False):

        def function(x, s, include=include):
            return x.scatter_reduce(0, at, s, "prod", include_self=include)

        assert lamina.autograd.gradcheck(function, (x, s), check_forward_ad=True)
        assert lamina.autograd.gradgradcheck(function, (x, s))


def test_flat_functions_have_gradients():
    x, y = lamina.rand(2, 3, requires_grad=True), lamina.rand(4, 3)
    lamina.cdist(x, y, 0).sum().backward()
    assert x.grad.tolist() == [[0] * 3] * 2
    for dtype in (lamina.float32, lamina.float16, lamina.bfloat16):
        a = lamina.tensor([1.0, 2.0, 0.0, -lamina.inf], dtype=dtype, requires_grad=True)
        b = lamina.tensor([2.0, 2.0, -1.0, 0.0], dtype=dtype, requires_grad=True)
        ga, gb = lamina.autograd.grad(lamina.nextafter(a, b).sum(), (a, b))
        assert ga[:3].tolist() == [1, 0, 1] and gb.tolist() == [0] * 4
    with pytest.raises(RuntimeError):
        lamina.gradient(lamina.ones(3, 3), dim=(1, -1))
    assert lamina.logspace(4.3, -3, 4, 2.0, dtype=lamina.int64).tolist() == [16, 3, 0, 0]
