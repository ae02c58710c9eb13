"""Results have the same bits for 1, 2 and 7 threads, in every family of kernels."""

import zlib

import pytest

import lamina

N = 1 << 18  # elements: far above what one thread takes at once


def inputs():
    lamina.manual_seed(0)
    a = lamina.randn(N)
    m = lamina.randn(384, 257)
    return {
        "a": a,
        "b": lamina.randn(N),
        "d": lamina.randn(N, dtype=lamina.float64),
        "h": lamina.randn(N).to(lamina.bfloat16),
        "i": lamina.randint(-1000, 1000, (N,)),
        "c": lamina.randn(N // 2, dtype=lamina.complex64),
        "tall": lamina.randn(40000, 7),
        "wide": lamina.randn(7, 40000),
        "square": lamina.randn(512, 512),
        "cube": lamina.randn(64, 65, 66),
        "m": m,
        "n": lamina.randn(257, 391),
        "v": lamina.randn(257),
        "batch": lamina.randn(9, 65, 70),
        "batch2": lamina.randn(9, 70, 61),
        "at": lamina.randint(0, 1000, (N,)),
        "rows": lamina.randint(0, 40000, (30000,)),
    }


def backward_of_mm(x):
    a = x["m"].clone().requires_grad_()
    b = x["n"].clone().requires_grad_()
    lamina.softmax(a @ b, 1).square().sum().backward()
    return a.grad, b.grad


def seeded(make):
    def run(_):
        lamina.manual_seed(7)
        return make()

    return run


CASES = {
    # pointwise: direct, strided, broadcast, mixed types, programs
    "add": lambda x: x["a"] + x["b"],
    "exp": lambda x: x["a"].exp(),
    "sin_double": lambda x: x["d"].sin(),
    "strided": lambda x: x["square"].t() * x["square"] + 1,
    "broadcast": lambda x: x["tall"] - x["tall"][:1],
    "mixed": lambda x: x["a"] * x["i"] + x["d"],
    "half": lambda x: lamina.nn.functional.gelu(x["h"]),
    "complex": lambda x: x["c"].exp() * x["c"].conj(),
    "integer": lambda x: x["i"] // 7 % 5,
    "where": lambda x: lamina.where(x["a"] > 0, x["b"], x["a"]),
    "addcmul": lambda x: lamina.addcmul(x["a"], x["b"], x["a"], value=0.5),
    "copy": lambda x: x["cube"].permute(2, 0, 1).contiguous(),
    "convert": lambda x: (x["a"].to(lamina.float16), x["d"].to(lamina.int32)),
    "in_place": lambda x: x["a"].clone().mul_(x["b"]).add_(1),
    # reductions over everything, over rows, over columns, over middle dimensions
    "sum": lambda x: x["a"].sum(),
    "sum_double": lambda x: x["d"].sum(),
    "sum_half": lambda x: x["h"].sum(),
    "sum_complex": lambda x: x["c"].sum(),
    "sum_rows": lambda x: x["tall"].sum(1),
    "sum_columns": lambda x: x["tall"].sum(0),
    "sum_wide": lambda x: (x["wide"].sum(1), x["wide"].sum(0)),
    "sum_middle": lambda x: (x["cube"].sum(1), x["cube"].sum((0, 2))),
    "sum_strided": lambda x: x["square"].t().sum(1),
    "mean": lambda x: (x["a"].mean(), x["cube"].mean(0)),
    "prod": lambda x: (x["d"] / 2 + 1).prod(),
    "var": lambda x: (x["a"].var(), x["tall"].var(0), x["tall"].std(1)),
    "amax": lambda x: (x["a"].amax(), x["tall"].amin(0)),
    "max_with_index": lambda x: x["tall"].max(0),
    "argmax": lambda x: (x["i"].argmax(), x["wide"].argmin(1)),
    "any_all": lambda x: ((x["i"] == 999).any(), (x["tall"] > -9).all(0)),
    "logsumexp": lambda x: (x["square"].logsumexp(1), x["tall"].logsumexp(0)),
    # scans and softmax
    "cumsum": lambda x: (x["a"].cumsum(0), x["tall"].cumsum(0), x["wide"].cumsum(1)),
    "cumprod": lambda x: (x["square"] / 2).cumprod(0),
    "softmax": lambda x: (x["square"].softmax(1), x["tall"].softmax(0), x["a"].softmax(0)),
    "log_softmax": lambda x: (x["square"].log_softmax(1), x["tall"].log_softmax(0)),
    "cross_entropy": lambda x: lamina.nn.functional.cross_entropy(x["tall"], x["at"][:40000] % 7),
    # products
    "mm": lambda x: x["m"] @ x["n"],
    "mm_transposed": lambda x: x["n"].t() @ x["m"].t(),
    "mm_double": lambda x: x["m"].double() @ x["n"].double(),
    "mm_half": lambda x: x["m"].bfloat16() @ x["n"].bfloat16(),
    "mm_integer": lambda x: x["square"].to(lamina.int64) @ x["square"].to(lamina.int64),
    "mm_complex": lambda x: x["c"][:65536].view(256, 256) @ x["c"][65536:].view(256, 256),
    "mv": lambda x: (x["m"] @ x["v"], x["square"].t() @ x["square"][0]),
    "dot": lambda x: (x["a"] @ x["b"], x["c"].dot(x["c"])),
    "bmm": lambda x: x["batch"] @ x["batch2"],
    "addmm": lambda x: lamina.addmm(x["n"][0], x["m"], x["n"], beta=0.5, alpha=2),
    "gradients": backward_of_mm,
    # indexing
    "gather": lambda x: x["wide"].gather(1, x["at"].view(4, -1)),
    "index_select": lambda x: x["tall"].index_select(0, x["rows"]),
    "index": lambda x: x["tall"][x["rows"]],
    "masked": lambda x: (x["a"][x["b"] > 0], x["a"].masked_fill(x["b"] > 0, 2.0)),
    "scatter_add": lambda x: lamina.zeros(1000).scatter_add(0, x["at"], x["a"]),
    "scatter": lambda x: lamina.zeros(1000).scatter(0, x["at"], x["a"]),
    "index_put": lambda x: lamina.zeros(1000).index_put((x["at"],), x["a"], accumulate=True),
    "cat": lambda x: (lamina.cat([x["a"], x["b"]]), lamina.stack([x["a"], x["b"]], 1)),
    "nonzero": lambda x: (x["i"] > 0).nonzero(),
    # sorting
    "sort": lambda x: (*x["a"].sort(), *x["i"].sort(descending=True), *x["tall"].sort(0)),
    "topk": lambda x: (*x["wide"].topk(20), *x["a"].topk(5)),
    # random fills
    "rand": seeded(lambda: (lamina.rand(N), lamina.rand(N, dtype=lamina.float64))),
    "randn": seeded(lambda: (lamina.randn(N), lamina.randn(N + 5, dtype=lamina.float64))),
    "randint": seeded(lambda: lamina.randint(0, 1 << 40, (N,))),
    "randperm": seeded(lambda: lamina.randperm(N)),
    "arange": lambda x: (lamina.arange(N), lamina.linspace(0, 1, N), lamina.full((N,), 3)),
}


def bits(result):
    results = result if isinstance(result, tuple) else (result,)
    out = []
    for t in results:
        t = t.detach().contiguous()
        t = lamina.view_as_real(t) if t.is_complex() else t
        raw = t.reshape(-1).view(lamina.uint8) if t.dtype != lamina.bool else t.to(lamina.uint8)
        out.append((tuple(t.shape), str(t.dtype), zlib.crc32(raw.numpy().tobytes())))
    return out


@pytest.fixture(scope="module")
def x():
    return inputs()


@pytest.fixture(autouse=True)
def restore_threads():
    before = lamina.get_num_threads()
    yield
    lamina.set_num_threads(before)


@pytest.mark.parametrize("name", CASES)
def test_same_bits_for_any_number_of_threads(name, x):
    seen = {}
    for threads in (1, 2, 7):
        lamina.set_num_threads(threads)
        assert lamina.get_num_threads() == threads
        seen[threads] = bits(CASES[name](x))
    assert seen[1] == seen[2] == seen[7]
