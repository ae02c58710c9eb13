"""Starting values of parameters. Every function fills its tensor in place, without recording, and returns it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import lamina
from lamina import Tensor
from lamina.overrides import handle_torch_function, has_torch_function_unary

_SLOPED = "leaky_relu"
_GAINS = {
    **dict.fromkeys(
        (
            "linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
            "conv_transpose3d", "sigmoid",
        ),
        1,
    ),
    "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0),
    "selu": 3.0 / 4,
}  # fmt: skip


def calculate_gain(nonlinearity: str, param=None) -> float:
    """The factor by which the standard deviation before a nonlinearity is to be larger.

    1 for linear layers, convolutions and sigmoid; 5/3 for tanh; sqrt(2) for relu; sqrt(2 / (1 + slope**2)) for
    leaky_relu, whose slope is `param` or 0.01; 3/4 for selu. Raises ValueError for other names and for a slope that is
    no number.
    """
    if nonlinearity in _GAINS:
        return _GAINS[nonlinearity]
    if nonlinearity != _SLOPED:
        raise ValueError(f"calculate_gain: Unsupported nonlinearity {nonlinearity}")
    if param is None:
        slope = 0.01
    elif isinstance(param, (int, float)) and not isinstance(param, bool):
        slope = param
    else:
        raise ValueError(f"calculate_gain: negative_slope {param} not a valid number")
    return math.sqrt(2.0 / (1 + slope**2))


def _no_grad_uniform_(tensor, a, b, generator=None):
    with lamina.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def _no_grad_normal_(tensor, mean, std, generator=None):
    with lamina.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def _no_grad_fill_(tensor, val):
    with lamina.no_grad():
        return tensor.fill_(val)


def _no_grad_zero_(tensor):
    with lamina.no_grad():
        return tensor.zero_()


def _below(x):
    """The normal distribution function."""
    return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0


_MOST_ROUNDS = 5000


def _no_grad_trunc_normal_(tensor, mean, std, a, b, generator=None):
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "trunc_normal_: mean is more than 2 std from [a, b]; the values' distribution may be off",
            stacklevel=3,
        )
    if tensor.is_meta:
        return tensor
    low, high = (a - mean) / std, (b - mean) / std
    with lamina.no_grad():
        if _below(high) - _below(low) > 0.3:
            # Normal numbers; those outside are drawn again.
            tensor.normal_(mean, std, generator=generator)
            while True:
                outside = (tensor < a) | (tensor > b)
                if not bool(outside.any()):
                    return tensor
                again = lamina.empty_like(tensor).normal_(mean, std, generator=generator)
                tensor.copy_(lamina.where(outside, again, tensor))
        # Even numbers, kept with the probability that the density has there, relative to its highest.
        top = 0.0 if low <= 0 <= high else min(low * low, high * high)
        missing = None
        for _ in range(_MOST_ROUNDS):
            x = lamina.empty_like(tensor).uniform_(a, b, generator=generator)
            chance = lamina.empty_like(tensor).uniform_(generator=generator)
            z = (x - mean) / std
            kept = chance <= ((top - z * z) / 2).exp()
            if missing is None:
                tensor.copy_(x)
                missing = ~kept
            else:
                tensor.copy_(lamina.where(missing & kept, x, tensor))
                missing = missing & ~kept
            if not bool(missing.any()):
                return tensor
        # A long, thin end: there the distribution falls off exponentially from the nearer side.
        near, sign = (a, 1.0) if low > 0 else (b, -1.0)
        rate = max(abs(low if low > 0 else high), 1.0) / std
        u = lamina.empty_like(tensor).uniform_(generator=generator)
        rest = near - sign * (1 - u).log() / rate
        tensor.copy_(lamina.where(missing, rest, tensor))
        return tensor.clamp_(min=a, max=b)


def uniform_(tensor: Tensor, a=0.0, b=1.0, generator=None) -> Tensor:
    """Numbers spread evenly over [a, b)."""
    if has_torch_function_unary(tensor):
        return handle_torch_function(
            uniform_, (tensor,), tensor=tensor, a=a, b=b, generator=generator
        )
    return _no_grad_uniform_(tensor, a, b, generator)


def normal_(tensor: Tensor, mean=0.0, std=1.0, generator=None) -> Tensor:
    """Normal numbers of a mean and a standard deviation."""
    if has_torch_function_unary(tensor):
        return handle_torch_function(
            normal_, (tensor,), tensor=tensor, mean=mean, std=std, generator=generator
        )
    return _no_grad_normal_(tensor, mean, std, generator)


def trunc_normal_(tensor: Tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None) -> Tensor:
    """Normal numbers, as they are distributed inside of [a, b]."""
    return _no_grad_trunc_normal_(tensor, mean, std, a, b, generator)


def constant_(tensor: Tensor, val) -> Tensor:
    """The value `val` everywhere."""
    if has_torch_function_unary(tensor):
        return handle_torch_function(constant_, (tensor,), tensor=tensor, val=val)
    return _no_grad_fill_(tensor, val)


def ones_(tensor: Tensor) -> Tensor:
    """One everywhere."""
    return _no_grad_fill_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Zero everywhere."""
    return _no_grad_zero_(tensor)


