"""Every differentiable operator, at every order: reverse, forward, each over the other, and finite differences.

A function f and its operands are seen as phi(x) = Re <v, f(x)> for a fixed direction v of the result. First order:
the slope of phi along a direction u, measured, by reverse mode and by forward mode. Second order: the change of the
gradient of phi along u (the Hessian times u), measured, and in the four nestings.
"""

import derivative_cases
import lamina.autograd.forward_ad as fw
import pytest
from derivative_cases import C128, F64, cases, differentiable_names, operators

import lamina

ORDERS = {}  # filled once: name of the type -> cases


def all_cases(dtype):
    if dtype not in ORDERS:
        ORDERS[dtype] = list(cases(dtype))
    return ORDERS[dtype]


def seeded(seed):
    g = lamina.Generator()
    g.manual_seed(seed)
    return g


def direction(t, seed):
    g = seeded(seed)
    u = lamina.rand(t.shape, generator=g, dtype=F64) * 2 - 1
    if t.is_complex():
        u = lamina.complex(u, lamina.rand(t.shape, generator=g, dtype=F64) * 2 - 1)
    return u


def differentiable(result):
    """The results that have derivatives, made one vector."""
    if isinstance(result, lamina.Tensor):
        result = (result,)
    return [r for r in result if r.is_floating_point() or r.is_complex()][:1]


def dot(a, b):
    """Re <a, b>, a fixed."""
    return (a.conj() * b).real.sum() if a.is_complex() or b.is_complex() else (a * b).sum()


def apply(case, operands):
    return differentiable(case(*operands))[0]


def leaves(operands):
    return [x.detach().clone().requires_grad_() for x in operands]


def gradients(value, inputs, create_graph=False):
    if not value.requires_grad:
        return [lamina.zeros_like(x) for x in inputs]
    found = lamina.autograd.grad(
        value, inputs, create_graph=create_graph, allow_unused=True, retain_graph=True
    )
    return [lamina.zeros_like(x) if g is None else g for g, x in zip(found, inputs, strict=True)]


def reverse(case, v, operands, create_graph=False):
    xs = leaves(operands) if not create_graph else operands
    return gradients(dot(v, apply(case, xs)), xs, create_graph)


def tangent_of(t):
    value = fw.unpack_dual(t).tangent
    return lamina.zeros_like(t) if value is None else value


def forward(case, operands, us):
    with fw.dual_level():
        duals = [fw.make_dual(x, u) for x, u in zip(operands, us, strict=True)]
        return tangent_of(apply(case, duals))


def moved(operands, us, h):
    return [x + h * u for x, u in zip(operands, us, strict=True)]


def close(a, b, tolerance):
    scale = max(1.0, b.abs().max().item() if b.numel() else 0.0)
    return a.numel() == 0 or (a - b).abs().max().item() <= tolerance * scale


def check(case, dtype):
    """Names of what differs."""
    operands = case.operands
    us = [direction(x, 100 + i) for i, x in enumerate(operands)]
    result = apply(case, operands)
    v = direction(result, 7)
    wrong = []

    def compare(what, got, want, tolerance):
        for i, (g, w) in enumerate(zip(got, want, strict=True)):
            if g.shape != w.shape or not close(g, w, tolerance):
                wrong.append(f"{what} of operand {i}: {g.tolist()} != {w.tolist()}")

    h = 1e-6
    slope = dot(v, apply(case, moved(operands, us, h)) - apply(case, moved(operands, us, -h))) / (
        2 * h
    )
    first = reverse(case, v, operands)
    compare("reverse", [sum(dot(g, u) for g, u in zip(first, us, strict=True))], [slope], 2e-6)
    jvp = forward(case, operands, us)
    assert jvp.shape == result.shape and jvp.dtype == result.dtype
    compare("forward", [dot(v, jvp)], [slope], 2e-6)

    # The gradient of phi a little to both sides.
    h = 1e-5
    plus, minus = (reverse(case, v, moved(operands, us, s)) for s in (h, -h))
    change = [(a - b) / (2 * h) for a, b in zip(plus, minus, strict=True)]

    xs = leaves(operands)
    w = v.clone().requires_grad_()
    g = gradients(dot(w, apply(case, xs)), xs, create_graph=True)
    along = sum(dot(u, gi) for u, gi in zip(us, g, strict=True))
    *rr, by_v = gradients(along, [*xs, w])
    compare("reverse over reverse", rr, change, 2e-5)
    compare("reverse over reverse by cotangent", [by_v], [jvp], 1e-9)

    with fw.dual_level():
        xs = [fw.make_dual(x, u) for x, u in zip(leaves(operands), us, strict=True)]
        g = gradients(dot(v, apply(case, xs)), xs)
        fr = [tangent_of(gi).detach() for gi in g]
    compare("forward over reverse", fr, change, 2e-5)

    xs = leaves(operands)
    rf = gradients(dot(v, forward(case, xs, us)), xs)
    compare("reverse over forward", rf, change, 2e-5)

    ws = [direction(x, 200 + i) for i, x in enumerate(operands)]
    with fw.dual_level():
        outer = [fw.make_dual(x, wi) for x, wi in zip(operands, ws, strict=True)]
        inner = forward(case, outer, us)
        ff = tangent_of(dot(v, inner))
    compare(
        "forward over forward",
        [ff],
        [sum(dot(wi, c) for wi, c in zip(ws, change, strict=True))],
        2e-5,
    )
    return wrong


