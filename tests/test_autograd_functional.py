"""autograd.functional and gradcheck: forms of results, strictness, errors, and that they find what is wrong."""

import warnings

import pytest
from lamina.autograd.gradcheck import (
    GradcheckError,
    get_analytical_jacobian,
    get_numerical_jacobian,
)

import lamina
from lamina.autograd import functional as F
from lamina.autograd import gradcheck, gradgradcheck

F64, C128 = lamina.float64, lamina.complex128


def v(*values):
    return lamina.tensor(values, dtype=F64)


X, Y = v(0.5, -1.0, 2.0), v(1.0, 2.0)


def scalar(x):
    return (x**3).sum()


def pair(x, y):
    return x.sum() * y, x * x


# ---- functional -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [{}, {"vectorize": True}, {"vectorize": True, "strategy": "forward-mode"}])  # fmt: skip
def test_jacobian_forms(how):
    assert lamina.equal(F.jacobian(lamina.exp, X, **how), lamina.eye(3, dtype=F64) * X.exp())
    (by_x,) = F.jacobian(lambda x: (x * x).sum(), (X,), **how)
    assert by_x.tolist() == (2 * X).tolist()
    (a, b), (c, d) = F.jacobian(pair, (X, Y), **how)
    assert a.tolist() == [[1.0] * 3, [2.0] * 3] and b.shape == (2, 2)
    assert c.tolist() == (lamina.eye(3, dtype=F64) * 2 * X).tolist()
    assert d.tolist() == [[0.0, 0.0]] * 3
    matrix = lamina.ones(2, 3, dtype=F64)
    assert F.jacobian(lambda m: m.t(), matrix, **how).shape == (3, 2, 2, 3)
    assert F.jacobian(lambda m: m.sum(), lamina.ones(0, dtype=F64), **how).shape == (0,)
    assert F.jacobian(lambda m: lamina.ones(2, dtype=F64), X, **how).tolist() == [[0.0] * 3] * 2


@pytest.mark.parametrize("how", [{}, {"vectorize": True}, {"vectorize": True, "outer_jacobian_strategy": "forward-mode"}])  # fmt: skip
def test_hessian(how):
    assert lamina.equal(F.hessian(scalar, X, **how), lamina.eye(3, dtype=F64) * 6 * X)
    (a, b), (c, d) = F.hessian(lambda x, y: x.sum() * (y * y).sum(), (X, Y), **how)
    assert a.tolist() == [[0.0] * 3] * 3 and b.tolist() == [[2.0, 4.0]] * 3
    assert c.tolist() == b.t().tolist() and d.tolist() == [[3.0, 0.0], [0.0, 3.0]]
    with pytest.raises(RuntimeError, match="single element"):
        F.hessian(lamina.exp, X, **how)


def test_products():
    u = v(1.0, 2.0, 3.0)
    for got, want in (
        (F.vjp(lamina.exp, X, u), (X.exp(), u * X.exp())),
        (F.jvp(lamina.exp, X, u), (X.exp(), u * X.exp())),
        (F.vhp(scalar, X, u), (scalar(X), 6 * X * u)),
        (F.hvp(scalar, X, u), (scalar(X), 6 * X * u)),
        (F.vjp(scalar, X), (scalar(X), 3 * X * X)),
    ):
        assert all(
            lamina.allclose(a, b) and not a.requires_grad for a, b in zip(got, want, strict=True)
        )
    outputs, found = F.jvp(pair, (X, Y), (u, Y))
    assert isinstance(outputs, tuple) and isinstance(found, tuple)
    assert found[1].tolist() == (2 * X * u).tolist()
    x = X.clone().requires_grad_()
    for product in (F.vjp, F.jvp, F.vhp, F.hvp):
        f = lamina.exp if product in (F.vjp, F.jvp) else scalar
        _, found = product(f, x, u, create_graph=True)
        (g,) = lamina.autograd.grad(found.sum(), x)
        want = u * X.exp() if f is lamina.exp else 6 * u
        assert lamina.allclose(g, want)
    (g,) = lamina.autograd.grad(F.jacobian(lamina.sin, x, create_graph=True).sum(), x)
    assert lamina.allclose(g, -X.sin())


def test_strict():
    def constant(x):
        return lamina.ones(2, dtype=F64)

    for call in (
        lambda: F.jacobian(constant, X, strict=True),
        lambda: F.vjp(constant, X, Y, strict=True),
        lambda: F.jvp(constant, X, X, strict=True),
    ):
        with pytest.raises(RuntimeError, match="does not require gradients"):
            call()
    with pytest.raises(RuntimeError, match="is independent of input 1"):
        F.jacobian(lambda x, y: x * 2, (X, Y), strict=True)
    with pytest.raises(RuntimeError, match="independent of the input"):
        F.hessian(lambda x: x.sum(), X, strict=True)
    with pytest.raises(RuntimeError, match="independent"):
        F.jacobian(lambda x: x * 2, X, strict=True, create_graph=True)


