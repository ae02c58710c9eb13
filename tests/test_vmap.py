"""vmap: where samples lie, what it refuses, randomness, writes, indexing, rules of programs."""

import lamina.nn.functional as F
import pytest
from lamina.func import grad, vmap

import lamina

F64 = lamina.float64


def numbers(*shape, seed=0):
    g = lamina.Generator()
    g.manual_seed(seed)
    return lamina.rand(shape, generator=g, dtype=F64) * 2 - 1


def loop(f, *args):
    return lamina.stack([f(*sample) for sample in zip(*args, strict=True)])


def same(a, b):
    assert a.dtype == b.dtype and a.shape == b.shape
    assert lamina.allclose(a, b, rtol=1e-10, atol=1e-12, equal_nan=True)


# ---- dimensions ---------------------------------------------------------------------------------


def test_vmap_is_at_the_top_too():
    same(lamina.vmap(lamina.sin)(numbers(3)), numbers(3).sin())


def test_in_and_out_dims():
    a, b = numbers(3, 4), numbers(4, 3, seed=1)
    same(vmap(lamina.mul, in_dims=(0, 1))(a, b), a * b.T)
    same(vmap(lamina.mul, in_dims=(0, -1), out_dims=1)(a, b), (a * b.T).T)
    same(vmap(lamina.mul, in_dims=(0, None))(a, b[0, :].new_ones(4)), a)
    first, second = vmap(lambda x: (x, x.sum()), out_dims=(-1, 0))(a)
    same(first, a.T)
    same(second, a.sum(1))


def test_trees_of_arguments_and_results():
    tree = {"a": numbers(3, 4), "b": [numbers(4), numbers(4, 3)]}

    def f(t, scale):
        return {"sum": t["a"] + t["b"][0], "product": (t["a"] * t["b"][1] * scale,)}

    got = vmap(f, in_dims=({"a": 0, "b": [None, 1]}, None))(tree, 2.0)
    same(got["sum"], tree["a"] + tree["b"][0])
    same(got["product"][0], tree["a"] * tree["b"][1].T * 2)


def test_named_results_stay_named():
    x = numbers(3, 4)
    got = vmap(lambda t: t.max(0))(x)
    assert got.indices.tolist() == x.max(1).indices.tolist()


def test_out_dims_none_for_what_does_not_depend_on_samples():
    a, b = vmap(lambda x: (x, lamina.ones(2)), out_dims=(0, None))(numbers(3))
    assert a.shape == (3,) and b.shape == (2,)
    assert vmap(lambda x: lamina.ones(2))(numbers(3)).shape == (3, 2)


def test_keyword_arguments_are_shared():
    same(vmap(lambda x, y: x + y)(numbers(3), y=numbers(3)).diagonal(), numbers(3) * 2)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
def test_chunks_change_nothing(size):
    a, b = numbers(5, 3), numbers(3, 5)

    def f(x, y):
        return x * y, x.sum()

    for got, want in zip(
        vmap(f, in_dims=(0, 1), out_dims=(1, 0), chunk_size=size)(a, b),
        vmap(f, in_dims=(0, 1), out_dims=(1, 0))(a, b),
        strict=True,
    ):
        same(got, want)


def test_levels_nest_in_any_order_of_dimensions():
    a, b = numbers(2, 3, 4), numbers(5, 4)
    outer = vmap(vmap(vmap(lamina.dot, in_dims=(None, 0)), in_dims=(0, None)), in_dims=(0, None))
    same(outer(a, b), lamina.einsum("ijk,lk->ijl", a, b))
    same(vmap(vmap(lamina.mul, in_dims=1), in_dims=2)(a, a), (a * a).permute(2, 1, 0))


