"""Settings that programs make and read; where Lamina has one way only, they say so."""

import warnings

from lamina import _C

_interop_threads = 1
_deterministic = {"mode": "default"}
_warn_always = False
_matmul_precision = "highest"


def get_num_interop_threads():
    """Threads that run independent operators at once; always 1."""
    return _interop_threads


def set_num_interop_threads(n):
    """Accepted and kept; operators run one after the other."""
    global _interop_threads
    if not isinstance(n, int) or isinstance(n, bool):
        raise TypeError(f"set_num_interop_threads expects an int, but got {type(n).__name__}")
    if n <= 0:
        raise RuntimeError(f"set_num_interop_threads expects a positive integer; got {n}")
    _interop_threads = n


def use_deterministic_algorithms(mode, *, warn_only=False):
    """Accepted; every operator of Lamina gives the same bits each time anyway."""
    if not isinstance(mode, bool):
        raise TypeError(
            f"use_deterministic_algorithms: argument 'mode' must be bool, not {type(mode).__name__}"
        )
    _deterministic["mode"] = ("warn" if warn_only else "error") if mode else "default"


def are_deterministic_algorithms_enabled():
    """What use_deterministic_algorithms was told."""
    return _deterministic["mode"] != "default"


def is_deterministic_algorithms_warn_only_enabled():
    """Whether use_deterministic_algorithms was told to warn only."""
    return _deterministic["mode"] == "warn"


def set_deterministic_debug_mode(debug_mode):
    """The same as use_deterministic_algorithms: "default" or 0, "warn" or 1, "error" or 2."""
    modes = ("default", "warn", "error")
    if debug_mode not in (*modes, 0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode: {debug_mode!r}; expected {modes}")
    _deterministic["mode"] = debug_mode if isinstance(debug_mode, str) else modes[debug_mode]


def get_deterministic_debug_mode():
    """0, 1 or 2: default, warn, error."""
    return ("default", "warn", "error").index(_deterministic["mode"])


def get_float32_matmul_precision():
    """What set_float32_matmul_precision was told; products are always computed in float32."""
    return _matmul_precision


def set_float32_matmul_precision(precision):
    """Accepted and kept: "highest", "high" or "medium"; products are always computed in float32."""
    global _matmul_precision
    if precision not in ("highest", "high", "medium"):
        warnings.warn(
            f"set_float32_matmul_precision: expected highest, high or medium; got {precision!r}, "
            "which changes nothing",
            stacklevel=2,
        )
        return
    _matmul_precision = precision


def set_warn_always(b, /):
    """Whether warnings come each time; kept, Python's own filters decide."""
    global _warn_always
    _warn_always = bool(b)


def is_warn_always_enabled():
    """What set_warn_always was told."""
    return _warn_always


def set_flush_denormal(mode):
    """Denormal numbers are kept: returns False, as on a machine that cannot flush them."""
    if not isinstance(mode, bool):
        raise TypeError(f"flush_denormal expects a bool, but got {type(mode).__name__}")
    return False


def set_default_tensor_type(t, /):
    """The old way to set the default type: a class such as DoubleTensor, or its name."""
    if isinstance(t, str):
        import lamina

        t = getattr(lamina, t.rpartition(".")[2])
    _C.set_default_dtype(t.dtype)


def _assert(condition, message):
    """An assertion that tracers may see."""
    if type(condition) is not bool and _C._has_torch_function((condition,)):
        return _C._handle_torch_function(_assert, (condition,), (condition, message), {})
    if not condition:
        raise AssertionError(message)


def _warn(text):
    warnings.warn(text, stacklevel=3)
