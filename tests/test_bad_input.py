"""Nothing that a caller passes ends the process: every call returns or raises an ordinary exception."""

import json
import os
import subprocess
import sys

import pytest

import lamina

HUGE = 2**62
MAX = 2**63 - 1


def raises(*kinds):
    return pytest.raises(kinds or (RuntimeError, TypeError, ValueError, IndexError, OverflowError))


@pytest.mark.parametrize(
    "make", [lamina.empty, lamina.zeros, lamina.ones, lamina.rand, lamina.randn]
)
@pytest.mark.parametrize(
    "size", [(-1,), (2, -3), (MAX, MAX), (HUGE, 4), (MAX,), (2**31, 2**31, 2**31), (1,) * 65]
)
def test_sizes_of_new_tensors(make, size):
    with raises(RuntimeError, MemoryError):
        make(*size)
    with raises(RuntimeError, MemoryError):
        make(size, dtype=lamina.float64)


def test_sizes_beyond_64_bits():
    for size in (2**63, 2**64, -(2**63) - 1, 10**30):
        with raises():
            lamina.zeros(size)
        with raises():
            lamina.ones(2).expand(size, 2)
        with raises():
            lamina.ones(2).reshape(size)


def test_empty_tensors_may_have_huge_other_sizes():
    assert lamina.empty(0, MAX).shape == (0, MAX)
    assert lamina.empty(0, MAX).sum().item() == 0
    for make in (lamina.empty, lamina.empty(0).view, lamina.empty(0).reshape):
        with raises(RuntimeError):
            make(0, 3, HUGE, 4)  # strides beyond 64 bits


def test_a_tensor_survives_memory_errors():
    with raises(RuntimeError, MemoryError):
        lamina.zeros(2**45, dtype=lamina.float64)
    assert lamina.zeros(3).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "size, stride, offset",
    [
        ((11,), (1,), 0),
        ((2,), (10,), 0),
        ((2,), (MAX,), 0),
        ((MAX, MAX), (1, 1), 0),
        ((2, 2), (HUGE, HUGE), 0),
        ((1,), (1,), 10),
        ((1,), (1,), MAX),
        ((1,), (1,), -1),
        ((2,), (-1,), 0),
        ((-1,), (1,), 0),
        ((2,), (1, 1), 0),
        ((1,) * 65, (1,) * 65, 0),
    ],
)
def test_windows_outside_the_storage(size, stride, offset):
    t = lamina.arange(10)
    with raises():
        lamina.as_strided(t, size, stride, offset)
    with raises():
        t.as_strided_(size, stride, offset)
    assert t.tolist() == list(range(10))


def test_storages_of_other_devices():
    t, meta = lamina.arange(3.0), lamina.empty(2, device="meta")
    for a, b in ((t, meta), (meta, t)):
        with pytest.raises(RuntimeError, match="device"):
            a.set_(b)
        with pytest.raises(RuntimeError, match="device"):
            a.set_(b.untyped_storage())
    assert t.sum() == 3 and meta.set_().device.type == "meta"


def test_windows_after_a_change_of_type():
    t = lamina.arange(10, dtype=lamina.int16)
    with raises():
        t[1:].view(lamina.int64)
    with raises():
        t.view(lamina.int32).as_strided((6,), (1,))


def test_recursive_and_ragged_lists():
    endless = []
    endless.append(endless)
    mutual, other = [], []
    mutual.append(other)
    other.append(mutual)
    deep = 1.0
    for _ in range(100_000):
        deep = [deep]
    for data in (
        endless,
        mutual,
        deep,
        [[1, 2], [3]],
        [1, [2]],
        [[], [1]],
        {1: 2},
        "text",
        object(),
        [None],
    ):
        with raises(ValueError, TypeError, RuntimeError, RecursionError, IndexError):
            lamina.tensor(data)
        with raises(ValueError, TypeError, RuntimeError, RecursionError, IndexError):
            lamina.zeros(3)[data] = data
    while isinstance(deep, list):
        deep = deep[0]


