"""Blocks in which products of matrices run in a smaller dtype.

What is cast is decided by the name of the function that is called, as a mode of __torch_function__ sees it.
"""

from __future__ import annotations

import functools
import threading
import warnings

import lamina
from lamina import Tensor
from lamina.overrides import TorchFunctionMode

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

_SMALLER = frozenset(
    """__matmul__ __rmatmul__ addbmm addmm addmv baddbmm bmm conv1d conv2d conv3d conv_tbc
    conv_transpose1d conv_transpose2d conv_transpose3d linear linear_cross_entropy matmul mm mv
    multi_dot multi_head_attention_forward prelu scaled_dot_product_attention vecdot""".split()
)
_FLOAT32 = frozenset(
    """adaptive_avg_pool3d avg_pool3d binary_cross_entropy binary_cross_entropy_with_logits cdist
    cosine_embedding_loss cross_entropy_loss ctc_loss grid_sample grid_sampler
    hinge_embedding_loss huber_loss kl_div l1_loss margin_ranking_loss max_pool3d mse_loss
    multi_margin_loss multilabel_margin_loss nll_loss poisson_nll_loss polar prod quantile
    nanquantile smooth_l1_loss soft_margin_loss stft trace triplet_margin_loss
    cholesky inverse pinverse lu_solve""".split()
)
_WIDEST = frozenset(("cat", "stack", "index_copy", "index_copy_"))
_LISTED = _SMALLER | _FLOAT32 | _WIDEST
_DEFAULTS = {"cpu": lamina.bfloat16, "cuda": lamina.float16, "xpu": lamina.bfloat16}
_FLOATS = (lamina.float16, lamina.bfloat16, lamina.float32)


class _State(threading.local):
    def __init__(self):
        self.enabled = {}
        self.dtypes = dict(_DEFAULTS)
        self.cache = True
        self.nesting = 0
        self.casting = False  # whether a block of this thread does the casting


_state = _State()


def is_autocast_available(device_type):
    """Whether autocast knows a kind of device. Raises RuntimeError for what is no kind."""
    return lamina.device(device_type).type in ("cpu", "cuda", "xpu", "mps")


def is_autocast_enabled(device_type="cuda"):
    """Whether casting is on for a kind of device, in this thread."""
    return _state.enabled.get(device_type, False)


def set_autocast_enabled(device_type, enabled=None):
    """Say whether casting is on; blocks of `autocast` do so, and also do the casting."""
    if enabled is None:
        device_type, enabled = "cuda", device_type
    _state.enabled[device_type] = bool(enabled)


def get_autocast_dtype(device_type):
    """What products are cast to on a kind of device."""
    return _state.dtypes.get(device_type, lamina.bfloat16)


def set_autocast_dtype(device_type, dtype):
    """Set what products are cast to on a kind of device."""
    _state.dtypes[device_type] = dtype


def is_autocast_cpu_enabled():
    """Whether casting is on for the CPU, in this thread."""
    return is_autocast_enabled("cpu")


def get_autocast_cpu_dtype():
    """What products are cast to on the CPU."""
    return get_autocast_dtype("cpu")


def get_autocast_gpu_dtype():
    """What products are cast to on a GPU."""
    return get_autocast_dtype("cuda")


def is_autocast_cache_enabled():
    """What `set_autocast_cache_enabled` was told; there is no cache of casts."""
    return _state.cache


def set_autocast_cache_enabled(enabled):
    """Accepted."""
    _state.cache = bool(enabled)


def autocast_increment_nesting():
    """One block deeper; the depth."""
    _state.nesting += 1
    return _state.nesting


def autocast_decrement_nesting():
    """One block less deep; the depth."""
    _state.nesting -= 1
    return _state.nesting


def clear_autocast_cache():
    """Nothing to clear."""


