"""Names of dispatch keys and sets of them, as packages that register kernels write them."""

from __future__ import annotations

from enum import Enum

from lamina import _C

_BACKENDS = ("CPU", "CUDA", "HIP", "XLA", "MPS", "IPU", "XPU", "HPU", "MTIA", "Meta", "PrivateUse1")
_NAMES = (
    "Undefined",
    "Dense",
    *_BACKENDS,
    *(kind + b for kind in ("Sparse", "Quantized", "Autograd", "Autocast") for b in _BACKENDS),
    "Autograd", "AutogradOther", "AutogradNestedTensor", "ADInplaceOrView", "BackendSelect",
    "CompositeExplicitAutograd", "CompositeImplicitAutograd",
    "CompositeImplicitAutogradNestedTensor", "Conjugate", "Negative", "ZeroTensor", "FuncTorchBatched",
    "FuncTorchDynamicLayerFrontMode", "FuncTorchDynamicLayerBackMode", "Functionalize", "Batched",
    "NestedTensor", "Python", "PythonDispatcher", "PythonTLSSnapshot", "PreDispatch", "Tracer",
)  # fmt: skip

DispatchKey = Enum("DispatchKey", {name: i for i, name in enumerate(dict.fromkeys(_NAMES))})
DispatchKey.__module__ = "lamina._C"


def _bits(key):
    try:
        return _C._key_bits(key.name)
    except (RuntimeError, ValueError):  # a key of something that is not here
        return 0


class DispatchKeySet:
    """A set of keys, of one or of `|` of several."""

    def __init__(self, key):
        self._keys = frozenset((key,) if isinstance(key, DispatchKey) else key)

    def __or__(self, other):
        return DispatchKeySet(self._keys | other._keys)

    def __and__(self, other):
        return DispatchKeySet(self._keys & other._keys)

    def __sub__(self, other):
        return DispatchKeySet(self._keys - other._keys)

    def __eq__(self, other):
        return isinstance(other, DispatchKeySet) and self._keys == other._keys

    def __hash__(self):
        return hash(self._keys)

    def __repr__(self):
        return f"DispatchKeySet({', '.join(sorted(k.name for k in self._keys))})"

    def add(self, key):
        """A set with one more."""
        return DispatchKeySet(self._keys | {key})

    def remove(self, key):
        """A set without one."""
        return DispatchKeySet(self._keys - {key})

    def has(self, key):
        """Whether a key is in it."""
        return key in self._keys


class _ExcludeDispatchKeyGuard:
    """A block in which kernels of these keys are passed over."""

    def __init__(self, keys):
        self.keys = keys

    def __enter__(self):
        self.before = _C._set_excluded_keys(0)
        more = 0
        for key in self.keys._keys:
            more |= _bits(key)
        _C._set_excluded_keys(self.before | more)

    def __exit__(self, *_):
        _C._set_excluded_keys(self.before)


for _type in (DispatchKey, DispatchKeySet, _ExcludeDispatchKeyGuard):
    setattr(_C, _type.__name__, _type)
del _type
