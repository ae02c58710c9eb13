"""Profiling of the calls of this thread: `profile`, `record_function`."""

from __future__ import annotations

import functools
from typing import Any

from lamina import _C
from lamina.autograd.profiler_util import EventList, FunctionEvent, FunctionEventAvg, Interval

__all__ = [
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "kineto_available",
    "profile",
    "record_function",
]


def kineto_available() -> bool:
    """Whether profiles can be taken: always."""
    return True


class record_function:  # noqa: N801
    """A block, or with a function decorated one call of it, that a profile shows under `name`."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args

    def __enter__(self) -> record_function:
        _C._trace_begin("user", self.name)
        return self

    def __exit__(self, *exception: object) -> None:
        _C._trace_end()

    def __call__(self, fn):
        @functools.wraps(fn)
        def wrapped(*args, **kwargs):
            with record_function(self.name, self.args):
                return fn(*args, **kwargs)

        return wrapped


def _shape(value) -> Any:
    if value.kind == "Tensor[]":
        return [list(t.sizes) for t in value.tensors]
    return list(value.tensors[0].sizes) if value.tensors else []


def _stack(call) -> list[str]:
    from lamina.explain._events import OWN

    return [f"{f}({n}): {function}" for f, n, function in call.lines if not f.startswith(OWN)]


def events_of(
    trace: dict, *, record_shapes: bool, with_stack: bool, profile_memory: bool
) -> EventList:
    """Events of what `_trace_stop` gave. The layers that one call goes through are one event."""
    from lamina.explain._events import build

    out = EventList(profile_memory=profile_memory, with_stack=with_stack)
    start = trace["started"]

    def memory(call) -> int:
        return call.allocated - call.freed + sum(map(memory, call.children))

    def add(call, parent) -> None:
        name, _, overload = call.name.partition(".")
        if call.kind == "user":
            name, overload = call.name, ""
        if call.kind == "backward":
            # The engine's work around a node, and the node inside of it.
            outer = event(call, f"autograd::engine::evaluate_function: {call.name}", "")
            link(outer, parent)
            parent, name, overload = outer, call.name, ""
        e = event(call, name, overload)
        e.is_user_annotation = call.kind == "user"
        link(e, parent)
        inner = call
        while inner.is_layer:
            inner = inner.children[0]
        for child in inner.children:
            add(child, e)

    def event(call, name: str, overload: str) -> FunctionEvent:
        interval = Interval((call.begin - start) / 1e3, (call.end - start) / 1e3)
        e = FunctionEvent(len(out), name, interval, overload_name=overload)
        if record_shapes:
            e.input_shapes = [_shape(a) for a in call.arguments]
        if with_stack:
            e.stack = _stack(call)
        if profile_memory:
            e.cpu_memory_usage = memory(call)
        out.append(e)
        return e

    def link(e: FunctionEvent, parent: FunctionEvent | None) -> None:
        if parent is not None:
            parent.append_cpu_child(e)

    for call in build(trace):
        if call.parent is None:
            add(call, None)
    return out


class profile:  # noqa: N801
    """A block whose calls are timed; afterwards it holds their events.

    Calls of the thread that enters it are seen, the backward passes it runs included. Options about accelerators are
    accepted and mean nothing on the CPU. Raises RuntimeError where this thread's calls are being watched already.
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        **ignored: Any,
    ) -> None:
        self.enabled = enabled
        self.record_shapes = record_shapes or with_flops
        self.profile_memory, self.with_stack = profile_memory, with_stack
        self.use_cpu, self.use_device = use_cpu, use_device
        self._heard: Any = None
        self._read_events: EventList | None = None
        self._running = False

    def __enter__(self) -> profile | None:
        if not self.enabled:
            return None
        self._start()
        return self

    def _start(self) -> None:
        _C._trace_start(self.record_shapes, self.with_stack, self.profile_memory, "")
        self._running = True

    def __exit__(self, *exception: object) -> bool:
        if self._running:
            self._stop()
        return False

    def _stop(self) -> None:
        self._running = False
        self._heard = _C._trace_stop()
        self._read_events = None

    @property
    def function_events(self) -> EventList | None:
        """The events; None while the block runs. They are made of what was heard when first asked for."""
        if self._read_events is None and self._heard is not None:
            self._read_events = events_of(
                _C._trace_read(self._heard),
                record_shapes=self.record_shapes,
                with_stack=self.with_stack,
                profile_memory=self.profile_memory,
            )
            self._heard = None
        return self._read_events

    def _events(self) -> EventList:
        events = self.function_events
        if events is None:
            raise RuntimeError("Profiler didn't finish running")
        return events

    def __iter__(self):
        return iter(self._events())

    def __len__(self) -> int:
        return len(self._events())

    def __str__(self) -> str:
        return (
            "<unfinished torch.autograd.profile>"
            if self.function_events is None
            else str(self._events())
        )

    __repr__ = __str__

    def table(self, *args, **kwargs) -> str:
        """`EventList.table` of all events."""
        return self._events().table(*args, **kwargs)

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """Sums of events by name."""
        return self._events().key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def total_average(self) -> FunctionEventAvg:
        """The sum of all events."""
        return self._events().total_average()

    def export_chrome_trace(self, path: str) -> None:
        """Writes the events for chrome://tracing or Perfetto."""
        self._events().export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes stacks for flame graphs."""
        self._events().export_stacks(path, metric)

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events, each counted once."""
        return self._events().self_cpu_time_total