@pytest.mark.parametrize("dtype", [F64, C128], ids=["float64", "complex128"])
def test_all_orders_agree(dtype):
    failures = []
    for case in all_cases(dtype):
        try:
            wrong = check(case, dtype)
        except Exception as error:
            wrong = [f"{type(error).__name__}: {error}"]
        if wrong:
            failures.append(
                f"{case.name}: {wrong[0]}" + (f" (+{len(wrong) - 1})" if wrong[1:] else "")
            )
    assert not failures, f"{len(failures)} cases\n" + "\n".join(failures)


def test_every_differentiable_operator_is_here():
    have = {c.name for d in (F64, C128) for c in all_cases(d)}
    # Moves its numbers at a fixed probability, not with a fixed seed: tests/test_variates.py asks for that.
    have.add("aten::_standard_gamma")
    missing = differentiable_names(operators()) - have
    assert not missing, f"no case in {derivative_cases.__file__} for {sorted(missing)}"


# ---- boundary points: zeros, ties, bounds, repeated values ----------------------------------------------------------

T = lamina.tensor
F = lamina.nn.functional
NAN, INF = float("nan"), float("inf")


def v(*values):
    return T(values, dtype=F64)


# name: (function of one vector, the vector, its derivative there); None: only the modes are compared.
POINTWISE_BOUNDARIES = {
    "abs": (lamina.abs, v(0.0, -0.0, -2.0), [0.0, 0.0, -1.0]),
    "sgn": (lamina.sgn, v(0.0, 3.0), [0.0, 0.0]),
    "sqrt": (lamina.sqrt, v(0.0, 4.0), [INF, 0.25]),
    "rsqrt": (lamina.rsqrt, v(0.0, 4.0), [-INF, -1 / 16]),
    "log": (lamina.log, v(0.0, 2.0), [INF, 0.5]),
    "log1p": (lamina.log1p, v(-1.0, 1.0), [INF, 0.5]),
    "reciprocal": (lamina.reciprocal, v(0.0, 2.0), [-INF, -0.25]),
    "asin": (lamina.asin, v(1.0, 0.0), [INF, 1.0]),
    "acosh": (lamina.acosh, v(1.0, 2.0), [INF, 3**-0.5]),
    "atanh": (lamina.atanh, v(1.0, 0.0), [INF, 1.0]),
    "square": (lamina.square, v(0.0, 3.0), [0.0, 6.0]),
    "pow 0": (lambda x: x**0, v(0.0, 2.0), [0.0, 0.0]),
    "pow 1": (lambda x: x**1, v(0.0, 2.0), [1.0, 1.0]),
    "pow 2": (lambda x: x**2, v(0.0, -2.0), [0.0, -4.0]),
    "pow 3": (lambda x: x**3, v(0.0, -2.0), [0.0, 12.0]),
    "pow tensor 0": (lambda x: x ** v(0.0, 0.0), v(0.0, 2.0), [0.0, 0.0]),
    "pow of zero": (
        lambda y: v(0.0, 0.0, 2.0) ** y,
        v(2.0, 0.0, 1.0),
        [0.0, 0.0, 1.3862943611198906],
    ),
    "scalar 0 pow": (lambda y: lamina.pow(0.0, y), v(2.0, 0.0), [0.0, 0.0]),
    "maximum": (lambda x: lamina.maximum(x, v(1.0, 2.0, 3.0)), v(1.0, 3.0, 0.0), [0.5, 1.0, 0.0]),
    "minimum": (lambda x: lamina.minimum(x, v(1.0, 2.0, 3.0)), v(1.0, 3.0, 0.0), [0.5, 0.0, 1.0]),
    "clamp": (lambda x: x.clamp(0.0, 1.0), v(0.0, 1.0, -1.0, 0.5), [1.0, 1.0, 0.0, 1.0]),
    "clamp inverted": (lambda x: x.clamp(1.0, 0.0), v(0.0, 1.0, 0.5), None),
    "relu": (lamina.relu, v(0.0, 1.0, -1.0), [0.0, 1.0, 0.0]),
    "leaky_relu": (lamina.nn.functional.leaky_relu, v(0.0, 1.0, -1.0), [0.01, 1.0, 0.01]),
    "softplus": (lambda x: lamina.nn.functional.softplus(x, 1.0, 2.0), v(2.0, 30.0), None),
    "xlogy x": (lambda x: lamina.xlogy(x, v(0.0, 2.0)), v(0.0, 0.0), None),
    "hypot": (lambda x: lamina.hypot(x, v(0.0, 3.0)), v(0.0, 4.0), None),
    "atan2": (lambda x: lamina.atan2(x, v(0.0, 1.0)), v(0.0, 0.0), None),
    "copysign": (lambda x: lamina.copysign(x, -1.0), v(0.0, 2.0), [0.0, -1.0]),
    "logaddexp ties": (lambda x: lamina.logaddexp(x, v(1.0, -INF)), v(1.0, -INF), [0.5, 0.5]),
    "logaddexp inf": (lambda x: lamina.logaddexp(x, v(INF, 0.0)), v(INF, INF), [0.5, 1.0]),
    "floor": (lamina.floor, v(1.0, 0.5), [0.0, 0.0]),
    "where": (lambda x: lamina.where(x > 0, x, -x), v(0.0, 1.0), [-1.0, 1.0]),
    "nan_to_num": (lamina.nan_to_num, v(NAN, INF, 1.0), None),
    "sigmoid": (lamina.sigmoid, v(800.0, -800.0), [0.0, 0.0]),
    "tanh": (lamina.tanh, v(800.0, 0.0), [0.0, 1.0]),
    "elu": (lambda x: F.elu(x, 2.0), v(0.0, -0.0, -800.0, 1.0), [2.0, 2.0, 0.0, 1.0]),
    "celu": (lambda x: F.celu(x, 2.0), v(0.0, 800.0, -800.0), [1.0, 1.0, 0.0]),
    "hardtanh": (F.hardtanh, v(-1.0, 1.0, 0.0), [0.0, 0.0, 1.0]),
    "relu6": (F.relu6, v(0.0, 6.0, 3.0), [0.0, 0.0, 1.0]),
    "hardsigmoid": (F.hardsigmoid, v(-3.0, 3.0, 0.0), [0.0, 0.0, 1 / 6]),
    "hardswish": (F.hardswish, v(-3.0, 3.0, 0.0, -4.0, 4.0), [0.0, 1.0, 0.5, 0.0, 1.0]),
    "hardshrink": (F.hardshrink, v(-0.5, 0.5, 1.0), [0.0, 0.0, 1.0]),
    "softshrink": (F.softshrink, v(-0.5, 0.5, 1.0), [0.0, 0.0, 1.0]),
    "threshold": (lambda x: F.threshold(x, 1.0, 5.0), v(1.0, 2.0, 0.0), [0.0, 1.0, 0.0]),
    "prelu": (lambda x: F.prelu(x, v(0.25)), v(0.0, -0.0, 1.0), [0.25, 0.25, 1.0]),
    "mish": (F.mish, v(0.0, 800.0, -800.0), [0.6, 1.0, 0.0]),
    "silu": (F.silu, v(0.0, 800.0, -800.0), [0.5, 1.0, 0.0]),
    "gelu": (F.gelu, v(0.0, 800.0, -800.0), [0.5, 1.0, 0.0]),
    "logsigmoid": (F.logsigmoid, v(0.0, 800.0, -800.0), [0.5, 0.0, 1.0]),
    "softsign": (F.softsign, v(0.0, -0.0), [1.0, 1.0]),
    "l1": (lambda x: F.l1_loss(x, v(0.0, 0.0), reduction="none"), v(0.0, 2.0), [0.0, 1.0]),
    "smooth_l1": (
        lambda x: F.smooth_l1_loss(x, v(0.0, 0.0, 0.0), reduction="none"),
        v(0.0, 1.0, -1.0),
        [0.0, 1.0, -1.0],
    ),
    "huber": (
        lambda x: F.huber_loss(x, v(0.0, 0.0, 0.0), reduction="none", delta=2.0),
        v(0.0, 2.0, -2.0),
        [0.0, 2.0, -2.0],
    ),
    "bce": (lambda x: F.binary_cross_entropy(x, v(0.0, 1.0), reduction="none"), v(0.0, 1.0), [0.0, 0.0]),
    "bce target": (
        lambda t: F.binary_cross_entropy(v(0.0, 1.0, 0.5), t, reduction="none"),
        v(0.0, 1.0, 0.5),
        [100.0, -100.0, 0.0],
    ),
    "bce logits": (
        lambda x: F.binary_cross_entropy_with_logits(x, v(1.0, 0.0, 1.0), reduction="none"),
        v(0.0, 800.0, -800.0),
        [-0.5, 1.0, -1.0],
    ),
    "kl_div target": (lambda t: F.kl_div(v(-1.0, -1.0), t, reduction="none"), v(0.0, 1.0), None),
}  # fmt: skip
# Functions whose Jacobian is no diagonal.
BOUNDARIES = {
    "amax ties": (lambda x: x.amax(0), v(1.0, 3.0, 3.0)),
    "max ties": (lambda x: x.max(), v(1.0, 3.0, 3.0)),
    "min.dim ties": (lambda x: x.min(0).values, v(1.0, 3.0, 1.0)),
    "prod one zero": (lambda x: x.prod(), v(2.0, 0.0, 3.0)),
    "prod two zeros": (lambda x: x.prod(0), v(0.0, 0.0, 3.0)),
    "cumprod zeros": (lambda x: x.cumprod(0), v(2.0, 0.0, 3.0, 0.0)),
    "std of equal": (lambda x: x.std(), v(2.0, 2.0, 2.0)),
    "var of one": (lambda x: x.var(0, correction=0), v(2.0)),
    "norm by hand": (lambda x: (x * x).sum().sqrt(), v(3.0, 4.0)),
    "logsumexp of nothing": (lambda x: x.logsumexp(0), v(-INF, -INF)),
    "logsumexp": (lambda x: x.logsumexp(0), v(-INF, 1.0, 1.0)),
    "softmax far": (lambda x: x.softmax(0), v(-INF, 0.0, 800.0)),
    "sort ties": (lambda x: x.sort().values, v(2.0, 1.0, 2.0)),
    "topk ties": (lambda x: x.topk(2).values, v(2.0, 1.0, 2.0)),
    "scatter twice": (lambda x: lamina.zeros(2, dtype=F64).scatter(0, T([1, 1, 0]), x), v(1.0, 2.0, 3.0)),
    "index_put twice": (lambda x: lamina.zeros(2, dtype=F64).index_put((T([1, 1, 0]),), x), v(1.0, 2.0, 3.0)),
    "index_copy twice": (lambda x: lamina.zeros(2, dtype=F64).index_copy(0, T([1, 1, 0]), x), v(1.0, 2.0, 3.0)),
    "expand": (lambda x: x.expand(2, 3) * v(1.0, 2.0, 3.0), v(1.0, 0.0, 2.0)),
    "as_strided overlapping": (lambda x: lamina.as_strided(x, (3, 2), (1, 1)), v(1.0, 0.0, 2.0, 1.0)),
    "index_fill twice": (lambda x: lamina.zeros(3, dtype=F64).index_fill(0, T([1, 1]), x[0]), v(2.0)),
    "norm of zero": (lambda x: lamina.linalg.vector_norm(x), v(0.0, 0.0)),
    "norm 1": (lambda x: lamina.linalg.vector_norm(x, 1), v(0.0, 1.0, -2.0)),
    "norm 3 of zero": (lambda x: lamina.linalg.vector_norm(x, 3), v(0.0, 0.0)),
    "norm inf ties": (lambda x: lamina.linalg.vector_norm(x, INF), v(2.0, -2.0, 1.0)),
    "normalize zero": (lambda x: F.normalize(x, dim=0), v(0.0, 0.0)),
    "cosine of zero": (lambda x: F.cosine_similarity(x, v(1.0, 2.0), dim=0), v(0.0, 0.0)),
    "distance to itself": (lambda x: F.pairwise_distance(x, v(1.0, 2.0), eps=0.0), v(1.0, 2.0)),
    "layer_norm of equal": (lambda x: F.layer_norm(x, (3,)), v(1.0, 1.0, 1.0)),
    "layer_norm of one": (lambda x: F.layer_norm(x[:, None], (1,)), v(1.0, 2.0)),
    "rms_norm of zero": (lambda x: F.rms_norm(x, (2,), eps=1e-3), v(0.0, 0.0)),
    "group_norm of equal": (lambda x: F.group_norm(x[None, :, None], 1), v(2.0, 2.0)),
    "batch_norm of two": (lambda x: F.batch_norm(x[:, None], None, None, training=True), v(2.0, 2.0)),
    "embedding twice": (lambda x: F.embedding(T([1, 1, 0]), x[:, None]), v(1.0, 2.0)),
    "attention, a row sees nothing": (
        lambda x: F.scaled_dot_product_attention(
            x.reshape(1, 2, 1), x.reshape(1, 2, 1), x.reshape(1, 2, 1), T([[False, False], [True, False]])
        ),
        v(1.0, 2.0),
    ),
    "glu": (F.glu, v(0.0, 800.0, -800.0, 0.0)),
    "prelu weight": (lambda w: F.prelu(v(0.0, -2.0, 3.0), w), v(0.25)),
    "triplet ties": (lambda x: F.triplet_margin_loss(x, x, x, margin=1.0), v(1.0, 2.0)),
    "cat twice": (lambda x: lamina.cat([x, x * x]), v(0.0, 2.0)),
}  # fmt: skip


