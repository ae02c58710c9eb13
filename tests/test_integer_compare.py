"""Comparisons of integers are exact: whatever the types, and for numbers of any size."""

import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lamina

TYPES = {
    "uint8": (0, 2**8 - 1),
    "uint16": (0, 2**16 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
}
OPERATORS = [operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge]


def values(name):
    low, high = TYPES[name]
    edges = [
        v
        for v in (low, low + 1, -1, 0, 1, 127, 128, 255, 2**31, 2**63 - 1, 2**63, high)
        if low <= v <= high
    ]
    return st.one_of(st.sampled_from(edges), st.integers(low, high))


@st.composite
def pairs(draw):
    a, b = draw(st.sampled_from(sorted(TYPES))), draw(st.sampled_from(sorted(TYPES)))
    n = draw(st.integers(1, 5))
    return a, [draw(values(a)) for _ in range(n)], b, [draw(values(b)) for _ in range(n)]


@given(pairs(), st.sampled_from(OPERATORS), st.booleans())
def test_tensors_of_any_two_types(pair, compare, scalar):
    a, x, b, y = pair
    s = lamina.tensor(x, dtype=getattr(lamina, a))
    if scalar:  # a tensor without dimensions keeps its value
        y = [y[0]] * len(x)
        t = lamina.tensor(y[0], dtype=getattr(lamina, b))
    else:
        t = lamina.tensor(y, dtype=getattr(lamina, b))
    expected = [compare(p, q) for p, q in zip(x, y)]
    assert compare(s, t).tolist() == expected
    out = lamina.empty(len(x), dtype=lamina.bool)
    getattr(lamina, compare.__name__)(s, t, out=out)
    assert out.tolist() == expected


@given(
    st.sampled_from(sorted(TYPES)).flatmap(
        lambda n: st.tuples(st.just(n), st.lists(values(n), min_size=1, max_size=20))
    ),
    st.one_of(
        st.integers(-(2**80), 2**80),
        st.sampled_from(
            [-(2**63), -(2**63) - 1, 2**63, 2**63 - 1, 2**64, 2**64 - 1, -1, 0, 255, 256]
        ),
        st.floats(),
        st.sampled_from([0.5, -0.5, 2.0**63, 2.0**64, -(2.0**63), 1e300]),
    ),
    st.sampled_from(OPERATORS),
)
def test_numbers_of_any_size(tensor, number, compare):
    name, x = tensor
    t = lamina.tensor(x, dtype=getattr(lamina, name))
    assert compare(t, number).tolist() == [compare(v, number) for v in x]


def test_in_place():
    u = lamina.tensor([1, 2**64 - 1], dtype=lamina.uint64)
    u.gt_(lamina.tensor([-1, 2**63 - 1]))
    assert u.tolist() == [1, 1]


def test_numbers_too_large_to_compute_with_raise():
    with pytest.raises(OverflowError):
        lamina.ones(2, dtype=lamina.int64) + 2**70


@pytest.mark.parametrize(
    "dtype, number",
    [
        ("uint8", 300),
        ("int8", -200),
        ("int32", 1e10),
        ("int32", float("nan")),
        ("float32", 1e300),
        ("float32", 1j),
        ("int64", 2**63),
    ],
)
def test_a_number_that_does_not_fit_is_not_written(dtype, number):
    dtype = getattr(lamina, dtype)
    with pytest.raises(RuntimeError, match="without overflow"):
        lamina.full((1,), number, dtype=dtype)
    with pytest.raises(RuntimeError, match="without overflow"):
        lamina.zeros(1, dtype=dtype).fill_(number)


def test_numbers_that_fit():
    assert lamina.full((1,), -1, dtype=lamina.uint8).tolist() == [255]
    assert lamina.full((1,), 2**64 - 1, dtype=lamina.uint64).tolist() == [2**64 - 1]
    assert lamina.full((1,), 1e6, dtype=lamina.float16).item() == float("inf")


def test_products_of_bool_have_no_kernel():
    b = lamina.ones(2, 2, dtype=lamina.bool)
    with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
        b @ b
