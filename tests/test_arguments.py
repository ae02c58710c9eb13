"""Matching of arguments, and what errors say."""

import numpy as np
import pytest

import lamina


def test_ways_to_say_a_list_of_ints():
    x = lamina.arange(6)
    for y in (x.view(2, 3), x.view((2, 3)), x.view([2, 3]), x.view(lamina.Size([2, 3]))):
        assert y.shape == (2, 3)
    assert x.view(np.int64(2), 3).shape == (2, 3)
    assert x.view(size=(2, 3)).shape == (2, 3)
    assert lamina.zeros(2, 3).shape == lamina.zeros((2, 3)).shape == (2, 3)
    assert lamina.zeros(()).shape == ()
    assert x.view(2, 3).permute(1, 0).shape == (3, 2)
    assert x.view(6).shape == (6,)


def test_names_of_numpy():
    x = lamina.arange(6.0).view(2, 3)
    assert x.sum(axis=0).tolist() == x.sum(dim=0).tolist()
    assert x.sum(1, keepdims=True).shape == (2, 1)
    assert lamina.add(input=x, other=x).tolist() == (x + x).tolist()


def test_numbers_of_numpy_and_tensors_as_numbers():
    x = lamina.ones(2)
    assert (x + np.float64(1)).tolist() == [2, 2]
    assert lamina.add(x, x, alpha=lamina.tensor(2)).tolist() == [3, 3]
    assert x.sum(np.int32(0)).item() == 2
    assert x.sum(lamina.tensor(0)).item() == 2


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda x: lamina.add(x, "a"), ["add", "other", "position 2", "str"]),
        (lambda x: x.add("a"), ["add", "other", "position 1", "str"]),
        (lambda x: lamina.add(x), ["add", "other"]),
        (lambda x: lamina.add(x, x, x, x), ["add", "positional"]),
        (lambda x: lamina.add(x, x, beta=1), ["add", "beta"]),
        (lambda x: lamina.add(x, x, other=x), ["add", "multiple values", "other"]),
        (lambda x: lamina.relu(), ["relu", "input"]),
        (lambda x: lamina.relu(3), ["relu", "input", "must be Tensor, not int"]),
        (lambda x: x.view("a"), ["view"]),
        (lambda x: x.sum("a"), ["sum", "invalid combination of arguments", "str"]),
        (lambda x: lamina.cat([1, 2]), ["cat", "int"]),
        (lambda x: lamina.zeros("a"), ["zeros", "str"]),
        (lambda x: lamina.zeros(2, dtype="float32"), ["zeros", "dtype"]),
        (lambda x: x.transpose(0), ["transpose"]),
        (lambda x: x.transpose(0.5, 1), ["transpose", "float"]),
        (lambda x: x.squeeze(True), ["squeeze", "bool"]),
        (lambda x: lamina.zeros([1, "a"]), ["zeros", "str"]),
    ],
)
def test_errors_say_what_is_wrong(call, words):
    with pytest.raises(TypeError) as error:
        call(lamina.ones(2))
    for word in words:
        assert word in str(error.value)


def test_numbers_that_do_not_fit():
    x = lamina.ones(2)
    with pytest.raises(TypeError, match="Overflow"):
        x.view(2**70)
    with pytest.raises(ValueError, match="Overflow"):
        x.sum(2**70)
    with pytest.raises((RuntimeError, OverflowError)):
        x + 2**70


def test_operators_leave_unknown_types_to_them():
    class Other:
        def __radd__(self, x):
            return "radd"

        def __rmatmul__(self, x):
            return "rmatmul"

    x = lamina.ones(2)
    assert x + Other() == "radd"
    assert x @ Other() == "rmatmul"
    assert (x == "a") is False
    assert (x != None) is True  # noqa: E711
    with pytest.raises(TypeError):
        x < "a"  # noqa: B015
    with pytest.raises(TypeError):
        x - []


def test_reflected_operators():
    x = lamina.tensor([1.0, 2.0, 4.0])
    assert (1 + x).tolist() == [2, 3, 5]
    assert (1 - x).tolist() == [0, -1, -3]
    assert (8 / x).tolist() == [8, 4, 2]
    assert (2**x).tolist() == [2, 4, 16]
    assert (9 // x).tolist() == [9, 4, 2]
    assert (9 % x).tolist() == [0, 1, 1]
    n = lamina.tensor([1, 2])
    assert (1 / n).dtype == lamina.float32
    assert (8 >> n).tolist() == [4, 2]
    assert (1 << n).tolist() == [2, 4]
    assert (2**n).dtype == lamina.int64
    assert (1 / lamina.tensor(2.0, dtype=lamina.float16)).dtype == lamina.float16
    assert (3 & n).tolist() == [1, 2]


def test_numbers_from_tensors():
    x = lamina.tensor(2.7)
    assert int(x) == 2
    assert float(lamina.tensor(3)) == 3.0
    assert complex(lamina.tensor(1 + 2j)) == 1 + 2j
    assert [1, 2, 3][lamina.tensor(1)] == 2
    assert bool(lamina.tensor([0.0])) is False
    with pytest.raises(TypeError):
        [1, 2][lamina.tensor(1.0)]
    with pytest.raises(RuntimeError, match="ambiguous"):
        bool(lamina.ones(2))
    with pytest.raises(RuntimeError, match="cannot be converted to Scalar"):
        lamina.ones(2).item()
    with pytest.raises(RuntimeError):
        float(lamina.empty((), device="meta"))