def test_lists_that_change_while_they_are_read():
    data = [1.0, 2.0, 3.0, 4.0]

    class Shrinks(float):
        pass

    class Evil:
        def __float__(self):
            data.clear()
            return 1.0

        def __index__(self):
            data.clear()
            return 1

    data[1] = Evil()
    try:
        lamina.tensor(data)
    except Exception:
        pass
    sizes = [2, 2, 2]

    class EvilSize:
        def __index__(self):
            sizes.clear()
            return 2

    sizes[0] = EvilSize()
    try:
        lamina.zeros(sizes)
    except Exception:
        pass


def test_closed_and_read_only_buffers():
    np = pytest.importorskip("numpy")
    import mmap

    frozen = np.arange(3.0)
    frozen.flags.writeable = False
    try:
        assert lamina.from_numpy(frozen).tolist() == [0, 1, 2]
    except (TypeError, ValueError):
        pass
    released = memoryview(bytearray(8))
    released.release()
    for data in (released, mmap.mmap(-1, 4096)):
        if hasattr(data, "close"):
            data.close()
        with raises():
            lamina.tensor(data)
        if hasattr(lamina, "frombuffer"):
            with raises():
                lamina.frombuffer(data, dtype=lamina.uint8)
    array = np.arange(6.0)
    t = lamina.from_numpy(array)
    with pytest.raises(ValueError):
        array.resize((1000,), refcheck=True)
    del array
    assert t.sum().item() == 15


def test_odd_arrays():
    np = pytest.importorskip("numpy")
    for array in (
        np.array(["a"]),
        np.array([object()]),
        np.zeros(2, dtype=[("a", "f4"), ("b", "i4")]),
        np.zeros(2, dtype=">f4"),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        np.zeros(2, dtype=np.longdouble),
        np.ma.masked_array([1.0], mask=[True]).filled,
    ):
        with raises():
            lamina.from_numpy(array)
    backwards = np.arange(6.0)[::-2]
    try:
        assert lamina.from_numpy(backwards).tolist() == [5, 3, 1]
    except ValueError:
        pass
    assert lamina.from_numpy(np.broadcast_to(np.float32(1), (3, 0, 2))).shape == (3, 0, 2)