def _cast(value, device_type, dtype):
    """Floating tensors of at most 32 bits on a kind of device as another dtype, in containers too."""
    if isinstance(value, Tensor):
        fits = value.dtype in _FLOATS and value.dtype != dtype and value.device.type == device_type
        return value.to(dtype) if fits else value
    if isinstance(value, (list, tuple)):
        items = [_cast(v, device_type, dtype) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        return {k: _cast(v, device_type, dtype) for k, v in value.items()}
    return value


def _floats(value):
    if isinstance(value, Tensor):
        return [value] if value.dtype in _FLOATS else []
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in _floats(v)]
    return []


class _Casting(TorchFunctionMode):
    """Casts arguments as the innermost block says at the time of the call."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in _LISTED and "out" not in kwargs:
            for device_type, enabled in _state.enabled.items():
                if enabled:
                    args, kwargs = self._cast(name, device_type, tuple(args), kwargs)
        return func(*args, **kwargs)

    @staticmethod
    def _cast(name, device_type, args, kwargs):
        if name in _SMALLER:
            target = get_autocast_dtype(device_type)
        elif name in _FLOAT32:
            target = lamina.float32
        elif len({t.dtype for t in _floats((args, tuple(kwargs.values())))}) > 1:
            target = lamina.float32
        else:
            return args, kwargs
        return _cast(args, device_type, target), _cast(kwargs, device_type, target)


class autocast:
    """A block, or a decorated function, in which products of float32 matrices run in a smaller dtype.

    Parameters
    ----------
    device_type : str
    dtype : dtype, optional
        bfloat16 on the CPU where it is not given.
    enabled : bool
        False switches casting off within a block where it is on.
    cache_enabled : bool, optional
        Accepted.
    """

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if not is_autocast_available(device_type):
            raise RuntimeError(f"autocast: unsupported device_type {device_type!r}")
        self.device = lamina.device(device_type).type
        self.fast_dtype = get_autocast_dtype(self.device) if dtype is None else dtype
        if enabled and self.device == "cuda" and not lamina.cuda.is_available():
            warnings.warn(
                "User provided device_type of 'cuda', but CUDA is not available. Disabling",
                stacklevel=2,
            )
            enabled = False
        if enabled and self.fast_dtype not in (lamina.bfloat16, lamina.float16):
            warnings.warn(
                f"autocast: dtypes are bfloat16 and float16; got {self.fast_dtype}; nothing is cast",
                stacklevel=2,
            )
            enabled = False
        self._enabled = enabled
        self._entered = []

    def __enter__(self):
        before = (is_autocast_enabled(self.device), get_autocast_dtype(self.device))
        set_autocast_enabled(self.device, self._enabled)
        set_autocast_dtype(self.device, self.fast_dtype)
        mode = None
        if self._enabled and not _state.casting:
            mode = _Casting()
            mode.__enter__()
            _state.casting = True
        autocast_increment_nesting()
        self._entered.append((before, mode))
        return self

    def __exit__(self, *exception):
        before, mode = self._entered.pop()
        autocast_decrement_nesting()
        if mode is not None:
            _state.casting = False
            mode.__exit__(*exception)
        set_autocast_enabled(self.device, before[0])
        set_autocast_dtype(self.device, before[1])
        return False

    def __call__(self, func):
        @functools.wraps(func)
        def decorated(*args, **kwargs):
            with self:
                return func(*args, **kwargs)

        return decorated


def custom_fwd(fwd=None, *, device_type="cuda", cast_inputs=None):
    """Decorates `forward` of an autograd Function: it runs as the block around says, or on inputs of a dtype."""
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(*args, **kwargs):
        args[0]._dtype = get_autocast_dtype(device_type)
        if cast_inputs is None:
            args[0]._fwd_used_autocast = is_autocast_enabled(device_type)
            return fwd(*args, **kwargs)
        args[0]._fwd_used_autocast = False
        if not is_autocast_enabled(device_type):
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(
                *_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs)
            )

    return decorated


def custom_bwd(bwd=None, *, device_type="cuda"):
    """Decorates `backward` of an autograd Function: it casts as its `forward` did."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorated(*args, **kwargs):
        with autocast(device_type, enabled=args[0]._fwd_used_autocast, dtype=args[0]._dtype):
            return bwd(*args, **kwargs)

    return decorated
