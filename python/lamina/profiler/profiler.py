"""`profile` with a schedule of steps, and what goes with it."""

from __future__ import annotations

import gzip
import json
import os
import socket
import time
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

from lamina.autograd import profiler as _profiler
from lamina.autograd.profiler_util import EventList

__all__ = [
    "ExecutionTraceObserver",
    "ProfilerAction",
    "ProfilerActivity",
    "profile",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


class ProfilerActivity(Enum):
    """What is to be watched; on a machine without accelerator only CPU gives events."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(Enum):
    """What a profile does during one step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set[ProfilerActivity]:
    """The activities that give events here."""
    return {ProfilerActivity.CPU}


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:
    """Steps to an action: `skip_first` once, then cycles of `wait`, `warmup` and `active` steps, `repeat` of them (0: no end).

    With `skip_first_wait` the first cycle does not wait.
    """
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise AssertionError("Invalid profiler schedule arguments")

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait != 0:
            step += wait
        cycle = wait + warmup + active
        if repeat > 0 and step // cycle >= repeat:
            return ProfilerAction.NONE
        place = step % cycle
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def _always(step: int) -> ProfilerAction:
    return ProfilerAction.RECORD


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """An `on_trace_ready` that writes each trace to a file of its own in `dir_name`."""

    def handler(prof: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        end = ".pt.trace.json.gz" if use_gzip else ".pt.trace.json"
        prof.export_chrome_trace(os.path.join(dir_name, f"{worker}.{time.time_ns()}{end}"))

    return handler


class ExecutionTraceObserver:
    """A record of the operators that ran, as a graph in JSON: not there; a chrome trace has what ran."""

    def __init__(self) -> None:
        from lamina._missing import missing

        raise missing("torch.profiler.ExecutionTraceObserver")


class profile:  # noqa: N801
    """A block whose calls are timed: ``with profile() as p: ...``, then ``p.events()`` and ``p.key_averages()``.

    With a `schedule` (see `schedule`) call `step` after every step; `on_trace_ready` gets the profile whenever a cycle's
    last step is done. Without one the whole block is one cycle, and `on_trace_ready` is called at its end.
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        self.activities = set(activities) if activities is not None else supported_activities()
        if not self.activities:
            raise AssertionError("No valid profiler activities found")
        self.schedule = schedule or _always
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.record_shapes, self.profile_memory = record_shapes, profile_memory
        self.with_stack, self.with_flops, self.with_modules = with_stack, with_flops, with_modules
        self.acc_events = acc_events
        self.step_num = 0
        self.current_action = self.schedule(0)
        self.profiler: _profiler.profile | None = None
        self._step: _profiler.record_function | None = None
        self._metadata: dict[str, str] = {}
        self._events_so_far: list = []

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begins with the first step."""
        self._enter_action(self.current_action)
        self._open_step()

    def stop(self) -> None:
        """Ends; a trace that is running is complete with it."""
        self._close_step()
        if self._recording(self.current_action):
            self._finish()
            if self.on_trace_ready:
                self.on_trace_ready(self)

    def step(self) -> None:
        """One step is over and the next begins."""
        self._close_step()
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        if before is ProfilerAction.RECORD_AND_SAVE or (
            self._recording(before) and not self._recording(self.current_action)
        ):
            self._finish()
            if self.on_trace_ready:
                self.on_trace_ready(self)
            self._enter_action(self.current_action)
        elif not self._recording(before):
            self._enter_action(self.current_action)
        self._open_step()

    @staticmethod
    def _recording(action: ProfilerAction) -> bool:
        return action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)

    def _enter_action(self, action: ProfilerAction) -> None:
        if not self._recording(action):
            return
        self.profiler = _profiler.profile(
            record_shapes=self.record_shapes,
            profile_memory=self.profile_memory,
            with_stack=self.with_stack,
            with_flops=self.with_flops,
        )
        self.profiler._start()

    def _finish(self) -> None:
        assert self.profiler is not None
        self.profiler._stop()
        if self.acc_events:
            self._events_so_far += self.profiler._events()

    def _open_step(self) -> None:
        if self.record_steps and self._recording(self.current_action):
            self._step = _profiler.record_function(f"ProfilerStep#{self.step_num}")
            self._step.__enter__()

    def _close_step(self) -> None:
        if self._step is not None:
            self._step.__exit__(None, None, None)
            self._step = None

    def _done(self) -> _profiler.profile:
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before use")
        return self.profiler

    def events(self) -> EventList:
        """The events of the last cycle, or of all with `acc_events`."""
        if self.acc_events and self._events_so_far:
            return EventList(self._events_so_far, profile_memory=self.profile_memory)
        return self._done()._events()

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """Sums of events by name, and by input shapes or lines where asked for."""
        return self.events().key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def export_chrome_trace(self, path: str) -> None:
        """Writes the last cycle for chrome://tracing or Perfetto; compressed where the name ends in .gz."""
        data = self.events()._chrome_trace()
        data.update({key: json.loads(value) for key, value in self._metadata.items()})
        text = json.dumps(data)
        if str(path).endswith(".gz"):
            with gzip.open(path, "wt", encoding="utf-8") as file:
                file.write(text)
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes stacks for flame graphs; needs with_stack=True."""
        self.events().export_stacks(path, metric)

    def add_metadata(self, key: str, value: str) -> None:
        """Adds a text to the trace."""
        self._metadata[key] = json.dumps(value)

    def add_metadata_json(self, key: str, value: str) -> None:
        """Adds a JSON value to the trace."""
        json.loads(value)
        self._metadata[key] = value
