"""The kernels around kernels: checks, shape rules, results and targets of every form of an operator."""

from __future__ import annotations

import ast

from opgen import cpp
from opgen.emit.operators import HEADER
from opgen.errors import ParagraphError
from opgen.formula import translate
from opgen.model import DTYPE_GROUPS, Function, Operator
from opgen.schema import Param
from opgen.tile_program import TileProgram

_PROMOTION = {
    "default": "Default",
    "float": "Float",
    "compare": "Compare",
    "keep": "Keep",
    "real": "Real",
}


def emit(ops: list[Operator]) -> str:
    text = (
        HEADER
        + '#include "lamina/kernels/generated_support.h"\n#include "lamina/generated/declarations.h"\n\n'
    )
    text += 'namespace lamina {\nnamespace [[gnu::visibility("hidden")]] generated {\n\n'
    for op in ops:
        text += f"// ---- {op.where}: {op.schema}\n"
        text += _EMITTERS[op.kind](op)
    return text + "}  // namespace generated\n}  // namespace lamina\n"


def _head(f: Function) -> str:
    params = cpp.params_of(f.schema)
    return f"{cpp.return_type(f.schema.returns)} {f.op_id}_kernel(KeySet{', ' if params else ''}{params}) {{\n"


# ---- pointwise -------------------------------------------------------------------------------------------------------


def _program(name: str, p: TileProgram) -> str:
    code = ", ".join(
        f"{{tile::Op::{i.op}, {i.dst}{''.join(f', {s}' for s in i.sources)}}}" for i in p.code
    )
    classes = ", ".join(f"tile::RegClass::{c}" for c in p.classes)
    text = f"constexpr tile::Instr {name}_code[] = {{{code or '{}'}}};\n"
    text += f"constexpr tile::RegClass {name}_classes[] = {{{classes}}};\n"
    text += f"constexpr uint8_t {name}_outputs[] = {{{p.output}}};\n"
    constants = "nullptr"
    if p.constants:
        text += f"constexpr Scalar {name}_constants[] = {{{', '.join(f'Scalar({c})' for c in p.constants)}}};\n"
        constants = f"{name}_constants"
    text += (
        f"constexpr tile::Program {name}_program{{{name}_code, {name}_classes, {name}_outputs, {constants}, "
        f"{len(p.code)}, {len(p.inputs)}, {len(p.scalars)}, {len(p.constants)}, 1, {len(p.classes)}}};\n"
    )
    return text


def categories(op: Operator) -> str:
    """Element types in which the operator computes, as letters."""
    assert op.program
    have = op.program.categories
    allowed = op.raw.get("dtypes")
    if allowed is not None:
        letters = "".join(DTYPE_GROUPS[g] for g in allowed)
        missing = set(letters) - set(have)
        if missing:
            raise ParagraphError(
                op.where, f"'dtypes' promises {sorted(missing)}, which the tile program has not"
            )
        have = letters
    return have


def _pointwise(op: Operator) -> str:
    p = op.program
    assert p
    base = op.functional.op_id
    scalars = [q for q in op.schema.params if q.name in p.scalars]
    original = {q.name for q in _union_params(op)}
    mask = sum(1 << i for i, q in enumerate(scalars) if q.name in original)
    text = "namespace {\n" + _program(base, p)
    unit = "nullptr"
    unit_direct = None
    if op.unit_program:
        text += _program(base + "_unit", op.unit_program)
        unit = f"&{base}_unit_program"
        unit_direct = _direct_op(op.unit_program, op.unit_scalar)
    direct = _direct_op(p, None)
    text += (
        f'constexpr kernels::Pointwise {base}_op{{"{op.name}", &{base}_program, {unit}, '
        f"{list(p.scalars).index(op.unit_scalar) if op.unit_scalar else -1}, "
        f"{'true' if op.unit_scalar == 'alpha' else 'false'}, {len(p.inputs)}, {len(p.scalars)}, {mask}, "
        f"kernels::Promotion::{_PROMOTION[op.raw.get('promote', 'default')]}, tile::RegClass::{p.output_class}, "
        f"{'true' if direct else 'false'}, tile::Op::{direct or 'copy'}, "
        f"{'true' if unit_direct else 'false'}, tile::Op::{unit_direct or 'copy'}, "
        f"{'true' if op.raw.get('saturate') else 'false'}, {_category_bits(categories(op))}}};\n"
        "}  // namespace\n"
    )
    if len(p.inputs) == 0:
        raise ParagraphError(op.where, "a pointwise operator needs a tensor operand")
    for f in op.functions:
        text += _head(f) + checks(op, f)
        text += f"  const Tensor* const inputs[] = {{{', '.join('&' + n for n in p.inputs)}}};\n"
        numbers = "nullptr"
        if len(scalars) == 1 and scalars[0].type.base == "Scalar":
            numbers = f"&{scalars[0].name}"
        elif scalars:
            text += f"  const Scalar scalars[] = {{{', '.join(f'Scalar({q.name})' for q in scalars)}}};\n"
            numbers = "scalars"
        if f.form == "functional":
            text += f"  return kernels::pointwise({base}_op, inputs, {numbers});\n"
        elif f.form == "out":
            out = next(q.name for q in f.schema.params if q.type.written)
            text += f"  kernels::pointwise_out({base}_op, {out}, inputs, {numbers});\n"
            text += f"  return {out};\n"
        else:
            text += f"  kernels::pointwise_inplace({base}_op, inputs, {numbers});\n"
            text += "  return self;\n"
        text += "}\n"
    return text + "\n"