def test_no_samples():
    assert vmap(lambda x: x @ x)(lamina.zeros(0, 3, 3)).shape == (0, 3, 3)
    assert vmap(lambda x: x.cumsum(0).logsumexp(0))(lamina.zeros(0, 3)).shape == (0,)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: vmap(lamina.mul)(x, x[:2]), ValueError, "same size in the mapped dimension"),
        (lambda x: vmap(lamina.sin, in_dims=(0, 0))(x), ValueError, "not compatible with the structure"),
        (lambda x: vmap(lamina.sin, in_dims=2)(x), ValueError, "dimensionality 2"),
        (lambda x: vmap(lamina.sin, in_dims="a")(x), ValueError, "expected `in_dims` to be int"),
        (lambda x: vmap(lamina.mul, in_dims=None)(x, x), ValueError, "in_dims"),
        (lambda x: vmap(lamina.sin)(), ValueError, "got no inputs"),
        (lambda x: vmap(lambda a, b: a)(x, 3), ValueError, "cannot vmap over"),
        (lambda x: vmap(lambda a: 3)(x), ValueError, "must only return Tensors"),
        (lambda x: vmap(lambda a: a, out_dims=(0, 0))(x), ValueError, "structure of outputs"),
        (lambda x: vmap(lambda a: a, out_dims=None)(x), ValueError, "BatchedTensor"),
        (lambda x: vmap(lambda a: a, out_dims=5)(x), IndexError, "out of range"),
        (lambda x: vmap(lamina.sin, chunk_size=0)(x), ValueError, "greater than 0"),
        (lambda x: vmap(lamina.sin, randomness="x")(x), RuntimeError, "randomness"),
        (lambda x: vmap(lambda a: a if a.sum() > 0 else -a)(x), RuntimeError, "data-dependent"),
        (lambda x: vmap(lambda a: a.sum().item())(x), RuntimeError, ".item()"),
        (lambda x: vmap(lambda a: a.tolist())(x), RuntimeError, "single value"),
        (lambda x: vmap(lambda a: a.numpy())(x), RuntimeError, "no memory"),
        (lambda x: vmap(lambda a: a.data_ptr())(x), RuntimeError, "no bytes"),
        (lambda x: vmap(lambda a: a.untyped_storage())(x), RuntimeError, "no bytes"),
        (lambda x: vmap(lambda a: a.resize_(2))(x), RuntimeError, "memory"),
        (lambda x: vmap(lambda a: a.requires_grad_())(x), RuntimeError, "requires_grad_"),
        (lambda x: vmap(lambda a: a.sum().backward())(x.requires_grad_()), RuntimeError, "backward"),
        (lambda x: vmap(lamina.nonzero)(x), RuntimeError, "size depends on values"),
        (lambda x: vmap(lambda a: a[a > 0])(x), RuntimeError, "vmap"),
        (lambda x: vmap(lambda a, b: a.add_(b), in_dims=(None, 0))(x, x[:, :1]), RuntimeError, "not possible"),
        (lambda x: vmap(lamina.equal)(x, x), RuntimeError, "vmap"),
        (lambda x: vmap(lambda a: lamina.sum(a, dim=3))(x), IndexError, "range"),
        (lambda x: vmap(lamina.trace)(x), RuntimeError, "trace"),
        (lambda x: vmap(lamina.triu)(x), RuntimeError, "triu"),
        (lambda x: vmap(lamina.mm)(x, x), RuntimeError, "mm"),
    ],
)  # fmt: skip
def test_what_raises(call, error, words):
    with pytest.raises(error, match=words):
        call(numbers(3, 4))


def test_a_failed_call_leaves_no_level_behind():
    with pytest.raises(RuntimeError):
        vmap(lambda x: x.item())(numbers(3))
    assert lamina._C._vmap_levels() == []
    lamina.randn(2)


def test_a_batched_tensor_shows_its_value():
    shown = []
    vmap(lambda x: (shown.append((repr(x), x.shape, len(x))), x)[1])(numbers(3, 2))
    text, shape, length = shown[0]
    assert text.startswith("BatchedTensor(lvl=") and "bdim=0" in text and "tensor(" in text
    assert shape == (2,) and length == 2


def test_a_tensor_that_escapes_does_no_harm():
    kept = []
    vmap(lambda x: kept.append(x) or x)(numbers(3))
    assert lamina.func.debug_unwrap(kept[0] + 1).shape == (3,)
    with pytest.raises(RuntimeError):
        kept[0].item()
    assert lamina.func.debug_unwrap(numbers(2)).shape == (2,)


