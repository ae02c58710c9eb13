"""How schema types, defaults and signatures are spelled in C++."""

from __future__ import annotations

from opgen.errors import ParagraphError, Where
from opgen.model import Function
from opgen.schema import Param, Return, Schema, Type

_VALUE = {
    "int": "int64_t",
    "float": "double",
    "bool": "bool",
    "str": "std::string_view",
    "ScalarType": "ScalarType",
    "Layout": "Layout",
    "Device": "Device",
    "MemoryFormat": "MemoryFormat",
}
_CONSTANTS = {
    "contiguous_format": "MemoryFormat::Contiguous",
    "preserve_format": "MemoryFormat::Preserve",
    "strided": "Layout::Strided",
    "cpu": "kCpu",
}


def param_type(t: Type) -> str:
    """The C++ type with which a parameter is passed."""
    if t.is_list:
        inner = {"Tensor": "TensorList", "int": "IntList", "float": "ListView<double>"}.get(t.base)
        if inner is None:
            raise ParagraphError(Where("schema", 0), f"lists of {t.base} are not supported")
        return f"std::optional<{inner}>" if t.optional else inner
    if t.base == "Tensor":
        return "const Tensor&"
    if t.base == "Generator":
        return "const Generator&"
    if t.base == "Scalar":
        return "const std::optional<Scalar>&" if t.optional else "const Scalar&"
    value = _VALUE[t.base]
    return f"std::optional<{value}>" if t.optional else value


def return_type(returns: tuple[Return, ...]) -> str:
    def one(t: Type) -> str:
        if t.is_tensor:
            return "Tensor"
        if t.is_tensor_list:
            return "std::vector<Tensor>"
        if t.base == "Scalar":
            return "Scalar"
        return _VALUE[t.base]

    if not returns:
        return "void"
    if len(returns) == 1:
        return one(returns[0].type)
    return "std::tuple<" + ", ".join(one(r.type) for r in returns) + ">"


def default_value(p: Param) -> str:
    """The C++ spelling of a parameter's default."""
    d = p.default
    assert d is not None
    if d == "None":
        return (
            "{}"
            if p.type.base in ("Tensor", "Generator") and not p.type.is_list
            else "std::nullopt"
        )
    if p.type.is_list:
        if d.startswith("["):
            return "{" + d[1:-1] + "}"
        return "{" + ", ".join([d] * (p.type.list_size or 1)) + "}"
    if d in ("True", "False"):
        return d.lower()
    if d in _CONSTANTS:
        return _CONSTANTS[d]
    if p.type.base == "str" or (d.startswith(("'", '"'))):
        return '"' + d.strip("'\"") + '"'
    if p.type.base == "Scalar" and d.lstrip("-").isdigit():
        return f"int64_t{{{d}}}"
    if p.type.base == "ScalarType":
        return {"long": "ScalarType::Int64", "float": "ScalarType::Float32"}.get(d, d)
    return d


def ordered_params(f: Function) -> list[Param]:
    """Parameters in C++ order: the out= targets come first."""
    outs = [p for p in f.schema.params if f.form == "out" and p.type.written]
    return outs + [p for p in f.schema.params if p not in outs]


def signature(f: Function) -> str:
    """The bare function type, e.g. ``Tensor(const Tensor&, const Scalar&)``; parameters in schema order."""
    return (
        f"{return_type(f.schema.returns)}({', '.join(param_type(p.type) for p in f.schema.params)})"
    )


def required_count(params: list[Param]) -> int:
    """How many arguments a C++ call must give: defaults may only stand at the end."""
    n = len(params)
    while n > 0 and params[n - 1].default is not None:
        n -= 1
    return n


def declaration_params(params: list[Param], required: int | None = None) -> str:
    """The parameter list; with `required`, parameters from there on get their defaults."""
    out = []
    for i, p in reversed(list(enumerate(params))):
        text = f"{param_type(p.type)} {p.name}"
        if required is not None and i >= required:
            text += f" = {default_value(p)}"
        out.append(text)
    return ", ".join(reversed(out))


def params_of(schema: Schema) -> str:
    return ", ".join(f"{param_type(p.type)} {p.name}" for p in schema.params)


def args_of(schema: Schema) -> str:
    return ", ".join(p.name for p in schema.params)


def tensor_keys(schema: Schema, op_id: str) -> str:
    """The key sets of the arguments that decide a call, checked to be there where they must be."""
    keys = []
    for p in schema.params:
        if p.type.base != "Tensor" or (p.type.is_list and p.type.optional):
            continue
        absent = p.type.optional or p.type.element_optional or p.default is not None
        required = f'dispatch::required_keys({p.name}, op::{op_id}, "{p.name}")'
        keys.append(p.name if absent else required)
    return ", ".join(keys)
