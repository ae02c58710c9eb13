"""Operators called by their full names, private ones too, with operands that do not fit.

test_bad_input.py fuzzes the public functions. Here every call of derivative_cases.py and of CALLS, which are good,
gets one to three arguments changed: another size, type, layout or device, absurd numbers, lists too long or short.
"""

import itertools
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

import lamina

call = lamina._C._call_operator
MAX = 2**63 - 1
ORDINARY = (RuntimeError, TypeError, ValueError, IndexError, OverflowError, MemoryError)


def rand(*sizes):
    g = lamina.Generator()
    g.manual_seed(len(sizes))
    return lamina.rand(*sizes, generator=g)


def _norms():
    x, rows, c = rand(2, 4, 3), rand(3, 4), rand(4)
    yield "_layer_norm_backward", rows, rows, rand(3, 1), rand(3, 1), c, 4, True, True, True
    yield "_layer_norm_backward", rows, rows, None, rand(3, 1), None, 4, True, True, False
    yield "_group_norm_backward", x, x, rand(2, 2), rand(2, 2), c, 2, True, True, True
    yield "_batch_norm_backward", x, x, c, c, c, True, True, True, True
    long = rand(2, 4, 40)
    yield "_batch_norm_backward", long, long, c, c, None, False, True, True, True
    yield "_batch_norm", x, c, c, c.clone(), c.clone(), True, 0.1, 1e-5
    yield "_batch_norm", long, c, c, c.clone(), c.clone(), False, 0.1, 1e-5
    yield "_layer_norm", rows, [4], c, c, 1e-5
    yield "_fused_rms_norm", rows, [4], c, 1e-5
    yield "_group_norm", x, c, c, 2, 4, 3, 2, 1e-5


def _network():
    q, k, v, m = rand(2, 2, 3, 4), rand(2, 2, 5, 4), rand(2, 2, 5, 3), rand(2, 2, 3, 5)
    out = rand(2, 2, 3, 3)
    yield "_fused_attention", q, k, v, None, False, 0.5
    yield "_fused_attention", q, k, v, m, False, 0.5
    yield "_fused_attention", q[0], k[0], v[0], m[0], False, 0.5
    yield "_fused_attention_backward", out, q, k, v, None, True, 0.5
    yield "_fused_attention_backward", out, q, k, v, m, False, 0.5
    i = lamina.tensor([[0, 1], [2, 1]])
    yield "embedding", rand(3, 4), i, -1, False, False
    yield "embedding_dense_backward", rand(2, 2, 4), i, 3, -1, True
    yield "embedding_renorm_", rand(3, 4), i, 1.0, 2.0
    one, classes = lamina.tensor(1.0), lamina.tensor([1, 2])
    yield "_nll_loss_backward", one, rand(2, 3), classes, rand(3), 1, -100, one
    yield "_nll_loss_backward", rand(2), rand(2, 3), classes, None, 0, -100, one


def _steps():
    def params():
        return [rand(2, 3), rand(5)]

    def counts():
        return [lamina.tensor(1.0), lamina.tensor(1.0)]

    yield "_sgd_step_", params(), params(), params(), 0.1, 0.1, 0.9, 0.1, True, False
    yield "_adam_step_", *(params() for _ in range(5)), counts(), 0.1, 0.9, 0.99, 1e-8, 0.1, False, True, False  # fmt: skip
    yield "_adam_step_", *(params() for _ in range(4)), [], counts(), 0.1, 0.9, 0.99, 1e-8, 0.1, True, False, True  # fmt: skip
    yield "_rmsprop_step_", *(params() for _ in range(5)), counts(), 0.1, 0.9, 1e-8, 0.1, 0.9, True, False  # fmt: skip
    yield "_adagrad_step_", *(params() for _ in range(3)), counts(), 0.1, 0.1, 0.1, 1e-8, False


