"""Hooks on tensors, nodes and saved tensors; cycles through them are collected."""

import gc
import weakref

import pytest
from lamina.autograd.graph import (
    register_multi_grad_hook,
    save_on_cpu,
    saved_tensors_hooks,
)

import lamina


def leaf(*values):
    return lamina.tensor(values, requires_grad=True)


def test_tensor_hooks_replace_the_gradient_in_order_and_can_be_removed():
    x = leaf(1.0, 2.0)
    y = x * 3
    seen = []
    first = y.register_hook(lambda g: (seen.append("first"), g * 2)[1])
    y.register_hook(lambda g: seen.append("second"))
    x.register_hook(lambda g: g + 1)
    y.sum().backward(retain_graph=True)
    assert seen == ["first", "second"]
    assert x.grad.tolist() == [7.0, 7.0]
    first.remove()
    first.remove()
    x.grad = None
    y.sum().backward()
    assert x.grad.tolist() == [4.0, 4.0]


def test_retain_grad_sees_what_hooks_have_made():
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 5)
    assert y.retains_grad and not x.retains_grad
    (y * 3).backward(lamina.ones(1))
    assert y.grad.tolist() == [15.0]


def test_retain_grad_follows_a_write_in_place_hooks_do_not():
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    seen = []
    y.register_hook(lambda g: seen.append(g.item()))
    y.mul_(4)
    assert y._backward_hooks is None
    y.sum().backward()
    assert seen == [4.0]
    assert y.grad.tolist() == [1.0]


def test_post_accumulate_hook_runs_after_the_leaf_has_its_gradient():
    x = leaf(1.0, 2.0)
    grads = []

    def step(p):
        grads.append(p.grad.clone())
        p.grad = None

    handle = x.register_post_accumulate_grad_hook(step)
    (x * 2).sum().backward()
    assert x.grad is None and grads[0].tolist() == [2.0, 2.0]
    handle.remove()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="non-leaf"):
        (x * 2).register_post_accumulate_grad_hook(step)


def test_node_hooks_before_and_after():
    x = leaf(1.0)
    y = x.exp()
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 10,))
    y.grad_fn.register_hook(lambda made, given: (made[0] + given[0],))
    y.backward(lamina.ones(1))
    e = 2.718281828
    assert x.grad.item() == pytest.approx(10 * e + 10, rel=1e-6)


def test_multi_grad_hooks():
    a, b, unused = leaf(1.0), leaf(2.0), leaf(3.0)
    got = []
    register_multi_grad_hook((a, b, unused), got.append)
    (a * b).backward(lamina.ones(1))
    assert [None if g is None else g.item() for g in got[0]] == [2.0, 1.0, None]
    once = []
    handle = register_multi_grad_hook((a, b), once.append, mode="any")
    (a * b).backward(lamina.ones(1))
    assert len(once) == 1
    handle.remove()
    (a * b).backward(lamina.ones(1))
    assert len(once) == 1 and len(got) == 3


def test_errors_in_hooks_arrive_and_leave_everything_usable():
    x = leaf(1.0)
    y = x * 2
    handle = y.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        y.backward(lamina.ones(1), retain_graph=True)
    handle.remove()
    y.register_hook(lambda g: "no tensor")
    with pytest.raises(TypeError, match="hook returned 'str'"):
        y.backward(lamina.ones(1))
    z = x * 2
    z.register_hook(lambda g: g.double())
    with pytest.raises(RuntimeError, match="changed the type"):
        z.backward(lamina.ones(1))
    w = x * 2
    w.register_hook(lambda g: lamina.ones(3))
    with pytest.raises(RuntimeError, match="changed the size"):
        w.backward(lamina.ones(1))


def test_a_hook_may_call_backward():
    x, other = leaf(1.0), leaf(3.0)

    def hook(g):
        with lamina.enable_grad():
            (other * other).sum().backward()
        return g * other.grad

    y = x * 2
    y.register_hook(hook)
    y.backward(lamina.ones(1))
    assert x.grad.item() == 12.0


def test_saved_tensors_hooks_pack_and_unpack():
    x = leaf(1.0, 2.0)
    packed = []

    def pack(t):
        packed.append(tuple(t.shape))
        return t.detach().numpy().copy()

    with saved_tensors_hooks(pack, lambda a: lamina.from_numpy(a)):
        y = (x * x).exp()
    assert packed == [(2,), (2,), (2,)]
    (g,) = lamina.autograd.grad(y.sum(), x, create_graph=True)
    expected = [2 * 2.718281828, 4 * 54.59815]
    assert g.tolist() == pytest.approx(expected, rel=1e-6)
    (g2,) = lamina.autograd.grad(g.sum(), x)
    assert g2.tolist() == pytest.approx([(2 + 4) * 2.718281828, (2 + 16) * 54.59815], rel=1e-6)
    with save_on_cpu():
        z = x.sin()
    z.sum().backward()
    assert x.grad.tolist() == pytest.approx(x.detach().cos().tolist())


def test_saved_tensors_hooks_can_be_disabled_and_see_bad_packs():
    x = leaf(1.0)
    with (
        lamina.autograd.graph.disable_saved_tensors_hooks("not here"),
        pytest.raises(RuntimeError, match="not here"),
        saved_tensors_hooks(lambda t: t, lambda t: t),
    ):
        pass
    with (
        pytest.raises(RuntimeError, match="in place"),
        saved_tensors_hooks(lambda t: t.add_(1), lambda t: t),
    ):
        x.detach().clone().requires_grad_().exp()
    with saved_tensors_hooks(lambda t: 3, lambda t: t):
        y = x * x
    with pytest.raises(TypeError, match="unpack_hook"):
        y.backward(lamina.ones(1))


class Token:
    pass


def collected(make):
    reference = make()
    gc.collect()
    return reference() is None


def test_cycles_through_hooks_gradients_and_functions_are_collected():
    def hook_holds_result():
        x = leaf(1.0)
        y, token = x * 2, Token()
        y.register_hook(lambda g, y=y, token=token: g)
        return weakref.ref(token)

    def leaf_hook_holds_loss():
        x, token = leaf(1.0), Token()
        loss = (x * 2).exp()
        x.register_hook(lambda g, loss=loss, token=token: g)
        return weakref.ref(token)

    def gradient_with_history():
        x = leaf(1.0)
        x.token = Token()
        (x**3).sum().backward(create_graph=True)
        return weakref.ref(x.token)

    def context_holds_result():
        x, token = leaf(1.0), Token()

        class Pass(lamina.autograd.Function):
            @staticmethod
            def forward(ctx, a):
                return a * 1

            @staticmethod
            def backward(ctx, g):
                return g

        y = Pass.apply(x)
        y.grad_fn.result, y.grad_fn.token = y, token
        return weakref.ref(token)

    for make in (
        hook_holds_result,
        leaf_hook_holds_loss,
        gradient_with_history,
        context_holds_result,
    ):
        assert collected(make), make.__name__


def test_what_is_in_use_is_not_collected():
    x, token = leaf(1.0), Token()
    y = x * 2
    reference = weakref.ref(token)
    y.register_hook(lambda g, y=y, token=token: g * 3)
    z = y * 1
    del y, token
    gc.collect()
    assert reference() is not None
    z.backward(lamina.ones(1))
    assert x.grad.item() == 6.0
