"""Forward mode: for every differentiable operator the rule that carries tangents along.

A rule hides its level, calls the operator again, and adds up what each operand's tangent contributes. Where a
contribution comes from, in this order:

- ``jvp:`` of the paragraph, an expression in which ``self_t`` is the tangent of ``self``; a list of them for several
  results (None: no tangent);
- a gradient that is always zero has a tangent that is zero;
- kind view: the same view of the tangent;
- ``linear:``: the operator itself, with the tangent in the place of the operand;
- kind pointwise: the gradient formula, which is a factor, element by element. Gradients are conjugated by convention,
  so for complex numbers tangent and result are conjugated; operators that are not holomorphic need ``jvp:``;
- kind reduction: the gradient of each result, multiplied with the tangent and summed where the operator reduces.

An operand for which none of these holds fails the build.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from opgen import cpp
from opgen.errors import ParagraphError
from opgen.formula import Formula, translate
from opgen.model import Function, Operator
from opgen.schema import Param

_ZERO = "zeros_like(grad)"


@dataclass(frozen=True)
class Contribution:
    """What one operand's tangent adds to the tangent of one result."""

    operand: Param
    result: int
    code: str  # statements; `self_t` is the tangent, `sum` takes the contribution
    names: frozenset[str]  # operands and results that it reads


def operands(op: Operator) -> list[Param]:
    return [p for p in op.schema.params if p.name in op.gradients.formulas]


def result_names(op: Operator) -> list[str]:
    returns = op.schema.returns
    if len(returns) == 1:
        return ["result"]
    return [r.name or f"result{i}" for i, r in enumerate(returns)]


def _rename(op: Operator) -> Callable[[str], str]:
    lists = {p.name for p in op.schema.params if p.type.is_list and p.type.base == "Tensor"}

    def rename(name: str) -> str:
        if "." not in name:
            return name
        base, what = name.split(".")
        if base in lists:
            return f"{what}_list({base})"
        return f"formulas::sizes({base})" if what == "sizes" else f"{base}.{what}()"

    return rename


def _translate(op: Operator, text: str) -> Formula:
    f = translate(text, op.where, _rename(op), masked=op.kind == "pointwise")
    known = {p.name for p in op.schema.params} | set(result_names(op)) | {"grad"}
    known |= {f"{p.name}_t" for p in operands(op)}
    for name in sorted({*f.names, *(base for base, _ in f.metadata)} - known):
        raise ParagraphError(op.where, f"forward-mode formula uses unknown name {name!r}")
    return f


def contributions(op: Operator) -> list[Contribution]:
    """The rule of an operator that is no view; raises ParagraphError where an operand has none."""
    out: list[Contribution] = []
    for p in operands(op):
        out += _of_operand(op, p)
    return out


def _of_operand(op: Operator, p: Param) -> list[Contribution]:
    g = op.gradients
    if p.name in g.jvp:
        texts = g.jvp[p.name]
        found = []
        for i, text in enumerate(texts):
            if text is not None:
                f = _translate(op, text)
                names = frozenset(f.names | {base for base, _ in f.metadata})
                found.append(Contribution(p, i, f"sum{i}.add({f.cpp});", names))
        return found
    if g.formulas[p.name].strip() == _ZERO and op.kind != "pointwise":
        return []
    if p.name in g.linear and op.kind != "pointwise":
        args = [f"{q.name}_t" if q is p else q.name for q in op.schema.params]
        call = f"ops::{op.functional.cpp}({', '.join(args)})"
        if len(op.schema.returns) > 1:
            call = f"std::get<0>({call})"
        names = frozenset(q.name for q in op.schema.params if q is not p)
        return [Contribution(p, 0, f"sum0.add({call});", names)]
    if op.kind == "pointwise":
        f = _translate(op, g.formulas[p.name])
        code = f"const Tensor grad = sum0.cotangent({p.name}_t);\n    sum0.add_conj({f.cpp});"
        return [Contribution(p, 0, code, frozenset(f.names))]
    if op.kind == "reduction":
        f = _translate(op, g.formulas[p.name])
        dims, keepdim = "std::nullopt", "false"
        for q in op.schema.params:
            if q.name == "dim":
                dims = "dim" if q.type.is_list else "IntList(&dim, 1)"
            elif q.name == "keepdim":
                keepdim = "keepdim"
        code = (
            f"const Tensor grad = ops::ones_like(result);\n    sum0.add(reduced_tangent({f.cpp}, "
            f"{p.name}_t, {dims}, {keepdim}));"
        )
        return [Contribution(p, 0, code, frozenset(f.names | {"result"}))]
    if g.no_jvp is not None:
        reason = g.no_jvp.replace('"', "'")
        return [
            Contribution(p, 0, f'forward::raise_missing("{op.name}", "{reason}");', frozenset())
        ]
    raise ParagraphError(
        op.where,
        f"{op.name}: no forward-mode rule for {p.name!r}; give 'jvp', or 'linear' where the operator is linear in it",
    )


def is_active(f: Function, op: Operator) -> str:
    """The operands that decide whether there is anything to do."""
    names = [p.name for p in operands(op)]
    if f.form == "inplace" and "self" not in names:
        names.insert(0, "self")
    return ", ".join(names)


