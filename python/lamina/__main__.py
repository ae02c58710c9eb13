"""``python -m lamina``: run a program written for torch, with no edit.

    python -m lamina script.py [arguments]
    python -m lamina -m module [arguments]
    python -m lamina -c code [arguments]
    python -m lamina --missing script.py ...     the names of torch that a script needs and Lamina lacks

In the program ``import torch`` gives Lamina.
"""

import builtins
import io
import os
import sys
import types

import lamina


def _run(source, name, arguments, folder):
    """Execute a text as the main module."""
    main = types.ModuleType("__main__")
    main.__builtins__ = builtins
    if name != "-c":
        main.__file__ = name
    sys.modules["__main__"] = main
    sys.argv = [name, *arguments]
    sys.path[0:1] = [folder]
    exec(compile(source, "<string>" if name == "-c" else name, "exec"), main.__dict__)


def main(arguments):
    """Do what the command line says; return the exit status."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__.strip())
        return 0 if arguments else 2
    first, *rest = arguments
    if first == "--missing":
        from lamina._needs import report

        return report(rest)
    if first == "--version":
        print(lamina.__version__)
        return 0
    if first in ("-m", "-c") and not rest:
        print(f"python -m lamina {first}: what to run is missing", file=sys.stderr)
        return 2
    if first.startswith("-") and first not in ("-m", "-c"):
        print(f"python -m lamina: unknown option {first}", file=sys.stderr)
        return 2
    lamina.install_as_torch()
    if first == "-c":
        _run(rest[0], "-c", rest[1:], "")
    elif first == "-m":
        import runpy

        sys.argv = rest
        sys.path[0:1] = [os.getcwd()]
        runpy._run_module_as_main(rest[0])
    else:
        try:
            with io.open_code(os.path.abspath(first)) as file:
                source = file.read()
        except OSError as error:
            print(f"python -m lamina: cannot open {first!r}: {error.strerror}", file=sys.stderr)
            return 2
        _run(source, first, rest, os.path.dirname(os.path.abspath(first)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
