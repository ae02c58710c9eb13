"""`import torch` gives Lamina: finding, names, versions, what is missing, the command line."""

import subprocess
import sys
import textwrap

import pytest
from lamina._needs import missing_names
from lamina.torch_version import TorchVersion


def python(*arguments, text=None):
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, input=text, timeout=120
    )


def run(code, **keywords):
    """What a program prints that runs under the alias."""
    result = python("-m", "lamina", "-c", textwrap.dedent(code), **keywords)
    assert result.returncode == 0, result.stderr
    return result.stdout.split("\n")[:-1]


def test_modules_are_the_same_under_both_names():
    code = """
        import torch, lamina, torch.nn.functional as F, torch.utils._pytree
        from torch import nn, Tensor
        from lamina.nn import functional
        print(torch is lamina, nn.functional is F is functional, Tensor is lamina.Tensor)
        print(lamina.utils._pytree is torch.utils._pytree, torch.nn.__name__, torch.__name__)
        import importlib.util
        print(importlib.util.find_spec("torch") is not None, bool(torch.__file__), bool(torch.__path__))
    """
    assert run(code) == ["True True True", "True torch.nn torch", "True True True"]


def test_version_and_metadata():
    code = """
        import importlib.metadata as m, torch
        print(torch.__version__, m.version("torch"), torch.version.cuda, torch.version.__version__)
        print(torch.__version__ >= "2.8", torch.__version__ < (2, 9), torch.__version__.split(".")[1])
        d = m.distribution("torch")
        print(d.metadata["Name"], d.read_text("top_level.txt").strip(), [str(f) for f in d.files])
        print(sum(x.metadata["Name"] == "torch" for x in m.distributions()))
    """
    assert run(code) == [
        "2.13.0+lamina 2.13.0+lamina None 2.13.0+lamina",
        "True False 13",
        "torch torch ['torch/__init__.py']",
        "1",
    ]


def test_types_say_that_they_come_from_torch():
    code = """
        import torch, pickle, pickletools
        print(type(torch.ones(1)), torch.Size, torch.dtype, torch.device, torch.Generator, torch.no_grad)
        print(torch.float32.__module__, torch.finfo.__module__, torch.nn.functional.relu.__module__[:5])
        data = pickle.dumps([torch.int8, torch.Size([2]), torch.device("cpu"), torch.strided, torch.preserve_format], 2)
        print(*[a for o, a, _ in pickletools.genops(data) if o.name == "GLOBAL"], sep="; ")
        print(pickle.loads(data))
    """
    lines = run(code)
    assert lines[0] == (
        "<class 'torch.Tensor'> <class 'torch.Size'> <class 'torch.dtype'> <class 'torch.device'> "
        "<class 'torch.Generator'> <class 'torch.no_grad'>"
    )
    assert lines[1] == "torch torch torch"
    assert lines[2] == (
        "torch int8; torch Size; torch device; torch strided; torch preserve_format"
    )
    assert lines[3].startswith("[torch.int8, torch.Size([2])")


def test_missing_names_raise_where_they_are_used():
    code = """
        import torch, torch.distributed.fsdp
        from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
        from torch.utils.data.dataloader import _BaseDataLoaderIter
        class Derived(FSDP): pass
        def annotated(x: torch.fx.GraphModule | None, op=torch.distributed.ReduceOp.SUM): pass
        for use in (Derived, FSDP, lambda: torch.quantize_per_tensor(1), lambda: bool(torch.quantize_per_channel)):
            try: use()
            except NotImplementedError as error: print(isinstance(error, AttributeError), str(error).split(":")[0])
        class Net(torch.nn.modules.rnn.GRU): pass
        print(isinstance(1, FSDP), hasattr(torch, "q_scale"), getattr(torch, "q_scale", 7), FSDP)
    """
    assert run(code) == [
        "True torch.distributed.fsdp.FullyShardedDataParallel is missing",
        "True torch.distributed.fsdp.FullyShardedDataParallel is missing",
        "True torch.quantize_per_tensor is missing",
        "True torch.quantize_per_channel is missing",
        "False False 7 <class 'torch.distributed.fsdp.FullyShardedDataParallel'>",
    ]


def test_what_torch_has_not_either_is_an_error_at_once():
    code = """
        import torch
        for text in ("from torch import nonsense", "import torch.nonsense", "torch.nonsense", "torch.nn.nonsense"):
            try: exec(text)
            except (ImportError, AttributeError) as error: print(type(error).__name__)
    """
    assert run(code) == ["ImportError", "ModuleNotFoundError", "AttributeError", "AttributeError"]


