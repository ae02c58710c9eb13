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
class Entrance:
    """A call from Python at the border: when it came in and went back, from which lines, and how arguments were matched."""

    entered: int  # nanoseconds
    left: int
    lines: tuple[tuple[str, int, str], ...] = ()
    function: str = ""  # whose signatures were tried; empty where nothing had to be matched
    chosen: int = -1
    signatures: tuple[tuple[str, str], ...] = ()  # text, and why the call does not fit
    calls: list[Call] = field(default_factory=list)  # what it led to

    def times(self) -> dict[int, tuple[int, int]]:
        """{index of a call: nanoseconds of the border before it, and after it}."""
        out, at = {}, self.entered
        for n, call in enumerate(self.calls):
            last = n == len(self.calls) - 1
            out[call.index] = (max(call.begin - at, 0), max(self.left - call.end, 0) if last else 0)
            at = call.end
        return out


@dataclass
class Call:
    """One event: a call of an operator, or a named stretch of work (a node of a backward pass, a user's block)."""

    index: int
    kind: str
    name: str  # "aten::add.Tensor", "MulBackward0"
    begin: int  # nanoseconds
    end: int
    failed: bool = False
    parent: Call | None = None
    children: list[Call] = field(default_factory=list)
    entrance: Entrance | None = None
    outer: bool = False  # it came from Python, not from a call that came in with it
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
    loops: tuple[tuple[int, int, int], ...] = ()  # chunks, threads, nanoseconds
    allocated: int = 0
    reused: int = 0  # of those bytes: the system had not to be asked for them
    freed: int = 0
    allocator: int = 0  # nanoseconds in the allocator

    @property
    def key(self) -> str:
        """The dispatch key that won."""
        return self.keys[0] if self.keys else ""

    @property
    def lines(self) -> tuple[tuple[str, int, str], ...]:
        """File, number and function of the lines that led here, the innermost first."""
        return self.entrance.lines if self.entrance else ()

    @property
    def line(self) -> tuple[str, int, str] | None:
        """File, number and function of the innermost line of the user's."""
        for line in self.lines:
            if not line[0].startswith(OWN):
                return line
        return self.lines[-1] if self.lines else None

    @property
    def chunks(self) -> tuple[tuple[int, int], ...]:
        """Chunks and threads of the parallel loops."""
        return tuple((chunks, threads) for chunks, threads, _ in self.loops)

    @property
    def border(self) -> tuple[int, int]:
        """Nanoseconds of the border: on the way in, and on the way back."""
        if not self.outer or self.entrance is None or self.kind == "user":
            return 0, 0
        return self.entrance.times().get(self.index, (0, 0))

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
        out = dict.fromkeys(FLOORS, 0)
        for call in self.walk():
            own = max(call.own_time, 0)
            way_in, way_back = call.border
            if call.parent is not None and call.parent.kind != "user":
                own_border = min(way_in + way_back, max(call.parent.own_time, 0))
                # Called by Python code that a call from Python runs: it lies inside of that one.
                out[call.parent.floor] -= own_border
                out["border"] += own_border
            else:
                # Between the nodes of a backward pass the engine works.
                between = call.kind == "backward"
                out["dispatch and autograd" if between else "border"] += way_in + way_back
            if call.kind == "user":
                continue
            memory = min(call.allocator, own)
            shared = [ns for _, threads, ns in call.loops if threads > 1]
            queue = min(max(shared, default=0), own - memory)
            out["memory"] += memory
            out["queue"] += queue
            out[call.floor] += own - memory - queue
        return out

    @property
    def floor(self) -> str:
        """The floor of the call's own work."""
        if self.kind == "user":
            return "Python"
        if self.rule == "autograd kernel" or self.kind != "call":
            return "dispatch and autograd"
        return "composites" if self.rule == "math kernel" else "kernels"

    def walk(self):
        yield self
        for child in self.children:
            yield from child.walk()


# Where time goes. "queue": loops that several threads share, the work of their chunks with them.
FLOORS = ("Python", "border", "dispatch and autograd", "composites", "kernels", "memory", "queue")

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
    entrances = [
        Entrance(entered, left or trace["stopped"], tuple(lines), function, chosen, tuple(tried))
        for entered, left, lines, function, chosen, tried in trace["scopes"]
    ]
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
            failed=raw["failed"],
            outer=raw["outer"],
            schema=schema,
            keys=tuple(raw.get("keys", ())),
            rule=raw.get("rule", ""),
            where=raw.get("where", ""),
            arguments=tuple(map(_value, params, raw["arguments"])),
            results=tuple(map(_value, returns, raw["results"])),
            kernels=tuple(raw["kernels"]),
            refusals=tuple(raw["refusals"]),
            loops=tuple(raw["loops"]),
            allocated=raw["allocated"],
            reused=raw["reused"],
            freed=raw["freed"],
            allocator=raw["allocator"],
        )
        if raw["scope"] >= 0:
            call.entrance = entrances[raw["scope"]]
            if call.outer:
                call.entrance.calls.append(call)
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


def at_the_border(call: Call, schema: str) -> str | None:
    """Why the border did not take that overload, as it matched the arguments; None where that does not tell.

    A signature of the border serves all overloads with the same names of arguments: those that differ in types alone
    (a tensor or a number) are told apart after it.
    """
    entrance = call.entrance
    if entrance is None or not call.outer or entrance.chosen < 0:
        return None
    names = [p[0] for p in _C._schema_parts(schema.split("::", 1)[-1])[0]]
    if names:
        names[0] = "input" if names[0] == "self" else names[0]
    for number, (text, reason) in enumerate(entrance.signatures):
        if _signature_names(text) != names:
            continue
        if number == entrance.chosen:
            return None
        if reason:
            return reason
        return (
            f"it would fit, but the border takes ({entrance.signatures[entrance.chosen][0]}) first"
        )
    return None


def _signature_names(text: str) -> list[str]:
    """["input", "dim"] of "Tensor input, *, int dim = 0, Tensor out = None"."""
    depth, parts = 0, [""]
    for letter in text:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    names = [p.split("=", 1)[0].split()[-1] for p in parts if p.strip() and p.strip() != "*"]
    return [n for n in names if n != "out"]


def _shown_preset(param) -> str:
    if param is None or not param[3]:
        return ""
    return repr(_C._schema_preset(param[1], param[5]))
