"""TorchScript archives: values against PyTorch's, the module that comes back, and archives that mean harm."""

import copy
import io
import pickle
import warnings
import zipfile
from pathlib import Path

import pytest

import lamina

DATA = Path(__file__).parent / "data" / "torchscript"  # made by make_archives.py there
NAMES = ("control", "recurrent", "frozen", "function")


def same(a, b, at=""):
    if isinstance(b, lamina.Tensor):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), at
        lamina.testing.assert_close(a, b, rtol=1e-5, atol=1e-5, equal_nan=True)
    elif isinstance(b, dict):
        assert list(a) == list(b)
        for key in b:
            same(a[key], b[key], f"{at}/{key}")
    elif isinstance(b, tuple | list):
        assert len(a) == len(b)
        for i, pair in enumerate(zip(a, b)):
            same(*pair, f"{at}/{i}")
    else:
        assert a == b, at


@pytest.mark.parametrize("name", NAMES)
def test_values(name):
    arguments, expected = lamina.load(DATA / f"{name}.expected.pt")
    extra = {"note.txt": "", "absent.txt": "stays"}
    module = lamina.jit.load(DATA / f"{name}.pt", _extra_files=extra).eval()
    assert extra == {"note.txt": f"this is {name}".encode(), "absent.txt": "stays"}
    with lamina.no_grad():
        same(module(*arguments), expected)
    again = lamina.jit.load(io.BytesIO((DATA / f"{name}.pt").read_bytes()), map_location="cpu")
    with lamina.no_grad():
        same(again.eval()(*arguments), expected)


def test_gradients_reach_parameters():
    (words,), _ = lamina.load(DATA / "recurrent.expected.pt")
    module = lamina.jit.load(DATA / "recurrent.pt")
    module(words)[0].square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in module.parameters())


def test_the_module_that_comes_back():
    module = lamina.jit.load(str(DATA / "control.pt"))
    assert isinstance(module, lamina.jit.ScriptModule) and isinstance(module, lamina.nn.Module)
    assert type(module).__name__ == "RecursiveScriptModule" and module.original_name == "Control"
    kept = {f"{m}.{p}" for m in ("layer", "layers.0", "layers.1") for p in ("weight", "bias")}
    assert {n for n, _ in module.named_parameters()} == kept
    assert [n for n, _ in module.named_buffers()] == ["shift"] and "shift" in module.state_dict()
    assert module.table == {"x": 1, "y": 2} and module.names == ["p", "q"] and module.K == 3
    assert module.mixed[:2] == (1, "z") and module.color.name == "G"
    assert len(module.layers) == 2 and "a" in module.kinds and len(list(module.layers)) == 2
    assert module.training and not module.eval().layers[0].training
    assert module.code.startswith("def forward(self,\n    x: Tensor,\n    n: int=3,")
    assert "\n  layers = self.layers\n" in module.code
    assert module.other(lamina.ones(2), mode="mean")[1] == 4
    assert module.to(lamina.float64).layer.weight.dtype == lamina.float64
    with pytest.raises(NotImplementedError):
        len(module)
    with pytest.raises(AttributeError, match="absent"):
        _ = module.absent
    with pytest.raises(lamina._missing.MissingError, match="jit.save"):
        module.save("nowhere.pt")
    with pytest.raises(lamina._missing.MissingError):
        lamina.jit.ScriptModule()


def test_copies_have_parameters_of_their_own():
    module = lamina.jit.load(DATA / "control.pt")
    other = copy.deepcopy(module)
    x = lamina.ones(2, 3)
    same(other(x)["p"], module(x)["p"])
    other.shift += 1
    assert not lamina.equal(other.shift, module.shift)
    other.load_state_dict(module.state_dict())
    assert lamina.equal(other.shift, module.shift)


def test_errors_of_the_program():
    module = lamina.jit.load(DATA / "control.pt")
    with pytest.raises(lamina.jit.Error, match="builtins.ValueError: bad mode max"):
        module.other(lamina.ones(2), mode="max")


def test_load_of_either_kind():
    with pytest.raises(RuntimeError, match="jit.load"):
        lamina.load(DATA / "function.pt")
    with pytest.warns(UserWarning, match="dispatching to 'torch.jit.load'"):
        module = lamina.load(DATA / "function.pt", weights_only=False)
    assert isinstance(module, lamina.jit.ScriptModule)
    with pytest.raises(RuntimeError, match="no TorchScript archive"):
        lamina.jit.load(DATA / "function.expected.pt")
    with pytest.raises(ValueError, match="does not exist"):
        lamina.jit.load(DATA / "nothing.pt")


