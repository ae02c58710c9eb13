"""grad, vjp, jvp, Jacobians and Hessians: values, forms, levels, and what they leave behind."""

import itertools
import math

import pytest
from lamina.func import (
    functional_call,
    functionalize,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    rearrange,
    stack_module_state,
    vjp,
    vmap,
)

import lamina

F64 = lamina.float64


def numbers(*shape, seed=0):
    g = lamina.Generator()
    g.manual_seed(seed)
    return lamina.rand(shape, generator=g, dtype=F64) * 2 - 1


def same(a, b):
    assert a.dtype == b.dtype and a.shape == b.shape
    assert lamina.allclose(a, b, rtol=1e-9, atol=1e-11, equal_nan=True)


def scalar(v):
    return lamina.tensor(v, dtype=F64)


# ---- forms --------------------------------------------------------------------------------------


def test_grad_of_trees_and_numbers_of_arguments():
    def f(d, y):
        return (d["a"] * y * d["b"][0]).sum()

    d, y = {"a": numbers(3), "b": [numbers(3, seed=1)]}, numbers(3, seed=2)
    got = grad(f)(d, y)
    same(got["a"], y * d["b"][0])
    same(got["b"][0], y * d["a"])
    both = grad(f, argnums=(1, 0))(d, y)
    same(both[0], d["a"] * d["b"][0])
    same(both[1]["a"], got["a"])
    same(grad(f, argnums=-1)(d, y), both[0])


def test_values_and_extras():
    x = numbers(3)
    g, v = grad_and_value(lambda t: (t**2).sum())(x)
    same(g, 2 * x)
    same(v, (x**2).sum())
    assert not g.requires_grad and not v.requires_grad
    g, extra = grad(lambda t: ((t**2).sum(), t * 3), has_aux=True)(x)
    same(extra, x * 3)
    assert not extra.requires_grad
    g, (v, extra) = grad_and_value(lambda t: ((t**2).sum(), t * 3), has_aux=True)(x)
    same(v, (x**2).sum())


def test_what_does_not_depend_on_the_argument():
    x = numbers(3)
    same(grad(lambda t: scalar(2.0))(x), lamina.zeros(3, dtype=F64))
    same(jacrev(lambda t: lamina.ones(2, dtype=F64))(x), lamina.zeros(2, 3, dtype=F64))
    same(jacfwd(lambda t: lamina.ones(2, dtype=F64))(x), lamina.zeros(2, 3, dtype=F64))
    same(jvp(lambda t: lamina.ones(2, dtype=F64), (x,), (x,))[1], lamina.zeros(2, dtype=F64))


@pytest.mark.parametrize("jacobian", [jacrev, jacfwd], ids=["jacrev", "jacfwd"])
def test_jacobians(jacobian):
    x, y = numbers(2, 3), numbers(3)

    def f(a, b):
        return {"p": a * b, "q": (a @ b).sin()}

    got = jacobian(f, argnums=(0, 1))(x, y)
    assert [t.shape for t in got["p"]] == [(2, 3, 2, 3), (2, 3, 3)]
    assert [t.shape for t in got["q"]] == [(2, 2, 3), (2, 3)]
    want = lamina.autograd.functional.jacobian(lambda a, b: ((a * b), (a @ b).sin()), (x, y))
    for k, name in enumerate("pq"):
        for i in range(2):
            same(got[name][i], want[k][i])
    value, extra = jacobian(lambda a: (a.sin(), a), has_aux=True)(y)
    same(value, lamina.diag(y.cos()))
    same(extra, y)
    assert jacobian(lambda a: a)(lamina.ones(0)).shape == (0, 0)


@pytest.mark.parametrize("size", [1, 2, 10])
def test_jacrev_in_chunks(size):
    x = numbers(5)
    same(jacrev(lambda t: t.cumprod(0), chunk_size=size)(x), jacrev(lambda t: t.cumprod(0))(x))