def _images():
    x, w, b, one, no = rand(2, 4, 6, 6), rand(6, 2, 3, 3), rand(6), [1, 1], [0, 0]
    yield "convolution", x, w, b, one, one, one, False, no, 2
    yield "convolution", x, rand(4, 3, 3, 3), b, [2, 2], one, one, True, one, 2
    yield "convolution", rand(2, 4, 9), rand(6, 4, 3), b, [2], [1], [2], False, [0], 1
    yield "convolution_backward", rand(2, 6, 6, 6), x, w, [6], one, one, one, False, no, 2, [True] * 3  # fmt: skip
    yield "convolution_backward", rand(2, 6, 13, 13), x, rand(4, 3, 3, 3), [6], [2, 2], one, one, True, one, 2, [True] * 3  # fmt: skip
    yield "conv2d.padding", x, w, b, one, "same", one, 2
    yield "_max_pool_values", x, [2, 2], [2, 2], no, one, False
    image, grid = rand(1, 2, 4, 5), rand(1, 3, 2, 2) * 2 - 1
    volume, places = rand(1, 2, 3, 4, 5), rand(1, 3, 2, 2, 3) * 2 - 1
    for name in ("input_grad_fused", "grid_grad_fused", "input_grad", "grid_grad"):
        yield f"_grid_sample_{name}", rand(1, 2, 3, 2), image, grid, 0, 1, True
        yield f"_grid_sample_{name}", rand(1, 2, 3, 2, 2), volume, places, 0, 0, False
    yield "_grid_sample_composed", image, grid, 2, 1, True
    yield "affine_grid_generator", rand(1, 2, 3), [1, 2, 3, 4], True
    yield "_col2im", rand(2, 16, 25), [2, 4, 6, 6], [2, 2], one, no, one
    yield "_channel_unshuffle", rand(1, 4, 2), 2
    yield "_channels_expanded", rand(3), [2, 3, 4]
    yield "_adaptive_avg_pool_again", rand(1, 3, 4, 3), [1, 3, 2, 2], 2


def _order():
    x, steps = rand(3, 4), rand(6, 2, 4).log_softmax(2)
    yield "median.dim", x, 1, True
    yield "kthvalue", x, 2, 1, False
    yield "bincount", lamina.tensor([1, 2, 1]), rand(3), 2
    yield "searchsorted.Tensor", lamina.arange(5.0), rand(3)
    yield "ctc_loss.IntList", steps, lamina.tensor([[1, 2, 1], [3, 2, 0]]), [6, 5], [3, 2], 0, 1, False  # fmt: skip


def known():
    """The calls of operators that there are."""
    for group in (_norms, _network, _steps, _images, _order):
        for name, *args in group():
            try:
                lamina._C._dispatch_schema(f"aten::{name}")
            except Exception:
                continue
            yield f"aten::{name}", args


def test_the_calls_are_good():
    for name, args in known():
        call(name, *args)


