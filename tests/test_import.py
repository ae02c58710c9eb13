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
    code = "import sys; before = set(sys.modules); import lamina; print(len(set(sys.modules) - before))"
    assert int(run(code)[0]) <= 8


def test_submodules_load_when_asked_for():
    code = (
        "import sys, lamina; print('lamina.nn' in sys.modules); lamina.nn.functional; "
        "print('lamina.nn' in sys.modules); print(hasattr(lamina, 'nonsense'))"
    )
    assert run(code) == ["False", "True", "False"]