def same(a, b):
    return lamina.allclose(a, b, rtol=1e-9, atol=1e-12, equal_nan=True)


def units(x):
    return [lamina.eye(x.numel(), dtype=F64)[i] for i in range(x.numel())]


def jacobians(f, x):
    """By reverse and by forward mode: rows are results, columns operands."""
    leaf = x.clone().requires_grad_()
    y = f(leaf).reshape(-1)
    rows = [gradients((y * u).sum(), [leaf])[0] for u in units(y)]
    columns = []
    for u in units(x):
        with fw.dual_level():
            columns.append(tangent_of(f(fw.make_dual(x, u))).reshape(-1))
    return lamina.stack(rows), lamina.stack(columns, 1)


def hessians(f, x):
    """Second derivatives of the sum of the results, in the four nestings."""
    rr, fr, rf, ff = [], [], [], []
    for u in units(x):
        leaf = x.clone().requires_grad_()
        (g,) = gradients(f(leaf).sum(), [leaf], create_graph=True)
        rr.append(gradients((g * u).sum(), [leaf])[0])
        with fw.dual_level():
            dual = fw.make_dual(x.clone().requires_grad_(), u)
            (g,) = gradients(f(dual).sum(), [dual])
            fr.append(tangent_of(g).detach())
        leaf = x.clone().requires_grad_()
        with fw.dual_level():
            t = tangent_of(f(fw.make_dual(leaf, u)))
        rf.append(gradients(t.sum(), [leaf])[0])
        row = []
        for w in units(x):
            with fw.dual_level():
                outer = fw.make_dual(x, w)
                with fw.dual_level():
                    t = tangent_of(f(fw.make_dual(outer, u)))
                row.append(tangent_of(t).sum())
        ff.append(lamina.stack(row))
    return [lamina.stack(h) for h in (rr, fr, rf, ff)]