def test_wrong_types_where_tensors_and_numbers_stand():
    t = lamina.ones(2, 3)
    for call in (
        lambda: lamina.add(None, None),
        lambda: lamina.add(t, "2"),
        lambda: lamina.mm(t, 3),
        lambda: lamina.cat(t),
        lambda: lamina.cat([t, None]),
        lambda: lamina.cat([]),
        lambda: lamina.stack([]),
        lambda: lamina.sum(t, dim="x"),
        lambda: lamina.sum(t, dim=2**70),
        lambda: lamina.zeros("3"),
        lambda: lamina.zeros(2.5),
        lambda: lamina.zeros(2, dtype="float32x"),
        lambda: lamina.zeros(2, device="nowhere"),
        lambda: lamina.zeros(2, device="cuda:200"),
        lambda: lamina.full((2,), None),
        lambda: lamina.arange(0, 1, 0),
        lambda: lamina.arange(float("nan")),
        lambda: lamina.arange(0, float("inf")),
        lambda: lamina.arange(0, 1e30),
        lambda: lamina.linspace(0, 1, -1),
        lambda: lamina.randint(5, 5, (2,)),
        lambda: lamina.randperm(-1),
        lambda: t.view(-1, -1),
        lambda: t.view(4),
        lambda: t.permute(0, 0),
        lambda: t.transpose(0, 9),
        lambda: t.unsqueeze(-9),
        lambda: t.squeeze(17),
        lambda: t.select(0, 5),
        lambda: t.narrow(0, 1, 5),
        lambda: t.narrow(0, MAX, MAX),
        lambda: t.split(-1),
        lambda: t.split([1, 5]),
        lambda: t.chunk(0),
        lambda: t.unfold(0, 5, 1),
        lambda: t.unfold(0, 1, 0),
        lambda: t.unfold(0, -1, 1),
        lambda: t.expand(5, 5, 5),
        lambda: t.expand(-1),
        lambda: t.diagonal(0, 0, 0),
        lambda: t.gather(0, lamina.tensor([[5]])),
        lambda: t.gather(0, lamina.tensor([[-1]])),
        lambda: t.gather(1, lamina.ones(1, 1)),
        lambda: lamina.zeros(3).scatter(0, lamina.tensor([7]), 1.0),
        lambda: lamina.zeros(3).scatter_add(0, lamina.tensor([-4]), lamina.ones(1)),
        lambda: t.index_select(0, lamina.tensor([2])),
        lambda: t[5],
        lambda: t[0, 0, 0],
        lambda: t[lamina.tensor([9])],
        lambda: t[lamina.tensor([True, False, True])],
        lambda: t["x"],
        lambda: t[::0],
        lambda: t[::0],
        lambda: t.__setitem__(9, 1),
        lambda: t.__setitem__(0, lamina.ones(7)),
        lambda: lamina.nn.functional.cross_entropy(t, lamina.tensor([0, 3])),
        lambda: lamina.nn.functional.nll_loss(t, lamina.tensor([0, -1])),
        lambda: t.masked_fill(lamina.ones(2, 3), 0),
        lambda: lamina.mm(t, t),
        lambda: lamina.bmm(t, t),
        lambda: lamina.dot(lamina.ones(2), lamina.ones(3)),
        lambda: t.item(),
        lambda: bool(t),
        lambda: int(t),
        lambda: t.backward(),
        lambda: t.requires_grad_().backward(lamina.ones(1)),
        lambda: lamina.ones(2, dtype=lamina.int64).requires_grad_(),
        lambda: lamina.tensor([]).max(),
        lambda: lamina.empty(2, 0).argmax(1),
        lambda: lamina.ones(2, dtype=lamina.int64) // "a",
        lambda: lamina.ones(2).to(lamina.int64) << "a",
        lambda: lamina.set_num_threads(0),
        lambda: lamina.set_num_threads(-3),
        lambda: lamina.manual_seed("x"),
    ):
        with raises(
            RuntimeError, TypeError, ValueError, IndexError, OverflowError, NotImplementedError
        ):
            call()


def test_operands_without_bytes_beside_others():
    """Nothing reads a meta tensor: the call raises, or has a meta result."""
    c, i = lamina.ones(2, 3), lamina.zeros(2, 3, dtype=lamina.int64)
    b, c0 = lamina.ones(2, 3, dtype=lamina.bool), lamina.ones(())
    m, mi, mb, m0 = (t.to("meta") for t in (c, i, b, c0))
    losses = lamina.nn.functional
    for call in (
        lambda: lamina.stack([c, m]),
        lambda: lamina.cat([m, c]),
        lambda: lamina.cat([c, c], out=m),
        lambda: lamina.fill(c, m0),
        lambda: m.fill_(c0),
        lambda: c.copy_(m),
        lambda: c.gather(0, mi),
        lambda: m.gather(0, i),
        lambda: c.scatter(0, mi, 1.0),
        lambda: c.scatter(0, i, m),
        lambda: m.scatter_add(0, i, c),
        lambda: c.index_select(0, mi[0]),
        lambda: c.index_add(0, i[0, :2], m),
        lambda: c.index_fill(0, i[0], m0),
        lambda: c.index_copy(0, i[0, :2], m),
        lambda: c.masked_fill(mb, 1),
        lambda: c.masked_fill(b, m0),
        lambda: m.masked_fill(b, 1),
        lambda: c.masked_select(mb),
        lambda: c[mi[0]],
        lambda: c.__setitem__(mi[0], 1),
        lambda: c.__setitem__(i[0], m0),
        lambda: c.__setitem__(mb, c0),
        lambda: m.__setitem__(b, c0),
        lambda: lamina.where(mb, c, c),
        lambda: c @ m.t(),
        lambda: c[0] @ m[0],
        lambda: lamina.addmm(m0, c, c.t()),
        lambda: lamina.mm(c, c.t(), out=m),
        lambda: lamina.sort(c, out=(c, mi)),
        lambda: lamina.cumsum(c, 0, out=m),
        lambda: losses.nll_loss(c, mi[:, 0]),
        lambda: losses.nll_loss(c, i[:, 0], weight=m[0]),
        lambda: losses.cross_entropy(c, m),
        lambda: lamina.equal(c, m),
        lambda: c + m,
        lambda: c.mul_(m0),
        lambda: m0.item(),
        lambda: m.tolist(),
        lambda: m.numpy(),
        lambda: lamina.tensor([c0, m0]),
        lambda: c.clone().requires_grad_().sum().backward(m0),
    ):
        try:
            result = call()
        except (RuntimeError, TypeError, NotImplementedError):
            continue
        assert result is None or result.is_meta


