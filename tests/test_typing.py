"""Types of the public names, as mypy sees them."""

import re
import subprocess
import sys
from pathlib import Path

import lamina.utils.data
import pytest

import lamina

pytest.importorskip("mypy")
ROOT = Path(__file__).resolve().parents[1]
MODULES = (
    "nn",
    "nn.functional",
    "nn.init",
    "optim",
    "optim.lr_scheduler",
    "utils.data",
    "linalg",
    "masked",
    "distributions",
    "special",
    "autograd",
    "func",
)


def look(name):
    value = lamina
    for part in name.split("."):
        value = getattr(value, part)
    return value


def public(value, names=None):
    return sorted(n for n in (names or dir(value)) if not n.startswith("_"))


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """Lines that mypy prints for the examples and for a program that names everything."""
    folder = tmp_path_factory.mktemp("types")
    lines = ["import lamina", "import lamina.nn.functional", "import lamina.utils.data"]
    lines += [f"reveal_type(lamina.{n})" for n in public(lamina)]
    lines += ["t = lamina.ones(2)"]
    lines += [f"reveal_type(t.{n})" for n in public(lamina.Tensor)]
    for module in MODULES:
        names = public(look(module), getattr(look(module), "__all__", None))
        lines += [f"reveal_type(lamina.{module}.{n})" for n in names]
    program = folder / "everything.py"
    program.write_text("\n".join(lines) + "\n")
    config = folder / "mypy.ini"
    # The package of a source tree that is linked together is found like the user's own files.
    config.write_text(
        f"[mypy]\ncache_dir = {folder / 'cache'}\nmypy_path = {folder}\nfollow_imports = silent\n"
        "check_untyped_defs = true\n"
    )
    (folder / "lamina").symlink_to(Path(lamina.__file__).parent)
    examples = sorted(str(p) for p in (ROOT / "examples").glob("*.py"))
    command = [sys.executable, "-m", "mypy", "--config-file", str(config), str(program), *examples]
    result = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert result.stderr == ""
    return lines, result.stdout.splitlines()


def test_examples_and_all_public_names_have_types(checked):
    _, found = checked
    assert [line for line in found if "error:" in line] == []


def test_types_are_not_any(checked):
    lines, found = checked
    loose = []
    for line in found:
        match = re.match(r'everything\.py:(\d+): note: Revealed type is "(.*)"$', line)
        if match and re.fullmatch(r"Any|def \(\*Any, \*\*Any\) -> Any", match[2]):
            loose.append(lines[int(match[1]) - 1])
    assert not set(loose) - {"reveal_type(lamina.ops)"}


def test_results_are_tensors(checked):
    """Most operators give tensors: a type checker must know it."""
    lines, found = checked
    results = {}
    for line in found:
        match = re.match(r'everything\.py:(\d+): note: Revealed type is "(.*)"$', line)
        if match:
            results[lines[int(match[1]) - 1][12:-1]] = match[2]
    for name in (
        "lamina.einsum",
        "lamina.nn.functional.relu",
        "lamina.linalg.norm",
        "t.exp",
        "t.sum",
    ):
        assert "-> lamina._ops.Tensor" in results[name], (name, results[name])


def test_the_typed_example_runs():
    command = [sys.executable, str(ROOT / "examples" / "typed.py")]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert re.fullmatch(r"loss 0\.0\d+, largest error 0\.\d\d\n", text)