@pytest.mark.parametrize("name", POINTWISE_BOUNDARIES)
def test_pointwise_boundary(name):
    f, x, want = POINTWISE_BOUNDARIES[name]
    reverse_, forward_ = jacobians(f, x)
    assert same(reverse_, forward_), f"{reverse_.tolist()} != {forward_.tolist()}"
    if want is not None:
        assert same(reverse_.diagonal(), v(*want)), reverse_.diagonal().tolist()
        # Elements do not see each other, whatever is infinite.
        assert not (reverse_ * (1 - lamina.eye(len(want), dtype=F64))).nan_to_num(0.0).any()
    rr, fr, rf, ff = hessians(f, x)
    assert same(rr, fr), f"{rr.tolist()} != {fr.tolist()}"
    assert same(rr, rf), f"{rr.tolist()} != {rf.tolist()}"
    assert same(rr, ff), f"{rr.tolist()} != {ff.tolist()}"


@pytest.mark.parametrize("name", BOUNDARIES)
def test_boundary(name):
    f, x = BOUNDARIES[name]
    reverse_, forward_ = jacobians(f, x)
    assert same(reverse_, forward_), f"{reverse_.tolist()} != {forward_.tolist()}"
    rr, fr, rf, ff = hessians(f, x)
    assert same(rr, fr), f"{rr.tolist()} != {fr.tolist()}"
    assert same(rr, rf), f"{rr.tolist()} != {rf.tolist()}"
    assert same(rr, ff), f"{rr.tolist()} != {ff.tolist()}"


