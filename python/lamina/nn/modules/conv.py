"""Convolutions.

Inputs are (n, c, ...) or (c, ...) with 1, 2 or 3 spatial dimensions; options are a number for all of them or a tuple.
"""

from __future__ import annotations

import math

import lamina
from lamina import Tensor
from lamina.nn import functional as F
from lamina.nn import init
from lamina.nn.modules.lazy import LazyModuleMixin
from lamina.nn.modules.module import Module
from lamina.nn.modules.utils import _pair, _reverse_repeat_tuple, _single, _triple
from lamina.nn.parameter import Parameter, UninitializedParameter

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d",
    "LazyConv1d", "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d",
    "LazyConvTranspose3d",
]  # fmt: skip

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """Options, parameters and texts that all convolutions share.

    `weight` is (out_channels, in_channels / groups, *kernel_size), for transposed ones (in_channels, out_channels / groups,
    *kernel_size). It and `bias` start evenly spread over [-k, k), k = 1 / sqrt(weight[0].numel()).
    """

    __constants__ = [
        "stride", "padding", "dilation", "groups", "padding_mode", "output_padding", "in_channels",
        "out_channels", "kernel_size",
    ]  # fmt: skip

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...],
        padding: int | tuple[int, ...] | str,
        dilation: int | tuple[int, ...],
        transposed,
        output_padding: int | tuple[int, ...],
        groups: int,
        bias,
        padding_mode,
        device=None,
        dtype=None,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError(
                f"in_channels must be divisible by groups; got {in_channels}, {groups}"
            )
        if out_channels % groups != 0:
            raise ValueError(
                f"out_channels must be divisible by groups; got {out_channels}, {groups}"
            )
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(
                    f"Invalid padding string {padding!r}, should be one of 'same', 'valid'"
                )
            if padding == "same" and any(s != 1 for s in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(
                f"padding_mode must be one of {_PADDING_MODES}, but got padding_mode={padding_mode!r}"
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        # As F.pad takes it, last dimension first; for modes other than zeros.
        if padding == "same":
            sides = []
            for d, k in zip(reversed(dilation), reversed(kernel_size)):
                whole = d * (k - 1)
                sides += [whole // 2, whole - whole // 2]
            self._reversed_padding_repeated_twice = sides
        elif padding == "valid":
            self._reversed_padding_repeated_twice = [0] * (2 * len(kernel_size))
        else:
            self._reversed_padding_repeated_twice = _reverse_repeat_tuple(padding, 2)
        self.weight = Parameter(lamina.empty(self._weight_sizes(), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(lamina.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _weight_sizes(self):
        channels = (self.out_channels, self.in_channels // self.groups)
        if self.transposed:
            channels = (self.in_channels, self.out_channels // self.groups)
        return (*channels, *self.kernel_size)

    def reset_parameters(self) -> None:
        """Start again from random values."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        )
        none = (0,) * len(self.kernel_size)
        if self.padding != none:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * len(self.dilation):
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * len(self.output_padding):
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text

    def __setstate__(self, state):
        super().__setstate__(state)
        if not hasattr(self, "padding_mode"):
            self.padding_mode = "zeros"

    def _convolve(self, function, input, weight, bias):
        if self.padding_mode == "zeros":
            return function(
                input, weight, bias, self.stride, self.padding, self.dilation, self.groups
            )
        padded = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
        return function(padded, weight, bias, self.stride, 0, self.dilation, self.groups)


class _Convolution(_ConvNd):
    """Convolutions of one number of dimensions.

    `_tuple` repeats an option for each; `_operator` names the function of F, looked up at each call since programs
    replace it.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] | str = 0,
        dilation: int | tuple[int, ...] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device=None,
        dtype=None,
    ) -> None:
        sizes = self._tuple
        super().__init__(
            in_channels,
            out_channels,
            sizes(kernel_size),
            sizes(stride),
            padding if isinstance(padding, str) else sizes(padding),
            sizes(dilation),
            False,
            sizes(0),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _conv_forward(self, input, weight, bias):
        return self._convolve(getattr(F, self._operator), input, weight, bias)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Convolution):
    """Convolution over one dimension; see F.conv1d."""

    _tuple = staticmethod(_single)
    _operator = "conv1d"


class Conv2d(_Convolution):
    """Convolution over images; see F.conv2d."""

    _tuple = staticmethod(_pair)
    _operator = "conv2d"


class Conv3d(_Convolution):
    """Convolution over volumes; see F.conv3d."""

    _tuple = staticmethod(_triple)
    _operator = "conv3d"


class _ConvTransposeNd(_ConvNd):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...],
        padding: int | tuple[int, ...] | str,
        dilation: int | tuple[int, ...],
        transposed,
        output_padding: int | tuple[int, ...],
        groups: int,
        bias,
        padding_mode,
        device=None,
        dtype=None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            transposed,
            output_padding,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _output_padding(
        self, input, output_size, stride, padding, kernel_size, num_spatial_dims, dilation=None
    ):
        """What to add at the far end so that the output has the wanted size; ValueError where it cannot."""
        if output_size is None:
            return _single(self.output_padding)
        batched = input.dim() == num_spatial_dims + 2
        skipped = 2 if batched else 1
        if len(output_size) == skipped + num_spatial_dims:
            output_size = output_size[skipped:]
        if len(output_size) != num_spatial_dims:
            raise ValueError(
                f"ConvTranspose{num_spatial_dims}D: for {input.dim()}D input, output_size must have "
                f"{num_spatial_dims} or {num_spatial_dims + skipped} elements (got {len(output_size)})"
            )
        smallest, largest = [], []
        for d in range(num_spatial_dims):
            spread = (dilation[d] if dilation is not None else 1) * (kernel_size[d] - 1)
            size = (input.size(d + skipped) - 1) * stride[d] - 2 * padding[d] + spread + 1
            smallest.append(size)
            largest.append(size + stride[d] - 1)
        for size, low, high in zip(output_size, smallest, largest):
            if not low <= size <= high:
                raise ValueError(
                    f"requested an output size of {output_size}, but valid sizes range from "
                    f"{smallest} to {largest} (for an input of {input.size()[2:]})"
                )
        return [size - low for size, low in zip(output_size, smallest)]

    def _transposed(self, function, input, output_size, dims):
        padding = self._output_padding(
            input, output_size, self.stride, self.padding, self.kernel_size, dims, self.dilation
        )
        return function(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            padding,
            self.groups,
            self.dilation,
        )


class _TransposedConvolution(_ConvTransposeNd):
    """As _Convolution, transposed."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] | str = 0,
        output_padding: int | tuple[int, ...] = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | tuple[int, ...] = 1,
        padding_mode: str = "zeros",
        device=None,
        dtype=None,
    ) -> None:
        sizes = self._tuple
        super().__init__(
            in_channels,
            out_channels,
            sizes(kernel_size),
            sizes(stride),
            sizes(padding),
            sizes(dilation),
            True,
            sizes(output_padding),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def forward(self, input: Tensor, output_size=None) -> Tensor:
        function = getattr(F, self._operator)
        return self._transposed(function, input, output_size, len(self.kernel_size))


class ConvTranspose1d(_TransposedConvolution):
    """Transposed convolution over one dimension; see F.conv_transpose1d."""

    _tuple = staticmethod(_single)
    _operator = "conv_transpose1d"


class ConvTranspose2d(_TransposedConvolution):
    """Transposed convolution over images; see F.conv_transpose2d."""

    _tuple = staticmethod(_pair)
    _operator = "conv_transpose2d"


class ConvTranspose3d(_TransposedConvolution):
    """Transposed convolution over volumes; see F.conv_transpose3d."""

    _tuple = staticmethod(_triple)
    _operator = "conv_transpose3d"


class _LazyConvXdMixin(LazyModuleMixin):
    """Convolutions whose `in_channels` comes from the first input."""

    def _wait(self, out_channels, bias, device, dtype):
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input, *args, **kwargs):
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._get_in_channels(input)
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        self.weight.materialize(self._weight_sizes())
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()

    def _get_in_channels(self, input):
        dims = self._get_num_spatial_dims()
        if input.dim() not in (dims + 1, dims + 2):
            raise RuntimeError(
                f"Expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input to "
                f"{type(self).__name__}, but got input of size: {input.shape}"
            )
        return input.shape[1] if input.dim() == dims + 2 else input.shape[0]

    def _get_num_spatial_dims(self):
        raise NotImplementedError


def _lazy_convolution(base, dims):
    def __init__(
        self,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        # Made without parameters; those that wait take their place.
        super(kind, self).__init__(
            0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype
        )
        self._wait(out_channels, bias, device, dtype)

    kind = _lazy_class(base, dims, __init__)
    return kind


def _lazy_transposed(base, dims):
    def __init__(
        self,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups=1,
        bias=True,
        dilation=1,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        super(kind, self).__init__(
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation,
            padding_mode, device, dtype,
        )  # fmt: skip
        self._wait(out_channels, bias, device, dtype)

    kind = _lazy_class(base, dims, __init__)
    return kind


def _lazy_class(base, dims, init_method):
    name = "Lazy" + base.__name__
    members = {
        "__module__": __name__,
        "__doc__": f"{base.__name__} whose `in_channels` comes from the first input.",
        "__init__": init_method,
        "cls_to_become": base,
        "_get_num_spatial_dims": lambda self: dims,
    }
    return type(name, (_LazyConvXdMixin, base), members)


LazyConv1d = _lazy_convolution(Conv1d, 1)
LazyConv2d = _lazy_convolution(Conv2d, 2)
LazyConv3d = _lazy_convolution(Conv3d, 3)
LazyConvTranspose1d = _lazy_transposed(ConvTranspose1d, 1)
LazyConvTranspose2d = _lazy_transposed(ConvTranspose2d, 2)
LazyConvTranspose3d = _lazy_transposed(ConvTranspose3d, 3)