# ---- values and types ---------------------------------------------------------------------------


def test_types_promote_as_those_of_samples():
    zero_dim = lamina.tensor([1.0, 2.0], dtype=F64)
    vector = lamina.ones(3)
    got = vmap(lambda s: s * vector)(zero_dim)
    assert got.dtype == lamina.float32  # a number-like tensor gives way to one with dimensions
    got = vmap(lambda s: s + lamina.tensor(1.0, dtype=F64))(lamina.ones(2))
    assert got.dtype == F64
    same(vmap(lambda s: lamina.where(s > 0, s, 0.0))(numbers(4)), numbers(4).clamp(min=0))


def test_reductions_of_one_number():
    x = numbers(4)
    for f in (lamina.sum, lamina.mean, lamina.amax, lambda t: t.sum(0), lambda t: t.sum(-1, True)):
        same(vmap(f)(x), loop(f, x))
    assert vmap(lamina.argmax)(numbers(3, 4)).tolist() == numbers(3, 4).argmax(1).tolist()
    same(
        vmap(lambda t: t.argmax(keepdim=True))(numbers(2, 3, 4)),
        numbers(2, 3, 4).flatten(1).argmax(1).view(2, 1, 1),
    )


def test_views_look_at_the_samples():
    x = lamina.zeros(3, 4)
    vmap(lambda t: t[1:3].fill_(1.0))(x)
    assert x.tolist() == [[0, 1, 1, 0]] * 3
    vmap(lambda t: t.view(2, 2).t().select(0, 1).add_(1))(x)
    assert x.tolist() == [[0, 2, 1, 1]] * 3
    vmap(lambda t: t.mul_(t.sum()), in_dims=1)(x)
    assert x[0].tolist() == [0, 12, 3, 3]
    y = vmap(lambda t: t.clone().transpose_(0, 1).unsqueeze_(0))(numbers(2, 3, 4))
    assert y.shape == (2, 1, 4, 3)


def test_writes_of_values_without_samples():
    x = numbers(3, 4)
    want = x + 1
    vmap(lambda t, s: t.add_(s), in_dims=(0, None))(x, lamina.ones(4, dtype=F64))
    same(x, want)


# ---- indexing -----------------------------------------------------------------------------------

INDICES = [
    lambda i: (i,),
    lambda i: (slice(None), i),
    lambda i: (i, slice(None), i),
    lambda i: (0, slice(None), i),
    lambda i: (slice(None), i, i),
    lambda i: (Ellipsis, i),
    lambda i: (None, i, slice(1, 3), i),
    lambda i: (i[:, None], i),
    lambda i: (i.sum() % 3,),
    lambda i: (slice(None), i[0], i),
    lambda i: (i, slice(0, 2), 1),
]


@pytest.mark.parametrize("number", range(len(INDICES)))
@pytest.mark.parametrize("dims", [(0, 0), (0, None), (None, 0), (-1, 1)])
def test_reading_and_writing_with_indices(number, dims):
    make = INDICES[number]
    index = lamina.tensor([[0, 2], [1, 1], [2, 0]])
    x = numbers(3, 3, 4, 3)

    def given(t, d):
        return t[0] if d is None else t.movedim(0, d)

    def read(t, i):
        return t[make(i)]

    args = (given(x, dims[0]), given(index, dims[1]))
    samples = [
        (x[k if dims[0] is not None else 0], index[k if dims[1] is not None else 0])
        for k in range(3)
    ]
    want = lamina.stack([read(*s) for s in samples])
    same(vmap(read, in_dims=dims)(*args), want)

    def write(t, i, v):
        t = t + 0 * (v.sum() + i.sum())
        t[make(i)] = v
        return t

    v = numbers(*want.shape, seed=2)
    wrote = lamina.stack([write(*s, v[k]) for k, s in enumerate(samples)])
    distinct = number not in (2, 4, 6)
    if distinct or dims[1] is None:
        same(vmap(write, in_dims=(*dims, 0))(*args, v), wrote)
    one = lamina.tensor(5.0, dtype=F64)
    same(
        vmap(lambda t, i: write(t, i, one), in_dims=dims)(*args),
        lamina.stack([write(*s, one) for s in samples]),
    )