def test_the_last_writer_has_the_gradient():
    x = v(1.0, 2.0, 3.0).requires_grad_()
    for written in (
        lamina.zeros(2, dtype=F64).scatter(0, T([1, 1, 0]), x),
        lamina.zeros(2, dtype=F64).index_put((T([1, 1, 0]),), x),
        lamina.zeros(2, dtype=F64).index_copy(0, T([1, 1, 0]), x),
    ):
        assert written.tolist() == [3.0, 2.0]
        (g,) = lamina.autograd.grad(written.sum(), x)
        assert g.tolist() == [0.0, 1.0, 1.0]


# Functions with an infinite or undefined derivative at zero (or below), cut off by a mask.
SINGULAR = {
    "sqrt": lamina.sqrt,
    "rsqrt": lamina.rsqrt,
    "log": lamina.log,
    "log2": lamina.log2,
    "log10": lamina.log10,
    "log of log": lambda x: x.log().log(),
    "reciprocal": lamina.reciprocal,
    "div": lambda x: 1 / x,
    "x / x": lambda x: x / x,
    "pow": lambda x: x**0.5,
    "pow -1": lambda x: x**-1.0,
    "pow tensor": lambda x: x ** v(-1.5, 0.5, 2.5),
    "x ** x": lambda x: x**x,
    "xlogy": lambda x: lamina.xlogy(x, x),
    "atan2": lambda x: lamina.atan2(x, x),
    "hypot": lambda x: lamina.hypot(x, x),
    "acosh": lambda x: lamina.acosh(x + 1),
    "asin": lambda x: lamina.asin(1 - x * 0.1),
    "atanh": lambda x: lamina.atanh(1 - x * 0.1),
    "logaddexp": lambda x: lamina.logaddexp(x.log(), x.log()),
    "addcdiv": lambda x: lamina.addcdiv(x, x, x * x),
    "sqrt of square": lambda x: (x * x).sqrt(),
    "exp of reciprocal": lambda x: (-1 / x).exp(),
}


