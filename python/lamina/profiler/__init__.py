"""Where the time of a program goes: `profile`, `record_function`, `schedule`."""

from lamina.autograd.profiler import kineto_available, record_function
from lamina.profiler.profiler import (
    ExecutionTraceObserver,
    ProfilerAction,
    ProfilerActivity,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

__all__ = [
    "ExecutionTraceObserver",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]
