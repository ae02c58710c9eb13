"""CUDA, which this build does not have: questions get true answers, requests raise."""

from contextlib import contextmanager

from lamina import _C, _missing
from lamina._C import OutOfMemoryError

has_half = has_magma = False
default_generators = ()


class CudaError(RuntimeError):
    """An error of the CUDA runtime."""


class DeferredCudaCallError(Exception):
    """An error of a call that waited for the start of CUDA."""


def is_available():
    """Whether there is a GPU that can be used; False."""
    return False


def is_initialized():
    """False."""
    return False


def is_bf16_supported(including_emulation=True):
    """False."""
    return False


def is_tf32_supported():
    """False."""
    return False


def device_count():
    """Number of GPUs; 0."""
    return 0


device_count.cache_clear = lambda: None


def _is_in_bad_fork():
    return False


def _is_compiled():
    return False


def _raising(name):
    def function(*args, **kwargs):
        raise AssertionError(
            f"cuda.{name}: Torch not compiled with CUDA enabled: Lamina was built without it, there is "
            "no GPU to ask"
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Raises AssertionError: this build has no CUDA."
    return function


def _quiet(name, result=None):
    def function(*args, **kwargs):
        return result

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Does nothing without a GPU; returns {result!r}."
    return function


for _name in (
    "can_device_access_peer", "current_blas_handle", "current_device", "current_stream",
    "default_stream", "get_device_capability", "get_device_name", "get_device_properties",
    "get_rng_state", "init", "initial_seed", "ipc_collect", "list_gpu_processes", "mem_get_info",
    "memory_usage", "set_rng_state", "set_stream", "synchronize", "utilization", "seed",
    "seed_all", "make_graphed_callables", "temperature", "power_draw", "clock_rate",
    "get_stream_from_external", "change_current_allocator", "cudart", "set_device",
    "set_per_process_memory_fraction", "caching_allocator_alloc", "caching_allocator_delete",
):  # fmt: skip
    globals()[_name] = _raising(_name)
for _name in ("empty_cache", "manual_seed", "manual_seed_all", "reset_peak_memory_stats",
              "reset_max_memory_allocated", "reset_max_memory_cached",
              "reset_accumulated_memory_stats"):  # fmt: skip
    globals()[_name] = _quiet(_name)
for _name in ("memory_allocated", "max_memory_allocated", "memory_reserved",
              "max_memory_reserved", "memory_cached", "max_memory_cached"):  # fmt: skip
    globals()[_name] = _quiet(_name, 0)
for _name in ("get_arch_list", "get_rng_state_all"):
    globals()[_name] = _quiet(_name, [])
for _name in ("memory_stats",):
    globals()[_name] = _quiet(_name, {})
del _name


def set_rng_state_all(new_states):
    """Sets the state of every GPU's generator: there are none."""


def memory_summary(device=None, abbreviated=False):
    """Raises AssertionError: this build has no CUDA."""
    raise RuntimeError("cuda.memory_summary: Lamina was built without CUDA")


def get_gencode_flags():
    """Flags of the compiler of kernels; empty."""
    return ""


class device:
    """A block on another GPU; without a GPU, index -1 and None are all there is."""

    def __init__(self, device):
        self.idx = -1 if device is None or device == -1 else device

    def __enter__(self):
        if self.idx != -1:
            raise RuntimeError("cuda.device: Lamina was built without CUDA; there is no GPU")

    def __exit__(self, *_):
        return False


class device_of(device):
    """A block on the GPU of a tensor; without one, nothing."""

    def __init__(self, obj):
        super().__init__(obj.get_device() if getattr(obj, "is_cuda", False) else -1)


class _Absent:
    def __new__(cls, *args, **kwargs):
        raise RuntimeError(f"cuda.{cls.__name__}: Lamina was built without CUDA")


class Stream(_Absent):
    """Raises AssertionError: this build has no CUDA."""


class ExternalStream(_Absent):
    """Raises AssertionError: this build has no CUDA."""


class Event(_Absent):
    """Raises AssertionError: this build has no CUDA."""


class CUDAGraph(_Absent):
    """Raises AssertionError: this build has no CUDA."""


class StreamContext:
    """A block on a stream; None means that nothing changes."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        if self.stream is not None:
            raise RuntimeError("cuda.stream: Lamina was built without CUDA")

    def __exit__(self, *_):
        return False


def stream(stream):
    """A block on a stream; None means that nothing changes."""
    return StreamContext(stream)


@contextmanager
def graph(*args, **kwargs):
    """Raises AssertionError: this build has no CUDA."""
    raise RuntimeError("cuda.graph: Lamina was built without CUDA")
    yield


def is_current_stream_capturing():
    """False."""
    return False


__getattr__ = _missing.getattr_of(__name__)
__all__ = [n for n in dir() if not n.startswith("_") and n not in ("contextmanager",)]
_ = (_C, OutOfMemoryError)
