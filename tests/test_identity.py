"""One tensor has one Python object, as long as anybody can tell."""

import gc
import os
import weakref

import pytest

import lamina


def test_results_that_are_the_input_are_the_same_object():
    a = lamina.ones(3)
    assert a.add_(1) is a
    out = lamina.empty(3)
    assert lamina.add(a, a, out=out) is out
    assert a.contiguous() is a


def test_attributes_survive_while_cpp_holds_the_tensor():
    a = lamina.ones(3, requires_grad=True)
    a.label = "mine"
    b = (a * a).sum()
    del a
    gc.collect()
    node = b.grad_fn.next_functions[0][0].next_functions[0][0]
    assert node.variable.label == "mine"
    assert node.variable is node.variable


def test_object_dies_when_nobody_holds_the_tensor():
    a = lamina.ones(3)
    a.label = "mine"
    seen = weakref.ref(a)
    del a
    assert seen() is None


def test_weak_reference_outlives_the_last_strong_one():
    a = lamina.ones(2, requires_grad=True)
    seen = weakref.ref(a)
    b = (a * a).sum()
    del a
    again = seen()
    assert again is not None
    del b
    gc.collect()
    assert again.tolist() == [1.0, 1.0]
    assert again.requires_grad
    del again
    assert seen() is None


def test_grad_keeps_its_object():
    a = lamina.ones(2, requires_grad=True)
    (a * 2).sum().backward()
    a.grad.label = 1
    gc.collect()
    assert a.grad.label == 1
    assert a.grad is a.grad


def test_cycle_through_grad_is_collected():
    a = lamina.ones(2, requires_grad=True)
    a.grad = lamina.ones(2)
    a.grad.owner = a
    seen = weakref.ref(a)
    del a
    gc.collect()
    assert seen() is None


def test_cycle_through_attributes_is_collected():
    a = lamina.ones(2)
    a.me = a
    seen = weakref.ref(a)
    del a
    gc.collect()
    assert seen() is None


def test_subclass_comes_back_as_itself():
    class Mine(lamina.Tensor):
        def __init__(self, *_):
            self.ready = True

    a = Mine([1.0, 2.0])
    a.requires_grad_()
    b = (a * 3).sum()
    identity = id(a)
    del a
    leaf = b.grad_fn.next_functions[0][0].next_functions[0][0].variable
    assert type(leaf) is Mine
    assert leaf.ready
    assert id(leaf) == identity
    b.backward()
    assert leaf.grad.tolist() == [3.0, 3.0]


def test_subclass_finalizer_runs_once():
    log = []

    class Mine(lamina.Tensor):
        def __del__(self):
            log.append(1)

    a = Mine([1.0])
    del a
    gc.collect()
    assert log == [1]


def test_slots_of_a_subclass_are_cleared():
    class Held:
        pass

    class Mine(lamina.Tensor):
        __slots__ = ("extra",)

    a = Mine([1.0])
    a.extra = Held()
    seen = weakref.ref(a.extra)
    del a
    gc.collect()
    assert seen() is None


def test_many_tensors_do_not_leak():
    import resource

    def work():
        for _ in range(20000):
            x = lamina.ones(4)
            y = x + x
            y.label = 1
            del x, y

    work()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(5):
        work()
    # AddressSanitizer keeps freed memory aside for a while: 256 MB of it.
    allowed = 300_000 if "LAMINA_SANITIZED" in os.environ else 20_000  # KB
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < allowed


def test_hash_and_membership():
    a, b = lamina.ones(2), lamina.ones(2)
    assert {a: 1}[a] == 1
    assert len({a, b}) == 2
    assert 1.0 in a
    with pytest.raises(RuntimeError):
        "x" in a  # noqa: B015
