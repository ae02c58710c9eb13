"""The event stream as Python sees it: calls with what they were given and gave, nested as they ran."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import lamina
from lamina import _C

# Lines of these files are the library's own, not the user's.
OWN = os.path.join(os.path.dirname(os.path.abspath(lamina.__file__)), "")


@dataclass(frozen=True)
class TensorNote:
    """What is told of a tensor; the tensor itself is not kept."""

    dtype: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    address: int  # of the first byte of its storage
    nbytes: int
    requires_grad: bool

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.sizes))}]"

    @property
    def is_row_major(self) -> bool:
        step = 1
        for size, stride in zip(reversed(self.sizes), reversed(self.strides), strict=True):
            if size != 1 and stride != step:
                return False
            step *= size
        return True


@dataclass(frozen=True)
class Value:
    """An argument or a result: tensors, or something else as text."""

    name: str
    tensors: tuple[TensorNote, ...] = ()
    text: str = ""
    kind: str = "Tensor"  # Tensor, Tensor[], number, bool, str, list, None, other

    def __str__(self) -> str:
        if self.kind == "Tensor[]":
            return f"[{', '.join(map(str, self.tensors))}]"
        return str(self.tensors[0]) if self.tensors else self.text


@dataclass
class Call:
    """One event: a call of an operator, or a named stretch of work (a node of a backward pass, a user's block)."""

    index: int
    kind: str
    name: str  # "aten::add.Tensor", "MulBackward0"
    begin: int  # nanoseconds
    end: int
    entered: int = 0  # when the call from Python came in
    failed: bool = False
    parent: Call | None = None
    children: list[Call] = field(default_factory=list)
    schema: str = ""
    keys: tuple[str, ...] = ()
    rule: str = ""  # kernel, math kernel, autograd kernel, ...
    where: str = ""
    arguments: tuple[Value, ...] = ()
    results: tuple[Value, ...] = ()
    node: str = ""
    saved: tuple[tuple[str, TensorNote], ...] = ()
    kernels: tuple[tuple[str, str, str | None, int], ...] = ()
    refusals: tuple[tuple[str, str], ...] = ()
    chunks: tuple[tuple[int, int], ...] = ()
    allocated: int = 0
    freed: int = 0
    lines: tuple[tuple[str, int, str], ...] = ()

    @property
    def key(self) -> str:
        """The dispatch key that won."""
        return self.keys[0] if self.keys else ""

    @property
    def line(self) -> tuple[str, int, str] | None:
        """File, number and function of the innermost line of the user's."""
        for line in self.lines:
            if not line[0].startswith(OWN):
                return line
        return self.lines[-1] if self.lines else None

    @property
    def duration(self) -> int:
        return self.end - self.begin

    @property
    def own_time(self) -> int:
        return self.duration - sum(c.duration for c in self.children)

    @property
    def is_layer(self) -> bool:
        """A layer that calls the same operator again below."""
        return len(self.children) == 1 and self.children[0].name == self.name

    def floors(self) -> dict[str, int]:
        """Nanoseconds spent on each floor by this call and all below it."""
        out = {"border": 0, "dispatch and autograd": 0, "composites": 0, "kernels": 0}
        if self.entered and self.parent is None:
            out["border"] = max(self.begin - self.entered, 0)
        for call in self.walk():
            if call.rule == "autograd kernel" or call.kind != "call":
                out["dispatch and autograd"] += call.own_time
            elif call.rule == "math kernel":
                out["composites"] += call.own_time
            else:
                out["kernels"] += call.own_time
        return out

    def walk(self):
        yield self
        for child in self.children:
            yield from child.walk()


_KINDS = {bool: "bool", int: "number", float: "number", complex: "number", str: "str"}


def _tensor(raw) -> TensorNote:
    dtype, sizes, strides, offset, address, nbytes, requires_grad = raw
    return TensorNote(
        str(dtype).split(".")[-1], sizes, strides, offset, address, nbytes, requires_grad
    )


def _value(name: str, raw) -> Value:
    tensors, other, is_list = raw
    if is_list:
        return Value(name, tuple(map(_tensor, tensors)), kind="Tensor[]")
    if tensors:
        return Value(name, (_tensor(tensors[0]),))
    if other is None:
        return Value(name, text="None", kind="None")
    kind = _KINDS.get(type(other), "list" if isinstance(other, list | tuple) else "other")
    return Value(name, text=repr(other), kind=kind)


def _names(schema: str) -> tuple[list[str], list[str]]:
    params, returns = _C._schema_parts(schema.split("::", 1)[-1])
    return [p[0] for p in params], [r[0] for r in returns]


def build(trace: dict[str, Any]) -> list[Call]:
    """Calls in the order in which they began, linked to those that made them."""
    calls: list[Call] = []
    names: dict[str, tuple[list[str], list[str]]] = {}
    for index, raw in enumerate(trace["records"]):
        schema = raw.get("schema", "")
        if schema and schema not in names:
            names[schema] = _names(schema)
        params, returns = names.get(schema, ([], []))
        call = Call(
            index=index,
            kind=raw["kind"],
            name=raw["name"],
            begin=raw["begin"],
            end=raw["end"] or trace["stopped"],
            entered=raw["entered"],
            failed=raw["failed"],
            schema=schema,
            keys=tuple(raw.get("keys", ())),
            rule=raw.get("rule", ""),
            where=raw.get("where", ""),
            arguments=tuple(map(_value, params, raw["arguments"])),
            results=tuple(map(_value, returns, raw["results"])),
            kernels=tuple(raw["kernels"]),
            refusals=tuple(raw["refusals"]),
            chunks=tuple(raw["chunks"]),
            allocated=raw["allocated"],
            freed=raw["freed"],
            lines=tuple(raw["lines"]),
        )
        if call.rule == "autograd kernel":
            # Composites give what their last call recorded; it is told there.
            call.node = raw["node"]
            call.saved = tuple((name, _tensor(t)) for name, t in raw["saved"])
        if raw["parent"] >= 0:
            call.parent = calls[raw["parent"]]
            call.parent.children.append(call)
        calls.append(call)
    return calls


def overloads(name: str) -> list[str]:
    """Schemas of all overloads of an operator ("aten::add"), functional, in place and out=."""
    namespace, op = name.split("::")
    packet = getattr(getattr(lamina.ops, namespace), op)
    return [str(getattr(packet, o)._schema) for o in packet.overloads()]


_WANTED = {
    "Tensor": ("Tensor",),
    "Scalar": ("number", "bool"),
    "int": ("number", "bool"),
    "float": ("number", "bool"),
    "bool": ("bool",),
    "str": ("str",),
}


def why_not(call: Call, schema: str) -> str:
    """Why a call with these arguments did not choose that overload; empty where it could have."""
    params, _ = _C._schema_parts(schema.split("::", 1)[-1])
    given = {a.name: a for a in call.arguments if a.kind != "None"}
    own = {p[0]: p for p in _C._schema_parts(call.schema.split("::", 1)[-1])[0]}
    taken = set()
    for name, kind, _alias, has_preset, _keyword_only, _preset in params:
        value = given.get(name)
        if value is None:
            if not has_preset and not kind.endswith("?"):
                return f"it needs {name!r}, which was not given"
            continue
        taken.add(name)
        plain = kind.rstrip("?")
        if plain.startswith("Tensor["):
            fits = value.kind == "Tensor[]"
        elif "[" in plain:
            fits = value.kind in ("list", "number")
        else:
            wanted = _WANTED.get(plain)
            fits = wanted is None or value.kind in wanted
        if not fits:
            return f"{name!r} must be {kind}; got {value.kind} {value}"
    for name, value in given.items():
        # What equals the preset may not have been given at all.
        if name not in taken and value.text != _shown_preset(own.get(name)):
            return f"it has no {name!r}"
    return ""


def _shown_preset(param) -> str:
    if param is None or not param[3]:
        return ""
    return repr(_C._schema_preset(param[1], param[5]))