def test_vjp_can_be_called_again():
    x, v = numbers(3), numbers(3, seed=1)
    out, pull = vjp(lamina.sin, x)
    for _ in range(2):
        same(pull(v)[0], v * x.cos())
    same(out, x.sin())
    (a, b), pull = vjp(lambda s, t: (s * t, s.sum()), x, v)
    got = pull((v, scalar(2.0)))
    same(got[0], v * v + 2)
    same(got[1], v * x)
    out, pull, extra = vjp(lambda t: (t * 2, t), x, has_aux=True)
    same(extra, x)


def test_linearize_runs_the_function_once():
    calls = []

    def f(s, t):
        calls.append(1)
        return {"a": s.sin() * t, "b": t.sum()}

    x, y, u, v = (numbers(3, seed=i) for i in range(4))
    out, push = linearize(f, x, y)
    for _ in range(2):
        got = push(u, v)
        same(got["a"], u * x.cos() * y + x.sin() * v)
        same(got["b"], v.sum())
    same(out["a"], x.sin() * y)
    assert len(calls) == 1
    same(
        vmap(push)(lamina.stack([u, v]), lamina.stack([v, u]))["b"],
        lamina.stack([v.sum(), u.sum()]),
    )
    with pytest.raises(RuntimeError, match="tangent"):
        push(u)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: grad(lambda t: t)(x), RuntimeError, "scalar tensor"),
        (lambda x: grad(lambda t: 3)(x), RuntimeError, "single tensor"),
        (lambda x: grad(lambda t: t.sum())(3.0), ValueError, "must be Tensor"),
        (lambda x: grad(lambda t: t.sum())(x.long()), RuntimeError, "floating point"),
        (lambda x: grad(lambda t: t.sum(), argnums=3)(x), RuntimeError, "argnum"),
        (lambda x: grad(lambda t: t.sum(), argnums="a")(x), RuntimeError, "argnums"),
        (lambda x: grad(lambda t: t.sum(), argnums=(0, 0))(x), RuntimeError, "unique"),
        (lambda x: grad(lambda t: t.sum(), argnums=())(x), RuntimeError, "non-empty"),
        (lambda x: grad(lambda t: t.sum(), has_aux=True)(x), RuntimeError, "has_aux"),
        (lambda x: vjp(lambda t: 3, x), RuntimeError, "only return|only tensors|unsupported type"),
        (lambda x: vjp(lambda t: t, x)[1](x[:1]), RuntimeError, "shape"),
        (lambda x: vjp(lambda t: (t, t), x)[1](x), RuntimeError, "structure"),
        (lambda x: jvp(lambda t: t, x, x), RuntimeError, "tuple"),
        (lambda x: jvp(lambda t: t, (x,), (x, x)), RuntimeError, "structure"),
        (lambda x: jvp(lambda t: t, (x,), (x[:1],)), RuntimeError, "size"),
        (lambda x: jvp(lambda t: 3, (x,), (x,)), RuntimeError, "unsupported type"),
        (lambda x: jvp(lambda t: t, (3,), (3,)), RuntimeError, "Tensors"),
        (lambda x: jvp(lambda t: t, (), ()), RuntimeError, "at least one"),
        (lambda x: jacrev(lambda t: t, chunk_size=0)(x), ValueError, "chunk_size"),
        (lambda x: functionalize(lambda t: t, remove="x"), RuntimeError, "remove"),
    ],
)
def test_what_raises(call, error, words):
    with pytest.raises(error, match=words):
        call(numbers(3))


