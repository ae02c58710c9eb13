"""Which names of torch a script needs and Lamina lacks, found by reading the script, not by running it."""

import ast
import builtins
import importlib
import sys
import types
from pathlib import Path

from lamina import _C, _missing


class _Reader(ast.NodeVisitor):
    """Collects dotted names that begin at an import of torch, and attributes of other things."""

    def __init__(self):
        self.names = {}  # local name -> dotted name
        self.hidden = []  # names that a function's parameters cover
        self.used = {}  # dotted name -> first line
        self.attributes = {}  # attribute of anything else -> first line

    def visit_Import(self, node):
        for item in node.names:
            if item.name.partition(".")[0] in ("torch", "lamina"):
                full = _missing.peer_name(item.name)
                self.used.setdefault(full, node.lineno)
                self.names[item.asname or "torch"] = full if item.asname else "torch"
                if not item.asname:
                    self.names[item.name.partition(".")[0]] = "torch"

    def visit_ImportFrom(self, node):
        module = node.module or ""
        if node.level or module.partition(".")[0] not in ("torch", "lamina"):
            return
        module = _missing.peer_name(module)
        self.used.setdefault(module, node.lineno)
        for item in node.names:
            if item.name != "*":
                self.used.setdefault(f"{module}.{item.name}", node.lineno)
                self.names[item.asname or item.name] = f"{module}.{item.name}"

    def _function(self, node):
        a = node.args
        names = {p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg) if p}
        for part in (
            *getattr(node, "decorator_list", ()),
            *a.defaults,
            *filter(None, a.kw_defaults),
        ):
            self.visit(part)
        self.hidden.append(names)
        for part in node.body if isinstance(node.body, list) else [node.body]:
            self.visit(part)
        self.hidden.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _function

    def _dotted(self, node):
        if isinstance(node, ast.Name):
            if any(node.id in names for names in self.hidden):
                return None
            return self.names.get(node.id)
        if isinstance(node, ast.Attribute):
            base = self._dotted(node.value)
            return base and f"{base}.{node.attr}"
        return None

    def visit_Attribute(self, node):
        name = self._dotted(node)
        if name:
            self.used.setdefault(name, node.lineno)
        else:
            if not (isinstance(node.value, ast.Name) and node.value.id == "self"):
                self.attributes.setdefault(node.attr, node.lineno)
            self.generic_visit(node)


def _has(place, name):
    try:
        return hasattr(place, name)
    except ImportError:
        return False


def _resolve(name):
    """The part of a dotted name that is missing, or None."""
    parts = name.split(".")
    place = importlib.import_module("lamina")
    for i, part in enumerate(parts[1:], 1):
        if _has(place, part):
            place = getattr(place, part)
        elif isinstance(place, types.ModuleType):
            try:
                place = importlib.import_module("lamina." + ".".join(parts[1 : i + 1]))
            except ImportError:
                return ".".join(parts[: i + 1])
        elif isinstance(place, type):
            return ".".join(parts[: i + 1])
        else:
            return None
        if not isinstance(place, (types.ModuleType, type)):
            return None
    return None


def resolves(name):
    """Whether a dotted name of torch is really there; stand-ins are not."""
    return _resolve(name) is None


def _is_known(name):
    module, _, short = name.rpartition(".")
    return name in _missing.peer_names() or short in _missing.peer_names().get(module, ())


def missing_names(source, filename="<string>"):
    """Names that a script needs and Lamina lacks.

    Returns a list of (name, first line, note), ordered by name. Methods of tensors are guessed: an attribute that torch's Tensor has,
    Lamina's has not, and no type of Python has. Raises SyntaxError.
    """
    reader = _Reader()
    reader.visit(ast.parse(source, filename))
    found = {}
    for name, line in reader.used.items():
        lacking = _resolve(name)
        if lacking is not None and lacking not in found:
            found[lacking] = (line, "" if _is_known(lacking) else "torch 2.13 has no such name")
    python = {a for t in vars(builtins).values() if isinstance(t, type) for a in dir(t)}
    for name, line in reader.attributes.items():
        known = name in _missing.peer_names().get("torch.Tensor", ())
        if reader.names and known and name not in python and not hasattr(_C.Tensor, name):
            found["torch.Tensor." + name] = (line, "if the object is a tensor")
    # The outermost missing part is enough.
    return [
        (name, *found[name])
        for name in sorted(found)
        if not any(name.startswith(other + ".") for other in found)
    ]


def report(paths):
    """Print what is missing for each file; the status is 1 where anything is."""
    if not paths:
        print("python -m lamina --missing: name one or more files", file=sys.stderr)
        return 2
    status = 0
    for path in paths:
        path = Path(path)
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        for file in files:
            try:
                names = missing_names(file.read_text(encoding="utf-8"), str(file))
            except (OSError, SyntaxError, UnicodeDecodeError) as error:
                print(f"{file}: {error}", file=sys.stderr)
                status = 2
                continue
            if names:
                status = max(status, 1)
            elif not path.is_dir():
                print(f"{file}: nothing is missing")
            for name, line, note in names:
                print(f"{file}:{line}: {name}" + (f"  ({note})" if note else ""))
    return status