def _category_bits(letters: str) -> int:
    return sum({"b": 1, "i": 2, "f": 4, "c": 8}[c] for c in letters)


def _union_params(op: Operator) -> list[Param]:
    return [p for p in op.schema.params if p.union]


def _direct_op(p: TileProgram, unit_scalar: str | None) -> str | None:
    """The one operation over tensors, then numbers, in order; a unit scalar that is folded away does not count."""
    if len(p.code) != 1 or len(p.inputs) + len(p.scalars) > 3 + bool(unit_scalar):
        return None
    i = p.code[0]
    expected, at = [], 0
    for _ in p.inputs:
        expected.append(at)
        at += 1
    for s in p.scalars:
        if s != unit_scalar:
            expected.append(at)
        at += 1
    return i.op if list(i.sources) == expected else None


# ---- reductions ------------------------------------------------------------------------------------------------------


def _reduction(op: Operator) -> str:
    base = op.functional.op_id
    kind = op.raw["reduce"]
    accumulate = {"self": "Self", "sum": "Sum", "float": "Float", "bool": "Bool", "index": "Index"}[
        op.raw.get("accumulate", "self")
    ]
    letters = "".join(DTYPE_GROUPS[g] for g in op.raw.get("dtypes", DTYPE_GROUPS))
    text = (
        f'namespace {{\nconstexpr kernels::Reduction {base}_op{{"{op.name}", tile::Reduce::{kind}, '
        f"kernels::Accumulate::{accumulate}, {_category_bits(letters)}, true}};\n}}  // namespace\n"
    )
    for f in op.functions:
        text += _head(f) + checks(op, f)
        text += "  kernels::ReductionArgs args;\n"
        for q in op.schema.params:
            if q.name == "dim":
                if q.type.is_list:
                    text += "  args.dims = dim;\n"
                elif q.type.optional:
                    text += "  if (dim) args.dims = IntList(&*dim, 1);\n"
                else:
                    text += "  args.dims = IntList(&dim, 1);\n"
            elif q.name in ("keepdim", "dtype"):
                text += f"  args.{q.name} = {q.name};\n"
            elif q.name == "correction":
                text += "  if (correction) args.correction = correction->to_double();\n"
            elif q.name == "unbiased":
                text += "  args.correction = unbiased ? 1 : 0;\n"
            elif q.name != "self":
                raise ParagraphError(op.where, f"a reduction has no use for parameter {q.name!r}")
        if f.form == "out":
            text += f"  kernels::reduction_out({base}_op, out, self, args);\n  return out;\n"
        else:
            text += f"  return kernels::reduction({base}_op, self, args);\n"
        text += "}\n"
    return text + "\n"


# ---- checks and shapes -----------------------------------------------------------------------------------------------


def checks(op: Operator, f: Function) -> str:
    """The argument contract: `check:` maps a parameter (or `relation`) to a condition or a list of them."""
    text = ""
    for key, conditions in op.raw.get("check", {}).items():
        for condition in conditions if isinstance(conditions, list) else [conditions]:
            message = None
            if isinstance(condition, dict):
                ((condition, message),) = condition.items()
            text += _check(op, key, str(condition), message)
    return text


