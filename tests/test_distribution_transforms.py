"""Transforms and constraints of distributions: round trips, Jacobians by autograd, members of regions."""

import pickle

import lamina.distributions as D
import pytest
from lamina.distributions import constraints as C
from lamina.distributions import utils

import lamina

INF, NAN = float("inf"), float("nan")


def f64(values):
    return lamina.tensor(values, dtype=lamina.float64)


ONE, TWO, HALF = f64(1.0), f64(2.0), f64(0.5)


TRANSFORMS = {
    "affine": (D.AffineTransform(f64(1.0), f64([-2.0, 3.0])), (2,)),
    "affine event": (D.AffineTransform(1.0, f64([-2.0, 3.0]), event_dim=1), (4, 2)),
    "exp": (D.ExpTransform(), (3,)),
    "log": (D.ExpTransform().inv, (3,)),
    "power": (D.PowerTransform(f64([2.0, -0.5])), (2,)),
    "sigmoid": (D.SigmoidTransform(), (3,)),
    "softplus": (D.SoftplusTransform(), (3,)),
    "tanh": (D.TanhTransform(), (3,)),
    "stick": (D.StickBreakingTransform(), (3,)),
    "corr": (D.CorrCholeskyTransform(), (6,)),
    "reshape": (D.ReshapeTransform((2, 3), (6,)), (2, 3)),
    "cdf": (D.CumulativeDistributionTransform(D.Normal(HALF, TWO)), (3,)),
    "independent": (D.IndependentTransform(D.ExpTransform(), 1), (3,)),
    "cat": (
        D.CatTransform([D.ExpTransform(), D.AffineTransform(1.0, 2.0)], -1, lengths=[1, 2]),
        (3,),
    ),
    "stack": (D.StackTransform([D.ExpTransform(), D.TanhTransform()], -1), (2,)),
    "compose": (
        D.ComposeTransform(
            [D.AffineTransform(1.0, 0.5), D.SigmoidTransform(), D.PowerTransform(TWO)]
        ),
        (3,),
    ),
    "compose events": (
        D.ComposeTransform([D.AffineTransform(1.0, 0.5), D.StickBreakingTransform()]),
        (3,),
    ),
    "identity": (D.identity_transform, (3,)),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name):
    t, shape = TRANSFORMS[name]
    lamina.manual_seed(5)
    x = lamina.rand(shape, dtype=lamina.float64) + 0.1
    y = t(x)
    assert t.domain.check(x).all() and t.codomain.check(y).all() and t.bijective
    assert lamina.allclose(t.inv(y), x) and t.inv.inv is t
    assert t.forward_shape(x.shape) == y.shape and t.inverse_shape(y.shape) == x.shape
    own = t.log_abs_det_jacobian(x, y)
    assert lamina.allclose(t.inv.log_abs_det_jacobian(y, x), -own)
    # The determinant of all of the Jacobian is the product over the batch.
    jacobian = lamina.autograd.functional.jacobian(t, x).reshape(y.numel(), x.numel())
    if name == "stick" or name == "compose events":
        jacobian = jacobian[:-1]  # the last share follows from the others
    if name == "corr":
        lower = lamina.ones(4, 4, dtype=lamina.bool).tril(-1).flatten()
        jacobian = jacobian[lower]
    assert own.sum().item() == pytest.approx(
        lamina.linalg.slogdet(jacobian).logabsdet.item(), abs=1e-9
    )


@pytest.mark.parametrize("name", TRANSFORMS)
def test_cached_transforms(name):
    t, shape = TRANSFORMS[name]
    cached = t.with_cache()
    x = lamina.rand(shape, dtype=lamina.float64) + 0.1
    y = cached(x)
    if name != "identity":
        assert cached.inv(y) is x and cached(x) is y
    assert t.with_cache(0) is t or name == "log"
    assert pickle.loads(pickle.dumps(t)).bijective


def test_transforms_that_lose_something():
    x = f64([[-0.3, 0.5], [0.1, -2.0]])
    assert D.AbsTransform()(x).tolist() == [[0.3, 0.5], [0.1, 2.0]]
    softmax = D.SoftmaxTransform()
    assert lamina.allclose(softmax(softmax.inv(softmax(x))), softmax(x))
    lower = D.LowerCholeskyTransform()
    assert C.lower_cholesky.check(lower(x)) and lamina.allclose(lower.inv(lower(x)), x.tril())
    definite = D.PositiveDefiniteTransform()
    assert C.positive_definite.check(definite(x))
    assert lamina.allclose(definite.inv(definite(x)), x.tril())
    for t in (softmax, lower, definite, D.AbsTransform()):
        assert not t.bijective
        with pytest.raises(NotImplementedError):
            t.log_abs_det_jacobian(x, t(x))
    with pytest.raises(NotImplementedError):
        _ = D.AbsTransform().sign


