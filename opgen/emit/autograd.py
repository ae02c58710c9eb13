"""Autograd: a node for each differentiable operator and the kernels that record it."""

from __future__ import annotations

from opgen import cpp
from opgen.emit.operators import HEADER, needs_autograd_kernel
from opgen.errors import ParagraphError
from opgen.formula import Formula, translate
from opgen.model import Function, Operator
from opgen.schema import Param

# How a saved argument is kept: (member type, how it is filled, how it is read).
_KEPT = {
    "int[]": ("Sizes", "Sizes(std::span<const int64_t>({0}))"),
    "int[]?": (
        "std::optional<Sizes>",
        "({0} ? std::optional<Sizes>(Sizes(std::span<const int64_t>(*{0}))) : std::nullopt)",
    ),
    "str": ("std::string", "std::string({0})"),
    "str?": (
        "std::optional<std::string>",
        "({0} ? std::optional<std::string>(*{0}) : std::nullopt)",
    ),
}
_META_TYPES = {"sizes": "Sizes", "dim": "int64_t", "dtype": "ScalarType", "numel": "int64_t"}
_META_FROM = {
    "sizes": "formulas::sizes({0})",
    "dim": "{0}.dim()",
    "dtype": "{0}.dtype()",
    "numel": "{0}.numel()",
}


def emit(ops: list[Operator]) -> str:
    text = HEADER + (
        '#include "lamina/autograd/formulas.h"\n#include "lamina/dispatch/operator.h"\n'
        '#include "lamina/kernels/generated_support.h"\n\n'
        "namespace lamina::generated {\n\nusing namespace ops;\nusing namespace autograd::formulas;\n"
        "using autograd::SavedTensor;\nnamespace formulas = autograd::formulas;\n\n"
    )
    for op in ops:
        for f in op.functions:
            if not needs_autograd_kernel(op, f):
                continue
            if f is op.functional and op.gradients.absent is None:
                text += f"// ---- {op.where}: {op.schema}\n" + _Node(op).emit()
            text += _kernel(op, f)
    return text + "}  // namespace lamina::generated\n"


def differentiable_inputs(op: Operator) -> list[Param]:
    """Inputs that have a formula, in order of the schema: the edges of the node."""
    return [p for p in op.schema.params if p.name in op.gradients.formulas]


