"""`lamina.explain(fn, *args)`: what calls did, floor by floor."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lamina import _C
from lamina.explain._events import (
    FLOORS,
    OWN,
    Call,
    TensorNote,
    Value,
    at_the_border,
    build,
    overloads,
    why_not,
)
from lamina.explain._text import bytes_text, loop_text, memory_text, signature_text, time_text

__all__ = ["Difference", "Explanation"]


class Explanation:
    """A block whose calls are watched, and after it what they did.

    Use it as ``with lamina.explain() as e:`` or get one from ``lamina.explain(fn, *args)``, whose result is then in
    `result`. ``print(e)`` shows the calls; `to_html` writes a page, `to_json` the data, `diff` compares two runs.
    Blocks on one thread cannot be nested: the inner one raises RuntimeError.
    """

    def __init__(self) -> None:
        self.result: Any = None
        self._heard: Any = None  # what has not been read yet
        self._calls: list[Call] = []
        self._memory_events: list[tuple[int, int, int, int]] = []
        self._span = (0, 0)

    def __enter__(self) -> Explanation:
        _C._trace_start(True, False, True, OWN)
        return self

    def __exit__(self, *exception: object) -> None:
        self._heard = _C._trace_stop()

    def _read(self) -> None:
        """Makes calls of the records, at the first question."""
        if self._heard is None:
            return
        trace = _C._trace_read(self._heard)
        self._heard = None
        self._calls = build(trace)
        self._memory_events = trace["memory"]
        self._span = trace["started"], trace["stopped"]

    @property
    def calls(self) -> list[Call]:
        """All calls in the order in which they began."""
        self._read()
        return self._calls

    @property
    def memory_events(self) -> list[tuple[int, int, int, int]]:
        """(time, block, bytes, call) of every block taken (positive) or given back (negative)."""
        self._read()
        return self._memory_events

    @property
    def started(self) -> int:
        """Nanoseconds of the steady clock when watching began."""
        self._read()
        return self._span[0]

    @property
    def stopped(self) -> int:
        """The same when it ended."""
        self._read()
        return self._span[1]

    @property
    def roots(self) -> list[Call]:
        """The calls that came from Python, and the nodes of backward passes."""
        return [c for c in self.calls if c.parent is None]

    def find(self, name: str) -> list[Call]:
        """Calls of one operator, by its name with or without namespace and overload."""
        return [
            c
            for c in self.calls
            if name in (c.name, c.name.split(".")[0], c.name.split("::")[-1], _plain(c.name))
        ]

    # --- as text

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        floors = self.floors()
        total = ", ".join(f"{name} {time_text(ns)}" for name, ns in floors.items() if ns)
        yield f"{len(self.roots)} calls from Python, {len(self.calls)} in all; {total}"
        last = None
        for call in self.roots:
            if call.line != last and call.line is not None:
                last = call.line
                yield f"{last[0]}:{last[1]} in {last[2]}"
            yield from self._call_lines(call, 1)

    def _call_lines(self, call: Call, depth: int) -> Iterator[str]:
        pad = "  " * depth
        given = ", ".join(_shown(a) for a in call.arguments if a.kind != "None")
        gives = ", ".join(str(r) for r in call.results) or ("raised" if call.failed else "nothing")
        if call.kind == "call":
            yield f"{pad}{call.name}({given}) -> {gives}   {time_text(call.duration)}"
        else:
            yield f"{pad}{call.kind} {call.name}   {time_text(call.duration)}"
        inner = pad + "    "
        if call.kind == "call" and call.outer:
            way_in, way_back = call.border
            taken = signature_text(call)
            if taken or way_in or way_back:
                times = f"{time_text(way_in)} in, {time_text(way_back)} back"
                yield f"{inner}border {taken or 'without matching'}; {times}"
            for overload, reason in self.other_overloads(call):
                yield f"{inner}not {overload}: {reason}"
        if call.keys:
            yield f"{inner}keys {', '.join(call.keys)}: {call.key} won, {call.rule} of {call.where}"
        if call.node:
            kept = "; ".join(f"{name} {t}, {bytes_text(t.nbytes)}" for name, t in call.saved)
            yield f"{inner}recorded {call.node}, which keeps {kept or 'nothing'}"
        for candidate, reason in call.refusals:
            yield f"{inner}kernel {candidate} refused: {reason}"
        for family, name, isa, elements in call.kernels:
            by = f" ({isa})" if isa else ""
            count = f", {elements} elements" if elements else ""
            yield f"{inner}ran {family}: {name}{by}{count}"
        for chunks, threads, ns in call.loops:
            yield f"{inner}{loop_text(chunks, threads)}, {time_text(ns)}"
        if call.allocated or call.freed:
            yield f"{inner}{memory_text(call)}"
        for child in call.children:
            yield from self._call_lines(child, depth + 1)

    def other_overloads(self, call: Call) -> list[tuple[str, str]]:
        """(overload, reason) of the functional overloads that were not chosen.

        The reason is what the border found when it matched the arguments; for overloads that share the signature it
        took, and for calls that did not come through it, it follows from the schema.
        """
        if "::" not in call.name:
            return []
        out = []
        for schema in overloads(_plain_with_namespace(call.name)):
            name = schema.split("(", 1)[0]
            if name.split("::")[-1] == call.name.split("::")[-1] or "!)" in schema:
                continue
            reason = (
                at_the_border(call, schema) or why_not(call, schema) or "the chosen one comes first"
            )
            out.append((name.split("::")[-1], reason))
        return out

    def floors(self) -> dict[str, int]:
        """Nanoseconds by floor. "Python" is what lies between the calls: the program's own lines and the package's."""
        total = dict.fromkeys(FLOORS, 0)
        for call in self.roots:
            for name, ns in call.floors().items():
                total[name] += ns
        total["Python"] += max(self.stopped - self.started - sum(total.values()), 0)
        return total

    # --- as data

    def to_json(self, path: str | Path | None = None) -> str:
        """The calls as JSON text; written to `path` where one is given."""
        data = {
            "format": "lamina.explain 1",
            "floors_ns": self.floors(),
            "calls": [self._json(c) for c in self.roots],
        }
        text = json.dumps(data, indent=1)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def _json(self, c: Call) -> dict[str, Any]:
        return {
            "kind": c.kind,
            "name": c.name,
            "line": c.line,
            "schema": c.schema,
            "keys": c.keys,
            "rule": c.rule,
            "where": c.where,
            "border": _json_border(c),
            "not_chosen": self.other_overloads(c) if c.outer else [],
            "arguments": [_json_value(a) for a in c.arguments],
            "results": [_json_value(r) for r in c.results],
            "failed": c.failed,
            "node": c.node,
            "saved": [{"name": n, **_json_tensor(t)} for n, t in c.saved],
            "kernels": [
                {"family": f, "name": n, "isa": isa, "elements": e} for f, n, isa, e in c.kernels
            ],
            "refusals": [{"kernel": k, "reason": r} for k, r in c.refusals],
            "chunks": [{"chunks": n, "threads": t, "ns": ns} for n, t, ns in c.loops],
            "bytes_allocated": c.allocated,
            "bytes_reused": c.reused,
            "bytes_freed": c.freed,
            "begin_ns": c.begin - self.started,
            "duration_ns": c.duration,
            "floors_ns": c.floors(),
            "calls": [self._json(child) for child in c.children],
        }

    def to_html(self, path: str | Path) -> None:
        """One page without outside parts: every call as it falls through the floors, with pictures of its tensors."""
        from lamina.explain._page import page

        Path(path).write_text(page(self), encoding="utf-8")

    def diff(self, other: Explanation) -> Difference:
        """What changed from this run to `other`: calls that came or went, and of the others what differs but time."""
        return Difference.of(self, other)


@dataclass
class Difference:
    """The changes between two explanations, one line each; empty where both did the same."""

    changes: list[str]

    def __bool__(self) -> bool:
        return bool(self.changes)

    def __str__(self) -> str:
        return "\n".join(self.changes) or "no difference"

    @classmethod
    def of(cls, a: Explanation, b: Explanation) -> Difference:
        """What changed from explanation `a` to explanation `b`."""
        before, after = _flat(a), _flat(b)
        names_a, names_b = [(d, c.name) for d, c in before], [(d, c.name) for d, c in after]
        changes: list[str] = []
        matcher = difflib.SequenceMatcher(None, names_a, names_b, autojunk=False)
        for tag, i0, i1, j0, j1 in matcher.get_opcodes():
            if tag == "equal":
                for (_, c), (_, d) in zip(before[i0:i1], after[j0:j1], strict=True):
                    changes += [f"{_place(d)}{d.name}: {x}" for x in _changed(c, d)]
                continue
            changes += [f"- {_place(c)}{c.name}" for _, c in before[i0:i1]]
            changes += [f"+ {_place(d)}{d.name}" for _, d in after[j0:j1]]
        return cls(changes)


def _flat(e: Explanation) -> list[tuple[int, Call]]:
    out = []

    def add(call: Call, depth: int) -> None:
        out.append((depth, call))
        for child in call.children:
            add(child, depth + 1)

    for call in e.roots:
        add(call, 0)
    return out


def _place(call: Call) -> str:
    return f"{call.line[0]}:{call.line[1]} " if call.line else ""


def _changed(a: Call, b: Call) -> Iterator[str]:
    for what, x, y in (
        ("arguments", list(map(_compared, a.arguments)), list(map(_compared, b.arguments))),
        ("results", list(map(_compared, a.results)), list(map(_compared, b.results))),
        ("signature", signature_text(a), signature_text(b)),
        ("keys", a.keys, b.keys),
        ("rule", a.rule, b.rule),
        ("table entry", a.where, b.where),
        ("recorded node", a.node, b.node),
        ("saved", [(n, str(t)) for n, t in a.saved], [(n, str(t)) for n, t in b.saved]),
        ("kernels", a.kernels, b.kernels),
        ("refusals", a.refusals, b.refusals),
        ("chunks and threads", a.chunks, b.chunks),
        ("bytes taken", a.allocated, b.allocated),
        ("bytes given back", a.freed, b.freed),
        ("failed", a.failed, b.failed),
    ):
        if x != y:
            yield f"{what}: {_joined(x)} became {_joined(y)}"


def _compared(v: Value) -> str:
    extra = "".join("" if t.is_row_major else f" strides {t.strides}" for t in v.tensors if t.sizes)
    return f"{v}{extra}"


def _joined(x: object) -> str:
    if isinstance(x, list | tuple):
        return ", ".join(_joined(v) for v in x) or "nothing"
    return str(x) or "nothing"


def _shown(v: Value) -> str:
    strided = [t for t in v.tensors if not t.is_row_major]
    note = f" strides {strided[0].strides}" if strided else ""
    return f"{v.name}={v}{note}"


def _plain(name: str) -> str:
    return name.split("::")[-1].split(".")[0]


def _plain_with_namespace(name: str) -> str:
    return name.split(".")[0]


def _json_tensor(t: TensorNote) -> dict[str, Any]:
    return {
        "dtype": t.dtype,
        "shape": t.sizes,
        "strides": t.strides,
        "offset": t.offset,
        "nbytes": t.nbytes,
        "requires_grad": t.requires_grad,
    }


def _json_border(c: Call) -> dict[str, Any] | None:
    if not c.outer or c.entrance is None:
        return None
    way_in, way_back = c.border
    tried = [
        {"signature": text, "chosen": n == c.entrance.chosen, "mismatch": reason}
        for n, (text, reason) in enumerate(c.entrance.signatures)
    ]
    return {
        "in_ns": way_in,
        "back_ns": way_back,
        "function": c.entrance.function,
        "signatures": tried,
    }


def _json_value(v: Value) -> dict[str, Any]:
    out: dict[str, Any] = {"name": v.name, "kind": v.kind}
    if v.kind == "Tensor":
        out.update(_json_tensor(v.tensors[0]))
    elif v.kind == "Tensor[]":
        out["tensors"] = [_json_tensor(t) for t in v.tensors]
    else:
        out["value"] = v.text
    return out