# ---- archives that mean harm ----------------------------------------------------------------------

FUNCTION = "def forward(self: __torch__.M,\n    x: Tensor) -> Tensor:\n"


def archive(body, state=b"", head="", members="  training : bool\n", more=()):
    """An archive of one module whose forward has this body."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    source = (
        f"{head}class M(Module):\n  __parameters__ = []\n  __buffers__ = []\n{members}"
        f"  def forward(self: __torch__.M,\n    x: Tensor) -> Tensor:\n{lines}"
    )
    data = b"\x80\x02c__torch__\nM\n)\x81}(X\x08\x00\x00\x00training\x88" + state + b"ub."
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        made.writestr("a/data.pkl", data)
        made.writestr("a/code/__torch__.py", source)
        made.writestr("a/constants.pkl", b"\x80\x02).")
        made.writestr("a/version", b"3\n")
        for name, text in more:
            made.writestr(name, text)
    return io.BytesIO(out.getvalue())


def ran(body, **more):
    return lamina.jit.load(archive(body, **more))(lamina.ones(2))


def test_the_maker_of_bad_archives_makes_good_ones():
    assert lamina.equal(ran("return torch.add(x, 1)"), lamina.full((2,), 2.0))
    assert ran('return torch.format("{}-{}", 1, [2])') == "1-[2]"


FORBIDDEN = (
    "import os\nreturn x",
    "from os import system\nreturn x",
    'return __import__("os")',
    'return open("/etc/passwd")',
    'return eval("1")',
    'return exec("1")',
    "return globals()",
    "return x.__class__",
    "return (x).__class__.__mro__",
    "return self.forward.__globals__",
    'return getattr(x, "__class__")',
    'return getattr(self, "__dict__")',
    "return torch.load",
    'return torch.load("x")',
    "return torch.compile(x)",
    'return torch.hub.load("a", "b")',
    "return torch.serialization.load(x)",
    'return torch.from_file("/etc/passwd")',
    'return ops.prim.__init__("x")',
    "return ops.prim.Exec(x)",
    "return CONSTANTS.c7",
    "return CONSTANTS.__class__",
    "return __torch__.M.__class__",
    "return __torch__.N.__new__(__torch__.N)",
    "return __builtins__",
    "return int",
    "return (lambda: x)()",
    "return [y for y in x]",
    "return {**x}",
    "f(*x)\nreturn x",
    "return x if x else open",
    "def g():\n  return x\nreturn x",
    "class G:\n  pass\nreturn x",
    "global y\nreturn x",
    "del x\nreturn x",
    "try:\n  pass\nexcept int:\n  pass\nreturn x",
    "for y in x:\n  pass\nreturn x",
    "x.__class__ = 3\nreturn x",
    "__x = 3\nreturn x",
    "with open('x'):\n  pass\nreturn x",
    "return f'{x}'",
    "return b'x'",
    "yield x",
    "return (x := 3)",
    "return undefined",
)


@pytest.mark.parametrize("body", FORBIDDEN)
def test_forbidden_source(body):
    with pytest.raises((RuntimeError, NotImplementedError)):
        lamina.jit.load(archive(body))


RUNS = (
    "return (x).register_hook(x)",
    "return (x).numpy()",
    "return (x).grad_fn",
    "_0 = (x).tolist\nreturn _0()",
    "return x(1)",
    '_0 = "{0.__class__}"\nreturn (_0).format(x)',
    "return (self).register_forward_hook(x)",
    "return (self).state_dict()",
    "self.forward = x\nreturn x",
    "self._modules = x\nreturn x",
    "return ops.prim.type(x)",
    'return torch.percentFormat("%999999999d", 1)',
    "return (self).forward(x, )",
)


@pytest.mark.parametrize("body", RUNS)
def test_what_fails_when_it_runs(body):
    with pytest.raises((AttributeError, TypeError, RuntimeError)):
        ran(body)


def test_braces_of_format_say_nothing():
    assert ran('return torch.format("{0.__class__}", x)') == "{0.__class__}"


DEEP = (
    "return " + "(" * 5000 + "x" + ")" * 5000,
    "return " + "[" * 199 + "[x][0]" + "]" * 199,
    "return " + "-" * 100000 + "1",
    "return " + "x" + ".a" * 100000,
    "return " + "torch.neg(" * 100 + "x" + ")" * 100 + "[0]" * 150,
    "return " + "torch.neg(" * 50 + "-" * 90 + "torch.neg(" * 140 + "x" + ")" * 190,
    "return " + "x" + "[0]" * 50000,
    "return " + "x" + "(0)" * 50000,
    "return " + "1 if x else " * 50000 + "2",
    "return " + "not " * 100000 + "x",
    "return " + "9" * 10000,
    "return 0x" + "f" * 100000,
    "return " + "lambda: " * 10000 + "1",
    "\n".join("  " * i + "if x:" for i in range(150)),
    "return 'x",
    "return \0",
    "return \udcff".encode("utf-8", "surrogateescape").decode("latin1"),
)


@pytest.mark.parametrize("body", DEEP, ids=range(len(DEEP)))
def test_deep_and_huge_source(body):
    with pytest.raises(RuntimeError):
        lamina.jit.load(archive(body))


@pytest.mark.parametrize(
    "head",
    (
        "import os\n",
        "x = 3\n",
        "class E(Enum):\n  __class__ = 1\n",
        "class P(NamedTuple):\n  _a : int\n",
        "@open\nclass E:\n  pass\n",
        "class E(open):\n  pass\n",
        "class E(Module, metaclass=type):\n  pass\n",
        "class E:\n  def __del__(self) -> NoneType:\n    return None\n",
        "class E:\n  def __class__(self) -> NoneType:\n    return None\n",
        "class E:\n  def f(self, *a) -> NoneType:\n    return None\n",
        "class E:\n  x = open('f')\n",
        "class E:\n  def f(self, x: int=torch.ones([3])) -> int:\n    return x\n",
    ),
)
def test_forbidden_heads(head):
    state = b"X\x01\x00\x00\x00vc__torch__\n" + (b"P" if "P(" in head else b"E") + b"\n"
    with pytest.raises(RuntimeError):
        lamina.jit.load(
            archive("return x", state=state, head=head, members="  training : bool\n  v : Any\n")
        )


@pytest.mark.parametrize(
    "state",
    (
        b"X\x01\x00\x00\x00vcos\nsystem\n(X\x02\x00\x00\x00lstR",
        b"X\x01\x00\x00\x00vc__builtin__\neval\n(X\x01\x00\x00\x001tR",
        b"X\x01\x00\x00\x00vc__torch__\nAbsent\n",
        b"X\x01\x00\x00\x00vc__torch__\nM\n)R",
        b"X\x01\x00\x00\x00vc__torch__.../os\npath\n",
        b"X\x01\x00\x00\x00vctorch.jit._pickle\nbuild_intlist\n(K\x01tR",
        b"X\x01\x00\x00\x00v(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuJ\xff\xff\xff\x7ftQ",
        b"K\x01K\x02",
    ),
)
def test_pickles_that_name_what_they_may_not(state):
    with pytest.raises((RuntimeError, pickle.UnpicklingError)):
        lamina.jit.load(archive("return x", state=state, members="  training : bool\n  v : Any\n"))


def test_attributes_that_are_not_declared_are_not_set():
    module = lamina.jit.load(
        archive("return x", state=b"X\x07\x00\x00\x00forwardK\x03X\x08\x00\x00\x00_modulesK\x03")
    )
    assert lamina.equal(module(lamina.ones(2)), lamina.ones(2)) and list(module.children()) == []


def test_archives_that_are_cut_or_changed():
    data = (DATA / "function.pt").read_bytes()
    for at in [*range(0, len(data), 97), *range(len(data) - 30, len(data))]:
        with pytest.raises(RuntimeError):
            lamina.jit.load(io.BytesIO(data[:at]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for at in range(0, len(data), 13):
            changed = bytearray(data)
            changed[at] ^= 0x5A
            try:
                lamina.jit.load(io.BytesIO(bytes(changed)))
            except Exception:
                pass  # an error, or a change in what nobody reads


def test_an_archive_that_would_inflate():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("a/constants.pkl", b"\x80\x02).")
        made.writestr("a/code/__torch__.py", b" " * (1 << 26))
    with pytest.raises(RuntimeError, match="compressed records"):
        lamina.jit.load(io.BytesIO(out.getvalue()))