@pytest.mark.parametrize("name", SINGULAR)
def test_what_a_mask_cuts_off_stays_zero(name):
    f = SINGULAR[name]
    x = v(0.0, 2.0, 0.0)

    def masked(y):
        return lamina.where(x > 0, f(y), 0.0)

    def selected(y):
        return f(y)[x > 0]

    for g in (masked, selected):
        leaf = x.clone().requires_grad_()
        (first,) = lamina.autograd.grad(g(leaf).sum(), leaf, create_graph=True)
        assert first[0] == 0 and first[2] == 0 and first[1].isfinite(), first
        with fw.dual_level():
            # Only the element that is kept moves: the others have a tangent of zero.
            t = tangent_of(g(fw.make_dual(x, v(0.0, 1.0, 0.0))))
            assert t.isfinite().all() and same(t.sum(), first[1].detach()), t


# ---- the check itself ---------------------------------------------------------------------------------------------


def test_gradcheck_on_every_smooth_case():
    """The public check agrees, here in its fast mode, on a sample of the cases."""
    for dtype in (F64, C128):
        for case in all_cases(dtype)[::7]:
            if "random" in case.name or "uniform" in case.name or "normal" in case.name:
                continue
            operands = leaves(case.operands)

            def f(*xs, case=case):
                return differentiable(case(*xs))[0]

            assert lamina.autograd.gradcheck(
                f, operands, fast_mode=True, check_forward_ad=True, nondet_tol=1e-12
            ), case.name