def test_writing_with_masks_of_each_sample():
    x = numbers(3, 4)

    def f(t):
        t = t.clone()
        t[t > 0] = 0
        return t

    same(vmap(f)(x), x.clamp(max=0))


# ---- randomness ---------------------------------------------------------------------------------

RANDOM = {
    "randn": lambda x: lamina.randn(50),
    "rand": lambda x: lamina.rand(50),
    "randint": lambda x: lamina.randint(0, 100, (50,)),
    "randperm": lambda x: lamina.randperm(50),
    "rand_like": lamina.rand_like,
    "randn_like of a shared one": lambda x: lamina.randn_like(lamina.ones(50)),
    "dropout": lambda x: F.dropout(x),
    "dropout of a shared one": lambda x: F.dropout(lamina.ones(50)),
    "alpha_dropout": lambda x: F.alpha_dropout(x, training=True),
    "bernoulli": lambda x: lamina.bernoulli(x * 0.5),
    "normal_": lambda x: x.clone().normal_(),
    "uniform_": lambda x: x.clone().uniform_(),
    "exponential_": lambda x: x.clone().exponential_(),
    "normal": lambda x: lamina.normal(x, 1.0),
    "rrelu": lambda x: F.rrelu(-x, training=True),
    "multinomial": lambda x: lamina.multinomial(x, 30),
    "randn with size": lambda x: lamina.randn(5, 10),
}


@pytest.mark.parametrize("name", RANDOM)
def test_randomness(name):
    f, x = RANDOM[name], lamina.ones(3, 50)
    with pytest.raises(RuntimeError, match="randomness"):
        vmap(f)(x)
    rows = vmap(f, randomness="same")(x)
    assert rows.shape[0] == 3 and rows[0].tolist() == rows[1].tolist() == rows[2].tolist()
    rows = vmap(f, randomness="different")(x)
    assert rows.shape[0] == 3 and len({tuple(r.flatten().tolist()) for r in rows}) == 3
    assert rows[0].unique().numel() > 1


def test_randomness_of_two_levels():
    x = lamina.ones(2, 3)

    def rows(inner, outer):
        got = vmap(vmap(lambda _: lamina.rand(4), randomness=inner), randomness=outer)(x)
        assert got.shape == (2, 3, 4)
        return len({tuple(r) for r in got.flatten(0, 1).tolist()})

    assert rows("same", "same") == 1
    assert rows("same", "different") == 2
    assert rows("different", "same") == 3
    assert rows("different", "different") == 6


def test_dropout_that_drops_nothing_is_not_random():
    x = numbers(3, 4)
    same(vmap(lambda t: F.dropout(t, training=False))(x), x)


def test_a_write_of_different_numbers_needs_samples():
    with pytest.raises(RuntimeError, match="inplace randomness"):
        vmap(lambda x: lamina.ones(3).normal_(), randomness="different")(numbers(3))


# ---- networks -----------------------------------------------------------------------------------


def test_batch_norm():
    x, w = numbers(3, 5, 2, 4), numbers(3, 2)

    def train(t):
        return F.batch_norm(t, None, None, training=True)

    same(vmap(train)(x), loop(train, x))
    mean, var = numbers(2), numbers(2) + 2

    def evaluate(t, u):
        return F.batch_norm(t, mean, var, u, u)

    same(vmap(evaluate)(x, w), loop(evaluate, x, w))

    def track(t, m, v):
        m, v = m.clone(), v.clone()
        return F.batch_norm(t, m, v, training=True).sum() * m.sum() * v.sum()

    m, v = numbers(3, 2, seed=3), numbers(3, 2, seed=4) + 2
    same(vmap(track)(x, m, v), loop(track, x, m, v))
    with pytest.raises(RuntimeError, match="running statistics"):
        vmap(lambda t: F.batch_norm(t, mean, var, training=True))(x)


def test_modules_without_running_statistics():
    module = lamina.nn.Sequential(lamina.nn.Conv2d(2, 2, 1), lamina.nn.BatchNorm2d(2))
    assert lamina.func.replace_all_batch_norm_modules_(module) is module
    assert vmap(lambda t: module(t[None])[0])(lamina.ones(3, 2, 4, 4)).shape == (3, 2, 4, 4)


