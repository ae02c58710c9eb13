"""Building Lamina and installing it in .venv."""

import re
import subprocess
import sys
import time
from pathlib import Path

from tools import environment
from tools.common import BUILD, VENV, Failure, fingerprint, jobs, say, tool_environment


def ensure_installed(force: bool = False, slowest: bool = False) -> str | None:
    """Have the present sources installed in .venv; return the path of its Python."""
    stamp = VENV / ".lamina-installed"
    current = fingerprint()
    python = VENV / "bin" / "python"
    if not force and python.exists() and stamp.exists() and stamp.read_text() == current:
        environment.ensure_packages(str(python), "demo")
        if slowest:
            say("Lamina is installed in .venv and up to date.")
            return None
        return str(python)
    environment.ensure_system()
    found = environment.ensure_environment()
    environment.ensure_packages(found, "build")
    environment.ensure_packages(found, "demo")
    began = time.time()
    say(f"Building Lamina in build/release with {jobs()} compilers at once")
    build_and_install(found)
    stamp.write_text(current)
    took = time.time() - began
    say(f"Lamina is installed in .venv ({took:.0f} s).")
    print_slowest(BUILD, began)
    return None if slowest else found


def build_and_install(python: str) -> None:
    """Let pip build the wheel in build/release and install it."""
    env = tool_environment()
    env["CMAKE_BUILD_PARALLEL_LEVEL"] = str(jobs())
    command = [python, "-m", "pip", "install", "-v", "--disable-pip-version-check"]
    command += ["--no-build-isolation", "--no-deps", "--force-reinstall"]
    command += [f"-Cbuild-dir={BUILD}", "."]
    status, log = follow(command, env)
    if status != 0:
        raise Failure("".join(log[-60:]) + "\nThe build failed; its last lines are above.")


def follow(command: list[str], env: dict[str, str]) -> tuple[int, list[str]]:
    """Run a build, showing ninja's steps on one line (on a terminal) or every hundredth step."""
    terminal = sys.stdout.isatty()
    log = []
    process = subprocess.Popen(
        command,
        cwd=Path(__file__).resolve().parent.parent,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    shown = -1
    for line in process.stdout:
        log.append(line)
        step = re.search(r"\[(\d+)/(\d+)\] (.*)", line)
        if step and terminal:
            print(f"\r\033[K  [{step[1]}/{step[2]}] {step[3][:80]}", end="", flush=True)
        elif step and int(step[1]) // 100 != shown:
            shown = int(step[1]) // 100
            say(f"  [{step[1]}/{step[2]}]")
        elif re.search(r"\bwarning: |\berror: ", line):
            say(line.rstrip())
    if terminal:
        print("\r\033[K", end="", flush=True)
    return process.wait(), log


def print_slowest(build: Path, since: float, count: int = 10) -> None:
    """The translation units that took longest in the build that began at `since`."""
    log = build / ".ninja_log"
    if not log.exists():
        return
    seconds = {}
    for line in log.read_text().splitlines()[1:]:
        fields = line.split("\t")
        if len(fields) >= 4 and fields[3].endswith(".o"):
            path = build / fields[3]
            if path.exists() and path.stat().st_mtime >= since - 1:
                seconds[fields[3]] = (int(fields[1]) - int(fields[0])) / 1000
    if not seconds:
        return
    say(f"{len(seconds)} translation units; the slowest:")
    for name in sorted(seconds, key=seconds.get, reverse=True)[:count]:
        short = re.sub(r"(^|.*/)CMakeFiles/[^/]+\.dir/", "", name).removesuffix(".o")
        say(f"  {seconds[name]:6.1f} s  {short}")