def head(op: Operator, f: Function) -> str:
    """First lines of an autograd kernel: over to the rule, where a tangent comes by."""
    if f.form == "out":
        tensors = ", ".join(p.name for p in f.schema.params if p.type.base == "Tensor")
        return (
            "  if (forward::t_visible) [[unlikely]]\n"
            f'    if (forward::highest_level({tensors}) >= 0) forward::raise_out("{op.name}");\n'
        )
    if op.gradients.absent is not None:  # written without derivative
        if f.schema.params[0].type.is_list:
            return ""
        return "  if (forward::t_visible) [[unlikely]] forward::drop_tangents(self);\n"
    args = ", ".join(["level", "keys", cpp.args_of(f.schema)])
    return (
        "  if (forward::t_visible) [[unlikely]]\n"
        f"    if (const int level = forward::highest_level({is_active(f, op)}); level >= 0)\n"
        f"      return {f.op_id}_forward({args});\n"
    )


def rule(op: Operator, f: Function) -> str:
    """The function that an autograd kernel goes over to; empty where there is none."""
    if f.form == "out" or op.gradients.absent is not None:
        return ""
    params, returns = cpp.params_of(f.schema), cpp.return_type(f.schema.returns)
    kernel = f"{f.op_id}_autograd"
    again = f"{kernel}(keys, {cpp.args_of(f.schema)})"
    text = f"{returns} {kernel}(KeySet keys, {params});\nnamespace {{\n"
    text += (
        f"[[gnu::cold, gnu::noinline]] {returns} {f.op_id}_forward(int level, KeySet keys, {params}) {{\n"
        "  const forward::Hide hide(level);\n"
    )
    if op.is_view:
        text += _view_rule(op, f, again)
    elif f.form == "inplace":
        text += _inplace_rule(op, again)
    else:
        text += _functional_rule(op, returns, again)
    return text + "}\n}  // namespace\n"


def _view_rule(op: Operator, f: Function, again: str) -> str:
    (p,) = operands(op)
    if p.name in op.gradients.jvp:
        (formula,) = op.gradients.jvp[p.name]
        view = _translate(op, str(formula)).cpp
    else:
        args = ", ".join(f"{p.name}_t" if q is p else q.name for q in op.schema.params)
        view = f"ops::{op.functional.cpp}({args})"
    text = f"  const Tensor {p.name}_t = forward::tangent_for_view(level, {p.name});\n"
    returns = cpp.return_type(op.functional.schema.returns)
    text += f"  {returns} view_t;\n  if ({p.name}_t.defined()) view_t = {view};\n"
    if f.form == "inplace":
        text += f"  {again};\n  forward::replace_window(level, self, std::move(view_t));\n"
        return text + "  return self;\n"
    text += f"  {returns} result = {again};\n"
    text += "  forward::set_view_tangent(level, result, std::move(view_t));\n"
    return text + "  return result;\n"


def _contribution(c: Contribution) -> str:
    p = c.operand
    if p.type.is_list:
        return (
            f"  if (forward::has_tangent(level, {p.name})) {{\n"
            f"    const std::vector<Tensor> {p.name}_t = forward::tangents(level, {p.name});\n"
            f"    {c.code}\n  }}\n"
        )
    return (
        f"  if (const Tensor {p.name}_t = forward::tangent(level, {p.name}); {p.name}_t.defined()) {{\n"
        f"    {c.code}\n  }}\n"
    )


def _functional_rule(op: Operator, returns: str, again: str) -> str:
    parts = contributions(op)
    several = len(op.schema.returns) > 1
    variable = "results" if several else "result"
    text = f"  {returns} {variable} = {again};\n"
    used = {name for c in parts for name in c.names}
    for i, name in enumerate(result_names(op)):
        value = f"std::get<{i}>(results)" if several else "result"
        mine = [c for c in parts if c.result == i]
        if several and (name in used or mine):
            text += f"  [[maybe_unused]] const Tensor& {name} = {value};\n"
    for i in sorted({c.result for c in parts}):
        name = result_names(op)[i]
        text += f"  forward::Sum sum{i}({name});\n"
    for c in parts:
        text += _contribution(c)
    for i in sorted({c.result for c in parts}):
        text += f"  forward::set_tangent(level, {result_names(op)[i]}, sum{i}.take());\n"
    return text + f"  return {variable};\n"


def _inplace_rule(op: Operator, again: str) -> str:
    parts = contributions(op)
    names = {name for c in parts for name in c.names}
    # What the formulas keep of self must survive the write; another operand may be self, too.
    others = [
        p.name
        for p in op.schema.params[1:]
        if p.type.base == "Tensor" and not p.type.is_list and p.name in names
    ]
    copied = ["true"] if "self" in names else [f"{name}.is_same(self)" for name in others]
    text = "  forward::Sum sum0(self);\n  const Tensor& target = self;\n"
    if copied:
        text += f"  const Tensor before = {' || '.join(copied)} ? ops::clone(self) : Tensor();\n"
        text = text.replace("true ? ops::clone(self) : Tensor()", "ops::clone(self)")
    for name in others:
        text += f"  const Tensor& {name}_before = {name}.is_same(self) ? before : {name};\n"
    for p in dict.fromkeys(c.operand.name for c in parts):
        how = "tangent_before_write" if p == "self" else "tangent"
        text += f"  const Tensor {p}_t = forward::{how}(level, {p});\n"
    again = f"  {again};\n"
    late = "result" in names
    if late:
        text += again
    for c in parts:
        shadows = ""
        if "self" in c.names:
            shadows += "    const Tensor& self = before;\n"
        for name in others:
            if name in c.names:
                shadows += f"    const Tensor& {name} = {name}_before;\n"
        if "result" in c.names:
            shadows += "    const Tensor& result = target;\n"
        text += f"  if ({c.operand.name}_t.defined()) {{\n{shadows}    {c.code}\n  }}\n"
    if not late:
        text += again
    return text + "  forward::write_tangent(level, target, sum0.value());\n  return self;\n"
