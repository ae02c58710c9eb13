"""The commands of ./run."""

import argparse
import os
import subprocess

from tools import checks, environment, install, suites
from tools.common import ROOT, Failure, say


def main(arguments: list[str]) -> int:
    """Run one command and return its exit status."""
    parser = make_parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 0
    try:
        return options.action(options) or 0
    except Failure as failure:
        say(f"\n{failure}")
        return 1
    except subprocess.CalledProcessError as failure:
        say(f"\nfailed with status {failure.returncode}: {' '.join(map(str, failure.cmd))}")
        return failure.returncode if failure.returncode > 0 else 1
    except KeyboardInterrupt:
        return 130


def make_parser() -> argparse.ArgumentParser:
    """All commands, each with its own help."""
    parser = argparse.ArgumentParser(
        prog="./run",
        description="Lamina: set up, try, test and measure it.",
        epilog="Set-up happens by itself where a command needs it.",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    def add(name: str, action, text: str, more: str = "") -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=f"{text}. {more}".strip())
        command.set_defaults(action=action)
        return command

    setup = add(
        "setup",
        lambda o: install.ensure_installed(force=o.force, slowest=True),
        "install what is needed, build, and install Lamina in .venv",
        "Says what it installs and why. Builds under build/. Quick when nothing changed.",
    )
    setup.add_argument("--force", action="store_true", help="build and install even if up to date")

    demo = add(
        "demo",
        demonstrate,
        "train networks on handwritten digits and a text, save and load them, explain a step",
        "Further arguments go to examples/digits.py: see ./run demo -- --help.",
    )
    demo.add_argument("--quick", action="store_true", help="short trainings, done in 20 seconds")
    demo.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)

    test = add("test", suites.test, "build and run every test, C++ and Python")
    test.add_argument(
        "--sanitize",
        nargs="?",
        const="address",
        choices=["address", "thread"],
        help="under AddressSanitizer and UBSan (build/sanitize), or the tests of threads under "
        "ThreadSanitizer (build/sanitize-thread)",
    )
    test.add_argument(
        "--planted-fault",
        action="store_true",
        help="with --sanitize: plant a fault (of memory, or a race); the run has to fail",
    )
    test.add_argument("--only", choices=["cpp", "python"], help="one of the two suites")
    test.add_argument("-k", metavar="WORDS", help="tests whose names match (pytest -k, ctest -R)")

    bench = add("bench", measure, "measure the speed of common calls")
    bench.add_argument(
        "--against",
        metavar="MODULE",
        help="compare with this module, e.g. torch, measured in turn in the same run",
    )
    bench.add_argument("--python", help="interpreter that has the other module (default: .venv's)")
    bench.add_argument("--group", help="comma separated groups of workloads (default: all)")
    bench.add_argument("--threads", type=int, default=1, help="threads to compute with")
    bench.add_argument("--budget", type=float, default=0.25, help="seconds for each workload")

    op = add("op", show_operator, "print everything that is generated for one operator")
    op.add_argument("name", metavar="NAME", help="e.g. lerp")

    add("docs", suites.docs, "write the site of the docs to build/docs and run the docs' examples")
    add("fmt", checks.fmt, "format C++ (clang-format) and Python (ruff)")
    add("lint", checks.lint, "check the format, ruff's rules and which room includes which")
    return parser


def demonstrate(options: argparse.Namespace) -> int:
    """Train the networks of the demo."""
    python = install.ensure_installed()
    arguments = [a for a in options.rest if a != "--"]
    if options.quick:
        arguments.insert(0, "--quick")
    os.chdir(ROOT)
    os.execv(python, [python, str(ROOT / "examples" / "digits.py"), *arguments])


def measure(options: argparse.Namespace) -> int:
    """Run bench/compare.py in the environment that has Lamina."""
    python = install.ensure_installed()
    environment.ensure_packages(python, "test")
    command = [python, str(ROOT / "bench" / "compare.py")]
    command += ["--threads", str(options.threads), "--budget", str(options.budget)]
    for name in ("against", "python", "group"):
        if getattr(options, name):
            command += [f"--{name}", getattr(options, name)]
    return subprocess.call(command, cwd=ROOT)


def show_operator(options: argparse.Namespace) -> int:
    """Print the generated code of one operator."""
    python = environment.ensure_environment()
    environment.ensure_packages(python, "build")
    return subprocess.call([python, "-m", "opgen", "--show", options.name], cwd=ROOT)
