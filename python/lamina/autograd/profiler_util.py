"""Events of a profile, their averages, and the table that shows them."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "Interval"]


@dataclass(frozen=True)
class Interval:
    """From `start` to `end`, in microseconds."""

    start: float
    end: float

    def elapsed_us(self) -> float:
        """The length in microseconds."""
        return self.end - self.start


def _time_text(us: float, unit: str | None = None) -> str:
    if unit is None:
        unit = "s" if us >= 1e6 else "ms" if us >= 1e3 else "us"
    return f"{us / {'s': 1e6, 'ms': 1e3, 'us': 1.0}[unit]:.3f}{unit}"


def _memory_text(n: int) -> str:
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(n) >= size:
            return f"{n / size:.2f} {unit}"
    return f"{n} B"


class _Times:
    """What events and averages have in common: times in microseconds, also as text."""

    count: int
    cpu_time_total: float
    self_cpu_time_total: float

    @property
    def cpu_time(self) -> float:
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        return 0.0

    device_time_total = self_device_time_total = cuda_time = cuda_time_total = device_time
    self_device_memory_usage = self_cuda_memory_usage = device_memory_usage = 0

    @property
    def cpu_time_str(self) -> str:
        return _time_text(self.cpu_time)

    @property
    def cpu_time_total_str(self) -> str:
        return _time_text(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self) -> str:
        return _time_text(self.self_cpu_time_total)


@dataclass(eq=False)
class FunctionEvent(_Times):
    """One call of an operator, one node of a backward pass, or one block of the user's."""

    id: int
    name: str
    time_range: Interval
    overload_name: str = ""
    thread: int = 1
    input_shapes: list = field(default_factory=list)
    concrete_inputs: list = field(default_factory=list)
    stack: list[str] = field(default_factory=list)
    scope: int = 0
    cpu_memory_usage: int = 0
    is_async: bool = False
    is_remote: bool = False
    is_user_annotation: bool = False
    sequence_nr: int = -1
    node_id: int = -1
    flops: int | None = None
    cpu_children: list[FunctionEvent] = field(default_factory=list)
    cpu_parent: FunctionEvent | None = None
    count: int = 1

    @property
    def key(self) -> str:
        """What averages gather by."""
        return self.name

    @property
    def trace_name(self) -> str:
        """Name of the event in a trace."""
        return self.name

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Adds what this event called."""
        self.cpu_children.append(child)
        child.cpu_parent = self

    @property
    def cpu_time_total(self) -> float:
        """Microseconds from begin to end."""
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds without those of what it called."""
        return self.cpu_time_total - sum(c.cpu_time_total for c in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        """Bytes without those of what it called."""
        return self.cpu_memory_usage - sum(c.cpu_memory_usage for c in self.cpu_children)

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start:.3f} end_us={self.time_range.end:.3f} "
            f"cpu_children={[c.id for c in self.cpu_children]} thread={self.thread} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage}>"
        )


@dataclass(eq=False)
class FunctionEventAvg(_Times):
    """The sum over events of one key."""

    key: str = ""
    count: int = 0
    cpu_time_total: float = 0.0
    self_cpu_time_total: float = 0.0
    cpu_memory_usage: int = 0
    self_cpu_memory_usage: int = 0
    input_shapes: list = field(default_factory=list)
    stack: list[str] = field(default_factory=list)
    overload_name: str = ""
    is_user_annotation: bool = False
    node_id: int = -1
    scope: int = 0
    flops: int = 0

    def add(self, event: Any) -> FunctionEventAvg:
        """Adds an event or another average of the same key."""
        if self.count == 0:
            self.key = event.key
            self.input_shapes, self.stack = event.input_shapes, event.stack
            self.overload_name = event.overload_name
            self.is_user_annotation = event.is_user_annotation
        self.count += event.count
        self.cpu_time_total += event.cpu_time_total
        self.self_cpu_time_total += event.self_cpu_time_total
        self.cpu_memory_usage += event.cpu_memory_usage
        self.self_cpu_memory_usage += event.self_cpu_memory_usage
        return self

    def __iadd__(self, event: Any) -> FunctionEventAvg:
        return self.add(event)

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage}>"
        )


_SORT_KEYS = {
    "cpu_time", "cpu_time_total", "self_cpu_time_total", "cpu_memory_usage",
    "self_cpu_memory_usage", "count", "device_time", "device_time_total", "self_device_time_total",
    "cuda_time", "cuda_time_total", "self_cuda_time_total",
}  # fmt: skip


