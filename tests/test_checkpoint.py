"""Checkpointing: the same gradients bit for bit, less memory, and errors that name the operator."""

import pytest
from lamina.utils.checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    set_checkpoint_early_stop,
)

import lamina

WIDTH = 8


def layer(x, w):
    return lamina.tanh(x @ w) * lamina.rand(WIDTH)


def weights(n):
    generator = lamina.Generator().manual_seed(0)
    return [lamina.randn(WIDTH, WIDTH, generator=generator).requires_grad_() for _ in range(n)]


def gradients(run, ws):
    lamina.manual_seed(1)
    x = lamina.ones(3, WIDTH, requires_grad=True)
    run(x, ws).sum().backward()
    grads = [t.grad for t in [x, *ws]]
    for w in ws:
        w.grad = None
    return grads


def plain(x, ws):
    for w in ws:
        x = layer(x, w)
    return x


@pytest.mark.parametrize("reentrant", [False, True])
def test_gradients_are_the_same_bit_for_bit(reentrant):
    def checkpointed(x, ws):
        for w in ws:
            x = checkpoint(layer, x, w, use_reentrant=reentrant)
        return x

    ws = weights(4)
    for a, b in zip(gradients(plain, ws), gradients(checkpointed, ws), strict=True):
        assert a.equal(b)


def test_nested_checkpoints():
    def pair(x, a, b):
        return checkpoint(
            layer, checkpoint(layer, x, a, use_reentrant=False), b, use_reentrant=False
        )

    def nested(x, ws):
        for i in range(0, len(ws), 2):
            x = checkpoint(pair, x, ws[i], ws[i + 1], use_reentrant=False)
        return x

    ws = weights(4)
    for a, b in zip(gradients(plain, ws), gradients(nested, ws), strict=True):
        assert a.equal(b)
    x = lamina.ones(3, WIDTH, requires_grad=True)
    lamina.manual_seed(1)
    (one,) = lamina.autograd.grad(nested(x, ws).sum(), x)
    lamina.manual_seed(1)
    (two,) = lamina.autograd.grad(plain(x, ws).sum(), x)
    assert one.equal(two)


def test_higher_orders_and_a_retained_graph():
    x = lamina.tensor([1.0, 2.0], dtype=lamina.float64, requires_grad=True)

    def f(x):
        return (x**3).sin()

    def second(y):
        (g,) = lamina.autograd.grad(y.sum(), x, create_graph=True)
        return lamina.autograd.grad(g.sum(), x)[0]

    assert lamina.allclose(second(f(x)), second(checkpoint(f, x, use_reentrant=False)))
    y = checkpoint(f, x, use_reentrant=False).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert lamina.allclose(x.grad, 2 * 3 * x**2 * (x**3).cos())


def test_the_second_run_stops_early():
    steps = []

    def f(x):
        y = x.sin().cos()
        steps.append(1)
        z = y * 2
        steps.append(2)
        return z

    x = lamina.ones(2, requires_grad=True)
    checkpoint(f, x, use_reentrant=False).sum().backward()
    assert steps == [1, 2]
    with set_checkpoint_early_stop(False):
        checkpoint(f, x, use_reentrant=False).sum().backward()
    assert steps == [1, 2] * 3


def test_a_different_second_run_is_refused_by_the_operators_name():
    calls = []

    def other_sizes(x):
        calls.append(1)
        y = x.sin()
        return (y if len(calls) % 2 else lamina.cat([y, y])).exp()

    def fewer(x):
        calls.append(1)
        return x.sin().cos() if len(calls) % 2 else x.sin()

    def other_operator(x):
        calls.append(1)
        return x.exp() if len(calls) % 2 else x.tanh()

    x = lamina.ones(2, 2, requires_grad=True)
    for f, words in [
        (other_sizes, "position 1, saved by ExpBackward0"),
        (fewer, "saved by CosBackward0 in the forward"),
        (other_operator, "by ExpBackward0 in the forward, by TanhBackward0"),
    ]:
        calls.clear()
        with pytest.raises(CheckpointError, match=words):
            checkpoint(f, x, use_reentrant=False).sum().backward()
    calls.clear()
    checkpoint(other_operator, x, use_reentrant=False, determinism_check="none").sum().backward()


def test_arguments():
    x = lamina.ones(2, requires_grad=True)
    s = lamina.tensor(2.0, requires_grad=True)
    checkpoint(lambda x, *, s: x * s, x, s=s, use_reentrant=False).sum().backward()
    assert s.grad.item() == 2.0
    with lamina.no_grad():
        assert not checkpoint(lamina.sin, x, use_reentrant=False).requires_grad
    parts = [lamina.sin, lamina.cos, lamina.exp]
    y = checkpoint_sequential(parts, 2, x, use_reentrant=False)
    assert y.equal(x.sin().cos().exp())
    with pytest.raises(RuntimeError, match="incompatible with .grad"):
        lamina.autograd.grad(checkpoint(lamina.sin, x, use_reentrant=True).sum(), x)
    with pytest.raises(ValueError, match="determinism_check"):
        checkpoint(lamina.sin, x, use_reentrant=False, determinism_check="sometimes")


def test_a_deep_network_holds_what_theory_says():
    """24 blocks n -> 4n -> n: between checkpoints one activation a block, inside one block its own.

    In units of one activation: 24 block results; while one block runs again and backward goes
    through it, 4 for what relu keeps, 4 for the gradient that comes to relu, 4 for the one that it
    makes, 1 for the gradient of the block's result.
    """
    n, batch, blocks = 128, 1024, 24
    ws = [
        (
            lamina.full((n, 4 * n), 0.1).requires_grad_(),
            lamina.full((4 * n, n), 0.1).requires_grad_(),
        )
        for _ in range(blocks)
    ]

    def block(x, a, b):
        return (x @ a).relu() @ b

    def peak_and_gradients(run):
        for pair in ws:
            for w in pair:
                w.grad = lamina.zeros(w.shape)
        x = lamina.full((batch, n), 0.01, requires_grad=True)
        before = lamina._C._memory_stats()["allocated"]
        lamina._C._memory_reset_peak()
        run(x).sum().backward()
        peak = lamina._C._memory_stats()["peak_allocated"] - before
        return peak / (4 * n * batch), [x.grad, *(w.grad for pair in ws for w in pair)]

    def checkpointed(x):
        for a, b in ws:
            x = checkpoint(block, x, a, b, use_reentrant=False)
        return x

    def kept(x):
        for a, b in ws:
            x = block(x, a, b)
        return x

    theory = blocks + 4 + 4 + 4 + 1
    peak, grads = peak_and_gradients(checkpointed)
    assert abs(peak - theory) < 0.1 * theory
    peak_kept, grads_kept = peak_and_gradients(kept)
    assert peak_kept > 5 * blocks
    for a, b in zip(grads, grads_kept, strict=True):
        assert a.equal(b)
