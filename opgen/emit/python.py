"""Python bindings: tables for the argument parser and one call function a name."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from opgen import cpp
from opgen.emit.operators import HEADER
from opgen.model import Function, Operator
from opgen.schema import Param, Schema, Type

_TYPES = {
    "Tensor": "Tensor",
    "Scalar": "Scalar",
    "int": "Int",
    "float": "Double",
    "bool": "Bool",
    "str": "String",
    "ScalarType": "ScalarType",
    "Layout": "Layout",
    "Device": "Device",
    "MemoryFormat": "MemoryFormat",
    "Generator": "Generator",
}
_TEXT = {
    "Tensor": "Tensor",
    "Scalar": "Number",
    "int": "int",
    "float": "float",
    "bool": "bool",
    "str": "str",
    "ScalarType": "torch.dtype",
    "Layout": "torch.layout",
    "Device": "torch.device",
    "MemoryFormat": "torch.memory_format",
    "Generator": "torch.Generator",
}


@dataclass
class Binding:
    """One Python name: the operators it reaches."""

    module: str  # "", "nn.functional", "method"
    name: str
    ops: list[tuple[Operator, str]] = field(default_factory=list)  # with the form that is called

    @property
    def id(self) -> str:
        return f"{self.module.replace('.', '_') or 'top'}_{self.name}"


def bindings(operators: list[Operator]) -> list[Binding]:
    """Every Python name of every module, in a fixed order."""
    table: dict[tuple[str, str], Binding] = {}

    def add(module: str, name: str, op: Operator, form: str) -> None:
        b = table.setdefault((module, name), Binding(module, name))
        b.ops.append((op, form))

    for op in operators:
        names = [op.name, *op.aliases]
        names = [n for n in names if op.raw.get("python", True)]
        base_form = op.functional.form
        for n in names:
            if "." in n:  # an alias in another module: special.exp2
                add(*n.rsplit(".", 1), op, base_form)
                continue
            if "function" in op.variants:
                for module in op.modules:
                    add(module, n, op, base_form)
            if "method" in op.variants:
                add("method", n, op, base_form)
            if op.inplace:
                name = op.inplace.schema.name if n == op.name else n + "_"
                add("method", name, op, "inplace")
                if (
                    "function" in op.variants
                    and len([p for p in op.schema.params if p.type.base == "Tensor"]) == 1
                ):
                    for module in op.modules:
                        add(module, name, op, "inplace")
    return [table[k] for k in sorted(table)]


def _merge(ops: list[tuple[Operator, str]]) -> list[list[tuple[Operator, str]]]:
    """Overloads that one ``Scalar|Tensor`` paragraph gave share one signature."""
    groups: list[list[tuple[Operator, str]]] = []
    for op, form in ops:
        for g in groups:
            if g[0][0].raw is op.raw:
                g.append((op, form))
                break
        else:
            groups.append([(op, form)])
    return groups


def _py_params(op: Operator, form: str) -> list[Param]:
    f: Function = op.functional if form == "functional" else op.inplace or op.functional
    params = list(f.schema.params)
    if form == "functional" and op.out:
        params += [p for p in op.out.schema.params if p.type.written]
    return params


def _positional_first(params: list[Param]) -> list[Param]:
    return [p for p in params if not p.keyword_only] + [p for p in params if p.keyword_only]


def is_factory(schema: Schema) -> bool:
    return schema.param("pin_memory") is not None


@dataclass
class PySignature:
    """One row of a parser's table."""

    ops: list[Operator]
    form: str
    params: list[Param]
    outs: list[Param]
    factory: bool
    method: bool

    @property
    def takes_number(self) -> bool:
        """Whether a number may stand for the first tensor: ``mul(2, x)``."""
        op = self.ops[0]
        return not self.method and self.form == "functional" and bool(op.raw.get("number_first"))

    @property
    def single_out(self) -> bool:
        return len(self.outs) == 1

    def rows(self) -> list[tuple[str, str, list[str], int]]:
        """(name, parser type, flags, list size)."""
        out = []
        for i, p in enumerate(self.params):
            name = "input" if p.name == "self" and not self.method else p.name
            t = p.type
            if p.union or (i == 0 and self.takes_number):
                kind = "TensorOrScalar"
            elif t.is_list:
                kind = {"Tensor": "TensorList", "int": "IntList", "float": "DoubleList"}[t.base]
                if t.element_optional:
                    kind = "OptTensorList"
            else:
                kind = _TYPES[t.base]
            flags = []
            if p.default is not None:
                flags.append("kDefault")
            if t.optional or p.default in ("None", "[]"):  # an empty list may be said as None
                flags.append("kNone")
            if p.keyword_only:
                flags.append("kKeyword")
            out.append((name, kind, flags, t.list_size or 0))
        if self.outs:
            kind = "Tensor" if self.single_out else "TensorList"
            out.append(("out", kind, ["kDefault", "kNone", "kKeyword"], 0))
        if self.factory:
            out.append(("requires_grad", "Bool", ["kDefault", "kNone", "kKeyword"], 0))
        return out

    def text(self) -> str:
        parts, star = [], False
        for p in self.params:
            if p.keyword_only and not star:
                parts.append("*")
                star = True
            name = "input" if p.name == "self" else p.name
            kind = _TEXT[p.type.base]
            if p.type.is_list:
                kind = f"tuple of {kind}s"
            text = f"{kind} {name}"
            if p.default is not None:
                text += f" = {p.default}"
            parts.append(text)
        if self.outs:
            parts += ([] if star else ["*"]) + [
                "Tensor out = None" if self.single_out else "tuple of Tensors out = None"
            ]
        return ", ".join(parts)