class EventList(list):
    """Events, or averages, in order."""

    def __init__(self, *args, profile_memory: bool = False, with_stack: bool = False) -> None:
        super().__init__(*args)
        self._profile_memory, self._with_stack = profile_memory, with_stack

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events, each counted once."""
        return sum(e.self_cpu_time_total for e in self)

    def __str__(self) -> str:
        return self.table()

    def total_average(self) -> FunctionEventAvg:
        """The sum of all events."""
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
        total.key = "Total"
        return total

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """Sums by name, and by input shapes, the innermost `group_by_stack_n` lines or overload where asked for."""
        groups: dict = defaultdict(FunctionEventAvg)
        for e in self:
            key = [e.name, e.is_user_annotation]
            if group_by_overload_name:
                key.append(e.overload_name)
            if group_by_input_shapes:
                key.append(str(e.input_shapes))
            if group_by_stack_n > 0:
                key += e.stack[:group_by_stack_n]
            groups[tuple(key)].add(e)
        out = EventList(
            groups.values(), profile_memory=self._profile_memory, with_stack=self._with_stack
        )
        for average in out:
            average.stack = average.stack[:group_by_stack_n]
            if not group_by_input_shapes:
                average.input_shapes = ""
            if not group_by_overload_name:
                average.overload_name = ""
        return out

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """Events as a table of text, the largest `sort_by` first.

        Raises AttributeError for a `sort_by` that events do not have.
        """
        if not self:
            return ""
        events = list(self)
        if sort_by is not None:
            if sort_by not in _SORT_KEYS:
                raise AttributeError(
                    f"table: events have no {sort_by!r}; expected one of {', '.join(sorted(_SORT_KEYS))}"
                )
            name = sort_by.replace("cuda", "device")
            events.sort(key=lambda e: getattr(e, name), reverse=True)
        if top_level_events_only:
            events = [e for e in events if getattr(e, "cpu_parent", None) is None]
        total = sum(e.self_cpu_time_total for e in events)
        columns = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
        if self._profile_memory:
            columns += ["CPU Mem", "Self CPU Mem"]
        columns.append("# of Calls")
        shapes = any(e.input_shapes for e in events)
        if shapes:
            columns.append("Input Shapes")
        stacks = any(e.stack for e in events)
        if stacks:
            columns.append("Source Location")

        def cut(text: str, width: int) -> str:
            return text if width < 0 or len(text) <= width else text[: width - 3] + "..."

        def share(part: float) -> str:
            return f"{100 * part / total:.2f}%" if total else "nan"

        rows = []
        for e in events[: row_limit if row_limit >= 0 else None]:
            row = [
                cut(e.key, max_name_column_width),
                share(e.self_cpu_time_total),
                _time_text(e.self_cpu_time_total, time_unit),
                share(e.cpu_time_total),
                _time_text(e.cpu_time_total, time_unit),
                _time_text(e.cpu_time, time_unit),
            ]
            if self._profile_memory:
                row += [_memory_text(e.cpu_memory_usage), _memory_text(e.self_cpu_memory_usage)]
            row.append(str(e.count))
            if shapes:
                row.append(cut(str(e.input_shapes), max_shapes_column_width))
            if stacks:
                row.append(cut(e.stack[0] if e.stack else "", max_src_column_width))
            rows.append(row)
        widths = [
            max(12, len(c), *(len(r[i]) for r in rows)) if rows else max(12, len(c))
            for i, c in enumerate(columns)
        ]
        rule = "  ".join("-" * w for w in widths) + "  "

        def line(cells: list[str]) -> str:
            return "  ".join(f"{c:>{w}}" for c, w in zip(cells, widths, strict=True)) + "  "

        out = [header] if header else []
        out += [rule, line(columns), rule, *map(line, rows), rule]
        out.append(f"Self CPU time total: {_time_text(total)}")
        return "\n".join(out) + "\n"

    def export_chrome_trace(self, path: str) -> None:
        """Writes the events for chrome://tracing or Perfetto."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self._chrome_trace(), file)

    def _chrome_trace(self) -> dict[str, Any]:
        pid = os.getpid()
        events: list[dict[str, Any]] = [
            {
                "ph": "M",
                "name": "process_name",
                "pid": pid,
                "tid": 0,
                "ts": 0,
                "args": {"name": "python"},
            }
        ]
        for e in self:
            args: dict[str, Any] = {"External id": e.id}
            if e.input_shapes:
                args["Input Dims"] = e.input_shapes
            if e.stack:
                args["Call stack"] = ";\n".join(e.stack)
            if e.cpu_memory_usage:
                args["Bytes"] = e.cpu_memory_usage
            events.append(
                {
                    "ph": "X",
                    "cat": "user_annotation" if e.is_user_annotation else "cpu_op",
                    "name": e.name,
                    "pid": pid,
                    "tid": e.thread,
                    "ts": e.time_range.start,
                    "dur": e.time_range.elapsed_us(),
                    "args": args,
                }
            )
        return {"schemaVersion": 1, "deviceProperties": [], "traceEvents": events}

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes one line a stack with its `metric`, as flame graph tools read it."""
        if metric not in ("self_cpu_time_total", "self_cuda_time_total", "self_device_time_total"):
            raise ValueError(
                f"metric should be self_cpu_time_total or self_cuda_time_total; got {metric!r}"
            )
        sums: dict[str, float] = defaultdict(float)
        for e in self:
            if e.stack:
                value = e.self_cpu_time_total if metric == "self_cpu_time_total" else 0
                sums[";".join(part.replace(" ", "_") for part in reversed(e.stack))] += value
        with open(path, "w", encoding="utf-8") as file:
            for stack, value in sums.items():
                if int(value) > 0:
                    file.write(f"{stack} {int(value)}\n")