def test_equal_transforms():
    assert D.ExpTransform() == D.ExpTransform() and D.ExpTransform() != D.TanhTransform()
    assert D.AffineTransform(0, 1) == D.AffineTransform(0, 1) != D.AffineTransform(0, 2)
    assert D.ComposeTransform([D.ExpTransform()]) == D.ComposeTransform([D.ExpTransform()])
    assert D.ExpTransform().inv == D.ExpTransform().inv and hash(D.ExpTransform())
    assert D.PowerTransform(TWO) == D.PowerTransform(TWO) != D.PowerTransform(HALF)
    p, q = D.LogNormal(HALF, TWO), D.LogNormal(ONE, ONE)
    assert D.kl_divergence(p, q) == D.kl_divergence(p.base_dist, q.base_dist)


MEMBERS = (
    (C.boolean, [0.0, 1.0, 0.5, NAN], [1, 1, 0, 0]),
    (C.nonnegative_integer, [0.0, 2.0, -1.0, 0.5], [1, 1, 0, 0]),
    (C.positive_integer, [0.0, 2.0], [0, 1]),
    (C.integer_interval(1, 3), [0.0, 1.0, 3.0, 1.5], [0, 1, 1, 0]),
    (C.real, [0.0, INF, NAN], [1, 1, 0]),
    (C.positive, [0.0, 1e-9, NAN], [0, 1, 0]),
    (C.nonnegative, [0.0, -1e-9], [1, 0]),
    (C.less_than(1.0), [0.0, 1.0], [1, 0]),
    (C.unit_interval, [0.0, 1.0, 1.1], [1, 1, 0]),
    (C.half_open_interval(0.0, 1.0), [0.0, 1.0], [1, 0]),
    (C.simplex, [[0.5, 0.5], [0.5, 0.6], [1.5, -0.5]], [1, 0, 0]),
    (C.one_hot, [[0.0, 1.0], [1.0, 1.0], [0.5, 0.5]], [1, 0, 0]),
    (C.multinomial(3), [[1.0, 2.0], [1.0, 3.0], [-1.0, 1.0]], [1, 0, 0]),
    (C.real_vector, [[1.0, 2.0], [NAN, 0.0]], [1, 0]),
    (C.lower_triangular, [[[1.0, 0.0], [2.0, -1.0]], [[1.0, 1.0], [0.0, 1.0]]], [1, 0]),
    (C.lower_cholesky, [[[1.0, 0.0], [2.0, -1.0]], [[1.0, 0.0], [0.0, 1.0]]], [0, 1]),
    (C.corr_cholesky, [[[1.0, 0.0], [0.6, 0.8]], [[1.0, 0.0], [0.6, 0.9]]], [1, 0]),
    (C.positive_definite, [[[1.0, 0.5], [0.5, 1.0]], [[1.0, 2.0], [2.0, 1.0]]], [1, 0]),
    (C.positive_semidefinite, [[[1.0, 0.0], [0.0, 0.0]], [[1.0, 2.0], [2.0, 1.0]]], [1, 0]),
    (C.symmetric, [[[1.0, 2.0], [2.0, 0.0]], [[1.0, 2.0], [0.0, 1.0]]], [1, 0]),
    (C.stack([C.positive, C.real], -1), [[1.0, -1.0], [-1.0, 1.0]], [[1, 1], [0, 1]]),
    (C.cat([C.positive, C.real], -1, [1, 1]), [[1.0, -1.0], [-1.0, 1.0]], [[1, 1], [0, 1]]),
)


@pytest.mark.parametrize("case", MEMBERS, ids=lambda c: repr(c[0]))
def test_constraints(case):
    constraint, values, expected = case
    assert constraint.check(f64(values)).long().tolist() == expected
    x = lamina.randn(3, 3, dtype=lamina.float64)
    for registry in (D.biject_to, D.transform_to):
        if type(constraint) in registry._registry and not isinstance(constraint, C._Parts):
            t = registry(constraint)
            assert constraint.check(t(x)).all()
            assert registry is D.transform_to or t.bijective


def test_dependent_constraints():
    assert C.is_dependent(D.Uniform.support) and not C.is_dependent(D.Normal.support)
    assert not C.is_dependent(D.Uniform(0.0, 1.0).support)
    assert D.Uniform.support.event_dim == 0 and not D.Uniform.support.is_discrete
    with pytest.raises(ValueError, match="dependent constraint"):
        C.dependent.check(ONE)
    assert repr(C.interval(0, 1)) == "Interval(lower_bound=0, upper_bound=1)"
    with pytest.raises(NotImplementedError, match="Cannot transform _Boolean constraints"):
        D.biject_to(C.boolean)


def test_triangles():
    matrix = lamina.arange(16.0).reshape(4, 4)
    for diag in range(-4, 4):
        vector = utils.tril_matrix_to_vec(matrix, diag)
        assert vector.numel() == int(lamina.ones(4, 4).tril(diag).sum())
        if diag > -4:
            assert lamina.equal(utils.vec_to_tril_matrix(vector, diag), matrix.tril(diag))
