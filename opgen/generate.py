"""All outputs of the generator, by path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from opgen.emit import autograd, docs, kernels, operators, python
from opgen.load import load_folder
from opgen.model import Operator, build, cpp_name

T = TypeVar("T")
# Shards bound the longest compilation; the number is fixed so that the build system knows the files.
SHARDS = {"ops": 4, "kernels": 4, "autograd": 6, "python": 6}


def read(ops_folder: Path) -> list[Operator]:
    return build(load_folder(ops_folder))


def _shards(
    kind: str, items: Sequence[T], emit: Callable[[list[T]], str], prefix: str
) -> dict[str, str]:
    n = SHARDS[kind]
    size = -(-len(items) // n) if items else 1
    return {f"{prefix}_{i}.cpp": emit(list(items[i * size : (i + 1) * size])) for i in range(n)}


def outputs(ops: list[Operator]) -> dict[str, tuple[str, str]]:
    """path -> (group, text); groups: lamina, border, header, python, docs."""
    out: dict[str, tuple[str, str]] = {}

    def put(group: str, files: dict[str, str]) -> None:
        out.update({path: (group, text) for path, text in files.items()})

    groups = operators.by_name(ops)
    put(
        "header",
        {f"lamina/ops/{cpp_name(n)}.h": operators.op_header(n, g) for n, g in groups.items()},
    )
    put("header", {"lamina/generated/vmap_rules.h": operators.vmap_rules_header()})
    put("header", {"lamina/ops.h": operators.all_ops_header(ops)})
    put("header", {"lamina/generated/declarations.h": kernels.declarations(ops)})
    put("lamina", _shards("ops", ops, operators.op_source, "lamina/generated/ops"))
    put("lamina", _shards("kernels", ops, kernels.emit, "lamina/generated/kernels"))
    put("lamina", _shards("autograd", ops, autograd.emit, "lamina/generated/autograd"))
    put("lamina", {"lamina/generated/expressions.cpp": kernels.expressions(ops)})
    put("lamina", {"lamina/generated/table.cpp": operators.operator_table(ops)})
    bs = python.bindings(ops)
    put("border", _shards("python", bs, python.emit, "lamina/generated/python"))
    put("border", {"lamina/generated/python_tables.cpp": python.tables(bs, python.docstrings(bs))})
    put("python", docs.stubs(bs))
    put("docs", docs.pages(ops))
    return out
