"""Forward mode: derivatives that are computed along with the values.

Inside a dual level a tensor may have a tangent, a direction in which it changes. Operators give their results the
tangent that follows. Levels nest, and each has tangents of its own; recording for backward sees the computation of
tangents, so every order in every nesting is there.
"""

from typing import NamedTuple

from lamina import _C

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]

_is_fwd_grad_enabled = _C._is_fwd_grad_enabled


class UnpackedDualTensor(NamedTuple):
    """What `unpack_dual` gives: the value without its tangent, and the tangent or None."""

    primal: "_C.Tensor"
    tangent: "_C.Tensor | None"


def __getattr__(name):
    if name == "_current_level":
        return _C._current_dual_level()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def enter_dual_level():
    """Enter a new level and return its number; `dual_level` leaves it again by itself."""
    return _C._enter_dual_level()


def exit_dual_level(*, level=None):
    """Leave a level, which must be the last one entered; all its tangents are freed.

    Raises RuntimeError where it is not the last, or there is none.
    """
    current = _C._current_dual_level()
    if level is None:
        level = current
    if level != current:
        raise RuntimeError(
            "exit_dual_level: Trying to exit a forward AD level that was not the last one that was created. "
            f"This is not supported; got level {level}, the last one is {current}"
        )
    if current < 0:
        raise RuntimeError("exit_dual_level: Dual level must be a positive number; no level exists")
    _C._exit_dual_level(level)


def make_dual(tensor, tangent, *, level=None):
    """Give a tensor a tangent: the result shares the tensor's bytes and history.

    Parameters
    ----------
    tensor : Tensor
        Floating or complex.
    tangent : Tensor
        Of the same sizes and device; the direction in which `tensor` changes.
    level : int
        The level of the tangent; by default the last one entered.

    Raises
    ------
    RuntimeError
        Where there is no level, the sizes differ, or the tensor has a tangent of this level already.
    ValueError
        For tensors of integers or bool.
    """
    if level is None:
        level = _C._current_dual_level()
    if level < 0:
        raise RuntimeError(
            "make_dual: Trying to create a dual Tensor for forward AD but no level exists, make sure to "
            "enter_dual_level() first."
        )
    for what, t in (("primal", tensor), ("tangent", tangent)):
        if isinstance(t, _C.Tensor) and not (t.is_floating_point() or t.is_complex()):
            raise ValueError(
                f"make_dual: Expected {what} to be floating point or complex, but got: {t.dtype}"
            )
    return _C._make_dual(tensor, tangent, level)


def unpack_dual(tensor, *, level=None):
    """Split a tensor into its value without tangent and its tangent (None where it has none)."""
    if level is None:
        level = _C._current_dual_level()
    if level < 0:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(*_C._unpack_dual(tensor, level))


class dual_level:  # noqa: N801
    """A context in which tensors can have tangents; also a decorator.

    >>> import lamina
    >>> import lamina.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     x = fwAD.make_dual(lamina.tensor([3.0]), lamina.tensor([1.0]))
    ...     print(fwAD.unpack_dual(x * x).tangent)
    tensor([6.])
    """

    def __enter__(self):
        self._level = enter_dual_level()
        return self._level

    def __exit__(self, exc_type, exc_value, traceback):
        exit_dual_level(level=self._level)

    def clone(self):
        """A fresh context of the same kind."""
        return self.__class__()

    def __call__(self, function):
        """`function` with every call inside a level of its own."""
        from lamina._decorators import decorate

        return decorate(self, function)


class _set_fwd_grad_enabled:  # noqa: N801
    """Turns the computation of tangents on or off; takes effect at once, and as a context until its end."""

    def __init__(self, mode):
        self.mode, self._before = mode, _C._is_fwd_grad_enabled()
        _C._set_fwd_grad_enabled(mode)

    def __enter__(self):
        pass

    def __exit__(self, exc_type, exc_value, traceback):
        _C._set_fwd_grad_enabled(self._before)

    def clone(self):
        return self.__class__(self.mode)