def test_errors_leave_no_level_behind():
    with pytest.raises(ZeroDivisionError):
        jvp(lambda t: 1 // 0, (numbers(1),), (numbers(1),))
    with pytest.raises(ZeroDivisionError):
        grad(lambda t: 1 // 0)(numbers(1))
    assert lamina._C._current_dual_level() == -1 and lamina._C._vmap_levels() == []


# ---- nesting ------------------------------------------------------------------------------------


def polynomial(x, y):
    return x**3 * y**2 + lamina.sin(x * y) + x.exp() * y


def second(f, first, then):
    """The second derivative of f(x) by two of the ways to take one."""
    return then(first(f))


WAYS = {
    "grad": grad,
    "jvp": lambda f: lambda x: jvp(f, (x,), (lamina.ones_like(x),))[1],
    "vjp": lambda f: lambda x: vjp(f, x)[1](lamina.ones_like(x))[0],
    "jacrev": jacrev,
    "jacfwd": jacfwd,
    "linearize": lambda f: lambda x: linearize(f, x)[1](lamina.ones_like(x)),
    "grad of vmap": lambda f: lambda x: grad(lambda t: vmap(f)(t[None]).sum())(x),
    "vmap of grad": lambda f: lambda x: vmap(grad(f))(x[None])[0],
    "vmap of jvp": lambda f: lambda x: vmap(lambda t: jvp(f, (t,), (lamina.ones_like(t),))[1])(x[None])[0],
    "vmap of jacfwd": lambda f: lambda x: vmap(jacfwd(f))(x[None])[0],
}  # fmt: skip


@pytest.mark.parametrize(("outer", "inner"), itertools.product(WAYS, WAYS))
def test_second_derivatives_in_every_nesting(outer, inner):
    x, c = 0.7, scalar(1.3)

    def f(t):
        return polynomial(t, c)

    want = 6 * x * 1.3**2 - 1.3**2 * math.sin(1.3 * x) + math.exp(x) * 1.3
    got = WAYS[outer](WAYS[inner](f))(scalar(x))
    assert got.item() == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize(
    "ways", itertools.product(["grad", "jvp", "vmap of grad", "jacfwd"], repeat=3)
)
def test_third_derivatives(ways):
    f = lambda t: t.sin() * t  # noqa: E731
    for name in ways:
        f = WAYS[name](f)
    x = 0.4
    assert f(scalar(x)).item() == pytest.approx(-3 * math.sin(x) - x * math.cos(x), rel=1e-9)


@pytest.mark.parametrize(
    ("outer", "inner"),
    itertools.product(["grad", "jvp", "vmap of grad", "jacrev", "jacfwd"], repeat=2),
)
def test_perturbations_are_not_confused(outer, inner):
    # d/dx [x * d/dy (x + y)] at any y is 1, and d/dx [x * d/dy (x * y)] is 2 x.
    d, e = WAYS[outer], WAYS[inner]
    one = scalar(1.0)
    assert d(lambda x: x * e(lambda y: x + y)(one))(scalar(3.0)).item() == 1
    assert d(lambda x: x * e(lambda y: x * y)(one))(scalar(3.0)).item() == 6
    # The same tensor in both places.
    assert d(lambda x: x * e(lambda y: x * y)(x))(scalar(3.0)).item() == 6
    assert d(lambda x: e(lambda y: x)(x))(scalar(3.0)).item() == 0


def test_hessians():
    x, y = numbers(3), numbers(2, seed=1)

    def f(a, b):
        return (a.sin().sum() * b).exp().sum() + (a * a[0]).sum()

    got = hessian(f, argnums=(0, 1))(x, y)
    want = lamina.autograd.functional.hessian(f, (x, y))
    for row, right in zip(got, want, strict=True):
        for g, w in zip(row, right, strict=True):
            same(g, w)
    for outer, inner in itertools.product((jacrev, jacfwd), repeat=2):
        same(outer(inner(lambda a: f(a, y)))(x), want[0][0])
    many = numbers(4, 3, seed=2)
    same(
        vmap(hessian(lambda a: f(a, y)))(many),
        lamina.stack([hessian(lambda a: f(a, y))(row) for row in many]),
    )


def test_gradients_of_samples():
    weight, bias = numbers(4, 3), numbers(3)
    x, target = numbers(5, 4, seed=1), lamina.tensor([0, 2, 1, 1, 0])

    def loss(p, row, label):
        return lamina.nn.functional.cross_entropy((row @ p[0] + p[1])[None], label[None])

    got = vmap(grad(loss), in_dims=(None, 0, 0))((weight, bias), x, target)
    for i in range(5):
        want = grad(loss)((weight, bias), x[i], target[i])
        same(got[0][i], want[0])
        same(got[1][i], want[1])


def test_writes_inside_are_differentiated():
    def f(x):
        y = x.clone()
        y[1] = x[0] * y[2].clone()
        y.mul_(2)
        return y

    x = numbers(3)
    want = lamina.tensor([[2.0, 0, 0], [0, 0, 0], [0, 0, 2.0]], dtype=F64)
    want[1, 0], want[1, 2] = 2 * x[2], 2 * x[0]
    same(jacrev(f)(x), want)
    same(jacfwd(f)(x), want)
    same(vmap(jacrev(f))(x[None])[0], want)


# ---- what is outside ----------------------------------------------------------------------------


def test_histories_of_the_caller_stay():
    c = numbers(3).requires_grad_()
    x = numbers(3, seed=1)
    g = grad(lambda t: (t * t * c).sum())(x)
    assert g.requires_grad
    same(lamina.autograd.grad(g.sum(), c)[0], 2 * x)
    # None of them: nothing is kept.
    assert not grad(lambda t: (t * t).sum())(x).requires_grad
    y = x.clone().requires_grad_()
    g = grad(lambda t: (t**3).sum())(y)
    same(lamina.autograd.grad(g.sum(), y)[0], 6 * x)
    assert y.grad is None and c.grad is None
    out, pull = vjp(lambda t: t * c, x)
    assert out.requires_grad and pull(x)[0].requires_grad
    per_sample = vmap(grad(lambda t: (t * t * c).sum()))(lamina.stack([x, x]))
    same(lamina.autograd.grad(per_sample.sum(), c)[0], 4 * x)


def test_grad_mode_of_the_caller_and_inside():
    c, x = numbers(3).requires_grad_(), numbers(3, seed=1)
    with lamina.no_grad():
        g = grad(lambda t: (t * t * c).sum())(x)
    assert not g.requires_grad
    same(g, (2 * x * c).detach())

    def f(t):
        with lamina.no_grad():
            kept = t * 2
        return (t * kept).sum()

    same(grad(f)(x), 2 * x)
    same(grad(lambda t: (t * t.detach()).sum())(x), x)


def test_nothing_is_left_of_the_graph():
    import gc
    import weakref

    kept = []

    def f(t):
        y = t * 2
        kept.append(weakref.ref(y))
        return (y * y).sum()

    g = grad(f)(numbers(3))
    gc.collect()
    assert kept[0]() is None and g.grad_fn is None


# ---- batched gradients --------------------------------------------------------------------------


def test_is_grads_batched():
    w = numbers(3).requires_grad_()
    y = w.sin() * w[0]
    v = numbers(4, 3, seed=1)
    want = lamina.stack([lamina.autograd.grad(y, w, u, retain_graph=True)[0] for u in v])
    same(lamina.autograd.grad(y, w, v, retain_graph=True, is_grads_batched=True)[0], want)
    (g,) = lamina.autograd.grad(y, w, v, create_graph=True, is_grads_batched=True)
    assert g.requires_grad
    lamina.autograd.grad(y, w, v, is_grads_batched=True)
    with pytest.raises(RuntimeError):
        lamina.autograd.grad(y, w, v, is_grads_batched=True)


def test_is_grads_batched_where_a_node_has_to_go_sample_by_sample():
    # The gradient of the source is picked by the mask: its size depends on values.
    source = numbers(4).requires_grad_()
    mask = lamina.tensor([True, False, True, True])
    y = lamina.zeros(4, dtype=F64).masked_scatter(mask, source * 2)
    v = numbers(5, 4, seed=1)
    want = lamina.stack([lamina.autograd.grad(y, source, u, retain_graph=True)[0] for u in v])
    same(lamina.autograd.grad(y, source, v, is_grads_batched=True)[0], want)


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_functional_jacobian_at_once(strategy):
    x, y = numbers(2, 2), numbers(2)

    def f(a, b):
        return (a @ b).sin(), (a * b).sum()

    got = lamina.autograd.functional.jacobian(f, (x, y), vectorize=True, strategy=strategy)
    want = lamina.autograd.functional.jacobian(f, (x, y))
    for g, w in zip(got, want, strict=True):
        for a, b in zip(g, w, strict=True):
            same(a, b)
    h = lamina.autograd.functional.hessian(
        lambda t: t.sin().prod(), y, vectorize=True, outer_jacobian_strategy=strategy
    )
    same(h, lamina.autograd.functional.hessian(lambda t: t.sin().prod(), y))


# ---- modules and the rest -----------------------------------------------------------------------


def test_ensembles_of_modules():
    models = [lamina.nn.Linear(3, 2).double() for _ in range(4)]
    parameters, buffers = stack_module_state(models)
    x = numbers(5, 3)

    def call(p, b, t):
        return functional_call(models[0], (p, b), (t,))

    got = vmap(call, in_dims=(0, 0, None))(parameters, buffers, x)
    same(got, lamina.stack([m(x) for m in models]).detach())
    got = vmap(grad(lambda p: call(p, {}, x).sin().sum()))(parameters)
    for i, m in enumerate(models):
        want = lamina.autograd.grad(m(x).sin().sum(), m.weight)[0]
        same(got["weight"][i].detach(), want)


def test_functionalize_writes_as_the_function_does():
    x = numbers(3)
    before = x.clone()
    out = functionalize(lambda t: t.add_(1))(x)
    same(out, before + 1)
    same(x, before + 1)


def test_rearrange():
    x = numbers(2, 3, 4)
    same(rearrange(x, "a b c -> c (b a)"), x.permute(2, 1, 0).reshape(4, 6))
    same(rearrange(x, "a b (c d) -> a (b c) d", d=2), x.reshape(2, 6, 2))
    same(rearrange(x, "... c -> c ..."), x.permute(2, 0, 1))
    same(rearrange(x, "a b c -> a 1 (b c)"), x.reshape(2, 1, 12))
    same(vmap(lambda t: rearrange(t, "b c -> c b"))(x), x.transpose(1, 2))
    for pattern, sizes in [("a b -> a b", {}), ("a b c -> a b", {}), ("a a b -> a b", {}), ("a b (c d) -> a b c d", {}), ("a b c", {}), ("a (b c -> a", {}), ("a b c -> a b c", {"z": 2}), ("a b (c d) -> a b c d", {"c": 3})]:  # fmt: skip
        with pytest.raises(ValueError, match="rearrange"):
            rearrange(x, pattern, **sizes)


def test_checkpoints_inside():
    from lamina.utils.checkpoint import checkpoint

    def f(t):
        return (t.sin() * t * t[0]).sum()

    def kept(t):
        return checkpoint(f, t, use_reentrant=False)

    x = numbers(3, 4)
    same(grad(kept)(x[0]), grad(f)(x[0]))
    same(vmap(grad(kept))(x), vmap(grad(f))(x))
    same(grad(lambda t: vmap(kept)(t).sum())(x), vmap(grad(f))(x))


def test_jvp_strict():
    with pytest.raises(RuntimeError, match="independent"):
        jvp(lambda t: lamina.ones(2), (numbers(2),), (numbers(2),), strict=True)
    same(
        jvp(lamina.sin, (numbers(2),), (numbers(2),), strict=True)[1], numbers(2).cos() * numbers(2)
    )
