"""What a paragraph means: validated, frozen, with file and line."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

from opgen.errors import ParagraphError, Where
from opgen.load import RawParagraph
from opgen.schema import Param, Return, Schema, Type, expand_unions, parse_schema
from opgen.tile_program import TileProgram, compile_tile

KINDS = ("pointwise", "reduction", "view", "composite", "custom")
VARIANTS = ("function", "method", "inplace", "out")
PROMOTIONS = ("default", "float", "compare", "keep", "real")
FIELDS = {
    "op", "variants", "kind", "tile", "promote", "dtypes", "grad", "jvp", "linear", "no_grad", "no_jvp", "check", "shape", "dtype",
    "kernels", "composite", "expr", "doc", "aliases", "module", "overload_names", "node", "reduce", "accumulate",
    "number_first", "saturate", "python", "vmap", "copy",
}  # fmt: skip
# What an operator does with batched tensors (lamina/transforms): "loop" goes through the samples,
# "never" raises, the others are rules.
VMAP_RULES = (
    "loop", "composite", "never", "pointwise", "reduction", "view", "along_dimension", "direct", "trailing", "images", "sized", "matrix",
    "linear", "convolve", "embed", "normalize", "gather_rows", "put_rows", "fill", "slice_gradient", "random", "dynamic",
    "likelihood", "normalize_groups", "normalize_batch", "convolve_gradient",
)  # fmt: skip
CPP_KEYWORDS = {
    "and", "or", "not", "xor", "float", "double", "int", "long", "short", "char", "bool", "signed", "unsigned", "auto",
    "default", "new", "delete", "operator", "register", "switch", "template", "this", "typename", "union", "using",
}  # fmt: skip
DTYPE_GROUPS = {"bool": "b", "int": "i", "float": "f", "complex": "c"}


def cpp_name(name: str) -> str:
    return f"op_{name}" if name in CPP_KEYWORDS else name


@dataclass(frozen=True)
class Function:
    """One callable schema of an operator: its functional, in-place or out= form."""

    schema: Schema
    form: str  # functional, inplace, out

    @property
    def op_id(self) -> str:
        """The C++ identifier of its handle: add_Tensor, add__Tensor, add_out."""
        s = self.schema
        return cpp_name(s.name) + (f"_{s.overload}" if s.overload else "")

    @property
    def cpp(self) -> str:
        name = cpp_name(self.schema.name)
        return f"{name}_out" if self.form == "out" else name


@dataclass(frozen=True)
class Gradients:
    formulas: dict[str, str] = field(default_factory=dict)
    # Operands whose gradients one formula gives together: `grad: {"input, weight": ...}`.
    joint: tuple[tuple[str, ...], ...] = ()
    # By operand: a formula for each result; None where its tangent is not touched.
    jvp: dict[str, tuple[str | None, ...]] = field(default_factory=dict)
    linear: tuple[str, ...] = ()
    absent: str | None = None  # why there is none
    node: str = ""  # MulBackward0
    no_jvp: str | None = None  # why there is no forward-mode rule


@dataclass(frozen=True)
class Operator:
    """One overload of a paragraph with all its forms."""

    where: Where
    raw: dict[str, Any]
    kind: str
    variants: tuple[str, ...]
    functional: Function  # of form "inplace" for operators that exist only so
    inplace: Function | None
    out: Function | None
    gradients: Gradients
    program: TileProgram | None = None
    unit_program: TileProgram | None = None  # with the scalar `unit_scalar` fixed to one
    unit_scalar: str | None = None

    @property
    def name(self) -> str:
        return self.functional.schema.name

    @property
    def schema(self) -> Schema:
        return self.functional.schema

    @property
    def functions(self) -> list[Function]:
        return [f for f in (self.functional, self.inplace, self.out) if f]

    @property
    def modules(self) -> tuple[str, ...]:
        m = self.raw.get("module", "")
        return tuple(m) if isinstance(m, list) else (m,)

    @property
    def aliases(self) -> tuple[str, ...]:
        return tuple(self.raw.get("aliases", ()))

    @property
    def doc(self) -> str:
        return str(self.raw.get("doc", "")).strip()

    def vmap_rule(self, f: Function) -> str:
        """What `f` does with batched tensors: `vmap:`, or what its kind implies."""
        if f.form == "out":
            return "loop"
        if "vmap" in self.raw:
            return str(self.raw["vmap"])
        return "loop" if self.kind == "custom" else self.kind

    @property
    def tensor_params(self) -> list[Param]:
        return [p for p in self.schema.params if p.type.is_tensor]

    @property
    def is_view(self) -> bool:
        return self.kind == "view"


def _result_type(t: Type) -> Type:
    return replace(t, alias=None, written=False)


def inplace_schema(schema: Schema, where: Where) -> Schema:
    if not schema.params or schema.params[0].name != "self" or not schema.params[0].type.is_tensor:
        raise ParagraphError(where, "an in-place form needs a first parameter 'Tensor self'")
    target = replace(schema.params[0], type=Type("Tensor", alias="a", written=True))
    return Schema(
        schema.name + "_",
        schema.overload,
        (target, *schema.params[1:]),
        (Return(target.type),),
    )


def out_schema(schema: Schema, where: Where) -> Schema:
    """The out= form: the results become keyword-only parameters, in order of the results."""
    outs, returns = [], []
    for i, r in enumerate(schema.returns):
        if not r.type.is_tensor:
            raise ParagraphError(where, f"an out= form needs tensor results; got {r}")
        letter = "abcdefgh"[i]
        t = Type("Tensor", alias=letter, written=True)
        name = "out" if len(schema.returns) == 1 else r.name or f"out{i}"
        outs.append(Param(name, t, None, True))
        returns.append(Return(t))
    taken = {p.name for p in schema.params}
    outs = [replace(o, name=o.name + "_out" if o.name in taken else o.name) for o in outs]
    overload = schema.overload
    # PyTorch's habit: of a Scalar|Tensor pair, the tensor overload's out= form is plain "out".
    plain = not overload or (overload == "Tensor" and any(p.union for p in schema.params))
    overload = "out" if plain else f"{overload}_out"
    positional = tuple(p for p in schema.params if not p.keyword_only)
    keyword = tuple(p for p in schema.params if p.keyword_only)
    return Schema(schema.name, overload, (*positional, *keyword, *outs), tuple(returns))


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.strip("_").split("_"))


def _check_gradients(
    raw: dict[str, Any], schema: Schema, where: Where, kind: str, node: str
) -> Gradients:
    grad, absent = raw.get("grad"), raw.get("no_grad")
    tensors = {p.name for p in schema.params if p.type.base == "Tensor"}
    if kind == "composite":
        if grad:
            raise ParagraphError(
                where, "a composite's gradient comes from what it calls; remove 'grad'"
            )
        return Gradients(absent="composite")
    if grad is None and absent is None:
        raise ParagraphError(
            where,
            f"{schema.name}: the gradient is neither given ('grad') nor said to be absent ('no_grad: why')",
        )
    if grad is not None and absent is not None:
        raise ParagraphError(where, "both 'grad' and 'no_grad' are given")
    if absent is not None:
        if not isinstance(absent, str) or len(absent) < 4:
            raise ParagraphError(where, "'no_grad' must say why there is no gradient")
        return Gradients(absent=absent)
    union = {p.name for p in schema.params}
    formulas: dict[str, str] = {}
    joint = []
    for key, text in grad.items():
        names = tuple(n.strip() for n in str(key).split(","))
        for name in names:
            if name not in union:
                raise ParagraphError(
                    where, f"'grad' names {name!r}, which is no parameter of {schema}"
                )
            if name in tensors:
                formulas[name] = str(text)
        if len(names) > 1:
            _check_joint(names, schema, where)
            joint.append(names)
    if not formulas:
        return Gradients(absent="this overload has no tensor operand with a gradient")
    linear = raw.get("linear", ())
    linear = tuple([linear] if isinstance(linear, str) else linear)
    for name in linear:
        if name not in union:
            raise ParagraphError(where, f"'linear' names {name!r}, which is no parameter")
    jvp: dict[str, tuple[str | None, ...]] = {}
    for name, text in raw.get("jvp", {}).items():
        if name not in union:
            raise ParagraphError(where, f"'jvp' names {name!r}, which is no parameter of {schema}")
        if name not in formulas and name in tensors:
            raise ParagraphError(where, f"'jvp' names {name!r}, which has no 'grad'")
        texts = text if isinstance(text, list) else [text]
        if len(texts) > len(schema.returns):
            raise ParagraphError(
                where, f"'jvp' of {name!r} has more formulas than there are results"
            )
        jvp[name] = tuple(None if t is None else str(t) for t in texts)
    no_jvp = raw.get("no_jvp")
    if no_jvp is not None and (not isinstance(no_jvp, str) or len(no_jvp) < 4):
        raise ParagraphError(where, "'no_jvp' must say why there is no forward-mode rule")
    return Gradients(formulas, tuple(joint), jvp, linear, None, node, no_jvp)


def _check_joint(names: tuple[str, ...], schema: Schema, where: Where) -> None:
    """Gradients given together belong to plain tensors that follow each other among those with a gradient."""
    for p in schema.params:
        if p.name in names and (p.type.base != "Tensor" or p.type.is_list or p.union):
            raise ParagraphError(
                where, f"'grad' gives {p.name!r} with others; it must be a plain tensor"
            )


def build(paragraphs: list[RawParagraph]) -> list[Operator]:
    """Validated operators of all paragraphs; raises ParagraphError at the first fault."""
    out: list[Operator] = []
    seen: dict[str, Where] = {}
    numbers: dict[str, int] = {}
    for p in [q for given in paragraphs for q in (given, *_copy_paragraph(given))]:
        for op in _build_paragraph(p, numbers):
            for f in op.functions:
                if f.schema.full_name in seen:
                    raise ParagraphError(
                        p.where,
                        f"{f.schema.full_name} is defined already at {seen[f.schema.full_name]}",
                    )
                seen[f.schema.full_name] = p.where
            out.append(op)
    return out


def _copy_paragraph(p: RawParagraph) -> list[RawParagraph]:
    """The operator NAME_copy of a view with ``copy: true``: what the view shows, in bytes of its own."""
    if not p.fields.get("copy"):
        return []
    name, dot, rest = re.sub(r"\(a\)", "", str(p.fields["op"])).partition("(")
    name, point, overload = name.partition(".")
    schema = parse_schema(str(p.fields["op"]), p.where)
    single = not schema.returns[0].type.is_list
    fields = {
        "op": f"{name}_copy{point}{overload}{dot}{rest}",
        "variants": [
            "function",
            *(["method"] if name == "narrow" else []),
            *(["out"] if single else []),
        ],
        "kind": "composite",
        "expr": f"copied({name}({', '.join(q.name for q in schema.params)}))",
        "doc": f"What {name} shows, as a copy.",
    }
    return [replace(p, fields=fields)]


def _build_paragraph(p: RawParagraph, numbers: dict[str, int]) -> list[Operator]:
    raw, where = p.fields, p.where
    unknown = set(raw) - FIELDS
    if unknown:
        raise ParagraphError(
            where, f"unknown field {sorted(unknown)[0]!r}; known: {', '.join(sorted(FIELDS))}"
        )
    if "op" not in raw:
        raise ParagraphError(where, "a paragraph starts with 'op:' and a schema")
    base = parse_schema(str(raw["op"]), where)
    kind = raw.get("kind")
    if kind not in KINDS:
        raise ParagraphError(where, f"kind is {kind!r}; expected one of {', '.join(KINDS)}")
    variants = raw.get("variants", ["function"])
    for v in variants:
        if v not in VARIANTS:
            raise ParagraphError(
                where, f"unknown variant {v!r}; expected one of {', '.join(VARIANTS)}"
            )
    if not base.name.startswith("_") and not raw.get("doc"):
        raise ParagraphError(where, f"{base.name} is public and has no 'doc'")
    needs = {
        "pointwise": ("tile",),
        "custom": ("kernels",),
        "view": ("kernels",),
        "reduction": ("reduce",),
    }
    for name in needs.get(kind, ()):
        if name not in raw:
            raise ParagraphError(where, f"kind {kind} needs the field {name!r}")
    if kind == "composite" and ("composite" in raw) == ("expr" in raw):
        raise ParagraphError(
            where, "kind composite needs one of 'composite' (a C++ function) and 'expr'"
        )
    if kind == "custom" and "shape" not in raw:
        raise ParagraphError(where, "kind custom needs the field 'shape'")
    if raw.get("promote", "default") not in PROMOTIONS:
        raise ParagraphError(
            where, f"promote is {raw['promote']!r}; expected one of {', '.join(PROMOTIONS)}"
        )
    for group in raw.get("dtypes", ()):
        if group not in DTYPE_GROUPS:
            raise ParagraphError(
                where, f"dtypes has {group!r}; expected some of {', '.join(DTYPE_GROUPS)}"
            )
    if raw.get("vmap", "loop") not in VMAP_RULES:
        raise ParagraphError(
            where, f"vmap is {raw['vmap']!r}; expected one of {', '.join(VMAP_RULES)}"
        )
    number = numbers.get(base.name, 0)
    numbers[base.name] = number + 1
    node = raw.get("node") or f"{_camel(base.name)}Backward{number}"
    operators = []
    for schema in expand_unions(base, raw.get("overload_names", {})):
        writes = bool(schema.params) and schema.params[0].type.written
        functional = Function(schema, "inplace" if writes else "functional")
        inplace = out = None
        if "inplace" in variants and schema.params[0].type.is_tensor:
            inplace = Function(inplace_schema(schema, where), "inplace")
        if "out" in variants:
            out = Function(out_schema(schema, where), "out")
        program = unit = unit_scalar = None
        if kind == "pointwise":
            inputs = [q.name for q in schema.params if q.type.is_tensor]
            scalars = [
                q.name for q in schema.params if q.type.base in ("Scalar", "float", "int", "bool")
            ]
            program = compile_tile(raw["tile"], inputs, scalars, where)
            for q in schema.params:
                if q.type.base == "Scalar" and q.default == "1":
                    unit_scalar = q.name
                    unit = compile_tile(raw["tile"], inputs, scalars, where, {q.name: "1"})
        operators.append(
            Operator(
                where, raw, kind, tuple(variants), functional, inplace, out,
                _check_gradients(raw, schema, where, kind, node), program, unit, unit_scalar,
            )
        )  # fmt: skip
    return operators