def signatures(b: Binding) -> list[PySignature]:
    out = []
    for group in _merge(b.ops):
        op, form = group[0]
        params = _py_params(op, form)
        outs = [p for p in params if p.type.written] if form == "functional" else []
        params = _positional_first([p for p in params if p not in outs])
        if b.module == "method":  # the receiver comes first: x.where(condition, other)
            params.sort(key=lambda p: p.name != "self")
        out.append(
            PySignature(
                [o for o, _ in group],
                form,
                params,
                outs,
                is_factory(op.schema),
                b.module == "method",
            )
        )
    return out


def _read(p: Param, i: int, t: Type) -> tuple[str, str]:
    """(declaration, expression) that hands parameter `i` to C++."""
    n = p.name
    d = cpp.default_value(p) if p.default is not None else None
    if t.base == "Tensor" and not t.is_list:
        if t.optional or p.default is not None:
            return f"const Tensor& {n} = r.optional_tensor({i});", n
        return f"const Tensor& {n} = r.tensor({i});", n
    if t.is_list:
        if t.base == "Tensor":
            call = "optional_tensor_list" if t.element_optional else "tensor_list"
            return (
                f"const TensorBuffer {n}_list = r.{call}({i});\n        const TensorList {n} = {n}_list;",
                n,
            )
        kind = "int_list" if t.base == "int" else "double_list"
        view = "IntList" if t.base == "int" else "ListView<double>"
        if t.optional:
            return (
                f"const auto {n}_list = r.optional_{kind}({i});\n"
                f"        const std::optional<{view}> {n} = {n}_list ? std::optional<{view}>({view}(*{n}_list)) : std::nullopt;"
            ), n
        if d is not None:
            return (
                f"const auto {n}_list = r.{kind}_or({i}, {view}({d}));\n        const {view} {n} = {n}_list;",
                n,
            )
        return f"const auto {n}_list = r.{kind}({i});\n        const {view} {n} = {n}_list;", n
    accessor = {
        "Scalar": "scalar",
        "int": "integer",
        "float": "real",
        "bool": "boolean",
        "str": "string",
        "ScalarType": "scalar_type",
        "Layout": "layout",
        "Device": "device",
        "MemoryFormat": "memory_format",
        "Generator": "generator",
    }[t.base]
    if t.base == "Generator":
        return f"const Generator {n} = r.generator({i});", n
    if t.optional:
        return f"const auto {n} = r.optional_{accessor}({i});", n
    if d is not None:
        return f"const auto {n} = r.{accessor}_or({i}, {d});", n
    if accessor in ("layout", "memory_format"):
        return f"const auto {n} = r.{accessor}_or({i}, {{}});", n
    return f"const auto {n} = r.{accessor}({i});", n


def _wrap(op: Operator, call: str, factory_slot: int | None) -> str:
    returns = op.schema.returns
    if len(returns) > 1 and all(r.name for r in returns):
        fields = ", ".join(f'"{r.name}"' for r in returns)
        return f'return wrap_named("{op.name}", {{{fields}}}, {call});'
    if not returns:
        return f"{call};\n        Py_RETURN_NONE;"
    if factory_slot is not None:
        return f"return wrap(with_requires_grad({call}, r.boolean_or({factory_slot}, false)));"
    return f"return wrap({call});"


def _call(sig: PySignature, op: Operator, form: str) -> str:
    f = op.functional if form == "functional" else op.inplace or op.functional
    if form == "out":
        assert op.out
        f = op.out
    args = ", ".join(p.name for p in cpp.ordered_params(f))
    return f"without_gil(r.work(), [&] {{ return ops::{f.cpp}({args}); }})"


