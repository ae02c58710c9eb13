"""Paths and small helpers that the commands share."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
BUILD = ROOT / "build" / "release"
SANITIZE = ROOT / "build" / "sanitize"
SANITIZE_THREAD = ROOT / "build" / "sanitize-thread"

# Everything whose change asks for a new build.
SOURCES = ["CMakeLists.txt", "pyproject.toml", "cmake", "lamina", "opgen", "ops", "python"]


class Failure(Exception):
    """Something the person at the terminal has to know; printed without a trace."""


def say(text: str) -> None:
    """Print at once, also where output is a pipe."""
    print(text, flush=True)


def execute(command: list, **options) -> None:
    """Run a command from the root; raise when it fails."""
    options.setdefault("cwd", ROOT)
    subprocess.run([str(part) for part in command], check=True, **options)


def tool_environment() -> dict[str, str]:
    """The environment with the tools of .venv first."""
    env = dict(os.environ)
    env["PATH"] = f"{VENV / 'bin'}{os.pathsep}{env.get('PATH', '')}"
    env.pop("PYTHONHOME", None)
    return env


def jobs() -> int:
    """Compilers that may run at once: one a core, and about 1.2 GB of memory each."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        memory = 4 << 30
    return max(1, min(cores or 1, int(memory / 1.2e9)))


def fingerprint(places: Iterable[str] = SOURCES, extra: str = "") -> str:
    """Hash of the files under the given places, names and contents."""
    digest = hashlib.sha256(f"{sys.version}{extra}".encode())
    for place in places:
        top = ROOT / place
        files = [top] if top.is_file() else sorted(p for p in top.rglob("*") if p.is_file())
        for path in files:
            if path.suffix == ".pyc":
                continue
            digest.update(str(path.relative_to(ROOT)).encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