@pytest.mark.parametrize("padding_idx", [None, 1])
def test_tables_of_each_sample(padding_idx):
    tables, at = numbers(3, 5, 2), lamina.tensor([[0, 1, 1], [4, 2, 0], [3, 3, 1]])

    def f(t, i):
        return F.embedding(i, t, padding_idx).sin().sum()

    same(vmap(f)(tables, at), loop(f, tables, at))
    same(vmap(grad(f))(tables, at), loop(grad(f), tables, at))
    for wrong in (5, -1):
        with pytest.raises(IndexError):
            vmap(F.embedding)(lamina.full((3, 2), wrong), tables)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy(reduction, weighted):
    x, y = numbers(3, 6, 4), lamina.tensor([[0, 1, 2, 3, -100, 1]] * 3)
    weight = numbers(4).abs() if weighted else None

    def f(t, k):
        return F.cross_entropy(t, k, weight, reduction=reduction)

    same(vmap(f)(x, y), loop(f, x, y))
    same(vmap(grad(lambda t, k: f(t, k).sum()))(x, y), loop(grad(lambda t, k: f(t, k).sum()), x, y))
    same(vmap(f)(x[:, 0], y[:, 0]), loop(f, x[:, 0], y[:, 0]))


@pytest.mark.parametrize("dims", [(0, None), (None, 0), (0, 0)])
@pytest.mark.parametrize("transposed", [False, True])
def test_convolutions(dims, transposed):
    f = F.conv_transpose2d if transposed else F.conv2d
    x, w, b = numbers(3, 2, 4, 5, 5), numbers(3, 4, 2, 3, 3), numbers(3, 4 if transposed else 4)

    def run(t, k, c):
        return f(t, k, c, padding=1, groups=2)

    bias = b if not transposed else numbers(3, 4)
    args = [t if d == 0 else t[0] for t, d in zip((x, w), dims, strict=True)]
    pick = [[t[i if d == 0 else 0] for t, d in zip((x, w), dims, strict=True)] for i in range(3)]
    want = lamina.stack([run(*p, bias[i]) for i, p in enumerate(pick)])
    same(vmap(run, in_dims=(*dims, 0))(*args, bias), want)
    want = lamina.stack([run(*p, bias[0]) for p in pick])
    same(vmap(run, in_dims=(*dims, None))(*args, bias[0]), want)


# ---- rules of programs --------------------------------------------------------------------------


class Generated(lamina.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, y):
        return x * y, x.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs, output[1])
        ctx.scale = 1.0

    @staticmethod
    def backward(ctx, a, b):
        x, y, e = ctx.saved_tensors
        return ctx.scale * (a * y + b * e), a * x

    @staticmethod
    def jvp(ctx, x_t, y_t):
        x, y, e = ctx.saved_tensors
        return x_t * y + x * y_t, x_t * e


class WithRule(lamina.autograd.Function):
    seen = []

    @staticmethod
    def forward(x, p):
        return x**p

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.p = inputs[1]

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.p * x ** (ctx.p - 1), None

    @staticmethod
    def vmap(info, in_dims, x, p):
        WithRule.seen.append((info.batch_size, info.randomness, in_dims))
        return WithRule.apply(x, p), in_dims[0]


class WithoutRule(lamina.autograd.Function):
    @staticmethod
    def forward(x):
        return x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return g * 2


