"""assert_close."""

import numpy as np
import pytest
from lamina.testing import assert_close

import lamina

nan, inf = float("nan"), float("inf")


def test_what_passes():
    assert_close(lamina.ones(2), lamina.ones(2) + 1e-7)
    assert_close([1.0, lamina.ones(2)], [1.0, lamina.ones(2)])
    assert_close({"a": 1}, {"a": 1})
    assert_close(lamina.tensor([nan, inf]), lamina.tensor([nan, inf]), equal_nan=True)
    assert_close(lamina.tensor([1, 2]), lamina.tensor([1, 2]))
    assert_close(1.0, 1.0 + 1e-9)
    assert_close(np.ones(2), np.ones(2))
    assert_close(lamina.ones(2), lamina.ones(2) * 1.05, rtol=0.1, atol=0)


@pytest.mark.parametrize(
    "a, b, options, words",
    [
        (lamina.ones(2), lamina.zeros(2), {}, ["2 / 2", "not close"]),
        (lamina.ones(2), lamina.ones(3), {}, ["shape"]),
        (lamina.ones(2), lamina.ones(2, dtype=lamina.float64), {}, ["dtype"]),
        (lamina.tensor([nan]), lamina.tensor([nan]), {}, ["not close"]),
        (lamina.tensor([inf]), lamina.tensor([-inf]), {}, ["not close"]),
        (lamina.tensor([1, 2]), lamina.tensor([1, 3]), {}, ["1 / 2", "(1,)", "not equal"]),
        (1.0, 2.0, {}, ["Scalars", "2.0"]),
        ([1], [1, 2], {}, ["length"]),
        ({"a": 1}, {"b": 1}, {}, ["keys"]),
        ([1.0, 2.0], [1.0, 3.0], {}, ["[1]"]),
        (lamina.ones(2), np.ones(2), {}, ["type equality"]),
        (lamina.ones(2), lamina.ones(2) * 1.05, {"rtol": 0.01, "atol": 0}, ["0.01 allowed"]),
    ],
)
def test_what_fails(a, b, options, words):
    with pytest.raises(AssertionError) as error:
        assert_close(a, b, **options)
    for word in words:
        assert word in str(error.value)


def test_messages_and_misuse():
    with pytest.raises(AssertionError, match="^mine$"):
        assert_close(1, 2, msg="mine")
    with pytest.raises(AssertionError, match="^<.*Scalars"):
        assert_close(1, 2, msg=lambda m: "<" + m)
    with pytest.raises(ValueError):
        assert_close(1, 1, rtol=1)
    with pytest.raises(TypeError):
        assert_close("a", "a")