def test_integer_division_by_zero_and_overflow():
    lowest = lamina.tensor([-(2**63)])
    assert (lowest * -1).tolist() == [-(2**63)]
    for call in (
        lambda: lamina.tensor([1]) // 0,
        lambda: lamina.tensor([1]) % 0,
        lambda: lowest // -1,
        lambda: lowest % -1,
        lambda: lamina.div(lowest, -1, rounding_mode="trunc"),
        lambda: lamina.fmod(lowest, -1),
        lambda: lamina.remainder(lamina.tensor([1]), lamina.tensor([0])),
        lambda: lamina.fmod(lamina.tensor([1]), 0),
        lambda: lamina.tensor([1]) << 200,
        lambda: lamina.tensor([1]) >> -5,
        lambda: lamina.tensor([2]) ** 200,
        lambda: lamina.tensor([2]) ** lamina.tensor([-1]),
        lambda: lamina.tensor([float("nan"), float("inf"), 1e300]).to(lamina.int8),
        lambda: lamina.tensor([float("nan")]).to(lamina.bool),
    ):
        try:
            call()
        except (RuntimeError, ZeroDivisionError, ValueError):
            pass


def test_bare_types_and_broken_subclasses():
    for kind in (lamina.dtype, lamina.device, lamina.Size, lamina.Generator, type(lamina.float32)):
        for arguments in ((), (None,), (1, 2, 3), ("x" * 1000,)):
            try:
                kind(*arguments)
            except Exception:
                pass
    for arguments in ((), (None,), (3,), ([1.0],), (2, 3)):
        try:
            repr(lamina.Tensor.__new__(lamina.Tensor, *arguments))
        except Exception:
            pass

    class Odd(lamina.Tensor):
        pass

    try:
        repr(Odd.__new__(Odd))
    except Exception:
        pass