def _case(sig: PySignature, index: int) -> str:
    text = f"      case {index}: {{\n"
    unions = [p.name for p in sig.params if p.union]
    slots = {p.name: i for i, p in enumerate(sig.params)}
    for p in sig.params:
        if slots[p.name] == 0 and sig.takes_number:
            text += f"        const Tensor {p.name} = tensor_or_number(r, 0);\n"
        elif not p.union:
            text += f"        {_read(p, slots[p.name], p.type)[0]}\n"
    out_slot = len(sig.params)
    factory_slot = out_slot + (1 if sig.outs else 0) if sig.factory else None
    for op in sig.ops:
        conditions = []
        reads = ""
        for u in unions:
            actual = op.schema.param(u)
            assert actual
            conditions.append(("" if actual.type.is_tensor else "!") + f"r.is_tensor({slots[u]})")
            reads += f"        {_read(actual, slots[u], actual.type)[0]}\n"
        body = reads
        if sig.outs and op.out:
            body += f"        if (r.has({out_slot})) {{\n"
            if sig.single_out:
                body += f"          const Tensor& {sig.outs[0].name} = r.tensor({out_slot});\n"
            else:
                body += f"          const TensorBuffer outs = r.tensor_list({out_slot});\n"
                body += f'          check_out_count(outs.size(), {len(sig.outs)}, "{op.name}");\n'
                for k, o in enumerate(sig.outs):
                    body += f"          const Tensor& {o.name} = outs[{k}];\n"
            body += "          " + _wrap(op, _call(sig, op, "out"), None) + "\n        }\n"
        body += "        " + _wrap(op, _call(sig, op, sig.form), factory_slot) + "\n"
        if conditions:
            text += f"        if ({' && '.join(conditions)}) {{\n{body}        }}\n"
        else:
            text += f"        {{\n{body}        }}\n"
    if unions:
        text += "        raise_no_tensor(r);\n"
    return text + "      }\n"


def _direct_calls(b: Binding, sigs: list[PySignature]) -> str:
    """Calls that need no matching: the tensors of the first signature by position, nothing else.

    The commonest calls by far. A number may stand for the last operand of a ``Scalar|Tensor``.
    """
    sig = sigs[0]
    if sig.factory or any(p.type.base == "Device" for p in sig.params):
        return ""
    count = 0
    while count < len(sig.params):
        p = sig.params[count]
        if p.default is not None or p.type.base != "Tensor" or p.type.is_list or p.type.optional:
            break
        if p.keyword_only:
            break
        count += 1
    if not 1 <= count <= 3 or any(p.default is None for p in sig.params[count:]):
        return ""
    operands, rest = sig.params[:count], sig.params[count:]
    if any(p.union for p in rest) or any(p.union for p in operands[:-1]):
        return ""
    first = 1 if sig.method else 0
    objects = ["self" if sig.method and i == 0 else f"args[{i - first}]" for i in range(count)]

    def call(op: Operator, names: list[str], work: list[str]) -> str:
        values = {p.name: n for p, n in zip(operands, names)}
        values |= {p.name: _default_argument(p) for p in rest}
        f = op.functional if sig.form == "functional" else op.inplace or op.functional
        args = ", ".join(values[p.name] for p in cpp.ordered_params(f))
        return _wrap(
            op, f"without_gil({' + '.join(work)}, [&] {{ return ops::{f.cpp}({args}); }})", None
        )

    def tensors(n: int) -> tuple[str, list[str]]:
        names = [f"t{i}" for i in range(n)]
        text = "".join(f"      const Tensor& t{i} = unwrap({objects[i]});\n" for i in range(n))
        return text, names

    by_kind = {}
    for op in sig.ops:
        p = op.schema.param(operands[-1].name)
        assert p
        by_kind["tensor" if p.type.is_tensor else "number"] = op
    text = f"  if (!names && n == {count - first} && entered_function_modes == 0"
    text += "".join(f" && is_exact_tensor({o})" for o in objects[:-1]) + ") {\n"
    if "tensor" in by_kind:
        reads, names = tensors(count)
        work = [f"{n}.numel()" for n in names]
        text += f"    if (is_exact_tensor({objects[-1]})) [[likely]] {{\n{reads}"
        text += f"      {call(by_kind['tensor'], names, work)}\n    }}\n"
    if "number" in by_kind and count > 1:
        reads, names = tensors(count - 1)
        work = [f"{n}.numel()" for n in names]
        text += f"    if (Scalar number; is_plain_number({objects[-1]}, number)) {{\n{reads}"
        text += f"      {call(by_kind['number'], [*names, 'number'], work)}\n    }}\n"
    return text + "  }\n"


def _default_argument(p: Param) -> str:
    """A parameter's default as the argument of a call."""
    value = cpp.default_value(p)
    if p.type.base == "Tensor":
        return "TensorList{}" if p.type.is_list else "undefined_tensor()"
    if p.type.base == "Generator":
        return "Generator{}"  # bare braces could be any overload's number
    if value == "std::nullopt":
        return cpp.param_type(p.type).removeprefix("const ").removesuffix("&") + "{}"
    if p.type.is_list:
        return f"{'IntList' if p.type.base == 'int' else 'ListView<double>'}({value})"
    return f"Scalar({value})" if p.type.base == "Scalar" else value


