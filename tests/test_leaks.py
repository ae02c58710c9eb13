"""Ten thousand mixed calls, errors included, leave no tensor and no memory behind."""

import gc
import tracemalloc

import lamina


class Plain(lamina.Tensor):
    pass


class Foreign:
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return 1


def _raise(grad):
    raise ValueError("a hook fails")


def _mixed():
    x = lamina.ones(3).as_subclass(Plain)
    (x + 1).shape  # noqa: B018
    repr(x[::-1])
    lamina.add(Foreign(), 1)
    lamina.from_dlpack(lamina.ones(2))
    lamina.ones(2).storage()[0]
    lamina.ops.aten.add.Tensor(lamina.ones(3), lamina.ones(3))
    out = lamina.empty(0)
    lamina.add(lamina.ones(3), 1, out=out)
    lamina.isin(out, 2.0, out=lamina.empty(3, dtype=lamina.bool))
    lamina.aminmax(out, out=(lamina.empty(()), lamina.empty(())))
    w = lamina.ones(3, requires_grad=True)
    handle = w.register_hook(lambda g: g * 2)
    y = w * w
    y.register_hook(_raise)
    grid = lamina.zeros(2, 3)
    grid[0], grid[:, lamina.tensor([0, 2])] = 1, 5.0
    grid[grid > 2]  # noqa: B018
    for bad in (
        lambda: y.sum().backward(),
        lambda: lamina.exp(w, out=out),
        lambda: lamina.add(out, 1, out=lamina.empty(3, dtype=lamina.int64)),
        lambda: lamina.aminmax(out, out=(out,)),
        lambda: grid.__setitem__((0, 7), 1),
        lambda: grid.__setitem__(slice(None), lamina.ones(4)),
        lambda: grid[lamina.tensor([3]), lamina.tensor([0, 1, 2])],
        lambda: lamina.ones(1).register_hook(_raise),
        lambda: lamina.tensor([[1, 2], [3]]),
        lambda: lamina.add("x", 1),
        lambda: x[9],
        lambda: x @ lamina.ones(2),
        lambda: lamina.zeros("x"),
        lambda: lamina.from_dlpack(3),
    ):
        try:
            bad()
        except Exception:
            pass
    handle.remove()
    (w * 3).sum().backward()


def _live():
    gc.collect()
    return sum(issubclass(type(o), lamina.Tensor) for o in gc.get_objects())


def test_nothing_is_left():
    for _ in range(200):
        _mixed()
    gc.collect()
    tracemalloc.start()
    try:
        live_before = _live()
        bytes_before = lamina._C._memory_stats()["allocated"]
        for _ in range(200):
            _mixed()
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(600):  # of about 40 calls each
            _mixed()
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    # Objects that are kept for the next tensor; one lost object a call would be 500 kB.
    assert grown < 200_000
    assert lamina._C._memory_stats()["allocated"] == bytes_before
    assert _live() == live_before
