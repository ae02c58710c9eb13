"""./run fmt and ./run lint."""

import argparse
import subprocess

from tools import environment
from tools.common import ROOT, VENV, execute, say

CPP_PLACES = ["lamina", "tests", "examples"]


def prepare() -> tuple[str, list[str]]:
    """The Python of .venv with the lint packages, and our C++ files."""
    python = environment.ensure_environment()
    environment.ensure_packages(python, "lint")
    files = [
        str(path)
        for place in CPP_PLACES
        for path in sorted((ROOT / place).rglob("*"))
        if path.suffix in (".h", ".cpp")
    ]
    return python, files


def fmt(options: argparse.Namespace) -> int:
    """Format everything in place."""
    python, files = prepare()
    if files:
        execute([VENV / "bin" / "clang-format", "-i", *files])
    execute([python, "-m", "ruff", "check", "--fix", "-q", "--exit-zero", "."])
    execute([python, "-m", "ruff", "format", "-q", "."])
    return 0


def lint(options: argparse.Namespace) -> int:
    """Check everything; every check runs, also after one has failed."""
    python, files = prepare()
    checks = {
        "clang-format": [str(VENV / "bin" / "clang-format"), "--dry-run", "-Werror", *files],
        "ruff format": [python, "-m", "ruff", "format", "--check", "-q", "."],
        "ruff check": [python, "-m", "ruff", "check", "-q", "."],
        "include graph": [
            python,
            "-m",
            "pytest",
            "-q",
            "--noconftest",
            "tests/test_include_graph.py",
        ],
    }
    failed = 0
    for name, command in checks.items():
        status = subprocess.call(command, cwd=ROOT)
        failed += bool(status)
        say(f"{name}: {'passed' if status == 0 else 'FAILED'}")
    return 1 if failed else 0
