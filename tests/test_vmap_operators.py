"""vmap(f) is f on each sample, stacked: for every operator of the op list, alone and under every derivative."""

import pytest
from derivative_cases import C128, F64, ROOT, cases
from lamina.func import grad, jvp, vjp, vmap

import lamina
from opgen.generate import read

ALL = {}
# Operators that raise inside vmap, as their paragraphs say; test_vmap.py has them.
REFUSED = {
    f"aten::{f.schema.full_name}"
    for op in read(ROOT / "ops")
    for f in op.functions
    if op.vmap_rule(f) in ("random", "dynamic", "never")
}
# They write into a tensor that is no operand of the case.
CLOSED_OVER = ("aten::igamma_", "aten::igammac_", "aten::native_batch_norm", "aten::_batch_norm")


def all_cases(dtype):
    if dtype not in ALL:
        ALL[dtype] = [
            c for c in cases(dtype) if c.name not in REFUSED and c.name not in CLOSED_OVER
        ]
    return ALL[dtype]


def other_sample(t):
    """Numbers from the same range in other places."""
    return t.flip(tuple(range(t.dim()))) if t.dim() else t * 0.9


def results(value):
    value = (value,) if isinstance(value, lamina.Tensor) else tuple(value)
    return tuple(t for t in value if isinstance(t, lamina.Tensor))


def check(got, want, what):
    assert len(got) == len(want), what
    for g, w in zip(got, want, strict=True):
        assert g.dtype == w.dtype and g.shape == w.shape, what
        assert lamina.allclose(g, w, rtol=1e-7, atol=1e-9, equal_nan=True), what


def samples(case):
    first = [x.detach().clone() for x in case.operands]
    return first, [other_sample(x) for x in first]


def call(case, operands):
    return results(case(*[x.clone() for x in operands]))


def stacked(a, b, dims):
    return [
        x if d is None else lamina.stack([x, y], d % (x.dim() + 1))
        for x, y, d in zip(a, b, dims, strict=True)
    ]


def layouts(count):
    yield (0,) * count
    yield (-1,) * count
    if count > 1:
        yield (0,) + (None,) * (count - 1)
        yield (None,) + (0,) * (count - 1)


def failures(dtype, attempt):
    """Names of the cases for which `attempt` is wrong, with what it says."""
    wrong = {}
    for number, case in enumerate(all_cases(dtype)):
        try:
            attempt(case)
        except Exception as error:
            wrong[f"{number} {case.name}"] = f"{type(error).__name__}: {error}"[:300]
    return wrong


# as_strided speaks of memory, and how samples lie in it is the caller's choice.
MEMORY = ("aten::as_strided", "aten::view_as_complex")


def is_skipped(case, dims):
    """Samples cannot be written into an operand that has none (test_vmap.py tries it)."""
    shared_target = case.inplace and dims[0] is None
    return shared_target or (-1 in dims and case.name.startswith(MEMORY))


@pytest.mark.parametrize("dtype", [F64, C128], ids=["float64", "complex128"])
def test_values(dtype):
    def attempt(case):
        first, second = samples(case)
        for dims in layouts(len(first)):
            if is_skipped(case, dims):
                continue
            mixed = [x if d is None else y for x, y, d in zip(first, second, dims, strict=True)]
            want = [lamina.stack(p) for p in zip(call(case, first), call(case, mixed), strict=True)]
            got = vmap(lambda *x: call(case, x), in_dims=dims)(*stacked(first, second, dims))
            check(got, want, dims)

    assert failures(dtype, attempt) == {}


def test_two_levels():
    def attempt(case):
        first, second = samples(case)
        whole = stacked(first, second, (0,) * len(first))
        nested = [lamina.stack([x, x.flip(0), x]) for x in whole]
        got = vmap(vmap(lambda *x: call(case, x)), in_dims=0)(*nested)
        one = vmap(lambda *x: call(case, x))(*whole)
        want = [lamina.stack([t, t.flip(0), t]) for t in one]
        check(got, want, "two levels")

    assert failures(F64, attempt) == {}


def numbers(shape, dtype, seed):
    g = lamina.Generator()
    g.manual_seed(seed)
    return lamina.rand(shape, generator=g, dtype=dtype) - 0.5


def smooth(case, operands):
    """The results that have derivatives, as real numbers."""
    found = (lamina.view_as_real(t) if t.is_complex() else t for t in call(case, operands))
    return tuple(t for t in found if t.is_floating_point())


def loss_of(case, first):
    weights = [numbers(t.shape, t.dtype, i) for i, t in enumerate(smooth(case, first))]

    def loss(*x):
        return sum((t * w).sum() for t, w in zip(smooth(case, x), weights, strict=True))

    return loss


def gradient(loss, operands):
    leaves = [x.detach().clone().requires_grad_() for x in operands]
    found = lamina.autograd.grad(loss(*leaves), leaves, allow_unused=True)
    return [lamina.zeros_like(x) if g is None else g for g, x in zip(found, leaves, strict=True)]


def test_gradients_of_samples_and_of_the_mapped_function():
    def attempt(case):
        first, second = samples(case)
        loss = loss_of(case, first)
        want = [
            lamina.stack(p) for p in zip(gradient(loss, first), gradient(loss, second), strict=True)
        ]
        whole = stacked(first, second, (0,) * len(first))
        numbers_of_args = tuple(range(len(first)))
        check(vmap(grad(loss, numbers_of_args))(*whole), want, "vmap of grad")
        check(grad(lambda *x: vmap(loss)(*x).sum(), numbers_of_args)(*whole), want, "grad of vmap")

    assert failures(F64, attempt) == {}


def test_batched_cotangents():
    def attempt(case):
        first, _ = samples(case)
        output, pull = vjp(lambda *x: smooth(case, x), *first)
        pairs = [
            [numbers(t.shape, t.dtype, i + 10 * k) for i, t in enumerate(output)] for k in (1, 2)
        ]
        each = [pull(tuple(p)) for p in pairs]
        want = [lamina.stack(p) for p in zip(*each, strict=True)]
        got = vmap(pull)(tuple(lamina.stack(p) for p in zip(*pairs, strict=True)))
        check(got, want, "batched cotangents")

    assert failures(F64, attempt) == {}


def test_batched_tangents():
    def attempt(case):
        first, _ = samples(case)
        pairs = [
            [numbers(t.shape, t.dtype, i + 10 * k) for i, t in enumerate(first)] for k in (1, 2)
        ]

        def push(*tangents):
            return jvp(lambda *x: smooth(case, x), tuple(first), tangents)[1]

        want = [lamina.stack(p) for p in zip(*[push(*p) for p in pairs], strict=True)]
        got = vmap(push)(*[lamina.stack(p) for p in zip(*pairs, strict=True)])
        check(got, want, "batched tangents")

    assert failures(F64, attempt) == {}
