"""Compiles a ``tile:`` expression to a program of the tile machine.

Operations and their register classes are read from lamina/tile/ops.def, the machine's own list.
"""

from __future__ import annotations

import ast
import math
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from opgen.errors import ParagraphError, Where

_OPS_DEF = Path(__file__).parent.parent / "lamina" / "tile" / "ops.def"

_BINARY = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "div_floor",
    ast.Mod: "remainder",
    ast.Pow: "pow",
    ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
    ast.LShift: "shl",
    ast.RShift: "shr",
}
_COMPARE = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}


@dataclass(frozen=True)
class TileOp:
    name: str
    inputs: str
    output: str
    categories: str


@cache
def tile_ops() -> dict[str, TileOp]:
    """The machine's operations by name."""
    found = re.findall(
        r'LAMINA_TILE_OP\((\w+), (\d), "([CBR]*)", \'([CBR])\', "(\w*)"\)', _OPS_DEF.read_text()
    )
    return {name: TileOp(name, ins, out, cats) for name, _, ins, out, cats in found}


@dataclass(frozen=True)
class Instruction:
    op: str
    dst: int
    sources: tuple[int, ...]


@dataclass(frozen=True)
class TileProgram:
    """Registers are numbered: inputs, scalars, constants, temporaries."""

    inputs: tuple[str, ...]
    scalars: tuple[str, ...]
    constants: tuple[str, ...]  # C++ spellings
    classes: str
    code: tuple[Instruction, ...]
    output: int

    @property
    def output_class(self) -> str:
        return self.classes[self.output]

    @property
    def categories(self) -> str:
        """Letters of the compute categories in which every operation exists."""
        out = set("bifc")
        for i in self.code:
            out &= set(tile_ops()[i.op].categories)
        return "".join(c for c in "bifc" if c in out)

    @property
    def single_op(self) -> str | None:
        """The operation, if the program is just one over the operands in order (the direct path)."""
        if len(self.code) != 1 or self.constants:
            return None
        i = self.code[0]
        return i.op if i.sources == tuple(range(len(i.sources))) else None