def _check(op: Operator, key: str, condition: str, message: str | None) -> str:
    param = op.schema.param(key)
    if param is None and key != "relation":
        # An overload without that parameter has nothing to check.
        if key not in {w for w in op.raw["op"].replace("(", " ").replace(",", " ").split()}:
            raise ParagraphError(op.where, f"'check' names {key!r}, which is no parameter")
        return ""
    names = {n.id for n in ast.walk(ast.parse(condition, mode="eval")) if isinstance(n, ast.Name)}
    tensors = {p.name for p in op.schema.params if p.type.is_tensor}
    if param is not None and param.type.is_tensor:
        # Conditions on one tensor speak of it without naming it: "dim == 2".
        tree = ast.parse(condition, mode="eval")
        tree = ast.fix_missing_locations(
            _Implicit(key, {p.name for p in op.schema.params}).visit(tree)
        )
        condition_cpp = translate(ast.unparse(tree), op.where).cpp
    else:
        condition_cpp = translate(condition, op.where, masked=False).cpp
    seen = [key] if param is not None else [p.name for p in op.schema.params if p.name in names]
    got = ", ".join(
        f'"{" and " if i else ""}{n} ", {n}' for i, n in enumerate(seen) if n in tensors
    )
    # A message says what is wrong, or what must be; a bare condition is shown as it stands.
    said = message or f"{condition if param is None else f'{key}: {condition}'} does not hold"
    said = said.replace('"', "'")
    if not got:
        got = ", ".join(f'"{n} ", {n}' for n in seen) or '"these arguments"'
    return f'  LAMINA_CHECK({_checked(condition_cpp)}, "{op.name}: {said}; got ", {got});\n'


def _checked(cpp_text: str) -> str:
    return (
        cpp_text[1:-1]
        if cpp_text.startswith("(") and cpp_text.endswith(")") and cpp_text.count("(") == 1
        else cpp_text
    )


class _Implicit(ast.NodeTransformer):
    """``dim == 2`` about parameter x means ``x.dim() == 2``."""

    def __init__(self, param: str, known: set[str]) -> None:
        self.param, self.known = param, known

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self.known:
            return node
        return ast.Call(ast.Attribute(ast.Name(self.param), node.id), [], [])

    def visit_Call(self, node: ast.Call) -> ast.expr:
        node.args = [self.visit(a) for a in node.args]
        if isinstance(node.func, ast.Name):
            return ast.Call(node.func, [ast.Name(self.param), *node.args], [])
        return node


def _metas(op: Operator) -> str:
    """`metas`, an array of ResultMeta, one for each result."""
    shape = op.raw["shape"]
    count = len(op.schema.returns)
    if isinstance(shape, str):
        call = f"shape::{shape}({cpp.args_of(op.schema)})"
        if count == 1:
            return f"  const std::array<ResultMeta, 1> metas{{{call}}};\n"
        return f"  const std::array<ResultMeta, {count}> metas = {call};\n"
    dtype = translate(op.raw["dtype"], op.where).cpp if "dtype" in op.raw else "self.dtype()"
    sizes = ", ".join(f"Dim({translate(str(e), op.where).cpp}).value()" for e in shape)
    first = next(p.name for p in op.schema.params if p.type.is_tensor)
    others = [p.name for p in op.schema.params if p.type.is_tensor]
    device = (
        f'common_device({{{", ".join("&" + n for n in others)}}}, "{op.name}")'
        if len(others) > 1
        else f"{first}.device()"
    )
    return f"  const std::array<ResultMeta, 1> metas{{ResultMeta{{Sizes{{{sizes}}}, {dtype}, {device}}}}};\n"


