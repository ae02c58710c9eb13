"""``_foreach_*``: each is the plain operator on every tensor of the lists."""

import pytest

import lamina
from lamina import _foreach


def tensors(seed=0):
    g = lamina.Generator().manual_seed(seed)
    return [lamina.rand(s, generator=g) + 0.25 for s in ((2, 3), (4,), ())]


def equal(a, b):
    return all(lamina.equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("name", _foreach._UNARY)
def test_functions_of_one_tensor(name):
    if not hasattr(lamina, name):
        pytest.skip("not there yet")
    x = [t * 0.7 for t in tensors()]
    wanted = [getattr(lamina, name)(t) for t in x]
    assert equal(getattr(lamina, "_foreach_" + name)(x), wanted)
    assert getattr(lamina, f"_foreach_{name}_")(x) is None
    assert equal(x, wanted)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "pow"])
def test_functions_of_two(name):
    x, y = tensors(), tensors(1)
    plain, listed = getattr(lamina, name), getattr(lamina, "_foreach_" + name)
    assert equal(listed(x, 2.0), [plain(t, 2.0) for t in x])
    assert equal(listed(x, y), [plain(t, u) for t, u in zip(x, y)])
    assert equal(listed(x, [1, 2, 3]), [plain(t, n) for t, n in zip(x, (1, 2, 3))])
    wanted = [plain(t, u) for t, u in zip(x, y)]
    getattr(lamina, f"_foreach_{name}_")(x, y)
    assert equal(x, wanted)


def test_alpha_and_bounds():
    x, y = tensors(), tensors(1)
    assert equal(lamina._foreach_add(x, y, alpha=3), [t + 3 * u for t, u in zip(x, y)])
    assert equal(lamina._foreach_maximum(x, y), map(lamina.maximum, x, y))
    assert equal(lamina._foreach_clamp_max(x, 0.5), [t.clamp(max=0.5) for t in x])
    assert equal(lamina._foreach_pow(2.0, y), [2.0**u for u in y])
    assert equal(lamina._foreach_mul(x, lamina.tensor(2.0)), [t * 2 for t in x])


def test_functions_of_three():
    x, y, z = tensors(), tensors(1), tensors(2)
    for name in ("addcmul", "addcdiv"):
        plain, listed = getattr(lamina, name), getattr(lamina, "_foreach_" + name)
        assert equal(listed(x, y, z, 2.0), [plain(*t, value=2.0) for t in zip(x, y, z)])
        numbers = [1.0, 2.0, 3.0]
        wanted = [plain(*t, value=v) for *t, v in zip(x, y, z, numbers)]
        assert equal(listed(x, y, z, numbers), wanted)
        assert equal(listed(x, y, z, lamina.tensor(numbers)), wanted)
    wanted = [t.lerp(u, 0.3) for t, u in zip(x, y)]
    assert equal(lamina._foreach_lerp(x, y, 0.3), wanted)
    lamina._foreach_lerp_(x, y, 0.3)
    assert equal(x, wanted)


def test_others():
    x = tensors()
    lamina.testing.assert_close(
        lamina.stack(lamina._foreach_norm(x)), lamina.stack([(t * t).sum().sqrt() for t in x])
    )
    assert equal(lamina._foreach_clone(x), x)
    lamina._foreach_zero_(x)
    lamina._foreach_copy_(x, tensors(3))
    assert equal(x, tensors(3))


def test_errors_and_gradients():
    with pytest.raises(RuntimeError, match="at least one tensor"):
        lamina._foreach_add([], 1)
    with pytest.raises(RuntimeError, match="same number of tensors"):
        lamina._foreach_add(tensors(), [lamina.ones(1)])
    with pytest.raises(TypeError, match="tuple of Tensors"):
        lamina._foreach_exp(lamina.ones(2))
    x = [lamina.ones(2, requires_grad=True)]
    with pytest.raises(RuntimeError, match="leaf Variable"):
        lamina._foreach_mul_(x, 2)
    lamina._foreach_mul(x, 3.0)[0].sum().backward()
    assert x[0].grad.tolist() == [3.0, 3.0]
    assert sorted(_foreach.NAMES) == sorted(n for n in dir(lamina) if n.startswith("_foreach_"))


def test_fused_steps():
    p, steps = [lamina.ones(3)], [lamina.tensor(1.0)]
    m, v, g = [lamina.zeros(3)], [lamina.zeros(3)], [lamina.ones(3)]
    options = {"lr": 0.1, "beta1": 0.9, "beta2": 0.999, "weight_decay": 0.0, "eps": 1e-8}
    lamina._fused_adam_(p, g, m, v, [], steps, amsgrad=False, maximize=False, **options)
    assert p[0][0].item() == pytest.approx(0.9) and steps[0].item() == 1
    lamina._fused_adamw_(
        p, g, m, v, [], steps, amsgrad=False, maximize=False, **options,
        found_inf=lamina.tensor(1.0),
    )  # fmt: skip
    assert p[0][0].item() == pytest.approx(0.9)
    buffers = [lamina.zeros(3)]
    lamina._fused_sgd_(
        p, g, buffers, weight_decay=0.0, momentum=0.9, lr=0.1, dampening=0.0, nesterov=False,
        maximize=False, is_first_step=True,
    )  # fmt: skip
    assert p[0][0].item() == pytest.approx(0.8) and buffers[0].tolist() == [1.0, 1.0, 1.0]