@pytest.mark.parametrize("dims", [(0, 0), (1, None), (None, 0)])
def test_functions_with_a_generated_rule(dims):
    x, y = numbers(3, 3), numbers(3, 3, seed=1)
    args = [t[0] if d is None else t for t, d in zip((x, y), dims, strict=True)]

    def plain(a, b):
        return a * b, a.exp()

    for got, want in zip(
        vmap(Generated.apply, in_dims=dims)(*args), vmap(plain, in_dims=dims)(*args), strict=True
    ):
        same(got, want)

    def loss(f):
        return lambda a, b: sum(t.sin().sum() for t in f(a, b))

    for transform in (
        lambda f: vmap(grad(loss(f), argnums=(0, 1)), in_dims=dims),
        lambda f: grad(lambda a, b: vmap(loss(f), in_dims=dims)(a, b).sum(), argnums=(0, 1)),
        lambda f: vmap(
            grad(lambda a, b: grad(loss(f), argnums=0)(a, b).sin().sum(), argnums=1), in_dims=dims
        ),
        lambda f: vmap(
            lambda a, b: lamina.func.jvp(f, (a, b), (a.cos(), b.cos()))[1], in_dims=dims
        ),
    ):
        got, want = transform(Generated.apply)(*args), transform(plain)(*args)
        got, want = (t if isinstance(t, tuple) else (t,) for t in (got, want))
        for g, w in zip(got, want, strict=True):
            same(g, w)


def test_functions_inside_two_levels():
    x, y = numbers(2, 3, 4), numbers(3, seed=1)

    def plain(a, b):
        return a * b, a.exp()

    def nested(f):
        def loss(a, b):
            return sum(t.sin().sum() for t in f(a, b))

        inner = vmap(grad(loss, argnums=(0, 1)), in_dims=(0, 0))
        return vmap(vmap(f, in_dims=(1, None)), in_dims=(0, 0)), vmap(inner, in_dims=(0, None))

    (f, g), (f_want, g_want) = nested(Generated.apply), nested(plain)
    for got, want in zip(f(x, x[:, 0, 0]), f_want(x, x[:, 0, 0]), strict=True):
        same(got, want)
    for got, want in zip(g(x, y), g_want(x, y), strict=True):
        same(got, want)
    same(vmap(vmap(lambda t: WithRule.apply(t, 3), in_dims=1))(x), (x**3).transpose(1, 2))


class Marks(lamina.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(ctx, x):
        order = x.argsort().to(x.dtype)
        ctx.mark_non_differentiable(order)
        ctx.save_for_backward(x)
        return x * x, order

    @staticmethod
    def backward(ctx, g, _):
        (x,) = ctx.saved_tensors
        return 2 * x * g


def test_functions_that_take_ctx_in_forward():
    x = numbers(3, 4).requires_grad_()
    square, order = vmap(Marks.apply)(x)
    assert square.requires_grad and not order.requires_grad
    same(square.detach(), (x * x).detach())
    (g,) = lamina.autograd.grad(square.sum(), x)
    same(g, (2 * x).detach())
    same(vmap(grad(lambda t: Marks.apply(t)[0].sum()))(x.detach()), g)


def test_functions_with_a_rule_of_their_own():
    x = numbers(4, 3)
    WithRule.seen.clear()
    same(vmap(lambda t: WithRule.apply(t, 3), in_dims=1)(x), (x**3).T)
    assert WithRule.seen == [(3, "error", (1, None))]
    same(vmap(grad(lambda t: WithRule.apply(t, 3).sum()))(x), 3 * x**2)


def test_functions_without_a_rule():
    with pytest.raises(RuntimeError, match="generate_vmap_rule=True"):
        vmap(WithoutRule.apply)(numbers(3))
    same(grad(lambda x: WithoutRule.apply(x).sum())(numbers(3)), numbers(3) * 0 + 2)


def test_custom_operators():
    calls = []

    @lamina.library.custom_op("test_vmap::twice", mutates_args=())
    def twice(x: lamina.Tensor, n: int = 2) -> lamina.Tensor:
        calls.append(tuple(x.shape))
        return x * n

    x = numbers(3, 4)
    same(vmap(twice)(x), x * 2)
    assert calls == [(4,)] * 3  # no rule: sample by sample

    @twice.register_vmap
    def rule(info, in_dims, x, n=2):
        assert info.batch_size == 3 and in_dims[0] == 1
        return twice(x, n), in_dims[0]

    calls.clear()
    same(vmap(lambda t: twice(t, 5), in_dims=1)(x.T.contiguous()), x * 5)
    assert calls == [(4, 3)]


def test_batched_tensors_cost_others_nothing():
    assert lamina._C._dispatch_keys(lamina.ones(2)) == "DispatchKeySet(AutogradCPU, CPU)"
