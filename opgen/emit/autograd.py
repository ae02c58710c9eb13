"""Autograd: a node for each differentiable operator and the kernels that record it."""

from __future__ import annotations

from opgen import cpp
from opgen.emit import forward
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
_META_TYPES = {
    "sizes": "Sizes",
    "dim": "int64_t",
    "dtype": "ScalarType",
    "numel": "int64_t",
    "geometry": "formulas::Geometry",
}
_META_FROM = {
    "sizes": "formulas::sizes({0})",
    "dim": "{0}.dim()",
    "dtype": "{0}.dtype()",
    "numel": "{0}.numel()",
    "geometry": "formulas::geometry({0})",
}


def emit(ops: list[Operator]) -> str:
    text = HEADER + (
        '#include "lamina/autograd/formulas.h"\n#include "lamina/autograd/forward.h"\n#include "lamina/autograd/list_writes.h"\n#include "lamina/autograd/view.h"\n'
        '#include "lamina/dispatch/operator.h"\n'
        '#include "lamina/kernels/generated_support.h"\n\n'
        'namespace lamina {\nnamespace [[gnu::visibility("hidden")]] generated {\n\nusing namespace ops;\nusing namespace autograd::formulas;\n'
        "using autograd::SavedTensor;\nnamespace formulas = autograd::formulas;\n"
        "namespace forward = autograd::forward;\n\n"
    )
    for op in ops:
        for f in op.functions:
            if not needs_autograd_kernel(op, f):
                continue
            if f is op.functional and op.gradients.absent is None:
                text += f"// ---- {op.where}: {op.schema}\n" + _Node(op).emit()
            text += _kernel(op, f)
    return text + "}  // namespace generated\n}  // namespace lamina\n"


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
            if name in ("grad", "grads", "cotangents", "wants"):
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

    def reader(self) -> str:
        """What the node keeps, by name: for `_saved_*` attributes and for explain."""
        text = "  void read_saved(autograd::SavedReader& reader) const override {\n"
        text += f"    auto& self_ = const_cast<{self.class_name}&>(*this);\n"
        for name in [*self.saved, *self.saved_results]:
            is_list = name in self.saved and self.params[name].type.is_list
            text += f'    reader.tensor{"s" * is_list}("{name}", self_.saved_{name});\n'
        for name in self.kept:
            text += f'    reader.argument("{name}", {name});\n'
        for name, what in self.metadata:
            if not self.params[name].type.is_list:
                text += f'    reader.argument("{name}_{what}", {name}_{what});\n'
        if not (self.saved or self.saved_results):
            text = text.replace(text.splitlines()[1] + "\n", "")
        if not (self.saved or self.saved_results or self.kept or self.metadata):
            return ""
        return text + "  }\n"

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
        text += "  void release_saved() override {\n    mark_released();\n"
        for name in [*self.saved, *self.saved_results]:
            text += f"    saved_{name}.reset(*this);\n"
        text += "  }\n" + self.reader()
        text += "  void apply(std::span<Tensor> grads, std::span<Tensor> results) override {\n"
        if self.saved or self.saved_results:
            text += "    check_not_released();\n"
        if len(op.schema.returns) == 1 and not op.schema.returns[0].type.is_list:
            text += "    const Tensor grad = std::move(grads[0]);\n"
        else:
            names = {n for f in self.formulas.values() for n in f.names}
            if "cotangents" in names:  # those of all results, undefined where there is none
                text += "    const std::span<Tensor> cotangents = grads;\n"
            elif "grads" in names:
                text += (
                    "    for (uint32_t i = 0; i < grads.size(); ++i)\n"
                    "      if (!grads[i].defined()) grads[i] = zeros_like_output(i);\n"
                )
            else:
                text += "    const Tensor grad = std::move(grads[0]);\n    if (!grad.defined()) return;\n"
        for i, p in enumerate(differentiable_inputs(op)):
            f = self.formulas[p.name]
            group = next((g for g in op.gradients.joint if p.name in g), None)
            if group is not None and self.position(group[0]) != i:
                continue  # came with the first of its group
            used = [
                n
                for n in [*self.saved, *self.saved_results]
                if n in f.names or any(m == n for m, _ in f.metadata)
            ]
            used = [n for n in used if n in f.names or n in self.saved_results]
            body = ""
            for n in used:
                body += f"      const auto {n} = saved_{n}.unpack(this);\n"
            if group is not None:
                text += self.joint(group, body, f.cpp)
                continue
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

    def position(self, name: str) -> int:
        return [p.name for p in differentiable_inputs(self.op)].index(name)

    def joint(self, group: tuple[str, ...], unpack: str, formula: str) -> str:
        """One formula for the gradients of several operands; `wants` tells it which are asked for."""
        at = [self.position(n) for n in group]
        wants = ", ".join(f"should_compute({i})" for i in at)
        text = (
            f"    const std::array<bool, {len(group)}> wants{{{wants}}};\n"
            f"    if ({' || '.join(f'wants[{k}]' for k in range(len(group)))}) {{\n{unpack}"
            f"      std::array<Tensor, {len(group)}> parts = {formula};\n"
        )
        for k, (i, name) in enumerate(zip(at, group, strict=True)):
            text += (
                f"      if (wants[{k}] && parts[{k}].defined()) "
                f"results[{i}] = fit_dtype(parts[{k}], {name}_dtype);\n"
            )
        return text + "    }\n"


def _recording_condition(op: Operator, inputs: list[Param]) -> str:
    return f"autograd::recording({', '.join(p.name for p in inputs)})"