class _Node:
    """Gathers what the formulas of one operator use and writes the node class."""

    def __init__(self, op: Operator) -> None:
        self.op = op
        self.params = {p.name: p for p in op.schema.params}
        self.results = {r.name or f"result{i}" if len(op.schema.returns) > 1 else "result": i
                        for i, r in enumerate(op.schema.returns)}  # fmt: skip
        self.formulas: dict[str, Formula] = {}
        self.saved: dict[str, None] = {}  # tensors kept by value
        self.used_by: dict[str, set[str]] = {}  # saved tensor -> inputs whose gradient needs it
        self.saved_results: dict[str, None] = {}
        self.kept: dict[str, None] = {}  # arguments that are no tensors
        self.metadata: dict[tuple[str, str], None] = {}
        for p in differentiable_inputs(op):
            f = translate(
                op.gradients.formulas[p.name], op.where, self.rename, masked=op.kind == "pointwise"
            )
            self.formulas[p.name] = f
            self.collect(f, p.name)
            if op.kind == "pointwise":
                self.metadata[p.name, "sizes"] = None
            if p.type.base == "Tensor":
                self.metadata[p.name, "dtype"] = None

    def rename(self, name: str) -> str:
        if "." in name:
            base, what = name.split(".")
            return f"{base}_{what}" if base in self.params else f"{what}({base})"
        return name

    def collect(self, f: Formula, of: str) -> None:
        for name in sorted(f.names):
            if name in ("grad", "grads", "wants"):
                continue
            if name in self.results:
                self.saved_results[name] = None
            elif name in self.params:
                (self.saved if self.params[name].type.base == "Tensor" else self.kept)[name] = None
                self.used_by.setdefault(name, set()).add(of)
            else:
                raise ParagraphError(self.op.where, f"formula of {of!r} uses unknown name {name!r}")
        for name, what in sorted(f.metadata):
            if name in self.params:
                self.metadata[name, what] = None
            elif name in self.results:
                self.saved_results[name] = None
            elif name != "grad":
                raise ParagraphError(self.op.where, f"formula of {of!r} uses unknown name {name!r}")

    @property
    def class_name(self) -> str:
        return f"{self.op.gradients.node}_{self.op.functional.op_id}"

    def kept_type(self, name: str) -> str:
        t = self.params[name].type
        key = f"int[]{'?' if t.optional else ''}" if t.is_list else str(t)
        if key in _KEPT:
            return _KEPT[key][0]
        return cpp.param_type(t).removeprefix("const ").removesuffix("&")

    def kept_fill(self, name: str) -> str:
        t = self.params[name].type
        key = f"int[]{'?' if t.optional else ''}" if t.is_list else str(t)
        return _KEPT[key][1].format(name) if key in _KEPT else name

    def emit(self) -> str:
        op = self.op
        text = f"namespace {{\nstruct {self.class_name} final : autograd::Node {{\n"
        for name in self.saved:
            kind = "autograd::SavedTensorList" if self.params[name].type.is_list else "SavedTensor"
            text += f"  {kind} saved_{name};\n"
        for name in self.saved_results:
            text += f"  SavedTensor saved_{name};\n"
        for name in self.kept:
            text += f"  {self.kept_type(name)} {name};\n"
        for name, what in self.metadata:
            is_list = self.params[name].type.is_list
            kind = f"std::vector<{_META_TYPES[what]}>" if is_list else _META_TYPES[what]
            text += f"  {kind} {name}_{what}{{}};\n"
        text += f'  const char* name() const override {{ return "{op.gradients.node}"; }}\n'
        text += "  void release_saved() override {\n    Node::release_saved();\n"
        for name in [*self.saved, *self.saved_results]:
            text += f"    saved_{name}.reset();\n"
        text += "  }\n"
        text += "  void apply(std::span<Tensor> grads, std::span<Tensor> results) override {\n"
        if self.saved or self.saved_results:
            text += "    check_not_released();\n"
        if len(op.schema.returns) == 1 and not op.schema.returns[0].type.is_list:
            text += "    const Tensor grad = std::move(grads[0]);\n"
        else:
            uses_all = any("grads" in f.names for f in self.formulas.values())
            if uses_all:
                text += (
                    "    for (uint32_t i = 0; i < grads.size(); ++i)\n"
                    "      if (!grads[i].defined()) grads[i] = zeros_like_output(i);\n"
                )
            else:
                text += "    const Tensor grad = std::move(grads[0]);\n    if (!grad.defined()) return;\n"
        for i, p in enumerate(differentiable_inputs(op)):
            f = self.formulas[p.name]
            used = [
                n
                for n in [*self.saved, *self.saved_results]
                if n in f.names or any(m == n for m, _ in f.metadata)
            ]
            used = [n for n in used if n in f.names or n in self.saved_results]
            body = ""
            for n in used:
                body += f"      const auto {n} = saved_{n}.unpack(this);\n"
            if p.type.is_list:
                body += f"      std::vector<Tensor> parts = fit_dtype({f.cpp}, {p.name}_dtype);\n"
                body += f"      for (size_t k = 0; k < parts.size(); ++k) results[{i} + k] = std::move(parts[k]);\n"
                if i != len(differentiable_inputs(op)) - 1:
                    raise ParagraphError(
                        op.where, "a list of tensors must be the last input with a gradient"
                    )
                text += f"    {{\n{body}    }}\n"
                continue
            if op.kind == "pointwise":
                value = f"fit({f.cpp}, {p.name}_sizes, {p.name}_dtype)"
            else:
                value = f"fit_dtype({f.cpp}, {p.name}_dtype)"
            text += (
                f"    if (should_compute({i})) {{\n{body}      results[{i}] = {value};\n    }}\n"
            )
        text += "  }\n};\n}  // namespace\n"
        return text