def emit(bs: list[Binding]) -> str:
    """Bindings of some names. Each defines its entry functions with external linkage for the tables."""
    text = HEADER + '#include "lamina/border/generated_support.h"\n\nnamespace lamina::border {\n\n'
    for b in bs:
        sigs = signatures(b)
        text += "namespace {\n"
        for i, s in enumerate(sigs):
            rows = []
            for name, kind, flags, size in s.rows():
                row = f'{{"{name}", P::{kind}'
                if flags or size:
                    row += f", {' | '.join(flags) or '0'}"
                if size:
                    row += f", {size}"
                rows.append(row + "}")
            if rows:
                text += f"constexpr Param k_{b.id}_{i}[] = {{{', '.join(rows)}}};\n"
        made = ",\n    ".join(
            f'make_signature({f"k_{b.id}_{i}" if s.rows() else "nullptr"}, "{_escape(s.text())}")'
            for i, s in enumerate(sigs)
        )
        text += f"constexpr Signature s_{b.id}[] = {{\n    {made}}};\n"
        place = f', "{b.module}"' if b.module not in ("", "method") else ""
        text += f'constinit Parser p_{b.id}("{b.name}", s_{b.id}{place});\n'
        text += f"PyObject* call_{b.id}(const ParsedArgs& r) {{\n    switch (r.index()) {{\n"
        for i, s in enumerate(sigs):
            text += _case(s, i)
        text += "    }\n    return r.unreachable();\n}\n}  // namespace\n"
        self_arg = "self" if b.module == "method" else "nullptr"
        text += (
            f"PyObject* py_{b.id}(PyObject* {'self' if b.module == 'method' else ''}, PyObject* const* args, "
            f"Py_ssize_t n, PyObject* names) {{\n  LAMINA_BORDER_BEGIN\n{_direct_calls(b, sigs)}"
            f"  return call_{b.id}(ParsedArgs(p_{b.id}, {self_arg}, args, n, names));\n  LAMINA_BORDER_END\n}}\n\n"
        )
    return text + "}  // namespace lamina::border\n"


def _escape(text: str) -> str:
    return text.replace('"', '\\"')


def tables(bs: list[Binding], docs: dict[str, str]) -> str:
    text = HEADER + '#include "lamina/border/generated.h"\n\nnamespace lamina::border {\n\n'
    for b in bs:
        text += f"PyObject* py_{b.id}(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);\n"
    by_module: dict[str, list[Binding]] = defaultdict(list)
    for b in bs:
        by_module["sub" if b.module not in ("", "method") else b.module].append(b)

    def table(name: str, entries: list[Binding]) -> str:
        rows = "".join(
            f'    {{"{b.module + "." if b.module not in ("", "method") else ""}{b.name}", '
            f"reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&py_{b.id})), METH_FASTCALL | METH_KEYWORDS, "
            f"{docs.get(b.id, 'nullptr')}}},\n"
            for b in entries
        )
        return (
            f"PyMethodDef* {name}() {{\n  static PyMethodDef table[] = {{\n{rows}    {{nullptr, nullptr, 0, nullptr}}}};\n"
            "  return table;\n}\n\n"
        )

    text += "\n" + table("generated_functions", by_module[""])
    text += table("generated_methods", by_module["method"])
    text += table("generated_submodule_functions", by_module["sub"])
    return text + "}  // namespace lamina::border\n"


_GROUPS = {"bool": "bool", "int": "integers", "float": "floating point", "complex": "complex"}


def _formulas(b: Binding) -> str:
    """Element types, the value of an element and the gradients, as far as the paragraph says them."""
    op = next((op for op, _ in b.ops if op.doc), b.ops[0][0])
    text = ""
    if op.raw.get("dtypes"):
        text += "\nTypes: " + ", ".join(_GROUPS[g] for g in op.raw["dtypes"]) + "."
    if op.raw.get("tile"):
        text += f"\nElement: {op.raw['tile']}"
    for name, formula in op.gradients.formulas.items():
        text += f"\nGradient of {name}: {formula}"
    return "\n" + text if text else ""


def docstrings(bs: list[Binding]) -> dict[str, str]:
    """C string literals of the docstrings, by binding."""
    out = {}
    for b in bs:
        lines = []
        for s in signatures(b):
            lines.append(f"{b.name}({s.text()})")
        doc = next((op.doc for op, _ in b.ops if op.doc), "")
        text = "\n".join(lines) + ("\n\n" + doc if doc else "")
        # A method's page is its function's; only one of them needs the formulas.
        if b.module != "method":
            text += _formulas(b)
        escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        out[b.id] = f'"{escaped}"'
    return out
