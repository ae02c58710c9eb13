"""What importing Lamina costs and loads."""

import subprocess
import sys


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()


def test_numpy_is_not_imported():
    assert run("import sys, lamina; print('numpy' in sys.modules)") == ["False"]


def test_import_loads_few_modules():
    code = (
        "import sys; before = set(sys.modules); import lamina; new = set(sys.modules) - before;"
        "print(sum(not n.startswith('lamina') for n in new), sum('__builtins__' in vars(sys.modules[n])"
        " and n.startswith('lamina') for n in new))"
    )
    others, own = map(int, run(code))
    assert others <= 4
    assert own <= 12  # modules that have run; the rest wait for the first look


def test_submodules_load_when_asked_for():
    code = (
        "import sys, lamina; print('lamina.nn.functional' in sys.modules); lamina.nn.functional; "
        "print('lamina.nn.functional' in sys.modules); print(hasattr(lamina, 'nonsense'))"
    )
    assert run(code) == ["False", "True", "False"]


def test_lazy_submodules_become_ordinary_modules():
    code = (
        "import types, lamina; from lamina import nn; first = type(nn) is types.ModuleType;"
        "import lamina.nn.functional as F; print(first, type(nn) is types.ModuleType,"
        "nn is lamina.nn, nn.functional is F, 'functional' in dir(nn), hasattr(nn, 'nonsense'))"
    )
    assert run(code) == ["False", "True", "True", "True", "True", "False"]


def test_a_submodule_runs_once():
    code = (
        "from lamina.autograd.gradcheck import GradcheckError, gradcheck; import lamina, sys;"
        "A = lamina.autograd; print(A is sys.modules['lamina.autograd'], A.gradcheck is gradcheck,"
        "sys.modules['lamina.autograd.gradcheck'].GradcheckError is GradcheckError)"
    )
    assert run(code) == ["True", "True", "True"]
    code = (
        "from lamina.autograd.function import Function; import lamina;"
        "print(lamina.autograd.Function is Function)"
    )
    assert run(code) == ["True"]


def test_threads_wait_for_a_lazy_submodule():
    code = """
import threading, lamina
seen = []
def look():
    seen.append(lamina.testing.assert_close is not None and lamina.nn.functional.relu is not None)
threads = [threading.Thread(target=look) for _ in range(16)]
for t in threads: t.start()
for t in threads: t.join()
print(seen.count(True))
"""
    assert run(code) == ["16"]


def test_functions_are_found_without_a_module_getattr():
    # With one, the interpreter could not specialize `lamina.add`.
    assert run("import lamina; print('__getattr__' in vars(lamina))") == ["False"]
