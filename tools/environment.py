"""The compiler, the system packages, .venv and the Python packages in it."""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from tools import browser
from tools.common import ROOT, VENV, Failure, execute, say

# Groups of Python packages: what each command needs, and why it is installed.
PACKAGES = {
    "build": [
        ("scikit-build-core>=0.10,<2", "build backend of pip install"),
        ("cmake>=3.22,<5", "build"),
        ("ninja>=1.11,<2", "build"),
        ("PyYAML>=6,<7", "reads the op list in ops/"),
        ("Jinja2>=3.1,<4", "templates of the code generator"),
        ("scipy-openblas32>=0.3.27,<0.4", "BLAS and LAPACK"),
    ],
    "demo": [
        ("tqdm>=4.60,<5", "progress bar of ./run demo"),
    ],
    "test": [
        ("numpy>=1.24", "interop, and reference values in tests"),
        ("pytest>=8,<10", "Python tests"),
        ("hypothesis>=6.100,<7", "Python tests with drawn inputs"),
        ("mypy>=1.11,<3", "the types of the public names and of the examples"),
    ],
    "docs": [
        ("mkdocs-material>=9.5,<10", "the site of ./run docs"),
        ("mkdocstrings[python]>=0.26,<2", "its reference, from docstrings"),
    ],
    "lint": [
        ("clang-format==23.1.5", "format of the C++ code"),
        ("ruff==0.17.6", "format and rules of the Python code"),
        ("pytest>=8,<10", "the include-graph check"),
    ],
}


def compiler_problem() -> str | None:
    """Why there is no usable C++ compiler, or None."""
    name = os.environ.get("CXX", "g++")
    path = shutil.which(name)
    if path is None:
        return f"no C++ compiler ({name} not found)"
    text = subprocess.run([path, "-dumpfullversion"], capture_output=True, text=True).stdout
    match = re.match(r"(\d+)\.", text)
    if "clang" not in name and match and int(match[1]) < 11:
        return f"{name} {text.strip()} is too old: Lamina needs g++ 11 or newer"
    return None


def missing_system_packages(tests: bool) -> dict[str, str]:
    """Debian/Ubuntu packages that are wanted and not here, with the reason."""
    missing = {}
    if compiler_problem():
        missing["g++"] = "C++20 compiler"
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        missing["python3-dev"] = "Python.h, for the extension module"
    if importlib.util.find_spec("ensurepip") is None and not (VENV / "bin" / "pip").exists():
        missing["python3-venv"] = "creates .venv"
    if tests and not any(
        Path(prefix, "gtest", "gtest.h").exists()
        for prefix in ("/usr/include", "/usr/local/include")
    ):
        missing["libgtest-dev"] = "GoogleTest, for the C++ tests"
    return missing


def ensure_system(tests: bool = False) -> None:
    """Install the system packages that are missing, or say which they are."""
    missing = missing_system_packages(tests)
    if not missing:
        return
    say("System packages needed:")
    for name, why in missing.items():
        say(f"  {name:14} {why}")
    apt = shutil.which("apt-get")
    prefix = []
    if hasattr(os, "geteuid") and os.geteuid() != 0:
        sudo = shutil.which("sudo")
        usable = sudo and subprocess.call([sudo, "-n", "true"], stderr=subprocess.DEVNULL) == 0
        prefix = [sudo, "-n"] if usable else None
    if apt is None or prefix is None:
        names = " ".join(missing)
        raise Failure(
            "These cannot be installed from here. Install them and call ./run again; on Debian "
            f"or Ubuntu:\n  sudo apt-get install {names}"
        )
    quiet = {
        "stdout": subprocess.DEVNULL,
        "env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
    }
    say(f"Installing them with apt-get: {' '.join(missing)}")
    # A mirror that is out of date for one list may still serve what is needed.
    subprocess.call([*prefix, apt, "update", "-q"], **quiet)
    status = subprocess.call(
        [*prefix, apt, "install", "-y", "-q", "--no-install-recommends", *missing], **quiet
    )
    still = missing_system_packages(tests)
    if status != 0 or still:
        problem = compiler_problem()
        raise Failure(
            f"apt-get could not provide: {' '.join(still or missing)}"
            + (f"\n({problem}; set CXX to a newer one)" if problem else "")
        )


def ensure_browser() -> None:
    """Have a Chromium for the tests of pages where one can be installed; without it they are skipped, and say so."""
    apt = shutil.which("apt-get")
    if browser.find() or apt is None or not hasattr(os, "geteuid"):
        return
    if os.geteuid() != 0:
        say(
            "No Chromium here: the tests of pages are skipped. To run them: sudo apt-get install chromium"
        )
        return
    say("Installing chromium with apt-get, for the tests of pages")
    quiet = {
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
        "env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
    }
    command = [apt, "install", "-y", "-q", "--no-install-recommends", "chromium"]
    if subprocess.call(command, **quiet) != 0:
        subprocess.call([apt, "update", "-q"], **quiet)
        if subprocess.call(command, **quiet) != 0:
            say("apt-get could not provide chromium: the tests of pages are skipped")


def ensure_environment() -> str:
    """Create .venv where there is none; return the path of its Python."""
    python = VENV / "bin" / "python"
    if not python.exists() or not (VENV / "bin" / "pip").exists():
        ensure_system()
        say(f"Creating .venv with Python {sys.version.split()[0]}")
        execute([sys.executable, "-m", "venv", "--clear", VENV])
    return str(python)


def ensure_packages(python: str, group: str) -> None:
    """Install one group of Python packages in .venv, once."""
    packages = PACKAGES[group]
    wanted = hashlib.sha256(repr(packages).encode()).hexdigest()
    stamp = VENV / f".lamina-{group}"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    say(f"Installing Python packages in .venv ({group}):")
    for name, why in packages:
        say(f"  {name:32} {why}")
    execute(
        [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        + [name for name, _ in packages],
        cwd=ROOT,
    )
    stamp.write_text(wanted)