@dataclass
class _Compiler:
    inputs: list[str]
    scalars: list[str]
    where: Where
    fixed: dict[str, str] = field(default_factory=dict)
    constants: list[str] = field(default_factory=list)
    # Values before numbering: ("in", i), ("scalar", i), ("const", i) or ("temp", i).
    code: list[tuple[str, tuple[tuple[str, int], ...]]] = field(default_factory=list)
    seen: dict[tuple, tuple[str, int]] = field(default_factory=dict)
    demand: dict[int, set[str]] = field(default_factory=dict)

    def fail(self, reason: str) -> ParagraphError:
        return ParagraphError(self.where, f"tile: {reason}")

    def class_of(self, v: tuple[str, int]) -> str:
        kind, i = v
        if kind == "temp":
            return tile_ops()[self.code[i][0]].output
        if kind == "in":
            wanted = self.demand.get(i, {"C"})
            return next(iter(wanted)) if len(wanted) == 1 else "C"
        return "C"

    def convert(self, v: tuple[str, int], want: str) -> tuple[str, int]:
        have = self.class_of(v)
        if have == want:
            return v
        how = {
            ("C", "B"): "to_bool",
            ("B", "C"): "from_bool",
            ("R", "C"): "from_real",
            ("C", "R"): "real",
        }
        if (have, want) not in how:
            raise self.fail(f"a value of class {have} is used where {want} is needed")
        return self.emit(how[have, want], v)

    def emit(self, op: str, *args: tuple[str, int]) -> tuple[str, int]:
        info = tile_ops().get(op)
        if info is None:
            raise self.fail(f"unknown operation {op!r}")
        if len(args) != len(info.inputs):
            raise self.fail(f"{op} takes {len(info.inputs)} operands; got {len(args)}")
        args = tuple(self.convert(a, want) for a, want in zip(args, info.inputs, strict=True))
        key = (op, args)
        if key not in self.seen:
            self.code.append((op, args))
            self.seen[key] = ("temp", len(self.code) - 1)
        return self.seen[key]

    def constant(self, value: object) -> tuple[str, int]:
        text = "true" if value is True else "false" if value is False else repr(value)
        if isinstance(value, float) and math.isinf(value):
            text = "-__builtin_inf()" if value < 0 else "__builtin_inf()"
        if isinstance(value, int) and not isinstance(value, bool):
            text = f"int64_t{{{value}}}"
        if text not in self.constants:
            self.constants.append(text)
        return ("const", self.constants.index(text))

    def is_constant(self, v: tuple[str, int], text: str) -> bool:
        return v[0] == "const" and self.constants[v[1]] == text

    def visit(self, node: ast.expr) -> tuple[str, int]:
        if isinstance(node, ast.Name):
            if node.id in self.fixed:
                return self.constant(int(self.fixed[node.id]))
            if node.id in self.inputs:
                return ("in", self.inputs.index(node.id))
            if node.id in self.scalars:
                return ("scalar", self.scalars.index(node.id))
            raise self.fail(f"unknown name {node.id!r}")
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float | bool):
            return self.constant(node.value)
        if isinstance(node, ast.UnaryOp):
            if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
                return self.constant(-node.operand.value)
            name = {ast.USub: "neg", ast.Invert: "bitwise_not", ast.Not: "logical_not"}.get(
                type(node.op)
            )
            if name is None:
                raise self.fail("unary + has no meaning here")
            v = self.visit(node.operand)
            if name == "logical_not" and self.class_of(v) == "B":
                name = "not_b"
            return self.emit(name, v)
        if isinstance(node, ast.BinOp):
            a, b = self.visit(node.left), self.visit(node.right)
            name = _BINARY[type(node.op)]
            if name == "mul":  # a specialised alpha of one
                if self.is_constant(a, "int64_t{1}"):
                    return b
                if self.is_constant(b, "int64_t{1}"):
                    return a
            if self.class_of(a) == self.class_of(b) == "B":
                name = {"bitwise_and": "and_b", "bitwise_or": "or_b", "bitwise_xor": "xor_b"}.get(
                    name, name
                )
            return self.emit(name, a, b)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            a, b = self.visit(node.left), self.visit(node.comparators[0])
            return self.emit(_COMPARE[type(node.ops[0])], a, b)
        if isinstance(node, ast.IfExp):
            return self.emit(
                "where", self.visit(node.test), self.visit(node.body), self.visit(node.orelse)
            )
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            return self.emit(node.func.id, *(self.visit(a) for a in node.args))
        raise self.fail(f"{ast.unparse(node)!r} is no expression of the tile machine")

    def find_demands(self, node: ast.expr) -> None:
        """Which class each input is used as, where an operation takes it directly."""
        for n in ast.walk(node):
            pairs: list[tuple[ast.expr, str]] = []
            if isinstance(n, ast.IfExp):
                pairs = [(n.test, "B"), (n.body, "C"), (n.orelse, "C")]
            elif (
                isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in tile_ops()
            ):
                pairs = list(zip(n.args, tile_ops()[n.func.id].inputs, strict=False))
            elif isinstance(n, ast.BinOp):
                pairs = [(n.left, "C"), (n.right, "C")]
            elif isinstance(n, ast.Compare):
                pairs = [(n.left, "C"), (n.comparators[0], "C")]
            elif isinstance(n, ast.UnaryOp):
                pairs = [(n.operand, "C")]
            for child, want in pairs:
                if isinstance(child, ast.Name) and child.id in self.inputs:
                    self.demand.setdefault(self.inputs.index(child.id), set()).add(want)


def compile_tile(
    text: str,
    inputs: list[str],
    scalars: list[str],
    where: Where,
    fixed: dict[str, str] | None = None,
) -> TileProgram:
    """Compiles `text` over tensor `inputs` and run-time `scalars`; names in `fixed` become constants."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as e:
        raise ParagraphError(where, f"tile: not an expression: {text!r}") from e
    c = _Compiler(inputs, scalars, where, fixed or {})
    c.find_demands(tree)
    result = c.visit(tree)
    first_const = len(inputs) + len(scalars)
    first_temp = first_const + len(c.constants)
    base = {"in": 0, "scalar": len(inputs), "const": first_const, "temp": first_temp}

    def number(v: tuple[str, int]) -> int:
        return base[v[0]] + v[1]

    classes = "".join(c.class_of(("in", i)) for i in range(len(inputs)))
    classes += "C" * (len(scalars) + len(c.constants))
    classes += "".join(tile_ops()[op].output for op, _ in c.code)
    code = tuple(
        Instruction(op, number(("temp", i)), tuple(number(a) for a in args))
        for i, (op, args) in enumerate(c.code)
    )
    if len(classes) > 64:
        raise ParagraphError(
            where, f"tile: the program needs {len(classes)} registers; the machine has 64"
        )
    return TileProgram(
        tuple(inputs), tuple(scalars), tuple(c.constants), classes, code, number(result)
    )
