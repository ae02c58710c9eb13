"""Tensors to and from other libraries, pickles, copies and other processes."""

import copy
import io
import multiprocessing
import pickle
import warnings

import lamina.multiprocessing as mp
import numpy as np
import pytest
from lamina.storage import TypedStorage, _load_from_bytes

import lamina

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16",
          "float32", "float64", "complex64", "complex128"]  # fmt: skip


@pytest.mark.parametrize("name", DTYPES)
def test_dlpack_with_numpy(name):
    dtype = getattr(lamina, name)
    x = lamina.arange(6).to(dtype).reshape(2, 3)
    a = np.from_dlpack(x)
    assert str(a.dtype) == name and a.tolist() == x.tolist()
    assert np.shares_memory(a, x.numpy())
    y = lamina.from_dlpack(np.arange(6).astype(name).reshape(2, 3).T)
    assert y.dtype == dtype and y.stride() == (1, 3) and y.tolist() == x.t().tolist()


def test_dlpack_shares_and_keeps_alive():
    a = np.arange(4.0)
    t = lamina.from_dlpack(a)
    t[0] = 9
    assert a[0] == 9
    del a
    assert t.tolist() == [9, 1, 2, 3]
    x = lamina.arange(3)
    b = np.from_dlpack(x)
    del x
    assert b.tolist() == [0, 1, 2]
    back = lamina.from_dlpack(lamina.arange(6)[::-2])
    assert back.tolist() == [5, 3, 1] and back.stride() == (-2,)
    assert lamina.from_dlpack(lamina.ones(2, 0)).shape == (2, 0)
    half = lamina.tensor([1.5, 2.5], dtype=lamina.bfloat16)
    assert lamina.from_dlpack(half).dtype == lamina.bfloat16


def test_dlpack_protocol():
    x = lamina.ones(2)
    assert x.__dlpack_device__() == (1, 0)
    capsule = x.__dlpack__()
    assert '"dltensor"' in repr(capsule)
    assert '"dltensor_versioned"' in repr(x.__dlpack__(max_version=(1, 0)))
    lamina.from_dlpack(capsule)
    with pytest.raises(RuntimeError):
        lamina.from_dlpack(capsule)  # a second time
    copied = lamina.from_dlpack(x, copy=True)
    copied[0] = 5
    assert x[0] == 1
    with pytest.raises(RuntimeError, match="detach"):
        x.clone().requires_grad_().__dlpack__()
    with pytest.raises(BufferError):
        x.to("meta").__dlpack__()
    with pytest.raises(BufferError):
        x.__dlpack__(dl_device=(2, 0))
    frozen = np.arange(3)
    frozen.flags.writeable = False
    with pytest.warns(UserWarning, match="read-only"):
        assert lamina.from_dlpack(frozen).tolist() == [0, 1, 2]
    for wrong in (3, "x", object(), None):
        with pytest.raises((TypeError, RuntimeError, ValueError)):
            lamina.from_dlpack(wrong)
    for _ in range(3):  # capsules that nobody takes
        x.__dlpack__()


def test_numpy_functions_on_tensors():
    x = lamina.tensor([0.0, 1.0])
    assert isinstance(np.asarray(x), np.ndarray) and np.asarray(x, dtype="int32").dtype == "int32"
    assert isinstance(np.sin(x), lamina.Tensor)
    assert np.stack([x, x]).shape == (2, 2)
    assert (x * np.ones(2)).tolist() == [0.0, 1.0]
    with pytest.raises(TypeError):
        np.ones(2) * x  # as in torch
    assert np.float32(2) * x is not None
    assert np.array(x, copy=True) is not None
    with pytest.raises(TypeError):
        lamina.from_numpy(np.array([object()]))
    with pytest.raises(TypeError):
        lamina.from_numpy(np.zeros(2, dtype=[("a", "i4")]))
    assert x.numpy(force=True).tolist() == [0.0, 1.0]


def test_buffers_and_storages():
    data = bytearray(range(8))
    t = lamina.frombuffer(data, dtype=lamina.int16, offset=2)
    t[0] = 0
    assert data[2:4] == b"\0\0"
    storage = lamina.tensor([1, 2], dtype=lamina.uint8).untyped_storage()
    assert bytes(storage) == b"\1\2" and storage.tolist() == [1, 2] and len(storage[1:]) == 1
    storage[0] = 7
    assert storage[0] == 7 and storage[-1] == 2
    assert lamina.UntypedStorage(3).nbytes() == 3
    assert lamina.UntypedStorage([1, 2]).tolist() == [1, 2]
    with pytest.raises(IndexError):
        storage[2]
    typed = lamina.arange(3.0).storage()
    assert isinstance(typed, lamina.FloatStorage) and not isinstance(typed, lamina.LongStorage)
    assert typed.tolist() == [0.0, 1.0, 2.0] and typed[1] == 1.0 and len(typed) == 3
    assert lamina.FloatStorage(4).size() == 4
    x = lamina.empty(0)
    assert x.set_(typed, 1, (2,)).tolist() == [1.0, 2.0]
    for window in ((0, (4,)), (2, (2,)), (-1, (1,)), (0, (2, 2), (1, 9)), (0, (2**62, 8))):
        with pytest.raises(RuntimeError):
            x.set_(typed, *window)
    grown = lamina.ones(2)
    grown.untyped_storage().resize_(16)
    assert grown.untyped_storage().nbytes() == 16 and grown.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("name", [*DTYPES, "bfloat16", "float8_e5m2"])
