"""``_foreach_*``: one operator over every tensor of a list; those with a last ``_`` write in place.

The second operand is a number, one number or tensor for each item, or one tensor for all.
"""

import lamina
from lamina import Tensor

# Functions of one tensor.
_UNARY = (
    "abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor",
    "frac", "lgamma", "log", "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt",
    "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
)  # fmt: skip
_BINARY = ("add", "sub", "mul", "div", "pow", "maximum", "minimum", "clamp_max", "clamp_min")
_TERNARY = ("addcdiv", "addcmul", "lerp")
_OTHERS = ("clone", "copy_", "max", "mm", "norm", "powsum", "zero_")

NAMES = (
    *(f"_foreach_{n}{end}" for n in (*_UNARY, *_BINARY, *_TERNARY) for end in ("", "_")),
    *(f"_foreach_{n}" for n in _OTHERS),
)


def _tensors(name, items):
    if not isinstance(items, list | tuple) or not all(isinstance(t, Tensor) for t in items):
        raise TypeError(
            f"{name}(): argument 'self' (position 1) must be tuple of Tensors, not "
            + type(items).__name__
        )
    if not items:
        raise RuntimeError(f"{name}: Tensor list must have at least one tensor.")
    return items


def _operands(name, items, other, what="other"):
    """The second operand for each item."""
    if isinstance(other, list | tuple):
        if len(other) != len(items):
            raise RuntimeError(
                f"{name}: Tensor lists must have the same number of tensors; got {len(items)} and "
                f"{len(other)} in {what}"
            )
        return other
    return [other] * len(items)


def _unary(name, writes):
    full = f"_foreach_{name}{'_' if writes else ''}"

    def function(self):
        items = _tensors(full, self)
        method = getattr(Tensor, name + ("_" if writes else ""))
        results = tuple(method(t) for t in items)
        return None if writes else results

    return function, full


def _apply_binary(name, t, other, alpha, writes):
    if name in ("maximum", "minimum", "clamp_max", "clamp_min"):
        if isinstance(other, Tensor):
            largest = name in ("maximum", "clamp_min")
            result = (lamina.maximum if largest else lamina.minimum)(t, other)
        else:
            bound = "min" if name in ("maximum", "clamp_min") else "max"
            result = t.clamp(**{bound: other})
        return t.copy_(result) if writes else result
    method = getattr(Tensor, name + ("_" if writes else ""))
    return method(t, other) if alpha == 1 else method(t, other, alpha=alpha)


def _binary(name, writes):
    full = f"_foreach_{name}{'_' if writes else ''}"

    def compute(self, other, alpha):
        if name == "pow" and not isinstance(self, list | tuple):
            return tuple(lamina.pow(self, e) for e in _tensors(full, other))
        items = _tensors(full, self)
        pairs = zip(items, _operands(full, items, other))
        results = tuple(_apply_binary(name, t, o, alpha, writes) for t, o in pairs)
        return None if writes else results

    if name in ("add", "sub"):

        def function(self, other=None, *, alpha=1, scalar=None, scalars=None):
            return compute(self, _first(full, other, scalar, scalars), alpha)

    elif name == "pow":

        def function(self, exponent):
            return compute(self, exponent, 1)

    else:

        def function(self, other=None, *, scalar=None, scalars=None):
            return compute(self, _first(full, other, scalar, scalars), 1)

    return function, full


def _first(name, *values):
    for value in values:
        if value is not None:
            return value
    raise TypeError(f"{name}() missing its second operand")


def _ternary(name, writes):
    full = f"_foreach_{name}{'_' if writes else ''}"
    method = getattr(Tensor, name + ("_" if writes else ""))

    if name == "lerp":

        def function(self, tensors1, weight=None, *, weights=None):
            items = _tensors(full, self)
            ends = _operands(full, items, tensors1, "tensors1")
            by = _operands(full, items, _first(full, weight, weights), "weight")
            results = tuple(method(t, e, w) for t, e, w in zip(items, ends, by))
            return None if writes else results

    else:

        def function(self, tensor1, tensor2, value=1, *, scalars=None):
            items = _tensors(full, self)
            first = _operands(full, items, tensor1, "tensor1")
            second = _operands(full, items, tensor2, "tensor2")
            factor = value if scalars is None else scalars
            if isinstance(factor, Tensor):
                if factor.dim() != 1 or factor.numel() != len(items):
                    raise RuntimeError(
                        f"{full}: Expected packed scalar Tensor to be of dimension 1 and of length "
                        f"{len(items)}; got {tuple(factor.shape)}"
                    )
                factor = factor.tolist()
            factors = _operands(full, items, factor, "scalars")
            results = tuple(
                method(t, a, b, value=v) for t, a, b, v in zip(items, first, second, factors)
            )
            return None if writes else results

    return function, full


def _foreach_clone(self, *, memory_format=None):
    kwargs = {} if memory_format is None else {"memory_format": memory_format}
    return tuple(t.clone(**kwargs) for t in _tensors("_foreach_clone", self))


def _foreach_copy_(self, src, non_blocking=False):
    items = _tensors("_foreach_copy_", self)
    for t, s in zip(items, _operands("_foreach_copy_", items, src, "src")):
        t.copy_(s)


def _foreach_max(self):
    return tuple(t.max() for t in _tensors("_foreach_max", self))


def _foreach_mm(self, mat2):
    items = _tensors("_foreach_mm", self)
    return tuple(a.mm(b) for a, b in zip(items, _operands("_foreach_mm", items, mat2, "mat2")))


def _foreach_norm(self, ord=2, dtype=None):
    items = _tensors("_foreach_norm", self)
    return tuple(lamina.linalg.vector_norm(t, ord, dtype=dtype) for t in items)


def _foreach_powsum(self, ord=2, dtype=None):
    items = _tensors("_foreach_powsum", self)
    return tuple(t.abs().pow(ord).sum(dtype=dtype) for t in items)


def _foreach_zero_(self):
    for t in _tensors("_foreach_zero_", self):
        t.zero_()


def _fill():
    for make, names in ((_unary, _UNARY), (_binary, _BINARY), (_ternary, _TERNARY)):
        for name in names:
            for writes in (False, True):
                function, full = make(name, writes)
                function.__name__ = function.__qualname__ = full
                function.__doc__ = f"`{name}` of every tensor of a list."
                globals()[full] = function


_fill()