@pytest.mark.parametrize("sizes", list(itertools.product((0, 1, 3), (0, 1, 4), (0, 1, 33))))
def test_small_and_empty_sizes(sizes):
    """Every network operator on (n, c, l), forward and backward: a result or an ordinary exception."""
    n, c, l = sizes
    f = lamina.nn.functional
    x = lamina.rand(sizes, requires_grad=True)
    w, b, no = rand(c), rand(c), lamina.zeros(n, l, dtype=lamina.int64)
    calls = [
        lambda: call("aten::_group_norm", x, w, b, n, c, l, 2, 1e-5)[0],
        lambda: f.group_norm(x, 1, w, b),
        lambda: f.batch_norm(x, b, w, w, b, True),
        lambda: f.batch_norm(x, b, w, w, b, False),
        lambda: f.instance_norm(x, weight=w, bias=b),
        lambda: f.layer_norm(x, (l,), rand(l)),
        lambda: f.rms_norm(x, (c, l)),
        lambda: f.binary_cross_entropy(x, x.detach()),
        lambda: f.nll_loss(x, no),
        lambda: f.cross_entropy(x, no, w, label_smoothing=0.1),
        lambda: f.glu(x, 1),
        lambda: f.prelu(x, w),
        lambda: f.embedding(no, x[0]),
        lambda: f.conv1d(x, rand(2, c, 1)),
        lambda: f.conv1d(x, rand(c, 1, 3), padding=1, groups=c),
        lambda: f.conv_transpose1d(x, rand(c, 2, 3), None, 3, 1),
        lambda: x.median(1).values,
        lambda: x.kthvalue(1, 2).values,
        lambda: f.unfold(x[..., None], (2, 1), 1, 1),
        lambda: f.grid_sample(x[..., None], rand(n, 2, 2, 2) * 3 - 1, align_corners=False),
        lambda: f.ctc_loss(x, no[: min(n, 1)], (n,) * c, (1,) * c),
    ]
    for k, step in itertools.product((1, 2, 40), (1, 3)):
        calls += [
            lambda k=k, s=step: f.max_pool1d(x, k, s, k // 2, ceil_mode=True),
            lambda k=k, s=step: f.avg_pool1d(x, k, s, k // 2),
        ]
    for size in (0, 1, 7):
        calls += [
            lambda s=size: f.adaptive_avg_pool1d(x, s),
            lambda s=size: f.adaptive_max_pool1d(x, s),
            lambda s=size: f.scaled_dot_product_attention(x, rand(n, s, l), rand(n, s, 2)),
            lambda s=size: f.scaled_dot_product_attention(
                x, rand(n, s, l), rand(n, s, 2), is_causal=True
            ),
        ]
        calls += [
            lambda s=size, m=m: f.interpolate(x, s, mode=m) for m in ("nearest", "linear", "area")
        ]
        calls += [
            lambda s=size, m=m: f.pad(x, (s, -1), m)
            for m in ("constant", "reflect", "replicate", "circular")
        ]
    for one in calls:
        try:
            one().sum().backward()
        except ORDINARY as error:
            assert "internal fault" not in str(error), error


REFUSED = {
    "_layer_norm_backward": lambda: (
        rand(3, 4), rand(3, 4), rand(3, 1), rand(3, 1), rand(5), 4, True, True, True
    ),
    "_batch_norm_backward": lambda: (
        rand(2, 4, 3), rand(2, 4, 0), rand(4), rand(4), rand(4), True, True, True, True
    ),
    "_group_norm_backward": lambda: (
        rand(2, 4, 3), rand(2, 4, 3), rand(2), rand(2, 2), None, 2, True, True, True
    ),
    "_batch_norm": lambda: (rand(2, 4, 3), rand(3), None, None, None, True, 0.1, 1e-5),
    "_group_norm": lambda: (rand(2, 4, 3), None, None, 2, 4, MAX, 2, 1e-5),
    "_fused_attention": lambda: (
        rand(2, 2, 4), rand(2, 2, 5, 4), rand(2, 2, 5, 3), None, True, 0.5
    ),
    "_fused_attention_backward": lambda: (
        rand(2, 3, 1), rand(2, 3, 4), rand(2, 5, 4), rand(2, 5, 3), None, False, 0.5
    ),
    "embedding_dense_backward": lambda: (rand(2, 4), lamina.tensor([0, 9]), 3, -1, False),
    "_nll_loss_backward": lambda: (
        rand(()), rand(2, 3), lamina.empty(2**60, 0, 1, 3), None, 1, -100, rand(())
    ),
    "_sgd_step_": lambda: ([rand(2)], [None], [rand(2)], 0.1, 0.0, 0.9),
    "_adam_step_": lambda: ([rand(2)], [rand(2)], [], [rand(2)], [], [rand(())], 0.1, 0.9, 0.9, 1e-8),
    "_rmsprop_step_": lambda: ([rand(2)], [rand(2)], [None], [], [], [rand(())], 0.1, 0.9, 1e-8),
    "_max_pool_values": lambda: (rand(2, 2, 2), [1] * 6, [1] * 6, [0], [1], False),
    "_max_pool_scatter": lambda: (
        rand(3, 2, 2, 2), lamina.zeros(3, 2, 2, 2, dtype=lamina.int64), rand(1, 2, 4, 4), 2
    ),
    "_avg_pool_backward": lambda: (
        rand(1, 2, 2, 2), rand(1, 2, 4, 4), [2] * 7, [], [0], False, True, None, 7
    ),
    "_adaptive_avg_pool_backward": lambda: (rand(3, 2, 1, 1), rand(1, 2, 4, 4), 2),
    "_adaptive_avg_pool_again": lambda: (rand(1, 3, 4, 3), [], -1),
    "_border_pad_backward": lambda: (rand(2, 3, 9), rand(2, 3, 3), [3, 3], 0),
    "_resample_backward": lambda: (
        rand(1, 2, 3, 5), [3, 5], [1, 2, 4, 3], 17, True, None, None, None
    ),
    "_grid_sample_input_grad_fused": lambda: (
        rand(1, 2, 1, 1), rand(1, 2, 4, 5), rand(1, 3, 2, 2), 0, 1, True
    ),
    "_grid_sample_composed": lambda: (rand(4), rand(1), 0, 0, True),
    "_col2im": lambda: (rand(1, 2, 1), [], [1, 1], [1, 1], [0, 0], [1, 1]),
    "_channel_unshuffle": lambda: (rand(4), 0),
    "_channels_expanded": lambda: (rand(3), [3]),
    "diagonal_backward": lambda: (rand(3, 1), [2, 3], 1, 0, 1),
    "select_backward": lambda: (rand(9, 9), [2, 3], 0, 1),
    "slice_backward": lambda: (rand(9, 9), [2, 3], 0, 0, 2, 1),
    "_reshape_alias": lambda: (rand(2, 3), [3, 3, -2147483649], [2, 1, 1]),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    with pytest.raises(ORDINARY):
        call(f"aten::{name}", *REFUSED[name]())


@pytest.mark.parametrize("seed", range(2))
def test_changed_arguments(seed, tmp_path):
    """In a process of its own, which must live."""
    log = tmp_path / "log"
    seconds = float(os.environ.get("LAMINA_FUZZ_SECONDS", 4))
    done = subprocess.run(
        [sys.executable, __file__, str(seed), str(log), str(seconds)],
        capture_output=True,
        text=True,
        timeout=seconds + 200,
        errors="replace",
    )
    at = log.read_text() if log.exists() else ""
    assert done.returncode == 0, (
        f"the process ended with {done.returncode} in {at}\n{done.stderr[-3000:]}"
    )
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["bad"] == []
    assert result["calls"] > 100


# ---- the process ------------------------------------------------------------------------------------------------


class Changes:
    """Draws arguments that nearly fit."""

    # Either small, or more than any machine has: what lies between would fill the memory.
    numbers = (0, 1, -1, 2, 3, 5, -2, 7, 65, 2**50, 2**62, MAX, -(2**31), -(2**63))
    reals = (0.0, -1.0, 0.5, float("nan"), float("inf"), -float("inf"), 1e308, 1e-300)
    types = tuple(
        getattr(lamina, n)
        for n in "float32 float64 float16 bfloat16 int64 int32 uint8 bool complex64 complex128".split()
    ) + (lamina.float8_e4m3fn, lamina.uint16)

    def __init__(self, seed):
        self.random = random.Random(seed)

    def filled(self, sizes, dtype):
        if dtype.is_floating_point or dtype.is_complex:
            return (lamina.rand(sizes) * 4 - 1).to(dtype)
        return lamina.randint(-1, self.random.choice((2, 3, 200)), sizes).to(dtype)

    def layout(self, t):
        kind = self.random.randrange(5)
        if kind == 0:
            return t.transpose(0, -1) if t.dim() else t
        if kind == 1:
            return t.to(self.random.choice(self.types))
        if kind == 2:
            return t[:1].expand_as(t) if t.dim() else t
        if kind == 3:
            return t.conj() if t.is_complex() else call("aten::_neg_view", t)
        return t.detach().clone().requires_grad_(t.is_floating_point())

    def tensor(self, t):
        r = self.random
        kind = r.random()
        if kind < 0.1:
            return r.choice((lamina.empty(0, MAX), lamina.empty(2**60, 0, 1, 3))).to(t.dtype)
        if kind < 0.2:
            return t.to("meta")
        if kind < 0.35:
            return self.layout(t)
        if kind < 0.4:
            return None
        sizes = [min(s, 40) for s in t.shape]
        for _ in range(r.choice((1, 1, 2))):
            at = r.randrange(len(sizes) + 1)
            how = r.randrange(4)
            if how == 0:
                sizes.insert(at, r.choice((0, 1, 2)))
            elif at < len(sizes) and how == 1:
                sizes.pop(at)
            elif at < len(sizes):
                sizes[at] = r.choice((0, 1, 2, 3, 8, sizes[at] + 1))
        return self.filled(sizes, t.dtype)

    def value(self, v):
        r = self.random
        if isinstance(v, lamina.Tensor):
            return self.tensor(v)
        if isinstance(v, bool):
            return not v
        if isinstance(v, int):
            return r.choice((v + 1, v - 1, -v, *self.numbers))
        if isinstance(v, float):
            return r.choice(self.reals)
        if isinstance(v, str):
            return r.choice(("", "none", "same", "x" * 1000))
        if isinstance(v, (list, tuple)):
            v = list(v)
            if v and r.random() < 0.6:
                at = r.randrange(len(v))
                v[at] = self.value(v[at])
            elif v and r.random() < 0.5:
                v.pop()
            else:
                v.append(v[0] if v else 1)
            return v
        return r.choice((2, 0.5, [1], rand(2, 3))) if v is None else v


def fuzz(seed, log, seconds):
    """Changes good calls until the time is over; the log holds what is being called."""
    import time

    import derivative_cases

    good = list(known())
    plain = lamina._C._call_operator

    def remembering(name, *args, **kwargs):
        if not kwargs:
            good.append((name, list(args)))
        return plain(name, *args, **kwargs)

    lamina._C._call_operator = derivative_cases.call = remembering
    for case in derivative_cases.cases(derivative_cases.F64):
        case(*(t.clone() for t in case.operands))
    lamina._C._call_operator = derivative_cases.call = plain

    changes, calls, bad = Changes(seed), 0, []
    end = time.monotonic() + seconds
    with open(log, "w") as file:
        while time.monotonic() < end:
            name, args = changes.random.choice(good)
            args = [a.clone() if isinstance(a, lamina.Tensor) else a for a in args]
            for _ in range(changes.random.choice((1, 1, 2, 3))):
                if args:
                    at = changes.random.randrange(len(args))
                    args[at] = changes.value(args[at])
            shown = [
                f"{list(a.shape)} {a.dtype} {a.device}" if isinstance(a, lamina.Tensor) else a
                for a in args
            ]
            file.seek(0)
            file.truncate()
            file.write(f"{name} {shown}"[:2000])
            file.flush()
            calls += 1
            try:
                plain(name, *args)
            except ORDINARY as error:
                if "internal fault" in str(error):
                    bad.append(f"{name} {shown}: {error}"[:500])
            except BaseException as error:
                bad.append(f"{name} {shown}: {error!r}"[:500])
    print(json.dumps({"calls": calls, "bad": bad[:10]}))


if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]
    fuzz(int(sys.argv[1]), sys.argv[2], float(sys.argv[3]))
