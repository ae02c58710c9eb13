"""Ten thousand mixed calls, errors included, leave no tensor and no memory behind."""

import gc
import tracemalloc

import lamina


class Plain(lamina.Tensor):
    pass


class Foreign:
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return 1


def _mixed():
    x = lamina.ones(3).as_subclass(Plain)
    (x + 1).shape  # noqa: B018
    repr(x[::-1])
    lamina.add(Foreign(), 1)
    lamina.from_dlpack(lamina.ones(2))
    lamina.ones(2).storage()[0]
    lamina.ops.aten.add.Tensor(lamina.ones(3), lamina.ones(3))
    for bad in (
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
        for _ in range(600):  # of about 17 calls each
            _mixed()
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    # Objects that are kept for the next tensor; one lost object a call would be 500 kB.
    assert grown < 200_000
    assert lamina._C._memory_stats()["allocated"] == bytes_before
    assert _live() == live_before
