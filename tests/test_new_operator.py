"""A made-up operator, added by one paragraph, is there in every floor.

The generator and the op list are copied to a temporary folder and a paragraph is appended to one file of `ops/`. Then

- the generator runs on the original and on the copy: nothing else changes than what the paragraph adds (operators
  move between shards, so shards are compared together, line by line);
- what is new is compiled: the generated handle, kernels, autograd node and binding of that operator alone (the
  generator runs on a folder that holds only the paragraph), and the two tables of the full copy that name every
  operator. These are linked with the object files of the existing build into a second library and a second
  extension, in which nothing else differs. That is what an incremental build would give, in a fraction of its time;
- a child process imports the package with that extension and uses the operator from Python, C++ and autograd.

Without a build folder whose generated code fits `ops/` (as `./run setup` leaves it) the last two parts are skipped.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PARAGRAPH = """\
- op: squareplus(Tensor self, Scalar b=4) -> Tensor
  variants: [function, method, inplace, out]
  kind: pointwise
  promote: float
  dtypes: [float]
  tile: (self + sqrt(self * self + b)) / 2
  grad: {self: "grad * (1 + self / sqrt(self * self + b)) / 2"}
  doc: (self + sqrt(self^2 + b)) / 2, a smooth relative of ReLU.
"""
FLAGS = "-std=c++20 -O0 -fPIC -ffp-contract=off -ftls-model=initial-exec -fvisibility-inlines-hidden".split()

# What users would write; runs in a process that has the new operator.
USE = """
import math
import lamina
x = lamina.tensor([-1.5, 0.0, 2.0, 1e3], requires_grad=True)
want = [(v + math.sqrt(v * v + 4)) / 2 for v in x.tolist()]
y = lamina.squareplus(x)
assert all(abs(a - b) < 1e-4 for a, b in zip(y.tolist(), want)), y
assert y.grad_fn.name() == "SquareplusBackward0", y.grad_fn
y.sum().backward()
slope = [(1 + v / math.sqrt(v * v + 4)) / 2 for v in x.tolist()]
assert all(abs(a - b) < 1e-6 for a, b in zip(x.grad.tolist(), slope)), x.grad
assert lamina.equal(x.detach().squareplus(b=4), y.detach())
out = lamina.empty(4)
assert lamina.squareplus(x.detach(), 9, out=out) is out and abs(out[1].item() - 1.5) < 1e-6
z = lamina.zeros(2, 3, dtype=lamina.float64).t()
assert z.squareplus_() is z and z.tolist() == [[1.0] * 2] * 3
assert lamina.squareplus(lamina.tensor([0, 3])).dtype == lamina.float32
assert lamina.squareplus(lamina.ones(2, 1, device="meta")).shape == (2, 1)
for wrong in (lambda: lamina.squareplus(lamina.ones(1, dtype=lamina.complex64)),
              lambda: lamina.squareplus(lamina.ones(1, dtype=lamina.int64).squareplus_())):
    try:
        wrong()
    except RuntimeError as error:
        assert "squareplus" in str(error) or "cast" in str(error), error
    else:
        raise AssertionError("no error")
