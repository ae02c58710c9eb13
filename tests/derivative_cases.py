"""A call, or several, of every differentiable operator of the op list, at points where it is smooth.

Pointwise operators get their calls from the op list itself; the others stand in CASES. Each case is a function of
the operands that are varied, and the operands.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from derivative_cases_linalg import linalg_cases
from derivative_cases_network import network_cases
from derivative_cases_spatial import spatial_cases

import lamina
from opgen.emit.kernels import categories
from opgen.generate import read

ROOT = Path(__file__).resolve().parent.parent
F64, C128 = lamina.float64, lamina.complex128
call = lamina._C._call_operator


@dataclass
class Case:
    name: str  # aten::add.Tensor
    function: Any
    operands: tuple  # tensors that are varied
    inplace: bool = False  # the first operand is written: the function gets a copy

    def __call__(self, *operands):
        if self.inplace:
            first, *rest = operands
            # A copy that is no leaf; multiplied, so that its old value matters to somebody else, too.
            return self.function(first * 1, *rest)
        return self.function(*operands)


def number(t, low, high):
    """Numbers in [low, high), different from each other; complex ones in the square."""
    g = lamina.Generator()
    g.manual_seed(t)
    return lambda shape, dtype: _numbers(g, shape, dtype, low, high)


def _numbers(g, shape, dtype, low, high):
    u = lamina.rand(shape, generator=g, dtype=F64) * (high - low) + low
    if dtype == C128:
        u = lamina.complex(u, lamina.rand(shape, generator=g, dtype=F64) * (high - low) + low)
    return u


# Where the operands of a pointwise operator lie; by default between 0.2 and 1.3.
RANGES = {
    "special_ndtri": [(0.2, 0.8)],
    "_logit": [(0.2, 0.8)],
    "special_zeta": [(1.5, 3.0), (0.5, 2.0)],
    "acosh": [(1.2, 3.0)],
    "asin": [(-0.8, 0.8)],
    "acos": [(-0.8, 0.8)],
    "atanh": [(-0.8, 0.8)],
    "tan": [(-0.9, 0.9)],
    "abs": [(-2.0, -0.3)],
    "sgn": [(-2.0, -0.3)],
    "relu": [(-1.0, 1.0)],
    "silu": [(-2.0, 2.0)],
    "_gelu_erf": [(-2.0, 2.0)],
    "_gelu_tanh": [(-2.0, 2.0)],
    "_gelu_erf_backward": [(-2.0, 2.0), (-2.0, 2.0)],
    "_gelu_tanh_backward": [(-2.0, 2.0), (-2.0, 2.0)],
    "elu": [(-1.0, 1.0)],
    "_elu_backward": [(-1.0, 1.0), (-1.0, 1.0)],
    "hardtanh": [(-0.2, 1.4)],
    "hardtanh_backward": [(-1.0, 1.0), (-0.2, 1.4)],
    "hardsigmoid": [(-5.0, 5.0)],
    "hardsigmoid_backward": [(-1.0, 1.0), (-5.0, 5.0)],
    "hardswish": [(-5.0, 5.0)],
    "hardswish_backward": [(-1.0, 1.0), (-5.0, 5.0)],
    "hardshrink": [(-1.5, 1.5)],
    "hardshrink_backward": [(-1.0, 1.0), (-1.5, 1.5)],
    "_softshrink": [(-1.5, 1.5)],
    "mish": [(-2.0, 2.0)],
    "mish_backward": [(-1.0, 1.0), (-2.0, 2.0)],
    "log_sigmoid": [(-2.0, 2.0)],
    "_log_sigmoid_backward": [(-1.0, 1.0), (-2.0, 2.0)],
    "threshold": [(-1.0, 1.0)],
    "_prelu_kernel": [(-1.0, 1.0), (-0.5, 0.5)],
    "_prelu_self_backward": [(-1.0, 1.0), (-1.0, 1.0), (-0.5, 0.5)],
    "_prelu_weight_backward": [(-1.0, 1.0), (-1.0, 1.0)],
    "_smooth_l1": [(-2.0, 2.0), (-2.0, 2.0)],
    "_huber": [(-2.0, 2.0), (-2.0, 2.0)],
    "_binary_cross_entropy": [(0.1, 0.9), (0.0, 1.0)],
    "_bce_with_logits": [(-2.0, 2.0), (0.0, 1.0)],
    "leaky_relu": [(-1.0, 1.0)],
    "leaky_relu_backward": [(-1.0, 1.0), (-1.0, 1.0)],
    "threshold_backward": [(-1.0, 1.0), (-1.0, 1.0)],
    "softplus": [(-2.0, 2.0)],
    "softplus_backward": [(-1.0, 1.0), (-2.0, 2.0)],
    "erf": [(-1.5, 1.5)],
    "erfc": [(-1.5, 1.5)],
    "floor": [(0.1, 0.9)],
    "ceil": [(0.1, 0.9)],
    "trunc": [(0.1, 0.9)],
    "round": [(0.6, 1.4)],
    "frac": [(0.1, 0.9)],
    "remainder": [(2.1, 2.4), (0.9, 1.0)],
    "fmod": [(2.1, 2.4), (0.9, 1.0)],
    "floor_divide": [(2.1, 2.4), (0.9, 1.0)],
    "_div_trunc": [(2.1, 2.4), (0.9, 1.0)],
    "_clamp": [(-1.0, 3.0), (0.0, 0.1), (1.0, 1.1)],
    "copysign": [(-2.0, 2.0), (-2.0, 2.0)],
    "atan2": [(-2.0, 2.0), (-2.0, 2.0)],
    "_nextafter": [(0.2, 1.3), (1.5, 2.0)],
}
NUMBERS = {
    "alpha": 1.5,
    "value": -0.7,
    "threshold": 0.1,
    "negative_slope": 0.2,
    "beta": 1.5,
    "min": 0.3,
    "max": 0.7,
    "other": 1.7,
    "self": 1.3,
    "exponent": 2.5,
    "weight": 0.3,
    "scale": 0.8,
    "n": 2,
    "input_scale": 1.2,
    "lambd": 0.6,
    "delta": 0.9,
    "min_val": 0.1,
    "max_val": 0.9,
}


def _pointwise(op, dtype, seed):
    """Calls of one pointwise operator: the functional and the in-place form."""
    params = op.schema.params
    varied = [p.name for p in params if p.name in op.gradients.formulas]
    ranges = RANGES.get(op.name, [])
    fixed, operands = {}, []
    tensors = [p for p in params if p.type.base == "Tensor"]
    for k, p in enumerate(tensors):
        # The first operand has all dimensions, so that it can be written; the second broadcasts.
        shape = ((3, 2), (2,), (3, 1))[k % 3]
        if p.name == "condition":
            fixed[p.name] = lamina.tensor([[True, False], [False, False], [True, True]])
            continue
        low, high = ranges[k] if k < len(ranges) else (0.2, 1.3)
        real = op.name in ("complex", "polar")  # made of real numbers
        t = number(seed + k, low, high)(shape, F64 if real else dtype)
        if p.name in varied:
            operands.append((p.name, t))
        else:
            fixed[p.name] = t
    for p in params:
        if p.type.base != "Tensor":
            fixed[p.name] = NUMBERS[p.name]
    if op.name == "softplus" or op.name == "softplus_backward":
        fixed["threshold"] = 2.0
    if op.name in ("remainder", "fmod", "floor_divide", "_div_trunc"):
        fixed = {k: (0.9 if k == "other" else 2.3) for k in fixed}
    names = [n for n, _ in operands]
    positional = [p.name for p in params if not p.keyword_only]

    def run(form):
        def function(*values):
            have = {**fixed, **dict(zip(names, values, strict=True))}
            args = [have[n] for n in positional]
            rest = {n: v for n, v in have.items() if n not in positional}
            return call(f"aten::{form.schema.full_name}", *args, **rest)

        return function

    tensors = tuple(t for _, t in operands)
    yield Case(f"aten::{op.schema.full_name}", run(op.functional), tensors)
    if op.inplace and names[0] == "self":
        yield Case(f"aten::{op.inplace.schema.full_name}", run(op.inplace), tensors, True)


def _shaped(dtype, *shapes, low=-1.2, high=1.3, seed=3):
    return tuple(number(seed + i, low, high)(s, dtype) for i, s in enumerate(shapes))


def index(*values):
    return lamina.tensor(values)


MASK = lamina.tensor([[True, False, True], [False, False, True]])
AT = lamina.tensor([[0, 1, 1], [1, 0, 1]])
UNIQUE = lamina.tensor([[0, 1, 1], [1, 0, 0]])


# (full name, keyword or not: function of the operands, their sizes, real only)
def _cases(dtype):
    real = dtype == F64
    m = (2, 3)

    def of(name, *shapes, args=(), first=1, inplace=False, function=None, **kwargs):
        """A call whose first operands are tensors of these sizes."""
        operands = _shaped(dtype, *shapes)
        run = function or (lambda *t: call(f"aten::{name}", *t, *args, **kwargs))
        return Case(f"aten::{name}", run, operands, inplace)

    def spread(name, function, *shapes, inplace=False):
        return Case(f"aten::{name}", function, _shaped(dtype, *shapes), inplace)

    # ---- creation and copies
    yield of("fill_.Tensor", m, (), inplace=True)
    yield of("fill_.Scalar", m, args=(2.0,), inplace=True)
    yield of("zero_", m, inplace=True)
    yield of("copy_", m, (3,), inplace=True)
    yield of("clone", m)
    yield of("_to_copy", m, dtype=C128)
    for name, args in (
        ("uniform_", ()),
        ("normal_", ()),
        ("random_.from", (0, 5)),
        ("random_", ()),
        ("bernoulli_.float", (0.5,)),
        ("bernoulli_.Tensor", (lamina.full((3,), 0.5),)),
        ("cauchy_", ()),
        ("exponential_", ()),
        ("geometric_", (0.5,)),
        ("log_normal_", ()),
    ):
        if real or name == "normal_":

            def seeded(t, name=name, args=args):
                lamina.manual_seed(3)
                return call(f"aten::{name}", t, *args)

            yield spread(name, seeded, m, inplace=True)
    if real:

        def counts(t):
            lamina.manual_seed(3)
            return call("aten::poisson", t.abs() + 1)

        yield spread("poisson", counts, m)
        for form in ("scatter_reduce", "scatter_reduce_"):
            for reduce in ("sum", "prod", "mean", "amax", "amin"):
                for include in (True, False):

                    def reduced(a, b, form=form, reduce=reduce, include=include):
                        return getattr(a, form)(1, AT, b, reduce, include_self=include)

                    yield spread(f"{form}.two", reduced, (2, 4), m, inplace=form.endswith("_"))
        yield of("cummax", m, args=(1,))
        yield of("cummin", m, args=(0,))
        yield of("_logcumsumexp", m, args=(1,))
        yield of("frexp.Tensor", m)
        for form in ("igamma_", "igammac_"):  # no derivative by the order, which is written

            def incomplete(b, form=form):
                return getattr(lamina.full(m, 1.5, dtype=F64), form)(b * b)

            yield spread(form, incomplete, m)
    else:
        yield of("_fft_c2c", (3, 4), args=((0, 1), 1, True))
    # ---- indexing
    yield spread("cat", lambda a, b: lamina.cat([a, b, a], 1), m, (2, 2))
    yield spread("cat", lambda a: lamina.cat([a, lamina.zeros(1, 3, dtype=dtype)], 0), m)
    yield spread("gather", lambda a: lamina.gather(a, 0, AT), m)
    yield spread("gather", lambda a: lamina.gather(a, 1, index(0, 2).unsqueeze(0)), m)
    for form in ("scatter", "scatter_"):
        w = form.endswith("_")
        yield spread(f"{form}.src", lambda a, b, f=form: call(f"aten::{f}.src", a, 0, UNIQUE[:, :2], b), m, m, inplace=w)  # fmt: skip
        yield spread(f"{form}.src", lambda a, b, f=form: call(f"aten::{f}.src", a, 0, AT * 0, b), m, m, inplace=w)  # fmt: skip
        yield spread(f"{form}.value", lambda a, f=form: call(f"aten::{f}.value", a, 1, index(0, 2).unsqueeze(1), 2.0), m, inplace=w)  # fmt: skip
    for form in ("scatter_add", "scatter_add_"):
        yield spread(form, lambda a, b, f=form: call(f"aten::{f}", a, 0, AT, b), m, m, inplace=form[-1] == "_")  # fmt: skip
    yield spread("index_select", lambda a: lamina.index_select(a, 1, index(2, 0, 2)), m)
    for form in ("index_add", "index_add_"):
        yield spread(form, lambda a, b, f=form: call(f"aten::{f}", a, 1, index(2, 0, 2), b, alpha=1.5), m, m, inplace=form[-1] == "_")  # fmt: skip
    for form in ("index_copy", "index_copy_"):
        yield spread(form, lambda a, b, f=form: call(f"aten::{f}", a, 1, index(2, 0), b), m, (2, 2), inplace=form[-1] == "_")  # fmt: skip
    for form in ("index_fill", "index_fill_"):
        yield spread(f"{form}.int_Scalar", lambda a, f=form: call(f"aten::{f}.int_Scalar", a, 1, index(2, 0), 3.0), m, inplace=form[-1] == "_")  # fmt: skip
    yield spread("masked_fill_.Tensor", lambda a, v: a.masked_fill_(MASK, v), m, (), inplace=True)
    yield spread("masked_fill_.Scalar", lambda a: a.masked_fill_(MASK[0], 2.0), m, inplace=True)
    yield spread("masked_select", lambda a: lamina.masked_select(a, MASK), m)
    yield spread("masked_select", lambda a: lamina.masked_select(a, MASK), (3,))
    yield spread("masked_scatter_", lambda a, b: a.masked_scatter_(MASK, b), m, m, inplace=True)
    yield spread("index.Tensor", lambda a: a[index(1, 0, 1), index(2, 2, 0)], m)
    yield spread("index.Tensor", lambda a: a[:, index(2, 0)], m)
    yield spread("index.Tensor", lambda a: a[MASK], m)
    yield spread("index_put_", lambda a, b: a.index_put_((index(1, 0), index(2, 2)), b), m, (2,), inplace=True)  # fmt: skip
    yield spread("index_put_", lambda a, b: a.index_put_((index(1, 1), index(2, 2)), b, accumulate=True), m, (), inplace=True)  # fmt: skip
    # ---- products
    yield of("dot", (3,), (3,))
    yield of("vdot", (3,), (3,))
    yield of("mv", m, (3,))
    yield of("mm", m, (3, 2))
    yield of("bmm", (2, 2, 3), (2, 3, 2))
    for form in ("addmm", "addmm_"):
        w = form[-1] == "_"
        yield of(form, (2, 2), m, (3, 2), inplace=w, beta=0.5, alpha=1.5)
    yield of("addmm", (2,), m, (3, 2), beta=0.0, alpha=1.0)
    for form in ("addmv", "addmv_"):
        yield of(form, (2,), m, (3,), inplace=form[-1] == "_", beta=0.5, alpha=1.5)
    for form in ("baddbmm", "baddbmm_"):
        yield of(form, (2, 2, 2), (2, 2, 3), (2, 3, 2), inplace=form[-1] == "_", beta=0.5, alpha=1.5)  # fmt: skip
    # ---- reductions
    yield of("sum", m)
    yield of("sum.dim_IntList", m, args=([1],))
    yield of("sum.dim_IntList", m, args=([0], True))
    yield of("mean", m)
    yield of("mean.dim", m, args=([0],))
    yield of("prod", m)
    yield of("prod.dim_int", m, args=(1,))
    yield of("prod.dim_int", m, args=(0, True))
    for v in ("var", "std"):
        yield of(v, m, args=(False,))
        yield of(f"{v}.dim", m, args=([1], True, True))
        yield of(f"{v}.correction", m, args=([0],), correction=0)
    for form in ("cumsum", "cumsum_", "cumprod", "cumprod_"):
        yield of(form, m, args=(1,), inplace=form[-1] == "_")
        yield of(form, (), args=(0,), inplace=form[-1] == "_")
    if real:
        yield of("_softmax", m, args=(1, False))
        yield of("_log_softmax", m, args=(0, False))
        yield of("_softmax_backward", m, m, args=(1,))
        yield of("_log_softmax_backward", m, m, args=(1,))
        yield of("nansum", m, args=([1],))
        yield of("amax", m, args=([1],))
        yield of("amin", m, args=([], True))
        yield of("max", m)
        yield of("min", m)
        yield of("max.dim", m, args=(1,))
        yield of("min.dim", m, args=(0, True))
        yield of("_logsumexp", m, args=([1],))
        yield of("_logsumexp", m, args=([0, 1], True))
        yield of("sort.stable", m, stable=True, dim=1)
        yield of("topk", m, args=(2, 1))
        target, weight = index(1, 2), lamina.tensor([0.5, 1.5, 2.0], dtype=F64)
        for reduction in (0, 1, 2):
            yield of("_nll_loss", m, args=(target, weight, reduction, -100))
            total = lamina.tensor(3.5, dtype=F64)
            shape = (2,) if reduction == 0 else ()
            yield Case(
                "aten::_nll_loss_backward",
                lambda g, x, r=reduction, t=total: call(
                    "aten::_nll_loss_backward", g, x, target, weight, r, -100, t
                ),
                _shaped(dtype, shape, m),
            )
    # ---- views
    yield of("view", m, args=([3, 2],))
    yield of("_reshape_alias", m, args=([3, 2], [2, 1]))
    for form in ("as_strided", "as_strided_"):
        yield of(form, m, args=([2, 2], [1, 3], 1), inplace=form[-1] == "_")
    yield of("as_strided", m, args=([3, 2], [1, 1]))
    yield of("expand", (3, 1), args=([2, 3, 2],))
    yield of("permute", (2, 3, 1), args=([2, 0, 1],))
    for form in ("transpose", "transpose_"):
        yield of(f"{form}.int", (2, 3, 1), args=(0, 1), inplace=form[-1] == "_")
    for form in ("t", "t_"):
        yield of(form, m, inplace=form[-1] == "_")
    for form in ("squeeze", "squeeze_"):
        w = form[-1] == "_"
        yield of(form, (2, 1, 3, 1), inplace=w)
        yield of(f"{form}.dim", (2, 1, 3), args=(1,), inplace=w)
        yield of(f"{form}.dims", (2, 1, 3, 1), args=([1, 3],), inplace=w)
    for form in ("unsqueeze", "unsqueeze_"):
        yield of(form, m, args=(1,), inplace=form[-1] == "_")
    yield of("select.int", m, args=(1, -1))
    yield of("slice.Tensor", m, args=(1, 0, 3, 2))
    yield of("slice.Tensor", m, args=(1, None, None, -1))
    for case in (
        of("split.Tensor", (5, 2), args=(2, 0)),
        of("split_with_sizes", (2, 5), args=([1, 3, 1], 1)),
        of("unbind.int", (2, 3), args=(1,)),
    ):
        yield _without_first_piece(case)
    yield of("diagonal", m, args=(1,))
    yield of("unfold", (5,), args=(0, 3, 1))
    yield of("_neg_view", m)
    yield of("alias", m)
    if real:
        yield of("view_as_complex", (3, 2))
    else:
        yield of("view_as_real", m)
        yield of("_conj", m)
    yield of("select_backward", (2,), args=([2, 3], 1, 1))
    yield of("slice_backward", (2, 2), args=([2, 3], 1, 0, 3, 2))
    yield of("diagonal_backward", (2,), args=([2, 3], 1, 0, 1))


def _without_first_piece(case):
    """The pieces that an operator gives, each with a weight of its own; the first is not used."""
    pieces = case.function
    case.function = lambda *xs: lamina.cat(
        [p.reshape(-1) * (k + 2) for k, p in enumerate(pieces(*xs)[1:])]
    )
    return case


def _composites(dtype):
    """What people call; each is made of several operators."""
    f = lamina.nn.functional
    m = (2, 3)

    def of(name, function, *shapes, low=-1.2, high=1.3):
        return Case(name, function, _shaped(dtype, *shapes, low=low, high=high))

    yield of("matmul", lamina.matmul, (3,), (3, 2))
    yield of("matmul", lamina.matmul, (2, 1, 2, 3), (2, 3, 2))
    yield of("square", lamina.square, m)
    yield of("float_power", lambda a: lamina.float_power(a, 3), m)
    yield of("linear", f.linear, m, (2, 3), (2,))
    yield of("angle", lamina.angle, m, low=0.2)
    yield of("real", lamina.real, m)
    yield of("conj", lambda a: a.conj() * a, m)
    yield of("stack", lambda a, b: lamina.stack([a, b], 1), m, m)
    yield of("logaddexp", lamina.logaddexp, m, m)
    yield of("getitem", lambda a: a[None, 1:, ..., [0, 2]] * a[0, 1], m)
    yield of("fill", lambda a: a.masked_fill(MASK, a[0, 0] * a[1, 1]), m)
    yield of("index_fill", lambda a: a.index_fill(1, index(2, 0), a[0, 0]), m)
    yield of("roll", lambda a: a.flatten()[1:] * a.reshape(-1)[:-1], m)
    yield of("div_zero", lambda a, b: lamina._C._call_operator("aten::_div_zero", a, b), m, m)
    if dtype == F64:
        yield of("clamp", lambda a: a.clamp(-0.5, 0.6), m)
        yield of("clamp", lambda a, b: lamina.clamp(a, min=b), m, m)
        yield of("softmax", lambda a: lamina.softmax(a, 1), m)
        yield of("log_softmax", lambda a: lamina.log_softmax(a, 1), m)
        yield of("logsumexp", lambda a: lamina.logsumexp(a, 1), m)
        yield of("nan_to_num", lamina.nan_to_num, m)
        yield of("gelu", lambda a: f.gelu(a, approximate="tanh"), m)
        yield of("cross_entropy", lambda a: f.cross_entropy(a, index(1, 2)), m)
        yield of("cross_entropy", lambda a, t: f.cross_entropy(a, t.softmax(1), label_smoothing=0.1), m, m)  # fmt: skip
        yield from _losses(of)
        for activation in ("celu", "selu", "relu6", "softshrink", "tanhshrink", "softsign", "glu"):
            shape = (2, 4) if activation == "glu" else m
            yield of(activation, getattr(f, activation), shape)
        yield of("prelu", f.prelu, (2, 3, 2), (3,))
    else:
        yield of("imag", lamina.imag, m)


def _losses(of):
    f = lamina.nn.functional
    m = (2, 3)
    signs = lamina.tensor([[1.0, -1.0, 1.0], [-1.0, -1.0, 1.0]], dtype=F64)
    probabilities = {"low": 0.1, "high": 0.9}
    yield of("mse_loss", f.mse_loss, m, m)
    yield of("l1_loss", f.l1_loss, m, m)
    yield of("smooth_l1_loss", f.smooth_l1_loss, m, m)
    yield of("smooth_l1_loss", lambda a, b: f.smooth_l1_loss(a, b, beta=0.0), m, m)
    yield of("huber_loss", lambda a, b: f.huber_loss(a, b, delta=0.7), m, m)
    yield of("bce", lambda a, t: f.binary_cross_entropy(a, t), m, m, **probabilities)
    yield of("bce", lambda a, w: f.binary_cross_entropy(a, signs * 0.4 + 0.5, w), m, m, **probabilities)  # fmt: skip
    yield of("bce_logits", lambda a, t, w: f.binary_cross_entropy_with_logits(a, t, pos_weight=w), m, m, (3,))  # fmt: skip
    yield of("kl_div", lambda a, t: f.kl_div(a, t, reduction="sum"), m, m, **probabilities)
    yield of("kl_div", lambda a, t: f.kl_div(a, t, log_target=True, reduction="sum"), m, m)
    yield of("poisson_nll_loss", lambda a, t: f.poisson_nll_loss(a, t, full=True), m, m, **probabilities)  # fmt: skip
    yield of("gaussian_nll_loss", f.gaussian_nll_loss, m, m, m, **probabilities)
    yield of("hinge_embedding_loss", lambda a: f.hinge_embedding_loss(a, signs), m)
    yield of("cosine_embedding_loss", lambda a, b: f.cosine_embedding_loss(a, b, signs[0, :2]), m, m)  # fmt: skip
    yield of("margin_ranking_loss", lambda a, b: f.margin_ranking_loss(a, b, signs, 0.1), m, m)
    yield of("triplet_margin_loss", lambda a, b, c: f.triplet_margin_loss(a, b, c, swap=True), m, m, m)  # fmt: skip
    yield of("multi_margin_loss", lambda a: f.multi_margin_loss(a, index(1, 2), p=2), m)
    yield of("multilabel_margin_loss", lambda a: f.multilabel_margin_loss(a, lamina.tensor([[1, -1, 0], [2, 0, -1]])), m)  # fmt: skip
    yield of("soft_margin_loss", lambda a: f.soft_margin_loss(a, signs), m)
    yield of("cosine_similarity", f.cosine_similarity, m, m)
    yield of("pairwise_distance", f.pairwise_distance, m, m)


def operators():
    return read(ROOT / "ops")


def _refuses(op):
    """Whether the derivative is an error."""
    return all("no_derivative(" in text for text in op.gradients.formulas.values())


def differentiable_names(ops):
    """Full names of all operators with a gradient, in-place forms included."""
    return {
        f"aten::{f.schema.full_name}"
        for op in ops
        if op.gradients.absent is None and not _refuses(op)
        for f in (op.functional, op.inplace)
        if f
    }


def cases(dtype):
    """All cases in one type."""
    letter = "f" if dtype == F64 else "c"
    for seed, op in enumerate(operators()):
        if op.kind == "pointwise" and op.gradients.absent is None:
            if letter in categories(op) or op.name == "complex":
                yield from _pointwise(op, dtype, 10 * seed)
    yield from _cases(dtype)
    yield from spatial_cases(dtype, Case, _shaped)
    yield from linalg_cases(dtype, Case, _shaped)
    if dtype == F64:
        yield from network_cases(Case, _shaped)
    yield from _composites(dtype)
