"""Operators of lamina.linalg."""

from lamina import _C

# Operators of the top module that have a name here, too.
_SHARED = {
    "matmul": "matmul",
}

for _name, _function in _C._submodule_functions.get("linalg", {}).items():
    globals()[_name] = _function
for _name, _top in _SHARED.items():
    if hasattr(_C, _top):
        globals().setdefault(_name, getattr(_C, _top))


LinAlgError = _C._LinAlgError
_LATER = {  # names here and in lamina._linalg
    "cond": "cond",
    "matrix_norm": "matrix_norm",
    "matrix_rank": "matrix_rank",
    "norm": "linalg_norm",
    "pinv": "pinv",
}


def __getattr__(name):
    if name in _LATER:
        from lamina import _linalg

        value = globals()[name] = getattr(_linalg, _LATER[name])
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = sorted({n for n in globals() if not n.startswith("_")} | set(_LATER))
