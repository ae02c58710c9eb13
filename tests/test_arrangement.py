"""Copies in another order, triangles, sums by labels: against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lamina

A = np.arange(24.0).reshape(2, 3, 4)
X = lamina.from_numpy(A.copy())
V = np.array([3.0, 1.0, 3.0, 2.0, 1.0, 1.0])


def same(got, want):
    want = np.asarray(want)
    assert tuple(got.shape) == want.shape
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)


@pytest.mark.parametrize(
    "got, want",
    [
        (lambda: X.repeat(2, 1, 1, 3), lambda: np.tile(A, (2, 1, 1, 3))),
        (lambda: X.repeat(1, 1, 1), lambda: A),
        (lambda: lamina.tile(X, (2,)), lambda: np.tile(A, 2)),
        (lambda: X.flip(0, -1), lambda: np.flip(A, (0, 2))),
        (lambda: lamina.fliplr(X), lambda: np.fliplr(A)),
        (lambda: X.roll(5), lambda: np.roll(A, 5)),
        (lambda: X.roll((1, -2), (0, 2)), lambda: np.roll(A, (1, -2), (0, 2))),
        (lambda: X.rot90(1, (0, 2)), lambda: np.rot90(A, 1, (0, 2))),
        (lambda: lamina.rot90(X, -1, [1, 2]), lambda: np.rot90(A, -1, (1, 2))),
        (lambda: X.tril(1), lambda: np.tril(A, 1)),
        (lambda: X.triu(-1), lambda: np.triu(A, -1)),
        (lambda: lamina.diag(X[0, 0]), lambda: np.diag(A[0, 0])),
        (lambda: lamina.diag(X[0], 1), lambda: np.diag(A[0], 1)),
        (lambda: X[0, :, :3].trace(), lambda: np.trace(A[0, :, :3])),
        (lambda: lamina.diff(X, 2, 1), lambda: np.diff(A, 2, 1)),
        (lambda: X.repeat_interleave(2, 1), lambda: np.repeat(A, 2, 1)),
        (lambda: X.repeat_interleave(3), lambda: np.repeat(A, 3)),
        (
            lambda: lamina.repeat_interleave(X, lamina.tensor([0, 2, 1]), 1),
            lambda: np.repeat(A, [0, 2, 1], 1),
        ),
        (lambda: lamina.hstack((X, X)), lambda: np.hstack((A, A))),
        (lambda: lamina.vstack((X[0, 0], X[0, 1])), lambda: np.vstack((A[0, 0], A[0, 1]))),
        (lambda: lamina.dstack((X[0], X[1])), lambda: np.dstack((A[0], A[1]))),
        (lambda: lamina.column_stack((X[0, 0], X[0, 1])), lambda: np.column_stack((A[0, 0], A[0, 1]))),
        (lambda: lamina.inner(X, X[0]), lambda: np.inner(A, A[0])),
        (lambda: lamina.unique(lamina.from_numpy(V)), lambda: np.unique(V)),
        (lambda: lamina.unique(lamina.from_numpy(V), return_counts=True)[1], lambda: np.unique(V, return_counts=True)[1]),
        (lambda: lamina.unique(lamina.from_numpy(V), return_inverse=True)[1], lambda: np.unique(V, return_inverse=True)[1]),
        (lambda: lamina.unique(X.reshape(4, 6) % 3, dim=0), lambda: np.unique(A.reshape(4, 6) % 3, axis=0)),
        (lambda: lamina.unique_consecutive(lamina.tensor([1, 1, 2, 1])), lambda: [1, 2, 1]),
        (lambda: lamina.tensordot(X, X, ([0, 1], [0, 1])), lambda: np.tensordot(A, A, ([0, 1], [0, 1]))),
        (lambda: lamina.tensordot(X, X.permute(2, 0, 1), 1), lambda: np.tensordot(A, A.transpose(2, 0, 1), 1)),
        (lambda: lamina.isin(X, lamina.tensor([1.0, 5.0])), lambda: np.isin(A, [1.0, 5.0])),
        (lambda: lamina.isin(X, lamina.arange(20.0)), lambda: np.isin(A, np.arange(20.0))),
        (lambda: lamina.trapezoid(X, dx=0.5), lambda: np.trapezoid(A, dx=0.5)),
        (lambda: lamina.take_along_dim(X, X.to(lamina.int64) % 2, 1), lambda: np.take_along_axis(A, A.astype(int) % 2, 1)),
        (lambda: lamina.tril_indices(3, 4, 1), lambda: np.stack(np.tril_indices(3, 1, 4))),
        (lambda: lamina.triu_indices(3, 4), lambda: np.stack(np.triu_indices(3, 0, 4))),
        (lambda: X.norm(), lambda: np.linalg.norm(A)),
        (lambda: lamina.norm(X, 1, 2), lambda: np.linalg.norm(A, 1, 2)),
        (lambda: lamina.norm(X, 3, (0, 1), True), lambda: (abs(A) ** 3).sum((0, 1), keepdims=True) ** (1 / 3)),
        (lambda: lamina.norm(X, float("inf"), 1), lambda: np.linalg.norm(A, np.inf, 1)),
        (lambda: lamina.linalg.norm(X[0], 1), lambda: np.linalg.norm(A[0], 1)),
        (lambda: lamina.linalg.norm(X[0], "fro"), lambda: np.linalg.norm(A[0], "fro")),
        (lambda: lamina.cdist(X[0], X[1]), lambda: np.linalg.norm(A[0][:, None] - A[1][None], axis=2)),
        (lambda: lamina.var_mean(X, 1)[0], lambda: A.var(1, ddof=1)),
        (lambda: lamina.nn.functional.one_hot(lamina.tensor([2, 0])), lambda: [[0, 0, 1], [1, 0, 0]]),
        (lambda: X.masked_scatter(X > 20, lamina.tensor([7.0, 8.0, 9.0], dtype=lamina.float64)), lambda: np.r_[A.ravel()[:21], 7, 8, 9].reshape(A.shape)),
    ],
)  # fmt: skip
def test_values(got, want):
    same(got(), want())


def test_copies_are_copies():
    for copy in (X.repeat(1, 1, 1), X.flip(()), X.roll(0, 0), X.tile((1,)), lamina.diag(X[0])):
        assert copy.untyped_storage().data_ptr() != X.untyped_storage().data_ptr()


@pytest.mark.parametrize("p", [0.5, 1, 2, 3, float("inf")])
def test_gradient_of_a_norm_is_zero_at_zero(p):
    x = lamina.zeros(3, requires_grad=True)
    if p < 1:
        return
    lamina.norm(x, p).backward()
    assert not x.grad.isnan().any()


_SIZES = dict(zip("abcde", (2, 3, 1, 4, 2)))


@st.composite
def _equations(draw):
    terms = draw(
        st.lists(
            st.lists(st.sampled_from("abcde"), max_size=3, unique=True), min_size=1, max_size=3
        )
    )
    labels = sorted({x for t in terms for x in t})
    output = draw(st.permutations(labels))[: draw(st.integers(0, len(labels)))]
    return ",".join(map("".join, terms)) + "->" + "".join(output)


@settings(max_examples=150)
@given(_equations())
def test_einsum_against_numpy(equation):
    rng = np.random.default_rng(0)
    terms = equation.split("->")[0].split(",")
    arrays = [rng.standard_normal([_SIZES[x] for x in t]) for t in terms]
    same(lamina.einsum(equation, *map(lamina.tensor, arrays)), np.einsum(equation, *arrays))


def test_einsum_forms():
    a, b = X, X.permute(2, 0, 1)
    same(lamina.einsum("ijk,kab", a, b), np.einsum("ijk,kab", A, A.transpose(2, 0, 1)))
    same(lamina.einsum("...k,...k->...", a, a), np.einsum("...k,...k->...", A, A))
    same(lamina.einsum("ii->i", lamina.eye(3)), np.ones(3))
    same(lamina.einsum("ii", lamina.eye(3, dtype=lamina.float64)), 3.0)
    same(lamina.einsum(a, [0, 1, 2], [2, 0]), np.einsum(A, [0, 1, 2], [2, 0]))
    x = lamina.ones(2, 3, requires_grad=True)
    lamina.einsum("ij,kj->", x, x).backward()
    assert x.grad.tolist() == [[4.0] * 3] * 2
    for bad in ("ij,jk->ii", "ij->k", "ijk", "i1->i"):
        with pytest.raises(RuntimeError):
            lamina.einsum(bad, lamina.ones(2, 2), *([lamina.ones(2, 2)] if "," in bad else []))


def test_refused():
    for call in (
        lambda: X.repeat(2),
        lambda: X.flip(0, 0),
        lambda: lamina.roll(X, (1, 2), (0,)),
        lambda: lamina.tril(lamina.ones(3)),
        lambda: lamina.trace(X),
        lambda: lamina.diag(X),
        lambda: lamina.nn.functional.one_hot(lamina.tensor([1.0])),
        lambda: lamina.nn.functional.one_hot(lamina.tensor([-1])),
        lambda: lamina.repeat_interleave(X, -1),
        lambda: lamina.tile(X, (2**62, 2**62)),
    ):
        with pytest.raises(RuntimeError):
            call()
