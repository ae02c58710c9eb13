"""Memory shared with NumPy and with buffers."""

import numpy as np
import pytest

import lamina

TYPES = [
    "bool",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


@pytest.mark.parametrize("name", TYPES)
def test_there_and_back(name):
    a = np.array([0, 1, 1, 0]).astype(name)
    x = lamina.from_numpy(a)
    assert x.dtype == getattr(lamina, name)
    assert x.data_ptr() == a.ctypes.data
    b = x.numpy()
    assert b.dtype == a.dtype
    assert b.ctypes.data == a.ctypes.data
    assert (a == b).all()


def test_writes_are_seen_on_both_sides():
    a = np.zeros(3)
    x = lamina.from_numpy(a)
    x[1] = 5
    assert a[1] == 5
    a[2] = 7
    assert x[2].item() == 7


def test_strides_of_any_sign():
    a = np.arange(24.0).reshape(4, 6)
    for view in (a[::2, ::3], a.T, a[::-1], a[:, ::-1], a[::-2, ::-1], a[2:2], a[1]):
        x = lamina.from_numpy(view)
        assert x.tolist() == view.tolist()
        assert x.numpy().tolist() == view.tolist()
    x = lamina.from_numpy(a[::-1])
    assert x.stride() == (-6, 1)
    x[0, 0] = -1
    assert a[3, 0] == -1


def test_memory_outlives_the_array():
    x = lamina.from_numpy(np.full(1000, 3.0))
    assert x.sum().item() == 3000
    y = lamina.full((1000,), 2.0).numpy()
    assert y.sum() == 2000


def test_refused():
    with pytest.raises(TypeError):
        lamina.from_numpy([1, 2])
    with pytest.raises(TypeError):
        lamina.from_numpy(np.array(["a"]))
    with pytest.raises(TypeError):
        lamina.from_numpy(np.array([object()]))
    with pytest.raises(TypeError):
        lamina.from_numpy(np.zeros(2, dtype="datetime64[s]"))
    with pytest.raises(ValueError):
        lamina.from_numpy(np.zeros(2, dtype=">f4"))
    with pytest.raises(ValueError):
        lamina.from_numpy(np.zeros(2, dtype=[("a", "<f4"), ("b", "u1")])["a"])
    with pytest.raises(RuntimeError, match="requires grad"):
        lamina.ones(2, requires_grad=True).numpy()
    with pytest.raises(TypeError):
        lamina.ones(2, dtype=lamina.bfloat16).numpy()
    with pytest.raises(TypeError):
        lamina.empty(2, device="meta").numpy()
    assert lamina.ones(2, requires_grad=True).numpy(force=True).tolist() == [1, 1]


def test_read_only_arrays_warn():
    a = np.arange(3)
    a.flags.writeable = False
    with pytest.warns(UserWarning, match="not writable"):
        lamina.from_numpy(a)


def test_numpy_functions_take_tensors():
    x = lamina.tensor([1.0, 2.0])
    assert np.asarray(x).tolist() == [1, 2]
    assert np.array(x, dtype=np.int32).tolist() == [1, 2]
    assert np.add(x, 1).tolist() == [2, 3]
    assert (x + np.float32(1)).tolist() == [2, 3]


def test_frombuffer():
    data = bytearray(np.arange(4, dtype=np.int32).tobytes())
    x = lamina.frombuffer(data, dtype=lamina.int32)
    assert x.tolist() == [0, 1, 2, 3]
    x[0] = 9
    assert data[0] == 9
    assert lamina.frombuffer(data, dtype=lamina.int32, count=2, offset=4).tolist() == [1, 2]
    for options in (
        {"dtype": lamina.int64, "offset": 1},
        {"dtype": lamina.int32, "count": 5},
        {"dtype": lamina.int32, "offset": 16},
        {"dtype": lamina.int32, "offset": -1},
        {"dtype": lamina.int32, "count": 0},
    ):
        with pytest.raises(ValueError):
            lamina.frombuffer(data, **options)
    with pytest.raises(ValueError):
        lamina.frombuffer(bytearray(), dtype=lamina.int32)
    with pytest.raises(ValueError):
        lamina.frombuffer([1, 2], dtype=lamina.int32)
    # A buffer in use cannot shrink under the tensor.
    with pytest.raises(BufferError):
        data.clear()