def test_functional_errors():
    with pytest.raises(TypeError, match="must be either a Tensor or a tuple of Tensors"):
        F.jacobian(lamina.exp, 3)
    with pytest.raises(TypeError, match="at index 1"):
        F.jacobian(lamina.exp, (X, 3))
    with pytest.raises(TypeError, match="outputs of the user-provided function"):
        F.jacobian(lambda x: 3, X)
    with pytest.raises(RuntimeError, match="v has invalid size"):
        F.vjp(lamina.exp, X, Y)
    with pytest.raises(RuntimeError, match="invalid length"):
        F.hvp(lambda x, y: scalar(x), (X, Y), (X,))
    with pytest.raises(RuntimeError, match="can only be None"):
        F.jvp(lamina.exp, X)
    with pytest.raises(AssertionError, match="strategy"):
        F.jacobian(lamina.exp, X, strategy="sideways")
    with pytest.raises(NotImplementedError, match="vectorize=True"):
        F.jacobian(lamina.exp, X, strategy="forward-mode")
    with pytest.raises(NotImplementedError, match="create_graph"):
        F.jacobian(lamina.exp, X, strategy="forward-mode", vectorize=True, create_graph=True)
    with pytest.raises(RuntimeError, match="not supported together"):
        F.jacobian(lamina.exp, X, strict=True, vectorize=True)


# ---- gradcheck ------------------------------------------------------------------------------------------------------


class Wrong(lamina.autograd.Function):
    """The double, with a chosen error."""

    fault = ""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        if Wrong.fault == "value":
            return g * 3
        if Wrong.fault == "constant":
            return lamina.full_like(g, 2.0)
        if Wrong.fault == "random":
            return g * (2 + lamina.rand((), dtype=F64) * 1e-7)
        return g * 2

    @staticmethod
    def jvp(ctx, t):
        return t * 3 if Wrong.fault == "jvp" else t * 2


@pytest.fixture
def fault():
    yield lambda name: setattr(Wrong, "fault", name)
    Wrong.fault = ""


@pytest.mark.parametrize("dtype", [F64, C128])
@pytest.mark.parametrize("fast", [False, True])
def test_gradcheck_finds_faults(fault, dtype, fast):
    x = lamina.randn(3, dtype=dtype).requires_grad_()  # fmt: skip
    assert gradcheck(Wrong.apply, (x,), check_forward_ad=True, fast_mode=fast)
    fault("value")
    with pytest.raises(
        GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"
    ):
        gradcheck(Wrong.apply, x, fast_mode=fast)
    assert gradcheck(Wrong.apply, x, fast_mode=fast, raise_exception=False) is False
    assert gradcheck(Wrong.apply, x, check_forward_ad=True, check_backward_ad=False)
    fault("jvp")
    assert gradcheck(Wrong.apply, x, fast_mode=fast)
    with pytest.raises(GradcheckError, match="computed with forward mode mismatch"):
        gradcheck(Wrong.apply, x, check_forward_ad=True, fast_mode=fast)
    if not fast:
        fault("random")
        with pytest.raises(GradcheckError, match="not reentrant"):
            gradcheck(Wrong.apply, x)
        assert gradcheck(Wrong.apply, x, nondet_tol=1e-5)


def test_gradcheck_of_functions_that_are_not_holomorphic():
    z = lamina.randn(4, dtype=C128).requires_grad_()
    for f in (lamina.abs, lamina.angle, lambda t: t.conj() * t * t, lamina.real, lamina.sgn):
        assert gradcheck(f, z, check_forward_ad=True)
        assert gradgradcheck(f, z, check_fwd_over_rev=True)


def test_gradcheck_arguments_and_errors():
    x = X.clone().requires_grad_()
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(lamina.exp, X)
    with pytest.raises(RuntimeError, match="stride 0"):
        gradcheck(lamina.exp, v(1.0).expand(3).requires_grad_())
    with pytest.raises(AssertionError):
        gradcheck(lamina.exp, x, check_backward_ad=False)
    with pytest.raises(AssertionError):
        gradgradcheck(lamina.exp, x, check_rev_over_rev=False)
    with pytest.raises(GradcheckError, match="expected to be zero"):
        gradcheck(lambda t: t.detach(), x)
    assert gradcheck(lambda t: (t.detach() * 0, 3), x)
    with pytest.warns(UserWarning, match="not a double precision"):
        gradcheck(lambda t: t * 2, lamina.ones(1, requires_grad=True), eps=1e-2, atol=1e-2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert gradcheck(lambda t, n: (t * n, t.sum(), n), (x, 3), check_batched_grad=True)
    assert gradcheck(lambda a, b: lamina.mm(a, b), (lamina.rand(2, 3, dtype=F64).requires_grad_(), lamina.rand(3, 2, dtype=F64)))  # fmt: skip
    assert x.tolist() == X.tolist()  # the inputs have their values again
    assert gradgradcheck(lambda t: t.exp() * t, x, gen_non_contig_grad_outputs=True, check_fwd_over_rev=True)  # fmt: skip
    assert gradgradcheck(lamina.exp, x, v(1.0, 2.0, 3.0).requires_grad_())
    assert lamina.autograd.gradcheck is gradcheck


def test_jacobians_as_matrices():
    x = X.clone().requires_grad_()
    (j,) = get_numerical_jacobian(lambda inputs: inputs[0] ** 2, (x,), eps=1e-6)
    assert lamina.allclose(j, lamina.eye(3, dtype=F64) * 2 * X)
    (j,), reentrant, sizes, types = get_analytical_jacobian((x,), x**2)
    assert lamina.allclose(j, lamina.eye(3, dtype=F64) * 2 * X) and reentrant and sizes and types
    z = lamina.randn(3, dtype=C128).requires_grad_()
    (a,) = get_numerical_jacobian(lambda inputs: inputs[0] ** 2, (z,), eps=1e-6)
    (b,), *_ = get_analytical_jacobian((z,), z**2)
    assert lamina.allclose(a, b, atol=1e-7)
    with pytest.raises(ValueError, match="grad_out"):
        get_numerical_jacobian(lambda i: i[0], (x,), grad_out=2.0)
