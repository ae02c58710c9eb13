"""Headers, typed functions, handles and the sorted table of all operators."""

from __future__ import annotations

from collections import defaultdict

from opgen import cpp
from opgen.model import VMAP_RULES, Function, Operator, cpp_name

HEADER = "// Written by opgen from ops/; do not edit.\n"


def registrations(op: Operator, f: Function) -> list[tuple[str, str]]:
    """(dispatch key, C++ kernel) of one function."""
    if op.kind == "composite":
        return [("CompositeImplicitAutograd", f"{f.op_id}_kernel")]
    out = []
    if op.kind == "view" or op.raw.get("kernels", {}).get("All"):
        out.append(("CompositeExplicitAutograd", f"{f.op_id}_kernel"))
    else:
        out.append(("CPU", f"{f.op_id}_kernel"))
        if op.raw.get("shape") != "dynamic":
            out.append(("Meta", f"{f.op_id}_kernel"))
    if needs_autograd_kernel(op, f):
        out.append(("Autograd", f"{f.op_id}_autograd"))
    if op.is_view:
        # A view of a lazily conjugated or negated tensor carries the mark on.
        out.append(("Conjugate", "fallthrough"))
        out.append(("Negative", "fallthrough"))
    return out


def needs_autograd_kernel(op: Operator, f: Function) -> bool:
    if op.kind == "composite" or not any(p.type.base == "Tensor" for p in f.schema.params):
        return False
    return f.form != "functional" or op.gradients.absent is None


def factory_keys(f: Function) -> str:
    """The key set of a call: of its tensors, or of the device it is asked to work on."""
    tensors = cpp.tensor_keys(f.schema, f.op_id)
    if tensors:
        return f"dispatch::keys_of_all({tensors})"
    if f.schema.param("device"):
        return "dispatch::keys_of_device(device)"
    return "dispatch::keys_of_device(std::nullopt)"


def by_name(operators: list[Operator]) -> dict[str, list[Operator]]:
    groups: dict[str, list[Operator]] = defaultdict(list)
    for op in operators:
        groups[op.name.rstrip("_") or op.name].append(op)
    return dict(groups)


def op_header(name: str, ops: list[Operator]) -> str:
    """lamina/ops/NAME.h: the handles and typed functions of one name."""
    handles, functions = [], []
    taken: set[tuple[str, ...]] = set()  # argument lists that reach an earlier overload
    for op in ops:
        for f in op.functions:
            handles.append(f"extern const dispatch::Operator {f.op_id};  // {f.schema}")
            returns = cpp.return_type(f.schema.returns)
            params = cpp.ordered_params(f)
            lists = [
                (f.cpp, *(cpp.param_type(p.type) for p in params[:n]))
                for n in range(len(params) + 1)
            ]
            required = cpp.required_count(params)
            # A default that would make a call ambiguous is left out.
            while required < len(params) and lists[required] in taken:
                required += 1
            taken.update(lists[required:])
            args = cpp.declaration_params(params, required)
            functions.append(f"{returns} {f.cpp}({args});")
    text = HEADER + '#pragma once\n\n#include "lamina/dispatch/signature_types.h"\n\n'
    text += "namespace lamina::op {\n" + "\n".join(handles) + "\n}  // namespace lamina::op\n\n"
    text += "namespace lamina::ops {\n" + "\n".join(functions) + "\n}  // namespace lamina::ops\n"
    return text


_INFO = '[[gnu::visibility("hidden")]] extern const dispatch::OperatorInfo'