def test_pickles_keep_everything(name):
    x = lamina.arange(6).to(getattr(lamina, name)).reshape(2, 3).t()
    for protocol in (2, 5):
        y = pickle.loads(pickle.dumps(x, protocol))
        assert y.dtype == x.dtype and y.shape == x.shape
        assert y.to(lamina.float64).tolist() == x.to(lamina.float64).tolist()


def test_pickles_of_gradients_attributes_and_subclasses():
    x = lamina.ones(2, requires_grad=True)
    x.label = "mine"
    y = pickle.loads(pickle.dumps(x))
    assert y.requires_grad and y.label == "mine"
    assert pickle.loads(pickle.dumps(x * 2)).is_leaf
    assert pickle.loads(pickle.dumps(lamina.ones(2, 0))).shape == (2, 0)
    assert pickle.loads(pickle.dumps(lamina.ones(3, device="meta"))).is_meta
    z = lamina.tensor([1 + 2j]).conj()
    assert pickle.loads(pickle.dumps(z)).tolist() == [1 - 2j]


def test_hostile_streams_raise():
    stream = io.BytesIO()
    pickle.dump(0x1950A86A20F9469CFC6C, stream, 2)
    pickle.dump(1001, stream, 2)
    pickle.dump({}, stream, 2)
    pickle.dump(print, stream, 2)
    for data in (b"", b"abc", pickle.dumps(5), stream.getvalue(), stream.getvalue()[:40]):
        with pytest.raises((pickle.UnpicklingError, EOFError, ValueError, IndexError)):
            _load_from_bytes(data)
    good = TypedStorage([1.0, 2.0], dtype=lamina.float32).__reduce__()[1][0]
    assert _load_from_bytes(good).tolist() == [1.0, 2.0]
    with pytest.raises((pickle.UnpicklingError, EOFError)):
        _load_from_bytes(good[:-3])


def test_deep_copies_keep_what_is_shared():
    x = lamina.arange(6.0)
    pair = {"whole": x, "part": x[1:3], "again": x}
    twin = copy.deepcopy(pair)
    assert twin["whole"] is twin["again"]
    twin["part"][0] = 100
    assert twin["whole"].tolist()[1] == 100 and x[1] == 1
    assert twin["part"].storage_offset() == 1
    leaf = lamina.ones(2, requires_grad=True)
    leaf.grad = lamina.ones(2)
    assert copy.deepcopy(leaf).grad is not leaf.grad
    assert copy.copy(leaf).requires_grad


def _double(connection):
    tensor = connection.recv()
    tensor.mul_(2)
    connection.send(tensor.sum().item())
    connection.close()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_share_memory(method):
    context = mp.get_context(method)
    here, there = context.Pipe()
    process = context.Process(target=_double, args=(there,))
    process.start()
    there.close()
    x = lamina.ones(3)
    view = x[1:]
    assert not x.is_shared()
    here.send(x)
    assert x.is_shared()
    total = here.recv()
    process.join(30)
    assert process.exitcode == 0
    assert total == 6.0
    assert x.tolist() == [2.0, 2.0, 2.0] and view.tolist() == [2.0, 2.0]


def test_share_memory():
    x = lamina.arange(4)
    assert x.share_memory_() is x and x.is_shared() and x.tolist() == [0, 1, 2, 3]
    assert lamina.empty(0).share_memory_().numel() == 0
    with pytest.raises(RuntimeError):
        x.pin_memory()
    assert multiprocessing.get_start_method() in mp.get_all_start_methods()


def test_legacy_constructors():
    assert lamina.FloatTensor([1, 2]).dtype == lamina.float32
    assert lamina.LongTensor(2, 3).shape == (2, 3)
    assert lamina.ByteTensor(lamina.Size([2])).dtype == lamina.uint8
    assert isinstance(lamina.ones(1), lamina.FloatTensor)
    assert not isinstance(lamina.ones(1), lamina.DoubleTensor)
    assert not isinstance(1, lamina.FloatTensor)
    assert lamina.ones(2, dtype=lamina.float64).new(3).dtype == lamina.float64
    assert lamina.ones(2).new([1, 2]).tolist() == [1.0, 2.0]
    assert lamina.ones(1).type() == "torch.FloatTensor"
    with pytest.raises(TypeError):
        lamina.FloatTensor(lamina.ones(2, dtype=lamina.int64))
    before = lamina.get_default_dtype()
    try:
        lamina.set_default_tensor_type(lamina.DoubleTensor)
        assert lamina.ones(1).dtype == lamina.float64
    finally:
        lamina.set_default_dtype(before)


def test_elementwise_functions_of_python():
    x = lamina.arange(3.0)
    assert x.apply_(lambda v: v + 1).tolist() == [1.0, 2.0, 3.0]
    assert x.map_(lamina.ones(3), lambda a, b: a - b).tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(RuntimeError):
        lamina.ones(2, requires_grad=True).apply_(abs)


def test_scipy_and_pandas():
    pandas = pytest.importorskip("pandas")
    sparse = pytest.importorskip("scipy.sparse")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert lamina.tensor(pandas.Series([1.0, 2.0])).tolist() == [1.0, 2.0]
        assert lamina.as_tensor(pandas.DataFrame({"a": [1, 2]}).values).shape == (2, 1)
        assert lamina.from_numpy(pandas.Series([1, 2]).to_numpy()).tolist() == [1, 2]
    matrix = sparse.csr_matrix(np.eye(2))
    assert lamina.tensor(matrix.data).tolist() == [1.0, 1.0]