def _kernel(op: Operator, f: Function) -> str:
    returns = cpp.return_type(f.schema.returns)
    below = (
        f"dispatch::call<{cpp.signature(f)}>"
        f"(op::{f.op_id}, keys & kBelowAutograd, {cpp.args_of(f.schema)})"
    )
    text = forward.rule(op, f)
    text += f"{returns} {f.op_id}_autograd(KeySet keys, {cpp.params_of(f.schema)}) {{\n"
    text += forward.head(op, f)
    written = [p.name for p in f.schema.params if p.type.written]
    if op.raw.get("shape") == "lists":
        return text + _list_writes(f, written, returns, below)
    for name in written:
        text += f'  autograd::check_writable({name}, "{f.schema.name}");\n'
    # Writes are counted where the user's call enters, so that what an operator does inside to make
    # a fresh result counts nothing.
    counted = "".join(f"{name}.impl()->bump_version();\n" for name in written)
    if f.form == "out":
        tensors = [p.name for p in f.schema.params if p.type.base == "Tensor"]
        return text + (
            f'  if (autograd::recording({", ".join(tensors)})) autograd::raise_out_recorded("{op.name}");\n'
            f"  {returns} returned = {below};\n  {counted}  return returned;\n}}\n\n"
        )
    if f.form == "inplace":
        return text + _inplace(op, f, below, counted)
    inputs = differentiable_inputs(op)
    node = _Node(op)
    unrecorded = f"  if (!{_recording_condition(op, inputs)})"
    if op.is_view:
        text += (
            f"{unrecorded} {{\n    {returns} result = {below};\n"
            "    autograd::note_view(result, self);\n    return result;\n  }\n"
        )
    else:
        text += f"{unrecorded} return {below};\n"
    text += _recorded_inputs(op, node, inputs, inplace=False)
    text += (
        f"  {returns} result = [&] {{\n    const dispatch::ExcludeGuard below(kAutogradKeys);\n"
        f"    return {below};\n  }}();\n"
    )
    if len(op.schema.returns) == 1:
        text += (
            "  autograd::set_view_history(result, node, self);\n"
            if op.is_view
            else "  autograd::set_history(result, node);\n"
        )
        for name in node.saved_results:
            text += f"  node->saved_{name} = SavedTensor::result(result, 0);\n"
    else:
        for i in range(len(op.schema.returns)):
            text += f"  autograd::set_history(std::get<{i}>(result), node);\n"
        for name in node.saved_results:
            i = node.results[name]
            text += f"  node->saved_{name} = SavedTensor::result(std::get<{i}>(result), {i});\n"
    return text + "  return result;\n}\n\n"


def _list_writes(f: Function, written: list[str], returns: str, below: str) -> str:
    """The rest of the kernel of an operator that writes whole lists and has no derivative."""
    name = f.schema.name
    text = "".join(f'  autograd::check_list_writable({w}, "{name}");\n' for w in written)
    text += f"  {returns} result = {below};\n"
    text += "".join(f"  autograd::count_list_writes({w});\n" for w in written)
    return text + "  return result;\n}\n\n"


def _inplace(op: Operator, f: Function, below: str, counted: str) -> str:
    """The rest of the kernel of a write in place."""
    check = f'  autograd::check_inplace(self, "{f.schema.name}");\n'
    write = (
        "  {\n    const dispatch::ExcludeGuard below(kAutogradKeys);\n"
        f"    {below};\n  }}\n  {counted}"
    )
    if op.gradients.absent is not None:
        node_name = "".join(w.capitalize() for w in op.name.strip("_").split("_")) + "Backward0"
        return (
            f"  if (!autograd::recording(self)) {{\n    {below};\n    {counted}    return self;\n  }}\n"
            f'{check}{write}  autograd::cut_history(self, "{node_name}");\n  return self;\n}}\n\n'
        )
    inputs = differentiable_inputs(op)
    node = _Node(op)
    done = "    change.done();\n" if op.is_view else ""
    text = "  autograd::WindowChange change(self);\n" if op.is_view else ""
    text += (
        f"  if (!{_recording_condition(op, inputs)}) {{\n    {below};\n    {counted}{done}"
        f"    return self;\n  }}\n{check}"
    )
    text += _recorded_inputs(op, node, inputs, inplace=True) + write
    text += "  change.done(node);\n" if op.is_view else "  autograd::rebase_history(self, node);\n"
    for name in node.saved_results:
        text += f"  node->saved_{name} = SavedTensor::result(self, 0);\n"
    return text + "  return self;\n}\n\n"


def _recorded_inputs(op: Operator, node: _Node, inputs: list[Param], inplace: bool) -> str:
    """Makes the node of one call and fills it with edges and what its formulas need."""
    text = f"  auto node = IntrusivePtr<{node.class_name}>::make();\n"
    for p in inputs:
        text += f"  add_edges(*node, {p.name});\n"
    for name in node.saved:
        users = node.used_by[name]
        index = [i for i, p in enumerate(inputs) if p.name in users]
        # Not should_compute(): a pass that runs now may want less than a later one will.
        condition = " || ".join(f"node->has_edge({i})" for i in index)
        always = any(p.type.is_list for p in inputs) or len(index) == len(inputs)
        is_list = node.params[name].type.is_list
        kind = "autograd::SavedTensorList" if is_list else "SavedTensor"
        value = f"{kind}({name})"
        if inplace and name == "self":
            # The target's old value is gone after the write.
            value = f"{kind}(autograd::copy_with_history(self))"
        elif inplace and not is_list:
            value = f"{kind}({name}.is_same(self) ? autograd::copy_with_history(self) : {name})"
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
    return text
