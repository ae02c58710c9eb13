"""dtype, device, Size, Generator, grad modes."""

import copy
import pickle
import threading

import pytest

import lamina


def test_dtypes():
    assert lamina.float is lamina.float32
    assert lamina.long is lamina.int64
    assert lamina.float32.is_floating_point and not lamina.float32.is_complex
    assert lamina.complex64.to_real() is lamina.float32
    assert lamina.float64.to_complex() is lamina.complex128
    assert lamina.int8.itemsize == 1 and lamina.complex128.itemsize == 16
    assert not lamina.uint8.is_signed
    assert lamina.zeros(1, dtype=float).dtype is lamina.float32
    assert lamina.zeros(1, dtype=int).dtype is lamina.int64
    assert copy.deepcopy(lamina.float32) is lamina.float32


def test_default_dtype():
    try:
        lamina.set_default_dtype(lamina.float64)
        assert lamina.tensor(1.0).dtype is lamina.float64
        assert lamina.zeros(1).dtype is lamina.float64
    finally:
        lamina.set_default_dtype(lamina.float32)
    with pytest.raises(TypeError):
        lamina.set_default_dtype(lamina.int64)


def test_devices():
    assert lamina.device("cuda:1").index == 1
    assert lamina.device("cuda", 1) == lamina.device("cuda:1")
    assert lamina.device("cpu") != lamina.device("meta")
    assert len({lamina.device("cpu"), lamina.device("cpu")}) == 1
    for text in ("", "cp", "cpu:", "cpu:-1", "cuda:x", "cuda:999999", "cpu:1:2"):
        with pytest.raises(RuntimeError):
            lamina.device(text)
    with pytest.raises(TypeError):
        lamina.device(1.5)


def test_size():
    s = lamina.Size([2, 3])
    assert s == (2, 3) and isinstance(s, tuple)
    assert (
        type(s[:1]) is lamina.Size and type(s + (4,)) is lamina.Size and type(s * 2) is lamina.Size
    )
    assert s.numel() == 6 and lamina.Size([]).numel() == 1
    with pytest.raises(TypeError):
        lamina.Size([1.5])
    assert pickle.loads(pickle.dumps(s)) == s


def test_generators():
    g = lamina.Generator().manual_seed(3)
    a = lamina.rand(4, generator=g)
    state = g.get_state()
    b = lamina.rand(4, generator=g)
    g.set_state(state)
    assert lamina.rand(4, generator=g).tolist() == b.tolist()
    assert lamina.rand(4, generator=lamina.Generator().manual_seed(3)).tolist() == a.tolist()
    assert g.initial_seed() == 3
    lamina.manual_seed(3)
    assert lamina.rand(4).tolist() == a.tolist()
    assert lamina.initial_seed() == 3
    lamina.manual_seed(-1)
    assert lamina.initial_seed() == 2**64 - 1
    with pytest.raises(RuntimeError):
        g.manual_seed(2**70)
    with pytest.raises((TypeError, RuntimeError)):
        g.set_state(lamina.zeros(3))
    with pytest.raises(RuntimeError):
        g.set_state(lamina.zeros(3, dtype=lamina.uint8))


def test_same_numbers_as_the_peer():
    lamina.manual_seed(0)
    assert lamina.rand(3).tolist() == [0.49625658988952637, 0.7682217955589294, 0.08847743272781372]
    lamina.manual_seed(0)
    assert lamina.randint(0, 10, (5,)).tolist() == [4, 9, 3, 0, 3]
    lamina.manual_seed(0)
    assert lamina.randperm(5).tolist() == [4, 0, 1, 3, 2]
    lamina.manual_seed(0)
    expected = [1.5409960746765137, -0.293428897857666, -2.1787893772125244]
    assert lamina.randn(3).tolist() == pytest.approx(expected, rel=3e-7)


def test_grad_modes_nest():
    assert lamina.is_grad_enabled()
    with lamina.no_grad():
        assert not lamina.is_grad_enabled()
        with lamina.enable_grad():
            assert lamina.is_grad_enabled()
        assert not lamina.is_grad_enabled()
    with lamina.set_grad_enabled(False):
        assert not lamina.is_grad_enabled()
    assert lamina.is_grad_enabled()
    lamina.set_grad_enabled(False)
    assert not lamina.is_grad_enabled()
    lamina.set_grad_enabled(True)
    with pytest.raises(ZeroDivisionError):
        with lamina.no_grad():
            raise ZeroDivisionError
    assert lamina.is_grad_enabled()
    with lamina.inference_mode():
        assert lamina.is_inference_mode_enabled() and not lamina.is_grad_enabled()
    assert not lamina.is_inference_mode_enabled()


def test_grad_modes_decorate():
    @lamina.no_grad()
    def f(n):
        assert not lamina.is_grad_enabled()
        return f(n - 1) if n else lamina.is_grad_enabled()

    @lamina.no_grad
    def g():
        return lamina.is_grad_enabled()

    @lamina.no_grad()
    def steps():
        for _ in range(2):
            yield lamina.is_grad_enabled()

    assert f(3) is False and g() is False
    for inside in steps():
        assert inside is False
        assert lamina.is_grad_enabled()
    assert lamina.is_grad_enabled()


def test_modes_are_of_the_thread():
    seen = []
    with lamina.no_grad():
        t = threading.Thread(target=lambda: seen.append(lamina.is_grad_enabled()))
        t.start()
        t.join()
    assert seen == [True]


def test_copies_and_pickles():
    x = lamina.arange(6.0).view(2, 3).t()
    x.label = [1]
    y = copy.deepcopy(x)
    assert y.tolist() == x.tolist() and y.stride() == x.stride()
    assert y.label == [1] and y.label is not x.label
    assert copy.deepcopy([x, x])[0] is not x
    p = lamina.ones(2, requires_grad=True)
    q = pickle.loads(pickle.dumps(p))
    assert q.requires_grad and q.tolist() == [1, 1]
    with pytest.raises(RuntimeError):
        copy.deepcopy(p * 2)
