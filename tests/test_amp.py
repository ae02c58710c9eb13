"""Casting of products, scaling of losses."""

import pytest

import lamina
from lamina import amp, nn


def test_products_are_cast():
    m, x = nn.Linear(4, 3), lamina.randn(2, 4)
    with lamina.autocast("cpu", dtype=lamina.bfloat16):
        assert lamina.is_autocast_enabled("cpu") and lamina.is_autocast_cpu_enabled()
        out = m(x)
        assert out.dtype == (x @ x.t()).dtype == lamina.mm(x, x.t()).dtype == lamina.bfloat16
        assert (x + x).dtype == lamina.float32
        assert nn.functional.mse_loss(out, out * 0).dtype == lamina.float32
        assert lamina.cat([out, x[:, :3]]).dtype == lamina.float32
        with amp.autocast("cpu", enabled=False):
            assert m(x).dtype == lamina.float32
            with amp.autocast("cpu", dtype=lamina.float16):
                assert m(x).dtype == lamina.float16
        assert m(x.double().float()).dtype == lamina.bfloat16
    assert m(x).dtype == lamina.float32 and not lamina.is_autocast_enabled("cpu")
    out.float().sum().backward()
    assert m.weight.grad.dtype == lamina.float32

    @amp.autocast("cpu")
    def decorated(x):
        return m(x)

    assert decorated(x).dtype == lamina.bfloat16
    with pytest.raises(ZeroDivisionError), amp.autocast("cpu"):
        1 / 0  # noqa: B018
    assert m(x).dtype == lamina.float32
    with pytest.warns(UserWarning):
        amp.autocast("cpu", dtype=lamina.float32)
    with pytest.raises(ValueError):
        amp.autocast(3)


def test_functions_follow_the_block():
    class Double(lamina.autograd.Function):
        @staticmethod
        @amp.custom_fwd(device_type="cpu", cast_inputs=lamina.float32)
        def forward(ctx, x):
            assert not lamina.is_autocast_enabled("cpu")
            return x * 2

        @staticmethod
        @amp.custom_bwd(device_type="cpu")
        def backward(ctx, g):
            return g * 2

    x = lamina.ones(2, dtype=lamina.bfloat16, requires_grad=True)
    with amp.autocast("cpu"):
        out = Double.apply(x)
    assert out.dtype == lamina.float32
    out.sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_scaler():
    p = nn.Parameter(lamina.ones(1))
    optimizer = lamina.optim.SGD([p], lr=1.0)
    scaler = amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)
    for _ in range(2):
        optimizer.zero_grad()
        scaler.scale((p * 0.25).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    assert abs(p.item() - 0.5) < 1e-6 and scaler.get_scale() == 8
    p.grad = lamina.tensor([float("inf")])
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError):
        scaler.unscale_(optimizer)
    assert scaler.step(optimizer) is None and abs(p.item() - 0.5) < 1e-6
    scaler.update()
    assert scaler.get_scale() == 4
    other = amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    assert other.get_scale() == 4 and not amp.GradScaler("cuda").is_enabled()