def _custom(op: Operator) -> str:
    shape = op.raw["shape"]
    kernel = op.raw["kernels"].get("CPU") or op.raw["kernels"].get("All")
    text = ""
    n = len(op.schema.returns)
    for f in op.functions:
        text += _head(f) + checks(op, f)
        args = cpp.args_of(op.schema)
        comma = ", " if args else ""
        readable = _readable(op)
        if shape == "inplace":
            text += _write_in_place(op, f, kernel)
        elif shape == "lists":  # written in place, list by list
            text += f"  return kernels::{kernel}({args});\n"
        elif shape == "dynamic":
            text += readable
            if f.form == "functional":
                text += f"  return kernels::{kernel}({args});\n"
            elif f.form == "out":
                text += (
                    f'  write_result(out, kernels::{kernel}({args}), "{op.name}");\n  return out;\n'
                )
            else:
                raise ParagraphError(op.where, "a result of dynamic size has no in-place form")
        else:
            text += _metas(op)
            if f.form == "functional":
                names = [f"result{i}" for i in range(n)]
                for i, name in enumerate(names):
                    text += f"  Tensor {name} = make_result(metas[{i}]);\n"
                call = f"kernels::{kernel}({', '.join(names)}{comma}{args});\n"
                text += _unless_meta("result0", readable, call)
                text += f"  return {names[0] if n == 1 else '{' + ', '.join(names) + '}'};\n"
            else:
                outs = (
                    [q.name for q in f.schema.params if q.type.written]
                    if f.form == "out"
                    else ["self"]
                )
                inputs = ", ".join("&" + q.name for q in op.schema.params if q.type.is_tensor)
                for i, name in enumerate(outs):
                    text += (
                        f"  const Target target{i}({name}, metas[{i}], {{{inputs}}}, "
                        f'{"true" if f.form == "inplace" else "false"}, "{op.name}");\n'
                    )
                targets = ", ".join(f"target{i}.tensor()" for i in range(len(outs)))
                call = f"kernels::{kernel}({targets}{comma}{args});\n"
                text += _unless_meta(outs[0], readable, call)
                for i, _ in enumerate(outs):
                    text += f"  target{i}.finish();\n"
                text += f"  return {outs[0] if len(outs) == 1 else '{' + ', '.join(outs) + '}'};\n"
        text += "}\n"
    return text + "\n"


def _readable(op: Operator) -> str:
    """Operands of one call may lie on several devices; a kernel reads only what has bytes."""
    single = [p.name for p in op.schema.params if p.type.is_tensor]
    lists = [p.name for p in op.schema.params if p.type.is_tensor_list]
    text = ""
    if len(single) + len(lists) > 1 and single:
        text += f'  check_readable({{{", ".join("&" + n for n in single)}}}, "{op.name}");\n'
    for name in lists:
        text += f'  check_readable({name}, "{op.name}");\n'
    return text


def _unless_meta(result: str, readable: str, call: str) -> str:
    if not readable:
        return f"  if (!{result}.is_meta()) {call}"
    readable = readable.replace("  check", "    check")
    return f"  if (!{result}.is_meta()) {{\n{readable}    {call}  }}\n"


def _write_in_place(op: Operator, f: Function, kernel: str) -> str:
    """The kernel writes into its first argument; the functional form works on a copy."""
    rest = ", ".join(p.name for p in op.schema.params[1:])
    comma = ", " if rest else ""
    first = op.schema.params[0].name
    readable = _readable(op)
    on_result = f"kernels::{kernel}(result{comma}{rest});\n"
    on_first = f"kernels::{kernel}({first}{comma}{rest});\n"
    if (
        readable and kernel != "copy"
    ):  # copy has an error of its own; kernels of one tensor know meta
        on_result = _unless_meta("result", readable, on_result)
        on_first = _unless_meta(first, readable, on_first)
    else:
        on_result, on_first = f"  {on_result}", f"  {on_first}"
    if f.form == "functional":
        return f"  Tensor result = copy_of({first});\n{on_result}  return result;\n"
    if f.form == "out":
        return (
            f"  Tensor result = copy_of({first});\n{on_result}"
            f'  write_result(out, result, "{op.name}");\n  return out;\n'
        )
    return (
        f'  check_no_internal_overlap({first}, "{f.schema.name}");\n{on_first}  return {first};\n'
    )


def _view(op: Operator) -> str:
    kernel = op.raw["kernels"]["All"]
    f = op.functional
    text = _head(f) + checks(op, f) + f"  return kernels::{kernel}({cpp.args_of(f.schema)});\n}}\n"
    if op.inplace:
        text += _head(op.inplace) + checks(op, f)
        text += (
            f"  take_window(self, kernels::{kernel}({cpp.args_of(f.schema)}));\n"
            "  return self;\n}\n"
        )
    return text + "\n"


