"""How much of the torch API that packages use resolves: `python tools/census.py FOLDER [--missing N]`.

FOLDER has torch_api_usage.csv and tensor_methods_ambiguous.csv (name, packages, uses, area). A name resolves where it is really
there; stand-ins for missing names do not count. Prints the share of uses by area, as Markdown.
"""

import csv
import sys
from collections import defaultdict
from pathlib import Path

from lamina._needs import resolves

import lamina


def rows(folder: Path):
    """(name, uses, area, group) of every name; methods of tensors are called torch.Tensor.x."""
    for r in csv.DictReader((folder / "torch_api_usage.csv").open()):
        name, kind = r["name"], r["kind"]
        uses = int(r["uses"])
        if kind == "module" or uses == 0 or "absent" in kind or "missing" in kind:
            continue
        if name.startswith("Tensor."):
            name = "torch." + name
        method = name.startswith("torch.Tensor.")
        top = name.count(".") == 1
        yield name, uses, r["area"], "methods" if method else "top" if top else "deeper"
    for r in csv.DictReader((folder / "tensor_methods_ambiguous.csv").open()):
        yield "torch.Tensor." + r["attribute"], int(r["uses"]), r["area"], "methods"


def main() -> None:
    folder = Path(sys.argv[1])
    lamina.install_as_torch()
    found, total = defaultdict(int), defaultdict(int)
    missing = []
    for name, uses, area, group in rows(folder):
        good = resolves(name)
        for key in (area, "=" + group, "=all") + (("=first",) if group != "deeper" else ()):
            total[key] += uses
            found[key] += uses * good
        if not good:
            missing.append((uses, name, area))
    titles = {
        "=first": "methods of tensors and top-level names",
        "=methods": "methods of tensors",
        "=top": "top-level names",
        "=deeper": "names in submodules",
        "=all": "all",
    }
    print("| area | uses | resolve |\n| --- | ---: | ---: |")
    for key in sorted((k for k in total if k[0] != "="), key=lambda k: -total[k]):
        print(f"| {key} | {total[key]} | {100 * found[key] / total[key]:.1f} % |")
    for key, title in titles.items():
        print(f"| **{title}** | {total[key]} | {100 * found[key] / total[key]:.1f} % |")
    if "--missing" in sys.argv:
        count = int(sys.argv[sys.argv.index("--missing") + 1])
        for uses, name, area in sorted(missing, reverse=True)[:count]:
            print(f"{uses:7} {name}  ({area})")


if __name__ == "__main__":
    main()