FUZZ = r"""
import faulthandler, inspect, json, random, signal, sys, warnings
warnings.simplefilter("ignore")
faulthandler.enable(open(sys.argv[2] + ".trace", "w"))
import lamina
seed, log_path, seconds = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
only = sys.argv[4:]
rng = random.Random(seed)
lamina.set_num_threads(1)
lamina._C._memory_set_limit(2 << 30)
import resource, time
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

def tensor():
    dtypes = [lamina.float32, lamina.float64, lamina.int64, lamina.int32, lamina.uint8, lamina.bool, lamina.float16,
              lamina.bfloat16, lamina.complex64, lamina.int8, lamina.float32, lamina.float32]
    shape = rng.choice([(), (0,), (1,), (3,), (2, 3), (3, 3), (2, 0, 3), (2, 3, 4), (1, 1, 2, 3), (2, 2, 2, 2, 2), (1,) * 7, (300,)])
    t = lamina.zeros(shape, dtype=rng.choice(dtypes))
    kind = rng.randrange(9)
    if kind < 3:
        try: t = t + rng.choice([1, -1, 2, 5])
        except Exception: pass
    if kind == 3 and t.dim() >= 2: t = t.transpose(0, -1)
    if kind == 4 and t.dim() >= 1: t = t[::2]
    if kind == 5: t = t.expand(*([2] + list(t.shape)))
    if kind == 6 and t.dtype in (lamina.float32, lamina.float64): t.requires_grad_()
    if kind == 7 and rng.random() < 0.3: t = lamina.empty(shape, device="meta")
    if kind == 8 and t.dtype == lamina.complex64: t = t.conj()
    return t

def value(depth=0):
    k = rng.randrange(30)
    if k < 11: return tensor()
    if k < 16: return rng.choice([0, 1, -1, 2, 3, -2, 7, 2**31, -2**31, 2**62, 2**63 - 1, -2**63, 2**64, 10**30])
    if k < 18: return rng.choice([0.0, -0.0, 1.5, float("nan"), float("inf"), -1e308, 1e-320])
    if k < 19: return rng.choice([True, False])
    if k < 21: return None
    if k < 22: return rng.choice(["", "x", "mean", "sum", "cpu", "none", "floor", "tanh", "cuda:0", "\ud800"])
    if k < 23: return rng.choice([lamina.float32, lamina.int64, lamina.bool, lamina.complex64, lamina.float64])
    if k < 26 and depth < 2: return rng.choice([list, tuple])(value(depth + 1) for _ in range(rng.randrange(4)))
    if k < 27: return rng.choice([[0], (0, 1), [1, 2], (2, 3), [-1], [0, 0], (3, -1), [2**62, 4], [tensor(), tensor()]])
    if k < 28: return slice(rng.choice([None, 0, -1, 2**63]), rng.choice([None, 1, -5, 2**70]), rng.choice([None, 1, 2, 0, -1]))
    if k < 29: return rng.choice([1 + 2j, b"x", object(), Ellipsis, lamina, int, {}, set(), range(3)])
    return lamina.Size([2, 3])

SKIP = {"manual_seed", "seed", "set_num_threads", "set_default_dtype", "set_default_device", "save", "load", "compile",
        "set_printoptions", "_planted_fault", "set_num_interop_threads", "_print"}
def public(owner, prefix):
    out = []
    for name in sorted(dir(owner)):
        if name in SKIP or (name.startswith("_") and not (name.startswith("__") and prefix == "Tensor.")): continue
        if name in ("__class__", "__init_subclass__", "__subclasshook__", "__reduce_ex__", "__reduce__", "__del__", "__new__", "__init__",
                    "__getattribute__", "__setattr__", "__delattr__", "__dir__", "__sizeof__"): continue
        f = getattr(owner, name, None)
        if callable(f) and not inspect.isclass(f) and not inspect.ismodule(f): out.append((prefix + name, f))
    return out

functions = public(lamina, "") + public(lamina.Tensor, "Tensor.")
for module in ("nn.functional", "special", "linalg", "masked", "fft", "autograd"):
    owner = lamina
    try:
        for part in module.split("."): owner = getattr(owner, part)
    except AttributeError: continue
    functions += public(owner, module + ".")
if only: functions = [f for f in functions if f[0] in only]
KEYWORDS = ["dim", "out", "keepdim", "dtype", "other", "size", "alpha", "device", "requires_grad", "index", "value", "correction"]

log = open(log_path, "w")
def short(v):
    if isinstance(v, lamina.Tensor):
        return "T(%s, %s%s%s)" % (tuple(v.shape), str(v.dtype)[7:], "" if v.is_contiguous() else ", strides %s" % (v.stride(),), ", grad" if v.requires_grad else "")
    if isinstance(v, (list, tuple)): return "[" + ", ".join(map(short, v)) + "]"
    return ascii(v)
calls = 0
end = time.monotonic() + seconds
order = list(functions)
bad = []
while time.monotonic() < end:
    rng.shuffle(order)
    for name, f in order:
        if time.monotonic() > end: break
        args = [value() for _ in range(rng.choice([0, 1, 1, 2, 2, 2, 3, 3, 4, 5]))]
        if rng.random() < 0.8:
            if args: args[0] = tensor()
            else: args = [tensor()]
        if rng.random() < 0.1 and args: args[0] = [tensor(), tensor()]
        kwargs = {k: value() for k in rng.sample(KEYWORDS, rng.choice([0, 0, 0, 1, 1, 2]))}
        log.seek(0); log.truncate()
        log.write("%s(%s, %s)" % (name, ", ".join(map(short, args)), {k: short(v) for k, v in kwargs.items()})); log.flush()
        calls += 1
        try:
            result = f(*args, **kwargs)
            if isinstance(result, lamina.Tensor) and result.requires_grad and result.numel() < 1000:
                result.sum().backward()
            if rng.random() < 0.05: repr(result)
            del result
        except (KeyboardInterrupt, SystemExit): raise
        except SystemError as e: bad.append("%s: %r" % (name, e))
        except MemoryError: pass
        except Exception as e:
            text = str(e)
            if "nternal" in text and "assert" in text.lower(): bad.append("%s: %s" % (name, text[:300]))
        except BaseException as e: bad.append("%s: %r" % (name, e))
log.seek(0); log.truncate(); log.write("done"); log.flush()
print(json.dumps({"calls": calls, "functions": len(functions), "bad": bad[:20]}))
"""


