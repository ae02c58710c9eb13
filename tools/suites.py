"""./run test and ./run docs."""

import argparse
import subprocess
import time
from pathlib import Path

from tools import docsite, environment, install
from tools.common import (
    BUILD,
    ROOT,
    SANITIZE,
    SANITIZE_THREAD,
    Failure,
    execute,
    jobs,
    say,
    tool_environment,
)


def test(options: argparse.Namespace) -> int:
    """Build and run both suites; the status is 1 when one of them failed."""
    if options.planted_fault and not options.sanitize:
        raise Failure("--planted-fault belongs to --sanitize: only a sanitizer would notice it")
    environment.ensure_system(tests=True)
    if options.sanitize == "thread":
        return test_threads(options)
    if options.sanitize:
        python = environment.ensure_environment()
        environment.ensure_packages(python, "build")
    else:
        python = install.ensure_installed()
    environment.ensure_packages(python, "test")
    build = SANITIZE if options.sanitize else BUILD
    if options.sanitize:
        build_sanitized(python)
    env = tool_environment()
    if options.sanitize:
        # ASan's dlopen stands between the library and the loader, which then looks along ASan's own run path.
        env["LD_LIBRARY_PATH"] = blas_folder(python)
    if options.planted_fault:
        env["LAMINA_PLANTED_FAULT"] = "1"
    results = {}
    if options.only != "python":
        results["C++"] = run_ctest(build, env, options)
    if options.only != "cpp":
        results["Python"] = run_pytest(python, env, options)
    for name, status in results.items():
        say(f"{name} tests: {'passed' if status == 0 else 'FAILED'}")
    return max(map(bool, results.values()))


def test_threads(options: argparse.Namespace) -> int:
    """Build the library and the tests of threads under ThreadSanitizer, and run them."""
    python = environment.ensure_environment()
    environment.ensure_packages(python, "build")
    env = tool_environment()
    configure = ["cmake", "-S", ROOT, "-B", SANITIZE_THREAD, "-G", "Ninja", "-DLAMINA_TESTS=ON"]
    configure += ["-DLAMINA_SANITIZE=thread", "-DLAMINA_PYTHON=OFF"]
    configure += [f"-DPython_EXECUTABLE={python}"]
    began = time.time()
    say("Building under ThreadSanitizer in build/sanitize-thread")
    execute(configure, env=env, stdout=subprocess.DEVNULL)
    build_targets(SANITIZE_THREAD, ["test_threads"], env)
    install.print_slowest(SANITIZE_THREAD, began)
    env["TSAN_OPTIONS"] = "halt_on_error=1:second_deadlock_stack=1"
    if options.planted_fault:
        env["LAMINA_PLANTED_FAULT"] = "1"
    command = [str(SANITIZE_THREAD / "tests" / "test_threads")]
    if options.k:
        command += [f"--gtest_filter=*{options.k}*"]
    status = subprocess.call(command, cwd=ROOT, env=env)
    say(f"Tests of threads: {'passed' if status == 0 else 'FAILED'}")
    return int(status != 0)


def build_sanitized(python: str) -> None:
    """Build in build/sanitize and install under build/sanitize/site; .venv stays as it is."""
    env = tool_environment()
    configure = ["cmake", "-S", ROOT, "-B", SANITIZE, "-G", "Ninja", "-DLAMINA_TESTS=ON"]
    configure += ["-DLAMINA_SANITIZE=address,undefined", "-DLAMINA_PACKAGE_DIR=lamina"]
    configure += [f"-DPython_EXECUTABLE={python}", f"-DCMAKE_INSTALL_PREFIX={SANITIZE / 'site'}"]
    began = time.time()
    say("Building under AddressSanitizer and UBSan in build/sanitize")
    execute(configure, env=env, stdout=subprocess.DEVNULL)
    build_targets(SANITIZE, ["lamina", "lamina_border"], env)
    execute(["cmake", "--install", SANITIZE], env=env, stdout=subprocess.DEVNULL)
    install.print_slowest(SANITIZE, began)


def build_targets(build: Path, targets: list[str], env: dict[str, str]) -> None:
    """Build targets of a configured folder."""
    command = ["cmake", "--build", str(build), "-j", str(jobs()), "--target", *targets]
    status, log = install.follow(command, env)
    if status != 0:
        raise Failure("".join(log[-60:]) + "\nThe build failed; its last lines are above.")


def run_ctest(build: Path, env: dict[str, str], options: argparse.Namespace) -> int:
    """Build the C++ tests and run them."""
    execute(["cmake", build, "-DLAMINA_TESTS=ON"], env=env, stdout=subprocess.DEVNULL)
    say("Building the C++ tests")
    build_targets(build, ["lamina_tests"], env)
    command = ["ctest", "--test-dir", str(build), "--output-on-failure", "--no-tests=error"]
    if options.k:
        command += ["-R", options.k]
    sanitizer = {"ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1"}
    return subprocess.call(command, cwd=ROOT, env={**env, **sanitizer})


def run_pytest(python: str, env: dict[str, str], options: argparse.Namespace) -> int:
    """Run the Python tests, under the sanitizers with their run-time loaded first."""
    command = [python, "-m", "pytest"]
    if options.k:
        command += ["-k", options.k]
    env = dict(env)
    if options.sanitize:
        # Python is not built with ASan: its run-time has to be loaded first, and the C++ one
        # with it, so that exceptions thrown by Lamina are seen by the interceptors.
        env["LD_PRELOAD"] = " ".join(compiler_file(n) for n in ("libasan.so", "libstdc++.so"))
        env["ASAN_OPTIONS"] = "detect_leaks=0:allocator_may_return_null=1"
        env["PYTHONMALLOC"] = "malloc"
        env["PYTHONPATH"] = str(SANITIZE / "site")
        env["LAMINA_SANITIZED"] = "1"
    return subprocess.call(command, cwd=ROOT, env=env)


def blas_folder(python: str) -> str:
    """Where the Python package of OpenBLAS keeps its library."""
    program = "import scipy_openblas32 as b; print(b.get_lib_dir())"
    found = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True)
    return found.stdout.strip()


def compiler_file(name: str) -> str:
    """Where the compiler keeps one of its run-time libraries."""
    path = subprocess.run(
        ["g++", f"-print-file-name={name}"], capture_output=True, text=True, check=True
    ).stdout.strip()
    return str(Path(path).resolve())


def docs(options: argparse.Namespace) -> int:
    """Write the site of docs/, operators and docstrings with its links checked, and run the examples of the docs."""
    python = install.ensure_installed()
    status = docsite.build(python)
    if status:
        return status
    environment.ensure_packages(python, "test")
    tests = ["tests/test_docs.py", "tests/test_proofs.py"]
    return subprocess.call([python, "-m", "pytest", *tests], cwd=ROOT)
