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


def __getattr__(name):
    if name == "norm":
        from lamina import _composites

        value = globals()[name] = _composites.linalg_norm
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = sorted({n for n in globals() if not n.startswith("_")} | {"norm"})
