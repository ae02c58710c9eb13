"""Writes python/lamina/_peer_names.txt: the names that torch has, by module. Run with a Python that has torch.

    PEER-PYTHON tools/peer_names.py CENSUS-FOLDER > python/lamina/_peer_names.txt

Public modules are listed, and those others that the census names. One line a module:
``torch.nn.init c:... f:... v:...`` (classes, functions, other values; ``e:`` are exceptions).
"""

import csv
import importlib
import sys
import types
import warnings
from pathlib import Path

warnings.simplefilter("ignore")
SKIP = ("torch.testing._internal", "torch._inductor", "torch.include", "torch.onnx._internal")


def census_names(folder: Path) -> set[str]:
    """Every dotted name the census saw."""
    rows = csv.DictReader((folder / "torch_api_usage.csv").open())
    names = {r["name"] for r in rows}
    rows = csv.DictReader((folder / "import_time_observed.csv").open())
    names |= {r["name"].removesuffix(" (module)") for r in rows}
    return {n for n in names if n.startswith("torch")}


def module_names() -> list[str]:
    """Every module that is a file of the package."""
    import torch

    root = Path(torch.__file__).parent
    found = []
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root.parent).with_suffix("").parts
        if parts[-1] == "__init__":
            parts = parts[:-1]
        found.append(".".join(parts))
    return found


def load(name: str):
    try:
        return importlib.import_module(name)
    except BaseException:
        return None


def kind_of(value) -> str:
    if isinstance(value, type):
        return "e" if issubclass(value, BaseException) else "c"
    if callable(value) and not isinstance(value, types.GenericAlias):
        return "f" if not type(value).__module__ == "typing" else "v"
    return "v"


def line_of(name: str, census: set[str]) -> str | None:
    module = load(name)
    if module is None:
        return None
    kinds: dict[str, list[str]] = {"c": [], "e": [], "f": [], "v": []}
    public = getattr(module, "__all__", None)
    for key in sorted(set(vars(module)) | set(public or ())):
        used = f"{name}.{key}" in census
        value = getattr(module, key, None)
        if key.startswith("__") or isinstance(value, types.ModuleType):
            continue
        if not used and any(p.startswith("_") for p in name.split(".")):
            continue
        home = getattr(value, "__module__", None) or ""
        if not used and (key.startswith("_") or not str(home).startswith("torch")):
            if not (public and key in public):
                continue
        kinds[kind_of(value)].append(key)
    parts = [f"{k}:{','.join(v)}" for k, v in kinds.items() if v]
    return " ".join([name, *parts])


def main() -> None:
    census = census_names(Path(sys.argv[1]))
    parents = {n.rpartition(".")[0] for n in census} | census
    for name in module_names():
        if name.startswith(SKIP) and name not in parents:
            continue
        public = not any(p.startswith("_") for p in name.split("."))
        children = any(c.startswith(name + ".") for c in census)
        if public or name in parents or children:
            line = line_of(name, census)
            if line:
                print(line)
    tensor = load("torch").Tensor
    print("torch.Tensor f:" + ",".join(sorted(n for n in dir(tensor) if not n.startswith("__"))))


if __name__ == "__main__":
    main()