# ---- composites ------------------------------------------------------------------------------------------------------


def composite_call(op: Operator) -> str:
    if "composite" in op.raw:
        return f"composite::{op.raw['composite']}({cpp.args_of(op.schema)})"
    return f"composite::expr_{op.functional.op_id}({cpp.args_of(op.schema)})"


def _composite(op: Operator) -> str:
    text = ""
    for f in op.functions:
        text += _head(f) + checks(op, f)
        if f.form == op.functional.form:
            text += f"  return {composite_call(op)};\n"
        elif f.form == "inplace":
            call = composite_call(op).replace("(self", "(value_before_write(self)", 1)
            text += f'  return write_inplace(self, {call}, "{f.schema.name}");\n'
        else:
            outs = [q.name for q in f.schema.params if q.type.written]
            if len(outs) == 1:
                text += (
                    f'  write_result(out, {composite_call(op)}, "{op.name}");\n'
                    "  out.impl()->bump_version();\n  return out;\n"
                )
            else:
                text += f"  const auto results = {composite_call(op)};\n"
                for i, o in enumerate(outs):
                    text += f'  write_result({o}, std::get<{i}>(results), "{op.name}");\n'
                    text += f"  {o}.impl()->bump_version();\n"
                text += f"  return {{{', '.join(outs)}}};\n"
        text += "}\n"
    return text + "\n"


def expressions(ops: list[Operator]) -> str:
    """Composites whose paragraph is one expression."""
    text = (
        HEADER
        + '#include "lamina/autograd/formulas.h"\n#include "lamina/generated/declarations.h"\n#include "lamina/ops.h"\n\n'
    )
    text += "namespace lamina::composite {\n\nusing namespace ops;\nusing namespace autograd::formulas;\n\n"
    for op in ops:
        if "expr" in op.raw:
            cpp_text = translate(op.raw["expr"], op.where).cpp
            returns = cpp.return_type(op.schema.returns)
            text += f"// {op.where}\n{returns} expr_{op.functional.op_id}({cpp.params_of(op.schema)}) {{\n  return {cpp_text};\n}}\n\n"
    return text + "}  // namespace lamina::composite\n"


_EMITTERS = {
    "pointwise": _pointwise,
    "reduction": _reduction,
    "custom": _custom,
    "view": _view,
    "composite": _composite,
}


def declarations(operators: list[Operator]) -> str:
    """Signatures of the hand-written functions that paragraphs name; the linker checks that they exist."""
    rooms: dict[str, dict[str, None]] = {"kernels": {}, "shape": {}, "composite": {}}
    for op in operators:
        params = cpp.params_of(op.schema)
        comma = ", " if params else ""
        returns = cpp.return_type(op.schema.returns)
        n = len(op.schema.returns)
        if op.kind == "composite":
            name = op.raw.get("composite") or f"expr_{op.functional.op_id}"
            rooms["composite"][f"{returns} {name}({params});"] = None
        if op.kind == "view":
            rooms["kernels"][f"{returns} {op.raw['kernels']['All']}({params});"] = None
        if op.kind == "custom":
            kernel = op.raw["kernels"].get("CPU") or op.raw["kernels"]["All"]
            shape = op.raw["shape"]
            if shape in ("dynamic", "lists"):
                rooms["kernels"][f"{returns} {kernel}({params});"] = None
            elif shape == "inplace":
                rooms["kernels"][f"void {kernel}({params});"] = None
            else:
                outs = ", ".join(f"const Tensor& result{i}" for i in range(n))
                rooms["kernels"][f"void {kernel}({outs}{comma}{params});"] = None
                if isinstance(shape, str):
                    result = "ResultMeta" if n == 1 else f"std::array<ResultMeta, {n}>"
                    rooms["shape"][f"{result} {shape}({params});"] = None
    text = (
        HEADER
        + '#pragma once\n\n#include "lamina/dispatch/signature_types.h"\n#include "lamina/shape/result_meta.h"\n\n'
    )
    for room, lines in rooms.items():
        # Nobody outside of the library calls them; names that are exported cost 100 bytes each.
        text += (
            f'namespace lamina {{\nnamespace [[gnu::visibility("hidden")]] {room} {{\n'
            + "\n".join(lines)
            + f"\n}}  // namespace {room}\n}}  // namespace lamina\n\n"
        )
    return text