def _recording_condition(op: Operator, inputs: list[Param]) -> str:
    return f"autograd::recording({', '.join(p.name for p in inputs)})"


def _kernel(op: Operator, f: Function) -> str:
    params = cpp.params_of(f.schema)
    args = cpp.args_of(f.schema)
    returns = cpp.return_type(f.schema.returns)
    below = f"dispatch::call<{cpp.signature(f)}>(op::{f.op_id}, keys & kBelowAutograd, {args})"
    text = f"{returns} {f.op_id}_autograd(KeySet keys, {params}) {{\n"
    if f.form == "out":
        tensors = [p.name for p in f.schema.params if p.type.base == "Tensor"]
        text += f'  if (autograd::recording({", ".join(tensors)})) autograd::raise_out_recorded("{op.name}");\n'
        return text + f"  return {below};\n}}\n\n"
    if op.gradients.absent is not None:  # in-place without gradient
        check = f'autograd::check_inplace(self, "{f.schema.name}")'
        return text + f"  if (autograd::recording(self)) {check};\n  return {below};\n}}\n\n"
    inputs = differentiable_inputs(op)
    node = _Node(op)
    inplace = f.form == "inplace"
    text += f"  if (!{_recording_condition(op, inputs)}) return {below};\n"
    if inplace:
        text += f'  autograd::check_inplace(self, "{f.schema.name}");\n'
    text += f"  auto node = IntrusivePtr<{node.class_name}>::make();\n"
    for p in inputs:
        text += f"  add_edges(*node, {p.name});\n"
    for name in node.saved:
        users = node.used_by[name]
        index = [i for i, p in enumerate(inputs) if p.name in users]
        condition = " || ".join(f"node->should_compute({i})" for i in index)
        always = any(p.type.is_list for p in inputs) or len(index) == len(inputs)
        kind = "autograd::SavedTensorList" if node.params[name].type.is_list else "SavedTensor"
        # The target's old value is gone after an in-place write.
        value = f"{kind}(copy_of({name}))" if inplace and name == "self" else f"{kind}({name})"
        line = f"node->saved_{name} = {value};\n"
        text += f"  {line}" if always else f"  if ({condition}) {line}"
    for name in node.kept:
        text += f"  node->{name} = {node.kept_fill(name)};\n"
    for name, what in node.metadata:
        if node.params[name].type.is_list:
            source = f"formulas::{what}_list({name})"
        else:
            source = _META_FROM[what].format(name)
            if node.params[name].type.optional:
                source = f"{name}.defined() ? {source} : {_META_TYPES[what]}{{}}"
        text += f"  node->{name}_{what} = {source};\n"
    if inplace:
        text += "  {\n    const dispatch::ExcludeGuard below(kAutogradKeys);\n"
        text += f"    {below};\n  }}\n  autograd::rebase_history(self, node);\n"
        for name in node.saved_results:
            text += f"  node->saved_{name} = SavedTensor::result(self, 0);\n"
        return text + "  return self;\n}\n\n"
    text += f"  {returns} result = [&] {{\n    const dispatch::ExcludeGuard below(kAutogradKeys);\n    return {below};\n  }}();\n"
    history = "set_view_history" if op.is_view else "set_history"
    if len(op.schema.returns) == 1:
        if op.schema.returns[0].type.is_list and op.is_view:
            text += "  for (const Tensor& t : result) autograd::set_view_history(t, node);\n"
        else:
            text += f"  autograd::{history}(result, node);\n"
        for name in node.saved_results:
            text += f"  node->saved_{name} = SavedTensor::result(result, 0);\n"
    else:
        for i in range(len(op.schema.returns)):
            text += f"  autograd::set_history(std::get<{i}>(result), node);\n"
        for name in node.saved_results:
            i = node.results[name]
            text += f"  node->saved_{name} = SavedTensor::result(std::get<{i}>(result), {i});\n"
    return text + "  return result;\n}\n\n"
