"""The demo in Python and C++ learns the digits, and both learn the same."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from lamina.demo import digits

import lamina

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "examples" / "data" / "digits.csv.gz"
PREFIX = Path(lamina.utils.cmake_prefix_path)

needs_package = pytest.mark.skipif(
    "LAMINA_SANITIZED" in os.environ or not (PREFIX / "lib" / "cmake" / "Lamina").exists(),
    reason="Lamina runs from a build tree or under a sanitizer; programs link the installed package",
)


def demo(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "lamina.demo", *arguments], capture_output=True, text=True, **options
    )


def test_the_data_are_read_in_order():
    images, labels = digits.load(DATA)
    assert images.shape == (1797, 64) and labels.shape == (1797,)
    assert images.dtype == lamina.float32 and labels.dtype == lamina.int64
    assert labels[:10].tolist() == list(range(10))
    assert images.amin().item() == 0 and images.amax().item() == 1


def test_training_reaches_97_percent_and_repeats_itself():
    train_x, train_y, test_x, test_y = digits.split(*digits.load(DATA))
    losses = []
    for _ in range(2):
        lamina.manual_seed(0)
        model = digits.Classifier()
        steps = list(digits.train(model, train_x, train_y, epochs=12))
        assert sum(samples for samples, _ in steps) == 12 * len(train_y)
        losses.append([loss.item() for _, loss in steps])
        assert digits.accuracy(model, test_x, test_y) >= 0.97
    assert losses[0] == losses[1]


def test_demo_command(tmp_path):
    pytest.importorskip("tqdm")
    run = demo("--quick", "--out", str(tmp_path))
    assert run.returncode == 0, run.stderr
    for name, least in (("perceptron", 97), ("convolutional", 98)):
        found = re.search(rf"Test accuracy ([\d.]+)% of the {name} network", run.stdout)
        assert float(found[1]) >= least
        kept = lamina.load(tmp_path / f"{name}.pt")
        assert 100 * kept["accuracy"] == pytest.approx(float(found[1]), abs=0.005)
    assert "right" in run.stdout and "samples/s" in run.stderr
    assert lamina.load(tmp_path / "characters.pt")["loss"] < 3
    page = (tmp_path / "report.html").read_text()
    assert "aten::_fused_attention" in page and "Memory during" in page and "<polyline" in page


def test_demo_with_a_terminal_without_blocks(tmp_path):
    pytest.importorskip("tqdm")
    arguments = ["--epochs", "1", "--steps", "1", "--out", str(tmp_path)]
    run = demo(*arguments, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--data", "no-such-file"], "cannot read the digits"),
        (["--data", __file__], "cannot read the digits"),
        (["--text", __file__], "cannot read the text"),
        (["--epochs", "0"], "at least 1"),
    ],
)
def test_demo_refuses(arguments, words):
    pytest.importorskip("tqdm")
    run = demo(*arguments)
    assert run.returncode in (1, 2) and words in run.stderr and "Traceback" not in run.stderr


def test_demo_stops_at_an_interrupt_and_keeps_the_best(tmp_path):
    pytest.importorskip("tqdm")
    command = [sys.executable, "-m", "lamina.demo", "--epochs", "1000000", "--out", str(tmp_path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        kept = tmp_path / "perceptron.pt"
        deadline = time.monotonic() + 60
        while not kept.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Stopped." in errors and str(kept) in errors and "Traceback" not in errors
    assert lamina.load(kept)["accuracy"] > 0.5


def build(source, folder):
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    configure = ["cmake", "-S", source, "-B", folder, f"-DCMAKE_PREFIX_PATH={PREFIX}", *generator]
    for command in (configure, ["cmake", "--build", folder]):
        run = subprocess.run(command, capture_output=True, text=True)
        assert run.returncode == 0, run.stdout + run.stderr


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """A folder with the C++ examples, built against the installed package."""
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not on the path")
    folder = tmp_path_factory.mktemp("examples")
    build(ROOT / "examples" / "cpp", folder)
    return folder


def run_digits(programs, text, *arguments):
    return subprocess.run([programs / "digits", *arguments], input=text, capture_output=True)


@needs_package
def test_cpp_program_learns_what_python_learns(programs):
    import gzip

    run = run_digits(programs, gzip.decompress(DATA.read_bytes()), "12")
    assert run.returncode == 0, run.stderr
    last = run.stdout.decode().splitlines()[-1]
    found = float(re.search(r"test accuracy ([\d.]+) %", last)[1])
    assert found >= 97
    train_x, train_y, test_x, test_y = digits.split(*digits.load(DATA))
    lamina.manual_seed(0)
    model = digits.Classifier()
    *_, (_, loss) = digits.train(model, train_x, train_y, epochs=12)
    assert f"loss {loss.item():.4f}" in last
    assert found == pytest.approx(100 * digits.accuracy(model, test_x, test_y), abs=0.005)


@needs_package
def test_cpp_program_refuses_what_is_no_data(programs):
    for text, words in ((b"", b"more than 360"), (b"1,2,x\n", b"64 pixels")):
        run = run_digits(programs, text)
        assert run.returncode == 1 and words in run.stderr
    assert run_digits(programs, b"", "nonsense").returncode == 2


@needs_package
def test_cpp_program_has_no_python_in_it(programs):
    if shutil.which("ldd") is None:
        pytest.skip("ldd is not on the path")
    linked = subprocess.run(["ldd", programs / "digits"], capture_output=True, text=True).stdout
    assert "liblamina" in linked and "libpython" not in linked and "not found" not in linked


@needs_package
def test_the_program_of_the_docs(tmp_path):
    """docs/cpp.md: its CMake project builds, and its program prints what the page says."""
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not on the path")
    page = (ROOT / "docs" / "cpp.md").read_text()
    project, program, expected = (
        re.search(rf"```{name}\n(.*?)```", page, re.DOTALL)[1] for name in ("cmake", "cpp", "text")
    )
    (tmp_path / "CMakeLists.txt").write_text(project)
    (tmp_path / "mine.cpp").write_text(program)
    build(tmp_path, tmp_path / "build")
    run = subprocess.run([tmp_path / "build" / "mine"], capture_output=True, text=True)
    first, second = expected.strip().splitlines()
    assert run.stdout.splitlines()[0] == first
    assert run.stdout.splitlines()[1].startswith(second.removesuffix("..."))


@needs_package
def test_public_header_compiles_alone(tmp_path):
    """What users include needs nothing before it. Its cost is measured by ./run bench, not here."""
    compiler = os.environ.get("CXX", "g++")
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    source = tmp_path / "header.cpp"
    source.write_text('#include "lamina/lamina.h"\nint main() {}\n')
    command = [compiler, "-std=c++20", "-fsyntax-only", f"-I{PREFIX / 'include'}", source]
    subprocess.run(command, check=True)