assert "aten::squareplus" in lamina._C._dispatch_get_all_op_names()
table = lamina._C._dispatch_dump_table("aten::squareplus")
assert "CPU: registered at ops/activation.yaml" in table and "AutogradCPU" in table, table
assert "smooth relative" in lamina.squareplus.__doc__
assert lamina.relu(lamina.tensor([-1.0, 1.0])).tolist() == [0.0, 1.0]  # the others are still there
print("used")
"""
CPP = """
#include <cstdio>
#include <cmath>
#include "lamina/lamina.h"
int main() {
  const lamina::Tensor x = lamina::requires_grad(lamina::from_values<float>({3}, {1}));
  const lamina::Tensor y = lamina::squareplus(x, 16);
  lamina::backward(y);
  const bool right = lamina::item<float>(y) == 4 && std::abs(lamina::item<float>(lamina::grad(x)) - 0.8f) < 1e-6f;
  std::puts(right ? "used" : "wrong");
}
"""


def generate(out, folder, *options):
    command = [sys.executable, "-m", "opgen", "--out", str(out), *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {str(p.relative_to(out)): p.read_text() for p in out.rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    """Outputs before and after the paragraph, those of the paragraph alone, and their folder."""
    folder = tmp_path_factory.mktemp("new_operator")
    for part in ("opgen", "ops"):
        shutil.copytree(
            ROOT / part, folder / "copy" / part, ignore=shutil.ignore_patterns("__pycache__")
        )
    (folder / "copy" / "lamina" / "tile").mkdir(parents=True)
    shutil.copy(ROOT / "lamina" / "tile" / "ops.def", folder / "copy" / "lamina" / "tile")
    before = generate(folder / "before", folder / "copy")
    with open(folder / "copy" / "ops" / "activation.yaml", "a") as file:
        file.write(PARAGRAPH)
    after = generate(folder / "after", folder / "copy")
    (folder / "alone" / "ops").mkdir(parents=True)
    (folder / "alone" / "ops" / "activation.yaml").write_text(PARAGRAPH)
    alone = generate(folder / "mini", folder / "copy", "--ops", str(folder / "alone" / "ops"))
    return folder, before, after, alone


def by_kind(files):
    """Lines of the outputs; shards of a kind count as one file."""
    kinds = {}
    for path, text in files.items():
        kinds.setdefault(re.sub(r"_\d\.cpp$", "_*.cpp", path), Counter()).update(text.splitlines())
    return kinds


def test_only_what_the_paragraph_adds_is_new(generated):
    _, before, after, _ = generated
    assert set(after) - set(before) == {"lamina/ops/squareplus.h"}
    old, new = by_kind(before), by_kind(after)
    changed = {kind for kind in old if old[kind] != new[kind]}
    assert changed == {
        "docs/operators/activation.md",
        "lamina/generated/autograd_*.cpp",
        "lamina/generated/kernels_*.cpp",
        "lamina/generated/ops_*.cpp",
        "lamina/generated/python_*.cpp",
        "lamina/generated/python_tables.cpp",
        "lamina/generated/table.cpp",
        "lamina/ops.h",
        "python/lamina/_ops.pyi",
    }
    for kind in changed:
        gone = old[kind] - new[kind]
        assert not [line for line in gone if "kNumStaticOperators" not in line], kind
        assert any("squareplus" in line for line in new[kind] - old[kind]), kind


def test_header_node_stub_and_page(generated):
    _, _, after, _ = generated
    header = after["lamina/ops/squareplus.h"]
    assert "Tensor squareplus(const Tensor& self, const Scalar& b" in header
    assert "Tensor& out" in header and "squareplus_" in header
    assert any("SquareplusBackward0" in t for p, t in after.items() if "autograd_" in p)
    stub = after["python/lamina/_ops.pyi"]
    assert (
        "def squareplus(input: Tensor, b: _Number = ..., *, out: Tensor | None = ...) -> Tensor: ..."
        in stub
    )
    assert re.search(r"^    def squareplus_\(self, b", stub, re.MULTILINE)
    page = after["docs/operators/activation.md"]
    assert "## squareplus" in page and "a smooth relative of ReLU" in page and "Gradient:" in page


def test_show_prints_that_operator_only(generated):
    folder, *_ = generated
    command = [sys.executable, "-m", "opgen", "--show", "squareplus"]
    text = subprocess.run(
        command, cwd=folder / "copy", check=True, capture_output=True, text=True
    ).stdout
    for part in (
        "lamina/ops/squareplus.h",
        "const dispatch::Operator squareplus;",
        "Tensor squareplus_kernel(",
        "SquareplusBackward0",
        "PyObject* py_top_squareplus(",
        "def squareplus(input: Tensor",
        "## squareplus",
    ):
        assert part in text, part
    for other in ("relu", "softplus", "py_top_add", "aten::add"):
        assert other not in text, other
    unknown = subprocess.run(
        [*command[:-1], "nonsense"], cwd=folder / "copy", capture_output=True, text=True
    )
    assert unknown.returncode != 0 and "nonsense" in unknown.stderr


def build_folder():
    """The CMake folder that the imported library, or ./run setup, was built in."""
    maps = Path("/proc/self/maps")
    import lamina  # noqa: F401  (maps its libraries)

    loaded = {line.split()[-1] for line in maps.read_text().splitlines() if "liblamina.so" in line}
    folders = [Path(path).parent for path in loaded] + [ROOT / "build" / "release"]
    return next((f for f in folders if (f / "build.ninja").exists()), None)


def inputs_of(build, target):
    """Object files that a target is linked from."""
    text = (build / "build.ninja").read_text()
    match = re.search(rf"^build (?:\S*/)?{target}: \S+ (.*?) \|", text, re.MULTILINE)
    return [build / name for name in match[1].split() if name.endswith(".o")]


@pytest.fixture(scope="module")
def built(generated):
    """A folder to put on PYTHONPATH, with the new operator in its library."""
    folder, before, _, _ = generated
    build = build_folder()
    if os.environ.get("LAMINA_SANITIZED"):
        pytest.skip("the plain job does this")
    if build is None or shutil.which("g++") is None:
        pytest.skip("needs g++ and the build folder of ./run setup")
    for path, text in before.items():
        made = build / "gen" / path
        if path.endswith((".cpp", ".h")) and not (made.exists() and made.read_text() == text):
            pytest.skip(f"{build} was built from another ops/: {path} differs")
    extension = "_C" + sysconfig.get_config_var("EXT_SUFFIX")
    library_objects = inputs_of(build, "liblamina.so")
    border_objects = inputs_of(build, re.escape(extension))
    missing = [o for o in library_objects + border_objects if not o.exists()]
    if missing:
        pytest.skip(f"the build folder is not complete: {missing[0]}")

    new = folder / "objects"
    new.mkdir()
    alone, full = (
        folder / "mini" / "lamina" / "generated",
        folder / "after" / "lamina" / "generated",
    )
    sources = {}
    for kind in ("ops", "kernels", "autograd", "python"):
        # The shards in one unit.
        sources[kind] = folder / f"{kind}.cpp"
        sources[kind].write_text(
            "".join(f'#include "{p}"\n' for p in sorted(alone.glob(f"{kind}_[0-9].cpp")))
        )
    sources |= {name: full / f"{name}.cpp" for name in ("table", "python_tables")}
    includes = ["-I", str(folder / "after"), "-I", str(ROOT), "-I", sysconfig.get_path("include")]

    def compile_one(item):
        name, source = item
        command = ["g++", *FLAGS, *includes, "-c", str(source), "-o", str(new / f"{name}.o")]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(compile_one, sources.items()))

    def link(target, objects, names, *options):
        kept = [o for o in objects if o.name not in ("table.cpp.o", "python_tables.cpp.o")]
        assert len(kept) == len(objects) - 1
        objects = [*map(str, kept), *(str(new / f"{n}.o") for n in names)]
        command = [
            "g++",
            "-shared",
            "-Wl,-Bsymbolic-functions",
            *objects,
            "-o",
            str(target),
            *options,
        ]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    package = folder / "site" / "lamina"
    shutil.copytree(
        ROOT / "python" / "lamina", package, ignore=shutil.ignore_patterns("__pycache__")
    )
    library = package / "liblamina.so"
    link(
        library,
        library_objects,
        ["ops", "kernels", "autograd", "table"],
        "-Wl,-soname,liblamina.so",
        "-pthread",
        "-ldl",
    )
    link(
        package / extension,
        border_objects,
        ["python", "python_tables"],
        str(library),
        "-Wl,-rpath,$ORIGIN",
    )
    return folder / "site", library, includes


def test_python_has_it(built):
    site, *_ = built
    env = {**os.environ, "PYTHONPATH": str(site)}
    done = subprocess.run(
        [sys.executable, "-c", USE], env=env, cwd=site, capture_output=True, text=True
    )
    assert done.stdout == "used\n", done.stderr


def test_cpp_has_it(built, tmp_path):
    _, library, includes = built
    (tmp_path / "use.cpp").write_text(CPP)
    command = ["g++", "-std=c++20", "-O0", *includes, str(tmp_path / "use.cpp"), str(library)]
    command += [f"-Wl,-rpath,{library.parent}", "-o", str(tmp_path / "use")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([str(tmp_path / "use")], capture_output=True, text=True)
    assert done.stdout == "used\n", done.stderr