def test_backends_answer_truly():
    code = """
        import torch
        from torch.backends import cudnn
        import torch.backends.mps
        print(torch.cuda.is_available(), torch.cuda.device_count(), torch.backends.mps.is_available(),
              torch.xpu.is_available(), torch.distributed.is_available(), cudnn.is_available(),
              torch.backends.cuda.is_built(), torch.accelerator.is_available(), torch.jit.is_scripting(),
              torch.compiler.is_compiling(), torch.backends.mkl.is_available())
        cudnn.benchmark = True
        torch.backends.cuda.matmul.allow_tf32 = True
        torch.cuda.manual_seed_all(0)
        for request in (torch.cuda.current_device, torch.cuda.synchronize, lambda: torch.ones(1, device="cuda")):
            try: request()
            except AssertionError as error: print("CUDA" in str(error))
        print(torch.compile(abs) is abs, torch.jit.script(abs) is abs)
    """
    lines = run(code)
    assert lines[0] == "False 0 " + " ".join(["False"] * 9)
    assert lines[1:] == ["True", "True", "True", "True True"]


def test_default_device_of_a_block():
    code = """
        import torch
        from torch.utils._device import DeviceContext
        with torch.device("meta"):
            print(torch.ones(2).device, torch.ones(2, device="cpu").device, torch.tensor([1.0]).device)
        with DeviceContext("meta"):
            print(torch.zeros(2).device, torch.get_default_device())
        x = torch.ones(1)
        with torch.device("meta"):
            print(x.new_zeros(1).device, torch.zeros_like(x).device, x.to(torch.float64).device)
    """
    assert run(code) == ["meta cpu meta", "meta meta", "cpu cpu cpu"]


def test_command_line(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, helper, torch\nif __name__ == '__main__':\n    print(sys.argv[1:], helper.x, "
        "torch.arange(3).sum().item(), __file__ == sys.argv[0])\n"
    )
    (tmp_path / "helper.py").write_text("x = 5\n")
    result = python("-m", "lamina", str(script), "a", "--b")
    assert result.stdout == "['a', '--b'] 5 3 True\n", result.stderr
    assert python("-m", "lamina", "-m", "timeit", "-n", "1", "import torch").returncode == 0
    assert python("-m", "lamina", str(tmp_path / "none.py")).returncode == 2
    assert "--missing" in python("-m", "lamina", "--help").stdout
    script.write_text("raise SystemExit(3)\n")
    assert python("-m", "lamina", str(script)).returncode == 3


def test_missing_is_found_without_running(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import torch\nimport torch.nn.functional as F\nfrom torch.onnx import export as ex\n"
        "raise SystemError('not to be run')\n\n\ndef f(F):\n    return F.anything\n\n\n"
        "print(F.relu, F.grouped_mm, torch.ones, torch.bogus, ex)\n"
        "torch.ones(2).to_mkldnn(3).tolist().append(1)\n"
    )
    result = python("-m", "lamina", "--missing", str(script))
    names = [line.split(": ")[1] for line in result.stdout.splitlines()]
    assert result.returncode == 1
    assert names == [
        "torch.Tensor.to_mkldnn  (if the object is a tensor)",
        "torch.bogus  (torch 2.13 has no such name)",
        "torch.nn.functional.grouped_mm",
        "torch.onnx.export",
    ]
    assert missing_names("import torch\nprint(torch.ones(2))") == []
    with pytest.raises(SyntaxError):
        missing_names("def")


def test_install_refuses_beside_another_torch():
    code = (
        "import sys, types; sys.modules['torch'] = types.ModuleType('torch')\n"
        "import lamina\ntry: lamina.install_as_torch()\nexcept RuntimeError as e: print('refused')"
    )
    assert python("-c", code).stdout == "refused\n"
    code = "import lamina; lamina.install_as_torch(); lamina.install_as_torch(); import torch"
    assert python("-c", code).returncode == 0


@pytest.mark.parametrize(
    "low, high",
    [("2.9", "2.13.0"), ("2.13.0rc1", "2.13.0"), ("2.13.0", "2.13.0+cpu"), ("1.13.1", "2.0")],
)
def test_versions_compare_like_versions(low, high):
    assert TorchVersion(low) < high
    assert TorchVersion(high) > TorchVersion(low)
    assert not TorchVersion(high) <= low
    assert TorchVersion("2.13.0") == "2.13"
    assert TorchVersion("2.13.0+lamina") >= (2, 8)
    assert hash(TorchVersion("2.1")) == hash("2.1")
