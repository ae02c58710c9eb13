"""Command line of the generator."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from opgen.emit import autograd, docs, kernels, operators, python
from opgen.errors import ParagraphError
from opgen.generate import outputs, read
from opgen.model import cpp_name

ROOT = Path(__file__).parent.parent


def write_changed(path: Path, text: str) -> bool:
    """Writes only what differs, so that nothing is rebuilt without need."""
    if path.exists() and path.read_text() == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return True


def show(name: str, ops_folder: Path) -> str:
    """Everything that is generated for one operator, each output as if the list held nothing else."""
    every = read(ops_folder)
    base = name.rstrip("_") or name
    ops = [op for op in every if base in {op.name.rstrip("_") or op.name, *op.aliases}]
    if not ops:
        return ""
    bindings = python.bindings(ops)
    sections = {
        f"lamina/ops/{cpp_name(n)}.h": operators.op_header(n, group)
        for n, group in operators.by_name(ops).items()
    }
    sections["lamina/generated/ops_*.cpp"] = operators.op_source(ops)
    sections["lamina/generated/kernels_*.cpp"] = kernels.emit(ops)
    if any("expr" in op.raw for op in ops):
        sections["lamina/generated/expressions.cpp"] = kernels.expressions(ops)
    if any(operators.needs_autograd_kernel(op, f) for op in ops for f in op.functions):
        sections["lamina/generated/autograd_*.cpp"] = autograd.emit(ops)
    if bindings:
        sections["lamina/generated/python_*.cpp"] = python.emit(bindings)
    for module in sorted({b.module for b in bindings}):
        stem = f"_ops_{module.replace('.', '_')}" if module not in ("", "method") else "_ops"
        part = ", class Tensor" if module == "method" else ""
        sections[f"python/lamina/{stem}.pyi{part}"] = docs.stub(bindings, module)
    for path, page in docs.pages(ops).items():
        if "\n## " in page:
            sections[path] = page[page.index("\n## ") + 1 :]
    text = "".join(f"# {op.where}: {op.schema}\n" for op in ops)
    for path, content in sections.items():
        content = content.removeprefix(operators.HEADER).strip("\n")
        text += f"\n==== {path} {'=' * max(4, 90 - len(path))}\n{content}\n"
    return text.rstrip("\n")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="opgen", description=__doc__)
    parser.add_argument("--ops", type=Path, default=ROOT / "ops", help="folder of the op list")
    parser.add_argument("--out", type=Path, help="write all outputs below this folder")
    parser.add_argument("--list-outputs", action="store_true", help="print 'group path' lines")
    parser.add_argument(
        "--show", metavar="NAME", help="print everything generated for one operator"
    )
    options = parser.parse_args(argv)
    try:
        if options.show:
            text = show(options.show, options.ops)
            if not text:
                print(
                    f"opgen: no operator named {options.show!r} in {options.ops}", file=sys.stderr
                )
                return 1
            print(text)
            return 0
        files = outputs(read(options.ops))
    except ParagraphError as e:
        print(f"opgen: error: {e}", file=sys.stderr)
        return 1
    if options.list_outputs:
        for path, (group, _) in files.items():
            print(group, path)
    if options.out:
        for path, (_, text) in files.items():
            write_changed(options.out / path, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
