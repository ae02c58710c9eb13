"""Documentation pages and type stubs."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import PurePath

from opgen.emit.python import Binding, signatures
from opgen.model import Operator
from opgen.schema import Param


def page(family: str, operators: list[Operator]) -> str:
    """One Markdown page a file of the op list."""
    text = f"# Operators: {family}\n\nWritten by opgen from `ops/{family}.yaml`.\n"
    seen: dict[int, list[Operator]] = defaultdict(list)
    for op in operators:
        seen[id(op.raw)].append(op)
    for group in seen.values():
        op = group[0]
        if op.name.startswith("_"):
            continue
        text += (
            f"\n## {op.name}\n\n```\n"
            + "\n".join(str(f.schema) for o in group for f in o.functions)
            + "\n```\n\n"
        )
        text += op.doc + "\n"
        if op.raw.get("tile"):
            text += f"\nElementwise: `{op.raw['tile']}`.\n"
        if op.gradients.formulas:
            text += (
                "\nGradient: "
                + "; ".join(f"`{k}`: `{v}`" for k, v in op.gradients.formulas.items())
                + ".\n"
            )
        elif op.gradients.absent and op.kind != "composite":
            text += f"\nNo gradient: {op.gradients.absent}.\n"
    return text


def pages(operators: list[Operator]) -> dict[str, str]:
    families: dict[str, list[Operator]] = defaultdict(list)
    for op in operators:
        families[PurePath(op.where.file).stem].append(op)
    return {f"docs/operators/{name}.md": page(name, ops) for name, ops in sorted(families.items())}


_PY = {
    "Tensor": "Tensor",
    "Scalar": "_Number",
    "int": "int",
    "float": "float",
    "bool": "bool",
    "str": "str",
    "ScalarType": "dtype",
    "Layout": "layout",
    "Device": "_Device",
    "MemoryFormat": "memory_format",
    "Generator": "Generator",
}
_KEYWORDS = {"from", "in", "is", "lambda", "and", "or", "not"}


def _annotation(p: Param) -> str:
    kind = "Tensor | _Number" if p.union else _PY[p.type.base]
    if p.type.is_list:
        kind = f"Sequence[{kind}]" + (f" | {kind}" if p.type.list_size else "")
    return kind + (" | None" if p.type.optional or p.default == "None" else "")


def _stub_signatures(b: Binding, method: bool) -> list[str]:
    out = []
    for s in signatures(b):
        parts, star = [], False
        for i, p in enumerate(s.params):
            if method and i == 0:
                parts.append("self")
                continue
            if p.keyword_only and not star:
                if not any(x.startswith("*") for x in parts):
                    parts.append("*")
                star = True
            name = "input" if i == 0 and p.name == "self" else p.name
            if name in _KEYWORDS:
                name += "_"
            varargs = (
                p.type.is_list
                and p.type.base == "int"
                and p.default is None
                and all(q.keyword_only for q in s.params[i + 1 :])
                and (method or (i == 0 and s.factory))
            )
            text = f"*{name}: int | Sequence[int]" if varargs else f"{name}: {_annotation(p)}"
            parts.append(text + (" = ..." if p.default is not None and not varargs else ""))
        if s.outs or s.factory:
            if not star and not any(x.startswith("*") for x in parts):
                parts.append("*")
            if s.outs:
                parts.append(
                    "out: Tensor | None = ..."
                    if s.single_out
                    else "out: Sequence[Tensor] | None = ..."
                )
            if s.factory:
                parts.append("requires_grad: bool = ...")
        returns = s.ops[0].schema.returns
        kinds = ["tuple[Tensor, ...]" if r.type.is_list else _PY[r.type.base] for r in returns]
        result = kinds[0] if len(kinds) == 1 else f"tuple[{', '.join(kinds)}]" if kinds else "None"
        if len(kinds) > 1 and all(r.name for r in returns):
            result = "_" + "_".join(r.name for r in returns)
        out.append(f"def {b.name}({', '.join(parts)}) -> {result}: ...")
    return out


# Functions of the top module with a form of their own in Python.
_REPLACED = {"nonzero"}


def stub(bs: list[Binding], module: str) -> str:
    """Overloads of every function (or method) of one module."""
    text = ""
    for b in bs:
        if b.module != module or (not module and b.name in _REPLACED):
            continue
        lines = _stub_signatures(b, module == "method")
        indent = "    " if module == "method" else ""
        for line in lines:
            if len(lines) > 1:
                text += f"{indent}@overload\n"
            text += f"{indent}{line}\n"
    return text


STUB_HEAD = '''"""Written by opgen from ops/; do not edit."""

from collections.abc import Sequence
from typing import NamedTuple, overload

from lamina._border import Generator, TensorBase, _Device, _Number, dtype, layout, memory_format

'''


def _named_results(bs: list[Binding]) -> str:
    """A named tuple for every list of named results."""
    kinds: dict[str, list[str]] = {}
    for b in bs:
        for s in signatures(b):
            returns = s.ops[0].schema.returns
            if len(returns) > 1 and all(r.name for r in returns):
                lines = [
                    f"    {r.name}: {'tuple[Tensor, ...]' if r.type.is_list else _PY[r.type.base]}\n"
                    for r in returns
                ]
                kinds["_" + "_".join(r.name for r in returns)] = lines
    return "".join(f"class {n}(NamedTuple):\n{''.join(k)}\n" for n, k in sorted(kinds.items()))


def stubs(bs: list[Binding]) -> dict[str, str]:
    """Files below the Python package."""
    functions = (
        STUB_HEAD
        + "class Tensor(TensorBase):\n"
        + (stub(bs, "method") or "    ...\n")
        + "\n"
        + _named_results(bs)
    )
    functions += stub(bs, "")
    out = {"python/lamina/_ops.pyi": functions}
    for module in sorted({b.module for b in bs if b.module not in ("", "method")}):
        body = stub(bs, module)
        used = {"Tensor"} | set(re.findall(r"-> (_\w+):", body))
        text = STUB_HEAD + f"from lamina._ops import {', '.join(sorted(used))}\n\n" + body
        out[f"python/lamina/_ops_{module.replace('.', '_')}.pyi"] = text
    return out
