"""Translates formulas (``grad:``, ``jvp:``, ``expr:``, ``shape:``) from the op list's language to C++.

The language is Python's expression syntax over the public operators: calls, methods (``x.mm(y)`` is ``mm(x, y)``),
attributes (``x.mH``), arithmetic, comparison, ``a if c else b``, ``not/and/or``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

from opgen.errors import ParagraphError, Where

_BINARY = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.Mod: "%",
}
_COMPARE = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
# Functions of the language whose C++ helper has another name (autograd/formulas.h).
_HELPERS = {"conj": "conj_of"}
# What a formula may ask of a tensor without keeping its values for backward.
METADATA = {
    "sizes": "Sizes",
    "dim": "int64_t",
    "dtype": "ScalarType",
    "numel": "int64_t",
    "geometry": "Geometry",
    "options": "TensorOptions",
}


@dataclass
class Formula:
    """One translated formula and what it uses."""

    cpp: str
    names: set[str] = field(default_factory=set)  # parameters and results used by value
    metadata: set[tuple[str, str]] = field(
        default_factory=set
    )  # (parameter, what), e.g. ("self", "sizes")


class _Translator(ast.NodeVisitor):
    def __init__(self, rename: Callable[[str], str], where: Where, masked: bool) -> None:
        self.rename, self.where, self.masked = rename, where, masked
        self.names: set[str] = set()
        self.metadata: set[tuple[str, str]] = set()

    def fail(self, reason: str) -> ParagraphError:
        return ParagraphError(self.where, f"formula: {reason}")

    def visit_Name(self, node: ast.Name) -> str:
        self.names.add(node.id)
        return self.rename(node.id)

    def visit_Constant(self, node: ast.Constant) -> str:
        v = node.value
        if v is None:
            return "std::nullopt"
        if isinstance(v, bool):
            return "true" if v else "false"
        if isinstance(v, int):
            return f"int64_t{{{v}}}"
        if isinstance(v, float):
            return repr(v)
        if isinstance(v, str):
            return '"' + v.replace('"', '\\"') + '"'
        raise self.fail(f"constant {v!r}")

    def visit_UnaryOp(self, node: ast.UnaryOp) -> str:
        if isinstance(node.op, ast.USub):
            if isinstance(node.operand, ast.Constant):
                return self.visit(ast.Constant(-node.operand.value))
            return f"(-{self.visit(node.operand)})"
        if isinstance(node.op, ast.Not):
            return f"(!{self.visit(node.operand)})"
        if isinstance(node.op, ast.Invert):
            return f"(~{self.visit(node.operand)})"
        raise self.fail("unary +")

    def visit_BinOp(self, node: ast.BinOp) -> str:
        # A cotangent of exactly zero gives a zero gradient in pointwise formulas, whatever it is multiplied with.
        if self.masked and isinstance(node.op, ast.Mult | ast.Div) and _is_cotangent(node.left):
            helper = "mul_zero" if isinstance(node.op, ast.Mult) else "div_zero"
            return f"{helper}({self.visit(node.left)}, {self.visit(node.right)})"
        left, right = self.visit(node.left), self.visit(node.right)
        if isinstance(node.op, ast.Pow):
            return f"pow({left}, {right})"
        if isinstance(node.op, ast.MatMult):
            return f"matmul({left}, {right})"
        op = _BINARY.get(type(node.op))
        if op is None:
            raise self.fail(f"operator in {ast.unparse(node)!r}")
        return f"({left} {op} {right})"

    def visit_Compare(self, node: ast.Compare) -> str:
        if len(node.ops) != 1:
            raise self.fail("chained comparison")
        return f"({self.visit(node.left)} {_COMPARE[type(node.ops[0])]} {self.visit(node.comparators[0])})"

    def visit_BoolOp(self, node: ast.BoolOp) -> str:
        op = " && " if isinstance(node.op, ast.And) else " || "
        return "(" + op.join(self.visit(v) for v in node.values) + ")"

    def visit_IfExp(self, node: ast.IfExp) -> str:
        return f"({self.visit(node.test)} ? {self.visit(node.body)} : {self.visit(node.orelse)})"

    def visit_List(self, node: ast.List) -> str:
        return "{" + ", ".join(self.visit(e) for e in node.elts) + "}"

    def visit_Subscript(self, node: ast.Subscript) -> str:
        return f"{self.visit(node.value)}[{self.visit(node.slice)}]"

    def visit_Attribute(self, node: ast.Attribute) -> str:
        return f"{node.attr}({self.visit(node.value)})"

    def visit_Call(self, node: ast.Call) -> str:
        if node.keywords:
            raise self.fail("keyword arguments")
        args = [self.visit(a) for a in node.args]
        if isinstance(node.func, ast.Name):
            return f"{_HELPERS.get(node.func.id, node.func.id)}({', '.join(args)})"
        if not isinstance(node.func, ast.Attribute):
            raise self.fail(f"call of {ast.unparse(node.func)!r}")
        receiver, name = node.func.value, node.func.attr
        if isinstance(receiver, ast.Name) and name in METADATA and not args:
            self.metadata.add((receiver.id, name))
            return self.rename(f"{receiver.id}.{name}")
        return f"{name}({', '.join([self.visit(receiver), *args])})"

    def generic_visit(self, node: ast.AST) -> str:
        raise self.fail(f"{ast.unparse(node)!r} is not of the formula language")


def plain_names(name: str) -> str:
    """``self.dtype`` is asked of the tensor itself."""
    return f"{name}()" if "." in name else name


def _is_cotangent(node: ast.expr) -> bool:
    """`grad` or a tangent (`self_t`) itself, or a product or quotient that starts with it."""
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        node = node.left
    return isinstance(node, ast.Name) and (node.id == "grad" or node.id.endswith("_t"))


def translate(
    text: str, where: Where, rename: Callable[[str], str] = plain_names, masked: bool = False
) -> Formula:
    """C++ for one formula. `rename` maps names (``self``, ``self.sizes``) to C++ spellings."""
    try:
        tree = ast.parse(str(text).strip(), mode="eval").body
    except SyntaxError as e:
        raise ParagraphError(where, f"formula: not an expression: {text!r}") from e
    t = _Translator(rename, where, masked)
    return Formula(t.visit(tree), t.names, t.metadata)
