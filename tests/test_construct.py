"""lamina.tensor and its kin: types, shapes, and what they refuse."""

import array

import numpy as np
import pytest

import lamina


@pytest.mark.parametrize(
    "data, dtype, shape",
    [
        (1, lamina.int64, ()),
        (1.5, lamina.float32, ()),
        (True, lamina.bool, ()),
        (1j, lamina.complex64, ()),
        ([], lamina.float32, (0,)),
        ([[], []], lamina.float32, (2, 0)),
        ([1, 2.5], lamina.float32, (2,)),
        ([True, 2], lamina.int64, (2,)),
        ([[1, 2], [3, 4]], lamina.int64, (2, 2)),
        (((1.0,), (2.0,)), lamina.float32, (2, 1)),
        (range(4), lamina.int64, (4,)),
        (np.float32(2), lamina.float32, ()),
        (np.int16(2), lamina.int16, ()),
        (np.arange(6, dtype=np.int32).reshape(2, 3), lamina.int32, (2, 3)),
        ([np.zeros(3), np.ones(3)], lamina.float64, (2, 3)),
        (array.array("d", [1.0, 2.0]), lamina.float32, (2,)),
    ],
)
def test_type_and_shape(data, dtype, shape):
    x = lamina.tensor(data)
    assert x.shape == shape
    assert x.dtype == dtype or isinstance(data, array.array)


def test_values():
    assert lamina.tensor([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert lamina.tensor([1.7, -1.7], dtype=lamina.int32).tolist() == [1, -1]
    assert lamina.tensor([0, 2, 0.0], dtype=lamina.bool).tolist() == [False, True, False]
    assert lamina.tensor([2**63], dtype=lamina.uint64).tolist() == [2**63]
    assert lamina.tensor([lamina.tensor(1.0), 2]).tolist() == [1.0, 2.0]
    assert lamina.tensor([lamina.ones(2), lamina.zeros(2)]).tolist() == [[1, 1], [0, 0]]


@pytest.mark.parametrize(
    "data, options, error",
    [
        ([[1, 2], [3]], {}, ValueError),
        ([1, [2]], {}, (TypeError, ValueError)),
        ([[1], 2], {}, (TypeError, ValueError)),
        ("text", {}, TypeError),
        (["text"], {}, (TypeError, ValueError)),
        (b"bytes", {}, TypeError),
        ({"a": 1}, {}, RuntimeError),
        (object(), {}, RuntimeError),
        (None, {}, RuntimeError),
        ([2**64], {}, ValueError),
        ([300], {"dtype": lamina.int8}, RuntimeError),
        ([1j], {"dtype": lamina.float32}, (TypeError, RuntimeError)),
    ],
)
def test_refused(data, options, error):
    with pytest.raises(error):
        lamina.tensor(data, **options)


def test_recursive_list():
    loop = []
    loop.append(loop)
    with pytest.raises(ValueError, match="too many dimensions"):
        lamina.tensor(loop)


def test_sequence_that_lies_about_its_length():
    class Liar:
        def __len__(self):
            return 3

        def __getitem__(self, i):
            if i > 4:
                raise IndexError
            return 1.0

    lamina.tensor([[1.0] * 5, Liar()])


def test_list_that_changes_while_it_is_read():
    rows = [[1.0, 2.0], [3.0, 4.0]]

    class Evil:
        def __float__(self):
            rows[0].clear()
            rows.clear()
            return 1.0

        def __index__(self):
            return 1

    rows[0][0] = Evil()
    with pytest.raises((ValueError, RuntimeError, TypeError)):
        lamina.tensor(rows, dtype=lamina.float32)


def test_copies_and_shares():
    a = np.arange(3.0)
    assert lamina.tensor(a).data_ptr() != a.ctypes.data
    assert lamina.as_tensor(a).data_ptr() == a.ctypes.data
    x = lamina.ones(2)
    assert lamina.as_tensor(x) is x
    assert lamina.asarray(x) is x
    assert lamina.asarray(x, copy=True).data_ptr() != x.data_ptr()
    with pytest.raises(ValueError):
        lamina.asarray([1, 2], copy=False)


def test_devices_and_gradients():
    assert lamina.tensor([1.0], device="meta").is_meta
    assert lamina.tensor([1.0], requires_grad=True).requires_grad
    with pytest.raises(RuntimeError):
        lamina.tensor([1], requires_grad=True)
    with lamina.device("meta"):
        assert lamina.empty(2).is_meta
    assert lamina.empty(2).device == lamina.device("cpu")


def test_historic_constructor():
    assert lamina.Tensor(2, 3).shape == (2, 3)
    assert lamina.Tensor([1, 2]).dtype == lamina.float32
    assert lamina.Tensor().shape == (0,)
    with pytest.raises(RuntimeError):
        lamina.Tensor(-1)


def test_huge_sizes_are_refused():
    for make in (lamina.empty, lamina.zeros, lamina.ones):
        with pytest.raises(RuntimeError):
            make(2**62, 2**62)
        with pytest.raises(RuntimeError):
            make(-1)
        with pytest.raises((RuntimeError, OverflowError, TypeError)):
            make(2**70)
    with pytest.raises(RuntimeError):
        lamina.zeros([1] * 65)
