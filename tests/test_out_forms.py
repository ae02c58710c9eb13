"""out= and in-place forms of operators that are calls of others."""

import pytest

import lamina

X = lamina.arange(6.0).reshape(2, 3)
CASES = {
    "tril": lambda **k: lamina.tril(X, **k),
    "triu": lambda **k: lamina.triu(X, 1, **k),
    "diag": lambda **k: lamina.diag(X, **k),
    "diff": lambda **k: lamina.diff(X, **k),
    "inner": lambda **k: lamina.inner(X, X, **k),
    "hstack": lambda **k: lamina.hstack([X, X], **k),
    "vstack": lambda **k: lamina.vstack([X, X], **k),
    "dstack": lambda **k: lamina.dstack([X, X], **k),
    "column_stack": lambda **k: lamina.column_stack([X, X], **k),
    "take": lambda **k: lamina.take(X, lamina.tensor([0, 5]), **k),
    "argsort": lambda **k: lamina.argsort(X, stable=True, descending=True, **k),
    "tensordot": lambda **k: lamina.tensordot(X, X, 2, **k),
    "isin": lambda **k: lamina.isin(X, lamina.tensor([1.0, 2.0]), **k),
    "take_along_dim": lambda **k: lamina.take_along_dim(X, lamina.tensor([[-1]]), 1, **k),
}
PAIRS = {
    "sort": lambda **k: lamina.sort(X, 1, True, **k),
    "topk": lambda **k: lamina.topk(X, 2, **k),
    "aminmax": lambda **k: lamina.aminmax(X, dim=1, **k),
    "kthvalue": lambda **k: lamina.kthvalue(X, 2, **k),
}


@pytest.mark.parametrize("name", CASES)
def test_out(name):
    expected = CASES[name]()
    out = lamina.empty(0, dtype=expected.dtype)
    assert CASES[name](out=out) is out
    assert lamina.equal(out, expected)
    with pytest.raises(TypeError):
        CASES[name](out=(out, out))
    if expected.is_floating_point():
        with pytest.raises(RuntimeError):
            CASES[name](out=lamina.empty(0, dtype=lamina.int64))
        with pytest.raises(RuntimeError, match="automatic differentiation"):
            CASES[name](out=lamina.empty_like(expected).requires_grad_())


@pytest.mark.parametrize("name", PAIRS)
def test_pairs(name):
    expected = PAIRS[name]()
    out = tuple(lamina.empty(0, dtype=e.dtype) for e in expected)
    result = PAIRS[name](out=out)
    assert result[0] is out[0] and result[1] is out[1]
    assert all(lamina.equal(a, b) for a, b in zip(out, expected))
    assert type(result) is type(expected)
    with pytest.raises(TypeError):
        PAIRS[name](out=out[:1])


def test_in_place():
    x = lamina.ones(2, 2)
    assert x.tril_() is x and x.tolist() == [[1, 0], [1, 1]]
    assert lamina.ones(2, 2).triu_(1).tolist() == [[0, 1], [0, 0]]
    y = lamina.full((2,), 3.0, dtype=lamina.float64)
    assert y.float_power_(2) is y and y.tolist() == [9, 9]
    with pytest.raises(RuntimeError, match="float_power_"):
        lamina.ones(2).float_power_(2)
    w = lamina.ones(2, dtype=lamina.float64, requires_grad=True)
    (w * 2).float_power_(3).sum().backward()
    assert w.grad.tolist() == [24, 24]


def test_conj_physical_of_reals_is_the_tensor_itself():
    assert lamina.conj_physical(X) is X
    z = lamina.tensor([1 + 2j])
    assert lamina.conj_physical(z).item() == 1 - 2j
    assert lamina.conj_physical(z.conj()).item() == 1 + 2j


@pytest.mark.parametrize("dtype", [lamina.float16, lamina.bfloat16])
def test_nextafter_steps_by_one_unit_of_16_bit_types(dtype):
    inf = float("inf")
    eps = lamina.finfo(dtype).eps
    x = lamina.tensor([1.0, 1.0, -1.0, 0.0, 0.0, 2.0, inf, inf], dtype=dtype)
    to = lamina.tensor([inf, -inf, inf, 1.0, -1.0, 2.0, 0.0, inf], dtype=dtype)
    got = lamina.nextafter(x, to)
    tiny = lamina.tensor([1], dtype=lamina.int16).view(dtype).item()
    top = lamina.finfo(dtype).max
    assert got.tolist() == [1 + eps, 1 - eps / 2, -1 + eps / 2, tiny, -tiny, 2.0, top, inf]
    nan = lamina.tensor(float("nan"), dtype=dtype)
    assert lamina.nextafter(nan, x[0]).isnan() and lamina.nextafter(x[0], nan).isnan()


def test_results_keep_their_type():
    a = lamina.ones(1, 3, dtype=lamina.int32)
    assert (
        lamina.nn.functional.bilinear(a, a, lamina.ones(2, 3, 3, dtype=lamina.int32)).dtype
        == lamina.int32
    )
    grad, output = lamina.ones(2), lamina.softmax(lamina.ones(2), 0)
    result = lamina.ops.aten._softmax_backward_data(grad, output, 0, lamina.float32)
    assert lamina.equal(result, lamina.zeros(2))


def test_an_index_put_makes_a_copy():
    index = (lamina.tensor([0, 0]),)
    x = lamina.zeros(2)
    assert lamina.index_put(x, index, lamina.ones(2), accumulate=True).tolist() == [2, 0]
    assert x.tolist() == [0, 0] and lamina.index_put_(x, index, lamina.ones(())) is x