def eye_(tensor: Tensor) -> Tensor:
    """The identity, as far as the shape (n, m) has room. Raises ValueError for other dimensions."""
    if tensor.ndimension() != 2:
        raise ValueError(f"eye_: Only tensors with 2 dimensions are supported; got {tensor.dim()}")
    with lamina.no_grad():
        tensor.zero_()
        tensor.diagonal().fill_(1)
    return tensor


def dirac_(tensor: Tensor, groups=1) -> Tensor:
    """A convolution's weight that leaves its input as it is, channel by channel, in each of `groups`.

    Raises ValueError unless there are 3 to 5 dimensions and `groups` divides the first.
    """
    dims = tensor.ndimension()
    if dims not in (3, 4, 5):
        raise ValueError(
            f"dirac_: Only tensors with 3, 4, or 5 dimensions are supported; got {dims}"
        )
    sizes = tensor.size()
    if sizes[0] % groups:
        raise ValueError(f"dirac_: dim 0 must be divisible by groups; got {sizes[0]} and {groups}")
    out = sizes[0] // groups
    middle = tuple(s // 2 for s in sizes[2:])
    with lamina.no_grad():
        tensor.zero_()
        for g in range(groups):
            for d in range(min(out, sizes[1])):
                tensor[(g * out + d, d, *middle)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor):
    if tensor.dim() < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    field = math.prod(tensor.shape[2:])
    return tensor.size(1) * field, tensor.size(0) * field


def _calculate_correct_fan(tensor, mode):
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


def xavier_uniform_(tensor: Tensor, gain=1.0, generator=None) -> Tensor:
    """Even numbers in [-r, r), r = gain * sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio, 2010)."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    std = gain * math.sqrt(2.0 / float(fan_in + fan_out))
    bound = math.sqrt(3.0) * std
    return _no_grad_uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain=1.0, generator=None) -> Tensor:
    """Normal numbers of deviation gain * sqrt(2 / (fan_in + fan_out)) (Glorot and Bengio, 2010)."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    std = gain * math.sqrt(2.0 / float(fan_in + fan_out))
    return _no_grad_normal_(tensor, 0.0, std, generator)


def _is_empty(tensor):
    if 0 not in tensor.shape:
        return False
    warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
    return True


def kaiming_uniform_(
    tensor: Tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None
) -> Tensor:
    """Even numbers in [-r, r), r = gain * sqrt(3 / fan) (He et al., 2015); `a` is the slope of leaky_relu."""
    if has_torch_function_unary(tensor):
        return handle_torch_function(
            kaiming_uniform_, (tensor,), tensor=tensor, a=a, mode=mode,
            nonlinearity=nonlinearity, generator=generator,
        )  # fmt: skip
    if _is_empty(tensor):
        return tensor
    fan = _calculate_correct_fan(tensor, mode)
    std = calculate_gain(nonlinearity, a) / math.sqrt(fan)
    bound = math.sqrt(3.0) * std
    return _no_grad_uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None
) -> Tensor:
    """Normal numbers of deviation gain / sqrt(fan) (He et al., 2015); `a` is the slope of leaky_relu."""
    if _is_empty(tensor):
        return tensor
    fan = _calculate_correct_fan(tensor, mode)
    std = calculate_gain(nonlinearity, a) / math.sqrt(fan)
    return _no_grad_normal_(tensor, 0, std, generator)