def fuzz(seed, log, seconds, *names):
    command = [sys.executable, "-c", FUZZ, str(seed), str(log), str(seconds), *names]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=seconds + 200, errors="replace"
    )


@pytest.mark.parametrize("seed", range(4))
def test_random_arguments(seed, tmp_path):
    """Random arguments for every public function and method, in a process of their own."""
    log = tmp_path / "log"
    seconds = float(os.environ.get("LAMINA_FUZZ_SECONDS", 5))
    done = fuzz(seed, log, seconds)
    trace = (
        log.with_suffix(".trace").read_text()[:2000] if log.with_suffix(".trace").exists() else ""
    )
    assert done.returncode == 0, (
        f"the process ended with {done.returncode} in {log.read_text()}\n{trace}\n{done.stderr[-3000:]}"
    )
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["bad"] == []
    assert result["functions"] > 300
    assert result["calls"] > 300


def test_views_of_more_elements_than_64_bits_count():
    one = lamina.ones(1)
    with pytest.raises(RuntimeError, match="overflow"):
        one.expand(2**40, 2**40)
    assert lamina.ones(0, 1, 1).expand(0, 2**40, 2**40).numel() == 0
    assert lamina.ones(1).expand(2**40, 2**20).numel() == 2**60


def test_set_takes_no_bytes_of_another_device():
    x = lamina.ones(3)
    with pytest.raises(RuntimeError, match="device"):
        x.set_(lamina.empty(3, device="meta"))
    assert x.tolist() == [1.0, 1.0, 1.0] and x.set_().numel() == 0


def test_sizes_of_what_is_scattered():
    """Every combination of small sizes: a result of the size of the input, or an error; never another element's memory."""
    import itertools

    sizes = [(), (0,), (1,), (3,), (2, 3), (0, 3)]
    calls = {
        "scatter": lambda x, i, s: lamina.scatter(x, 0, i, s),
        "scatter_add": lambda x, i, s: lamina.scatter_add(x, 0, i, s),
        "scatter_reduce": lambda x, i, s: lamina.scatter_reduce(x, 0, i, s, "amax"),
        "index_add": lambda x, i, s: lamina.index_add(x, 0, i, s),
        "index_copy": lambda x, i, s: lamina.index_copy(x, 0, i, s),
        "gather": lambda x, i, s: lamina.gather(x, 0, i).new_zeros(x.shape),
    }
    done = 0
    for name, call in calls.items():
        for x, i, s in itertools.product(sizes, repeat=3):
            index = lamina.zeros(i, dtype=lamina.int64)
            try:
                result = call(lamina.zeros(x), index, lamina.ones(s))
            except (RuntimeError, IndexError):
                continue
            assert result.shape == x, (name, x, i, s)
            if name == "scatter" and index.numel():
                # Numbers come from the source alone, which is at least as large.
                assert lamina.ones(s).numel() >= index.numel()
            done += 1
    assert done > 100