def op_source(ops: list[Operator]) -> str:
    """Handles and typed functions of some operators."""
    text = (
        HEADER
        + '#include "lamina/dispatch/boxing.h"\n#include "lamina/dispatch/signature_types.h"\n\n'
    )
    text += 'namespace lamina {\n\nnamespace [[gnu::visibility("hidden")]] generated {\n'
    for op in ops:
        for f in op.functions:
            for _, kernel in registrations(op, f):
                if kernel != "fallthrough":
                    text += f"{cpp.return_type(f.schema.returns)} {kernel}(KeySet, {cpp.params_of(f.schema)});\n".replace(
                        ", )", ")"
                    )
    text += "}  // namespace generated\n\nnamespace op {\nnamespace {\n"
    for op in ops:
        for f in op.functions:
            sig = cpp.signature(f)
            text += f"// {op.where}\n"
            entries = ", ".join(
                f'{{DispatchKey::{key}, {_kernel_address(kernel)}, "{op.where}"}}'
                for key, kernel in registrations(op, f)
            )
            text += f"const dispatch::StaticKernel k_{f.op_id}[] = {{{entries}}};\n"
    text += "}  // namespace\n\n"
    for op in ops:
        for f in op.functions:
            sig = cpp.signature(f)
            written = sum(1 << i for i, p in enumerate(f.schema.params) if p.type.written)
            text += (
                f"extern const dispatch::Operator {f.op_id};\n"
                f"{_INFO} i_{f.op_id};\n"
                f"const dispatch::OperatorInfo i_{f.op_id}{{\n"
                f'    "aten::{f.schema.name}", "{f.schema.overload}",\n    "aten::{_escape(str(f.schema))}",\n'
                f'    "{op.where}", k_{f.op_id},\n'
                f"    &dispatch::detail::Boxing<{sig}>::call_unboxed,\n"
                f"    reinterpret_cast<dispatch::RawKernel>(&dispatch::detail::Boxing<{sig}>::boxing_kernel<{f.op_id}>),\n"
                f"    {len(f.schema.params)}, {VMAP_RULES.index(op.vmap_rule(f))}, {written}}};\n"
                f"constinit const dispatch::Operator {f.op_id};\n\n"
            )
    text += "}  // namespace op\n\nnamespace ops {\n\n"
    for op in ops:
        for f in op.functions:
            returns = cpp.return_type(f.schema.returns)
            args = cpp.declaration_params(cpp.ordered_params(f))
            passed = cpp.args_of(f.schema)
            text += (
                f"{returns} {f.cpp}({args}) {{\n  return dispatch::call<{cpp.signature(f)}>("
                f"op::{f.op_id}, {factory_keys(f)}{', ' if passed else ''}{passed});\n}}\n\n"
            )
    return text + "}  // namespace ops\n\n}  // namespace lamina\n"


def _kernel_address(kernel: str) -> str:
    """A static kernel; a null one lets its key through."""
    if kernel == "fallthrough":
        return "nullptr"
    return f"reinterpret_cast<dispatch::RawKernel>(&generated::{kernel})"


def _escape(text: str) -> str:
    return text.replace('"', '\\"')


def operator_table(operators: list[Operator]) -> str:
    """kStaticOperators and kStaticInfos, sorted by full name."""
    entries = sorted(
        (f"aten::{f.schema.full_name}", f.op_id) for op in operators for f in op.functions
    )
    text = HEADER + '#include "lamina/dispatch/library.h"\n\nnamespace lamina::op {\n'
    text += "".join(f"extern const dispatch::Operator {i};\n{_INFO} i_{i};\n" for _, i in entries)
    text += "}  // namespace lamina::op\n\nnamespace lamina::dispatch {\n\nconst Operator* const kStaticOperators[] = {\n"
    text += "".join(f"    &op::{i},  // {n}\n" for n, i in entries)
    text += "};\nconst OperatorInfo* const kStaticInfos[] = {\n"
    text += "".join(f"    &op::i_{i},\n" for _, i in entries)
    text += f"}};\nconst size_t kNumStaticOperators = {len(entries)};\n\n}}  // namespace lamina::dispatch\n"
    return text


def all_ops_header(operators: list[Operator]) -> str:
    """lamina/ops.h: every operator, for users and for border/."""
    names = sorted(by_name(operators))
    return (
        HEADER
        + "#pragma once\n\n"
        + "".join(f'#include "lamina/ops/{cpp_name(n)}.h"\n' for n in names)
    )


def vmap_rules_header() -> str:
    """lamina/generated/vmap_rules.h: the names that paragraphs give to batching rules."""
    return (
        HEADER
        + "#pragma once\n\n#include <cstdint>\n\nnamespace lamina::generated {\n"
        + f"enum class VmapRule : uint32_t {{ {', '.join(VMAP_RULES)} }};\n"
        + "}  // namespace lamina::generated\n"
    )