def _orthonormal(matrix):
    """The columns of matrices (..., n, m), n >= m, made orthonormal, each with the sign that keeps R's diagonal positive."""
    q, r = lamina.linalg.qr(matrix)
    sign = r.diagonal(dim1=-2, dim2=-1).sgn()
    return q * lamina.where(sign == 0, 1, sign).unsqueeze(-2)


def orthogonal_(tensor: Tensor, gain=1, generator=None) -> Tensor:
    """A (semi-)orthogonal matrix (n, m * ...) times `gain` (Saxe et al., 2013).

    Raises ValueError for fewer than 2 dimensions.
    """
    if tensor.ndimension() < 2:
        raise ValueError(
            f"orthogonal_: Only tensors with 2 or more dimensions are supported; got {tensor.dim()}"
        )
    if tensor.numel() == 0 or tensor.is_meta:
        return tensor
    rows = tensor.size(0)
    flat = tensor.new_empty((rows, tensor.numel() // rows)).normal_(0, 1, generator=generator)
    wide = flat.size(1) > rows
    with lamina.no_grad():
        q = _orthonormal(flat.t() if wide else flat)
        q = q.t() if wide else q
        tensor.copy_(q.reshape(tensor.shape))
        tensor.mul_(gain)
    return tensor


def sparse_(tensor: Tensor, sparsity, std=0.01, generator=None) -> Tensor:
    """Normal numbers of deviation `std`; in each column the share `sparsity` is zero (Martens, 2010)."""
    if tensor.ndimension() != 2:
        raise ValueError(
            f"sparse_: Only tensors with 2 dimensions are supported; got {tensor.dim()}"
        )
    if tensor.is_meta:
        return tensor
    rows, columns = tensor.shape
    zeros = int(math.ceil(sparsity * rows))
    with lamina.no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            tensor[lamina.randperm(rows)[:zeros], column] = 0
    return tensor


def _make_deprecate(meth: Callable[..., Tensor]) -> Callable[..., Tensor]:
    new = meth.__name__
    old = new[:-1]

    def deprecated(*args, **kwargs):
        warnings.warn(
            f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.",
            FutureWarning,
            stacklevel=2,
        )
        return meth(*args, **kwargs)

    deprecated.__name__ = deprecated.__qualname__ = old
    deprecated.__doc__ = f"The old name of `{new}`."
    return deprecated


uniform = _make_deprecate(uniform_)
normal = _make_deprecate(normal_)
constant = _make_deprecate(constant_)
eye = _make_deprecate(eye_)
dirac = _make_deprecate(dirac_)
xavier_uniform = _make_deprecate(xavier_uniform_)
xavier_normal = _make_deprecate(xavier_normal_)
kaiming_uniform = _make_deprecate(kaiming_uniform_)
kaiming_normal = _make_deprecate(kaiming_normal_)
orthogonal = _make_deprecate(orthogonal_)
sparse = _make_deprecate(sparse_)

__all__ = [
    "calculate_gain", "constant", "constant_", "dirac", "dirac_", "eye", "eye_", "kaiming_normal",
    "kaiming_normal_", "kaiming_uniform", "kaiming_uniform_", "normal", "normal_", "ones_",
    "orthogonal", "orthogonal_", "sparse", "sparse_", "trunc_normal_", "uniform", "uniform_",
    "xavier_normal", "xavier_normal_", "xavier_uniform", "xavier_uniform_", "zeros_",
]  # fmt: skip
